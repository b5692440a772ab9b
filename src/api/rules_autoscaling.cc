// Autoscalers. Source: pkg/apis/autoscaling/validation and the registry's strategy.
#include <fmt/format.h>

#include <algorithm>

#include "api/conversion.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxPeriodS = 1800;
constexpr int64_t kMaxStabilizationS = 3600;

enum class Group : uint8_t { kAny, kMayBeEmpty, kNeeded };

std::string VersionComplaint(std::string_view version, Group wanted) {
  if (wanted == Group::kAny) return {};
  if (Complaints why = IsGroupVersion(version); !why.empty()) return std::move(why.front());
  if (!GroupVersion::Of(version).group.empty() || wanted == Group::kMayBeEmpty) return {};
  return "apiVersion must specify API group";
}

void ValidateTarget(Value ref, Group group, const At& at, FieldErrors& errors) {
  for (const char* name : {"kind", "name"}) {
    const std::string_view text = ref[name].AsString();
    if (text.empty()) {
      errors.Required(at / name, "");
    } else {
      Complain(IsPathSegmentName(text), text, at / name, errors);
    }
  }
  const std::string_view version = ref["apiVersion"].AsString();
  std::string why = VersionComplaint(version, group);
  if (!why.empty()) errors.InvalidText(at / "apiVersion", version, std::move(why));
}

void Positive(Value target, const char* name, const At& at, FieldErrors& errors) {
  const Value quantity = target[name];
  if (!quantity || Quantity::ParseOrZero(quantity.AsString()) > Quantity(0)) return;
  errors.Invalid(at / name, quantity, "must be positive");
}

void ValidateMetricTarget(Value target, const At& at, FieldErrors& errors) {
  const std::string_view type = target["type"].AsString();
  const At type_at = at / "type";
  if (type.empty()) errors.Required(type_at, "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    errors.InvalidText(type_at, type, "must be either Utilization, Value, or AverageValue");
  }
  Positive(target, "value", at, errors);
  Positive(target, "averageValue", at, errors);
  const Value utilization = target["averageUtilization"];
  if (utilization && utilization.AsInt() < 1) {
    errors.Invalid(at / "averageUtilization", utilization, "must be greater than 0");
  }
}

void ValidateMetricName(Value source, const At& at, FieldErrors& errors) {
  const std::string_view name = source["metric"]["name"].AsString();
  const At metric = at / "metric";
  if (name.empty()) {
    errors.Required(metric / "name", "must specify a metric name");
  } else {
    Complain(IsPathSegmentName(name), name, metric / "name", errors);
  }
}

struct Source {
  std::string_view type;
  const char* member;
};
// In the order in which they are looked at; only the first one there is checked.
constexpr Source kSources[] = {{"Object", "object"},
                               {"External", "external"},
                               {"Pods", "pods"},
                               {"Resource", "resource"},
                               {"ContainerResource", "containerResource"}};
constexpr Words kTypes = {"ContainerResource", "External", "Object", "Pods", "Resource"};

// One of two targets, and not both where `exclusive`.
struct Choice {
  const char* one;
  const char* other;
  const char* missing;  // where the complaint about none of them goes
  const char* need;
  const char* extra;  // null where both may be
  const char* both;
};

void ValidateChoice(Value target, const Choice& c, const At& at, FieldErrors& errors) {
  if (!target[c.one] && !target[c.other]) errors.Required(at / c.missing, c.need);
  if (c.extra && target[c.one] && target[c.other]) errors.Forbidden(at / c.extra, c.both);
}

void ValidateContainerOf(Value source, const At& at, FieldErrors& errors) {
  const std::string_view container = source["container"].AsString();
  if (container.empty()) {
    errors.Required(at / "container", "must specify a container");
  } else {
    Complain(IsDns1123Label(container), container, at / "container", errors);
  }
}

