// Requests for certificates: what is asked of them; the request itself is not taken apart.
// Source: pkg/apis/certificates/validation, pkg/apis/core/validation/names.go.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/base64.h"

namespace sextant::api {
namespace {

constexpr int64_t kLeastS = 600;
constexpr Words kUsages = {"any",
                           "cert sign",
                           "client auth",
                           "code signing",
                           "content commitment",
                           "crl sign",
                           "data encipherment",
                           "decipher only",
                           "digital signature",
                           "email protection",
                           "encipher only",
                           "ipsec end system",
                           "ipsec tunnel",
                           "ipsec user",
                           "key agreement",
                           "key encipherment",
                           "microsoft sgc",
                           "netscape sgc",
                           "ocsp signing",
                           "s/mime",
                           "server auth",
                           "signing",
                           "timestamping"};

// Each part between dots; the first bad one is complained of.
void ValidateParts(std::string_view text, Complaints (*check)(std::string_view), const At& at,
                   FieldErrors& errors) {
  for (std::string_view rest = text;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const Complaints complaints = check(part);
    for (const std::string& why : complaints) {
      errors.InvalidText(at, text, fmt::format("validating label \"{}\": {}", part, why));
    }
    if (!complaints.empty() || dot == std::string_view::npos) return;
    rest.remove_prefix(dot + 1);
  }
}

void ValidateSigner(std::string_view name, const At& at, FieldErrors& errors) {
  if (name.empty()) return errors.Required(at, "");
  if (name == "kubernetes.io/legacy-unknown") {
    return errors.InvalidText(at, name,
                              "the legacy signerName is not allowed via this API version");
  }
  if (std::ranges::count(name, '/') != 1) {
    return errors.InvalidText(
        at, name,
        "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  }
  const size_t slash = name.find('/');
  const std::string_view domain = name.substr(0, slash);
  if (domain.size() > kDns1123SubdomainMax) errors.TooLong(at, kDns1123SubdomainMax);
  ValidateParts(domain, IsDns1123Label, at, errors);
  if (domain.find('.') == std::string_view::npos) {
    errors.InvalidText(at, domain,
                       "should be a domain with at least two segments separated by dots");
  }
  ValidateParts(name.substr(slash + 1), IsDns1123Subdomain, at, errors);
}

}  // namespace

void ValidateSigningRequest(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  const std::string_view request = spec["request"].AsString();
  const Result<std::string> pem = Base64Decode(request);
  if (!pem || pem->find("-----BEGIN CERTIFICATE REQUEST-----") == std::string::npos) {
    errors.Invalid(at / "request", request.empty() ? Value() : spec["request"],
                   "PEM block type must be CERTIFICATE REQUEST");
  }
  const Value usages = spec["usages"];
  if (usages.empty()) errors.Required(at / "usages", "");
  FieldErrors repeated;
  Names seen;
  size_t i = 0;
  for (Value usage : usages.items()) {
    const At here = at.Item("usages", i++);
    const std::string_view text = usage.AsString();
    if (std::ranges::find(kUsages, text) == kUsages.end()) {
      NotSupported(here, text, kUsages, errors);
    }
    if (!seen.emplace(text).second) repeated.Duplicate(here, text);
  }
  for (Cause& cause : repeated.Take()) errors.Add(std::move(cause));
  ValidateSigner(spec["signerName"].AsString(), at / "signerName", errors);
  const Value seconds = spec["expirationSeconds"];
  if (seconds && seconds.AsInt() < kLeastS) {
    errors.Invalid(at / "expirationSeconds", seconds,
                   "may not specify a duration less than 600 seconds (10 minutes)");
  }
}

// What was asked for stays as it was asked.
void PrepareSigningRequest(Mut o, Value old) {
  if (old) SetOrErase(o, "spec", old["spec"]);
}

}  // namespace sextant::api
