// Deployments, ReplicaSets, DaemonSets, StatefulSets, ReplicationControllers and their revisions.
// Source: pkg/apis/apps/validation/validation.go and core's ReplicationController.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "api/selector.h"

namespace sextant::api {
namespace {

constexpr const char* kNoMatch = "`selector` does not match template `labels`";

void InvalidLabels(Value template_, const At& at, FieldErrors& errors) {
  const Value labels = template_["metadata"]["labels"];
  errors.Invalid(at / "metadata.labels", labels, kNoMatch);
}

bool HasTerms(Value selector) {
  return !selector["matchLabels"].empty() || !selector["matchExpressions"].empty();
}

// The template of Pods that are started again for ever.
void ValidateEndless(Value template_, std::string_view kind, const At& at, FieldErrors& errors) {
  const Value spec = template_["spec"];
  if (spec["restartPolicy"].AsString() != "Always") {
    NotSupported(at / "spec.restartPolicy", spec["restartPolicy"].AsString(), {"Always"}, errors);
  }
  if (spec["activeDeadlineSeconds"]) {
    errors.Forbidden(at / "spec.activeDeadlineSeconds",
                     fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
  }
}

void ValidateReplicaTemplate(Value template_, const LabelSelector& selector, const At& at,
                             FieldErrors& errors) {
  if (!selector.Empty() && !selector.Matches(template_["metadata"]["labels"])) {
    InvalidLabels(template_, at, errors);
  }
  ValidatePodTemplateSpec(template_, at, errors);
  ValidateEndless(template_, "ReplicaSet", at, errors);
}

void ValidateSelector(Value spec, std::string_view kind, const At& at, FieldErrors& errors) {
  const Value selector = spec["selector"];
  const At here = at / "selector";
  if (!selector) return errors.Required(here, "");
  ValidateLabelSelector(selector, here, errors);
  if (!HasTerms(selector)) {
    errors.InvalidRaw(here, "{}", fmt::format("empty selector is invalid for {}", kind));
  }
}

void ValidateSelectorAndTemplate(Value spec, const At& at, FieldErrors& errors) {
  ValidateSelector(spec, "deployment", at, errors);
  const Result<LabelSelector> selector = LabelSelector::From(spec["selector"]);
  if (!selector) {
    errors.Invalid(at / "selector", spec["selector"], "invalid label selector");
  } else {
    ValidateReplicaTemplate(spec["template"], *selector, at / "template", errors);
  }
}

bool IsZero(Value int_or_percent) {
  return int_or_percent.IsString() ? IsPercentText(int_or_percent) && PercentOf(int_or_percent) == 0
                                   : int_or_percent.AsInt() == 0;
}

void ValidateDeploymentStrategy(Value strategy, const At& at, FieldErrors& errors) {
  const std::string_view type = strategy["type"].AsString();
  const Value rolling = strategy["rollingUpdate"];
  const At here = at / "rollingUpdate";
  if (type == "Recreate") {
    if (rolling) {
      errors.Forbidden(here, "may not be specified when strategy `type` is 'Recreate'");
    }
  } else if (type == "RollingUpdate") {
    if (!rolling) return errors.Required(here, "this should be defaulted and never be nil");
    ValidateIntOrPercent(rolling["maxUnavailable"], here / "maxUnavailable", errors);
    ValidateIntOrPercent(rolling["maxSurge"], here / "maxSurge", errors);
    if (IsZero(rolling["maxUnavailable"]) && IsZero(rolling["maxSurge"])) {
      errors.Invalid(here / "maxUnavailable", rolling["maxUnavailable"],
                     "may not be 0 when `maxSurge` is 0");
    }
    ValidateAtMost100Percent(rolling["maxUnavailable"], here / "maxUnavailable", errors);
  } else {
    errors.NotSupportedRaw(at, InternalJson(strategy, "io.k8s.api.apps.v1.DeploymentStrategy"),
                           {"Recreate", "RollingUpdate"});
  }
}

// Counts of a status: none negative, those of `parts` not above `whole`.
void ValidateCounts(Value status, Words counts, Words parts, const At& at, FieldErrors& errors) {
  for (std::string_view name : counts) NonNegative(status, name, at, errors);
  const int64_t all = status["replicas"].AsInt();
  for (std::string_view name : parts) {
    const int64_t n = status[name].AsInt();
    if (n > all) {
      errors.InvalidRaw(at / name, std::to_string(n), "cannot be greater than status.replicas");
    }
  }
}

void ValidateAvailable(Value status, const char* ready_name, const At& at, FieldErrors& errors) {
  const int64_t available = status["availableReplicas"].AsInt();
  if (available > status["readyReplicas"].AsInt()) {
    errors.InvalidRaw(at / "availableReplicas", std::to_string(available),
                      fmt::format("cannot be greater than {}", ready_name));
  }
}

void ValidateCollisions(Value status, Value old, const At& at, FieldErrors& errors) {
  const Value before = old["collisionCount"];
  const Value now = status["collisionCount"];
  if (before && now.AsInt(-1) < before.AsInt()) {
    errors.InvalidRaw(at / "collisionCount", std::to_string(now.AsInt()), "cannot be decremented");
  }
}

}  // namespace

void ValidateDeployment(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  NonNegative(spec, "replicas", at, errors);
  ValidateSelectorAndTemplate(spec, at, errors);
  ValidateDeploymentStrategy(spec["strategy"], at / "strategy", errors);
  NonNegative(spec, "minReadySeconds", at, errors);
  NonNegative(spec, "revisionHistoryLimit", at, errors);
  if (const Value deadline = spec["progressDeadlineSeconds"]) {
    NonNegative(spec, "progressDeadlineSeconds", at, errors);
    if (deadline.AsInt() <= spec["minReadySeconds"].AsInt()) {
      errors.Invalid(at / "progressDeadlineSeconds", deadline,
                     "must be greater than minReadySeconds");
    }
  }
}

void ValidateReplicaSet(Value o, FieldErrors& errors) {
  const At at("spec");
  NonNegative(o["spec"], "replicas", at, errors);
  NonNegative(o["spec"], "minReadySeconds", at, errors);
  ValidateSelectorAndTemplate(o["spec"], at, errors);
}

void ValidateSelectorUnchanged(Value o, Value old, FieldErrors& errors) {
  const At at("spec");
  Immutable(o["spec"]["selector"], old["spec"]["selector"], at / "selector", errors);
}

void ValidateDeploymentStatus(Value o, Value old, FieldErrors& errors) {
  const At at("status");
  const Value status = o["status"];
  ValidateCounts(
      status,
      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
       "unavailableReplicas", "terminatingReplicas", "collisionCount"},
      {"updatedReplicas", "readyReplicas", "availableReplicas"}, at, errors);
  ValidateAvailable(status, "readyReplicas", at, errors);
  ValidateCollisions(status, old["status"], at, errors);
}

void ValidateReplicaSetStatus(Value o, Value, FieldErrors& errors) {
  const At at("status");
  ValidateCounts(o["status"],
                 {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                  "observedGeneration", "terminatingReplicas"},
                 {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, at, errors);
  ValidateAvailable(o["status"], "readyReplicas", at, errors);
}

void ValidateDaemonSet(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const Value selector = spec["selector"];
  const At at("spec");
  const At template_at = at / "template";
  ValidateLabelSelector(selector, at / "selector", errors);
  const Result<LabelSelector> parsed = LabelSelector::From(selector);
  if (parsed && !parsed->Matches(spec["template"]["metadata"]["labels"])) {
    InvalidLabels(spec["template"], template_at, errors);
  }
  if (selector && !HasTerms(selector)) {
    errors.InvalidRaw(at / "selector", "{}", "empty selector is invalid for daemonset");
  }
  ValidatePodTemplateSpec(spec["template"], template_at, errors);
  ValidateEndless(spec["template"], "DaemonSet", template_at, errors);
  NonNegative(spec, "minReadySeconds", at, errors);
  const Value strategy = spec["updateStrategy"];
  const std::string_view type = strategy["type"].AsString();
  const At strategy_at = at / "updateStrategy";
  if (type == "RollingUpdate") {
    const Value rolling = strategy["rollingUpdate"];
    const At here = strategy_at / "rollingUpdate";
    for (const char* name : {"maxUnavailable", "maxSurge"}) {
      ValidateIntOrPercent(rolling[name], here / name, errors);
    }
    for (const char* name : {"maxUnavailable", "maxSurge"}) {
      ValidateAtMost100Percent(rolling[name], here / name, errors);
    }
    const bool unavailable = !IsZero(rolling["maxUnavailable"]);
    const bool surge = !IsZero(rolling["maxSurge"]);
    if (unavailable && surge) {
      errors.Invalid(here / "maxSurge", rolling["maxSurge"],
                     "may not be set when maxUnavailable is non-zero");
    } else if (!unavailable && !surge) {
      errors.Required(here / "maxUnavailable", "cannot be 0 when maxSurge is 0");
    }
  } else if (type != "OnDelete") {
    errors.NotSupportedRaw(strategy_at,
                           InternalJson(strategy, "io.k8s.api.apps.v1.DaemonSetUpdateStrategy"),
                           {"RollingUpdate", "OnDelete"});
  }
  NonNegative(spec, "revisionHistoryLimit", at, errors);
}

void ValidateDaemonSetStatus(Value o, Value old, FieldErrors& errors) {
  const At at("status");
  for (const char* name : {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                           "numberReady", "observedGeneration", "updatedNumberScheduled",
                           "numberAvailable", "numberUnavailable", "collisionCount"}) {
    NonNegative(o["status"], name, at, errors);
  }
  ValidateCollisions(o["status"], old["status"], at, errors);
}

namespace {

void ValidateStatefulStrategy(Value spec, const At& at, FieldErrors& errors) {
  const Value strategy = spec["updateStrategy"];
  const Value rolling = strategy["rollingUpdate"];
  const std::string_view type = strategy["type"].AsString();
  const At here = at / "updateStrategy";
  const At rolling_at = here / "rollingUpdate";
  if (type.empty()) {
    errors.Required(here, "");
  } else if (type == "OnDelete") {
    if (rolling) {
      errors.InvalidRaw(
          rolling_at, InternalJson(rolling, "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy"),
          "only allowed for updateStrategy 'RollingUpdate'");
    }
  } else if (type == "RollingUpdate") {
    NonNegative(rolling, "partition", rolling_at, errors);
    if (const Value most = rolling["maxUnavailable"]) {
      ValidateIntOrPercent(most, rolling_at / "maxUnavailable", errors);
      if (IsZero(most)) errors.Invalid(rolling_at / "maxUnavailable", most, "cannot be 0");
      ValidateAtMost100Percent(most, rolling_at / "maxUnavailable", errors);
    }
  } else {
    errors.InvalidRaw(here, InternalJson(strategy, "io.k8s.api.apps.v1.StatefulSetUpdateStrategy"),
                      "must be 'RollingUpdate' or 'OnDelete'");
  }
}

// The template as its Pods will look: claims of the set are volumes of theirs.
Object StatefulTemplate(Value spec) {
  Editor edit;
  const Mut root = edit.Root();
  for (auto [key, value] : spec["template"].members()) root.Set(key, value);
  const Mut pod = root["spec"];
  pod.Erase("subdomain");
  pod.Erase("hostname");
  const Value claims = spec["volumeClaimTemplates"];
  if (!claims.empty()) {
    const Value given = spec["template"]["spec"]["volumes"];
    pod.Erase("volumes");
    Names names;
    for (Value claim : claims.items()) {
      const std::string name(claim["metadata"]["name"].AsString());
      if (!names.insert(name).second) continue;
      const Mut volume = pod["volumes"].Append();
      volume.Set("name", name);
      volume["persistentVolumeClaim"].Set("claimName", name);
    }
    for (Value v : given.items()) {
      if (!names.contains(v["name"].AsString())) pod["volumes"].Append().Set(v);
    }
  }
  return std::move(edit).Finish();
}

void ValidateStatefulSpec(Value spec, bool create, const At& at, FieldErrors& errors) {
  const std::string_view management = spec["podManagementPolicy"].AsString();
  if (management.empty()) {
    errors.Required(at / "podManagementPolicy", "");
  } else if (management != "OrderedReady" && management != "Parallel") {
    errors.InvalidText(at / "podManagementPolicy", management,
                       "must be 'OrderedReady' or 'Parallel'");
  }
  ValidateStatefulStrategy(spec, at, errors);
  if (const Value retention = spec["persistentVolumeClaimRetentionPolicy"]) {
    const At here = at / "persistentVolumeClaimRetentionPolicy";
    OneOf(retention, "whenDeleted", {"Retain", "Delete"}, here, errors, false);
    OneOf(retention, "whenScaled", {"Retain", "Delete"}, here, errors, false);
  }
  if (create) {
    size_t i = 0;
    for (Value claim : spec["volumeClaimTemplates"].items()) {
      const At here = at.Item("volumeClaimTemplates", i++);
      ValidateClaimSpec(claim["spec"], here / "spec", errors);
    }
  }
  NonNegative(spec, "replicas", at, errors);
  NonNegative(spec, "minReadySeconds", at, errors);
  if (spec["ordinals"]) NonNegative(spec["ordinals"], "start", at / "ordinals", errors);
  const std::string_view service = spec["serviceName"].AsString();
  if (create && !service.empty()) {
    Complain(IsDns1123Label(service), service, at / "serviceName", errors);
  }
  ValidateSelector(spec, "statefulset", at, errors);
  const At template_at = at / "template";
  const Result<LabelSelector> selector = LabelSelector::From(spec["selector"]);
  if (!selector) {
    errors.Invalid(at / "selector", spec["selector"], "");
  } else {
    if (!selector->Empty() && !selector->Matches(spec["template"]["metadata"]["labels"])) {
      InvalidLabels(spec["template"], template_at, errors);
    }
    const Object as_pod = StatefulTemplate(spec);
    ValidatePodTemplateSpec(as_pod.root(), template_at, errors);
    const Value metadata = spec["template"]["metadata"];
    ValidateLabels(metadata["labels"], template_at / "labels", errors);
    ValidateAnnotations(metadata["annotations"], template_at / "annotations", errors);
  }
  ValidateEndless(spec["template"], "StatefulSet", template_at, errors);
}

}  // namespace

void ValidateStatefulSetCreate(Value o, FieldErrors& errors) {
  const At at("spec");
  ValidateStatefulSpec(o["spec"], true, at, errors);
}

void ValidateStatefulSetUpdate(Value o, Value old, FieldErrors& errors) {
  const At at("spec");
  ValidateStatefulSpec(o["spec"], false, at, errors);
  constexpr std::string_view kMutable[] = {"replicas",
                                           "template",
                                           "updateStrategy",
                                           "minReadySeconds",
                                           "ordinals",
                                           "revisionHistoryLimit",
                                           "persistentVolumeClaimRetentionPolicy"};
  const auto changed = [&](Value a, Value b) {
    for (auto [key, value] : a.members()) {
      if (std::ranges::find(kMutable, key) == std::end(kMutable) && !Equal(value, b[key])) {
        return true;
      }
    }
    return false;
  };
  if (changed(o["spec"], old["spec"]) || changed(old["spec"], o["spec"])) {
    errors.Forbidden(at,
                     "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                     "'template', 'updateStrategy', 'revisionHistoryLimit', "
                     "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
  }
}

void ValidateStatefulSetStatus(Value o, Value old, FieldErrors& errors) {
  const At at("status");
  ValidateCounts(o["status"],
                 {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                  "availableReplicas", "observedGeneration", "collisionCount"},
                 {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}, at,
                 errors);
  ValidateAvailable(o["status"], "status.readyReplicas", at, errors);
  ValidateCollisions(o["status"], old["status"], at, errors);
}

void ValidateReplicationController(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  NonNegative(spec, "minReadySeconds", at, errors);
  if (spec["selector"].empty()) errors.Required(at / "selector", "");
  if (!spec["replicas"]) {
    errors.Required(at / "replicas", "");
  } else {
    NonNegative(spec, "replicas", at, errors);
  }
  const Value template_ = spec["template"];
  const At here = at / "template";
  if (!template_) return errors.Required(here, "");
  const LabelSelector selector = LabelSelector::FromMap(spec["selector"]);
  if (!selector.Empty() && !selector.Matches(template_["metadata"]["labels"])) {
    InvalidLabels(template_, here, errors);
  }
  ValidatePodTemplateSpec(template_, here, errors);
  ValidateEndless(template_, "ReplicationController", here, errors);
}

void ValidatePodTemplateObject(Value o, FieldErrors& errors) {
  const At at("template");
  ValidatePodTemplateSpec(o["template"], at, errors);
}

void ValidateRevision(Value o, FieldErrors& errors) {
  const At root;
  NonNegative(o, "revision", root, errors);
}

void ValidateRevisionCreate(Value o, FieldErrors& errors) {
  ValidateRevision(o, errors);
  if (!o["data"]) errors.Required("data", "data is mandatory");
}

void ValidateRevisionUpdate(Value o, Value old, FieldErrors& errors) {
  Immutable(o["data"], old["data"], At("data"), errors);
}

}  // namespace sextant::api
