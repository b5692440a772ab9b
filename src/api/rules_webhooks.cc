// Admission webhooks, policies and their bindings. Expressions (CEL) are not looked into.
// Source: pkg/apis/admissionregistration/validation, apiserver's pkg/util/webhook.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/lists.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr int kMaxConditions = 64;
constexpr int64_t kMaxTimeoutS = 30;
constexpr size_t kMaxAuditAnnotations = 20;
constexpr Words kFailurePolicies = {"Fail", "Ignore"};
constexpr Words kMatchPolicies = {"Equivalent", "Exact"};

// A list where "*" stands alone; the items must not be "" unless said otherwise.
void ValidateWildList(Value list, bool blank_ok, const char* what, const At& at,
                      FieldErrors& errors) {
  if (list.empty()) errors.Required(at, "");
  if (list.size() > 1 && Holds(list, "*")) {
    errors.Invalid(at, list, fmt::format("if '*' is present, must not specify other {}", what));
  }
  size_t i = 0;
  for (Value item : list.items()) {
    const At here = at.Item("", i++);
    if (!blank_ok && item.AsString().empty()) errors.Required(here, "");
  }
}

void ValidateResources(Value resources, const At& at, FieldErrors& errors) {
  if (resources.empty()) errors.Required(at, "");
  Names every_sub;       // x of x/*
  Names every_resource;  // x of */x
  bool plain = false;    // whether the last one without a subresource is named
  size_t i = 0;
  for (Value item : resources.items()) {
    const std::string_view text = item.AsString();
    const At here = at.Item("", i++);
    if (text.empty()) {
      errors.Required(here, "");
      continue;
    }
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      plain = text != "*";
      continue;
    }
    const std::string_view resource = text.substr(0, slash);
    const std::string_view sub = text.substr(slash + 1);
    if (every_sub.contains(resource)) {
      errors.InvalidText(here, text,
                         fmt::format("if '{}/*' is present, must not specify {}", resource, text));
    }
    if (every_resource.contains(sub)) {
      errors.InvalidText(here, text,
                         fmt::format("if '*/{}' is present, must not specify {}", sub, text));
    }
    if (sub == "*") every_sub.emplace(resource);
    if (resource == "*") every_resource.emplace(sub);
  }
  if (resources.size() > 1 && Holds(resources, "*/*")) {
    errors.Invalid(at, resources, "if '*/*' is present, must not specify other resources");
  }
  if (plain && Holds(resources, "*")) {
    errors.Invalid(at, resources,
                   "if '*' is present, must not specify other resources without subresources");
  }
}

void ValidateAdmissionRule(Value rule, const At& at, FieldErrors& errors) {
  const Value operations = rule["operations"];
  const At operations_at = at / "operations";
  if (operations.empty()) errors.Required(operations_at, "");
  if (operations.size() > 1 && Holds(operations, "*")) {
    errors.Invalid(operations_at, operations,
                   "if '*' is present, must not specify other operations");
  }
  static constexpr Words kOperations = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
  size_t i = 0;
  for (Value operation : operations.items()) {
    const At here = at.Item("operations", i++);
    const std::string_view text = operation.AsString();
    if (std::ranges::find(kOperations, text) == kOperations.end()) {
      NotSupported(here, text, kOperations, errors);
    }
  }
  ValidateWildList(rule["apiGroups"], true, "API groups", at / "apiGroups", errors);
  ValidateWildList(rule["apiVersions"], false, "API versions", at / "apiVersions", errors);
  ValidateResources(rule["resources"], at / "resources", errors);
  OneOf(rule, "scope", {"*", "Cluster", "Namespaced"}, at, errors);
}

void ValidateMatchConditions(Value conditions, const At& at, FieldErrors& errors) {
  if (conditions.size() > kMaxConditions) {
    errors.TooMany(at, static_cast<int>(conditions.size()), kMaxConditions);
  }
  Names names;
  size_t i = 0;
  for (Value condition : conditions.items()) {
    const At here = at.Item("", i++);
    if (IsBlank(condition["expression"].AsString())) errors.Required(here / "expression", "");
    const std::string_view name = condition["name"].AsString();
    if (name.empty()) {
      errors.Required(here / "name", "");
      continue;
    }
    Complain(IsQualifiedName(name), name, here / "name", errors);
    if (!names.emplace(name).second) errors.Duplicate(here / "name", name);
  }
}

