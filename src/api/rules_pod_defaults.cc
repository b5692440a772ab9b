// What a Pod is given when its author says nothing. Source: pkg/apis/core/v1/defaults.go and the
// defaults declared in types.go (zz_generated.defaults.go); status and QoS from
// pkg/registry/core/pod.
#include <algorithm>
#include <array>
#include <map>

#include "api/conditions.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr Default kHttpGet[] = {Text("path", "/"), Text("scheme", "HTTP")};
constexpr Default kGrpc[] = {Text("service", "")};
constexpr Default kProbe[] = {In("httpGet", kHttpGet),    In("grpc", kGrpc),
                              Int("timeoutSeconds", 1),   Int("periodSeconds", 10),
                              Int("successThreshold", 1), Int("failureThreshold", 3)};
constexpr Default kHandler[] = {In("httpGet", kHttpGet)};
constexpr Default kLifecycle[] = {In("postStart", kHandler), In("preStop", kHandler)};
constexpr Default kPort[] = {Text("protocol", "TCP")};
constexpr Default kFieldRef[] = {Text("apiVersion", "v1")};
constexpr Default kFileKeyRef[] = {Bool("optional", false)};
constexpr Default kValueFrom[] = {In("fieldRef", kFieldRef), In("fileKeyRef", kFileKeyRef)};
constexpr Default kEnv[] = {In("valueFrom", kValueFrom)};
constexpr Default kContainer[] = {Each("ports", kPort),
                                  Each("env", kEnv),
                                  In("livenessProbe", kProbe),
                                  In("readinessProbe", kProbe),
                                  In("startupProbe", kProbe),
                                  In("lifecycle", kLifecycle),
                                  Text("terminationMessagePath", "/dev/termination-log"),
                                  Text("terminationMessagePolicy", "File")};

constexpr int kFileMode = 0644;
constexpr Default kMode[] = {Int("defaultMode", kFileMode)};
constexpr Default kDownwardItem[] = {In("fieldRef", kFieldRef)};
constexpr Default kDownward[] = {Int("defaultMode", kFileMode), Each("items", kDownwardItem)};
constexpr Default kDownwardProjection[] = {Each("items", kDownwardItem)};
constexpr Default kTokenProjection[] = {Int("expirationSeconds", 3600)};
constexpr Default kSource[] = {In("downwardAPI", kDownwardProjection),
                               In("serviceAccountToken", kTokenProjection)};
constexpr Default kProjected[] = {Int("defaultMode", kFileMode), Each("sources", kSource)};
constexpr Default kHostPath[] = {Text("type", "")};
constexpr Default kIscsi[] = {Text("iscsiInterface", "default")};
constexpr Default kRbd[] = {Text("pool", "rbd"), Text("user", "admin"),
                            Text("keyring", "/etc/ceph/keyring")};
constexpr Default kAzureDisk[] = {Text("cachingMode", "ReadWrite"), Text("fsType", "ext4"),
                                  Bool("readOnly", false), Text("kind", "Shared")};
constexpr Default kScaleIo[] = {Text("storageMode", "ThinProvisioned"), Text("fsType", "xfs")};
constexpr Default kClaimSpec[] = {Text("volumeMode", "Filesystem")};
constexpr Default kClaimTemplate[] = {In("spec", kClaimSpec)};
constexpr Default kEphemeral[] = {In("volumeClaimTemplate", kClaimTemplate)};
constexpr Default kVolume[] = {In("hostPath", kHostPath),
                               In("secret", kMode),
                               In("configMap", kMode),
                               In("downwardAPI", kDownward),
                               In("projected", kProjected),
                               In("iscsi", kIscsi),
                               In("rbd", kRbd),
                               In("azureDisk", kAzureDisk),
                               In("scaleIO", kScaleIo),
                               In("ephemeral", kEphemeral)};

constexpr Default kPodSpec[] = {
    Text("restartPolicy", "Always"),
    Int("terminationGracePeriodSeconds", 30),
    Text("dnsPolicy", "ClusterFirst"),
    Made("securityContext"),
    Text("schedulerName", "default-scheduler"),
};
constexpr const char* kContainerLists[] = {"initContainers", "containers", "ephemeralContainers"};

