#include "server/node_authorizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/lists.h"
#include "api/pods.h"
#include "api/selector.h"
#include "base/quote.h"

namespace sextant::server {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kPrefix = "system:node:";
constexpr std::string_view kLeases = "kube-node-lease";

// What a node asks.
struct Asked {
  std::string_view node;
  const RequestInfo& info;
  const ClusterView& view;

  bool Verb(std::initializer_list<std::string_view> verbs) const {
    return std::ranges::find(verbs, info.verb) != verbs.end();
  }
  // Whether it selects what is the node's alone.
  bool SelectsNode() const {
    const auto selector = api::FieldSelector::Parse(info.field_selector);
    return selector && selector->Exact("spec.nodeName") == node;
  }
};

Decision Allow() { return {true, ""}; }
Decision Refuse(std::string reason = "") { return {false, std::move(reason)}; }

// ---- what Pods refer to ----

bool VolumeUses(Value volume, bool secret, std::string_view name) {
  if (secret && volume["secret"]["secretName"].AsString() == name) return true;
  if (!secret && volume["configMap"]["name"].AsString() == name) return true;
  for (Value source : volume["projected"]["sources"].items()) {
    if (source[secret ? "secret" : "configMap"]["name"].AsString() == name) return true;
  }
  return false;
}

bool ContainerUses(Value container, bool secret, std::string_view name) {
  for (Value from : container["envFrom"].items()) {
    if (from[secret ? "secretRef" : "configMapRef"]["name"].AsString() == name) return true;
  }
  for (Value env : container["env"].items()) {
    const Value from = env["valueFrom"];
    if (from[secret ? "secretKeyRef" : "configMapKeyRef"]["name"].AsString() == name) return true;
  }
  return false;
}

bool PodUses(Value spec, bool secret, std::string_view name) {
  for (Value volume : spec["volumes"].items())
    if (VolumeUses(volume, secret, name)) return true;
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (Value container : spec[list].items())
      if (ContainerUses(container, secret, name)) return true;
  }
  if (!secret) return false;
  for (Value pull : spec["imagePullSecrets"].items())
    if (pull["name"].AsString() == name) return true;
  return false;
}

bool UsesSecret(const Object& pod, std::string_view name) {
  return PodUses(pod["spec"], true, name);
}
bool UsesConfigMap(const Object& pod, std::string_view name) {
  return PodUses(pod["spec"], false, name);
}
bool UsesAccount(const Object& pod, std::string_view name) {
  return pod["spec"]["serviceAccountName"].AsString() == name;
}

bool UsesDevices(const Object& pod, std::string_view name) {
  constexpr std::string_view kName = "resourceClaimName";
  if (api::FindBy(pod["spec"]["resourceClaims"], kName, name)) return true;
  if (api::FindBy(pod["status"]["resourceClaimStatuses"], kName, name)) return true;
  return pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"].AsString() == name;
}

using Uses = bool (*)(const Object& pod, std::string_view name);

bool AnyPod(const Asked& asked, std::string_view ns, std::string_view name, Uses uses) {
  const auto pods = asked.view.Snapshot("pods");
  for (const auto& entry : pods->Range(ns, "", "", 0)) {
    const Object& pod = entry->object;
    if (pod["spec"]["nodeName"].AsString() == asked.node && uses(pod, name)) return true;
  }
  return false;
}

Decision IfRelated(const Asked& asked, bool related) {
  if (asked.info.name.empty()) return Refuse("No Object name found");
  if (related) return Allow();
  return Refuse(fmt::format("no relationship found between node '{}' and this object", asked.node));
}

template <Uses kUses>
Decision IfUsed(const Asked& asked) {
  return IfRelated(asked, AnyPod(asked, asked.info.ns, asked.info.name, kUses));
}

// Objects that are read one by one, in any of the reading verbs.
template <Uses kUses>
Decision Read(const Asked& asked) {
  if (!asked.Verb({"get", "list", "watch"})) {
    return Refuse("can only read resources of this type");
  }
  if (!asked.info.subresource.empty()) return Refuse("cannot read subresource");
  if (asked.info.ns.empty()) return Refuse("can only read namespaced object of this type");
  return IfUsed<kUses>(asked);
}

Decision GetOnly(const Asked& asked) {
  if (!asked.Verb({"get"})) return Refuse("can only get individual resources of this type");
  if (!asked.info.subresource.empty()) return Refuse("cannot get subresource");
  return Allow();
}

template <Uses kUses>
Decision Get(const Asked& asked) {
  const Decision may = GetOnly(asked);
  return may.allowed ? IfUsed<kUses>(asked) : may;
}

// ---- one for each kind that is looked at closer ----

Decision Claim(const Asked& asked) {
  if (asked.info.subresource != "status") return Get<api::UsesClaim>(asked);
  if (!asked.Verb({"update", "patch"})) return Refuse("can only get/update/patch this type");
  return IfUsed<api::UsesClaim>(asked);
}

Decision Volume(const Asked& asked) {
  const Decision may = GetOnly(asked);
  if (!may.allowed) return may;
  const Value claim = asked.view.Get("persistentvolumes", "", asked.info.name)["spec"]["claimRef"];
  const std::string_view name = claim["name"].AsString();
  return IfRelated(
      asked, !name.empty() && AnyPod(asked, claim["namespace"].AsString(), name, api::UsesClaim));
}

Decision Attachment(const Asked& asked) {
  const Decision may = GetOnly(asked);
  if (!may.allowed) return may;
  const Object found = asked.view.Get("volumeattachments.storage.k8s.io", "", asked.info.name);
  return IfRelated(asked, found["spec"]["nodeName"].AsString() == asked.node);
}

