// CustomResourceDefinitions: defaults, what the strategy does, validation of everything but their
// schemas (rules_crd_schema.cc), deletion.
//
// Kubernetes validates the internal type, into which what all versions say alike has been lifted:
// paths of one version's schema are spec.validation..., of several different ones
// spec.versions[i].schema...
// Source: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/{v1,validation},
// pkg/registry/customresourcedefinition at v0.36.3.
#include "api/rules_crd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/custom_kind.h"
#include "api/json.h"
#include "api/json_path.h"
#include "api/lists.h"
#include "api/rules_kinds.h"
#include "api/schema_formats.h"
#include "api/schema_node.h"
#include "base/ascii.h"
#include "base/clock.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxSelectable = 8;
constexpr std::string_view kApproval = "api-approved.kubernetes.io";

bool AlikeInAll(Value versions, std::string_view member) {
  for (Value version : versions.items())
    if (!Same(version[member], versions.at(0)[member])) return false;
  return true;
}

Value StorageVersion(Value spec) {
  for (Value version : spec["versions"].items())
    if (version["storage"].AsBool()) return version;
  return {};
}

void Label(std::string_view text, const At& at, FieldErrors& errors) {
  const Complaints why = IsDns1035Label(text);
  if (!why.empty()) errors.InvalidText(at, text, fmt::format("{}", fmt::join(why, ",")));
}

void MixedCaseLabel(std::string_view text, const At& at, FieldErrors& errors) {
  const Complaints why = IsDns1035Label(AsciiLower(text));
  if (why.empty()) return;
  errors.InvalidText(
      at, text,
      fmt::format("may have mixed case, but should otherwise match: {}", fmt::join(why, ",")));
}

void CheckNames(Value names, const At& at, FieldErrors& errors) {
  const auto text = [names](const char* name) { return names[name].AsString(); };
  if (!text("plural").empty()) Label(text("plural"), at / "plural", errors);
  if (!text("singular").empty()) Label(text("singular"), at / "singular", errors);
  if (!text("kind").empty()) MixedCaseLabel(text("kind"), at / "kind", errors);
  if (!text("listKind").empty()) MixedCaseLabel(text("listKind"), at / "listKind", errors);
  size_t i = 0;
  for (Value name : names["shortNames"].items()) {
    Label(name.AsString(), at.Item("shortNames", i++), errors);
  }
  if (!text("kind").empty() && text("kind") == text("listKind")) {
    errors.InvalidText(at / "listKind", text("listKind"), "kind and listKind may not be the same");
  }
  i = 0;
  for (Value name : names["categories"].items()) {
    Label(name.AsString(), at.Item("categories", i++), errors);
  }
}

void CheckSimplePath(std::string_view path, const At& at, FieldErrors& errors) {
  if (!path.starts_with('.')) {
    errors.InvalidText(at, path, "must be a simple json path starting with .");
  }
}

void CheckColumn(Value column, const At& at, FieldErrors& errors) {
  constexpr std::array kTypes = {"boolean", "date", "integer", "number", "string"};
  constexpr std::array kFormats = {"byte",  "date",  "date-time", "double",
                                   "float", "int32", "int64",     "password"};
  if (column["name"].AsString().empty()) errors.Required(at / "name", "");
  const std::string_view type = column["type"].AsString();
  const std::string types = fmt::format("must be one of {}", fmt::join(kTypes, ","));
  if (type.empty()) {
    errors.Required(at / "type", types);
  } else if (std::ranges::find(kTypes, type) == kTypes.end()) {
    errors.InvalidText(at / "type", type, types);
  }
  const std::string_view format = column["format"].AsString();
  if (!format.empty() && std::ranges::find(kFormats, format) == kFormats.end()) {
    errors.InvalidText(at / "format", format,
                       fmt::format("must be one of {}", fmt::join(kFormats, ",")));
  }
  const std::string_view path = column["jsonPath"].AsString();
  if (path.empty()) return errors.Required(at / "JSONPath", "");
  CheckSimplePath(path, at / "JSONPath", errors);
}

