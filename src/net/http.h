// The plain words of HTTP: what a server's handler gets and how it answers. The same for HTTP/1.1
// and HTTP/2.
//
//   void Handle(Request request, std::shared_ptr<ResponseWriter> writer) {
//     writer->SendResponse(200, {{"content-type", "text/plain"}}, MakeBuffer("ok"));
//   }
//
// A watch: StartStream(200, headers); then Write(shared event) for each event; OnClosed tells when
// the client has gone. One encoded Buffer can be written to any number of streams.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"

namespace sextant::net {

class WebSocket;   // net/websocket.h
class ByteStream;  // net/stream.h

// Bytes that are never changed again, shared by all who send them.
using Buffer = std::shared_ptr<const std::string>;
inline Buffer MakeBuffer(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

struct Header {
  std::string name;  // lower case
  std::string value;
  bool operator==(const Header&) const = default;
};

// An ordered list of headers; names are kept in lower case, lookups ignore case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string_view, std::string_view>> list);

  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);  // replaces all of that name
  void Remove(std::string_view name);
  bool Has(std::string_view name) const;
  // The first value; empty if there is none.
  std::string_view Get(std::string_view name) const;
  std::vector<std::string_view> GetAll(std::string_view name) const;
  // The comma-separated items of all its values, without the blanks around them.
  std::vector<std::string_view> Items(std::string_view name) const;
  // True if one of the comma-separated items of `name` equals `token`, ignoring case.
  bool HasToken(std::string_view name, std::string_view token) const;

  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  bool operator==(const Headers&) const = default;

 private:
  std::vector<Header> list_;
};

// What a client certificate says, after it was verified against the server's client CA.
struct ClientCert {
  std::string common_name;
  std::vector<std::string> organizations;
  std::string fingerprint_sha256;  // of the DER form, lower-case hexadecimal
};

// The other end of a connection; one object for all its requests.
struct Peer {
  std::string address;  // numeric; empty on a unix socket
  uint16_t port = 0;
  bool tls = false;
  std::string server_name;  // SNI; empty if the client sent none
  std::string alpn;         // "h2", "http/1.1" or empty
  std::optional<ClientCert> client_cert;
  // Why a certificate that the client did show is not in client_cert; else empty. As in
  // kube-apiserver, the handshake does not fail: the request is to be answered 401 then, unless it
  // is authenticated in another way.
  std::string client_cert_error;
};

struct Request {
  std::string method;     // "GET"
  std::string target;     // as sent: "/api/v1/pods?limit=500"
  std::string path;       // the part before '?', still percent-encoded; starts with '/'
  std::string query;      // the part after '?', raw
  std::string authority;  // Host or :authority
  Headers headers;        // without pseudo-headers; "host" included
  std::string body;       // complete, at most ServerLimits::max_body bytes
  int http_major = 1;     // 1 or 2
  std::shared_ptr<const Peer> peer;

  // Sets target, path and query.
  void SetTarget(std::string as_sent);
  // An HTTP/1.1 request for "Upgrade: websocket" with a sound key and version.
  bool IsWebSocketUpgrade() const;
  // An HTTP/1.1 request to go on as `protocol` ("SPDY/3.1").
  bool IsUpgradeTo(std::string_view protocol) const;
  // The protocols offered in sec-websocket-protocol, in order.
  std::vector<std::string> WebSocketProtocols() const;
};

// The way to answer one request, once. Threads: every method from any thread; calls made by one
// thread take effect in their order. Calls after the end of the answer, or after the client has
// gone, do nothing. Dropping a writer that has not begun an answer sends a 500; dropping one that
// has not finished its stream breaks the stream off, so that the client sees it as incomplete.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // The whole answer. content-length is set from the body.
  virtual void SendResponse(int status, Headers headers, Buffer body) = 0;
  void SendResponse(int status, Headers headers, std::string body) {
    SendResponse(status, std::move(headers), MakeBuffer(std::move(body)));
  }

  // A body in pieces: StartStream, any number of Writes, Finish. Every Write is sent at once.
  virtual void StartStream(int status, Headers headers) = 0;
  // False, and the piece is not taken, if the stream is closed or if it already holds bytes and
  // this piece would lift buffered_bytes() over ServerLimits::max_stream_buffer.
  virtual bool Write(Buffer piece) = 0;
  virtual void Finish() = 0;
  // Ends the stream so that the client sees it broken off (RST_STREAM, or a closed connection).
  virtual void Abort() = 0;

  // Taken by Write and not yet handed to the connection.
  virtual size_t buffered_bytes() const = 0;
  // The answer is complete, or the client has gone.
  virtual bool closed() const = 0;
  // Runs `task` once on the I/O thread when nothing more can be sent: the answer is complete, the
  // client reset the stream or the connection is lost. At once (posted) if that is so already.
  virtual void OnClosed(Task task) = 0;
  // Runs `task` once on the I/O thread when buffered_bytes() is at most half the limit, or closed.
  virtual void OnWritable(Task task) = 0;

  // Answers 101 and turns the connection into a WebSocket that speaks `protocol` (empty: none) or
  // into a raw byte stream. `done` gets it on the I/O thread, or null if the client has gone. Only
  // for HTTP/1.1 requests that ask for it (Request::IsWebSocketUpgrade for the former); otherwise a
  // 400 is sent and `done` gets null.
  virtual void UpgradeWebSocket(std::string protocol,
                                std::move_only_function<void(std::shared_ptr<WebSocket>)> done) = 0;
  virtual void Hijack(Headers headers,
                      std::move_only_function<void(std::shared_ptr<ByteStream>)> done) = 0;
};

// "%2F" → "/"; with `plus`, "+" → " " (as in a query). Malformed escapes are a BadRequest.
Result<std::string> PercentDecode(std::string_view text, bool plus = false);
std::string PercentEncode(std::string_view text);  // all but unreserved characters
// "a=1&b=2" in order, decoded; a bad escape is a BadRequest.
Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query);
// "Not Found" for 404; empty if unknown.
std::string_view StatusText(int status);

// "https://host:6443/base?x" taken apart. Schemes: http, https, ws, wss, and unix
// ("unix:///run/x.sock": all of it is the socket's path).
struct Url {
  std::string scheme;
  std::string host;   // no brackets; empty for unix
  uint16_t port = 0;  // the scheme's own if not given
  std::string path;   // "" or "/..."; for unix the socket
  std::string query;

  bool tls() const { return scheme == "https" || scheme == "wss"; }
  std::string HostPort() const;  // "host:6443", "[::1]:6443"
};
Result<Url> ParseUrl(std::string_view text);

}  // namespace sextant::net
