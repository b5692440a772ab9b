// Defaults of every kind but Pods. Source: pkg/apis/*/v1/defaults.go and the defaults declared in
// types.go.
#include <algorithm>

#include "api/rules_kinds.h"
#include "base/base64.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxInt32 = 2147483647;
constexpr int64_t kAffinityTimeoutS = 10800;

constexpr Default kProtocol[] = {Text("protocol", "TCP")};

// Labels of the template become the object's own where it has none.
void LabelsFromTemplate(Mut o) {
  const Value labels = o["spec"]["template"]["metadata"]["labels"].Snapshot();
  if (!labels || labels.empty()) return;
  if (!Given(o["metadata"], "labels") || o["metadata"]["labels"].size() == 0) {
    o["metadata"].Set("labels", labels);
  }
}

void CopyMissing(Mut into, Value from) {
  for (auto [name, value] : from.members()) {
    if (!Given(into, name)) into.Set(name, value);
  }
}

}  // namespace

void DefaultSecret(Mut o) {
  static constexpr Default kSecret[] = {Text("type", "Opaque")};
  ApplyDefaults(o, kSecret);
  if (!Given(o, "stringData")) return;
  const Value plain = o["stringData"].Snapshot();
  for (auto [key, value] : plain.members()) o["data"].Set(key, Base64(value.AsString()));
  o.Erase("stringData");
}

void DefaultNamespace(Mut o) {
  const std::string name(o["metadata"]["name"].AsString());
  if (!name.empty()) o["metadata"]["labels"].Set("kubernetes.io/metadata.name", name);
  static constexpr Default kStatus[] = {Text("phase", "Active")};
  ApplyDefaults(o["status"], kStatus);
}

void DefaultNode(Mut o) {
  // Two forms of one field: the list has the first word.
  const Mut spec = o["spec"];
  const std::string first(spec["podCIDR"].AsString());
  const bool listed = Given(spec, "podCIDRs") && spec["podCIDRs"].size() > 0;
  if (!first.empty() && (!listed || spec["podCIDRs"].at(0).AsString() != first)) {
    spec.Erase("podCIDRs");
    spec["podCIDRs"].Append().SetString(first);
  } else if (first.empty() && listed) {
    spec.Set("podCIDR", std::string(spec["podCIDRs"].at(0).AsString()));
  }
  const Mut status = o["status"];
  if (!Given(status, "allocatable") && Given(status, "capacity")) {
    status.Set("allocatable", status["capacity"].Snapshot());
  }
}

void DefaultService(Mut o) {
  const Mut spec = o["spec"];
  static constexpr Default kSpec[] = {Text("sessionAffinity", "None"), Text("type", "ClusterIP"),
                                      Each("ports", kProtocol)};
  ApplyDefaults(spec, kSpec);
  if (spec["sessionAffinity"].AsString() == "None") spec.Erase("sessionAffinityConfig");
  if (spec["sessionAffinity"].AsString() == "ClientIP") {
    const Mut timeout = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if (!timeout) timeout.SetInt(kAffinityTimeoutS);
  }
  for (size_t i = 0, n = Given(spec, "ports") ? spec["ports"].size() : 0; i < n; ++i) {
    const Mut port = spec["ports"].at(i);
    const Mut target = port["targetPort"];
    if ((target.kind() == Kind::kString && target.AsString().empty()) ||
        (target.kind() != Kind::kString && target.AsInt() == 0)) {
      port.Set("targetPort", port["port"].AsInt());
    }
  }
  const std::string type(spec["type"].AsString());
  const bool balanced = type == "LoadBalancer";
  const bool external =
      type == "NodePort" || balanced ||
      (type == "ClusterIP" && Given(spec, "externalIPs") && spec["externalIPs"].size() > 0);
  if (external && !Given(spec, "externalTrafficPolicy")) {
    spec.Set("externalTrafficPolicy", "Cluster");
  }
  if ((type == "NodePort" || balanced || type == "ClusterIP") &&
      !Given(spec, "internalTrafficPolicy")) {
    spec.Set("internalTrafficPolicy", "Cluster");
  }
  if (!balanced) return;
  if (!Given(spec, "allocateLoadBalancerNodePorts"))
    spec.Set("allocateLoadBalancerNodePorts", true);
  const Mut ingress = o["status"]["loadBalancer"]["ingress"];
  for (size_t i = 0, n = ingress ? ingress.size() : 0; i < n; ++i) {
    if (!ingress.at(i)["ip"].AsString().empty() && !Given(ingress.at(i), "ipMode")) {
      ingress.at(i).Set("ipMode", "VIP");
    }
  }
}

