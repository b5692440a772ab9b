// Credential plugins: a program that prints a token or a certificate, as the kubeconfigs of cloud
// providers ask for (`users[].user.exec`).
//
// The program is run once, without a terminal; what it says on standard error the person sees. Its
// answer is not refreshed: good for commands, not for an agent that runs for days.
// Source of the rules: client-go plugin/pkg/client/auth/exec/exec.go, API
// client.authentication.k8s.io v1 and v1beta1.
//
// Threads: any; blocks until the program ends, at most kPluginPatience.
#pragma once

#include <string>

#include "api/document.h"
#include "base/clock.h"
#include "base/status.h"

namespace sextant::client {

inline constexpr Duration kPluginPatience = std::chrono::seconds(60);

struct ExecCredential {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
};

// `plugin` is what stands under "exec"; a command with a slash that is not absolute starts at
// `folder`. `cluster` is told to plugins that ask for it (provideClusterInfo).
Result<ExecCredential> RunCredentialPlugin(api::Value plugin, const std::string& folder,
                                           api::Value cluster);

}  // namespace sextant::client
