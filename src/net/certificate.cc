// Certificates of net/tls.h.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <ctime>

#include "base/check.h"
#include "net/openssl.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxPem = 4 << 20;
constexpr size_t kMaxCertificates = 1000;
constexpr auto kClockSkew = std::chrono::hours(1);

std::vector<std::string> SubjectEntries(const X509* cert, int nid) {
  std::vector<std::string> out;
  const X509_NAME* name = X509_get_subject_name(cert);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, value);
    if (size < 0) continue;
    out.emplace_back(reinterpret_cast<char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  ERR_clear_error();
  return out;
}

std::vector<std::string> AltNames(const X509* cert, int type) {
  std::vector<std::string> out;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(cert, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != type) continue;
    const ASN1_STRING* value = type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char* data = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    if (type == GEN_DNS) {
      out.emplace_back(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    } else if (size == 4 || size == 16) {
      char text[INET6_ADDRSTRLEN] = {};
      inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text, sizeof text);
      out.emplace_back(text);
    }
  }
  GENERAL_NAMES_free(names);
  return out;
}

Time FromAsn1(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return Time{};
  return Time{std::chrono::seconds(timegm(&parts))};
}

// X509_NAME_add_entry_by_txt would hold a common name to 64 bytes; node names may be longer, and
// Go does not mind.
void AddName(X509_NAME* name, int nid, const std::string& value) {
  CHECK(X509_NAME_add_entry_by_NID(name, nid, V_ASN1_UTF8STRING,
                                   reinterpret_cast<const unsigned char*>(value.data()),
                                   static_cast<int>(value.size()), -1, 0) == 1);
}

void AddExtension(X509* cert, const X509V3_CTX& context, int nid, const char* value) {
  X509V3_CTX copy = context;
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &copy, nid, value);
  CHECK(extension != nullptr);
  CHECK(X509_add_ext(cert, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

GENERAL_NAME* NewAltName(int type, std::string_view value) {
  ASN1_STRING* text = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
  CHECK(ASN1_STRING_set(text, value.data(), static_cast<int>(value.size())) == 1);
  GENERAL_NAME* name = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(name, type, text);
  return name;
}

Status AddAltNames(X509* cert, const CertificateSpec& spec) {
  if (spec.dns_names.empty() && spec.ip_addresses.empty()) return {};
  const std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>> names(GENERAL_NAMES_new());
  for (const std::string& dns : spec.dns_names) {
    sk_GENERAL_NAME_push(names.get(), NewAltName(GEN_DNS, dns));
  }
  for (const std::string& ip : spec.ip_addresses) {
    char bytes[16];
    const bool v4 = inet_pton(AF_INET, ip.c_str(), bytes) == 1;
    if (!v4 && inet_pton(AF_INET6, ip.c_str(), bytes) != 1) {
      return Fail(BadRequest(fmt::format("\"{}\" is not an IP address", ip)));
    }
    sk_GENERAL_NAME_push(names.get(), NewAltName(GEN_IPADD, {bytes, v4 ? size_t{4} : size_t{16}}));
  }
  CHECK(X509_add1_ext_i2d(cert, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1);
  return {};
}

void SetSerial(X509* cert) {
  unsigned char bytes[16];
  CHECK(RAND_bytes(bytes, sizeof bytes) == 1);
  bytes[0] &= 0x7f;  // positive
  bytes[0] |= 0x40;  // never zero, always the same length
  BIGNUM* number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  CHECK(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != nullptr);
  BN_free(number);
}

time_t Seconds(Time t) {
  return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count();
}

void AddUsages(X509* cert, const X509V3_CTX& context, const CertificateSpec& spec) {
  AddExtension(cert, context, NID_basic_constraints,
               spec.is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
  AddExtension(cert, context, NID_key_usage,
               spec.is_ca ? "critical,digitalSignature,keyEncipherment,keyCertSign"
                          : "critical,digitalSignature,keyEncipherment");
  if (spec.server_auth && spec.client_auth) {
    AddExtension(cert, context, NID_ext_key_usage, "serverAuth,clientAuth");
  } else if (spec.server_auth) {
    AddExtension(cert, context, NID_ext_key_usage, "serverAuth");
  } else if (spec.client_auth) {
    AddExtension(cert, context, NID_ext_key_usage, "clientAuth");
  }
}

}  // namespace

Result<Certificate> Certificate::FromPem(std::string_view pem) {
  ASSIGN_OR_RETURN(std::vector<Certificate> all, AllFromPem(pem));
  return all.front();
}

Result<std::vector<Certificate>> Certificate::AllFromPem(std::string_view pem) {
  if (pem.size() > kMaxPem) return Fail(BadRequest("the certificates' PEM is too large"));
  const BioPtr bio = ReadBio(pem);
  std::vector<Certificate> out;
  while (X509* cert = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    out.push_back(Certificate(std::shared_ptr<X509>(cert, X509_free)));
    if (out.size() > kMaxCertificates) return Fail(BadRequest("too many certificates"));
  }
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (reason != PEM_R_NO_START_LINE && reason != 0) {
    return Fail(BadRequest("bad certificate: " + OpenSslError()));
  }
  ERR_clear_error();
  if (out.empty()) return Fail(BadRequest("no certificate found in PEM data"));
  return out;
}

std::string Certificate::ToPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(bio.get(), cert_.get()) == 1);
  return TakeBio(bio.get());
}

std::string Certificate::common_name() const {
  std::vector<std::string> all = SubjectEntries(cert_.get(), NID_commonName);
  return all.empty() ? std::string() : all.back();
}

std::vector<std::string> Certificate::organizations() const {
  return SubjectEntries(cert_.get(), NID_organizationName);
}

std::vector<std::string> Certificate::dns_names() const { return AltNames(cert_.get(), GEN_DNS); }

std::vector<std::string> Certificate::ip_addresses() const {
  return AltNames(cert_.get(), GEN_IPADD);
}

std::string Certificate::fingerprint_sha256() const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CHECK(X509_digest(cert_.get(), EVP_sha256(), digest, &size) == 1);
  return Hex({reinterpret_cast<char*>(digest), size});
}

