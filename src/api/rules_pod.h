// Validation of Pods and Pod templates, in parts: volumes, containers, security, the rest of the
// spec, and what an update may change.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/amounts.h"
#include "api/rules_kit.h"

namespace sextant::api {

using Names = std::set<std::string, std::less<>>;

// What the parts of one spec have to know of each other.
struct PodScope {
  Value metadata;  // absent for templates of workloads that have not named their Pods yet
  Value spec;
  bool is_pod = true;
  bool host_users = true;
  std::optional<int64_t> grace_s;
  std::map<std::string_view, Value> volumes;  // the valid ones, by name
  Names claims;                               // spec.resourceClaims
};

void ValidatePodSpec(Value spec, Value metadata, bool is_pod, const At& at, FieldErrors& errors);
// spec.template of workloads: labels, annotations and spec.
void ValidatePodTemplateSpec(Value template_, const At& at, FieldErrors& errors);
// Metadata's annotations that say something about the spec.
void ValidatePodAnnotations(Value annotations, Value spec, const At& at, FieldErrors& errors);

// rules_pod_volumes.cc. Fills scope.volumes.
void ValidateVolumes(Value volumes, PodScope& scope, const At& at, FieldErrors& errors);
// The sources that PersistentVolumes have too: the required fields and what else there is to say.
// False if `name` is not such a source.
bool ValidateSharedVolumeSource(std::string_view name, Value source, const At& at,
                                FieldErrors& errors);

void ValidateCsiDriverName(std::string_view driver, const At& at, FieldErrors& errors);

// rules_pod_containers.cc.
void ValidateAllContainers(const PodScope& scope, const At& at, FieldErrors& errors);
void ValidateEphemeralContainers(const PodScope& scope, const At& at, FieldErrors& errors);
bool ValidateFieldRef(Value ref, Words expressions, const At& at, FieldErrors& errors);
bool ValidateResourceFieldRef(Value ref, bool volume, const At& at, FieldErrors& errors);
void ValidatePullPolicy(Value policy, const At& at, FieldErrors& errors);
// An image may not be padded with white space (Pods only).
void ValidateImagePadding(Value container, const At& at, FieldErrors& errors);

// rules_pod_security.cc.
void ValidateContainerSecurity(Value context, bool host_users, const At& at, FieldErrors& errors);
void ValidatePodSecurity(Value spec, const At& at, FieldErrors& errors);
void ValidateOs(Value spec, const At& at, FieldErrors& errors);
void ValidateWindowsHostProcess(Value spec, const At& at, FieldErrors& errors);
void ValidateSeccompAnnotations(Value metadata, Value spec, const At& at, FieldErrors& errors);

// rules_pod_affinity.cc.
void ValidateAffinity(Value affinity, const At& at, FieldErrors& errors);
void ValidateTolerations(Value tolerations, const At& at, FieldErrors& errors);
void ValidateTaintEffect(Value effect, const At& at, FieldErrors& errors);
void ValidateTopologySpread(Value constraints, const At& at, FieldErrors& errors);
void ValidateNodeSelector(Value selector, const At& at, FieldErrors& errors);

// rules_resources.cc.
void ValidateContainerResources(Value resources, const Names& pod_claims, const At& at,
                                FieldErrors& errors);
void ValidateContainerResourceName(std::string_view name, const At& at, FieldErrors& errors);
void ValidatePodResources(Value resources, const Names& pod_claims, const At& at,
                          FieldErrors& errors);

// rules_storage.cc.
void ValidateClaimSpec(Value spec, const At& at, FieldErrors& errors);

// Calls visit(container, at) for init, normal and ephemeral containers, in this order.
template <typename Visit>
void EachContainer(Value spec, const At& at, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    size_t i = 0;
    for (Value c : spec[list].items()) visit(c, at.Item(list, i++));
  }
}

}  // namespace sextant::api
