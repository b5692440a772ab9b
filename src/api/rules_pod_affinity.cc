// Where a Pod may go: affinity, tolerations, topology spread. Source: validation.go.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_pod.h"

namespace sextant::api {
namespace {

void ValidateNodeRequirement(Value rq, bool invalid_values_ok, const At& at, FieldErrors& errors) {
  const std::string_view op = rq["operator"].AsString();
  const Value values = rq["values"];
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.Required(at / "values", "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.Forbidden(at / "values",
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1) {
      errors.Required(at / "values",
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.InvalidText(at / "operator", op, "not a valid selector operator");
  }
  Complain(IsQualifiedName(rq["key"].AsString()), rq["key"].AsString(), at / "key", errors);
  if (invalid_values_ok) return;
  size_t i = 0;
  for (Value v : values.items()) {
    Complain(IsLabelValue(v.AsString()), v.AsString(), at.Item("values", i++), errors);
  }
}

void ValidateNodeField(Value rq, const At& at, FieldErrors& errors) {
  const std::string_view op = rq["operator"].AsString();
  if (op != "In" && op != "NotIn") {
    errors.InvalidText(at / "operator", op, "not a valid selector operator");
  } else if (rq["values"].size() != 1) {
    errors.Required(at / "values",
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                    "selector");
  }
  const std::string_view key = rq["key"].AsString();
  if (key != "metadata.name") {
    errors.InvalidText(at / "key", key, "not a valid field selector key");
    return;
  }
  size_t i = 0;
  for (Value v : rq["values"].items()) {
    Complain(NameIsDnsSubdomain(v.AsString(), false), v.AsString(), at.Item("values", i++), errors);
  }
}

void ValidateNodeTerm(Value term, bool invalid_values_ok, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value rq : term["matchExpressions"].items()) {
    ValidateNodeRequirement(rq, invalid_values_ok, at.Item("matchExpressions", i++), errors);
  }
  i = 0;
  for (Value rq : term["matchFields"].items()) {
    ValidateNodeField(rq, at.Item("matchFields", i++), errors);
  }
}

void ValidateWeight(Value term, const At& at, FieldErrors& errors) {
  const int64_t weight = term["weight"].AsInt();
  if (weight <= 0 || weight > 100) {
    errors.InvalidRaw(at / "weight", std::to_string(weight), "must be in the range 1-100");
  }
}

void ValidateLabelKeys(Value keys, Value selector, const At& at, FieldErrors& errors) {
  if (keys.empty()) return;
  if (!selector) {
    return errors.Forbidden(at, "must not be specified when labelSelector is not set");
  }
  size_t i = 0;
  for (Value key : keys.items()) {
    Complain(IsQualifiedName(key.AsString()), key.AsString(), at.Item("", i++), errors);
  }
}

void ValidateMatchLabelKeys(Value term, const At& at, FieldErrors& errors) {
  const Value match = term["matchLabelKeys"];
  const Value mismatch = term["mismatchLabelKeys"];
  const Value selector = term["labelSelector"];
  ValidateLabelKeys(match, selector, at / "matchLabelKeys", errors);
  ValidateLabelKeys(mismatch, selector, at / "mismatchLabelKeys", errors);
  const auto index = [](Value list, std::string_view key) {
    int64_t found = -1;  // the last one counts
    int64_t i = 0;
    for (Value item : list.items()) {
      if (item.AsString() == key) found = i;
      ++i;
    }
    return found;
  };
  Names seen;
  for (auto [key, value] : selector["matchLabels"].members()) seen.emplace(key);
  for (Value expr : selector["matchExpressions"].items()) {
    const std::string_view key = expr["key"].AsString();
    const int64_t i = index(match, key);
    if (i >= 0 && seen.contains(key)) {
      errors.InvalidText(at.Item("", static_cast<size_t>(i)), key,
                         "exists in both matchLabelKeys and labelSelector");
    }
    seen.emplace(key);
  }
  size_t i = 0;
  for (Value key : match.items()) {
    const At here = at.Item("matchLabelKeys", i++);
    if (index(mismatch, key.AsString()) >= 0) {
      errors.InvalidText(here, key.AsString(),
                         "exists in both matchLabelKeys and mismatchLabelKeys");
    }
  }
}

void ValidatePodTerm(Value term, const At& at, FieldErrors& errors) {
  ValidateLabelSelector(term["labelSelector"], at / "labelSelector", errors);
  ValidateLabelSelector(term["namespaceSelector"], at / "namespaceSelector", errors);
  for (Value ns : term["namespaces"].items()) {
    Complain(NameIsDnsLabel(ns.AsString(), false), ns.AsString(), at / "namespace", errors);
  }
  ValidateMatchLabelKeys(term, at, errors);
  const std::string_view key = term["topologyKey"].AsString();
  if (key.empty()) errors.Required(at / "topologyKey", "can not be empty");
  Complain(IsQualifiedName(key), key, at / "topologyKey", errors);
}

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void ValidatePodTerms(Value affinity, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value term : affinity[kRequired].items()) {
    ValidatePodTerm(term, at.Item(kRequired, i++), errors);
  }
  i = 0;
  for (Value term : affinity[kPreferred].items()) {
    const At here = at.Item(kPreferred, i++);
    ValidateWeight(term, here, errors);
    ValidatePodTerm(term["podAffinityTerm"], here / "podAffinityTerm", errors);
  }
}

void ValidateInclusion(Value constraint, const char* name, const At& at, FieldErrors& errors) {
  OneOf(constraint, name, {"Honor", "Ignore"}, at, errors);
}

}  // namespace

