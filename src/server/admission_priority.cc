// Priority: plugin/pkg/admission/priority; that system classes stay: the registry's storage
// (pkg/registry/scheduling/priorityclass).
#include <fmt/format.h>

#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kPriorityClasses = "priorityclasses.scheduling.k8s.io";

class PriorityAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "Priority"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!request.On("", "pods")) return {};
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
    if (!request.On("scheduling.k8s.io", "priorityclasses")) return {};
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

}  // namespace

std::unique_ptr<AdmissionPlugin> MakePriorityAdmission() {
  return std::make_unique<PriorityAdmission>();
}

}  // namespace sextant::server
