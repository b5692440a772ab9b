// NodeRestriction: plugin/pkg/admission/noderestriction.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "api/lists.h"
#include "api/pods.h"
#include "base/quote.h"
#include "server/admission_plugins.h"
#include "server/node_authorizer.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kLeases = "kube-node-lease";
constexpr std::string_view kKubeletLabels[] = {"beta.kubernetes.io/arch",
                                               "beta.kubernetes.io/instance-type",
                                               "beta.kubernetes.io/os",
                                               "failure-domain.beta.kubernetes.io/region",
                                               "failure-domain.beta.kubernetes.io/zone",
                                               "kubernetes.io/arch",
                                               "kubernetes.io/hostname",
                                               "kubernetes.io/os",
                                               "node.kubernetes.io/instance-type",
                                               "topology.kubernetes.io/region",
                                               "topology.kubernetes.io/zone"};

// What a node has asked, and the words to refuse it.
struct NodeRequest {
  const AdmissionRequest& request;
  std::string_view node;
  Value object;

  Value old() const { return request.old; }
  bool creates() const { return request.verb == "create"; }
  bool updates() const { return request.verb == "update"; }
  bool deletes() const { return request.verb == "delete"; }
  const std::string& ns() const { return request.op.info.ns; }
  std::string operation() const {  // as admission.Operation prints
    return creates() ? "CREATE" : updates() ? "UPDATE" : "DELETE";
  }
  // The name that the URL gives, or the object that is to be made.
  std::string_view name() const {
    if (creates()) return object["metadata"]["name"].AsString();
    return request.op.info.name;
  }
  Status Refuse(std::string_view why) const {
    return Fail(AdmissionForbidden(request, object, why));
  }
  template <typename... Args>
  Status RefuseNode(fmt::format_string<Args...> why, Args&&... args) const {
    return Refuse(
        fmt::format("node {} {}", Quote(node), fmt::format(why, std::forward<Args>(args)...)));
  }
};

// ---- Pods ----

template <typename Uses>
bool AnyContainer(Value spec, Uses uses) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (Value c : spec[list].items())
      if (uses(c)) return true;
  }
  return false;
}

bool NamesInEnvironment(Value container, const char* ref, const char* key_ref) {
  for (Value from : container["envFrom"].items())
    if (from[ref]) return true;
  for (Value env : container["env"].items())
    if (env["valueFrom"][key_ref]) return true;
  return false;
}

