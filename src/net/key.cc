// Keys and signatures of net/tls.h.
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/base64.h"
#include "base/check.h"
#include "net/openssl.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxPem = 1 << 20;
constexpr int kMinRsaBits = 2048;
constexpr size_t kEs256Half = 32;  // bytes of r and of s

struct PemBlock {
  std::string name;
  std::string header;
  std::string der;
};

// The next block of `bio`; false at the end.
bool ReadPem(BIO* bio, PemBlock& block) {
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio, &name, &header, &data, &size) != 1) {
    ERR_clear_error();
    return false;
  }
  block = {name, header, std::string(reinterpret_cast<char*>(data), static_cast<size_t>(size))};
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_clear_free(data, static_cast<size_t>(size));
  return true;
}

// The key in one block, or null if it holds none. `is_private` says which half.
PkeyPtr KeyOf(const PemBlock& block, bool& is_private) {
  const auto* at = reinterpret_cast<const unsigned char*>(block.der.data());
  const long size = static_cast<long>(block.der.size());
  is_private = block.name.ends_with("PRIVATE KEY");
  if (is_private) return PkeyPtr(d2i_AutoPrivateKey(nullptr, &at, size));
  if (block.name == "PUBLIC KEY") return PkeyPtr(d2i_PUBKEY(nullptr, &at, size));
  if (block.name == "RSA PUBLIC KEY") {
    return PkeyPtr(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, size));
  }
  if (block.name == "CERTIFICATE") {
    X509Ptr cert(d2i_X509(nullptr, &at, size));
    return PkeyPtr(cert ? X509_get_pubkey(cert.get()) : nullptr);
  }
  return nullptr;
}

bool IsP256(EVP_PKEY* key) {
  char group[64] = {};
  size_t size = 0;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
         EVP_PKEY_get_group_name(key, group, sizeof group, &size) == 1 &&
         std::string_view(group) == "prime256v1";
}

bool IsUsable(EVP_PKEY* key) {
  return IsP256(key) ||
         (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && EVP_PKEY_get_bits(key) >= kMinRsaBits);
}

// ECDSA-Sig-Value in DER → r || s.
std::string Es256FromDer(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* sig = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  CHECK(sig != nullptr);
  std::string out(2 * kEs256Half, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  CHECK(BN_bn2binpad(ECDSA_SIG_get0_r(sig), bytes, kEs256Half) == kEs256Half);
  CHECK(BN_bn2binpad(ECDSA_SIG_get0_s(sig), bytes + kEs256Half, kEs256Half) == kEs256Half);
  ECDSA_SIG_free(sig);
  return out;
}

std::string DerFromEs256(std::string_view signature) {
  if (signature.size() != 2 * kEs256Half) return {};
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* sig = ECDSA_SIG_new();
  CHECK(sig != nullptr);
  CHECK(ECDSA_SIG_set0(sig, BN_bin2bn(bytes, kEs256Half, nullptr),
                       BN_bin2bn(bytes + kEs256Half, kEs256Half, nullptr)) == 1);
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(sig, &der);
  ECDSA_SIG_free(sig);
  if (size <= 0) return {};
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

std::string PublicDer(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  CHECK(size > 0);
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

// A number of the key as base64url of its big-endian bytes, at least `width` of them.
std::string NumberOf(EVP_PKEY* key, const char* parameter, int width) {
  BIGNUM* number = nullptr;
  CHECK(EVP_PKEY_get_bn_param(key, parameter, &number) == 1);
  const int size = std::max(width, BN_num_bytes(number));
  std::string bytes(static_cast<size_t>(size), '\0');
  CHECK(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size) == size);
  BN_free(number);
  return Base64Url(bytes);
}

}  // namespace

std::string TakeBio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string OpenSslError() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string out = reason == nullptr ? "unknown" : reason;
  ERR_clear_error();
  return out;
}