// The paths of scale, and where each must lead.
struct ScalePath {
  const char* name;
  const char* at;
  std::array<std::string_view, 2> roots;
  const char* words;
  bool required;
};
constexpr std::array<ScalePath, 3> kScalePaths = {{
    {"specReplicasPath",
     "scale.specReplicasPath",
     {".spec.", ".spec."},
     "should be a json path under .spec",
     true},
    {"statusReplicasPath",
     "scale.statusReplicasPath",
     {".status.", ".status."},
     "should be a json path under .status",
     true},
    {"labelSelectorPath",
     "scale.labelSelectorPath",
     {".spec.", ".status."},
     "should be a json path under either .spec or .status",
     false},
}};

void CheckSubresources(Value subresources, const At& at, FieldErrors& errors) {
  const Value scale = subresources["scale"];
  if (!scale) return;
  for (const ScalePath& wanted : kScalePaths) {
    const std::string_view path = scale[wanted.name].AsString();
    const At here = at / wanted.at;
    if (path.empty()) {
      if (wanted.required) errors.Required(here, "");
    } else if (!path.starts_with('.')) {
      CheckSimplePath(path, here, errors);
    } else if (!path.starts_with(wanted.roots[0]) && !path.starts_with(wanted.roots[1])) {
      errors.InvalidText(here, path, wanted.words);
    }
  }
}

// The schema at the end of ".spec.color"; an error's words if there is none.
Result<Value> SchemaAt(std::string_view path, Value schema) {
  if (!path.starts_with('.')) {
    return Fail(BadRequest(fmt::format("expected [ or . but got: {}", path)));
  }
  if (path.find('[') != std::string_view::npos) {
    return Fail(BadRequest("array notation is not allowed"));
  }
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t dot = path.find('.');
    const Value additional = schema["additionalProperties"];
    const Value property = schema["properties"][path.substr(0, dot)];
    if (!property && !(schema["properties"].empty() && additional.IsMap())) {
      return Fail(BadRequest("does not refer to a valid field"));
    }
    schema = property ? property : additional;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot);
  }
  return schema;
}

void CheckSelectable(Value fields, Value schema, const At& at, std::string_view name,
                     FieldErrors& errors) {
  std::set<std::string_view> seen;
  size_t i = 0;
  for (Value field : fields.items()) {
    const At item = at.Item(name, i++);
    const At here = item / "jsonPath";
    const std::string_view path = field["jsonPath"].AsString();
    if (path.empty()) {
      errors.Required(here, "");
      continue;
    }
    auto found = SchemaAt(path, schema);
    if (!found) {
      errors.InvalidText(here, path, fmt::format("is an invalid path: {}", found.error().message));
      continue;
    }
    if (path == ".metadata" || path.starts_with(".metadata.")) {
      errors.InvalidText(here, path, "must not point to fields in metadata");
    }
    const std::string_view type = (*found)["type"].AsString();
    if (type != "string" && type != "boolean" && type != "integer") {
      errors.InvalidText(here, path,
                         "must point to a field of type string, boolean or integer. Enum string "
                         "fields and strings with formats are allowed.");
    }
    if (!seen.insert(path).second) errors.Duplicate(here, path);
  }
  if (seen.size() > kMaxSelectable) {
    errors.TooMany(at / name, static_cast<int>(seen.size()), static_cast<int>(kMaxSelectable));
  }
}

void CheckDeprecation(Value version, const At& at, FieldErrors& errors) {
  const Value warning = version["deprecationWarning"];
  if (!warning) return;
  constexpr size_t kMax = 256;
  const At here = at / "deprecationWarning";
  const std::string_view text = warning.AsString();
  if (!version["deprecated"].AsBool()) {
    return errors.InvalidText(here, text, "can only be set for deprecated versions");
  }
  if (text.size() > kMax) errors.InvalidText(here, text, "must be <= 256 characters long");
  if (text.empty()) errors.InvalidText(here, text, "must not be an empty string");
  for (size_t i = 0; i < text.size(); ++i) {
    if (static_cast<uint8_t>(text[i]) >= 0x20 && text[i] != 0x7f) continue;
    errors.InvalidText(here, text,
                       fmt::format("must only contain printable UTF-8 characters; non-printable "
                                   "character found at index {}",
                                   i));
    break;
  }
}

