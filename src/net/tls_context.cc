#include "net/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <array>

#include "base/ascii.h"
#include "base/check.h"
#include "net/io.h"

namespace sextant::net {
namespace {

// ALPN protocol lists: each name after its length.
constexpr std::string_view kAlpnBoth = "\x02h2\x08http/1.1";
constexpr size_t kMaxServerName = 255;

void SetCommon(SSL_CTX* context) {
  CHECK(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Idle connections hold no record buffers (34 KB each otherwise).
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
}

// A leaf, the rest of its chain and its key.
struct Credential {
  X509Ptr leaf;
  std::vector<X509Ptr> chain;
  PkeyPtr key;
};

Result<Credential> LoadCredential(std::string_view chain_pem, std::string_view key_pem) {
  Credential out;
  ASSIGN_OR_RETURN(const std::vector<Certificate> all, Certificate::AllFromPem(chain_pem));
  ASSIGN_OR_RETURN(out.key, LoadPrivateKey(key_pem));
  for (const Certificate& cert : all) {
    X509_up_ref(cert.native());
    (out.leaf ? out.chain.emplace_back() : out.leaf).reset(cert.native());
  }
  if (X509_check_private_key(out.leaf.get(), out.key.get()) != 1) {
    ERR_clear_error();
    return Fail(BadRequest("the private key does not belong to the certificate"));
  }
  return out;
}

Status AddTrusted(X509_STORE* store, std::string_view pem) {
  ASSIGN_OR_RETURN(const std::vector<Certificate> all, Certificate::AllFromPem(pem));
  for (const Certificate& cert : all) X509_STORE_add_cert(store, cert.native());
  ERR_clear_error();  // a certificate given twice is no harm
  return {};
}

void UseCredential(SSL_CTX* context, const Credential& own) {
  CHECK(SSL_CTX_use_certificate(context, own.leaf.get()) == 1);
  CHECK(SSL_CTX_use_PrivateKey(context, own.key.get()) == 1);
  for (const X509Ptr& cert : own.chain) SSL_CTX_add1_chain_cert(context, cert.get());
}

int SelectAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned in_size, void*) {
  unsigned char* chosen = nullptr;
  const auto* ours = reinterpret_cast<const unsigned char*>(kAlpnBoth.data());
  if (SSL_select_next_proto(&chosen, out_size, ours, static_cast<unsigned>(kAlpnBoth.size()), in,
                            in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;  // as Go: then HTTP/1.1 without ALPN
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::shared_ptr<const TlsServerContext>> TlsServerContext::Make(const ServerTls& tls) {
  SslCtxPtr own(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = own.get();
  CHECK(context != nullptr);
  SetCommon(context);
  ASSIGN_OR_RETURN(const Credential credential,
                   LoadCredential(tls.certificate.chain_pem, tls.certificate.key_pem));
  UseCredential(context, credential);
  SSL_CTX_set_alpn_select_cb(context, &SelectAlpn, nullptr);
  if (!tls.client_ca_pem.empty()) {
    RETURN_IF_ERROR(AddTrusted(SSL_CTX_get_cert_store(context), tls.client_ca_pem));
    ASSIGN_OR_RETURN(const std::vector<Certificate> all,
                     Certificate::AllFromPem(tls.client_ca_pem));
    for (const Certificate& ca : all) SSL_CTX_add_client_CA(context, ca.native());
    // A certificate that does not verify is told to the handler, not refused: see Peer.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  }
  return std::make_shared<const TlsServerContext>(std::move(own));
}

SslPtr TlsServerContext::NewSession() const {
  SslPtr ssl(SSL_new(context_.get()));
  CHECK(ssl != nullptr);
  SSL_set_accept_state(ssl.get());
  return ssl;
}

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::Make(const ClientTls& tls) {
  SslCtxPtr context(SSL_CTX_new(TLS_client_method()));
  CHECK(context != nullptr);
  SetCommon(context.get());
  if (tls.insecure_skip_verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (tls.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context.get());
    } else {
      X509_STORE* store = SSL_CTX_get_cert_store(context.get());
      RETURN_IF_ERROR(AddTrusted(store, tls.ca_pem));
      // A kubeconfig may name the server's own certificate or an intermediate one.
      X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    }
  }
  if (!tls.cert_pem.empty()) {
    ASSIGN_OR_RETURN(const Credential own, LoadCredential(tls.cert_pem, tls.key_pem));
    UseCredential(context.get(), own);
  }
  return std::make_shared<const TlsClientContext>(std::move(context), tls);
}

SslPtr TlsClientContext::NewSession(const std::string& host, bool http2) const {
  SslPtr ssl(SSL_new(context_.get()));
  CHECK(ssl != nullptr);
  const std::string& name = tls_.server_name.empty() ? host : tls_.server_name;
  const std::string& whose = tls_.verify_name.empty() ? name : tls_.verify_name;
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl.get());
  if (IsIpAddress(whose)) {
    X509_VERIFY_PARAM_set1_ip_asc(verify, whose.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(verify, whose.data(), whose.size());
  }
  if (!IsIpAddress(name) && name.size() <= kMaxServerName) {
    SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  }
  if (http2) {
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(kAlpnBoth.data()),
                        static_cast<unsigned>(kAlpnBoth.size()));
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

void DescribePeer(SSL* ssl, Peer& peer) {
  peer.tls = true;
  const unsigned char* alpn = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &size);
  peer.alpn.assign(reinterpret_cast<const char*>(alpn), size);
  if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name); name != nullptr) {
    peer.server_name = AsciiLower(name);
  }
  X509* shown = SSL_is_server(ssl) ? SSL_get0_peer_certificate(ssl) : nullptr;
  if (shown == nullptr) return;
  if (const long verdict = SSL_get_verify_result(ssl); verdict != X509_V_OK) {
    peer.client_cert_error = X509_verify_cert_error_string(verdict);
    return;
  }
  X509_up_ref(shown);
  const Certificate cert(std::shared_ptr<X509>(shown, X509_free));
  peer.client_cert = ClientCert{.common_name = cert.common_name(),
                                .organizations = cert.organizations(),
                                .fingerprint_sha256 = cert.fingerprint_sha256()};
}

std::string TlsFailure(SSL* ssl) {
  const long verdict = SSL_get_verify_result(ssl);
  if (!SSL_is_server(ssl) && verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
    ERR_clear_error();
    return fmt::format("the server's certificate: {}", X509_verify_cert_error_string(verdict));
  }
  return OpenSslError();
}

}  // namespace sextant::net