// --- webhooks

void ValidateUrl(std::string_view url, const At& at, FieldErrors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const size_t colon = url.find(':');
  const size_t slash = url.find('/');
  const std::string_view scheme =
      colon < slash && colon != std::string_view::npos ? url.substr(0, colon) : "";
  std::string_view rest = scheme.empty() ? url : url.substr(colon + 1);
  const auto cut = [&rest](char mark) {
    const size_t found = rest.find(mark);
    const std::string_view tail =
        found == std::string_view::npos ? std::string_view() : rest.substr(found + 1);
    rest = rest.substr(0, found);
    return tail;
  };
  const std::string_view fragment = cut('#');
  const std::string_view query = cut('?');
  std::string_view host;
  if (rest.starts_with("//")) host = rest.substr(2, rest.find('/', 2) - 2);
  const size_t user = host.rfind('@');
  if (scheme != "https") {
    errors.InvalidText(at, scheme, fmt::format("'https' is the only allowed URL scheme{}", kForm));
  }
  if (host.substr(user == std::string_view::npos ? 0 : user + 1).empty()) {
    errors.InvalidText(at, "", fmt::format("host must be specified{}", kForm));
  }
  if (user != std::string_view::npos) {
    errors.InvalidText(at, host.substr(0, user), "user information is not permitted in the URL");
  }
  if (!fragment.empty()) {
    errors.InvalidText(at, fragment, "fragments are not permitted in the URL");
  }
  if (!query.empty()) {
    errors.InvalidText(at, query, "query parameters are not permitted in the URL");
  }
}