// Lower case words with ".", "_", "__" or dashes between them, slashes between those.
bool IsRepository(std::string_view name) {
  if (name.empty() || !IsLowerOrDigit(name.front()) || !IsLowerOrDigit(name.back())) return false;
  for (size_t i = 1; i < name.size(); ++i) {
    const char c = name[i];
    if (IsLowerOrDigit(c) || c == '-') continue;
    if (c != '.' && c != '_' && c != '/') return false;
    if (c == '_' && name[i - 1] == '_') continue;
    if (!IsLowerOrDigit(name[i - 1])) return false;
  }
  return true;
}

// The first part of a name is a host if it has a dot, a port or is localhost.
std::string_view WithoutHost(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return name;
  const std::string_view host = name.substr(0, slash);
  const bool plain = host.find_first_of(" \t@") == std::string_view::npos;
  if (plain && (host == "localhost" || host.find_first_of(".:") != std::string_view::npos)) {
    return name.substr(slash + 1);
  }
  return name;
}

// An image without tag and digest is "latest"; what cannot be read as a name has no tag. Grammar:
// distribution/reference, as pkg/util/parsers uses it.
bool IsLatest(std::string_view image) {
  const size_t at = image.find('@');
  const std::string_view named = image.substr(0, at);
  const size_t slash = named.rfind('/');
  const size_t colon = named.find(':', slash == std::string_view::npos ? 0 : slash);
  const std::string_view tag =
      colon == std::string_view::npos ? std::string_view() : named.substr(colon + 1);
  if (!IsRepository(WithoutHost(named.substr(0, colon)))) return false;
  if (colon == std::string_view::npos) return at == std::string_view::npos;
  return tag == "latest";
}

void DefaultPull(Mut of, std::string_view image, const char* field) {
  if (!Given(of, field)) of.Set(field, IsLatest(image) ? "Always" : "IfNotPresent");
}

// Fields of features that are off by default are as if never given: container stop signals, ...
void DropStopSignal(Mut container) {
  if (!Given(container, "lifecycle") || !Given(container["lifecycle"], "stopSignal")) return;
  container["lifecycle"].Erase("stopSignal");
  const Value rest = container["lifecycle"].Snapshot();
  if (!rest["postStart"] && !rest["preStop"]) container.Erase("lifecycle");
}

// ... trust bundles and certificates of Pods.
void DropProjections(Mut volume) {
  if (!Given(volume, "projected") || !Given(volume["projected"], "sources")) return;
  const Mut sources = volume["projected"]["sources"];
  for (size_t i = 0, n = sources.size(); i < n; ++i) {
    sources.at(i).Erase("clusterTrustBundle");
    sources.at(i).Erase("podCertificate");
  }
}

void DefaultContainers(Mut spec) {
  for (const char* list : kContainerLists) {
    if (!Given(spec, list)) continue;
    const Mut containers = spec[list];
    for (size_t i = 0, n = containers.size(); i < n; ++i) {
      const Mut c = containers.at(i);
      ApplyDefaults(c, kContainer);
      DefaultPull(c, std::string(c["image"].AsString()), "imagePullPolicy");
      DropStopSignal(c);
    }
  }
}

void DefaultVolumes(Mut spec) {
  if (!Given(spec, "volumes")) return;
  const Mut volumes = spec["volumes"];
  for (size_t i = 0, n = volumes.size(); i < n; ++i) {
    const Mut v = volumes.at(i);
    const std::vector<std::string> keys = v.Keys();
    const bool sourced = std::ranges::any_of(
        keys, [&](const std::string& key) { return key != "name" && Given(v, key); });
    if (!sourced) v["emptyDir"].SetMap();
    ApplyDefaults(v, kVolume);
    DropProjections(v);
    if (Given(v, "image")) {
      DefaultPull(v["image"], std::string(v["image"]["reference"].AsString()), "pullPolicy");
    }
  }
}

void DefaultSpec(Mut spec) {
  DefaultVolumes(spec);
  DefaultContainers(spec);
  ApplyDefaults(spec, kPodSpec);
  if (spec["terminationGracePeriodSeconds"].AsInt() < 0) {
    spec.Set("terminationGracePeriodSeconds", 1);
  }
  // Two names of one field; v1's conversion keeps them equal, the new name wins.
  const std::string account(spec["serviceAccountName"].AsString());
  const std::string old_name(spec["serviceAccount"].AsString());
  if (!account.empty()) {
    spec.Set("serviceAccount", account);
  } else if (!old_name.empty()) {
    spec.Set("serviceAccountName", old_name);
  }
}