void DefaultEndpoints(Mut o) {
  static constexpr Default kSubset[] = {Each("ports", kProtocol)};
  static constexpr Default kEndpoints[] = {Each("subsets", kSubset)};
  ApplyDefaults(o, kEndpoints);
}

void DefaultEndpointSlice(Mut o) {
  static constexpr Default kPort[] = {Text("name", ""), Text("protocol", "TCP")};
  static constexpr Default kSlice[] = {Each("ports", kPort)};
  ApplyDefaults(o, kSlice);
}

void DefaultLimitRange(Mut o) {
  const Mut limits = o["spec"]["limits"];
  for (size_t i = 0, n = limits ? limits.size() : 0; i < n; ++i) {
    const Mut item = limits.at(i);
    if (item["type"].AsString() != "Container") continue;
    CopyMissing(item["default"], item["max"].Snapshot());
    CopyMissing(item["defaultRequest"], item["default"].Snapshot());
    CopyMissing(item["defaultRequest"], item["min"].Snapshot());
  }
}

void DefaultPersistentVolume(Mut o) {
  static constexpr Default kHostPath[] = {Text("type", "")};
  static constexpr Default kIscsi[] = {Text("iscsiInterface", "default")};
  static constexpr Default kRbd[] = {Text("pool", "rbd"), Text("user", "admin"),
                                     Text("keyring", "/etc/ceph/keyring")};
  static constexpr Default kAzureDisk[] = {Text("cachingMode", "ReadWrite"), Text("fsType", "ext4"),
                                           Bool("readOnly", false), Text("kind", "Shared")};
  static constexpr Default kScaleIo[] = {Text("storageMode", "ThinProvisioned"),
                                         Text("fsType", "xfs")};
  static constexpr Default kSpec[] = {Text("persistentVolumeReclaimPolicy", "Retain"),
                                      Text("volumeMode", "Filesystem"),
                                      In("hostPath", kHostPath),
                                      In("iscsi", kIscsi),
                                      In("rbd", kRbd),
                                      In("azureDisk", kAzureDisk),
                                      In("scaleIO", kScaleIo)};
  static constexpr Default kStatus[] = {Text("phase", "Pending")};
  ApplyDefaults(o["spec"], kSpec);
  ApplyDefaults(o["status"], kStatus);
}

void DefaultPersistentVolumeClaim(Mut o) {
  static constexpr Default kSpec[] = {Text("volumeMode", "Filesystem")};
  static constexpr Default kStatus[] = {Text("phase", "Pending")};
  ApplyDefaults(o["spec"], kSpec);
  ApplyDefaults(o["status"], kStatus);
}

void DefaultReplicationController(Mut o) {
  static constexpr Default kSpec[] = {Int("replicas", 1)};
  ApplyDefaults(o["spec"], kSpec);
  const Value labels = o["spec"]["template"]["metadata"]["labels"].Snapshot();
  if (labels && !labels.empty() &&
      (!Given(o["spec"], "selector") || o["spec"]["selector"].size() == 0)) {
    o["spec"].Set("selector", labels);
  }
  LabelsFromTemplate(o);
  if (Given(o["spec"], "template")) DefaultPodTemplate(o["spec"]["template"]);
}

void DefaultPodTemplateObject(Mut o) { DefaultPodTemplate(o["template"]); }

void DefaultDeployment(Mut o) {
  static constexpr Default kRolling[] = {Text("maxUnavailable", "25%"), Text("maxSurge", "25%")};
  static constexpr Default kRollingStrategy[] = {Made("rollingUpdate", kRolling)};
  static constexpr Default kStrategy[] = {Text("type", "RollingUpdate")};
  static constexpr Default kSpec[] = {Int("replicas", 1), Made("strategy", kStrategy),
                                      Int("revisionHistoryLimit", 10),
                                      Int("progressDeadlineSeconds", 600)};
  const Mut spec = o["spec"];
  ApplyDefaults(spec, kSpec);
  if (spec["strategy"]["type"].AsString() == "RollingUpdate") {
    ApplyDefaults(spec["strategy"], kRollingStrategy);
  }
  DefaultPodTemplate(spec["template"]);
}

