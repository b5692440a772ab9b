// What each kind of volume is made of.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kubelet/text_error.h"
#include "kubelet/volumes.h"
#include "scheduler/affinity.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

constexpr uint32_t kDefaultMode = 0644;
constexpr int64_t kDefaultTokenSeconds = 3600;

Status SafePath(const std::string& path) {
  const std::string framed = "/" + path + "/";
  if (path.empty() || path.front() == '/' || framed.find("/../") != std::string::npos ||
      path.find('\0') != std::string::npos) {
    return Fail(TextError(fmt::format("invalid path: {}", path)));
  }
  return {};
}

uint32_t ModeOf(Value item, uint32_t otherwise) {
  return item["mode"].IsInt() ? static_cast<uint32_t>(item["mode"].AsInt()) & 0777 : otherwise;
}

uint32_t DefaultMode(Value source) {
  return source["defaultMode"].IsInt() ? static_cast<uint32_t>(source["defaultMode"].AsInt()) & 0777
                                       : kDefaultMode;
}

std::map<std::string, std::string> Payload(const Object& object, bool secret) {
  std::map<std::string, std::string> all;
  for (auto [key, value] : object["data"].members())
    all[std::string(key)] = secret ? DecodeSecret(value) : std::string(value.AsString());
  if (!secret) {
    for (auto [key, value] : object["binaryData"].members())
      all[std::string(key)] = DecodeSecret(value);
  }
  return all;
}

Status AddObject(Value source, bool secret, std::string_view name_key, uint32_t mode,
                 const Sources& sources, std::vector<VolumeFile>& files) {
  const bool optional = source["optional"].AsBool();
  ASSIGN_OR_RETURN(const Object object,
                   FindSource(secret ? sources.secrets : sources.config_maps,
                              std::string(source[name_key].AsString()), optional));
  const std::map<std::string, std::string> payload = Payload(object, secret);
  if (source["items"].size() == 0) {
    for (const auto& [key, data] : payload) files.push_back({key, data, mode});
    return {};
  }
  for (Value item : source["items"].items()) {
    const std::string key(item["key"].AsString());
    const auto found = payload.find(key);
    if (found == payload.end()) {
      if (optional) continue;
      return Fail(
          TextError(secret ? fmt::format("references non-existent secret key: {}", key)
                           : fmt::format("configmap references non-existent config key: {}", key)));
    }
    files.push_back({std::string(item["path"].AsString()), found->second, ModeOf(item, mode)});
  }
  return {};
}

Status AddDownward(Value items, uint32_t mode, const EnvFacts& facts,
                   std::vector<VolumeFile>& files) {
  for (Value item : items.items()) {
    Result<std::string> data = item["fieldRef"]
                                   ? FieldValue(item["fieldRef"]["fieldPath"].AsString(), facts)
                                   : ResourceValue(item["resourceFieldRef"], facts);
    if (!data) return Fail(std::move(data).error());
    files.push_back({std::string(item["path"].AsString()), *std::move(data), ModeOf(item, mode)});
  }
  return {};
}

Status AddProjected(Value volume, const std::string& name, const EnvFacts& facts,
                    const Sources& sources, const std::map<std::string, std::string>& tokens,
                    bool with_tokens, std::vector<VolumeFile>& files) {
  const uint32_t mode = DefaultMode(volume);
  for (Value source : volume["sources"].items()) {
    if (const Value map = source["configMap"]) {
      RETURN_IF_ERROR(AddObject(map, false, "name", mode, sources, files));
    } else if (const Value secret = source["secret"]) {
      RETURN_IF_ERROR(AddObject(secret, true, "name", mode, sources, files));
    } else if (const Value downward = source["downwardAPI"]) {
      RETURN_IF_ERROR(AddDownward(downward["items"], mode, facts, files));
    } else if (const Value token = source["serviceAccountToken"]) {
      if (!with_tokens) continue;
      const std::string path(token["path"].AsString());
      const auto found = tokens.find(name + "/" + path);
      if (found == tokens.end()) return Fail(TextError("no service account token for " + path));
      files.push_back({path, found->second, mode});
    } else {
      return Fail(TextError("this kind of projection is not supported by the simulated kubelet"));
    }
  }
  return {};
}

// The node's disk is empty: what must be there already is not.
Status PlanHostPath(Value source, VolumePlan& plan) {
  plan.host_path = source["path"].AsString();
  const std::string_view type = source["type"].AsString();
  if (type.empty() || type == "DirectoryOrCreate" || type == "Directory")
    return SafePath("x" + plan.host_path);
  if (type == "FileOrCreate") {
    plan.host_file = true;
    return SafePath("x" + plan.host_path);
  }
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds = {
      {{"File", "a file"},
       {"Socket", "a socket file"},
       {"CharDevice", "a character device"},
       {"BlockDevice", "a block device"}}};
  for (const auto& [name, text] : kKinds) {
    if (type != name) continue;
    return Fail(
        TextError(fmt::format("hostPath type check failed: {} is not {}", plan.host_path, text)));
  }
  return Fail(TextError(fmt::format("hostPath type check failed: unknown type {}", type)));
}

