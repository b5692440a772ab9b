#include "api/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "api/rules_kinds.h"
#include "api/rules_kit.h"

namespace sextant::api {

// What a kind counts for besides its number. Empty functions: nothing more.
struct QuotaKind::Rules {
  std::string_view group;
  std::string_view plural;
  bool (*tracks)(std::string_view name) = nullptr;
  void (*add_usage)(Value object, Time now, Amounts& usage) = nullptr;
  // `requirement` is absent where the scope has no selector.
  bool (*in_scope)(std::string_view scope, Value requirement, Value object) = nullptr;
  std::string (*missing)(Value object, const std::vector<std::string>& names) = nullptr;
  // Other changes than those that every kind has: creation.
  bool (*handles)(std::string_view verb, std::string_view subresource, Value object,
                  Value old) = nullptr;
};

namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kClassSuffix = ".storageclass.storage.k8s.io/";
constexpr std::string_view kDevicesOfClass = ".deviceclass.resource.k8s.io/devices";
constexpr std::string_view kImplicitResource = "deviceclass.resource.kubernetes.io/";
constexpr int64_t kMostDevices = 32;  // resource.AllocationResultsMaxSize

using Words = std::span<const std::string_view>;
bool Has(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Whether the label selector of a scope takes an object whose value of the scope this is.
bool Selects(Value requirement, std::optional<std::string_view> value) {
  const std::string_view op = requirement["operator"].AsString("Exists");
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value;
  bool listed = false;
  for (Value one : requirement["values"].items()) listed |= value && one.AsString() == *value;
  return op == "In" ? listed : !listed;
}

// ---- Pods ----

constexpr std::string_view kPodResources[] = {
    "cpu",  "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",   "memory",
    "pods", "requests.cpu", "requests.ephemeral-storage", "requests.memory", "ephemeral-storage"};
// Where a quota has one of these, each container must name it.
constexpr std::string_view kToBeNamed[] = {"cpu",    "limits.cpu",   "limits.memory",
                                           "memory", "requests.cpu", "requests.memory"};

bool PodTracks(std::string_view name) {
  if (Has(kPodResources, name) || IsHugePages(name)) return true;
  if (!name.starts_with(kRequests)) return false;
  const std::string_view resource = name.substr(kRequests.size());
  const bool native = !name.contains('/') || name.contains("kubernetes.io/");
  return IsHugePages(resource) || !native || resource.starts_with(kImplicitResource);
}

Amounts ComputeUsage(const Amounts& requests, const Amounts& limits) {
  Amounts usage;
  for (const auto& [name, q] : requests) {
    const bool basic = name == "cpu" || name == "memory" || name == "ephemeral-storage";
    const bool extended = IsExtendedResource(name) || name.starts_with(kImplicitResource);
    if (basic || IsHugePages(name)) usage[name] = q;
    if (basic || IsHugePages(name) || extended) usage[fmt::format("{}{}", kRequests, name)] = q;
  }
  for (const auto& [name, q] : limits) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage")
      usage["limits." + name] = q;
  }
  return usage;
}

bool LongGone(Value pod, Time now) {
  const Value metadata = pod["metadata"];
  if (!metadata["deletionTimestamp"] || !metadata["deletionGracePeriodSeconds"]) return false;
  const auto due = ParseTime(metadata["deletionTimestamp"].AsString());
  return due && now > *due + std::chrono::seconds(metadata["deletionGracePeriodSeconds"].AsInt());
}

void PodUsage(Value pod, Time now, Amounts& usage) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (phase == "Failed" || phase == "Succeeded" || LongGone(pod, now)) return;
  usage = ComputeUsage(PodAmounts(pod, "requests"), PodAmounts(pod, "limits"));
  usage["pods"] = Quantity(1);
}

bool IsTerminating(Value pod) {
  return pod["spec"]["activeDeadlineSeconds"] && pod["spec"]["activeDeadlineSeconds"].AsInt() >= 0;
}

bool CrossesNamespaces(Value affinity) {
  const auto term = [](Value t) { return !t["namespaces"].empty() || t["namespaceSelector"]; };
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value rules = affinity[kind];
    for (Value t : rules["requiredDuringSchedulingIgnoredDuringExecution"].items())
      if (term(t)) return true;
    for (Value t : rules["preferredDuringSchedulingIgnoredDuringExecution"].items())
      if (term(t["podAffinityTerm"])) return true;
  }
  return false;
}

