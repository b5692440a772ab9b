// PodSecurity: k8s.io/pod-security-admission admission/admission.go, with the configuration that
// kubeadm leaves: nothing exempt, privileged where a namespace's labels say nothing. Its notes for
// the audit log are left out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/quote.h"
#include "server/admission_plugins.h"
#include "server/pod_security.h"

namespace sextant::server {
namespace {

using api::Object;
using api::Value;

constexpr size_t kMaxPodsToCheck = 3000;

// Where the template of Pods stands in what makes Pods.
struct Template {
  std::string_view group;
  std::string_view plural;
  std::string_view path;
};
constexpr Template kTemplates[] = {
    {"", "podtemplates", "template"},
    {"", "replicationcontrollers", "spec.template"},
    {"apps", "daemonsets", "spec.template"},
    {"apps", "deployments", "spec.template"},
    {"apps", "replicasets", "spec.template"},
    {"apps", "statefulsets", "spec.template"},
    {"batch", "cronjobs", "spec.jobTemplate.spec.template"},
    {"batch", "jobs", "spec.template"},
};

PodSecurityPolicy PolicyOfNamespace(const AdmissionRequest& request) {
  api::FieldErrors errors;  // refused when the labels came in
  const Object space = request.view.Get("namespaces", "", request.op.info.ns);
  return PolicyOf(space["metadata"]["labels"], errors);
}

void Warn(const AdmissionRequest& request, const LeveledPolicy& policy, Value metadata,
          Value spec) {
  const Violations found = Violations::Of(policy, metadata, spec);
  if (found.empty()) return;
  request.warnings.push_back(
      fmt::format("would violate PodSecurity {}: {}", Quote(policy.ToString()), found.Detail()));
}

Value Named(Value list, std::string_view name) {
  for (Value item : list.items())
    if (item["name"].AsString() == name) return item;
  return {};
}

// Of what an update may change only images and new containers matter to the policy.
bool MattersToPolicy(Value pod, Value old) {
  for (const char* list : {"containers", "initContainers"}) {
    const Value now = pod["spec"][list];
    const Value before = old["spec"][list];
    if (now.size() != before.size()) return true;
    for (size_t i = 0; i < now.size(); ++i)
      if (now.at(i)["image"].AsString() != before.at(i)["image"].AsString()) return true;
  }
  for (Value c : pod["spec"]["ephemeralContainers"].items()) {
    const Value before = Named(old["spec"]["ephemeralContainers"], c["name"].AsString());
    if (!before || before["image"].AsString() != c["image"].AsString()) return true;
  }
  return false;
}

// The namespace's Pods, as many as are looked at: one of each controller before their siblings.
std::vector<Object> PodsToCheck(const ClusterView& view, std::string_view ns, size_t& all) {
  std::vector<Object> first;
  std::vector<Object> siblings;
  std::set<std::string, std::less<>> seen;
  const auto pods = view.Snapshot("pods");
  for (const auto& entry : pods->Range(ns, "", "", 0)) {
    std::string_view controller;
    for (Value owner : entry->object["metadata"]["ownerReferences"].items())
      if (owner["controller"].AsBool()) controller = owner["uid"].AsString();
    const bool is_new = controller.empty() || seen.emplace(controller).second;
    (is_new ? first : siblings).push_back(entry->object);
  }
  first.insert(first.end(), siblings.begin(), siblings.end());
  all = first.size();
  if (first.size() > kMaxPodsToCheck) first.resize(kMaxPodsToCheck);
  return first;
}

void WarnOfPods(const AdmissionRequest& request, const LeveledPolicy& policy, std::string_view ns) {
  struct Group {
    std::string first;  // by name
    size_t count = 0;
  };
  std::map<std::string, Group> groups;  // by what is wrong
  size_t all = 0;
  const std::vector<Object> pods = PodsToCheck(request.view, ns, all);
  for (const Object& pod : pods) {
    const Violations found = Violations::Of(policy, pod["metadata"], pod["spec"]);
    if (found.empty()) continue;
    Group& group = groups[found.Reasons()];
    if (group.count++ == 0 || pod.name() < group.first) group.first = pod.name();
  }
  if (pods.size() < all) {
    request.warnings.push_back(
        fmt::format("new PodSecurity enforce level only checked against the first {} of {} "
                    "existing pods",
                    pods.size(), all));
  }
  if (groups.empty()) return;
  request.warnings.push_back(
      fmt::format("existing pods in namespace {} violate the new PodSecurity enforce level {}",
                  Quote(ns), Quote(policy.ToString())));
  std::set<std::string> lines;
  for (const auto& [reasons, group] : groups) {
    const std::string others = group.count == 1 ? ""
                               : group.count == 2
                                   ? " (and 1 other pod)"
                                   : fmt::format(" (and {} other pods)", group.count - 1);
    lines.insert(fmt::format("{}{}: {}", group.first, others, reasons));
  }
  request.warnings.insert(request.warnings.end(), lines.begin(), lines.end());
}

Status CheckNamespace(const AdmissionRequest& request, Value space) {
  api::FieldErrors errors;
  const PodSecurityPolicy policy = PolicyOf(space["metadata"]["labels"], errors);
  api::FieldErrors old_errors;
  const PodSecurityPolicy old = PolicyOf(request.old["metadata"]["labels"], old_errors);
  const std::string_view name = space["metadata"]["name"].AsString();
  if (!errors.empty() && (!request.old || errors.causes() != old_errors.causes())) {
    return Fail(Invalid("", request.op.resource->kind, name, errors.Take()));
  }
  if (!request.old || policy.enforce == old.enforce) return {};
  const bool stricter =
      policy.enforce.minor != old.enforce.minor || policy.enforce.level > old.enforce.level;
  if (policy.enforce.level != SecurityLevel::kPrivileged && stricter) {
    WarnOfPods(request, policy.enforce, name);
  }
  return {};
}

Status CheckPod(const AdmissionRequest& request, Value pod) {
  if (request.old && !MattersToPolicy(pod, request.old)) return {};
  const PodSecurityPolicy policy = PolicyOfNamespace(request);
  const Violations found = Violations::Of(policy.enforce, pod["metadata"], pod["spec"]);
  if (!found.empty()) {
    return Fail(AdmissionForbidden(request, pod,
                                   fmt::format("violates PodSecurity {}: {}",
                                               Quote(policy.enforce.ToString()), found.Detail())));
  }
  Warn(request, policy.warn, pod["metadata"], pod["spec"]);
  return {};
}

class PodSecurity : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PodSecurity"; }

  Status Validate(const AdmissionRequest& request, Value object) const override {
    if (request.verb == "delete") return {};
    if (request.On("", "namespaces")) return CheckNamespace(request, object);
    for (std::string_view subresource : {"", "ephemeralcontainers", "resize"})
      if (request.On("", "pods", subresource)) return CheckPod(request, object);
    for (const Template& row : kTemplates) {
      if (!request.On(row.group, row.plural)) continue;
      const Value pod = object.Path(row.path);
      if (pod) Warn(request, PolicyOfNamespace(request).warn, pod["metadata"], pod["spec"]);
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakePodSecurity() { return std::make_unique<PodSecurity>(); }

}  // namespace sextant::server