void ValidateNodeSelector(Value selector, const At& at, FieldErrors& errors) {
  if (selector["nodeSelectorTerms"].empty()) {
    return errors.Required(at / "nodeSelectorTerms", "must have at least one node selector term");
  }
  size_t i = 0;
  for (Value term : selector["nodeSelectorTerms"].items()) {
    ValidateNodeTerm(term, false, at.Item("nodeSelectorTerms", i++), errors);
  }
}

void ValidateAffinity(Value affinity, const At& at, FieldErrors& errors) {
  if (const Value node = affinity["nodeAffinity"]) {
    const At here = at / "nodeAffinity";
    if (node[kRequired]) ValidateNodeSelector(node[kRequired], here / kRequired, errors);
    size_t i = 0;
    for (Value term : node[kPreferred].items()) {
      const At term_at = here.Item(kPreferred, i++);
      ValidateWeight(term, term_at, errors);
      ValidateNodeTerm(term["preference"], true, term_at / "preference", errors);
    }
  }
  ValidatePodTerms(affinity["podAffinity"], at / "podAffinity", errors);
  ValidatePodTerms(affinity["podAntiAffinity"], at / "podAntiAffinity", errors);
}

void ValidateTaintEffect(Value effect, const At& at, FieldErrors& errors) {
  const std::string_view text = effect.AsString();
  if (text == "NoSchedule" || text == "PreferNoSchedule" || text == "NoExecute") return;
  NotSupported(at, text, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
}

void ValidateTolerations(Value tolerations, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value t : tolerations.items()) {
    const At here = at.Item("", i++);
    const std::string_view key = t["key"].AsString();
    const std::string_view op = t["operator"].AsString();
    const std::string_view value = t["value"].AsString();
    const std::string_view effect = t["effect"].AsString();
    if (!key.empty()) {
      Complain(IsQualifiedName(key), key, here / "key", errors);
    } else if (op != "Exists") {
      errors.InvalidText(here / "operator", op,
                         "operator must be Exists when `key` is empty, which means \"match all "
                         "values and all keys\"");
    }
    if (t["tolerationSeconds"] && effect != "NoExecute") {
      errors.InvalidText(here / "effect", effect,
                         "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    if (op == "Equal" || op.empty()) {
      const Complaints complaints = IsLabelValue(value);
      if (!complaints.empty()) {
        errors.InvalidText(here / "operator", value, fmt::format("{}", fmt::join(complaints, ";")));
      }
    } else if (op == "Exists") {
      if (!value.empty()) {
        errors.InvalidText(here / "operator", value,
                           "value must be empty when `operator` is 'Exists'");
      }
    } else if (op == "Lt" || op == "Gt") {
      NotSupported(here / "operator", op, {"Equal", "Exists", "Lt", "Gt"}, errors);
    } else {
      NotSupported(here / "operator", op, {"Equal", "Exists"}, errors);
    }
    if (!effect.empty()) ValidateTaintEffect(t["effect"], here / "effect", errors);
  }
}

void ValidateTopologySpread(Value constraints, const At& at, FieldErrors& errors) {
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Value c = constraints.at(i);
    const At here = at.Item("", i);
    const std::string_view key = c["topologyKey"].AsString();
    const std::string_view action = c["whenUnsatisfiable"].AsString();
    if (c["maxSkew"].AsInt() <= 0) {
      errors.InvalidRaw(here / "maxSkew", std::to_string(c["maxSkew"].AsInt()),
                        "must be greater than zero");
    }
    if (key.empty()) errors.Required(here / "topologyKey", "can not be empty");
    if (action != "DoNotSchedule" && action != "ScheduleAnyway") {
      NotSupported(here / "whenUnsatisfiable", action, {"DoNotSchedule", "ScheduleAnyway"}, errors);
    }
    for (size_t j = i + 1; j < constraints.size(); ++j) {
      const Value other = constraints.at(j);
      if (other["topologyKey"].AsString() != key ||
          other["whenUnsatisfiable"].AsString() != action) {
        continue;
      }
      errors.Duplicate(here / "{topologyKey, whenUnsatisfiable}",
                       fmt::format("{{{}, {}}}", key, action));
      break;
    }
    if (const Value domains = c["minDomains"]) {
      if (domains.AsInt() <= 0) {
        errors.Invalid(here / "minDomains", domains, "must be greater than zero");
      }
      if (action != "DoNotSchedule") {
        errors.Invalid(here / "minDomains", domains,
                       fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, "
                                   "not {}",
                                   action));
      }
    }
    ValidateInclusion(c, "nodeAffinityPolicy", here, errors);
    ValidateInclusion(c, "nodeTaintsPolicy", here, errors);
    ValidateMatchLabelKeys(c, here, errors);
    ValidateLabelSelector(c["labelSelector"], here / "labelSelector", errors);
  }
}

}  // namespace sextant::api