struct VolumeNeed {
  std::string_view source;
  std::string_view needs;
};
constexpr VolumeNeed kVolumeNeeds[] = {
    {"configMap", "configmaps (via configmap volumes)"},
    {"secret", "secrets (via secret volumes)"},
    {"csi", "csidrivers (via CSI volumes)"},
    {"glusterfs", "endpoints (via glusterFS volumes)"},
    {"persistentVolumeClaim", "persistentvolumeclaims"},
    {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
    {"azureFile", "secrets (via azureFile volumes)"}};
constexpr VolumeNeed kProjectedNeeds[] = {
    {"configMap", "configmaps (via projected volumes)"},
    {"secret", "secrets (via projected volumes)"},
    {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
    {"clusterTrustBundle", "clustertrustbundles"},
    {"podCertificate", "podcertificates"}};

// The API objects without which the Pod could not run; "" for none.
std::string_view ReferredObjects(Value spec) {
  if (!spec["serviceAccountName"].AsString().empty()) return "serviceaccounts";
  const bool secrets = !spec["imagePullSecrets"].empty() || AnyContainer(spec, [](Value c) {
    return NamesInEnvironment(c, "secretRef", "secretKeyRef");
  });
  if (secrets) return "secrets";
  const bool maps = AnyContainer(
      spec, [](Value c) { return NamesInEnvironment(c, "configMapRef", "configMapKeyRef"); });
  if (maps) return "configmaps";
  if (!spec["resourceClaims"].empty()) return "resourceclaims";
  for (Value volume : spec["volumes"].items()) {
    for (const VolumeNeed& need : kVolumeNeeds)
      if (volume[need.source]) return need.needs;
    for (Value source : volume["projected"]["sources"].items()) {
      for (const VolumeNeed& need : kProjectedNeeds)
        if (source[need.source]) return need.needs;
    }
  }
  return {};
}

Status CheckMirrorOwner(const NodeRequest& r) {
  const Value owners = r.object["metadata"]["ownerReferences"];
  if (owners.size() > 1) {
    return r.RefuseNode("can only create pods with a single owner reference set to itself");
  }
  const Value owner = owners.at(0);
  if (owner["apiVersion"].AsString() != "v1" || owner["kind"].AsString() != "Node" ||
      owner["name"].AsString() != r.node) {
    return r.RefuseNode("can only create pods with an owner reference set to itself");
  }
  if (!owner["controller"].AsBool()) {
    return r.RefuseNode("can only create pods with a controller owner reference set to itself");
  }
  if (owner["blockOwnerDeletion"].AsBool()) {
    return r.RefuseNode("must not set blockOwnerDeletion on an owner reference");
  }
  const Object node = r.request.view.Get("nodes", "", r.node);
  if (!node) return Fail(NotFound({"", "nodes"}, r.node));
  if (owner["uid"].AsString() == node.uid()) return {};
  return r.Refuse(fmt::format("node {} UID mismatch: expected {} got {}", r.node,
                              owner["uid"].AsString(), node.uid()));
}

Status CheckNewPod(const NodeRequest& r) {
  if (!r.object["metadata"]["annotations"].Has(kMirror)) {
    return r.Refuse(
        fmt::format("pod does not have {} annotation, node {} can only create mirror "
                    "pods",
                    Quote(kMirror), Quote(r.node)));
  }
  if (r.object["spec"]["nodeName"].AsString() != r.node) {
    return r.RefuseNode("can only create pods with spec.nodeName set to itself");
  }
  RETURN_IF_ERROR(CheckMirrorOwner(r));
  const std::string_view needs = ReferredObjects(r.object["spec"]);
  if (needs.empty()) return {};
  return r.RefuseNode("can not create pods that reference {}", needs);
}

Status CheckPod(const NodeRequest& r) {
  if (r.creates()) return CheckNewPod(r);
  if (!r.deletes()) {
    return r.Refuse(
        fmt::format("unexpected operation {}, node {} can only create and delete "
                    "mirror pods",
                    Quote(r.operation()), Quote(r.node)));
  }
  if (r.old()["spec"]["nodeName"].AsString() == r.node) return {};
  return r.RefuseNode("can only delete pods with spec.nodeName set to itself");
}

Status CheckPodStatus(const NodeRequest& r) {
  if (!r.updates()) return r.Refuse(fmt::format("unexpected operation {}", Quote(r.operation())));
  if (r.old()["spec"]["nodeName"].AsString() != r.node) {
    return r.RefuseNode("can only update pod status for pods with spec.nodeName set to itself");
  }
  const Value labels = r.object["metadata"]["labels"];
  const Value before = r.old()["metadata"]["labels"];
  if (labels.size() != before.size() || (!labels.empty() && !Equal(labels, before))) {
    return r.RefuseNode("cannot update labels through pod status");
  }
  const auto same = [&](const char* field) {
    const Value now = r.object["status"][field];
    const Value then = r.old()["status"][field];
    return (now.empty() && then.empty()) || Equal(now, then);
  };
  if (!same("resourceClaimStatuses")) {
    return r.RefuseNode("cannot update resource claim statues");
  }
  if (!same("extendedResourceClaimStatus")) {
    return r.RefuseNode("cannot update extended resource claim status");
  }
  return {};
}

Status CheckEviction(const NodeRequest& r) {
  const Object pod = r.request.view.Get("pods", r.ns(), r.request.op.info.name);
  if (!pod) return Fail(NotFound({"", "pods"}, r.request.op.info.name));
  if (pod["spec"]["nodeName"].AsString() == r.node) return {};
  return r.Refuse(
      fmt::format("node {} can only evict pods with spec.nodeName set to itself", r.node));
}

// ---- the Node itself ----

std::string_view DomainOf(std::string_view label) {
  const size_t slash = label.find('/');
  return slash == std::string_view::npos ? "" : label.substr(0, slash);
}

bool IsWithin(std::string_view domain, std::string_view parent) {
  if (domain == parent) return true;
  return domain.ends_with(parent) && domain[domain.size() - parent.size() - 1] == '.';
}

std::string ForbiddenLabels(Value now, Value before) {
  std::set<std::string_view> labels;
  const auto look = [&](Value a, Value b) {
    for (auto [key, value] : a.members())
      if (!Equal(value, b[key]) && !KubeletMaySetLabel(key)) labels.insert(key);
  };
  look(now, before);
  look(before, now);
  return fmt::format("{}", fmt::join(labels, ", "));
}

Status CheckNode(const NodeRequest& r) {
  if (r.name() != r.node) {
    return r.RefuseNode("is not allowed to modify node {}", Quote(r.name()));
  }
  if (r.deletes()) return {};
  const Value metadata = r.object["metadata"];
  const Value before = r.old()["metadata"];
  const std::string labels = ForbiddenLabels(metadata["labels"], before["labels"]);
  const Value source = r.object["spec"]["configSource"];
  if (r.creates()) {
    if (source) return r.RefuseNode("is not allowed to create pods with a non-nil configSource");
    if (labels.empty()) return {};
    return r.RefuseNode("is not allowed to set the following labels: {}", labels);
  }
  const auto same = [](Value a, Value b) { return (a.empty() && b.empty()) || Equal(a, b); };
  if (source && !Equal(source, r.old()["spec"]["configSource"])) {
    return r.RefuseNode("is not allowed to update configSource to a new non-nil configSource");
  }
  if (!same(r.object["spec"]["taints"], r.old()["spec"]["taints"])) {
    return r.RefuseNode("is not allowed to modify taints");
  }
  if (!same(metadata["ownerReferences"], before["ownerReferences"])) {
    return r.RefuseNode("is not allowed to modify ownerReferences");
  }
  if (labels.empty()) return {};
  return r.Refuse(fmt::format("is not allowed to modify labels: {}", labels));
}

// ---- tokens ----

std::string DriverOfClaim(const NodeRequest& r, std::string_view claim_name) {
  const Object claim = r.request.view.Get("persistentvolumeclaims", r.ns(), claim_name);
  const Object volume =
      r.request.view.Get("persistentvolumes", "", claim["spec"]["volumeName"].AsString());
  return std::string(volume["spec"]["csi"]["driver"].AsString());
}

// Whether a volume of the Pod gets tokens for this audience, by itself or by its driver.
bool VolumeNeeds(const NodeRequest& r, const Object& pod, Value volume, std::string_view audience) {
  for (Value source : volume["projected"]["sources"].items()) {
    const Value token = source["serviceAccountToken"];
    if (token && token["audience"].AsString() == audience) return true;
  }
  std::string driver(volume["csi"]["driver"].AsString());
  if (const std::string claim = api::ClaimOf(pod, volume); !claim.empty())
    driver = DriverOfClaim(r, claim);
  if (driver.empty()) return false;
  const Object known = r.request.view.Get("csidrivers.storage.k8s.io", "", driver);
  for (Value request : known["spec"]["tokenRequests"].items())
    if (request["audience"].AsString() == audience) return true;
  return false;
}

Status CheckAudience(const NodeRequest& r, const Object& pod) {
  const Value audiences = r.object["spec"]["audiences"];
  if (audiences.size() > 1) return r.Refuse("node may only request 0 or 1 audiences");
  const std::string audience(audiences.at(0).AsString());
  for (Value volume : pod["spec"]["volumes"].items())
    if (VolumeNeeds(r, pod, volume, audience)) return {};
  RequestInfo info = r.request.op.info;
  info.verb = "request-serviceaccounts-token-audience";
  info.resource = audience;
  info.subresource.clear();
  const User& user = r.request.op.user;
  if (r.request.authorizer.Authorize(user, info, r.request.view).allowed) return {};
  return r.Refuse(
      fmt::format("audience {} not found in pod spec volume, {} is not authorized to "
                  "request tokens for this audience",
                  Quote(audience), user.name));
}

Status CheckToken(const NodeRequest& r) {
  const Value ref = r.object["spec"]["boundObjectRef"];
  if (!ref || ref["apiVersion"].AsString() != "v1" || ref["kind"].AsString() != "Pod" ||
      ref["name"].AsString().empty()) {
    return r.Refuse("node requested token not bound to a pod");
  }
  const std::string_view uid = ref["uid"].AsString();
  if (uid.empty()) return r.Refuse("node requested token with a pod binding without a uid");
  const Object pod = r.request.view.Get("pods", r.ns(), ref["name"].AsString());
  if (!pod) return Fail(NotFound({"", "pods"}, ref["name"].AsString()));
  if (uid != pod.uid()) {
    return r.Refuse(
        fmt::format("the UID in the bound object reference ({}) does not match the UID "
                    "in record. The object might have been deleted and then recreated",
                    uid));
  }
  if (pod["spec"]["nodeName"].AsString() != r.node) {
    return r.Refuse("node requested token bound to a pod scheduled on a different node");
  }
  return CheckAudience(r, pod);
}

// ---- the rest ----

Status CheckLease(const NodeRequest& r) {
  if (r.ns() != kLeases) {
    return r.Refuse(
        fmt::format("can only access leases in the {} system namespace", Quote(kLeases)));
  }
  if (r.name() == r.node) return {};
  return r.Refuse("can only access node lease with the same name as the requesting node");
}

Status CheckCsiNode(const NodeRequest& r) {
  if (r.name() == r.node) return {};
  return r.Refuse("can only access CSINode with the same name as the requesting node");
}

// Only their authors' node may make and take away the devices of a node.
Status CheckSlice(const NodeRequest& r) {
  if (r.updates()) return {};
  const Value slice = r.creates() ? r.object : r.old();
  if (slice["spec"]["nodeName"].AsString() == r.node) return {};
  return r.Refuse(
      fmt::format("can only {} ResourceSlice with the same NodeName as the requesting "
                  "node",
                  r.request.verb));
}

// Status of claims: what the growing of a volume shows, and nothing else.
Status CheckClaimStatus(const NodeRequest& r) {
  if (!r.updates()) return r.Refuse(fmt::format("unexpected operation {}", Quote(r.operation())));
  const auto is_status = [](std::string_view key) { return key == "metadata" || key == "status"; };
  const auto is_stamp = [](std::string_view key) {
    return key == "resourceVersion" || key == "managedFields";
  };
  const auto is_its_own = [](std::string_view key) {
    return key == "capacity" || key == "conditions" || key == "allocatedResourceStatuses" ||
           key == "allocatedResources";
  };
  const Value now = r.object, then = r.old();
  const bool same = api::SameBut(now, then, is_status) &&
                    api::SameBut(now["metadata"], then["metadata"], is_stamp) &&
                    api::SameBut(now["status"], then["status"], is_its_own);
  if (same) return {};
  return r.RefuseNode(
      "is not allowed to update fields other than status.quantity and status.conditions");
}

Status RefuseClaim(const NodeRequest& r) { return r.Refuse("may only update PVC status"); }

Status RefusePodPart(const NodeRequest& r) {
  return r.Refuse(
      fmt::format("unexpected pod subresource {}, only 'status' and 'eviction' are "
                  "allowed",
                  Quote(r.request.op.subresource->name)));
}

// "*": any subresource, and none.
struct Row {
  std::string_view group;
  std::string_view plural;
  std::string_view subresource;
  Status (*check)(const NodeRequest& request);
};
constexpr Row kRows[] = {
    {"", "pods", "", CheckPod},
    {"", "pods", "status", CheckPodStatus},
    {"", "pods", "eviction", CheckEviction},
    {"", "pods", "*", RefusePodPart},
    {"", "nodes", "*", CheckNode},
    {"", "persistentvolumeclaims", "status", CheckClaimStatus},
    {"", "persistentvolumeclaims", "*", RefuseClaim},
    {"", "serviceaccounts", "token", CheckToken},
    {"coordination.k8s.io", "leases", "*", CheckLease},
    {"storage.k8s.io", "csinodes", "*", CheckCsiNode},
    {"resource.k8s.io", "resourceslices", "*", CheckSlice},
};

class NodeRestriction : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "NodeRestriction"; }

  Status Admit(const AdmissionRequest& request, Mut object) const override {
    const Row* row = RowFor(request);
    // Looked at as a whole, so only for kubelets: a snapshot copies the object.
    return row ? Check(*row, request, object.Snapshot()) : Status();
  }
  Status Validate(const AdmissionRequest& request, Value object) const override {
    const Row* row = request.verb == "delete" ? RowFor(request) : nullptr;
    return row ? Check(*row, request, object) : Status();
  }

 private:
  // nullptr for what is no kubelet's business, and for who is no kubelet. The authorizer lets in no
  // nameless one.
  static const Row* RowFor(const AdmissionRequest& request) {
    if (NodeOf(request.op.user).empty()) return nullptr;
    const auto& resource = *request.op.resource;
    const std::string_view sub = request.op.subresource ? request.op.subresource->name : "";
    for (const Row& row : kRows) {
      if (row.plural != resource.plural || row.group != resource.group_version.group) continue;
      if (row.subresource == "*" || row.subresource == sub) return &row;
    }
    return nullptr;
  }

  static Status Check(const Row& row, const AdmissionRequest& request, Value object) {
    return row.check({request, NodeOf(request.op.user), object});
  }
};

}  // namespace

bool KubeletMaySetLabel(std::string_view label) {
  const std::string_view domain = DomainOf(label);
  if (IsWithin(domain, "node-restriction.kubernetes.io")) return false;
  if (!IsWithin(domain, "kubernetes.io") && !IsWithin(domain, "k8s.io")) return true;
  return std::ranges::find(kKubeletLabels, label) != std::end(kKubeletLabels) ||
         IsWithin(domain, "kubelet.kubernetes.io") || IsWithin(domain, "node.kubernetes.io");
}

std::unique_ptr<AdmissionPlugin> MakeNodeRestriction() {
  return std::make_unique<NodeRestriction>();
}

}  // namespace sextant::server
