#include "lab/kind_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/json.h"
#include "api/names.h"
#include "api/schema.h"
#include "api/yaml.h"
#include "base/version.h"
#include "gpu/catalogue.h"
#include "lab/known_names.h"
#include "lab/pools.h"
#include "net/io.h"
#include "server/admission.h"
#include "server/served.h"

namespace sextant::lab {
namespace {

using api::Value;

enum class Use : uint8_t {
  kRead,      // has an effect
  kNoEffect,  // accepted: there is nothing here that it could change
  kRefused,
};
struct Key {
  std::string_view name;
  Use use;
  std::string_view why = {};
};

constexpr std::array<Key, 12> kClusterKeys = {{
    {"kind", Use::kRead},
    {"apiVersion", Use::kRead},
    {"name", Use::kRead},
    {"nodes", Use::kRead},
    {"networking", Use::kRead},
    {"featureGates", Use::kRead},
    {"runtimeConfig", Use::kRead},
    {"kubeadmConfigPatches", Use::kRead},
    {"containerdConfigPatches", Use::kNoEffect, "there is no containerd; CDI needs no switch here"},
    {"kubeadmConfigPatchesJSON6902", Use::kRefused, "JSON patches of kubeadm's files are not read"},
    {"containerdConfigPatchesJSON6902", Use::kRefused, "there is no containerd"},
    {"defaultNodeImage", Use::kRefused, "nodes are simulated; they have no image"},
}};
constexpr std::array<Key, 7> kNodeKeys = {{
    {"role", Use::kRead},
    {"image", Use::kRead},
    {"labels", Use::kRead},
    {"kubeadmConfigPatches", Use::kRead},
    {"extraMounts", Use::kNoEffect, "a simulated node has no file system of its own"},
    {"extraPortMappings", Use::kRefused, "a simulated node has no ports of this machine"},
    {"kubeadmConfigPatchesJSON6902", Use::kRefused, "JSON patches of kubeadm's files are not read"},
}};
constexpr std::array<Key, 8> kNetworkingKeys = {{
    {"apiServerAddress", Use::kRead},
    {"apiServerPort", Use::kRead},
    {"ipFamily", Use::kRead},
    {"podSubnet", Use::kRefused, "the lab's Pods have 10.244.0.0/16"},
    {"serviceSubnet", Use::kRefused, "the lab's Services have 10.96.0.0/16"},
    {"disableDefaultCNI", Use::kNoEffect, "the lab has no CNI"},
    {"kubeProxyMode", Use::kNoEffect, "the lab has no kube-proxy"},
    {"dnsSearch", Use::kNoEffect, "Pods have no name server"},
}};

// A GPUPool beside the cluster; its spec's fields are the API's own.
constexpr std::array<Key, 4> kPoolKeys = {{{"kind", Use::kRead},
                                           {"apiVersion", Use::kRead},
                                           {"metadata", Use::kRead},
                                           {"spec", Use::kRead}}};

class Reader {
 public:
  Reader(const api::YamlDocument& document, std::string_view file)
      : document_(document), file_(file) {}

  Result<KindFile> Read() {
    const Value root = document_.object.root();
    RETURN_IF_ERROR(CheckKeys(root, "", kClusterKeys));
    if (root["kind"].AsString() != "Cluster") {
      return Wrong(root["kind"] ? root["kind"] : root,
                   root["kind"].AsString() == "GPUPool"
                       ? "kind: must be Cluster; GPUPool documents stand behind it"
                       : "kind: must be Cluster");
    }
    if (root["apiVersion"].AsString() != "kind.x-k8s.io/v1alpha4") {
      return Wrong(root["apiVersion"] ? root["apiVersion"] : root,
                   "apiVersion: must be kind.x-k8s.io/v1alpha4");
    }
    out_.config.name = root["name"].AsString();
    RETURN_IF_ERROR(ReadNetworking(root["networking"]));
    RETURN_IF_ERROR(ReadGates(root["featureGates"]));
    RETURN_IF_ERROR(ReadRuntimeConfig(root["runtimeConfig"]));
    RETURN_IF_ERROR(ReadKubeadm(root["kubeadmConfigPatches"], nullptr));
    RETURN_IF_ERROR(ReadNodes(root["nodes"]));
    TellUnserved();
    return std::move(out_);
  }

