// The admission plugins that kubeadm leaves on, as far as this server has them. Each is one small
// class over resource names; texts and defaults from plugin/pkg/admission of k8s.io/kubernetes.
#include "server/admission.h"

#include <fmt/format.h>

#include <array>

#include "base/random.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

bool Is(const AdmissionRequest& request, std::string_view resource) {
  return request.op.resource->group_version.group.empty() &&
         request.op.resource->plural == resource && !request.op.subresource;
}

class NamespaceLifecycle : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "NamespaceLifecycle"; }

  Status Admit(const AdmissionRequest& request, Mut) const override { return Check(request); }

  Status Validate(const AdmissionRequest& request, Value) const override {
    if (request.verb != "delete" || !Is(request, "namespaces")) return {};
    const std::string& name = request.op.info.name;
    if (name == "default" || name == "kube-system" || name == "kube-public") {
      return Fail(Forbidden({"", "namespaces"}, name, "this namespace may not be deleted"));
    }
    return {};
  }

 private:
  static Status Check(const AdmissionRequest& request) {
    if (!request.op.resource->namespaced || request.op.info.ns.empty()) return {};
    if (request.op.resource->virtual_review) return {};
    const std::string& ns = request.op.info.ns;
    const Object space = request.view.Get("namespaces", "", ns);
    if (!space) return Fail(NotFound({"", "namespaces"}, ns));
    if (request.verb != "create" || space["status"]["phase"].AsString() != "Terminating") {
      return {};
    }
    Error error = AdmissionForbidden(
        request, request.op.body.root(),
        fmt::format("unable to create new content in namespace {} because it is being terminated",
                    ns));
    error.causes.push_back({"NamespaceTerminating",
                            fmt::format("namespace {} is being terminated", ns),
                            "metadata.namespace"});
    return Fail(std::move(error));
  }
};

constexpr std::string_view kTokenMount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kTokenVolume = "kube-api-access-";
constexpr int64_t kTokenLifetime_s = 3607;  // serviceaccount.WarnOnlyBoundTokenExpirationSeconds
constexpr int64_t kProjectedMode = 420;     // 0644

class ServiceAccountAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "ServiceAccount"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!Is(request, "pods") || request.verb != "create") return {};
    if (pod["metadata"]["annotations"].Has("kubernetes.io/config.mirror")) return {};
    Mut spec = pod["spec"];
    std::string account(spec["serviceAccountName"].AsString());
    if (account.empty()) {
      account = "default";
      spec.Set("serviceAccountName", account);
      spec.Set("serviceAccount", account);
    }
    const std::string& ns = request.op.info.ns;
    const Object found = request.view.Get("serviceaccounts", ns, account);
    if (!found) {
      Error error = AdmissionForbidden(
          request, request.op.body.root(),
          fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", ns,
                      account, account));
      if (account == "default") error.retry_after_s = kRetrySoon;
      return Fail(std::move(error));
    }
    if (WantsToken(spec, found.root())) MountToken(spec);
    if (spec["imagePullSecrets"].size() == 0) {
      for (Value secret : found["imagePullSecrets"].items()) {
        spec["imagePullSecrets"].Append().Set("name", secret["name"].AsString());
      }
    }
    return {};
  }

 private:
  static bool WantsToken(Mut spec, Value account) {
    if (spec.Has("automountServiceAccountToken")) {
      return spec["automountServiceAccountToken"].AsBool();
    }
    return account["automountServiceAccountToken"].AsBool(true);
  }

  static bool MountInto(Mut container, std::string_view volume) {
    Mut mounts = container["volumeMounts"];
    for (size_t i = 0; i < mounts.size(); ++i) {
      if (mounts.at(i)["mountPath"].AsString() == kTokenMount) return false;
    }
    Mut mount = mounts.Append();
    mount.Set("name", volume);
    mount.Set("readOnly", true);
    mount.Set("mountPath", kTokenMount);
    return true;
  }

  static void MountToken(Mut spec) {
    thread_local Random random(RandomSeed());
    std::string volume;
    Mut volumes = spec["volumes"];
    for (size_t i = 0; i < volumes.size() && volume.empty(); ++i) {
      const std::string_view name = volumes.at(i)["name"].AsString();
      if (name.starts_with(kTokenVolume)) volume = name;
    }
    const bool there = !volume.empty();
    if (!there) volume = std::string(kTokenVolume) + NameSuffix(random);
    bool needed = false;
    for (const char* list : {"initContainers", "containers"}) {
      Mut containers = spec[list];
      for (size_t i = 0; i < containers.size(); ++i) needed |= MountInto(containers.at(i), volume);
    }
    if (needed && !there) AddTokenVolume(spec["volumes"].Append(), volume);
  }

  static void AddTokenVolume(Mut volume, const std::string& name) {
    volume.Set("name", name);
    Mut projected = volume["projected"];
    projected.Set("defaultMode", kProjectedMode);
    Mut sources = projected["sources"];
    Mut token = sources.Append()["serviceAccountToken"];
    token.Set("expirationSeconds", kTokenLifetime_s);
    token.Set("path", "token");
    Mut ca = sources.Append()["configMap"];
    ca.Set("name", "kube-root-ca.crt");
    Mut item = ca["items"].Append();
    item.Set("key", "ca.crt");
    item.Set("path", "ca.crt");
    Mut file = sources.Append()["downwardAPI"]["items"].Append();
    file.Set("path", "namespace");
    file["fieldRef"].Set("apiVersion", "v1");
    file["fieldRef"].Set("fieldPath", "metadata.namespace");
  }
};

