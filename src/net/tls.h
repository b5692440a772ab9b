// Keys, certificates and signatures on OpenSSL 3.
//
//   Key ca_key = Key::Generate();
//   auto ca = IssueCertificate({.common_name = "ca", .is_ca = true}, ca_key, nullptr, ca_key, now);
//
// Keys come from the operating system's random numbers. Key and Certificate are cheap handles to
// immutable objects: copy them freely, use them from any thread. Bad PEM is a BadRequest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

// OpenSSL's own types, so that its headers stay in our .cc files.
struct evp_pkey_st;
struct x509_st;

namespace sextant::net {

enum class KeyKind { kEcP256, kRsa2048 };

// A private or a public key: EC P-256 or RSA of at least 2048 bits.
class Key {
 public:
  static Key Generate(KeyKind kind = KeyKind::kEcP256);
  // PKCS#8, PKCS#1 or SEC 1 private keys, SubjectPublicKeyInfo or PKCS#1 public keys, or the
  // public key of a certificate; the first usable PEM block counts.
  static Result<Key> FromPem(std::string_view pem);

  bool is_private() const { return private_; }
  std::string PrivatePem() const;  // PKCS#8; the key must be private
  std::string PublicPem() const;   // SubjectPublicKeyInfo
  Key Public() const;
  // The JWS name of the algorithm that Sign and Verify use: "ES256" or "RS256".
  std::string_view algorithm() const;
  // Signatures in JWS form (RFC 7518: ES256 is r || s). The key must be private.
  std::string Sign(std::string_view data) const;
  bool Verify(std::string_view data, std::string_view signature) const;
  // The key id that kube-apiserver gives: base64url of the SHA-256 of the public key's DER form
  // (kubernetes pkg/serviceaccount/jwt.go).
  std::string KeyId() const;
  // The members of this key's JWK (RFC 7517) in order: kty, kid, use, alg and the numbers.
  std::vector<std::pair<std::string, std::string>> Jwk() const;

  evp_pkey_st* native() const { return key_.get(); }

 private:
  Key(std::shared_ptr<evp_pkey_st> key, bool is_private)
      : key_(std::move(key)), private_(is_private) {}
  friend class Certificate;
  std::shared_ptr<evp_pkey_st> key_;
  bool private_ = false;
};

class Certificate {
 public:
  static Result<Certificate> FromPem(std::string_view pem);  // the first one in it
  static Result<std::vector<Certificate>> AllFromPem(std::string_view pem);

  std::string ToPem() const;
  std::string common_name() const;
  std::vector<std::string> organizations() const;
  std::vector<std::string> dns_names() const;
  std::vector<std::string> ip_addresses() const;
  std::string fingerprint_sha256() const;  // lower-case hexadecimal
  Time not_before() const;
  Time not_after() const;
  bool is_ca() const;
  bool Matches(const Key& key) const;  // the certificate is for this key
  bool IsSignedBy(const Certificate& issuer) const;

  explicit Certificate(std::shared_ptr<x509_st> cert) : cert_(std::move(cert)) {}
  x509_st* native() const { return cert_.get(); }

 private:
  std::shared_ptr<x509_st> cert_;
};

struct CertificateSpec {
  std::string common_name;
  std::vector<std::string> organizations;  // Kubernetes: the user's groups
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  bool is_ca = false;
  bool server_auth = false;
  bool client_auth = false;
  Duration lifetime = std::chrono::hours(24 * 365);
};

// Issues a certificate for `subject`, valid from one hour before `now` (clocks differ). Without an
// `issuer` it is signed by issuer_key itself. A bad IP address in the spec is a BadRequest.
Result<Certificate> IssueCertificate(const CertificateSpec& spec, const Key& subject,
                                     const Certificate* issuer, const Key& issuer_key, Time now);

// The server's side of TLS. PEM in memory; a chain is leaf first.
struct CertificateAndKey {
  std::string chain_pem;
  std::string key_pem;
};

struct ServerTls {
  CertificateAndKey certificate;
  // If set, a client may show a certificate, which is verified against these (Peer::client_cert).
  std::string client_ca_pem;
};

struct ClientTls {
  std::string ca_pem;    // empty: the system's
  std::string cert_pem;  // client certificate chain, with key_pem; may be empty
  std::string key_pem;
  bool insecure_skip_verify = false;
  std::string server_name;  // for SNI and verification in place of the URL's host
  std::string verify_name;  // whose certificate it has to be, in place of server_name
};

std::string Sha256(std::string_view data);  // 32 bytes
std::string Sha1(std::string_view data);    // 20 bytes; for the WebSocket handshake only
std::string Hex(std::string_view bytes);    // lower case

}  // namespace sextant::net