void RequestsFromLimits(Mut container) {
  if (!Given(container, "resources")) return;
  const Mut resources = container["resources"];
  if (!Given(resources, "limits")) return;
  for (const std::string& name : resources["limits"].Keys()) {
    if (Given(resources["requests"], name)) continue;
    resources["requests"].Set(name, resources["limits"][name].Snapshot());
  }
}

void HostPorts(Mut container) {
  if (!Given(container, "ports")) return;
  const Mut ports = container["ports"];
  for (size_t i = 0, n = ports.size(); i < n; ++i) {
    if (ports.at(i)["hostPort"].AsInt() == 0) {
      ports.at(i).Set("hostPort", ports.at(i)["containerPort"].AsInt());
    }
  }
}

void PodLevelResources(Mut spec) {
  if (!Given(spec, "resources")) return;
  const Mut resources = spec["resources"];
  const bool limits = Given(resources, "limits") && resources["limits"].size() > 0;
  const bool requests = Given(resources, "requests") && resources["requests"].size() > 0;
  if (!limits && !requests) return;
  for (auto& [name, q] : AggregateResources(spec.Snapshot(), "limits")) {
    if (!IsHugePages(name) || Given(resources["requests"], name)) continue;
    if (!Given(resources["limits"], name)) resources["limits"].Set(name, q.ToString());
  }
  if (!Given(resources, "limits") || resources["limits"].size() == 0) return;
  for (auto& [name, q] : AggregateResources(spec.Snapshot(), "requests")) {
    if (!IsPodLevelResource(name) || IsHugePages(name) || Given(resources["requests"], name))
      continue;
    resources["requests"].Set(name, q.ToString());
  }
  for (const std::string& name : resources["limits"].Keys()) {
    if (!IsPodLevelResource(name) || Given(resources["requests"], name)) continue;
    resources["requests"].Set(name, resources["limits"][name].Snapshot());
  }
}

// Requests and limits of CPU and memory, summed; what QoS is made of.
struct Totals {
  std::map<std::string, Quantity> requests;
  std::map<std::string, Quantity> limits;
  bool guaranteed = true;

  void Add(Value resources) {
    size_t limited = 0;
    for (auto [name, q] : resources["requests"].members()) Sum(requests, name, q);
    for (auto [name, q] : resources["limits"].members()) {
      if (Sum(limits, name, q)) ++limited;
    }
    if (limited != 2) guaranteed = false;
  }
  static bool Sum(std::map<std::string, Quantity>& into, std::string_view name, Value q) {
    if (name != "cpu" && name != "memory") return false;
    const Quantity amount = Quantity::ParseOrZero(q.AsString());
    if (amount.Sign() <= 0) return false;
    into[std::string(name)] += amount;
    return true;
  }
};

}  // namespace

void DefaultPodTemplate(Mut template_) { DefaultSpec(template_["spec"]); }

namespace {

// podIP and podIPs are one field in two forms; where they differ, the single one counts.
void DefaultIps(Mut status) {
  if (!status) return;
  const std::string first(status["podIP"].AsString());
  const bool listed = Given(status, "podIPs") && status["podIPs"].size() > 0;
  if (!first.empty() && (!listed || status["podIPs"].at(0)["ip"].AsString() != first)) {
    status.Erase("podIPs");
    status["podIPs"].Append().Set("ip", first);
  } else if (first.empty() && listed) {
    status.Set("podIP", std::string(status["podIPs"].at(0)["ip"].AsString()));
  }
}

}  // namespace

void DefaultPod(Mut pod) {
  DefaultIps(pod["status"]);
  const Mut spec = pod["spec"];
  DefaultSpec(spec);
  for (const char* list : {"initContainers", "containers"}) {
    if (!Given(spec, list)) continue;
    for (size_t i = 0, n = spec[list].size(); i < n; ++i) {
      RequestsFromLimits(spec[list].at(i));
      if (spec["hostNetwork"].AsBool()) HostPorts(spec[list].at(i));
    }
  }
  PodLevelResources(spec);
  if (!Given(spec, "enableServiceLinks")) spec.Set("enableServiceLinks", true);
}