Result<PkeyPtr> LoadPrivateKey(std::string_view pem) {
  if (pem.size() > kMaxPem) return Fail(BadRequest("the private key's PEM is too large"));
  const BioPtr bio = ReadBio(pem);
  PemBlock block;
  while (ReadPem(bio.get(), block)) {
    if (!block.name.ends_with("PRIVATE KEY")) continue;
    if (!block.header.empty() || block.name == "ENCRYPTED PRIVATE KEY") {
      return Fail(BadRequest("the private key is encrypted; give it without a password"));
    }
    bool is_private = false;
    PkeyPtr key = KeyOf(block, is_private);
    if (!key) return Fail(BadRequest("bad private key: " + OpenSslError()));
    return key;
  }
  return Fail(BadRequest("no private key found in PEM data"));
}

Key Key::Generate(KeyKind kind) {
  EVP_PKEY* key = kind == KeyKind::kEcP256 ? EVP_EC_gen("P-256")
                                           : EVP_RSA_gen(static_cast<size_t>(kMinRsaBits));
  CHECK(key != nullptr);
  return Key(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free), true);
}

Result<Key> Key::FromPem(std::string_view pem) {
  if (pem.size() > kMaxPem) return Fail(BadRequest("the key's PEM is too large"));
  const BioPtr bio = ReadBio(pem);
  PemBlock block;
  while (ReadPem(bio.get(), block)) {
    if (!block.header.empty()) continue;  // encrypted
    bool is_private = false;
    PkeyPtr key = KeyOf(block, is_private);
    ERR_clear_error();
    if (!key) continue;
    if (!IsUsable(key.get())) {
      return Fail(BadRequest("the key is neither EC P-256 nor RSA of at least 2048 bits"));
    }
    return Key(std::shared_ptr<EVP_PKEY>(key.release(), EVP_PKEY_free), is_private);
  }
  return Fail(BadRequest("no EC or RSA key found in PEM data"));
}

std::string Key::PrivatePem() const {
  CHECK(private_);
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  return TakeBio(bio.get());
}

std::string Key::PublicPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PUBKEY(bio.get(), key_.get()) == 1);
  return TakeBio(bio.get());
}

Key Key::Public() const {
  const std::string der = PublicDer(key_.get());
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  EVP_PKEY* key = d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size()));
  CHECK(key != nullptr);
  return Key(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free), false);
}

std::string_view Key::algorithm() const {
  return EVP_PKEY_get_base_id(key_.get()) == EVP_PKEY_RSA ? "RS256" : "ES256";
}

std::string Key::Sign(std::string_view data) const {
  CHECK(private_);
  const std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  CHECK(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1);
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  size_t size = 0;
  CHECK(EVP_DigestSign(context.get(), nullptr, &size, bytes, data.size()) == 1);
  std::string out(size, '\0');
  CHECK(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, bytes,
                       data.size()) == 1);
  out.resize(size);
  return algorithm() == "ES256" ? Es256FromDer(out) : out;
}

bool Key::Verify(std::string_view data, std::string_view signature) const {
  std::string der;
  if (algorithm() == "ES256") {
    der = DerFromEs256(signature);
    if (der.empty()) return false;
    signature = der;
  }
  const std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  CHECK(EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1);
  const bool ok =
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(data.data()),
                       data.size()) == 1;
  ERR_clear_error();
  return ok;
}

std::string Key::KeyId() const { return Base64Url(Sha256(PublicDer(key_.get()))); }

std::vector<std::pair<std::string, std::string>> Key::Jwk() const {
  EVP_PKEY* key = key_.get();
  if (algorithm() == "ES256") {
    return {{"use", "sig"},
            {"kty", "EC"},
            {"kid", KeyId()},
            {"crv", "P-256"},
            {"alg", "ES256"},
            {"x", NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_X, kEs256Half)},
            {"y", NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_Y, kEs256Half)}};
  }
  return {{"use", "sig"},
          {"kty", "RSA"},
          {"kid", KeyId()},
          {"alg", "RS256"},
          {"n", NumberOf(key, OSSL_PKEY_PARAM_RSA_N, 1)},
          {"e", NumberOf(key, OSSL_PKEY_PARAM_RSA_E, 1)}};
}

}  // namespace sextant::net