// A bound claim: a directory on the node's own disk.
Status PlanPersistent(Value claim, const Sources& sources, VolumePlan& plan) {
  ASSIGN_OR_RETURN(const Object volume,
                   FindSource(sources.volumes, std::string(claim["claimName"].AsString()), false));
  plan.read_only = claim["readOnly"].AsBool();
  const Value spec = volume["spec"];
  if (const Value host = spec["hostPath"]) return PlanHostPath(host, plan);
  if (const Value local = spec["local"]) {
    plan.host_path = local["path"].AsString();
    return SafePath("x" + plan.host_path);
  }
  return Fail(TextError(fmt::format(
      "the simulated kubelet mounts volumes with hostPath or local only, and PersistentVolume {} "
      "has another source",
      volume.name())));
}

}  // namespace

SourceNames VolumeSources(const Object& pod) {
  SourceNames names;
  const auto add = [](std::set<std::string>& to, Value source, std::string_view key) {
    if (source) to.emplace(source[key].AsString());
  };
  for (Value volume : pod["spec"]["volumes"].items()) {
    add(names.claims, volume["persistentVolumeClaim"], "claimName");
    add(names.config_maps, volume["configMap"], "name");
    add(names.secrets, volume["secret"], "secretName");
    for (Value source : volume["projected"]["sources"].items()) {
      add(names.config_maps, source["configMap"], "name");
      add(names.secrets, source["secret"], "name");
    }
  }
  return names;
}

std::vector<TokenWish> VolumeTokens(const Object& pod) {
  std::vector<TokenWish> wishes;
  for (Value volume : pod["spec"]["volumes"].items()) {
    for (Value source : volume["projected"]["sources"].items()) {
      const Value token = source["serviceAccountToken"];
      if (!token) continue;
      wishes.push_back({std::string(volume["name"].AsString()),
                        std::string(token["path"].AsString()),
                        std::string(token["audience"].AsString()),
                        token["expirationSeconds"].AsInt(kDefaultTokenSeconds)});
    }
  }
  return wishes;
}

Status CheckClaim(Value volume, const EnvFacts& facts, const Sources& sources) {
  const Value source = volume["persistentVolumeClaim"];
  if (!source) return {};
  const std::string claim(source["claimName"].AsString());
  const auto found = FindSource(sources.volumes, claim, false);
  if (!found) {
    const std::string_view name = volume["name"].AsString();
    Error error = TextError(fmt::format(
        "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], failed "
        "to process volumes=[{}]: error processing PVC {}/{}: {}",
        name, name, facts.pod.ns(), claim, found.error().message));
    error.reason = kVolumeWaits;
    return Fail(std::move(error));
  }
  const Value affinity = (*found)["spec"]["nodeAffinity"]["required"];
  if (!affinity || scheduler::MatchesNodeSelector(affinity, facts.node)) return {};
  return Fail(
      TextError(fmt::format("MountVolume.NodeAffinity check failed for volume \"{}\" : no matching "
                            "NodeSelectorTerms",
                            found->name())));
}

Result<VolumePlan> PlanVolume(Value volume, const EnvFacts& facts, const Sources& sources,
                              const std::map<std::string, std::string>& tokens, bool with_tokens) {
  VolumePlan plan;
  plan.name = volume["name"].AsString();
  plan.read_only = !volume["emptyDir"] && !volume["hostPath"];
  if (const Value map = volume["configMap"]) {
    RETURN_IF_ERROR(AddObject(map, false, "name", DefaultMode(map), sources, plan.files));
  } else if (const Value secret = volume["secret"]) {
    RETURN_IF_ERROR(
        AddObject(secret, true, "secretName", DefaultMode(secret), sources, plan.files));
  } else if (const Value downward = volume["downwardAPI"]) {
    RETURN_IF_ERROR(AddDownward(downward["items"], DefaultMode(downward), facts, plan.files));
  } else if (const Value projected = volume["projected"]) {
    RETURN_IF_ERROR(
        AddProjected(projected, plan.name, facts, sources, tokens, with_tokens, plan.files));
  } else if (const Value host = volume["hostPath"]) {
    RETURN_IF_ERROR(PlanHostPath(host, plan));
  } else if (const Value claim = volume["persistentVolumeClaim"]) {
    RETURN_IF_ERROR(PlanPersistent(claim, sources, plan));
  } else if (!volume["emptyDir"]) {
    return Fail(TextError("this kind of volume is not supported by the simulated kubelet"));
  }
  for (const VolumeFile& file : plan.files) RETURN_IF_ERROR(SafePath(file.path));
  return plan;
}

}  // namespace sextant::kubelet
