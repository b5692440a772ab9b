#include "lab/pki.h"

#include "api/json.h"

namespace sextant::lab {
namespace {

constexpr Duration kCaLifetime = std::chrono::hours(24 * 3650);
constexpr Duration kCertLifetime = std::chrono::hours(24 * 3650);

}  // namespace

Result<KeyAndCert> Pki::Issue(const net::CertificateSpec& spec, Time now) const {
  ASSIGN_OR_RETURN(const net::Certificate issuer, net::Certificate::FromPem(ca.cert_pem));
  ASSIGN_OR_RETURN(const net::Key issuer_key, net::Key::FromPem(ca.key_pem));
  const net::Key key = net::Key::Generate();
  net::CertificateSpec long_lived = spec;
  long_lived.lifetime = kCertLifetime;
  ASSIGN_OR_RETURN(const net::Certificate cert,
                   net::IssueCertificate(long_lived, key, &issuer, issuer_key, now));
  return KeyAndCert{cert.ToPem(), key.PrivatePem()};
}

Result<Pki> MakePki(std::string_view lab, Time now) {
  const net::Key key = net::Key::Generate();
  net::CertificateSpec spec;
  spec.common_name = "kubernetes";
  spec.organizations = {std::string("sextant lab ") + std::string(lab)};
  spec.is_ca = true;
  spec.lifetime = kCaLifetime;
  ASSIGN_OR_RETURN(const net::Certificate cert,
                   net::IssueCertificate(spec, key, nullptr, key, now));
  return Pki{{cert.ToPem(), key.PrivatePem()}, net::Key::Generate().PrivatePem()};
}

std::string SerialisePki(const Pki& pki) {
  api::Editor edit;
  edit.Root().Set("caCertificate", pki.ca.cert_pem);
  edit.Root().Set("caKey", pki.ca.key_pem);
  edit.Root().Set("tokenKey", pki.token_key_pem);
  const api::Object object = std::move(edit).Finish();
  return api::ToJson(object.root());
}

Result<Pki> ParsePki(std::string_view text) {
  ASSIGN_OR_RETURN(const api::Object object, api::ParseJson(text));
  Pki pki;
  pki.ca.cert_pem = object["caCertificate"].AsString();
  pki.ca.key_pem = object["caKey"].AsString();
  pki.token_key_pem = object["tokenKey"].AsString();
  if (pki.ca.cert_pem.empty() || pki.ca.key_pem.empty() || pki.token_key_pem.empty()) {
    return Fail(InternalError("the lab's keys in its state file are incomplete"));
  }
  return pki;
}

net::CertificateSpec AdminSpec() {
  net::CertificateSpec spec;
  spec.common_name = "kubernetes-admin";
  spec.organizations = {"system:masters"};
  spec.client_auth = true;
  return spec;
}

net::CertificateSpec ApiServerSpec(const std::vector<std::string>& names,
                                   const std::vector<std::string>& addresses) {
  net::CertificateSpec spec;
  spec.common_name = "kube-apiserver";
  spec.server_auth = true;
  spec.dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                    "kubernetes.default.svc.cluster.local"};
  spec.dns_names.insert(spec.dns_names.end(), names.begin(), names.end());
  spec.ip_addresses = {"127.0.0.1", "::1", "10.96.0.1"};
  for (const std::string& address : addresses) {
    if (address != "127.0.0.1" && address != "::1") spec.ip_addresses.push_back(address);
  }
  return spec;
}

}  // namespace sextant::lab