void CheckWebhook(Value webhook, const At& at, FieldErrors& errors) {
  const Value client = webhook["clientConfig"];
  const At here = at / "webhookClientConfig";
  if (!client) {
    errors.Required(here, "required when strategy is set to Webhook");
  } else {
    ValidateWebhookClient(client, here, errors);
  }
  const Value versions = webhook["conversionReviewVersions"];
  const At versions_at = at / "conversionReviewVersions";
  if (versions.empty()) return errors.Required(versions_at, "");
  if (!Holds(versions, "v1") && !Holds(versions, "v1beta1")) {
    errors.Invalid(versions_at, versions, "must include at least one of v1, v1beta1");
  }
}

void CheckConversion(Value conversion, const At& at, FieldErrors& errors) {
  if (!conversion) return;
  const std::string_view strategy = conversion["strategy"].AsString();
  if (strategy.empty()) {
    errors.Required(at / "strategy", "");
  } else {
    OneOf(conversion, "strategy", {"None", "Webhook"}, at, errors);
  }
  const Value webhook = conversion["webhook"];
  if (strategy == "Webhook") return CheckWebhook(webhook, at, errors);
  constexpr std::string_view kWhy = "should not be set when strategy is not set to Webhook";
  if (webhook["clientConfig"]) errors.Forbidden(at / "webhookClientConfig", std::string(kWhy));
  if (!webhook["conversionReviewVersions"].empty()) {
    errors.Forbidden(at / "conversionReviewVersions", std::string(kWhy));
  }
}

// As the internal type prints; what all versions have alike is not in them.
std::string PrintedVersions(Value versions) {
  std::vector<std::string> printed;
  const auto part = [&](Value version, const char* member) {
    const Value value = version[member];
    return !value || AlikeInAll(versions, member) ? std::string("null") : ToJson(value);
  };
  for (Value version : versions.items()) {
    const Value warning = version["deprecationWarning"];
    printed.push_back(fmt::format(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},"
        "\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}"
        "}",
        Quote(version["name"].AsString()), version["served"].AsBool(), version["storage"].AsBool(),
        version["deprecated"].AsBool(), warning ? Quote(warning.AsString()) : "null",
        part(version, "schema"), part(version, "subresources"),
        part(version, "additionalPrinterColumns"), part(version, "selectableFields")));
  }
  return fmt::format("[{}]", fmt::join(printed, ","));
}

// What a version and, lifted, all of them say. `prefix` names a version's members: "schema" is
// "validation" above the versions.
void CheckParts(Value version, bool has_status, std::set<std::string_view> members, const At& at,
                std::string_view schema_name, FieldErrors& errors) {
  const Value schema = version["schema"]["openAPIV3Schema"];
  const At schema_at = at / schema_name;
  if (members.contains("schema") && schema) {
    ValidateCrdSchema(schema, has_status, schema_at / "openAPIV3Schema", errors);
  }
  if (members.contains("subresources")) {
    CheckSubresources(version["subresources"], at / "subresources", errors);
  }
  if (members.contains("additionalPrinterColumns")) {
    size_t i = 0;
    for (Value column : version["additionalPrinterColumns"].items()) {
      CheckColumn(column, at.Item("additionalPrinterColumns", i++), errors);
    }
  }
  if (members.contains("selectableFields") && !version["selectableFields"].empty()) {
    // Where the schema is the same in all versions and these are not, or the other way round, they
    // stand apart, which nobody can mean.
    if (!members.contains("schema")) {
      errors.InvalidText(at / "selectableFields", "",
                         schema_name == "validation"
                             ? "may only be set when validations.schema is included"
                             : "may only be set when `version.schema.openAPIV3Schema` is not "
                               "included");
    } else {
      CheckSelectable(version["selectableFields"], schema, at, "selectableFields", errors);
    }
  }
}

constexpr std::array kParts = {"schema", "subresources", "additionalPrinterColumns",
                               "selectableFields"};