  Result<PoolConfig> ReadPool() {
    const Value root = document_.object.root();
    if (root["kind"].AsString() != "GPUPool" ||
        root["apiVersion"].AsString() != "sextant.dev/v1alpha1") {
      return Wrong(root["kind"] ? root["kind"] : root,
                   "only GPUPool objects of sextant.dev/v1alpha1 may stand beside the Cluster");
    }
    RETURN_IF_ERROR(CheckKeys(root, "", kPoolKeys));
    PoolConfig pool;
    const Value spec = root["spec"];
    RETURN_IF_ERROR(CheckFields(
        root, *api::Registry::Builtin().FindKind({"sextant.dev", "v1alpha1"}, "GPUPool")->message,
        ""));
    pool.name = root["metadata"]["name"].AsString();
    if (pool.name.empty()) return Wrong(root, "GPUPool: metadata.name is missing");
    auto model = gpu::FindModel(spec["model"].AsString());
    if (!model) return Wrong(spec["model"] ? spec["model"] : root, model.error().message);
    pool.model = (*model)->id;
    pool.count = static_cast<int>(spec["count"].AsInt(pool.count));
    pool.allocation = spec["allocation"].AsString("plugin");
    pool.spec = api::ToJson(spec);
    if (auto good = CheckPool(pool); !good) {
      return Wrong(FieldIn(root, good.error().causes.front().field), good.error().message);
    }
    return pool;
  }

 private:
  std::unexpected<Error> Wrong(Value at, std::string_view what) const {
    return Fail(UsageError(fmt::format("{}:{}: {}", file_, document_.PlaceOf(at).line, what)));
  }

  // What stands at "spec.node.cpu", as far down as there is something.
  static Value FieldIn(Value at, std::string_view path) {
    while (!path.empty()) {
      const size_t dot = std::min(path.find('.'), path.size());
      const Value next = at[path.substr(0, dot)];
      if (next.IsAbsent()) break;
      at = next;
      path.remove_prefix(std::min(path.size(), dot + 1));
    }
    return at;
  }

  template <size_t N>
  Status CheckKeys(Value map, std::string_view path, const std::array<Key, N>& known) {
    for (auto [name, value] : map.members()) {
      const auto key =
          std::find_if(known.begin(), known.end(), [&](const Key& k) { return k.name == name; });
      const std::string full = fmt::format("{}{}", path, name);
      if (key == known.end()) {
        std::vector<std::string> names;
        names.reserve(known.size());
        for (const Key& k : known) names.emplace_back(k.name);
        return Wrong(value, fmt::format("unknown field \"{}\"{}", full, DidYouMean(name, names)));
      }
      if (key->use == Use::kRefused) {
        return Wrong(value, fmt::format("{} is not supported: {}", full, key->why));
      }
      if (key->use == Use::kNoEffect) {
        Notice(fmt::format("{} has no effect: {}", full, key->why));
      }
    }
    return {};
  }

  // Every member is a field of `message` and of its type, all the way down.
  Status CheckFields(Value map, const api::Message& message, const std::string& path) {
    for (auto [name, value] : map.members()) {
      if (path.empty() && (name == "kind" || name == "apiVersion")) continue;
      const api::Field* field = message.FindField(name);
      if (!field) {
        std::vector<std::string> names;
        names.reserve(message.fields.size());
        for (const api::Field& one : message.fields) names.emplace_back(one.name);
        return Wrong(value,
                     fmt::format("unknown field \"{}{}\"{}", path, name, DidYouMean(name, names)));
      }
      RETURN_IF_ERROR(CheckBelow(value, *field, fmt::format("{}{}.", path, name)));
      api::Editor alone;  // by itself, so that an error is this member's
      alone.Root().Set(name, value);
      auto decoded = api::DecodeTree(std::move(alone).Finish().root(), message);
      if (!decoded) {
        return Wrong(value, fmt::format("{}{}: {}", path, name, decoded.error().message));
      }
    }
    return {};
  }

  Status CheckBelow(Value value, const api::Field& field, const std::string& path) {
    if (field.type != api::Type::kMessage) return {};
    for (Value item : value.items()) RETURN_IF_ERROR(CheckFields(item, *field.message, path));
    return field.shape == api::Shape::kSingle ? CheckFields(value, *field.message, path) : Status();
  }

  void Notice(std::string text) {
    if (std::find(out_.notices.begin(), out_.notices.end(), text) == out_.notices.end()) {
      out_.notices.push_back(std::move(text));
    }
  }