void ValidateServicePath(std::string_view path, const At& at, FieldErrors& errors) {
  if (path.empty() || path == "/") return;
  if (path == "//") return errors.InvalidText(at, path, "segment[0] may not be empty");
  if (!path.starts_with('/')) errors.InvalidText(at, path, "must start with a '/'");
  std::string_view rest = path.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (size_t i = 0;; ++i) {
    const size_t slash = rest.find('/');
    const std::string_view step = rest.substr(0, slash);
    if (step.empty()) {
      errors.InvalidText(at, path, fmt::format("segment[{}] may not be empty", i));
    } else {
      for (const std::string& why : IsDns1123Subdomain(step)) {
        errors.InvalidText(at, path, fmt::format("segment[{}]: {}", i, why));
      }
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

void ValidateHookService(Value service, const At& at, FieldErrors& errors) {
  // The real server passes the two in the other order; each is asked for all the same.
  for (const char* name : {"name", "namespace"}) {
    const char* asked = std::string_view(name) == "name" ? "namespace" : "name";
    if (service[asked].AsString().empty()) errors.Required(at / name, "");
  }
  const int64_t port = service["port"].AsInt();
  const Complaints why = IsPortNumber(port);
  if (!why.empty()) {
    errors.InvalidRaw(at / "port", std::to_string(port),
                      fmt::format("port is not valid: {}", fmt::join(why, ", ")));
  }
  ValidateServicePath(service["path"].AsString(), at / "path", errors);
}

void ValidateHookName(std::string_view name, const At& at, FieldErrors& errors) {
  if (name.empty()) return errors.Required(at, "");
  const Complaints why = IsDns1123Subdomain(name);
  if (!why.empty()) return errors.InvalidText(at, name, fmt::format("{}", fmt::join(why, ",")));
  if (std::ranges::count(name, '.') < 2) {
    errors.InvalidText(at, name,
                       "should be a domain with at least three segments separated by dots");
  }
}

void ValidateReviewVersions(Value versions, bool known_needed, const At& at, FieldErrors& errors) {
  if (versions.empty()) return errors.Required(at, "must specify one of v1, v1beta1");
  Names seen;
  size_t i = 0;
  for (Value version : versions.items()) {
    const std::string_view text = version.AsString();
    const At here = at.Item("", i++);
    if (!seen.emplace(text).second) {
      errors.InvalidText(here, text, "duplicate version");
      continue;
    }
    Complain(IsDns1035Label(text), text, here, errors);
  }
  if (known_needed && !seen.contains("v1") && !seen.contains("v1beta1")) {
    errors.Invalid(at, versions, "must include at least one of v1, v1beta1");
  }
}

// What is asked of every hook, unless the old object already broke it.
struct Strictness {
  bool side_effects = true;
  bool versions = true;
  bool names = true;
  bool selectors = true;
};

bool HasSafeSideEffects(Value hook) {
  const std::string_view said = hook["sideEffects"].AsString();
  return said == "None" || said == "NoneOnDryRun";
}

Strictness StrictnessFor(Value old) {
  Strictness strict;
  Names names;
  for (Value hook : old["webhooks"].items()) {
    const Value versions = hook["admissionReviewVersions"];
    FieldErrors errors;
    const At at;
    ValidateLabelSelector(hook["namespaceSelector"], at, errors);
    ValidateLabelSelector(hook["objectSelector"], at, errors);
    strict.selectors &= errors.empty();
    strict.side_effects &= HasSafeSideEffects(hook);
    strict.versions &= versions.empty() || Holds(versions, "v1") || Holds(versions, "v1beta1");
    strict.names &= names.emplace(hook["name"].AsString()).second;
  }
  return strict;
}

void ValidateSideEffects(Value hook, bool strict, const At& at, FieldErrors& errors) {
  static constexpr Words kSafe = {"None", "NoneOnDryRun"};
  static constexpr Words kAll = {"None", "NoneOnDryRun", "Some", "Unknown"};
  const Words& allowed = strict ? kSafe : kAll;
  if (!hook["sideEffects"]) {
    errors.Required(at / "sideEffects",
                    fmt::format("must specify one of {}", fmt::join(allowed, ", ")));
  } else {
    OneOf(hook, "sideEffects", allowed, at, errors);
  }
}

void ValidateHook(Value hook, const Strictness& strict, const At& at, FieldErrors& errors) {
  ValidateHookName(hook["name"].AsString(), at / "name", errors);
  size_t i = 0;
  for (Value rule : hook["rules"].items()) {
    ValidateAdmissionRule(rule, at.Item("rules", i++), errors);
  }
  OneOf(hook, "failurePolicy", kFailurePolicies, at, errors);
  OneOf(hook, "matchPolicy", kMatchPolicies, at, errors);
  ValidateSideEffects(hook, strict.side_effects, at, errors);
  const Value timeout = hook["timeoutSeconds"];
  if (timeout && (timeout.AsInt() > kMaxTimeoutS || timeout.AsInt() < 1)) {
    errors.Invalid(at / "timeoutSeconds", timeout,
                   "the timeout value must be between 1 and 30 seconds");
  }
  for (const char* name : {"namespaceSelector", "objectSelector"}) {
    ValidateLabelSelector(hook[name], at / name, errors, !strict.selectors);
  }
  OneOf(hook, "reinvocationPolicy", {"IfNeeded", "Never"}, at, errors);
  ValidateWebhookClient(hook["clientConfig"], at / "clientConfig", errors);
  ValidateMatchConditions(hook["matchConditions"], at / "matchConditions", errors);
}

void ValidateHooks(Value o, const Strictness& strict, FieldErrors& errors) {
  const At root;
  Names names;
  size_t i = 0;
  for (Value hook : o["webhooks"].items()) {
    const At at = root.Item("webhooks", i++);
    ValidateHook(hook, strict, at, errors);
    ValidateReviewVersions(hook["admissionReviewVersions"], strict.versions,
                           at / "admissionReviewVersions", errors);
    const std::string_view name = hook["name"].AsString();
    if (strict.names && !name.empty() && !names.emplace(name).second) {
      errors.Duplicate(at / "name", name);
    }
  }
}

// --- policies

void ValidateNamedRules(Value match, const char* list, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value rule : match[list].items()) {
    const At here = at.Item(list, i++);
    Names names;
    size_t j = 0;
    for (Value item : rule["resourceNames"].items()) {
      const std::string_view name = item.AsString();
      const At name_at = here.Item("resourceNames", j++);
      Complain(IsPathSegmentName(name), name, name_at, errors);
      if (!names.emplace(name).second) errors.Duplicate(name_at, name);
    }
    ValidateAdmissionRule(rule, here, errors);
  }
}

void ValidateMatch(Value match, const At& at, FieldErrors& errors) {
  OneOf(match, "matchPolicy", kMatchPolicies, at, errors);
  for (const char* name : {"namespaceSelector", "objectSelector"}) {
    ValidateLabelSelector(match[name], at / name, errors);
  }
  ValidateNamedRules(match, "resourceRules", at, errors);
  ValidateNamedRules(match, "excludeResourceRules", at, errors);
}

void ForbidDelete(Value match, const At& at, FieldErrors& errors) {
  const At rules = at / "resourceRules";
  const At here = rules / "operations";
  for (Value rule : match["resourceRules"].items()) {
    if (Holds(rule["operations"], "DELETE")) {
      NotSupported(here, "DELETE", {"*", "CONNECT", "CREATE", "UPDATE"}, errors);
    }
  }
}

void ValidateParamKind(Value kind, const At& at, FieldErrors& errors) {
  const std::string_view version = kind["apiVersion"].AsString();
  const At version_at = at / "apiVersion";
  const Complaints broken = IsGroupVersion(version);
  Complain(broken, version, version_at, errors);
  if (version.empty()) {
    errors.Required(version_at, "");
  } else if (broken.empty()) {
    const auto [group, name] = GroupVersion::Of(version);
    const Complaints bad_group = group.empty() ? Complaints() : IsDns1123Subdomain(group);
    if (!bad_group.empty()) {
      errors.InvalidText(version_at, group, fmt::format("{}", fmt::join(bad_group, ",")));
    }
    const Complaints bad_name = IsDns1035Label(name);
    if (name.empty()) {
      errors.InvalidText(version_at, version, "version must be specified");
    } else if (!bad_name.empty()) {
      errors.InvalidText(version_at, name, fmt::format("{}", fmt::join(bad_name, ",")));
    }
  }
  const std::string_view text = kind["kind"].AsString();
  if (text.empty()) return errors.Required(at / "kind", "");
  Complain(IsMixedCaseLabel(text), text, at / "kind", errors);
}

bool IsCelName(std::string_view name) {
  constexpr std::string_view kReserved[] = {
      "true",     "false",   "null",      "in",       "as",  "break",  "const",
      "continue", "else",    "for",       "function", "if",  "import", "let",
      "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  const auto good = [](char c) { return c == '_' || IsAlphanumeric(c); };
  if (name.empty() || IsDigit(name[0])) return false;
  return std::ranges::all_of(name, good) &&
         std::ranges::find(kReserved, name) == std::end(kReserved);
}

void ValidateVariables(Value variables, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value variable : variables.items()) {
    const At here = at.Item("variables", i++);
    const std::string_view name = variable["name"].AsString();
    if (IsBlank(name)) {
      errors.Required(here / "name", "name is not specified");
    } else if (!IsCelName(name)) {
      errors.InvalidText(here / "name", name, "must be a valid CEL identifier");
    }
    if (IsBlank(variable["expression"].AsString())) {
      errors.Required(here / "expression", "expression is not specified");
    }
  }
}

// The part that both kinds of policy share.
void ValidatePolicyHead(Value spec, bool mutates, const At& at, FieldErrors& errors) {
  OneOf(spec, "failurePolicy", kFailurePolicies, at, errors, false);
  if (spec["paramKind"]) ValidateParamKind(spec["paramKind"], at / "paramKind", errors);
  const Value match = spec["matchConstraints"];
  const At match_at = at / "matchConstraints";
  if (!match) {
    errors.Required(match_at, "");
  } else {
    ValidateMatch(match, match_at, errors);
    if (match["resourceRules"].empty()) errors.Required(match_at / "resourceRules", "");
    if (mutates) ForbidDelete(match, match_at, errors);
  }
  ValidateMatchConditions(spec["matchConditions"], at / "matchConditions", errors);
  ValidateVariables(spec["variables"], at, errors);
}

void ValidateMessage(Value validation, const char* name, const At& at, FieldErrors& errors) {
  const std::string_view text = validation[name].AsString();
  if (!text.empty() && IsBlank(text)) {
    errors.InvalidText(at / name, text, "must be non-empty if specified");
  }
}

void ValidateOneValidation(Value validation, const At& at, FieldErrors& errors) {
  if (IsBlank(validation["expression"].AsString())) {
    errors.Required(at / "expression", "expression is not specified");
  }
  ValidateMessage(validation, "messageExpression", at, errors);
  ValidateMessage(validation, "message", at, errors);
  if (HasLineBreak(validation["message"].AsString())) {
    errors.Invalid(at / "message", validation["message"], "must not contain line breaks");
  }
  OneOf(validation, "reason", {"Forbidden", "Invalid", "RequestEntityTooLarge"}, at, errors);
}

void ValidateAuditAnnotations(Value o, const At& at, FieldErrors& errors) {
  const Value annotations = o["spec"]["auditAnnotations"];
  if (annotations.size() > kMaxAuditAnnotations) {
    errors.Invalid(
        at / "auditAnnotations", annotations,
        fmt::format("must not have more than {} auditAnnotations", kMaxAuditAnnotations));
  }
  Names keys;
  size_t i = 0;
  for (Value annotation : annotations.items()) {
    const At here = at.Item("auditAnnotations", i++);
    const std::string_view key = annotation["key"].AsString();
    const std::string name = fmt::format("{}/{}", o["metadata"]["name"].AsString(), key);
    Complain(IsQualifiedName(name), name, here / "key", errors);
    if (IsBlank(annotation["valueExpression"].AsString())) {
      errors.Required(here / "valueExpression", "valueExpression is not specified");
    }
    if (!keys.emplace(key).second) errors.Duplicate(here / "key", key);
  }
}

void ValidateMutation(Value mutation, const At& at, FieldErrors& errors) {
  struct Way {
    std::string_view type;
    const char* member;
  };
  constexpr Way kWays[] = {{"ApplyConfiguration", "applyConfiguration"},
                           {"JSONPatch", "jsonPatch"}};
  const std::string_view type = mutation["patchType"].AsString();
  if (type.empty()) return errors.Required(at / "patchType", "");
  if (std::ranges::find(kWays, type, &Way::type) == std::end(kWays)) {
    return NotSupported(at / "patchType", type, {"ApplyConfiguration", "JSONPatch"}, errors);
  }
  for (const Way& way : kWays) {
    const Value said = mutation[way.member];
    const At here = at / way.member;
    if (way.type != type) {
      if (!said) continue;
      errors.InvalidText(here, fmt::format("{{{}}}", way.member),
                         fmt::format("must not be specified when patchType is {}", type));
    } else if (!said) {
      errors.Required(here, fmt::format("must be specified when patchType is {}", type));
    } else if (IsBlank(said["expression"].AsString())) {
      errors.Required(here / "expression", "");
    }
  }
}

void ValidateParamRef(Value ref, const At& at, FieldErrors& errors) {
  if (!ref) return;
  constexpr const char* kExclusive = "name and selector are mutually exclusive";
  const std::string_view name = ref["name"].AsString();
  const Value selector = ref["selector"];
  if (!name.empty()) {
    Complain(IsPathSegmentName(name), name, at / "name", errors);
    if (selector) errors.Forbidden(at / "name", kExclusive);
  }
  if (selector) {
    ValidateLabelSelector(selector, at / "selector", errors);
    if (!name.empty()) errors.Forbidden(at / "selector", kExclusive);
  }
  if (name.empty() && !selector) {
    errors.Required(at, "one of name or selector must be specified");
  }
  if (ref["parameterNotFoundAction"].AsString().empty()) {
    errors.Required(at / "parameterNotFoundAction", "");
  } else {
    OneOf(ref, "parameterNotFoundAction", {"Deny", "Allow"}, at, errors);
  }
}

void ValidateBindingHead(Value spec, const At& at, FieldErrors& errors) {
  const std::string_view policy = spec["policyName"].AsString();
  if (policy.empty()) {
    errors.Required(at / "policyName", "");
  } else {
    Complain(NameIsDnsSubdomain(policy, false), policy, at / "policyName", errors);
  }
  ValidateParamRef(spec["paramRef"], at / "paramRef", errors);
  if (spec["matchResources"]) ValidateMatch(spec["matchResources"], at / "matchResources", errors);
}

}  // namespace

void ValidateWebhookClient(Value client, const At& at, FieldErrors& errors) {
  if (static_cast<bool>(client["url"]) == static_cast<bool>(client["service"])) {
    errors.Required(at, "exactly one of url or service is required");
  } else if (client["url"]) {
    ValidateUrl(client["url"].AsString(), at / "url", errors);
  } else {
    ValidateHookService(client["service"], at / "service", errors);
  }
}

void ValidateWebhooksCreate(Value o, FieldErrors& errors) { ValidateHooks(o, {}, errors); }

void ValidateWebhooksUpdate(Value o, Value old, FieldErrors& errors) {
  ValidateHooks(o, StrictnessFor(old), errors);
}

void ValidateValidatingPolicy(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidatePolicyHead(spec, false, at, errors);
  if (spec["validations"].empty() && spec["auditAnnotations"].empty()) {
    constexpr const char* kWhy = "validations or auditAnnotations must contain at least one item";
    errors.Required(at / "validations", kWhy);
    errors.Required(at / "auditAnnotations", kWhy);
    return;
  }
  size_t i = 0;
  for (Value validation : spec["validations"].items()) {
    ValidateOneValidation(validation, at.Item("validations", i++), errors);
  }
  ValidateAuditAnnotations(o, at, errors);
}

void ValidateMutatingPolicy(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidatePolicyHead(spec, true, at, errors);
  const Value mutations = spec["mutations"];
  if (mutations.empty()) {
    errors.Required(at / "mutations", "mutations must contain at least one item");
  }
  size_t i = 0;
  for (Value mutation : mutations.items()) {
    ValidateMutation(mutation, at.Item("mutations", i++), errors);
  }
  if (spec["reinvocationPolicy"].AsString().empty()) {
    errors.Required(at / "reinvocationPolicy", "");
  } else {
    OneOf(spec, "reinvocationPolicy", {"IfNeeded", "Never"}, at, errors);
  }
}

void ValidateValidatingBinding(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidateBindingHead(spec, at, errors);
  const Value actions = spec["validationActions"];
  static constexpr Words kActions = {"Audit", "Deny", "Warn"};
  Names seen;
  size_t i = 0;
  for (Value action : actions.items()) {
    const std::string_view text = action.AsString();
    const At here = at.Item("validationActions", i++);
    if (std::ranges::find(kActions, text) == kActions.end()) {
      NotSupported(here, text, kActions, errors);
    }
    if (!seen.emplace(text).second) errors.Duplicate(here, text);
  }
  if (seen.contains("Deny") && seen.contains("Warn")) {
    errors.Invalid(at / "validationActions", actions,
                   "must not contain both Deny and Warn (repeating the same validation failure "
                   "information in the API response and headers serves no purpose)");
  }
  if (seen.empty()) {
    errors.Required(at / "validationActions", "at least one validation action is required");
  }
}

void ValidateMutatingBinding(Value o, FieldErrors& errors) {
  const At at("spec");
  const Value spec = o["spec"];
  ValidateBindingHead(spec, at, errors);
  ForbidDelete(spec["matchResources"], at / "matchResources", errors);
}

}  // namespace sextant::api