bool PodInScope(std::string_view scope, Value requirement, Value pod) {
  const Value spec = pod["spec"];
  if (scope == "Terminating") return IsTerminating(pod);
  if (scope == "NotTerminating") return !IsTerminating(pod);
  if (scope == "BestEffort") return QosClassOf(spec) == "BestEffort";
  if (scope == "NotBestEffort") return QosClassOf(spec) != "BestEffort";
  if (scope == "CrossNamespacePodAffinity") return CrossesNamespaces(spec["affinity"]);
  if (scope != "PriorityClass") return false;
  const std::string_view priority = spec["priorityClassName"].AsString();
  return Selects(requirement, priority.empty() ? std::nullopt : std::optional(priority));
}

std::string PodMissing(Value pod, const std::vector<std::string>& names) {
  const Value own = pod["spec"]["resources"];
  for (const char* side : {"requests", "limits"}) {
    for (auto [name, q] : own[side].members())
      if (IsPodLevelResource(name)) return {};
  }
  std::map<std::string, std::set<std::string>> missing;
  for (const char* list : {"containers", "initContainers"}) {
    for (Value c : pod["spec"][list].items()) {
      const Amounts named = ComputeUsage(ReadAmounts(c["resources"]["requests"]),
                                         ReadAmounts(c["resources"]["limits"]));
      for (const std::string& name : names) {
        if (Has(kToBeNamed, name) && !named.contains(name)) {
          missing[name].emplace(c["name"].AsString());
        }
      }
    }
  }
  std::vector<std::string> texts;
  for (const auto& [name, containers] : missing) {
    texts.push_back(fmt::format("{} for: {}", name, fmt::join(containers, ",")));
  }
  return texts.empty() ? "" : fmt::format("must specify {}", fmt::join(texts, "; "));
}

bool PodHandles(std::string_view verb, std::string_view subresource, Value pod, Value old) {
  if (verb != "update") return false;
  if (subresource == "resize") return true;
  return subresource.empty() && IsTerminating(pod) != IsTerminating(old);
}

// ---- Services ----

bool ServiceTracks(std::string_view name) {
  return name == "services" || name == "services.nodeports" || name == "services.loadbalancers";
}

void ServiceUsage(Value service, Time, Amounts& usage) {
  const Value spec = service["spec"];
  const std::string_view type = spec["type"].AsString();
  const bool balanced = type == "LoadBalancer";
  int64_t node_ports = 0;
  if (balanced && spec["allocateLoadBalancerNodePorts"] &&
      !spec["allocateLoadBalancerNodePorts"].AsBool()) {
    for (Value port : spec["ports"].items()) node_ports += port["nodePort"].AsInt() != 0 ? 1 : 0;
  } else if (balanced || type == "NodePort") {
    node_ports = static_cast<int64_t>(spec["ports"].size());
  }
  usage = {{"services", Quantity(1)},
           {"services.nodeports", Quantity(node_ports)},
           {"services.loadbalancers", Quantity(balanced ? 1 : 0)}};
}

bool AnyUpdate(std::string_view verb, std::string_view subresource, Value, Value) {
  return verb == "update" && subresource.empty();
}

// ---- claims of storage ----

constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kStorage = "requests.storage";

bool ClaimTracks(std::string_view name) {
  for (std::string_view resource : {kClaims, kStorage}) {
    if (name == resource) return true;
    if (name.ends_with(fmt::format("{}{}", kClassSuffix, resource))) return true;
  }
  return false;
}

Quantity WholeBytes(Value amount) {
  const Quantity q = Quantity::ParseOrZero(amount.AsString());
  return Quantity(q.Value(), q.format());
}

void ClaimUsage(Value claim, Time, Amounts& usage) {
  const Value annotated =
      claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
  const std::string_view storage_class =
      annotated ? annotated.AsString() : claim["spec"]["storageClassName"].AsString();
  const auto charge = [&](std::string_view resource, const Quantity& amount) {
    usage[std::string(resource)] = amount;
    if (!storage_class.empty()) {
      usage[fmt::format("{}{}{}", storage_class, kClassSuffix, resource)] = amount;
    }
  };
  charge(kClaims, Quantity(1));
  const Value asked = claim["spec"]["resources"]["requests"]["storage"];
  if (!asked) return;
  const Value allocated = claim["status"]["allocatedResources"]["storage"];
  charge(kStorage,
         allocated ? std::max(WholeBytes(asked), WholeBytes(allocated)) : WholeBytes(asked));
}

std::set<std::string_view> AttributesClasses(Value claim) {
  std::set<std::string_view> names = {
      claim["spec"]["volumeAttributesClassName"].AsString(),
      claim["status"]["currentVolumeAttributesClassName"].AsString(),
      claim["status"]["modifyVolumeStatus"]["targetVolumeAttributesClassName"].AsString()};
  names.erase("");
  return names;
}