  Status ReadNetworking(Value networking) {
    RETURN_IF_ERROR(CheckKeys(networking, "networking.", kNetworkingKeys));
    if (const Value address = networking["apiServerAddress"]) {
      out_.config.listen_address = address.AsString();
      if (!net::IsIpAddress(out_.config.listen_address)) {
        return Wrong(address, fmt::format("networking.apiServerAddress: \"{}\" is no IP address",
                                          out_.config.listen_address));
      }
    }
    const int64_t port = networking["apiServerPort"].AsInt();
    if (port < -1 || port > 65535) {
      return Wrong(networking["apiServerPort"], "networking.apiServerPort: must be a port number");
    }
    out_.config.port = port > 0 ? static_cast<int>(port) : 0;
    const std::string_view family = networking["ipFamily"].AsString("ipv4");
    if (family != "ipv4") {
      return Wrong(networking["ipFamily"],
                   fmt::format("networking.ipFamily: {} is not supported, only ipv4", family));
    }
    return {};
  }

  Status SetGate(Value at, std::string_view name, bool on) {
    const KnownGate* gate = FindGate(name);
    if (!gate && name != "AllAlpha" && name != "AllBeta") {
      return Wrong(at, fmt::format("unknown feature gate \"{}\" in Kubernetes 1.36{}", name,
                                   DidYouMean(name, GateNames())));
    }
    if (gate && gate->locked && gate->on != on) {
      return Wrong(
          at, fmt::format("feature gate {} is locked to {} in Kubernetes 1.36", name, gate->on));
    }
    out_.config.feature_gates[std::string(name)] = on;
    return {};
  }

  Status ReadGates(Value gates) {
    for (auto [name, on] : gates.members()) {
      if (on.kind() != api::Kind::kBool) {
        return Wrong(on, fmt::format("featureGates.{}: must be true or false", name));
      }
      RETURN_IF_ERROR(SetGate(on, name, on.AsBool()));
    }
    return {};
  }

  Status SetRuntimeConfig(Value at, std::string_view version, std::string_view value) {
    const std::vector<std::string>& known = KnownGroupVersions();
    const bool all = version == "api/all" || version == "api/ga" || version == "api/beta" ||
                     version == "api/alpha";
    if (!all && std::find(known.begin(), known.end(), version) == known.end()) {
      return Wrong(at, fmt::format("unknown group version \"{}\" in Kubernetes 1.36{}", version,
                                   DidYouMean(version, known)));
    }
    out_.config.runtime_config[std::string(version)] = value;
    return {};
  }

  Status ReadRuntimeConfig(Value config) {
    for (auto [version, value] : config.members()) {
      RETURN_IF_ERROR(SetRuntimeConfig(value, version,
                                       value.kind() == api::Kind::kBool
                                           ? (value.AsBool() ? "true" : "false")
                                           : value.AsString()));
    }
    return {};
  }

  // "a=true,b=false" of one flag.
  template <typename F>
  Status ReadPairs(Value at, std::string_view flag, std::string_view text, F set) {
    while (!text.empty()) {
      const size_t comma = text.find(',');
      const std::string_view pair = text.substr(0, comma);
      const size_t equals = pair.find('=');
      if (equals == std::string_view::npos) {
        return Wrong(at, fmt::format("{}: \"{}\" is no name=value", flag, pair));
      }
      RETURN_IF_ERROR(set(pair.substr(0, equals), pair.substr(equals + 1)));
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
    }
    return {};
  }

  Status ApplyArgument(Value at, std::string_view name, std::string_view value, NodeConfig* node) {
    if (name == "runtime-config") {
      return ReadPairs(at, name, value, [&](std::string_view key, std::string_view on) {
        return SetRuntimeConfig(at, key, on);
      });
    }
    if (name == "feature-gates") {
      return ReadPairs(at, name, value, [&](std::string_view key, std::string_view on) {
        return SetGate(at, key, on == "true");
      });
    }
    if (name == "node-labels" && node) {
      return ReadPairs(at, name, value, [&](std::string_view key, std::string_view label) {
        return SetLabel(at, key, label, *node);
      });
    }
    if (name == "enable-admission-plugins") return EnablePlugins(at, value);
    return Wrong(at, fmt::format("kubeadmConfigPatches: the argument --{} is not supported", name));
  }

  Status SetLabel(Value at, std::string_view key, std::string_view value, NodeConfig& node) {
    if (auto good = CheckNodeLabel(key, value); !good) return Wrong(at, good.error().message);
    node.labels[std::string(key)] = value;
    return {};
  }