void ValidateSource(const Source& which, Value source, Group object_group, const At& at,
                    FieldErrors& errors) {
  static constexpr Choice kObject = {
      "value", "averageValue", "averageValue", "must set either a target value or averageValue",
      nullptr, nullptr};
  static constexpr Choice kExternal = {
      "value",        "averageValue",
      "averageValue", "must set either a target value for metric or a per-pod target",
      "value",        "may not set both a target value for metric and a per-pod target"};
  static constexpr Choice kPods = {"averageValue", "averageValue",
                                   "averageValue", "must specify a positive target averageValue",
                                   nullptr,        nullptr};
  static constexpr Choice kResource = {
      "averageUtilization", "averageValue",
      "averageUtilization", "must set either a target raw value or a target utilization",
      "averageValue",       "may not set both a target raw value and a target utilization"};
  const std::string_view type = which.type;
  const bool by_resource = type == "Resource" || type == "ContainerResource";
  if (type == "Object") {
    ValidateTarget(source["describedObject"], object_group, at / "describedObject", errors);
  }
  if (by_resource) {
    const std::string_view name = source["name"].AsString();
    if (name.empty()) {
      errors.Required(at / "name", "must specify a resource name");
    } else if (type == "ContainerResource") {
      ValidateContainerResourceName(name, at / "name", errors);
    }
    if (type == "ContainerResource") ValidateContainerOf(source, at, errors);
  } else {
    ValidateMetricName(source, at, errors);
  }
  const At target = at / "target";
  ValidateMetricTarget(source["target"], target, errors);
  const Choice& choice = by_resource        ? kResource
                         : type == "Object" ? kObject
                         : type == "Pods"   ? kPods
                                            : kExternal;
  ValidateChoice(source["target"], choice, target, errors);
}

void ValidateMetric(Value metric, Group object_group, const At& at, FieldErrors& errors) {
  const std::string_view type = metric["type"].AsString();
  const At type_at = at / "type";
  const auto* expected = std::ranges::find(kSources, type, &Source::type);
  const bool known = expected != std::end(kSources);
  if (type.empty()) errors.Required(type_at, "must specify a metric source type");
  if (!known) NotSupported(type_at, type, kTypes, errors);
  size_t present = 0;
  for (const Source& source : kSources) {
    if (!metric[source.member] || present++ > 0) continue;
    ValidateSource(source, metric[source.member], object_group, at / source.member, errors);
  }
  if (!known) {
    NotSupported(type_at, type, kTypes, errors);
  } else if (!metric[expected->member]) {
    errors.Required(at / expected->member, "must populate information for the given metric source");
  }
  if (present == 1) return;
  for (const Source& source : kSources) {
    if (!metric[source.member] || (known && &source == expected)) continue;
    errors.Forbidden(at / source.member, "must populate the given metric source only");
  }
}

void ValidateScaling(Value rules, const At& at, FieldErrors& errors) {
  if (!rules) return;
  const Value window = rules["stabilizationWindowSeconds"];
  const At window_at = at / "stabilizationWindowSeconds";
  if (window.AsInt() < 0) {
    errors.Invalid(window_at, window, "must be greater than or equal to zero");
  }
  if (window.AsInt() > kMaxStabilizationS) {
    errors.Invalid(window_at, window,
                   fmt::format("must be less than or equal to {}", kMaxStabilizationS));
  }
  OneOf(rules, "selectPolicy", {"Disabled", "Max", "Min"}, at, errors);
  const Value policies = rules["policies"];
  if (policies.empty()) errors.Required(at / "policies", "must specify at least one Policy");
  size_t i = 0;
  for (Value policy : policies.items()) {
    const At here = at.Item("policies", i++);
    OneOf(policy, "type", {"Percent", "Pods"}, here, errors, false);
    for (const char* name : {"value", "periodSeconds"}) {
      if (policy[name].AsInt() > 0) continue;
      errors.InvalidRaw(here / name, std::to_string(policy[name].AsInt()),
                        "must be greater than zero");
    }
    if (policy["periodSeconds"].AsInt() > kMaxPeriodS) {
      errors.Invalid(here / "periodSeconds", policy["periodSeconds"],
                     fmt::format("must be less than or equal to {}", kMaxPeriodS));
    }
  }
  const Value tolerance = rules["tolerance"];
  if (tolerance && Quantity::ParseOrZero(tolerance.AsString()) < Quantity(0)) {
    errors.Invalid(at / "tolerance", tolerance, std::string(kNotNegative));
  }
}

