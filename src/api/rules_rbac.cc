// Roles and bindings. Source: pkg/apis/rbac/validation/validation.go.
#include "api/rules_kinds.h"
#include "api/selector.h"

namespace sextant::api {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void ValidatePolicyRules(Value rules, bool namespaced, FieldErrors& errors) {
  const At root;
  size_t i = 0;
  for (Value rule : rules.items()) {
    const At at = root.Item("rules", i++);
    if (rule["verbs"].empty()) {
      errors.Required(at / "verbs", "verbs must contain at least one value");
    }
    const Value urls = rule["nonResourceURLs"];
    const At urls_at = at / "nonResourceURLs";
    if (!urls.empty()) {
      if (namespaced) {
        errors.Invalid(urls_at, urls, "namespaced rules cannot apply to non-resource URLs");
      }
      if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
          !rule["resourceNames"].empty()) {
        errors.Invalid(urls_at, urls,
                       "rules cannot apply to both regular resources and non-resource URLs");
      }
      continue;
    }
    if (rule["apiGroups"].empty()) {
      errors.Required(at / "apiGroups", "resource rules must supply at least one api group");
    }
    if (rule["resources"].empty()) {
      errors.Required(at / "resources", "resource rules must supply at least one resource");
    }
  }
}

void ValidateSubject(Value s, bool namespaced, const At& at, FieldErrors& errors) {
  const std::string_view name = s["name"].AsString();
  const std::string_view kind = s["kind"].AsString();
  const std::string_view group = s["apiGroup"].AsString();
  if (name.empty()) errors.Required(at / "name", "");
  if (kind == "ServiceAccount") {
    if (!name.empty()) Complain(NameIsDnsSubdomain(name, false), name, at / "name", errors);
    if (!group.empty()) NotSupported(at / "apiGroup", group, {""}, errors);
    if (!namespaced && s["namespace"].AsString().empty()) errors.Required(at / "namespace", "");
  } else if (kind == "User" || kind == "Group") {
    if (group != kGroup) NotSupported(at / "apiGroup", group, {kGroup}, errors);
  } else {
    NotSupported(at / "kind", kind, {"ServiceAccount", "User", "Group"}, errors);
  }
}

void ValidateBinding(Value o, bool namespaced, FieldErrors& errors) {
  const At root;
  const At at("roleRef");
  const Value ref = o["roleRef"];
  const std::string_view kind = ref["kind"].AsString();
  const std::string_view name = ref["name"].AsString();
  if (ref["apiGroup"].AsString() != kGroup) {
    NotSupported(at / "apiGroup", ref["apiGroup"].AsString(), {kGroup}, errors);
  }
  if (namespaced) {
    OneOf(ref, "kind", {"Role", "ClusterRole"}, at, errors, false);
  } else if (kind != "ClusterRole") {
    NotSupported(at / "kind", kind, {"ClusterRole"}, errors);
  }
  if (name.empty()) {
    errors.Required(at / "name", "");
  } else {
    Complain(IsPathSegmentName(name), name, at / "name", errors);
  }
  size_t i = 0;
  for (Value s : o["subjects"].items()) {
    ValidateSubject(s, namespaced, root.Item("subjects", i++), errors);
  }
}

}  // namespace

void ValidateRole(Value o, FieldErrors& errors) { ValidatePolicyRules(o["rules"], true, errors); }

void ValidateClusterRole(Value o, FieldErrors& errors) {
  ValidatePolicyRules(o["rules"], false, errors);
  const Value aggregation = o["aggregationRule"];
  if (!aggregation) return;
  const At at("aggregationRule");
  const Value selectors = aggregation["clusterRoleSelectors"];
  if (selectors.empty()) {
    errors.Required(at / "clusterRoleSelectors",
                    "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
  size_t i = 0;
  for (Value selector : selectors.items()) {
    const At here = at.Item("clusterRoleSelectors", i++);
    ValidateLabelSelector(selector, here, errors);
    if (!LabelSelector::From(selector)) {
      errors.InvalidRaw(here, "null", "invalid label selector.");
    }
  }
}

void ValidateRoleBinding(Value o, FieldErrors& errors) { ValidateBinding(o, true, errors); }

void ValidateClusterRoleBinding(Value o, FieldErrors& errors) { ValidateBinding(o, false, errors); }

void ValidateRoleRefUnchanged(Value o, Value old, FieldErrors& errors) {
  if (Same(o["roleRef"], old["roleRef"])) return;
  errors.InvalidRaw("roleRef", InternalJson(o["roleRef"], "io.k8s.api.rbac.v1.RoleRef"),
                    "cannot change roleRef");
}

}  // namespace sextant::api