bool ClaimInScope(std::string_view scope, Value requirement, Value claim) {
  if (scope != "VolumeAttributesClass") return false;
  const auto names = AttributesClasses(claim);
  if (names.empty()) return Selects(requirement, std::nullopt);
  return std::ranges::any_of(names, [&](auto name) { return Selects(requirement, name); });
}

bool ClaimHandles(std::string_view verb, std::string_view subresource, Value claim, Value old) {
  if (verb != "update") return false;
  if (subresource.empty()) return true;
  if (subresource != "status") return false;
  return !Same(claim["status"]["allocatedResources"], old["status"]["allocatedResources"]) ||
         AttributesClasses(claim) != AttributesClasses(old);
}

// ---- claims of devices ----

bool DevicesTrack(std::string_view name) { return name.ends_with(kDevicesOfClass); }

int64_t DevicesOf(Value request) {
  const std::string_view mode = request["allocationMode"].AsString();
  if (mode == "All") return kMostDevices;
  return mode == "ExactCount" ? request["count"].AsInt() : 0;
}

void DeviceUsage(Value claim, Time, Amounts& usage) {
  for (Value request : claim["spec"]["devices"]["requests"].items()) {
    Amounts most;  // of alternatives the worst, for each class
    const auto take = [&](Value one) {
      Quantity& q = most[fmt::format("{}{}", one["deviceClassName"].AsString(), kDevicesOfClass)];
      q = std::max(q, Quantity(DevicesOf(one)));
    };
    for (Value one : request["firstAvailable"].items()) take(one);
    if (request["exactly"]) take(request["exactly"]);
    AddAmounts(usage, most);
  }
}

// ---- all kinds ----

constexpr std::string_view kNeverCounted[] = {"bindings", "componentstatuses", "events"};
// Also counted under their bare names.
constexpr std::string_view kOwnNames[] = {"configmaps", "replicationcontrollers", "resourcequotas",
                                          "secrets"};

}  // namespace

const QuotaKind::Rules* QuotaKind::FindRules(std::string_view group, std::string_view plural) {
  static constexpr Rules kRules[] = {
      {"", "pods", PodTracks, PodUsage, PodInScope, PodMissing, PodHandles},
      {"", "services", ServiceTracks, ServiceUsage, nullptr, nullptr, AnyUpdate},
      {"", kClaims, ClaimTracks, ClaimUsage, ClaimInScope, nullptr, ClaimHandles},
      {"resource.k8s.io", "resourceclaims", DevicesTrack, DeviceUsage, nullptr, nullptr, AnyUpdate},
  };
  for (const Rules& rules : kRules)
    if (rules.group == group && rules.plural == plural) return &rules;
  return nullptr;
}

QuotaKind::QuotaKind(std::string_view group, std::string_view plural)
    : count_(fmt::format("count/{}", plural)), rules_(FindRules(group, plural)) {
  if (!group.empty()) count_ += fmt::format(".{}", group);
  if (group.empty() && Has(kOwnNames, plural)) own_name_ = plural;
  counted_ = !(group.empty() && Has(kNeverCounted, plural)) && group != "events.k8s.io" &&
             group != "authentication.k8s.io" && group != "authorization.k8s.io";
}

bool QuotaKind::Tracks(std::string_view name) const {
  if (name == count_ || (!own_name_.empty() && name == own_name_)) return true;
  return rules_ != nullptr && rules_->tracks(name);
}

Amounts QuotaKind::Usage(Value object, Time now) const {
  Amounts usage;
  if (rules_ != nullptr) rules_->add_usage(object, now, usage);
  usage[count_] = Quantity(1);
  if (!own_name_.empty()) usage[own_name_] = Quantity(1);
  return usage;
}

bool QuotaKind::InScopes(Value quota, Value object) const {
  const auto in = [&](std::string_view scope, Value requirement) {
    return rules_ != nullptr && rules_->in_scope != nullptr &&
           rules_->in_scope(scope, requirement, object);
  };
  for (Value scope : quota["spec"]["scopes"].items())
    if (!in(scope.AsString(), Value())) return false;
  for (Value requirement : quota["spec"]["scopeSelector"]["matchExpressions"].items())
    if (!in(requirement["scopeName"].AsString(), requirement)) return false;
  return true;
}

std::string QuotaKind::Missing(Value object, const std::vector<std::string>& names) const {
  if (rules_ == nullptr || rules_->missing == nullptr) return {};
  return rules_->missing(object, names);
}

bool QuotaKind::Handles(std::string_view verb, std::string_view subresource, Value object,
                        Value old) const {
  if (verb == "create") return subresource.empty();
  return rules_ != nullptr && rules_->handles != nullptr &&
         rules_->handles(verb, subresource, object, old);
}

}  // namespace sextant::api