void DefaultReplicaSet(Mut o) {
  static constexpr Default kSpec[] = {Int("replicas", 1)};
  ApplyDefaults(o["spec"], kSpec);
  DefaultPodTemplate(o["spec"]["template"]);
}

void DefaultDaemonSet(Mut o) {
  static constexpr Default kRolling[] = {Int("maxUnavailable", 1), Int("maxSurge", 0)};
  static constexpr Default kRollingStrategy[] = {Made("rollingUpdate", kRolling)};
  static constexpr Default kStrategy[] = {Text("type", "RollingUpdate")};
  static constexpr Default kSpec[] = {Made("updateStrategy", kStrategy),
                                      Int("revisionHistoryLimit", 10)};
  const Mut spec = o["spec"];
  ApplyDefaults(spec, kSpec);
  if (spec["updateStrategy"]["type"].AsString() == "RollingUpdate") {
    ApplyDefaults(spec["updateStrategy"], kRollingStrategy);
  }
  DefaultPodTemplate(spec["template"]);
}

void DefaultStatefulSet(Mut o) {
  static constexpr Default kRetention[] = {Text("whenDeleted", "Retain"),
                                           Text("whenScaled", "Retain")};
  static constexpr Default kSpec[] = {Text("podManagementPolicy", "OrderedReady"),
                                      Made("persistentVolumeClaimRetentionPolicy", kRetention),
                                      Int("replicas", 1), Int("revisionHistoryLimit", 10)};
  static constexpr Default kRolling[] = {Int("partition", 0)};
  const Mut spec = o["spec"];
  ApplyDefaults(spec, kSpec);
  const Mut strategy = spec["updateStrategy"];
  if (!Given(strategy, "type")) {
    strategy.Set("type", "RollingUpdate");
    if (!Given(strategy, "rollingUpdate")) strategy["rollingUpdate"].SetMap();
  }
  if (strategy["type"].AsString() == "RollingUpdate" && Given(strategy, "rollingUpdate")) {
    ApplyDefaults(strategy["rollingUpdate"], kRolling);
  }
  const Mut claims = spec["volumeClaimTemplates"];
  for (size_t i = 0, n = claims ? claims.size() : 0; i < n; ++i) {
    const Mut claim = claims.at(i);
    claim.Set("kind", "PersistentVolumeClaim");
    claim.Set("apiVersion", "v1");
    DefaultPersistentVolumeClaim(claim);
  }
  DefaultPodTemplate(spec["template"]);
}

namespace {

void DefaultJobSpec(Mut spec) {
  if (!Given(spec, "completions") && !Given(spec, "parallelism")) spec.Set("completions", 1);
  const bool per_index = Given(spec, "backoffLimitPerIndex");
  const bool failure_policy = Given(spec, "podFailurePolicy");
  const Default defaults[] = {
      Int("parallelism", 1),
      Int("backoffLimit", per_index ? kMaxInt32 : 6),
      Text("completionMode", "NonIndexed"),
      Bool("suspend", false),
      Text("podReplacementPolicy", failure_policy ? "Failed" : "TerminatingOrFailed"),
      Bool("manualSelector", false)};
  ApplyDefaults(spec, defaults);
}

void DefaultJobPolicies(Mut spec) {
  static constexpr Default kCondition[] = {Filled("status", "True")};
  static constexpr Default kRule[] = {Each("onPodConditions", kCondition)};
  static constexpr Default kPolicy[] = {Each("rules", kRule)};
  static constexpr Default kSpec[] = {In("podFailurePolicy", kPolicy)};
  ApplyDefaults(spec, kSpec);
}

}  // namespace

void DefaultJob(Mut o) {
  DefaultJobSpec(o["spec"]);
  DefaultJobPolicies(o["spec"]);
  LabelsFromTemplate(o);
  DefaultPodTemplate(o["spec"]["template"]);
}

void DefaultCronJob(Mut o) {
  static constexpr Default kSpec[] = {Text("concurrencyPolicy", "Allow"), Bool("suspend", false),
                                      Int("successfulJobsHistoryLimit", 3),
                                      Int("failedJobsHistoryLimit", 1)};
  ApplyDefaults(o["spec"], kSpec);
  const Mut job = o["spec"]["jobTemplate"]["spec"];
  DefaultJobPolicies(job);
  DefaultPodTemplate(job["template"]);
}