// A new node gets its not-ready taint before anything can be scheduled on it.
class TaintNodesByCondition : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "TaintNodesByCondition"; }

  Status Admit(const AdmissionRequest& request, Mut node) const override {
    if (!Is(request, "nodes") || request.verb != "create") return {};
    Mut taints = node["spec"]["taints"];
    for (size_t i = 0; i < taints.size(); ++i) {
      if (taints.at(i)["key"].AsString() == "node.kubernetes.io/not-ready") return {};
    }
    Mut taint = taints.Append();
    taint.Set("key", "node.kubernetes.io/not-ready");
    taint.Set("effect", "NoSchedule");
    return {};
  }
};

constexpr std::string_view kPriorityClasses = "priorityclasses.scheduling.k8s.io";

class PriorityAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "Priority"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!Is(request, "pods")) return {};
    Mut spec = pod["spec"];
    if (request.verb == "update") {
      const Value old = request.old["spec"];
      if (!spec.Has("priority") && old["priority"]) spec.Set("priority", old["priority"].AsInt());
      if (!spec.Has("preemptionPolicy") && old["preemptionPolicy"]) {
        spec.Set("preemptionPolicy", old["preemptionPolicy"].AsString());
      }
      return {};
    }
    ASSIGN_OR_RETURN(const Object found, FindClass(request, spec));
    const int64_t priority = found ? found["value"].AsInt() : 0;
    const std::string policy(found ? found["preemptionPolicy"].AsString("PreemptLowerPriority")
                                   : "PreemptLowerPriority");
    if (found) spec.Set("priorityClassName", found.name());
    if (spec.Has("priority") && spec["priority"].AsInt() != priority) {
      return Fail(AdmissionForbidden(
          request, request.op.body.root(),
          fmt::format("the integer value of priority ({}) must not be provided in pod spec; "
                      "priority admission controller computed {} from the given PriorityClass name",
                      spec["priority"].AsInt(), priority)));
    }
    spec.Set("priority", priority);
    if (spec.Has("preemptionPolicy") && spec["preemptionPolicy"].AsString() != policy) {
      return Fail(AdmissionForbidden(
          request, request.op.body.root(),
          fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod spec; "
                      "priority admission controller computed {} from the given PriorityClass name",
                      spec["preemptionPolicy"].AsString(), policy)));
    }
    spec.Set("preemptionPolicy", policy);
    return {};
  }

  Status Validate(const AdmissionRequest& request, Value object) const override {
    if (request.op.resource->plural != "priorityclasses") return {};
    if (request.verb == "delete") return CheckDelete(request);
    if (!object["globalDefault"].AsBool()) return {};
    const Object other = GlobalDefault(request.view);
    if (!other || other.name() == object["metadata"]["name"].AsString()) return {};
    return Fail(AdmissionForbidden(
        request, object,
        fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                    other.name())));
  }

 private:
  static Status CheckDelete(const AdmissionRequest& request) {
    const std::string& name = request.op.info.name;
    if (name != "system-node-critical" && name != "system-cluster-critical") return {};
    return Fail(AdmissionForbidden(request, Value(),
                                   "this is a system priority class and cannot be deleted"));
  }

  static Object GlobalDefault(const ClusterView& view) {
    Object best;
    const auto classes = view.Snapshot(kPriorityClasses);
    if (!classes) return best;
    for (const auto& entry : classes->Range("", "", "", 0)) {
      if (!entry->object["globalDefault"].AsBool()) continue;
      if (!best || entry->object["value"].AsInt() < best["value"].AsInt()) best = entry->object;
    }
    return best;
  }

  // The named class, or the default one, or none.
  static Result<Object> FindClass(const AdmissionRequest& request, Mut spec) {
    const std::string name(spec["priorityClassName"].AsString());
    if (name.empty()) return GlobalDefault(request.view);
    const Object found = request.view.Get(kPriorityClasses, "", name);
    if (!found) {
      return Fail(AdmissionForbidden(request, request.op.body.root(),
                                     fmt::format("no PriorityClass with name {} was found", name)));
    }
    return found;
  }
};

