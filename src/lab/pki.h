// A lab's keys and certificates: made once, kept in its store, so that kubeconfigs stay good over
// stop and start. All keys are EC P-256 from the operating system's random numbers.
// Blocking reads only; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/tls.h"

namespace sextant::lab {

struct KeyAndCert {
  std::string cert_pem;
  std::string key_pem;
};

struct Pki {
  KeyAndCert ca;
  std::string token_key_pem;  // signs ServiceAccount tokens

  // A certificate signed by the CA.
  Result<KeyAndCert> Issue(const net::CertificateSpec& spec, Time now) const;
};

Result<Pki> MakePki(std::string_view lab, Time now);

// One text for the store, and back.
std::string SerialisePki(const Pki& pki);
Result<Pki> ParsePki(std::string_view text);

// The user of a kubeconfig: group system:masters, as kind's kubernetes-admin.
net::CertificateSpec AdminSpec();
// The API server: kubernetes.default and so on, localhost, and the addresses given.
net::CertificateSpec ApiServerSpec(const std::vector<std::string>& names,
                                   const std::vector<std::string>& addresses);

}  // namespace sextant::lab