void DefaultRoleBinding(Mut o) {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  static constexpr Default kRef[] = {Text("apiGroup", kGroup)};
  if (!o["roleRef"] || o["roleRef"]["apiGroup"].AsString().empty()) {
    o["roleRef"].Erase("apiGroup");
    ApplyDefaults(o["roleRef"], kRef);
  }
  const Mut subjects = o["subjects"];
  for (size_t i = 0, n = subjects ? subjects.size() : 0; i < n; ++i) {
    const Mut s = subjects.at(i);
    if (!s["apiGroup"].AsString().empty()) continue;
    const std::string_view kind = s["kind"].AsString();
    if (kind == "User" || kind == "Group") s.Set("apiGroup", kGroup);
  }
}

void DefaultPriorityClass(Mut o) {
  static constexpr Default kClass[] = {Text("preemptionPolicy", "PreemptLowerPriority")};
  ApplyDefaults(o, kClass);
}

void DefaultStorageClass(Mut o) {
  static constexpr Default kClass[] = {Text("reclaimPolicy", "Delete"),
                                       Text("volumeBindingMode", "Immediate")};
  ApplyDefaults(o, kClass);
}

void DefaultCsiDriver(Mut o) {
  static constexpr Default kSpec[] = {
      Bool("attachRequired", true),     Bool("podInfoOnMount", false),
      Bool("storageCapacity", false),   Text("fsGroupPolicy", "ReadWriteOnceWithFSType"),
      Bool("requiresRepublish", false), Bool("seLinuxMount", false)};
  ApplyDefaults(o["spec"], kSpec);
  const Mut modes = o["spec"]["volumeLifecycleModes"];
  if (!modes || modes.size() == 0) modes.Append().SetString("Persistent");
}

void DefaultNetworkPolicy(Mut o) {
  const Mut spec = o["spec"];
  static constexpr Default kRule[] = {Each("ports", kProtocol)};
  static constexpr Default kSpec[] = {Each("ingress", kRule), Each("egress", kRule)};
  ApplyDefaults(spec, kSpec);
  if (Given(spec, "policyTypes") && spec["policyTypes"].size() > 0) return;
  spec["policyTypes"].Append().SetString("Ingress");
  if (Given(spec, "egress") && spec["egress"].size() > 0) {
    spec["policyTypes"].Append().SetString("Egress");
  }
}

void DefaultIngressClass(Mut o) {
  static constexpr Default kParameters[] = {Text("scope", "Cluster")};
  static constexpr Default kSpec[] = {In("parameters", kParameters)};
  static constexpr Default kClass[] = {In("spec", kSpec)};
  ApplyDefaults(o, kClass);
}

namespace {

void Policy(Mut rules, std::string_view type, int value) {
  const Mut policy = rules["policies"].Append();
  policy.Set("type", type);
  policy.Set("value", value);
  policy.Set("periodSeconds", 15);
}

void DefaultScaling(Mut rules, bool up) {
  static constexpr Default kRules[] = {Text("selectPolicy", "Max")};
  ApplyDefaults(rules, kRules);
  if (up && !Given(rules, "stabilizationWindowSeconds")) rules.Set("stabilizationWindowSeconds", 0);
  if (Given(rules, "policies")) return;
  if (up) Policy(rules, "Pods", 4);
  Policy(rules, "Percent", 100);
}

}  // namespace

void DefaultAutoscalerMetrics(Mut spec) {
  constexpr int kCpuPercent = 80;
  if (Given(spec, "metrics") && spec["metrics"].size() > 0) return;
  const Mut metric = spec["metrics"].Append();
  metric.Set("type", "Resource");
  metric["resource"].Set("name", "cpu");
  metric["resource"]["target"].Set("type", "Utilization");
  metric["resource"]["target"].Set("averageUtilization", kCpuPercent);
}

void DefaultHorizontalPodAutoscaler(Mut o) {
  static constexpr Default kSpec[] = {Int("minReplicas", 1)};
  const Mut spec = o["spec"];
  ApplyDefaults(spec, kSpec);
  if (o["apiVersion"].AsString() != "autoscaling/v2") return;
  DefaultAutoscalerMetrics(spec);
  if (!Given(spec, "behavior")) return;
  DefaultScaling(spec["behavior"]["scaleUp"], true);
  DefaultScaling(spec["behavior"]["scaleDown"], false);
}