std::string_view QosClassOf(Value spec) {
  Totals totals;
  if (!spec["resources"]["requests"].empty() || !spec["resources"]["limits"].empty()) {
    totals.Add(spec["resources"]);
  } else {
    for (const char* list : {"containers", "initContainers"}) {
      for (Value c : spec[list].items()) totals.Add(c["resources"]);
    }
  }
  if (totals.requests.empty() && totals.limits.empty()) return "BestEffort";
  if (totals.guaranteed) {
    for (auto& [name, q] : totals.requests) {
      auto limit = totals.limits.find(name);
      if (limit == totals.limits.end() || limit->second != q) totals.guaranteed = false;
    }
  }
  return totals.guaranteed && totals.requests.size() == totals.limits.size() ? "Guaranteed"
                                                                             : "Burstable";
}

namespace {

void SelectBy(Mut selector, Value keys, std::string_view op, Value labels) {
  for (Value key : keys.items()) {
    const Value label = labels[key.AsString()];
    if (!label) continue;
    const Mut expr = selector["matchExpressions"].Append();
    expr.Set("key", key.AsString());
    expr.Set("operator", op);
    expr["values"].Append().SetString(label.AsString());
  }
}

// matchLabelKeys and mismatchLabelKeys stand for the Pod's own labels.
void MergeLabelKeys(Mut term, Value labels) {
  if (!Given(term, "labelSelector")) return;
  const Value now = term.Snapshot();
  SelectBy(term["labelSelector"], now["matchLabelKeys"], "In", labels);
  SelectBy(term["labelSelector"], now["mismatchLabelKeys"], "NotIn", labels);
}

void EachItem(Mut message, std::string_view list, auto visit) {
  if (!Given(message, list)) return;
  for (size_t i = 0, n = message[list].size(); i < n; ++i) visit(message[list].at(i));
}

void MergeAllLabelKeys(Mut spec, Value labels) {
  EachItem(spec, "topologySpreadConstraints", [&](Mut c) { MergeLabelKeys(c, labels); });
  if (!Given(spec, "affinity")) return;
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    if (!Given(spec["affinity"], kind)) continue;
    const Mut affinity = spec["affinity"][kind];
    EachItem(affinity, "preferredDuringSchedulingIgnoredDuringExecution",
             [&](Mut t) { MergeLabelKeys(t["podAffinityTerm"], labels); });
    EachItem(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
             [&](Mut t) { MergeLabelKeys(t, labels); });
  }
}

}  // namespace

namespace {

// Who does not know observedGeneration does not mean to take it away.
void KeepObserved(Mut status, Value old) {
  constexpr const char* kField = "observedGeneration";
  if (status[kField].AsInt() == 0) SetOrErase(status, kField, old[kField]);
  EachItem(status, "conditions", [&](Mut condition) {
    if (condition[kField].AsInt() != 0) return;
    const Value before = FindCondition(old["conditions"], condition["type"].AsString());
    if (before) SetOrErase(condition, kField, before[kField]);
  });
}

}  // namespace

void PreparePod(Mut pod, Value old) {
  if (old) {
    // Kubelets of old did not send it with a refused Pod.
    if (pod["status"]["qosClass"].AsString().empty()) {
      SetOrErase(pod["status"], "qosClass", old["status"]["qosClass"]);
    }
    KeepObserved(pod["status"], old["status"]);
    return;
  }
  MergeAllLabelKeys(pod["spec"], pod["metadata"]["labels"].Snapshot());
  const Mut status = pod["status"];
  status.Set("phase", "Pending");
  status.Set("qosClass", QosClassOf(pod["spec"].Snapshot()));
  if (!Given(pod["spec"], "schedulingGates") || pod["spec"]["schedulingGates"].size() == 0) return;
  const Mut condition = status["conditions"].Append();
  condition.Set("type", "PodScheduled");
  condition.Set("status", "False");
  condition.Set("lastTransitionTime", pod["metadata"]["creationTimestamp"].AsString());
  condition.Set("reason", "SchedulingGated");
  condition.Set("message", "Scheduling is blocked due to non-empty scheduling gates");
}

int64_t PodGrace(Value pod, std::optional<int64_t> asked) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (pod["spec"]["nodeName"].AsString().empty() || phase == "Failed" || phase == "Succeeded") {
    return 0;
  }
  const int64_t period = asked ? *asked : pod["spec"]["terminationGracePeriodSeconds"].AsInt();
  return period < 0 ? 1 : period;
}

}  // namespace sextant::api
