#include "lab/bootstrap.h"

#include <fmt/format.h>

#include "api/json.h"
#include "api/schema.h"
#include "base/check.h"
#include "lab/embedded.h"
#include "lab/pools.h"

namespace sextant::lab {
namespace {

using api::Editor;
using api::Object;

// What the node agent may do: read its node, keep its labels, and publish its devices.
constexpr std::string_view kAgentAccess = R"([
  {"kind": "ServiceAccount", "apiVersion": "v1",
   "metadata": {"name": "nvidia-device-plugin", "namespace": "kube-system"}},
  {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
   "metadata": {"name": "sextant:node-agent"},
   "rules": [{"verbs": ["get", "patch"], "apiGroups": [""], "resources": ["nodes"]},
             {"verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
              "apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"]}]},
  {"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
   "metadata": {"name": "sextant:node-agent"},
   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
               "name": "sextant:node-agent"},
   "subjects": [{"kind": "ServiceAccount", "name": "nvidia-device-plugin",
                 "namespace": "kube-system"}]}
])";

Object Named(std::string_view api_version, std::string_view kind, std::string_view name) {
  Editor edit;
  edit.Root().Set("kind", kind);
  edit.Root().Set("apiVersion", api_version);
  edit.Root()["metadata"].Set("name", name);
  return std::move(edit).Finish();
}

// Runs on every node where NFD has seen an NVIDIA card, whatever its taints. The command is not in
// the toolbox: the kubelet starts the node's agent in process for it.
constexpr std::string_view kDevicePlugin = R"({
  "kind": "DaemonSet", "apiVersion": "apps/v1",
  "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
  "spec": {
    "selector": {"matchLabels": {"name": "nvidia-device-plugin-ds"}},
    "updateStrategy": {"type": "RollingUpdate"},
    "template": {
      "metadata": {"labels": {"name": "nvidia-device-plugin-ds"}},
      "spec": {
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "nvidia-device-plugin",
        "automountServiceAccountToken": false,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
          "nodeSelectorTerms": [{"matchExpressions": [{
            "key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In",
            "values": ["true"]}]}]}}},
        "containers": [{
          "name": "nvidia-device-plugin-ctr",
          "image": "sextant.dev/node-agent",
          "command": ["sextant-node-agent"]}]}}}
})";

// As kind has it (pkg/build/nodeimage/const_storage.go); the provisioner is one of our controllers.
constexpr std::string_view kStorageClass = R"({
  "kind": "StorageClass", "apiVersion": "storage.k8s.io/v1",
  "metadata": {"name": "standard",
               "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
  "provisioner": "rancher.io/local-path",
  "reclaimPolicy": "Delete",
  "volumeBindingMode": "WaitForFirstConsumer"
})";

const api::Resource& ResourceOf(const Object& object) {
  const api::Resource* resource =
      api::Registry::Builtin().FindKind(api::GroupVersion::Of(object.api_version()), object.kind());
  CHECK(resource != nullptr);
  return *resource;
}

// One create after another; lives by the callbacks that hold it.
class Creating : public std::enable_shared_from_this<Creating> {
 public:
  Creating(client::Client& client, std::vector<Object> objects,
           std::move_only_function<void(Status)> done)
      : client_(client), objects_(std::move(objects)), done_(std::move(done)) {}

  void Next() {
    if (next_ == objects_.size()) return done_({});
    const Object object = objects_[next_++];
    const api::Resource& resource = ResourceOf(object);
    const client::Gvr gvr{resource.group_version.group, resource.group_version.version,
                          resource.plural};
    client_.Create(gvr, {std::string(object.ns()), ""}, object, {.field_manager = "sextant"},
                   [self = shared_from_this()](Result<Object> created) {
                     if (!created && !created.error().Is("AlreadyExists")) {
                       return self->done_(Fail(std::move(created).error()));
                     }
                     self->Next();
                   });
  }

 private:
  client::Client& client_;
  const std::vector<Object> objects_;
  std::move_only_function<void(Status)> done_;
  size_t next_ = 0;
};

}  // namespace

std::vector<Object> SystemObjects() {
  std::vector<Object> objects;
  for (std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    objects.push_back(Named("v1", "Namespace", name));
  }
  auto defaults = api::ParseJson(embedded::BootstrapObjects());
  CHECK(defaults.has_value());
  for (api::Value object : defaults->root().items()) objects.push_back(api::CopyOf(object));
  return objects;
}

std::vector<Object> FirstObjects(const LabConfig& config) {
  std::vector<Object> objects;
  for (const PoolConfig& pool : FirstPools(config)) objects.push_back(PoolObject(pool));
  auto access = api::ParseJson(kAgentAccess);
  CHECK(access.has_value());
  for (api::Value object : access->root().items()) objects.push_back(api::CopyOf(object));
  for (std::string_view text : {kStorageClass, kDevicePlugin}) {
    auto object = api::ParseJson(text);
    CHECK(object.has_value());
    objects.push_back(*std::move(object));
  }
  return objects;
}

void Bootstrap(client::Client& client, std::vector<Object> objects,
               std::move_only_function<void(Status)> done) {
  std::make_shared<Creating>(client, std::move(objects), std::move(done))->Next();
}

}  // namespace sextant::lab
