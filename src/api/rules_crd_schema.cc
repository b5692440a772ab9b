// What Kubernetes asks of the schema that a CustomResourceDefinition brings: that it is structural,
// uses no more of OpenAPI than is supported, and that its defaults are valid.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/{validation,complete}.go,
// pkg/apiserver/schema/defaulting/validation.go, pkg/apis/apiextensions/validation/validation.go at
// v0.36.3.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/json.h"
#include "api/rules_crd.h"
#include "api/schema_node.h"
#include "api/schema_validate.h"
#include "api/schema_values.h"

namespace sextant::api {
namespace {

enum class Level : uint8_t { kRoot, kItem, kField };

constexpr std::string_view kPreserve = "x-kubernetes-preserve-unknown-fields";
constexpr std::string_view kEmbedded = "x-kubernetes-embedded-resource";
constexpr std::string_view kIntOrString = "x-kubernetes-int-or-string";
constexpr std::string_view kListType = "x-kubernetes-list-type";
constexpr std::string_view kListKeys = "x-kubernetes-list-map-keys";
constexpr std::string_view kMapType = "x-kubernetes-map-type";
constexpr std::string_view kRules = "x-kubernetes-validations";

std::string_view TypeOf(Value schema) { return schema["type"].AsString(); }

bool IsTypeAlone(Value schema, std::string_view type) {
  return schema.size() == 1 && TypeOf(schema) == type;
}

bool IsIntOrStringAnyOf(Value any_of) {
  return any_of.size() == 2 && IsTypeAlone(any_of.at(0), "integer") &&
         IsTypeAlone(any_of.at(1), "string");
}

// What must be empty where only values are validated.
struct Forbidden {
  std::string_view name;
  std::string_view words;
};
constexpr std::array<Forbidden, 12> kNestedForbidden = {{
    {"type", "must be empty to be structural"},
    {"additionalProperties", "must be undefined to be structural"},
    {"default", "must be undefined to be structural"},
    {"title", "must be empty to be structural"},
    {"description", "must be empty to be structural"},
    {"nullable", "must be false to be structural"},
    {kPreserve, "must be false to be structural"},
    {kEmbedded, "must be false to be structural"},
    {kIntOrString, "must be false to be structural"},
    {kListKeys, "must be empty to be structural"},
    {kListType, "must be undefined to be structural"},
    {kMapType, "must be undefined to be structural"},
}};
// What OpenAPI has and Kubernetes does not take.
constexpr std::array<Forbidden, 7> kUnsupported = {{
    {"id", "id is not supported"},
    {"additionalItems", "additionalItems is not supported"},
    {"patternProperties", "patternProperties is not supported"},
    {"definitions", "definitions is not supported"},
    {"dependencies", "dependencies is not supported"},
    {"$ref", "$ref is not supported"},
    {"$schema", ""},
}};

// --- structural schemas --------------------------------------------------------------------------

class Structural {
 public:
  explicit Structural(FieldErrors& errors) : errors_(errors) {}

  void Check(Value schema, const At& at) {
    Invariants(schema, Level::kRoot, at);
    Complete(schema, schema, at, at);
  }

 private:
  void Invariants(Value s, Level level, const At& at) {
    if (!s) return;
    const At items = at / "items";
    if (TypeOf(s) == "array" && !s["items"]) errors_.Required(items, "must be specified");
    Invariants(s["items"], Level::kItem, items);
    for (auto [name, property] : s["properties"].members()) {
      Invariants(property, Level::kField, at.Key("properties", name));
    }
    Additional(s, level, at);
    if (s[kIntOrString].AsBool()) {
      for (std::string_view other : {kPreserve, kEmbedded}) {
        if (s[other].AsBool()) {
          errors_.Invalid(at / other, s[other],
                          "must be false if x-kubernetes-int-or-string is true");
        }
      }
    }
    const bool skip_any_of = IsIntOrStringAnyOf(s["anyOf"]);
    const bool skip_all_of = IsIntOrStringAnyOf(s["allOf"].at(0)["anyOf"]);
    Values(s, skip_any_of, skip_all_of, level, at);
    TypeGiven(s, level, at);
    MetaFields(s, level, at);
  }

  void Additional(Value s, Level level, const At& at) {
    const Value additional = s["additionalProperties"];
    if (!additional) return;
    const At here = at / "additionalProperties";
    if (level == Level::kRoot) errors_.Forbidden(here, "must not be used at the root");
    if (additional.IsMap()) Invariants(additional, Level::kField, here);
    if (s[kEmbedded].AsBool()) {
      errors_.Forbidden(here, "must not be used if x-kubernetes-embedded-resource is set");
    }
  }