struct Allowed {
  int64_t least = 1;
  Group target = Group::kNeeded;
  Group object = Group::kMayBeEmpty;
};

void ValidateSpec(Value spec, const Allowed& allowed, FieldErrors& errors) {
  const At at("spec");
  const Value least = spec["minReplicas"];
  const int64_t most = spec["maxReplicas"].AsInt();
  const At most_at = at / "maxReplicas";
  if (least && least.AsInt() < allowed.least) {
    errors.Invalid(at / "minReplicas", least,
                   fmt::format("must be greater than or equal to {}", allowed.least));
  }
  if (most == 0) {
    errors.Required(most_at, "must be set and greater than 0");
  } else if (most < 0) {
    errors.InvalidRaw(most_at, std::to_string(most), "must be greater than or equal to 1");
  }
  if (least && most < least.AsInt()) {
    errors.InvalidRaw(most_at, std::to_string(most),
                      "must be greater than or equal to `minReplicas`");
  }
  ValidateTarget(spec["scaleTargetRef"], allowed.target, at / "scaleTargetRef", errors);
  bool outside = false;
  size_t i = 0;
  for (Value metric : spec["metrics"].items()) {
    ValidateMetric(metric, allowed.object, at.Item("metrics", i++), errors);
    const std::string_view type = metric["type"].AsString();
    outside |= type == "Object" || type == "External";
  }
  if (least && least.AsInt() == 0 && !outside) {
    errors.Forbidden(at / "metrics",
                     "must specify at least one Object or External metric to support scaling to "
                     "zero replicas");
  }
  const At behavior = at / "behavior";
  for (const char* name : {"scaleUp", "scaleDown"}) {
    ValidateScaling(spec["behavior"][name], behavior / name, errors);
  }
}

// What the old object has, an update may keep.
Allowed AllowedFor(Value spec, Value old) {
  Allowed allowed;
  const Value target = spec["scaleTargetRef"];
  if (target["kind"].AsString() == "ReplicationController") allowed.target = Group::kMayBeEmpty;
  if (!old) return allowed;
  const Value before = old["scaleTargetRef"];
  if (Same(before["apiVersion"], target["apiVersion"]) && Same(before["kind"], target["kind"])) {
    allowed.target = Group::kAny;
  }
  if (old["minReplicas"] && old["minReplicas"].AsInt() == 0) allowed.least = 0;
  for (Value metric : old["metrics"].items()) {
    const std::string_view version = metric["object"]["describedObject"]["apiVersion"].AsString();
    if (!VersionComplaint(version, Group::kMayBeEmpty).empty()) allowed.object = Group::kAny;
  }
  return allowed;
}

// Either version is judged as what is stored.
struct Stored {
  explicit Stored(Value o)
      : object(AutoscalerToStored(o)), spec((object ? object.root() : o)["spec"]) {}

  const Object object;  // empty where it is stored as it is
  const Value spec;
};

}  // namespace

void ValidateAutoscalerCreate(Value o, FieldErrors& errors) {
  const Stored now(o);
  ValidateSpec(now.spec, AllowedFor(now.spec, {}), errors);
}

void ValidateAutoscalerUpdate(Value o, Value old, FieldErrors& errors) {
  const Stored now(o);
  const Stored before(old);
  ValidateSpec(now.spec, AllowedFor(now.spec, before.spec), errors);
}

void ValidateAutoscalerStatus(Value o, Value, FieldErrors& errors) {
  const At at("status");
  NonNegative(o["status"], "currentReplicas", at, errors);
  NonNegative(o["status"], "desiredReplicas", at, errors);
}

}  // namespace sextant::api
