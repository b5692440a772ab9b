// TLS settings made ready for use, and the session of one connection. Internal to net.
//
// Contexts are immutable and may be shared by threads; an SSL belongs to its connection's thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/openssl.h"
#include "net/tls.h"

namespace sextant::net {

class TlsServerContext {
 public:
  static Result<std::shared_ptr<const TlsServerContext>> Make(const ServerTls& tls);
  SslPtr NewSession() const;

  explicit TlsServerContext(SslCtxPtr context) : context_(std::move(context)) {}

 private:
  SslCtxPtr context_;
};

class TlsClientContext {
 public:
  static Result<std::shared_ptr<const TlsClientContext>> Make(const ClientTls& tls);
  // `host` is what the server's certificate must be for, unless ClientTls says otherwise. With
  // `http2` ALPN offers h2 and http/1.1, else there is no ALPN.
  SslPtr NewSession(const std::string& host, bool http2) const;

  explicit TlsClientContext(SslCtxPtr context, ClientTls tls)
      : context_(std::move(context)), tls_(std::move(tls)) {}

 private:
  SslCtxPtr context_;
  ClientTls tls_;
};

// After the handshake, on the server's side: server_name, alpn and the client's certificate.
void DescribePeer(SSL* ssl, Peer& peer);
// Why the last operation on `ssl` failed, for a person.
std::string TlsFailure(SSL* ssl);

}  // namespace sextant::net