  Status EnablePlugins(Value at, std::string_view names) {
    const std::vector<std::string>& known = KnownAdmissionPlugins();
    const auto served = server::DefaultAdmission();
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        return Wrong(at, fmt::format("unknown admission plugin \"{}\" in Kubernetes 1.36{}", name,
                                     DidYouMean(name, known)));
      }
      if (std::none_of(served.begin(), served.end(),
                       [&](const auto& plugin) { return plugin->name() == name; })) {
        unserved_.emplace_back(name);
      }
    }
    return {};
  }

  // Arguments as kubeadm v1beta4 lists them ({name, value}) or as v1beta3 maps them.
  Status ReadArguments(Value at, Value arguments, NodeConfig* node) {
    for (Value argument : arguments.items()) {
      RETURN_IF_ERROR(
          ApplyArgument(at, argument["name"].AsString(), argument["value"].AsString(), node));
    }
    for (auto [name, value] : arguments.members()) {
      RETURN_IF_ERROR(ApplyArgument(at, name, value.AsString(), node));
    }
    return {};
  }

  Status ReadKubeadm(Value patches, NodeConfig* node) {
    for (Value patch : patches.items()) {
      auto parsed = api::ParseYaml(patch.AsString());
      if (!parsed) {
        return Wrong(patch, fmt::format("kubeadmConfigPatches: {}", parsed.error().message));
      }
      for (const api::YamlDocument& one : *parsed) {
        const api::Object& object = one.object;
        const std::string_view kind = object["kind"].AsString();
        if (kind == "ClusterConfiguration") {
          for (const char* part : {"apiServer", "controllerManager", "scheduler"}) {
            RETURN_IF_ERROR(ReadArguments(patch, object[part]["extraArgs"], node));
          }
        } else if (kind == "InitConfiguration" || kind == "JoinConfiguration") {
          RETURN_IF_ERROR(
              ReadArguments(patch, object["nodeRegistration"]["kubeletExtraArgs"], node));
        } else if (kind == "KubeletConfiguration") {
          Notice("kubeadmConfigPatches: KubeletConfiguration has no effect on simulated kubelets");
        } else {
          return Wrong(patch,
                       fmt::format("kubeadmConfigPatches: kind \"{}\" is not supported", kind));
        }
      }
    }
    return {};
  }

  Status CheckImage(Value image) {
    auto good = CheckNodeImage(image.AsString());
    return good ? Status() : Wrong(image, "image: " + good.error().message);
  }

  Status ReadNodes(Value nodes) {
    if (nodes.size() > kMaxNodes) {
      return Wrong(nodes, fmt::format("nodes: at most {}", kMaxNodes));
    }
    bool control_plane = false;
    for (Value node : nodes.items()) {
      RETURN_IF_ERROR(CheckKeys(node, "nodes[].", kNodeKeys));
      NodeConfig out;
      const std::string_view role = node["role"].AsString("control-plane");
      if (role != "control-plane" && role != "worker") {
        return Wrong(node["role"],
                     fmt::format("role: \"{}\" must be control-plane or worker", role));
      }
      out.control_plane = role == "control-plane";
      control_plane = control_plane || out.control_plane;
      out.image = node["image"].AsString();
      RETURN_IF_ERROR(CheckImage(node["image"]));
      for (auto [key, value] : node["labels"].members()) {
        if (value.kind() != api::Kind::kString) {
          return Wrong(value, fmt::format("labels: {} must be a string: put it in quotes", key));
        }
        RETURN_IF_ERROR(SetLabel(value, key, value.AsString(), out));
      }
      RETURN_IF_ERROR(ReadKubeadm(node["kubeadmConfigPatches"], &out));
      out_.config.nodes.push_back(std::move(out));
    }
    if (nodes && !control_plane) return Wrong(nodes, "nodes: at least one must be a control-plane");
    if (out_.config.nodes.empty()) out_.config.nodes.push_back({.control_plane = true});
    return {};
  }

  // What is known but changes nothing in this version, in one line.
  void TellUnserved() {
    std::vector<std::string> names;
    for (const auto& [name, on] : out_.config.feature_gates) {
      const KnownGate* gate = FindGate(name);
      if (gate && gate->on == on) continue;
      names.push_back(on ? name : name + "=false");
    }
    for (const auto& [version, on] : out_.config.runtime_config) {
      if (on != "true") {
        names.push_back(fmt::format("{}={}", version, on));
      } else if (!IsServed(version)) {
        names.push_back(version);
      }
    }
    names.insert(names.end(), unserved_.begin(), unserved_.end());
    if (names.empty()) return;
    Notice(fmt::format("accepted, not served yet: {}", fmt::join(names, ", ")));
  }

