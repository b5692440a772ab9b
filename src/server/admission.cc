// The chain of admission plugins, and the first of them. Each is one small class over resource
// names; texts and defaults from plugin/pkg/admission of k8s.io/kubernetes.
#include "server/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

class NamespaceLifecycle : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "NamespaceLifecycle"; }

  Status Admit(const AdmissionRequest& request, Mut) const override { return Check(request); }

  Status Validate(const AdmissionRequest& request, Value) const override {
    if (request.verb != "delete" || !request.On("", "namespaces")) return {};
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

}  // namespace

bool AdmissionRequest::On(std::string_view group, std::string_view plural,
                          std::string_view subresource) const {
  return op.resource->plural == plural && op.resource->group_version.group == group &&
         (op.subresource ? op.subresource->name : std::string_view()) == subresource;
}

std::string Aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string_view> once;
  for (const std::string& error : errors) {
    if (std::ranges::find(once, error) == once.end()) once.push_back(error);
  }
  if (once.size() < 2) return once.empty() ? "" : std::string(once[0]);
  return fmt::format("[{}]", fmt::join(once, ", "));
}

Error AdmissionForbidden(const AdmissionRequest& request, Value object, std::string_view why) {
  std::string name(object["metadata"]["name"].AsString());
  if (name.empty()) name = request.op.info.name;
  if (name.empty()) name = object["metadata"]["generateName"].AsString();
  if (name.empty()) name = "Unknown";
  return Forbidden({std::string(request.op.resource->group_version.group),
                    std::string(request.op.resource->plural)},
                   name, why);
}

AdmissionChain DefaultAdmission() {
  AdmissionChain chain;
  chain.push_back(std::make_unique<NamespaceLifecycle>());
  chain.push_back(MakeLimitRanger());
  chain.push_back(MakeServiceAccountAdmission());
  chain.push_back(MakeNodeRestriction());
  chain.push_back(MakeTaintNodesByCondition());
  chain.push_back(MakePodSecurity());
  chain.push_back(MakePriorityAdmission());
  chain.push_back(MakeDefaultTolerationSeconds());
  AddStorageAdmission(chain);
  chain.push_back(MakeRuntimeClassAdmission());
  AddCertificateAdmission(chain);
  chain.push_back(MakeDefaultIngressClass());
  chain.push_back(MakePodTopologyLabels());
  chain.push_back(MakePodResizeValidator());
  // What in the real server the registry does.
  chain.push_back(MakeServiceAddresses());
  chain.push_back(MakeRoleEscalationCheck());
  // Last: a write that was refused takes nothing.
  chain.push_back(MakeResourceQuotaAdmission());
  return chain;
}

}  // namespace sextant::server