void CheckVersions(Value spec, const At& at, FieldErrors& errors) {
  const Value versions = spec["versions"];
  std::set<std::string_view> alike;
  for (const char* part : kParts)
    if (AlikeInAll(versions, part)) alike.insert(part);
  size_t i = 0;
  for (Value version : versions.items()) {
    const At here = at.Item("versions", i++);
    if (!version["schema"]["openAPIV3Schema"]) {
      const At schema = here / "schema";
      errors.Required(schema / "openAPIV3Schema", "");
    }
  }
  int storage = 0;
  std::set<std::string_view> names;
  i = 0;
  for (Value version : versions.items()) {
    const At here = at.Item("versions", i++);
    storage += version["storage"].AsBool() ? 1 : 0;
    names.insert(version["name"].AsString());
    Label(version["name"].AsString(), here / "name", errors);
    CheckDeprecation(version, here, errors);
    std::set<std::string_view> own;
    for (const char* part : kParts)
      if (!alike.contains(part)) own.insert(part);
    CheckParts(version, static_cast<bool>(version["subresources"]["status"]), own, here, "schema",
               errors);
  }
  if (names.size() != versions.size()) {
    errors.InvalidRaw(at / "versions", PrintedVersions(versions),
                      "must contain unique version names");
  }
  if (storage != 1) {
    errors.InvalidRaw(at / "versions", PrintedVersions(versions),
                      "must have exactly one version marked as storage version");
  }
  if (versions.empty()) return;
  Label(versions.at(0)["name"].AsString(), at / "version", errors);
  bool any_status = false;
  for (Value version : versions.items()) {
    any_status = any_status || static_cast<bool>(version["subresources"]["status"]);
  }
  CheckParts(versions.at(0), any_status, alike, at, "validation", errors);
}

void CheckSpec(Value spec, FieldErrors& errors) {
  const At at("spec");
  const std::string_view group = spec["group"].AsString();
  const Complaints why = IsDns1123Subdomain(group);
  if (group.empty()) {
    errors.Required(at / "group", "");
  } else if (!why.empty()) {
    errors.InvalidText(at / "group", group, fmt::format("{}", fmt::join(why, ",")));
  } else if (group.find('.') == std::string_view::npos) {
    errors.InvalidText(at / "group", group, "should be a domain with at least one dot");
  }
  if (spec["scope"].AsString().empty()) {
    errors.Required(at / "scope", "");
  } else {
    OneOf(spec, "scope", {"Cluster", "Namespaced"}, at, errors);
  }
  CheckVersions(spec, at, errors);
  const At names = at / "names";
  for (const char* name : {"plural", "singular", "kind", "listKind"}) {
    if (spec["names"][name].AsString().empty()) errors.Required(names / name, "");
  }
  CheckNames(spec["names"], names, errors);
  CheckConversion(spec["conversion"], at / "conversion", errors);
}

void CheckStored(Value o, FieldErrors& errors) {
  const At at = At("status");
  const Value stored = o["status"]["storedVersions"];
  const At here = at / "storedVersions";
  if (stored.empty()) return errors.Invalid(here, stored, "must have at least one stored version");
  std::set<std::string_view> left;  // a name stands for the first version that has it
  for (Value version : stored.items()) left.insert(version.AsString());
  for (Value version : o["spec"]["versions"].items()) {
    const std::string_view name = version["name"].AsString();
    const bool found = left.erase(name) > 0;
    if (found || !version["storage"].AsBool()) continue;
    errors.Invalid(here, stored, fmt::format("must have the storage version {}", name));
  }
  size_t i = 0;
  for (Value version : stored.items()) {
    bool known = false;
    for (Value v : o["spec"]["versions"].items()) known = known || Equal(v["name"], version);
    const At item = at.Item("storedVersions", i++);
    if (known) continue;
    const std::string_view gone = version.AsString();
    errors.InvalidText(item, gone,
                       fmt::format("missing from spec.versions; {0} was previously a storage "
                                   "version, and must remain in spec.versions until a storage "
                                   "migration ensures no data remains persisted in {0} and removes "
                                   "{0} from status.storedVersions",
                                   gone));
  }
}

