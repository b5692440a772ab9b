#include <fmt/format.h>

#include "api/json.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kClasses = "runtimeclasses.node.k8s.io";

// Whether `a` tolerates all that `b` tolerates.
bool Covers(Value a, Value b) {
  if (Equal(a, b)) return true;
  const std::string_view key = a["key"].AsString();
  const std::string_view how = a["operator"].AsString();
  if (key != b["key"].AsString() && !(key.empty() && how == "Exists")) return false;
  const std::string_view effect = a["effect"].AsString();
  if (!effect.empty() && effect != b["effect"].AsString()) return false;
  if (effect == "NoExecute" && a["tolerationSeconds"]) {
    if (!b["tolerationSeconds"]) return false;
    if (b["tolerationSeconds"].AsInt() > a["tolerationSeconds"].AsInt()) return false;
  }
  if (how == "Exists") return true;
  if (!how.empty() && how != "Equal") return false;
  return (b["operator"].AsString().empty() || b["operator"].AsString() == "Equal") &&
         a["value"].AsString() == b["value"].AsString();
}

// Both lists without what another one covers; of equal ones the first stays.
void MergeTolerations(Mut list, Value more) {
  const Object before = api::CopyOf(list.Snapshot());
  std::vector<Value> all;
  for (Value one : before.root().items()) all.push_back(one);
  for (Value one : more.items()) all.push_back(one);
  std::vector<Object> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    bool needless = false;
    for (const Object& other : kept) needless = needless || Covers(other.root(), all[i]);
    for (size_t j = i + 1; j < all.size(); ++j) {
      needless = needless || (!Equal(all[i], all[j]) && Covers(all[j], all[i]));
    }
    if (!needless) kept.push_back(api::CopyOf(all[i]));
  }
  if (kept.empty()) return;
  list.SetNull();
  for (const Object& one : kept) list.Append().Set(one);
}

class RuntimeClassAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "RuntimeClass"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!Asked(request)) return {};
    ASSIGN_OR_RETURN(const Object found, Find(request, pod.Snapshot()));
    if (!found) return {};
    const Value overhead = found["overhead"]["podFixed"];
    if (overhead) {
      RETURN_IF_ERROR(SameOverhead(request, pod.Snapshot(), overhead, false));
      pod["spec"]["overhead"].Set(api::CopyOf(overhead));
    }
    const Value scheduling = found["scheduling"];
    const Mut selector = pod["spec"]["nodeSelector"];
    for (auto [key, value] : scheduling["nodeSelector"].members()) {
      const std::string had(selector[key].AsString());
      if (!had.empty() && had != value.AsString()) {
        return Refuse(request, pod.Snapshot(),
                      fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                                  "pod.spec.nodeSelector[{}] = {}",
                                  key, value.AsString(), key, had));
      }
      selector.Set(key, value.AsString());
    }
    if (scheduling) MergeTolerations(pod["spec"]["tolerations"], scheduling["tolerations"]);
    return {};
  }

  Status Validate(const AdmissionRequest& request, Value pod) const override {
    if (!Asked(request)) return {};
    ASSIGN_OR_RETURN(const Object found, Find(request, pod));
    const Value overhead = found ? found["overhead"]["podFixed"] : Value();
    if (overhead) return SameOverhead(request, pod, overhead, true);
    if (!pod["spec"]["overhead"]) return {};
    return Refuse(request, pod,
                  "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                  "Overhead");
  }

 private:
  static bool Asked(const AdmissionRequest& request) {
    return request.verb == "create" && !request.op.subresource &&
           request.op.resource->plural == "pods" &&
           request.op.resource->group_version.group.empty();
  }

  static Status Refuse(const AdmissionRequest& request, Value pod, std::string_view why) {
    return Fail(AdmissionForbidden(request, pod, why));
  }

  // An empty object where the Pod names none.
  static Result<Object> Find(const AdmissionRequest& request, Value pod) {
    const Value name = pod["spec"]["runtimeClassName"];
    if (!name) return Object();
    Object found = request.view.Get(kClasses, "", name.AsString());
    if (found) return found;
    return Fail(AdmissionForbidden(
        request, pod, fmt::format("pod rejected: RuntimeClass \"{}\" not found", name.AsString())));
  }

  static Status SameOverhead(const AdmissionRequest& request, Value pod, Value overhead,
                             bool required) {
    const Value given = pod["spec"]["overhead"];
    if (given.empty() && !required) return {};
    if (Equal(given, overhead)) return {};
    return Refuse(request, pod,
                  "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeRuntimeClassAdmission() {
  return std::make_unique<RuntimeClassAdmission>();
}

}  // namespace sextant::server