Decision Account(const Asked& asked) {
  if (asked.Verb({"get"}) && asked.info.subresource.empty()) return Read<UsesAccount>(asked);
  if (!asked.Verb({"create"}) || asked.info.name.empty()) {
    return Refuse("can only create tokens for individual service accounts");
  }
  if (asked.info.subresource != "token") {
    return Refuse("can only create token subresource of serviceaccount");
  }
  return IfUsed<UsesAccount>(asked);
}

Decision Lease(const Asked& asked) {
  if (!asked.Verb({"get", "create", "update", "patch", "delete"})) {
    return Refuse("can only get, create, update, patch, or delete a node lease");
  }
  if (asked.info.ns != kLeases) {
    return Refuse(fmt::format("can only access leases in the {} system namespace", Quote(kLeases)));
  }
  // Of a create the name is in the body: NodeRestriction looks at it.
  if (asked.Verb({"create"}) || asked.info.name == asked.node) return Allow();
  return Refuse("can only access node lease with the same name as the requesting node");
}

Decision CsiNode(const Asked& asked) {
  if (!asked.Verb({"get", "create", "update", "patch", "delete"})) {
    return Refuse("can only get, create, update, patch, or delete a CSINode");
  }
  if (!asked.info.subresource.empty()) return Refuse("cannot authorize CSINode subresources");
  if (asked.Verb({"create"}) || asked.info.name == asked.node) return Allow();
  return Refuse("can only access CSINode with the same name as the requesting node");
}

Decision Slice(const Asked& asked) {
  if (!asked.info.subresource.empty()) {
    return Refuse("cannot authorize ResourceSlice subresources");
  }
  if (asked.Verb({"create"})) return Allow();
  if (asked.Verb({"get", "update", "patch", "delete"})) {
    const Object found = asked.view.Get("resourceslices.resource.k8s.io", "", asked.info.name);
    return IfRelated(asked, found["spec"]["nodeName"].AsString() == asked.node);
  }
  if (asked.Verb({"list", "watch", "deletecollection"})) {
    if (asked.SelectsNode()) return Allow();
    return Refuse(
        "can only list/watch/deletecollection resourceslices with nodeName field selector");
  }
  return Refuse(
      "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, "
      "patch, delete, deletecollection");
}

Decision Node(const Asked& asked) {
  const std::string& name = asked.info.name;
  const bool status = asked.info.subresource == "status";
  if (status && asked.Verb({"update", "patch"})) return Allow();
  if (!asked.info.subresource.empty()) return Refuse();
  if (asked.Verb({"create", "update", "patch"})) return Allow();
  if (!asked.Verb({"get", "list", "watch"})) return Refuse();
  if (name == asked.node) return Allow();
  if (name.empty()) {
    return Refuse(
        fmt::format("node '{}' cannot read all nodes, only its own Node object", asked.node));
  }
  return Refuse(
      fmt::format("node '{}' cannot read '{}', only its own Node object", asked.node, name));
}

Decision Pod(const Asked& asked) {
  const std::string& subresource = asked.info.subresource;
  if (subresource == "status" && asked.Verb({"update", "patch"})) return Allow();
  if (subresource == "eviction" && asked.Verb({"create"})) return Allow();
  if (!subresource.empty()) return Refuse();
  if (asked.Verb({"create", "delete"})) return Allow();
  const auto if_its_own = [&asked] {
    const Object pod = asked.view.Get("pods", asked.info.ns, asked.info.name);
    return IfRelated(asked, pod["spec"]["nodeName"].AsString() == asked.node);
  };
  if (asked.Verb({"get"})) return if_its_own();
  if (!asked.Verb({"list", "watch"})) return Refuse();
  if (asked.SelectsNode()) return Allow();
  if (!asked.info.name.empty()) return if_its_own();
  return Refuse("can only list/watch pods with spec.nodeName field selector");
}

struct Row {
  std::string_view group;
  std::string_view plural;
  Decision (*decide)(const Asked& asked);
};
constexpr Row kRows[] = {
    {"", "secrets", Read<UsesSecret>},
    {"", "configmaps", Read<UsesConfigMap>},
    {"", "persistentvolumeclaims", Claim},
    {"", "persistentvolumes", Volume},
    {"", "serviceaccounts", Account},
    {"", "nodes", Node},
    {"", "pods", Pod},
    {"resource.k8s.io", "resourceclaims", Get<UsesDevices>},
    {"resource.k8s.io", "resourceslices", Slice},
    {"storage.k8s.io", "volumeattachments", Attachment},
    {"storage.k8s.io", "csinodes", CsiNode},
    {"coordination.k8s.io", "leases", Lease},
};

bool IsNode(const User& user) {
  return user.name.starts_with(kPrefix) && user.InGroup("system:nodes");
}

}  // namespace

std::string_view NodeOf(const User& user) {
  if (!IsNode(user)) return {};
  return std::string_view(user.name).substr(kPrefix.size());
}

Decision AuthorizeNode(const User& user, const RequestInfo& info, const ClusterView& view) {
  const Asked asked{NodeOf(user), info, view};
  if (asked.node.empty()) {
    if (!IsNode(user)) return Refuse();
    return Refuse(fmt::format("unknown node for user {}", Quote(user.name)));
  }
  if (info.is_resource) {
    for (const Row& row : kRows)
      if (row.plural == info.resource && row.group == info.group) return row.decide(asked);
  }
  // The rest is what the role says, though no binding gives it to the group.
  const Object role = view.Get("clusterroles.rbac.authorization.k8s.io", "", "system:node");
  for (Value rule : role["rules"].items())
    if (RuleAllows(rule, info)) return Allow();
  return Refuse();
}

}  // namespace sextant::server
