// Cells of everything but Pods and nodes.
#include "server/table_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/default_class.h"
#include "api/selector.h"
#include "base/ascii.h"
#include "server/conditions.h"
#include "server/tables.h"

namespace sextant::server::cells {
namespace {

using api::Mut;
using api::Value;

constexpr size_t kShown = 3;  // endpoints and ports named before "+ 2 more..."

std::string Number(Value value) {
  return value.IsInt() ? fmt::format("{}", value.AsInt()) : std::string(value.AsString());
}

std::string Shorten(const std::vector<std::string>& list) {
  if (list.empty()) return "<unset>";
  std::string text = fmt::format(
      "{}", fmt::join(list.begin(), list.begin() + static_cast<long>(std::min(list.size(), kShown)),
                      ","));
  if (list.size() > kShown) text += fmt::format(" + {} more...", list.size() - kShown);
  return text;
}

Value TemplateSpec(Value object) { return object["spec"]["template"]["spec"]; }

std::string SubjectNames(Value binding, std::string_view kind) {
  std::vector<std::string> names;
  for (Value subject : binding["subjects"].items()) {
    if (subject["kind"].AsString() != kind) continue;
    std::string name(subject["name"].AsString());
    if (kind == "ServiceAccount")
      name = fmt::format("{}/{}", subject["namespace"].AsString(), name);
    names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string FirstOf(std::string_view a, std::string_view b) {
  return std::string(a.empty() ? b : a);
}

}  // namespace

std::string Since(Value time, Time now) {
  auto at = ParseTime(time.AsString());
  return at ? HumanDuration(now - *at) : "<unknown>";
}

std::string MapText(Value map) {
  std::string text;
  for (auto [key, value] : map.members()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value.AsString());
  }
  return text.empty() ? "<none>" : text;
}

std::string SelectorText(Value selector) {
  if (!selector) return "<none>";
  auto parsed = api::LabelSelector::From(selector);
  if (!parsed) return "<error>";
  const std::string text = parsed->ToString();
  return text.empty() ? "<none>" : text;
}

std::string ContainersText(Value containers, std::string_view member) {
  std::vector<std::string> parts;
  for (Value container : containers.items()) parts.emplace_back(container[member].AsString());
  return fmt::format("{}", fmt::join(parts, ","));
}

void TemplateContainers(Value o, Time, Mut out) {
  out.SetString(ContainersText(TemplateSpec(o)["containers"], "name"));
}
void TemplateImages(Value o, Time, Mut out) {
  out.SetString(ContainersText(TemplateSpec(o)["containers"], "image"));
}
// Old selectors (of replication controllers) are plain maps.
void TemplateSelector(Value o, Time, Mut out) {
  const Value selector = o["spec"]["selector"];
  const bool plain =
      !selector.empty() && !selector.Has("matchLabels") && !selector.Has("matchExpressions");
  out.SetString(plain ? MapText(selector) : SelectorText(selector));
}
void ReadyOfWanted(Value o, Time, Mut out) {
  out.SetString(
      fmt::format("{}/{}", o["status"]["readyReplicas"].AsInt(), o["spec"]["replicas"].AsInt(0)));
}
void DaemonNodeSelector(Value o, Time, Mut out) {
  out.SetString(MapText(TemplateSpec(o)["nodeSelector"]));
}

void JobStatus(Value o, Time, Mut out) {
  if (HasCondition(o, "Complete")) return out.SetString("Complete");
  if (HasCondition(o, "Failed")) return out.SetString("Failed");
  if (o["metadata"]["deletionTimestamp"]) return out.SetString("Terminating");
  for (std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (HasCondition(o, type)) return out.SetString(type);
  }
  out.SetString("Running");
}
void JobCompletions(Value o, Time, Mut out) {
  const int64_t done = o["status"]["succeeded"].AsInt();
  const Value wanted = o["spec"]["completions"];
  const int64_t parallel = o["spec"]["parallelism"].AsInt();
  if (wanted) return out.SetString(fmt::format("{}/{}", done, wanted.AsInt()));
  out.SetString(parallel > 1 ? fmt::format("{}/1 of {}", done, parallel)
                             : fmt::format("{}/1", done));
}
void JobDuration(Value o, Time now, Mut out) {
  auto start = ParseTime(o["status"]["startTime"].AsString());
  if (!start) return out.SetString("");
  auto end = ParseTime(o["status"]["completionTime"].AsString());
  out.SetString(HumanDuration((end ? *end : now) - *start));
}
void CronSuspend(Value o, Time, Mut out) {
  out.SetString(o["spec"]["suspend"].AsBool() ? "True" : "False");
}
void CronSelector(Value o, Time, Mut out) {
  out.SetString(SelectorText(o["spec"]["jobTemplate"]["spec"]["selector"]));
}
void CronTimezone(Value o, Time, Mut out) {
  out.SetString(o["spec"]["timeZone"].AsString("<none>"));
}
void CronActive(Value o, Time, Mut out) {
  out.SetInt(static_cast<int64_t>(o["status"]["active"].size()));
}
void CronLast(Value o, Time now, Mut out) {
  const Value last = o["status"]["lastScheduleTime"];
  out.SetString(last ? Since(last, now) : "<none>");
}
void CronContainers(Value o, Time, Mut out) {
  out.SetString(ContainersText(TemplateSpec(o["spec"]["jobTemplate"])["containers"], "name"));
}
void CronImages(Value o, Time, Mut out) {
  out.SetString(ContainersText(TemplateSpec(o["spec"]["jobTemplate"])["containers"], "image"));
}

void RevisionController(Value o, Time, Mut out) {
  for (Value owner : o["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].AsBool()) continue;
    const std::string_view group = api::GroupVersion::Of(owner["apiVersion"].AsString()).group;
    std::string kind = AsciiLower(owner["kind"].AsString());
    if (!group.empty()) kind += fmt::format(".{}", group);
    return out.SetString(fmt::format("{}/{}", kind, owner["name"].AsString()));
  }
  out.SetString("<none>");
}

void BudgetMin(Value o, Time, Mut out) {
  const Value min = o["spec"]["minAvailable"];
  out.SetString(min ? Number(min) : "N/A");
}
void BudgetMax(Value o, Time, Mut out) {
  const Value max = o["spec"]["maxUnavailable"];
  out.SetString(max ? Number(max) : "N/A");
}

void ServiceClusterIp(Value o, Time, Mut out) {
  out.SetString(o["spec"]["clusterIPs"].at(0).AsString("<none>"));
}
void ServiceExternalIp(Value o, Time, Mut out) {
  const Value spec = o["spec"];
  const std::string_view type = spec["type"].AsString();
  if (type == "ExternalName") return out.SetString(spec["externalName"].AsString());
  std::vector<std::string> ips;
  if (type == "LoadBalancer") {
    for (Value ingress : o["status"]["loadBalancer"]["ingress"].items()) {
      ips.push_back(FirstOf(ingress["ip"].AsString(), ingress["hostname"].AsString()));
    }
  }
  for (Value ip : spec["externalIPs"].items()) ips.emplace_back(ip.AsString());
  if (ips.empty()) return out.SetString(type == "LoadBalancer" ? "<pending>" : "<none>");
  out.SetString(fmt::format("{}", fmt::join(ips, ",")));
}
void ServicePorts(Value o, Time, Mut out) {
  std::vector<std::string> ports;
  for (Value port : o["spec"]["ports"].items()) {
    const std::string_view protocol = port["protocol"].AsString();
    if (port["nodePort"].AsInt() > 0) {
      ports.push_back(
          fmt::format("{}:{}/{}", port["port"].AsInt(), port["nodePort"].AsInt(), protocol));
    } else {
      ports.push_back(fmt::format("{}/{}", port["port"].AsInt(), protocol));
    }
  }
  out.SetString(ports.empty() ? "<none>" : fmt::format("{}", fmt::join(ports, ",")));
}
void ServiceSelector(Value o, Time, Mut out) { out.SetString(MapText(o["spec"]["selector"])); }

void EndpointsText(Value o, Time, Mut out) {
  if (o["subsets"].empty()) return out.SetString("<none>");
  std::vector<std::string> list;
  for (Value subset : o["subsets"].items()) {
    for (Value address : subset["addresses"].items()) {
      const std::string_view ip = address["ip"].AsString();
      if (subset["ports"].empty()) list.emplace_back(ip);
    }
    for (Value port : subset["ports"].items()) {
      for (Value address : subset["addresses"].items()) {
        const std::string_view ip = address["ip"].AsString();
        const bool v6 = ip.find(':') != std::string_view::npos;
        list.push_back(
            fmt::format("{}{}{}:{}", v6 ? "[" : "", ip, v6 ? "]" : "", port["port"].AsInt()));
      }
    }
  }
  out.SetString(list.empty() ? "" : Shorten(list));
}
void SlicePorts(Value o, Time, Mut out) {
  std::vector<std::string> list;
  for (Value port : o["ports"].items()) {
    list.push_back(port["port"] ? fmt::format("{}", port["port"].AsInt())
                                : std::string(port["name"].AsString("*")));
  }
  out.SetString(Shorten(list));
}
void SliceEndpoints(Value o, Time, Mut out) {
  std::vector<std::string> list;
  for (Value endpoint : o["endpoints"].items()) {
    for (Value address : endpoint["addresses"].items()) list.emplace_back(address.AsString());
  }
  out.SetString(Shorten(list));
}

namespace {

// core/v1 and events.k8s.io name these fields differently; both show the same table.
Value Either(Value o, const char* core, const char* events) {
  const Value value = o[core];
  return value ? value : o[events];
}
std::string FirstSeen(Value o, Time now) {
  const Value first = Either(o, "firstTimestamp", "deprecatedFirstTimestamp");
  return Since(first ? first : o["eventTime"], now);
}

}  // namespace

void EventLastSeen(Value o, Time now, Mut out) {
  if (o["series"]) return out.SetString(Since(o["series"]["lastObservedTime"], now));
  const Value last = Either(o, "lastTimestamp", "deprecatedLastTimestamp");
  out.SetString(last ? Since(last, now) : FirstSeen(o, now));
}
void EventFirstSeen(Value o, Time now, Mut out) { out.SetString(FirstSeen(o, now)); }
void EventObject(Value o, Time, Mut out) {
  const Value about = Either(o, "involvedObject", "regarding");
  const std::string kind = AsciiLower(about["kind"].AsString());
  const std::string_view name = about["name"].AsString();
  out.SetString(name.empty() ? kind : fmt::format("{}/{}", kind, name));
}
void EventText(Value o, Time, Mut out) {
  out.SetString(Either(o, "involvedObject", "regarding")["fieldPath"].AsString());
}
void EventSource(Value o, Time, Mut out) {
  const Value source = Either(o, "source", "deprecatedSource");
  const std::string component =
      FirstOf(source["component"].AsString(),
              Either(o, "reportingComponent", "reportingController").AsString());
  const std::string host = FirstOf(source["host"].AsString(), o["reportingInstance"].AsString());
  out.SetString(host.empty() ? component : fmt::format("{}, {}", component, host));
}
void EventMessage(Value o, Time, Mut out) {
  std::string_view text = Either(o, "message", "note").AsString();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  out.SetString(text);
}
void EventCount(Value o, Time, Mut out) {
  if (o["series"]) return out.SetInt(o["series"]["count"].AsInt());
  const int64_t count = Either(o, "count", "deprecatedCount").AsInt();
  out.SetInt(count == 0 ? 1 : count);
}

namespace {

std::string ModesText(Value modes) {
  struct Short {
    std::string_view mode;
    std::string_view text;
  };
  constexpr Short kShort[] = {{"ReadWriteOnce", "RWO"},
                              {"ReadOnlyMany", "ROX"},
                              {"ReadWriteMany", "RWX"},
                              {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string> parts;
  for (const Short& known : kShort) {
    for (Value mode : modes.items()) {
      if (mode.AsString() != known.mode) continue;
      parts.emplace_back(known.text);
      break;
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}
bool IsVolume(Value o) { return o["spec"].Has("capacity"); }

}  // namespace

void AccessModes(Value o, Time, Mut out) {
  if (IsVolume(o)) return out.SetString(ModesText(o["spec"]["accessModes"]));
  const bool bound = !o["spec"]["volumeName"].AsString().empty();
  out.SetString(bound ? ModesText(o["status"]["accessModes"]) : "");
}
void VolumeClaim(Value o, Time, Mut out) {
  const Value claim = o["spec"]["claimRef"];
  out.SetString(
      claim ? fmt::format("{}/{}", claim["namespace"].AsString(), claim["name"].AsString()) : "");
}
void ClaimCapacity(Value o, Time, Mut out) {
  if (IsVolume(o)) return out.SetString(o["spec"]["capacity"]["storage"].AsString("0"));
  const bool bound = !o["spec"]["volumeName"].AsString().empty();
  out.SetString(bound ? o["status"]["capacity"]["storage"].AsString("0") : "");
}
void ClaimStatus(Value o, Time, Mut out) {
  if (o["metadata"]["deletionTimestamp"]) return out.SetString("Terminating");
  out.SetString(o["status"]["phase"].AsString());
}
void VolumeStatus(Value o, Time now, Mut out) { ClaimStatus(o, now, out); }
void VolumeMode(Value o, Time, Mut out) {
  out.SetString(o["spec"]["volumeMode"].AsString("<unset>"));
}
void AttributesClass(Value o, Time, Mut out) {
  out.SetString(o["spec"]["volumeAttributesClassName"].AsString("<unset>"));
}

namespace {

std::string QuotaText(Value quota, bool limits) {
  std::vector<std::string> parts;
  for (auto [resource, hard] : quota["status"]["hard"].members()) {
    if (resource.starts_with("limits.") != limits) continue;
    parts.push_back(fmt::format("{}: {}/{}", resource,
                                quota["status"]["used"][resource].AsString("0"), hard.AsString()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

void ConfigMapData(Value o, Time, Mut out) {
  out.SetInt(static_cast<int64_t>(o["data"].size() + o["binaryData"].size()));
}
void CsiTokens(Value o, Time, Mut out) {
  std::vector<std::string> audiences;
  for (Value token : o["spec"]["tokenRequests"].items()) {
    audiences.emplace_back(token["audience"].AsString());
  }
  out.SetString(audiences.empty() ? "<unset>" : fmt::format("{}", fmt::join(audiences, ",")));
}
void CsiModes(Value o, Time, Mut out) {
  std::vector<std::string> modes;
  for (Value mode : o["spec"]["volumeLifecycleModes"].items()) modes.emplace_back(mode.AsString());
  out.SetString(modes.empty() ? "<none>" : fmt::format("{}", fmt::join(modes, ",")));
}
void QuotaRequests(Value o, Time, Mut out) { out.SetString(QuotaText(o, false)); }
void QuotaLimits(Value o, Time, Mut out) { out.SetString(QuotaText(o, true)); }
void BindingRole(Value o, Time, Mut out) {
  out.SetString(
      fmt::format("{}/{}", o["roleRef"]["kind"].AsString(), o["roleRef"]["name"].AsString()));
}
void BindingUsers(Value o, Time, Mut out) { out.SetString(SubjectNames(o, "User")); }
void BindingGroups(Value o, Time, Mut out) { out.SetString(SubjectNames(o, "Group")); }
void BindingAccounts(Value o, Time, Mut out) { out.SetString(SubjectNames(o, "ServiceAccount")); }
void PodTemplateContainers(Value o, Time, Mut out) {
  out.SetString(ContainersText(o["template"]["spec"]["containers"], "name"));
}
void PodTemplateImages(Value o, Time, Mut out) {
  out.SetString(ContainersText(o["template"]["spec"]["containers"], "image"));
}
void PodTemplateLabels(Value o, Time, Mut out) {
  out.SetString(MapText(o["template"]["metadata"]["labels"]));
}
void StorageName(Value o, Time, Mut out) {
  const std::string_view mark =
      api::IsDefaultClass(o["metadata"], api::kDefaultStorageMarks) ? " (default)" : "";
  out.SetString(fmt::format("{}{}", o["metadata"]["name"].AsString(), mark));
}
void StorageReclaim(Value o, Time, Mut out) {
  out.SetString(o["reclaimPolicy"].AsString("Delete"));
}
void StorageBinding(Value o, Time, Mut out) {
  out.SetString(o["volumeBindingMode"].AsString("Immediate"));
}
void PoolReady(Value o, Time, Mut out) {
  out.SetString(api::FindBy(o["status"]["conditions"], "type", "Ready")["status"].AsString());
}
void PoolReason(Value o, Time, Mut out) {
  out.SetString(api::FindBy(o["status"]["conditions"], "type", "Ready")["reason"].AsString());
}
void PoolNodes(Value o, Time, Mut out) {
  std::vector<std::string> names;
  for (Value node : o["status"]["nodes"].items()) names.emplace_back(node.AsString());
  out.SetString(names.empty() ? "<none>" : Shorten(names));
}

}  // namespace sextant::server::cells