constexpr int64_t kTolerateFor_s = 300;

class DefaultTolerationSeconds : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!Is(request, "pods")) return {};
    for (std::string_view key :
         {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
      if (Tolerates(pod["spec"]["tolerations"], key)) continue;
      Mut added = pod["spec"]["tolerations"].Append();
      added.Set("key", key);
      added.Set("operator", "Exists");
      added.Set("effect", "NoExecute");
      added.Set("tolerationSeconds", kTolerateFor_s);
    }
    return {};
  }

 private:
  static bool Tolerates(Mut tolerations, std::string_view key) {
    for (size_t i = 0; i < tolerations.size(); ++i) {
      Mut one = tolerations.at(i);
      const bool same_key = one["key"].AsString() == key || one["key"].AsString().empty();
      const bool same_effect =
          one["effect"].AsString() == "NoExecute" || one["effect"].AsString().empty();
      if (same_key && same_effect) return true;
    }
    return false;
  }
};

}  // namespace

Error AdmissionForbidden(const AdmissionRequest& request, Value object, std::string_view why) {
  std::string name(object["metadata"]["name"].AsString());
  if (name.empty()) name = request.op.info.name;
  if (name.empty()) name = object["metadata"]["generateName"].AsString();
  if (name.empty()) name = "Unknown";
  return Forbidden({std::string(request.op.resource->group_version.group),
                    std::string(request.op.resource->plural)},
                   name, why);
}

std::vector<std::unique_ptr<AdmissionPlugin>> DefaultAdmission() {
  std::vector<std::unique_ptr<AdmissionPlugin>> chain;
  chain.push_back(std::make_unique<NamespaceLifecycle>());
  chain.push_back(std::make_unique<ServiceAccountAdmission>());
  chain.push_back(std::make_unique<TaintNodesByCondition>());
  chain.push_back(std::make_unique<PriorityAdmission>());
  chain.push_back(std::make_unique<DefaultTolerationSeconds>());
  chain.push_back(MakeStorageAdmission());
  chain.push_back(MakeRuntimeClassAdmission());
  chain.push_back(MakeServiceAddresses());
  return chain;
}

}  // namespace sextant::server