namespace {

constexpr Default kRuleScope[] = {Text("scope", "*")};
constexpr Default kMatchResources[] = {Text("matchPolicy", "Equivalent"), Made("namespaceSelector"),
                                       Made("objectSelector"), Each("resourceRules", kRuleScope),
                                       Each("excludeResourceRules", kRuleScope)};

}  // namespace

void DefaultWebhooks(Mut o) {
  static constexpr Default kService[] = {Int("port", 443)};
  static constexpr Default kClient[] = {In("service", kService)};
  static constexpr Default kHook[] = {
      Text("failurePolicy", "Fail"), Text("matchPolicy", "Equivalent"), Made("namespaceSelector"),
      Made("objectSelector"),        Int("timeoutSeconds", 10),         In("clientConfig", kClient),
      Each("rules", kRuleScope)};
  static constexpr Default kHooks[] = {Each("webhooks", kHook)};
  ApplyDefaults(o, kHooks);
  if (o["kind"].AsString() != "MutatingWebhookConfiguration") return;
  static constexpr Default kMutatingHook[] = {Text("reinvocationPolicy", "Never")};
  static constexpr Default kMutating[] = {Each("webhooks", kMutatingHook)};
  ApplyDefaults(o, kMutating);
}

void DefaultAdmissionPolicy(Mut o) {
  static constexpr Default kSpec[] = {Text("failurePolicy", "Fail"),
                                      In("matchConstraints", kMatchResources)};
  ApplyDefaults(o["spec"], kSpec);
}

void DefaultAdmissionPolicyBinding(Mut o) {
  static constexpr Default kSpec[] = {In("matchResources", kMatchResources)};
  ApplyDefaults(o["spec"], kSpec);
}

void DefaultFlowSchema(Mut o) {
  if (o["spec"]["matchingPrecedence"].AsInt() == 0) o["spec"].Set("matchingPrecedence", 1000);
}

void DefaultPriorityLevel(Mut o) {
  static constexpr Default kExempt[] = {Int("nominalConcurrencyShares", 0),
                                        Int("lendablePercent", 0)};
  static constexpr Default kQueuing[] = {Int("handSize", 8), Int("queues", 64),
                                         Int("queueLengthLimit", 50)};
  static constexpr Default kResponse[] = {In("queuing", kQueuing)};
  static constexpr Default kLimited[] = {Int("nominalConcurrencyShares", 30),
                                         Int("lendablePercent", 0), In("limitResponse", kResponse)};
  static constexpr Default kSpec[] = {In("exempt", kExempt), In("limited", kLimited)};
  ApplyDefaults(o["spec"], kSpec);
}

namespace {

constexpr Default kToleration[] = {Text("operator", "Equal")};
constexpr Default kTolerations[] = {Each("tolerations", kToleration)};

void DefaultExact(Mut request) {
  if (request["allocationMode"].AsString().empty()) request.Set("allocationMode", "ExactCount");
  if (request["allocationMode"].AsString() == "ExactCount" && request["count"].AsInt() == 0) {
    request.Set("count", 1);
  }
  ApplyDefaults(request, kTolerations);
}

// v1beta1 has the exact request's fields in the request itself.
void DefaultClaimSpec(Mut spec) {
  const Mut requests = spec["devices"]["requests"];
  for (size_t i = 0, n = requests ? requests.size() : 0; i < n; ++i) {
    const Mut request = requests.at(i);
    if (Given(request, "exactly")) DefaultExact(request["exactly"]);
    if (!request["deviceClassName"].AsString().empty()) DefaultExact(request);
    const Mut alternatives = request["firstAvailable"];
    for (size_t j = 0, m = alternatives ? alternatives.size() : 0; j < m; ++j) {
      DefaultExact(alternatives.at(j));
    }
  }
}

}  // namespace

void DefaultResourceClaim(Mut o) { DefaultClaimSpec(o["spec"]); }

void DefaultResourceClaimTemplate(Mut o) { DefaultClaimSpec(o["spec"]["spec"]); }

void DefaultGpuPool(Mut o) {
  static constexpr Default kSpec[] = {Int("count", 8), Text("allocation", "plugin")};
  ApplyDefaults(o["spec"], kSpec);
}

}  // namespace sextant::api
