// A Pod's volumes on a simulated node: plain directories below the kubelet's state directory,
// filled from ConfigMaps, Secrets, the downward API and service account tokens.
//
//   VolumeSet volumes(parts, pod);
//   volumes.Prepare(facts, [&](Status s) { ... });   // fetches and writes; may be tried again
//   volumes.MountsFor(container, env);               // for the runtime
//
// hostPath is a directory of the simulated node's own (empty) disk, never of this machine; claims
// whose volume is a hostPath or local one are directories there too, others are refused. Files are
// written whole, one by one; a refreshed volume changes file by file, not as one.
//
// Threads: the loop; files on the executor for them. Errors: the texts of FailedMount events.
// Source: pkg/volume (configmap, secret, projected, downwardapi, emptydir, hostpath).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/executor.h"
#include "client/client.h"
#include "kubelet/container_env.h"
#include "kubelet/runtime.h"

namespace sextant::kubelet {

// Reason of an error that time may well mend, such as a claim that is not bound yet.
inline constexpr std::string_view kVolumeWaits = "VolumeWaits";

struct VolumeParts {
  client::Client& client;
  Executor& files;
  std::string pod_directory;   // <state>/pods/<uid>
  std::string node_directory;  // <state>/disk: what hostPath is resolved below
  bool materialise = true;
  Owner owner;  // who is to own what is written, where the lab may say so
};

// A file to be written into a volume.
struct VolumeFile {
  std::string path;  // relative, without ".."
  std::string data;
  uint32_t mode = 0644;
  bool operator==(const VolumeFile&) const = default;
};

struct TokenWish {
  std::string volume;
  std::string path;
  std::string audience;
  int64_t expiration_s = 3600;
};

// What one volume is made of. Errors are those of MountVolume.SetUp.
struct VolumePlan {
  std::string name;
  std::vector<VolumeFile> files;
  std::string host_path;   // hostPath: on the node's own disk
  bool host_file = false;  // hostPath of a file
  bool read_only = false;  // what the API server says is not the container's to change
  bool operator==(const VolumePlan&) const = default;
};

SourceNames VolumeSources(const api::Object& pod);
std::vector<TokenWish> VolumeTokens(const api::Object& pod);
// Whether the volume, if it is a claim, is bound and can be used on this node. Errors are whole.
Status CheckClaim(api::Value volume, const EnvFacts& facts, const Sources& sources);
// Of a claim that was checked. `tokens` by "volume/path".
Result<VolumePlan> PlanVolume(api::Value volume, const EnvFacts& facts, const Sources& sources,
                              const std::map<std::string, std::string>& tokens, bool with_tokens);

class VolumeSet {
 public:
  VolumeSet(VolumeParts parts, api::Object pod);
  ~VolumeSet();

  void Prepare(const EnvFacts& facts, std::move_only_function<void(Status)> done);
  // Whether its contents can change while the Pod runs.
  bool Refreshable() const;
  Result<std::vector<Mount>> MountsFor(api::Value container, const Env& env) const;

 private:
  struct Token {
    std::string text;
    Time renew_at{};
  };
  struct Preparing;

  void RequestTokens(std::shared_ptr<Preparing> preparing);
  void Write(std::shared_ptr<Preparing> preparing);
  std::string PathOf(const std::string& volume) const;

  const VolumeParts parts_;
  const api::Object pod_;
  std::map<std::string, Token> tokens_;
  std::map<std::string, VolumePlan> plans_;
  bool written_ = false;  // all of plans_ is on disk
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::kubelet