  void TypeGiven(Value s, Level level, const At& at) {
    const std::string_view type = TypeOf(s);
    const At here = at / "type";
    if (s[kEmbedded].AsBool() && type != "object") {
      constexpr std::string_view kWhy = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty()) {
        errors_.Required(here, std::string(kWhy));
      } else {
        errors_.InvalidText(here, type, std::string(kWhy));
      }
    } else if (type.empty() && !s[kIntOrString].AsBool() && !s[kPreserve].AsBool()) {
      const std::string_view where = level == Level::kRoot   ? "at the root"
                                     : level == Level::kItem ? "for specified array items"
                                                             : "for specified object fields";
      errors_.Required(here, fmt::format("must not be empty {}", where));
    }
    if (level == Level::kRoot && !type.empty() && type != "object") {
      errors_.InvalidText(here, type, "must be object at the root");
    }
  }

  void MetaFields(Value s, Level level, const At& at) {
    const bool checked = level == Level::kRoot || s[kEmbedded].AsBool();
    const Value properties = s["properties"];
    for (std::string_view name : {"kind", "apiVersion"}) {
      const Value property = properties[name];
      if (!checked || !property || TypeOf(property) == "string") continue;
      const At here = at.Key("properties", name);
      errors_.InvalidText(here / "type", TypeOf(property), "must be string");
    }
    if (const Value metadata = properties["metadata"]) {
      const At here = at.Key("properties", "metadata");
      if (checked && TypeOf(metadata) != "object") {
        errors_.InvalidText(here / "type", TypeOf(metadata), "must be object");
      }
      if (level == Level::kRoot && !RestrictsNames(metadata)) {
        errors_.Forbidden(here,
                          "must not specify anything other than name and generateName, but "
                          "metadata is implicitly specified");
      }
    }
    if (s[kEmbedded].AsBool() && !s[kPreserve].AsBool() && properties.empty()) {
      errors_.Required(at / "properties",
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
    }
  }

  // Of metadata at the root: nothing but name and generateName.
  static bool RestrictsNames(Value metadata) {
    for (auto [key, value] : metadata.members()) {
      if (key == "type" || key == "default") continue;
      if (key != "properties") return false;
      for (auto [name, property] : value.members())
        if (name != "name" && name != "generateName") return false;
    }
    return true;
  }

  void Values(Value v, bool skip_any_of, bool skip_all_of, Level level, const At& at) {
    if (!skip_any_of) {
      size_t i = 0;
      for (Value item : v["anyOf"].items()) Nested(item, false, level, at.Item("anyOf", i++));
    }
    size_t i = 0;
    for (Value item : v["allOf"].items()) {
      Nested(item, skip_all_of && i == 0, level, at.Item("allOf", i));
      ++i;
    }
    i = 0;
    for (Value item : v["oneOf"].items()) Nested(item, false, level, at.Item("oneOf", i++));
    if (v["not"]) Nested(v["not"], false, level, at / "not");
    const std::string_view pattern = v["pattern"].AsString();
    if (const std::string why = PatternError(pattern); !why.empty()) {
      errors_.InvalidText(at / "pattern", pattern,
                          fmt::format("must be a valid regular expression, but isn't: {}", why));
    }
  }

  void Nested(Value v, bool skip_any_of, Level level, const At& at) {
    Values(v, skip_any_of, false, level, at);
    if (v["items"].IsMap()) Nested(v["items"], false, level, at / "items");
    for (auto [name, property] : v["properties"].members()) {
      Nested(property, false, Level::kField, at.Key("properties", name));
    }
    for (const Forbidden& f : kNestedForbidden) {
      if (v[f.name]) errors_.Forbidden(at / f.name, std::string(f.words));
    }
    if (!v[kRules].empty()) errors_.Forbidden(at / kRules, "must be empty to be structural");
    if (v["properties"].Has("metadata")) {
      errors_.Forbidden(at.Key("properties", "metadata"),
                        "must not be specified in a nested context");
    }
  }

  // Whatever values are validated must be a field of the structure.
  void Complete(Value v, Value s, const At& s_at, const At& v_at) {
    if (v["not"]) CompleteNested(v["not"], s, s_at, v_at / "not");
    for (std::string_view list : {"allOf", "anyOf", "oneOf"}) {
      size_t i = 0;
      for (Value item : v[list].items()) CompleteNested(item, s, s_at, v_at.Item(list, i++));
    }
  }

  void CompleteNested(Value v, Value s, const At& s_at, const At& v_at) {
    if (!s) {
      errors_.Required(s_at, fmt::format("because it is defined in {}", v_at.ToString()));
      return;
    }
    Complete(v, s, s_at, v_at);
    const At s_items = s_at / "items";
    if (v["items"]) CompleteNested(v["items"], s["items"], s_items, v_at / "items");
    for (auto [name, property] : v["properties"].members()) {
      const At s_property = s_at.Key("properties", name);
      CompleteNested(property, s["properties"][name], s_property, v_at.Key("properties", name));
    }
  }

  FieldErrors& errors_;
};

// --- what is supported of OpenAPI ----------------------------------------------------------------

struct Context {
  std::string_view no_defaults;  // why there may be none; data() null: there may
  bool inside_meta = false;
};

class Supported {
 public:
  explicit Supported(FieldErrors& errors) : errors_(errors) {}

