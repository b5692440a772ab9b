// Limits, quotas, budgets and priorities. Source: pkg/apis/core, policy and scheduling validation.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int64_t kHighestUserPriority = 1000000000;

// One resource of a limit, in the maps that name it.
struct Bounds {
  std::optional<Quantity> min, max, fallback, request, ratio;
};

class Limit {
 public:
  Limit(Value item, const At& at, FieldErrors& errors) : item_(item), at_(at), errors_(errors) {}

  void Validate() {
    const std::string_view type = item_["type"].AsString();
    Take("max", &Bounds::max);
    Take("min", &Bounds::min);
    if (type == "Pod") {
      for (const char* list : {"default", "defaultRequest"}) {
        if (!item_[list].empty()) {
          errors_.Forbidden(at_ / list, "may not be specified when `type` is 'Pod'");
        }
      }
    } else {
      Take("default", &Bounds::fallback);
      Take("defaultRequest", &Bounds::request);
    }
    if (type == "PersistentVolumeClaim" && !item_["min"]["storage"] && !item_["max"]["storage"]) {
      errors_.Required(at_ / "limits",
                       "either minimum or maximum storage value is required, but neither was "
                       "provided");
    }
    Take("maxLimitRequestRatio", &Bounds::ratio);
    for (const auto& [name, bounds] : bounds_) Compare(name, bounds);
  }

 private:
  void Take(const char* list, std::optional<Quantity> Bounds::* which) {
    for (auto [name, quantity] : item_[list].members()) {
      const At list_at = at_ / list;
      const std::string_view type = item_["type"].AsString();
      if (type == "Pod" || type == "Container") {
        ValidateContainerResourceName(name, list_at.Key("", name), errors_);
      } else {
        ValidateResourceName(name, list_at.Key("", name), errors_);
      }
      bounds_[std::string(name)].*which = Quantity::ParseOrZero(quantity.AsString());
    }
  }

  void Bad(const char* list, std::string_view name, const Quantity& shown, std::string why) {
    errors_.InvalidText(at_.Key(list, name), shown.ToString(), std::move(why));
  }

  void Above(const char* list, std::string_view name, const std::optional<Quantity>& low,
             const std::optional<Quantity>& high, const Quantity& shown, const char* text) {
    if (!low || !high || *low <= *high) return;
    Bad(list, name, shown, fmt::format(fmt::runtime(text), low->ToString(), high->ToString()));
  }

  void Compare(std::string_view name, const Bounds& b) {
    const Quantity none;
    Above("min", name, b.min, b.max, b.min.value_or(none),
          "min value {} is greater than max value {}");
    Above("defaultRequest", name, b.min, b.request, b.request.value_or(none),
          "min value {} is greater than default request value {}");
    Above("defaultRequest", name, b.request, b.max, b.request.value_or(none),
          "default request value {} is greater than max value {}");
    Above("defaultRequest", name, b.request, b.fallback, b.request.value_or(none),
          "default request value {} is greater than default limit value {}");
    Above("default", name, b.min, b.fallback, b.min.value_or(none),
          "min value {} is greater than default value {}");
    Above("default", name, b.fallback, b.max, b.max.value_or(none),
          "default value {} is greater than max value {}");
    if (b.ratio && *b.ratio < Quantity(1)) {
      Bad("maxLimitRequestRatio", name, *b.ratio,
          fmt::format("ratio {} is less than 1", b.ratio->ToString()));
    }
    if (b.ratio && b.min && b.max) {
      const double most = b.max->AsDouble() / b.min->AsDouble();
      if (b.ratio->AsDouble() > most) {
        Bad("maxLimitRequestRatio", name, *b.ratio,
            fmt::format("ratio {} is greater than max/min = {:f}", b.ratio->ToString(), most));
      }
    }
    if (!IsOvercommitAllowed(name) && b.fallback && b.request && *b.fallback != *b.request) {
      Bad("defaultRequest", name, *b.request,
          fmt::format("default value {} must equal to defaultRequest value {} in {}",
                      b.fallback->ToString(), b.request->ToString(), name));
    }
  }

  Value item_;
  const At& at_;
  FieldErrors& errors_;
  std::map<std::string, Bounds> bounds_;
};

}  // namespace

