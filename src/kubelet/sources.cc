#include "kubelet/sources.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

// Counts the answers that are still to come.
struct Fetching {
  Sources sources;
  size_t open = 0;
  std::move_only_function<void(std::shared_ptr<const Sources>)> done;

  void Arrived(std::map<std::string, Result<api::Object>>& into, const std::string& name,
               Result<api::Object> object) {
    into.emplace(name, std::move(object));
    if (--open == 0) done(std::make_shared<const Sources>(std::move(sources)));
  }
};

// The volume of a claim, or why it cannot be used.
Result<std::string> VolumeOf(const Result<api::Object>& claim) {
  if (!claim) {
    return Fail(TextError("failed to fetch PVC from API server: " + claim.error().message));
  }
  if ((*claim)["metadata"]["deletionTimestamp"]) return Fail(TextError("PVC is being deleted"));
  const std::string_view volume = (*claim)["spec"]["volumeName"].AsString();
  if ((*claim)["status"]["phase"].AsString() != "Bound" || volume.empty()) {
    return Fail(TextError("PVC is not bound"));
  }
  return std::string(volume);
}

Result<api::Object> CheckVolume(const std::string& name, const std::string& claim_uid,
                                Result<api::Object> volume) {
  if (!volume) {
    return Fail(TextError(
        fmt::format("failed to fetch PV {} from API server: {}", name, volume.error().message)));
  }
  if ((*volume)["spec"]["claimRef"]["uid"].AsString() == claim_uid) return volume;
  return Fail(TextError(fmt::format(
      "found PV object {} with unexpected claimRef, expected claim UID {}", name, claim_uid)));
}

void FetchVolume(client::Client& client, const std::string& ns, const std::string& claim,
                 const std::shared_ptr<Fetching>& fetching) {
  client.Get(client::kPersistentVolumeClaims, {ns, claim},
             [&client, fetching, claim](Result<api::Object> found) {
               auto volume = VolumeOf(found);
               if (!volume) {
                 return fetching->Arrived(fetching->sources.volumes, claim,
                                          Fail(std::move(volume).error()));
               }
               const std::string uid(found->uid());
               client.Get(client::kPersistentVolumes, {"", *volume},
                          [fetching, claim, uid, name = *volume](Result<api::Object> object) {
                            fetching->Arrived(fetching->sources.volumes, claim,
                                              CheckVolume(name, uid, std::move(object)));
                          });
             });
}

}  // namespace

Result<api::Object> FindSource(const std::map<std::string, Result<api::Object>>& sources,
                               const std::string& name, bool optional) {
  const auto found = sources.find(name);
  if (found == sources.end()) return Fail(TextError("not fetched: " + name));
  if (found->second) return *found->second;
  if (optional && found->second.error().Is("NotFound")) return api::Object();
  return Fail(found->second.error());
}

std::string DecodeSecret(api::Value base64) { return Base64Decode(base64.AsString()).value_or(""); }

void FetchSources(client::Client& client, const std::string& ns, SourceNames names,
                  std::move_only_function<void(std::shared_ptr<const Sources>)> done) {
  const auto fetching = std::make_shared<Fetching>();
  fetching->open = names.config_maps.size() + names.secrets.size() + names.claims.size();
  fetching->done = std::move(done);
  if (fetching->open == 0) {
    client.executor().Post([fetching] {
      fetching->done(std::make_shared<const Sources>(std::move(fetching->sources)));
    });
    return;
  }
  for (const std::string& name : names.config_maps) {
    client.Get(client::kConfigMaps, {ns, name}, [fetching, name](Result<api::Object> object) {
      fetching->Arrived(fetching->sources.config_maps, name, std::move(object));
    });
  }
  for (const std::string& name : names.secrets) {
    client.Get(client::kSecrets, {ns, name}, [fetching, name](Result<api::Object> object) {
      fetching->Arrived(fetching->sources.secrets, name, std::move(object));
    });
  }
  for (const std::string& name : names.claims) FetchVolume(client, ns, name, fetching);
}

}  // namespace sextant::kubelet