// Groups of the Kubernetes community want a word from it.
void CheckApproval(Value o, Value old, FieldErrors& errors) {
  const std::string_view group = o["spec"]["group"].AsString();
  const auto within = [group](std::string_view domain) {
    return group == domain ||
           (group.ends_with(domain) && group[group.size() - domain.size() - 1] == '.');
  };
  if (!within("k8s.io") && !within("kubernetes.io")) return;
  const std::string_view said = o["metadata"]["annotations"][kApproval].AsString();
  if (old && old["metadata"]["annotations"][kApproval].AsString() == said) return;
  const std::string at = fmt::format("metadata.annotations[{}]", kApproval);
  if (said.empty()) {
    return errors.Required(at, fmt::format("protected groups must have approval annotation {}, see "
                                           "https://github.com/kubernetes/enhancements/pull/1111",
                                           Quote(kApproval)));
  }
  const size_t scheme = said.find("://");
  const bool url = scheme != std::string_view::npos && scheme > 0 && said.size() > scheme + 3;
  if (url || said.starts_with("unapproved")) return;
  errors.InvalidText(
      at, said,
      fmt::format("protected groups must have approval annotation {} with either a URL or a reason "
                  "starting with \"unapproved\", see "
                  "https://github.com/kubernetes/enhancements/pull/1111",
                  Quote(kApproval)));
}

// Everything besides metadata and spec.
void CheckRest(Value o, Value old, FieldErrors& errors) {
  const At status("status");
  CheckNames(o["status"]["acceptedNames"], status / "acceptedNames", errors);
  CheckStored(o, errors);
  CheckApproval(o, old, errors);
  if (o["spec"]["preserveUnknownFields"].AsBool() &&
      !old["spec"]["preserveUnknownFields"].AsBool()) {
    errors.Invalid("spec.preserveUnknownFields", o["spec"]["preserveUnknownFields"],
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema instead");
  }
}

void AddStoredVersion(Mut o) {
  const Object spec = CopyOf(o["spec"].Snapshot());
  const Value storage = StorageVersion(spec.root());
  if (!storage) return;
  const Mut stored = o["status"]["storedVersions"];
  for (size_t i = 0; i < stored.size(); ++i)
    if (stored.at(i).AsString() == storage["name"].AsString()) return;
  stored.Append().SetString(storage["name"].AsString());
}

void UnknownFormats(Value schema, std::vector<std::string>& out) {
  if (!schema.IsMap()) return;
  const std::string_view format = schema["format"].AsString();
  if (!format.empty() && !IsKnownFormat(format, schema["type"].AsString())) {
    out.push_back(fmt::format("unrecognized format {}", Quote(format)));
  }
  for (const char* one : {"items", "additionalProperties", "not"}) UnknownFormats(schema[one], out);
  for (const char* list : {"allOf", "anyOf", "oneOf"})
    for (Value item : schema[list].items()) UnknownFormats(item, out);
  for (auto [name, property] : schema["properties"].members()) UnknownFormats(property, out);
}

std::vector<std::string> UnknownFormatsOf(Value o) {
  std::vector<std::string> out;
  const Value versions = o["spec"]["versions"];
  const bool alike = AlikeInAll(versions, "schema");
  for (Value version : versions.items()) {
    UnknownFormats(version["schema"]["openAPIV3Schema"], out);
    if (alike) break;
  }
  return out;
}

size_t CountRules(Value schema) {
  if (!schema.IsMap()) return 0;
  size_t count = schema["x-kubernetes-validations"].size();
  for (const char* one : {"items", "additionalProperties"}) count += CountRules(schema[one]);
  for (auto [name, property] : schema["properties"].members()) count += CountRules(property);
  return count;
}

// What Sextant takes and does not do yet is said whenever it comes.
void WarnOfGaps(Value o, Value old, std::vector<std::string>& out) {
  if (old && Same(o["spec"], old["spec"])) return;
  size_t rules = 0;
  for (Value version : o["spec"]["versions"].items()) {
    rules += CountRules(version["schema"]["openAPIV3Schema"]);
  }
  if (rules > 0) {
    out.push_back(fmt::format(
        "{} x-kubernetes-validations rule{} of {} {} stored but not evaluated by this server",
        rules, rules == 1 ? "" : "s", o["metadata"]["name"].AsString(), rules == 1 ? "is" : "are"));
  }
  if (o["spec"]["conversion"]["strategy"].AsString() == "Webhook") {
    out.push_back(
        fmt::format("the conversion webhook of {} is not called by this server: versions differ in "
                    "apiVersion only",
                    o["metadata"]["name"].AsString()));
  }
}

}  // namespace