Time Certificate::not_before() const { return FromAsn1(X509_get0_notBefore(cert_.get())); }
Time Certificate::not_after() const { return FromAsn1(X509_get0_notAfter(cert_.get())); }
bool Certificate::is_ca() const { return X509_check_ca(cert_.get()) == 1; }

bool Certificate::Matches(const Key& key) const {
  return EVP_PKEY_eq(X509_get0_pubkey(cert_.get()), key.native()) == 1;
}

bool Certificate::IsSignedBy(const Certificate& issuer) const {
  const bool ok = X509_verify(cert_.get(), X509_get0_pubkey(issuer.cert_.get())) == 1;
  ERR_clear_error();
  return ok;
}

Result<Certificate> IssueCertificate(const CertificateSpec& spec, const Key& subject,
                                     const Certificate* issuer, const Key& issuer_key, Time now) {
  CHECK(issuer_key.is_private());
  CHECK(issuer == nullptr || issuer->Matches(issuer_key));
  std::shared_ptr<X509> cert(X509_new(), X509_free);
  X509* x = cert.get();
  CHECK(X509_set_version(x, X509_VERSION_3) == 1);
  SetSerial(x);
  CHECK(ASN1_TIME_set(X509_getm_notBefore(x), Seconds(now - kClockSkew)) != nullptr);
  CHECK(ASN1_TIME_set(X509_getm_notAfter(x), Seconds(now + spec.lifetime)) != nullptr);
  X509_NAME* name = X509_get_subject_name(x);
  for (const std::string& organization : spec.organizations) {
    AddName(name, NID_organizationName, organization);
  }
  if (!spec.common_name.empty()) AddName(name, NID_commonName, spec.common_name);
  CHECK(X509_set_issuer_name(
            x, issuer == nullptr ? name : X509_get_subject_name(issuer->native())) == 1);
  CHECK(X509_set_pubkey(x, subject.native()) == 1);

  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer == nullptr ? x : issuer->native(), x, nullptr, nullptr, 0);
  AddUsages(x, context, spec);
  AddExtension(x, context, NID_subject_key_identifier, "hash");
  if (issuer != nullptr) AddExtension(x, context, NID_authority_key_identifier, "keyid");
  RETURN_IF_ERROR(AddAltNames(x, spec));
  CHECK(X509_sign(x, issuer_key.native(), EVP_sha256()) > 0);
  return Certificate(std::move(cert));
}

}  // namespace sextant::net