  void Check(Value s, bool root, const Context& context, const At& at) {
    if (!s.IsMap()) return;
    Words(s, context, at);
    if (s["uniqueItems"].AsBool()) {
      errors_.Forbidden(at / "uniqueItems",
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    }
    Additional(s, context, at);
    for (auto [name, property] : s["properties"].members()) {
      Context below = context;
      if ((root || s[kEmbedded].AsBool()) && IsMetaField(name)) {
        below.inside_meta = true;
        if (root)
          below.no_defaults = name == "metadata" ? " in top-level metadata"
                              : name == "kind"   ? " in top-level kind"
                                                 : " in top-level apiVersion";
      }
      Check(property, false, below, at.Key("properties", name));
    }
    if (s["not"]) Check(s["not"], false, context, at / "not");
    for (std::string_view list : {"allOf", "oneOf", "anyOf"}) {
      size_t i = 0;
      for (Value item : s[list].items()) Check(item, false, context, at.Item(list, i++));
    }
    if (s["items"].IsMap()) Check(s["items"], false, context, at / "items");
    if (s[kPreserve] && !s[kPreserve].AsBool()) {
      errors_.Invalid(at / kPreserve, s[kPreserve], "must be true or undefined");
    }
    MapType(s, at);
    ListType(s, at);
    Keys(s, at);
    KeyedItems(s, at);
    size_t i = 0;
    for (Value rule : s[kRules].items()) Rule(rule, at.Item(kRules, i++));
  }

 private:
  static bool IsMetaField(std::string_view name) {
    return name == "metadata" || name == "kind" || name == "apiVersion";
  }

  void Words(Value s, const Context& context, const At& at) {
    const std::string_view type = TypeOf(s);
    constexpr std::array kTypes = {"array", "boolean", "integer", "number", "object", "string"};
    if (!type.empty() && std::ranges::find(kTypes, type) == kTypes.end()) {
      errors_.NotSupported(at / "type", type, {kTypes.begin(), kTypes.end()});
    }
    if (!s["default"].IsAbsent() && context.no_defaults.data() != nullptr) {
      errors_.Forbidden(at / "default", fmt::format("must not be set{}", context.no_defaults));
    }
    for (const Forbidden& f : kUnsupported) {
      if (!f.words.empty() && s[f.name]) errors_.Forbidden(at / f.name, std::string(f.words));
    }
    if (type == "null") {
      errors_.Forbidden(at / "type", "type cannot be set to null, use nullable as an alternative");
    }
    if (s["items"].IsList()) {
      errors_.Forbidden(at / "items", "items must be a schema object and not an array");
    }
    if (context.inside_meta && s[kEmbedded].AsBool()) {
      errors_.Forbidden(at / kEmbedded, "must not be used inside of resource meta");
    }
  }

  void Additional(Value s, const Context& context, const At& at) {
    const Value additional = s["additionalProperties"];
    if (!additional) return;
    const At here = at / "additionalProperties";
    const bool open = !additional.IsMap() && additional.AsBool();
    if (!s["properties"].empty() && !open) {
      errors_.Forbidden(here, "additionalProperties and properties are mutual exclusive");
    }
    Context below = context;
    if (context.inside_meta) {
      below.no_defaults = " inside additionalProperties applying to object metadata";
    }
    Check(additional, false, below, here);
  }

  // "x-kubernetes-..." asks for a type.
  void Wants(Value s, std::string_view type, std::string_view because, const At& at) {
    const std::string why = fmt::format("must be {} if {} is specified", type, because);
    if (TypeOf(s).empty()) {
      errors_.Required(at / "type", why);
    } else {
      errors_.InvalidText(at / "type", TypeOf(s), why);
    }
  }

  void MapType(Value s, const At& at) {
    const Value map_type = s[kMapType];
    if (!map_type) return;
    if (TypeOf(s) != "object") Wants(s, "object", kMapType, at);
    const std::string_view name = map_type.AsString();
    if (name != "atomic" && name != "granular") {
      errors_.NotSupported(at / kMapType, name, {"atomic", "granular"});
    }
  }

  void ListType(Value s, const At& at) {
    const Value list_type = s[kListType];
    if (!list_type) return;
    const std::string_view name = list_type.AsString();
    const Value items = s["items"];
    if (TypeOf(s) != "array") {
      Wants(s, "array", kListType, at);
    } else if (name == "set" && items.IsMap()) {
      constexpr std::string_view kWhy =
          "must be atomic as item of a list with x-kubernetes-list-type=set";
      const At here = at / "items";
      const Value inner = items[kListType];
      if (TypeOf(items) == "array" && inner && inner.AsString() != "atomic") {
        errors_.Invalid(here / kListType, inner, std::string(kWhy));
      }
      if (TypeOf(items) == "object" && items[kMapType].AsString() != "atomic") {
        errors_.Invalid(here / kMapType, inner, std::string(kWhy));
      }
    }
    if (name != "atomic" && name != "set" && name != "map") {
      errors_.NotSupported(at / kListType, name, {"atomic", "set", "map"});
    }
  }

  void Keys(Value s, const At& at) {
    const std::string_view list_type = s[kListType].AsString();
    const Value keys = s[kListKeys];
    constexpr std::string_view kWhy = "must be map if x-kubernetes-list-map-keys is non-empty";
    if (!keys.empty()) {
      if (!s[kListType]) {
        errors_.Required(at / kListType, std::string(kWhy));
      } else if (list_type != "map") {
        errors_.InvalidText(at / kListType, list_type, std::string(kWhy));
      }
    }
    if (list_type != "map") return;
    if (keys.empty()) {
      errors_.Required(at / kListKeys, "must not be empty if x-kubernetes-list-type is map");
    }
    const Value items = s["items"];
    const At here = at / "items";
    if (!items) errors_.Required(here, "must have a schema if x-kubernetes-list-type is map");
    if (!items.IsMap()) return;
    if (TypeOf(items) != "object") {
      errors_.InvalidText(here / "type", TypeOf(items),
                          "must be object if parent array's x-kubernetes-list-type is map");
      return;
    }
    KeyNames(keys, items, at, here);
  }

  void KeyNames(Value keys, Value items, const At& at, const At& here) {
    std::vector<std::string_view> seen;
    for (Value key : keys.items()) {
      const std::string_view name = key.AsString();
      const Value property = items["properties"][name];
      if (!property) {
        errors_.Invalid(at / kListKeys, keys, "entries must all be names of item properties");
      } else if (TypeOf(property) == "array" || TypeOf(property) == "object") {
        const At of_key = here.Key("properties", name);
        errors_.InvalidText(
            of_key / "type", TypeOf(items),
            "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      if (std::ranges::find(seen, name) != seen.end()) {
        errors_.Invalid(at / kListKeys, keys, "must not contain duplicate entries");
      }
      seen.push_back(name);
    }
  }

  void KeyedItems(Value s, const At& at) {
    const std::string_view list_type = s[kListType].AsString();
    const Value items = s["items"];
    if (!items.IsMap() || (list_type != "set" && list_type != "map")) return;
    const At here = at / "items";
    if (items["nullable"].AsBool()) {
      errors_.Forbidden(
          here / "nullable",
          fmt::format("cannot be nullable when x-kubernetes-list-type is {}", list_type));
    }
    if (list_type != "map") return;
    for (Value key : s[kListKeys].items()) {
      const Value property = items["properties"][key.AsString()];
      if (!property) continue;
      const At of_key = here.Key("properties", key.AsString());
      bool required = false;
      for (Value name : items["required"].items()) required = required || Equal(name, key);
      if (!required && property["default"].IsAbsent()) {
        errors_.Required(of_key / "default",
                         "this property is in x-kubernetes-list-map-keys, so it must have a "
                         "default or be a required property");
      }
      if (property["nullable"].AsBool()) {
        errors_.Forbidden(of_key / "nullable",
                          "this property is in x-kubernetes-list-map-keys, so it cannot be "
                          "nullable");
      }
    }
  }

  void Rule(Value rule, const At& at) {
    const std::string_view text = rule["rule"].AsString();
    const std::string_view message = rule["message"].AsString();
    if (IsBlank(text)) {
      errors_.Required(at / "rule", "rule is not specified");
    } else if (!message.empty() && IsBlank(message)) {
      errors_.InvalidText(at / "message", message, "must be non-empty if specified");
    } else if (HasLineBreak(message)) {
      errors_.InvalidText(at / "message", message, "must not contain line breaks");
    } else if (HasLineBreak(text) && IsBlank(message)) {
      errors_.Required(at / "message", "message must be specified if rule contains line breaks");
    }
    const std::string_view expression = rule["messageExpression"].AsString();
    if (!expression.empty() && IsBlank(expression)) {
      errors_.Required(at / "messageExpression",
                       "messageExpression must be non-empty if specified");
    }
    OneOf(rule, "reason",
          {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"},
          at, errors_);
    const std::string_view path = rule["fieldPath"].AsString();
    if (!path.empty() && IsBlank(path)) {
      errors_.InvalidText(at / "fieldPath", path, "must be non-empty if specified");
    }
    if (path.find_first_of("\r\n") != std::string_view::npos) {
      errors_.InvalidText(at / "fieldPath", path, "must not contain line breaks");
    }
  }

  FieldErrors& errors_;
};

// --- defaults ------------------------------------------------------------------------------------

void Defaults(const SchemaNode& node, const At& at, FieldErrors& errors) {
  if (node.default_value) {
    const At here = at / "default";
    const Object pruned = PrunedCopy(node.default_value, node);
    if (!Equal(pruned.root(), node.default_value)) {
      errors.Invalid(here, node.default_value, "must not have unknown fields");
    }
    FieldErrors embedded;
    ValidateEmbedded(node.default_value, node, embedded);
    for (Cause& cause : embedded.Take()) {
      cause.field = fmt::format("{}.{}", here.ToString(), cause.field);
      errors.Add(std::move(cause));
    }
    ValidateBySchema(node.default_value, {}, node, here.ToString(), errors);
  }
  if (node.items) Defaults(*node.items, at / "items", errors);
  for (const SchemaNode::Named& property : node.properties) {
    Defaults(*property.node, at.Key("properties", property.name), errors);
  }
}

bool HasUnsupported(Value s) {
  bool found = s["items"].IsList();
  for (const Forbidden& f : kUnsupported) found = found || s[f.name];
  EachSubschema(s, [&found](Value below) { found = found || HasUnsupported(below); });
  return found;
}

// With a status of its own the schema of status is cut out of the whole: what stands at the root
// must not speak of it.
void RootWords(Value schema, const At& at, FieldErrors& errors) {
  constexpr std::array kAllowed = {"description",
                                   "type",
                                   "format",
                                   "title",
                                   "maximum",
                                   "exclusiveMaximum",
                                   "minimum",
                                   "exclusiveMinimum",
                                   "maxLength",
                                   "minLength",
                                   "pattern",
                                   "maxItems",
                                   "minItems",
                                   "uniqueItems",
                                   "multipleOf",
                                   "required",
                                   "items",
                                   "properties",
                                   "externalDocs",
                                   "example",
                                   "x-kubernetes-preserve-unknown-fields",
                                   "x-kubernetes-validations"};
  for (auto [key, value] : schema.members()) {
    if (key == "type" && value.AsString() != "object") {
      errors.InvalidText(fmt::format("{}.type", at.ToString()), value.AsString(),
                         "only \"object\" is allowed as the type at the root of the schema if the "
                         "status subresource is enabled");
      return;
    }
    if (std::ranges::find(kAllowed, key) != kAllowed.end()) continue;
    errors.Invalid(at, schema,
                   "only [Description Type Format Title Maximum ExclusiveMaximum Minimum "
                   "ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems "
                   "MultipleOf Required Items Properties ExternalDocs Example "
                   "XPreserveUnknownFields XValidations] fields are allowed at the root of the "
                   "schema if the status subresource is enabled");
    return;
  }
}

}  // namespace

void ValidateCrdSchema(Value schema, bool has_status, const At& at, FieldErrors& errors) {
  auto compiled = CompileSchema(schema);
  if (!compiled) return errors.InvalidText(at, "", compiled.error().message);
  if (has_status) RootWords(schema, at, errors);
  if (schema["nullable"].AsBool()) {
    errors.Forbidden(fmt::format("{}.nullable", at.ToString()),
                     "nullable cannot be true at the root");
  }
  if (!HasUnsupported(schema)) {
    FieldErrors structural;
    Structural(structural).Check(schema, at);
    std::vector<Cause> causes = structural.Take();
    std::ranges::sort(causes, [](const Cause& a, const Cause& b) {
      return a.field + ": " + a.message < b.field + ": " + b.message;
    });
    if (causes.empty()) Defaults(**compiled, at, errors);
    for (Cause& cause : causes) errors.Add(std::move(cause));
  }
  Supported(errors).Check(schema, true, {}, at);
}

}  // namespace sextant::api