  static bool IsServed(std::string_view version) {
    const size_t slash = version.find('/');
    const std::string_view group = slash == std::string_view::npos ? "" : version.substr(0, slash);
    const std::string_view name =
        slash == std::string_view::npos ? version : version.substr(slash + 1);
    const auto all = api::Registry::Builtin().resources();
    return std::any_of(all.begin(), all.end(), [&](const api::Resource* resource) {
      const api::GroupVersion& gv = resource->group_version;
      return gv.group == group && gv.version == name && server::ServedByDefault(gv);
    });
  }

  const api::YamlDocument& document_;
  const std::string file_;
  KindFile out_;
  std::vector<std::string> unserved_;  // plugins
};

}  // namespace

Result<KindFile> ReadKindFile(std::string_view text, std::string_view file_name) {
  auto documents = api::ParseYaml(text);
  if (!documents) {
    return Fail(UsageError(fmt::format("{}: {}", file_name, documents.error().message)));
  }
  if (documents->empty() || !documents->front().object.root().IsMap()) {
    return Fail(UsageError(fmt::format("{}:1: must hold one kind: Cluster", file_name)));
  }
  ASSIGN_OR_RETURN(KindFile file, Reader(documents->front(), file_name).Read());
  for (size_t i = 1; i < documents->size(); ++i) {
    ASSIGN_OR_RETURN(PoolConfig pool, Reader((*documents)[i], file_name).ReadPool());
    if (std::any_of(file.config.pools.begin(), file.config.pools.end(),
                    [&](const PoolConfig& other) { return other.name == pool.name; })) {
      return Fail(UsageError(fmt::format("{}: two pools \"{}\"", file_name, pool.name)));
    }
    file.config.pools.push_back(std::move(pool));
  }
  return file;
}

// Another minor is another Kubernetes.
Status CheckNodeImage(std::string_view image) {
  std::string_view text = image.substr(0, image.find('@'));
  const size_t tag = text.rfind(":v1.");
  if (tag == std::string_view::npos) return {};
  const std::string_view minor = text.substr(tag + 4, text.find('.', tag + 4) - tag - 4);
  if (minor == std::to_string(version::kKubernetesMinor)) return {};
  return Fail(UsageError(
      fmt::format("this lab is Kubernetes 1.{}, not 1.{}", version::kKubernetesMinor, minor)));
}

Status CheckNodeLabel(std::string_view key, std::string_view value) {
  for (const auto& [what, complaints] :
       {std::pair{"key", api::IsQualifiedName(key)}, {"value", api::IsLabelValue(value)}}) {
    if (complaints.empty()) continue;
    return Fail(UsageError(fmt::format("label {}={}: the {} is not valid: {}", key, value, what,
                                       fmt::join(complaints, "; "))));
  }
  if (server::KubeletMaySetLabel(key)) return {};
  // ValidateKubeletFlags, cmd/kubelet/app/options/options.go, and NodeRestriction.
  return Fail(UsageError(fmt::format(
      "label {}: a kubelet may not give its node a label of kubernetes.io or k8s.io other than "
      "kubelet.kubernetes.io/..., node.kubernetes.io/... and the well-known ones; put it on the "
      "running lab's node with kubectl label",
      key)));
}

Status CheckNodeNames(const LabConfig& config) {
  for (const NodeConfig& node : config.nodes) {
    if (node.name.size() > api::kLabelValueMax) {
      return Fail(UsageError(fmt::format(
          "'{}' is not a valid cluster name: it may have {} characters here, so that the name of "
          "its node {} (the value of the label kubernetes.io/hostname) has at most {}",
          config.name, config.name.size() - (node.name.size() - api::kLabelValueMax), node.name,
          api::kLabelValueMax)));
    }
    if (auto complaints = api::IsDns1123Subdomain(node.name); !complaints.empty()) {
      return Fail(
          UsageError(fmt::format("'{}' is not a valid cluster name: no node can be called "
                                 "{}: {}",
                                 config.name, node.name, complaints.front())));
    }
  }
  return {};
}

void NameNodes(LabConfig& config) {
  int planes = 0;
  int workers = 0;
  for (NodeConfig& node : config.nodes) {
    int& count = node.control_plane ? planes : workers;
    ++count;
    node.name = fmt::format("{}-{}{}", config.name, node.control_plane ? "control-plane" : "worker",
                            count == 1 ? "" : std::to_string(count));
  }
}

}  // namespace sextant::lab