void ValidateLimitRange(Value o, FieldErrors& errors) {
  const At spec("spec");
  Names types;
  size_t i = 0;
  for (Value item : o["spec"]["limits"].items()) {
    const At at = spec.Item("limits", i++);
    const std::string_view type = item["type"].AsString();
    const Complaints complaints = IsQualifiedName(type);
    Complain(complaints, type, at / "type", errors);
    if (complaints.empty() && type.find('/') == std::string_view::npos && type != "Pod" &&
        type != "Container" && type != "PersistentVolumeClaim") {
      errors.InvalidText(at / "type", type, "must be a standard limit type or fully qualified");
    }
    if (!types.emplace(type).second) errors.Duplicate(at / "type", type);
    Limit(item, at, errors).Validate();
  }
}

namespace {

constexpr std::string_view kScopes[] = {"Terminating",          "NotTerminating",
                                        "BestEffort",           "NotBestEffort",
                                        "PriorityClass",        "CrossNamespacePodAffinity",
                                        "VolumeAttributesClass"};

bool IsComputeOrPods(std::string_view resource) {
  constexpr std::string_view kPodResources[] = {"pods",
                                                "cpu",
                                                "memory",
                                                "requests.cpu",
                                                "requests.memory",
                                                "limits.cpu",
                                                "limits.memory",
                                                "ephemeral-storage",
                                                "requests.ephemeral-storage",
                                                "limits.ephemeral-storage"};
  return std::ranges::find(kPodResources, resource) != std::end(kPodResources) ||
         IsHugePages(resource) || resource.starts_with("requests.hugepages-");
}

bool ScopeFits(std::string_view scope, std::string_view resource) {
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") {
    return resource == "persistentvolumeclaims" || resource == "requests.storage";
  }
  if (std::ranges::find(kScopes, scope) == std::end(kScopes)) return true;
  return IsComputeOrPods(resource);
}

void ValidateScopePairs(const Names& scopes, Value shown, const At& at, FieldErrors& errors) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"}};
  for (const auto& [one, other] : kPairs) {
    if (scopes.contains(one) && scopes.contains(other)) {
      errors.Invalid(at, shown, "conflicting scopes");
    }
  }
}

void ValidateAmounts(Value amounts, const At& at, FieldErrors& errors) {
  for (auto [name, quantity] : amounts.members()) {
    const At here = at.Key("", name);
    ValidateResourceName(name, here, errors);
    if (name.find('/') == std::string_view::npos && !IsStandardQuotaResource(name)) {
      errors.InvalidText(here, name, "must be a standard resource for quota");
    }
    ValidateAmount(name, quantity, here, errors);
  }
}

void ValidateScopes(Value spec, const At& at, FieldErrors& errors) {
  const Value scopes = spec["scopes"];
  const At here = at / "scopes";
  Names seen;
  for (Value scope : scopes.items()) {
    const std::string_view name = scope.AsString();
    if (std::ranges::find(kScopes, name) == std::end(kScopes)) {
      errors.Invalid(here, scopes, "unsupported scope");
    }
    for (auto [resource, q] : spec["hard"].members()) {
      if (IsStandardQuotaResource(resource) && !ScopeFits(name, resource)) {
        errors.Invalid(here, scopes, "unsupported scope applied to resource");
      }
    }
    seen.emplace(name);
  }
  ValidateScopePairs(seen, scopes, here, errors);
}

void ValidateScopeSelector(Value spec, const At& at, FieldErrors& errors) {
  const At here = at / "scopeSelector.matchExpressions";
  Names seen;
  for (Value rq : spec["scopeSelector"]["matchExpressions"].items()) {
    const std::string_view scope = rq["scopeName"].AsString();
    const std::string_view op = rq["operator"].AsString();
    if (std::ranges::find(kScopes, scope) == std::end(kScopes)) {
      errors.InvalidText(here / "scopeName", scope, "unsupported scope");
    }
    for (auto [resource, q] : spec["hard"].members()) {
      if (IsStandardQuotaResource(resource) && !ScopeFits(scope, resource)) {
        errors.InvalidRaw(here,
                          InternalJson(spec["scopeSelector"], "io.k8s.api.core.v1.ScopeSelector"),
                          "unsupported scope applied to resource");
      }
    }
    if (scope != "PriorityClass" && scope != "VolumeAttributesClass" && op != "Exists" &&
        std::ranges::find(kScopes, scope) != std::end(kScopes)) {
      errors.InvalidText(here / "operator", op,
                         "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                         "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                         "ResourceQuotaScopeNotBestEffort or "
                         "ResourceQuotaScopeCrossNamespacePodAffinity");
    }
    if (op == "In" || op == "NotIn") {
      if (rq["values"].empty()) {
        errors.Required(here / "values",
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                        "selector");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!rq["values"].empty()) {
        errors.Invalid(here / "values", rq["values"],
                       "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                       "selector");
      }
    } else {
      errors.InvalidText(here / "operator", op, "not a valid selector operator");
    }
    seen.emplace(scope);
  }
  ValidateScopePairs(seen, spec["scopes"], here, errors);
}

}  // namespace