void DefaultCrd(Mut o) {
  const Mut names = o["spec"]["names"];
  const std::string kind(names["kind"].AsString());
  if (names["singular"].AsString().empty()) names.Set("singular", AsciiLower(kind));
  if (names["listKind"].AsString().empty() && !kind.empty()) names.Set("listKind", kind + "List");
  const Mut conversion = o["spec"]["conversion"];
  if (!conversion) return conversion.Set("strategy", "None");
  static constexpr Default kService[] = {Int("port", 443)};
  static constexpr Default kClient[] = {In("service", kService)};
  static constexpr Default kWebhook[] = {In("clientConfig", kClient)};
  static constexpr Default kConversion[] = {In("webhook", kWebhook)};
  ApplyDefaults(conversion, kConversion);
}

void PrepareCrd(Mut o, Value) { AddStoredVersion(o); }

void ValidateCrdCreate(Value o, FieldErrors& errors) {
  const std::string_view name = o["metadata"]["name"].AsString();
  const std::string wanted =
      fmt::format("{}.{}", o["spec"]["names"]["plural"].AsString(), o["spec"]["group"].AsString());
  if (name != wanted) {
    errors.InvalidText("metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
  }
  CheckSpec(o["spec"], errors);
  CheckRest(o, {}, errors);
}

void ValidateCrdUpdate(Value o, Value old, FieldErrors& errors) {
  CheckSpec(o["spec"], errors);
  const At spec("spec");
  const At names = spec / "names";
  if (CrdConditionTrue(old, "Established")) {
    Immutable(o["spec"]["scope"], old["spec"]["scope"], spec / "scope", errors);
    Immutable(o["spec"]["names"]["kind"], old["spec"]["names"]["kind"], names / "kind", errors);
  }
  Immutable(o["spec"]["group"], old["spec"]["group"], spec / "group", errors);
  Immutable(o["spec"]["names"]["plural"], old["spec"]["names"]["plural"], names / "plural", errors);
  CheckRest(o, old, errors);
}

void ValidateCrdStatus(Value o, Value, FieldErrors& errors) {
  const At status("status");
  CheckNames(o["status"]["acceptedNames"], status / "acceptedNames", errors);
}

void WarnOfCrd(Value o, Value old, std::vector<std::string>& out) {
  std::vector<std::string> known;
  if (old) known = UnknownFormatsOf(old);
  for (std::string& warning : UnknownFormatsOf(o)) {
    if (std::ranges::find(known, warning) == known.end()) out.push_back(std::move(warning));
  }
  WarnOfGaps(o, old, out);
}

bool CrdHeld(Value o) {
  return !o["metadata"]["deletionTimestamp"] || Holds(o["metadata"]["finalizers"], kCrdCleanup);
}

void SetCrdCondition(Mut o, const CrdCondition& condition, std::string_view now) {
  const Mut list = o["status"]["conditions"];
  Mut found;
  for (size_t i = 0; i < list.size() && !found; ++i) {
    if (list.at(i)["type"].AsString() == condition.type) found = list.at(i);
  }
  if (!found) {
    found = list.Append();
    found.Set("type", condition.type);
  }
  if (found["status"].AsString() != condition.status) found.Set("lastTransitionTime", now);
  found.Set("status", condition.status);
  found.Set("reason", condition.reason);
  found.Set("message", condition.message);
}

void CrdOnDelete(Mut o) {
  const Mut finalizers = o["metadata"]["finalizers"];
  bool there = false;
  for (size_t i = 0; i < finalizers.size(); ++i) {
    there = there || finalizers.at(i).AsString() == kCrdCleanup;
  }
  if (!there) finalizers.Append().SetString(kCrdCleanup);
  SetCrdCondition(
      o,
      {"Terminating", "True", "InstanceDeletionPending",
       "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"},
      o["metadata"]["deletionTimestamp"].AsString());
}

}  // namespace sextant::api
