// What the Node object of a simulated machine says.
#include <fmt/format.h>

#include <array>
#include <span>

#include "api/conditions.h"
#include "api/quantity.h"
#include "kubelet/node_reporter.h"

namespace sextant::kubelet {
namespace {

using api::Mut;
using api::Object;
using api::Value;

#if defined(__aarch64__)
constexpr char kArchitecture[] = "arm64";
#else
constexpr char kArchitecture[] = "amd64";
#endif

constexpr std::string_view kAttachAnnotation =
    "volumes.kubernetes.io/controller-managed-attach-detach";

struct ConditionRow {
  const char* type;
  const char* status;
  const char* reason;
  const char* message;
};
constexpr std::array<ConditionRow, 4> kConditions = {
    {{"MemoryPressure", "False", "KubeletHasSufficientMemory",
      "kubelet has sufficient memory available"},
     {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
     {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
     {"Ready", "True", "KubeletReady", "kubelet is posting ready status"}}};

// A stable number of 32 hexadecimal digits for a name.
std::string StableId(std::string_view what, std::string_view node) {
  uint64_t halves[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
  for (uint64_t& hash : halves) {
    for (std::string_view part : {what, std::string_view("/"), node}) {
      for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    }
  }
  return fmt::format("{:016x}{:016x}", halves[0], halves[1]);
}

std::map<std::string, std::pair<std::string, std::string>> Amounts(const NodeFacts& facts) {
  std::map<std::string, std::pair<std::string, std::string>> amounts;
  const auto both = [&](const std::string& name, const std::string& amount) {
    const std::string text = api::Quantity::ParseOrZero(amount).ToString();
    amounts[name] = {text, text};
  };
  both("cpu", facts.machine.cpu);
  both("memory", facts.machine.memory);
  both("ephemeral-storage", facts.machine.ephemeral_storage);
  both("hugepages-1Gi", "0");
  both("hugepages-2Mi", "0");
  both("pods", std::to_string(kMaxPods));
  for (const auto& [name, amount] : facts.machine.resources) both(name, amount);
  for (const auto& [name, amount] : facts.devices) {
    amounts[name] = {std::to_string(amount.capacity), std::to_string(amount.allocatable)};
  }
  return amounts;
}

void WriteConditions(Mut status, Value previous, Time now) {
  const std::string heartbeat = FormatTime(now);
  for (const ConditionRow& row : kConditions) {
    std::string changed = heartbeat;
    const Value old = api::FindCondition(previous["conditions"], row.type);
    if (old["status"].AsString() == row.status && old["lastTransitionTime"]) {
      changed = old["lastTransitionTime"].AsString();
    }
    const Mut item = status["conditions"].Append();
    item.Set("type", row.type);
    item.Set("status", row.status);
    item.Set("lastHeartbeatTime", heartbeat);
    item.Set("lastTransitionTime", changed);
    item.Set("reason", row.reason);
    item.Set("message", row.message);
  }
}

void WriteNodeInfo(Mut status, const NodeFacts& facts) {
  const Mut info = status["nodeInfo"];
  info.Set("machineID", StableId("machine", facts.options.node));
  info.Set("systemUUID", StableId("system", facts.options.node));
  info.Set("bootID", facts.boot_id);
  info.Set("kernelVersion", "simulated");
  info.Set("osImage", "Sextant simulated machine");
  info.Set("containerRuntimeVersion", fmt::format("sextant-{}://1.0.0", facts.runtime_level));
  info.Set("kubeletVersion", facts.options.version);
  info.Set("kubeProxyVersion", "");
  info.Set("operatingSystem", "linux");
  info.Set("architecture", kArchitecture);
}

}  // namespace

std::map<std::string, std::string> RoleLabels(bool control_plane) {
  if (!control_plane) return {};
  return {{"node-role.kubernetes.io/control-plane", ""},
          {"node.kubernetes.io/exclude-from-external-load-balancers", ""}};
}

Object BuildNodeStatus(const NodeFacts& facts, Value previous,
                       const std::set<std::string>& once_told, Time now) {
  api::Editor edit;
  const Mut status = edit.Root();
  const auto amounts = Amounts(facts);
  for (const auto& [name, amount] : amounts) {
    status["capacity"].Set(name, amount.first);
    status["allocatable"].Set(name, amount.second);
  }
  for (const std::string& name : once_told) {
    if (amounts.contains(name) || !previous["capacity"].Has(name)) continue;
    status["capacity"][name].SetNull();
    status["allocatable"][name].SetNull();
  }
  WriteConditions(status, previous, now);
  const auto address = [&](std::string_view type, const std::string& value) {
    const Mut item = status["addresses"].Append();
    item.Set("type", type);
    item.Set("address", value);
  };
  address("InternalIP", facts.options.internal_ip);
  address("Hostname", facts.options.node);
  status["daemonEndpoints"]["kubeletEndpoint"].Set("Port", facts.options.port);
  WriteNodeInfo(status, facts);
  return std::move(edit).Finish();
}

Object BuildNode(const NodeFacts& facts, Time now) {
  api::Editor edit;
  const Mut root = edit.Root();
  root.Set("kind", "Node");
  root.Set("apiVersion", "v1");
  const Mut metadata = root["metadata"];
  metadata.Set("name", facts.options.node);
  const Mut labels = metadata["labels"];
  for (const auto& [key, value] : facts.options.labels) labels.Set(key, value);
  labels.Set("kubernetes.io/hostname", facts.options.node);
  for (const char* prefix : {"kubernetes.io", "beta.kubernetes.io"}) {
    labels.Set(fmt::format("{}/os", prefix), "linux");
    labels.Set(fmt::format("{}/arch", prefix), kArchitecture);
  }
  metadata["annotations"].Set(kAttachAnnotation, "true");
  const Mut spec = root["spec"];
  spec.SetMap();
  if (!facts.options.pod_cidr.empty()) {
    spec.Set("podCIDR", facts.options.pod_cidr);
    spec["podCIDRs"].Append().SetString(facts.options.pod_cidr);
  }
  if (facts.options.control_plane) {
    const Mut taint = spec["taints"].Append();
    taint.Set("key", "node-role.kubernetes.io/control-plane");
    taint.Set("effect", "NoSchedule");
  }
  root["status"].Set(BuildNodeStatus(facts, {}, {}, now));
  return std::move(edit).Finish();
}

Object ReconcileNode(const Object& initial, const Object& existing) {
  // updateDefaultLabels
  constexpr std::array<std::string_view, 12> kDefaultLabels = {
      "kubernetes.io/hostname",
      "topology.kubernetes.io/zone",
      "topology.kubernetes.io/region",
      "failure-domain.beta.kubernetes.io/zone",
      "failure-domain.beta.kubernetes.io/region",
      "node.kubernetes.io/instance-type",
      "beta.kubernetes.io/instance-type",
      "kubernetes.io/os",
      "kubernetes.io/arch",
      "node.kubernetes.io/windows-build",
      "beta.kubernetes.io/os",
      "beta.kubernetes.io/arch"};
  constexpr std::array<std::string_view, 1> kAnnotations = {kAttachAnnotation};
  api::Editor edit;
  bool changed = false;
  const auto compare = [&](const char* map, std::span<const std::string_view> keys) {
    const Value wanted = initial["metadata"][map];
    const Value there = existing["metadata"][map];
    for (const std::string_view key : keys) {
      const std::string_view value = wanted[key].AsString();
      if (value.empty() || there[key].AsString() == value) continue;
      edit.Root()["metadata"][map].Set(key, value);
      changed = true;
    }
  };
  compare("labels", kDefaultLabels);
  compare("annotations", kAnnotations);
  return changed ? std::move(edit).Finish() : Object();
}

bool StatusHolds(Value wanted, Value shown) {
  for (const char* part : {"capacity", "allocatable"}) {
    for (auto [name, amount] : wanted[part].members()) {
      if (amount.IsNull() ? shown[part].Has(name)
                          : shown[part][name].AsString() != amount.AsString()) {
        return false;
      }
    }
  }
  for (Value condition : wanted["conditions"].items()) {
    const Value found = api::FindCondition(shown["conditions"], condition["type"].AsString());
    for (const char* key : {"status", "reason", "message"})
      if (!Equal(found[key], condition[key])) return false;
  }
  for (auto [key, value] : wanted["nodeInfo"].members())
    if (shown["nodeInfo"][key].AsString() != value.AsString()) return false;
  return Equal(wanted["addresses"], shown["addresses"]) &&
         Equal(wanted["daemonEndpoints"], shown["daemonEndpoints"]);
}

}  // namespace sextant::kubelet
