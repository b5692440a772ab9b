// ConfigMaps, Secrets and claims that a Pod refers to: which, and fetching them with the node's own
// rights.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/document.h"
#include "base/status.h"
#include "client/client.h"

namespace sextant::kubelet {

struct SourceNames {
  std::set<std::string> config_maps;
  std::set<std::string> secrets;
  std::set<std::string> claims;
};

// As they were found: an Error where they were not.
struct Sources {
  std::map<std::string, Result<api::Object>> config_maps;
  std::map<std::string, Result<api::Object>> secrets;
  // By claim the PersistentVolume that is bound to it. Errors are those of the kubelet's desired
  // state of volumes (pkg/kubelet/volumemanager/populator at v1.36.3).
  std::map<std::string, Result<api::Object>> volumes;
};

// One of them: the object; empty where it may be absent and is; else why it is not there.
Result<api::Object> FindSource(const std::map<std::string, Result<api::Object>>& sources,
                               const std::string& name, bool optional);

// Bytes of a Secret's value.
std::string DecodeSecret(api::Value base64);

// `done` runs on the client's executor, never inline.
void FetchSources(client::Client& client, const std::string& ns, SourceNames names,
                  std::move_only_function<void(std::shared_ptr<const Sources>)> done);

}  // namespace sextant::kubelet