void ValidateResourceQuota(Value o, FieldErrors& errors) {
  const At at("spec");
  ValidateAmounts(o["spec"]["hard"], at / "hard", errors);
  ValidateScopes(o["spec"], at, errors);
  ValidateScopeSelector(o["spec"], at, errors);
}

void ValidateResourceQuotaUpdate(Value o, Value old, FieldErrors& errors) {
  Names now;
  Names before;
  for (Value s : o["spec"]["scopes"].items()) now.emplace(s.AsString());
  for (Value s : old["spec"]["scopes"].items()) before.emplace(s.AsString());
  if (now != before) {
    errors.Invalid("spec.scopes", o["spec"]["scopes"], std::string(kImmutable));
  }
}

void ValidateResourceQuotaStatus(Value o, Value, FieldErrors& errors) {
  const At at("status");
  ValidateAmounts(o["status"]["hard"], at / "hard", errors);
  ValidateAmounts(o["status"]["used"], at / "used", errors);
}

void ValidateDisruptionBudget(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  if (spec["minAvailable"] && spec["maxUnavailable"]) {
    errors.InvalidRaw(at, InternalJson(spec, "io.k8s.api.policy.v1.PodDisruptionBudgetSpec"),
                      "minAvailable and maxUnavailable cannot be both set");
  }
  for (const char* name : {"minAvailable", "maxUnavailable"}) {
    if (!spec[name]) continue;
    ValidateIntOrPercent(spec[name], at / name, errors);
    ValidateAtMost100Percent(spec[name], at / name, errors);
  }
  ValidateLabelSelector(spec["selector"], at / "selector", errors);
  OneOf(spec, "unhealthyPodEvictionPolicy", {"AlwaysAllow", "IfHealthyBudget"}, at, errors);
}

void ValidateDisruptionBudgetStatus(Value o, Value, FieldErrors& errors) {
  const At at("status");
  ValidateConditions(o["status"]["conditions"], at / "conditions", errors);
  for (const char* name :
       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    NonNegative(o["status"], name, at, errors);
  }
}

void ValidatePriorityClass(Value o, FieldErrors& errors) {
  struct Known {
    std::string_view name;
    int64_t value;
  };
  constexpr Known kKnown[] = {{"system-node-critical", 2 * kHighestUserPriority + 1000},
                              {"system-cluster-critical", 2 * kHighestUserPriority}};
  const std::string_view name = o["metadata"]["name"].AsString();
  const int64_t value = o["value"].AsInt();
  if (name.starts_with("system-")) {
    const auto* known = std::ranges::find(kKnown, name, &Known::name);
    std::string why;
    if (known == std::end(kKnown)) {
      why = fmt::format("{} is not a known system priority class", name);
    } else if (value != known->value) {
      why = fmt::format("value of {} PriorityClass must be {}", name, known->value);
    } else if (o["globalDefault"].AsBool()) {
      why = fmt::format("globalDefault of {} PriorityClass must be false", name);
    }
    if (!why.empty()) {
      errors.Forbidden("metadata.name",
                       "priority class names with 'system-' prefix are reserved for system use "
                       "only. error: " +
                           why);
    }
  } else if (value > kHighestUserPriority) {
    errors.Forbidden("value", fmt::format("maximum allowed value of a user defined priority is {}",
                                          kHighestUserPriority));
  }
  const At root;
  OneOf(o, "preemptionPolicy", {"PreemptLowerPriority", "Never"}, root, errors);
}

void ValidatePriorityClassUpdate(Value o, Value old, FieldErrors& errors) {
  if (o["value"].AsInt() != old["value"].AsInt()) {
    errors.Forbidden("value", "may not be changed in an update.");
  }
  Immutable(o["preemptionPolicy"], old["preemptionPolicy"], At("preemptionPolicy"), errors);
}

}  // namespace sextant::api
