// A container's environment and command line: literals with $(VAR), the downward API, keys of
// ConfigMaps and Secrets, the API server's address, and what device plugins add.
// Pure: the ConfigMaps and Secrets have been fetched before.
// Source: pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables),
// third_party/forked/golang/expansion.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/status.h"
#include "kubelet/sources.h"

namespace sextant::kubelet {

SourceNames EnvSources(api::Value container);

struct EnvFacts {
  const api::Object& pod;
  api::Value container;
  std::string pod_ip;
  std::string host_ip;
  std::map<std::string, std::string> services;  // KUBERNETES_SERVICE_HOST, ...
  api::Value node;  // its allocatable is what absent limits count as in the downward API
};

using Env = std::map<std::string, std::string>;
Result<Env> BuildEnv(const EnvFacts& facts, const Sources& sources);

// The link variables that every Pod gets for the API server's Service (pkg/kubelet/envvars).
std::map<std::string, std::string> ApiServerEnv(const std::string& host, uint16_t port);

// "$(NAME)" by `lookup`, "$$" for a dollar; what names nothing stays as it is.
std::string Expand(std::string_view text,
                   const std::function<std::optional<std::string>(std::string_view)>& lookup);
std::vector<std::string> ExpandAll(api::Value list, const Env& env);

// A fieldRef's value; the error names the field as the kubelet does.
Result<std::string> FieldValue(std::string_view path, const EnvFacts& facts);
// A resourceFieldRef's value, of the container that it names or else of `facts.container`.
Result<std::string> ResourceValue(api::Value ref, const EnvFacts& facts);

}  // namespace sextant::kubelet
