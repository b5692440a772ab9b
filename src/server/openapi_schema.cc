#include "server/openapi_schema.h"

#include <algorithm>
#include <array>

#include "api/json.h"
#include "base/check.h"

namespace sextant::server {
namespace {

using api::Field;
using api::Mut;
using api::Shape;
using api::Type;

// Types that have a model of their own or are plain JSON types.
struct TypeRow {
  Type type;
  std::string_view json;  // "type"
  std::string_view format;
  std::string_view model;  // instead of a plain type
  std::string_view zero;   // default of list items and map values, JSON
};
constexpr std::array<TypeRow, 16> kTypes = {{
    {Type::kBool, "boolean", "", "", "false"},
    {Type::kInt32, "integer", "int32", "", "0"},
    {Type::kInt64, "integer", "int64", "", "0"},
    {Type::kUint32, "integer", "int64", "", "0"},
    {Type::kDouble, "number", "double", "", "0"},
    {Type::kString, "string", "", "", "\"\""},
    {Type::kBytes, "string", "byte", "", ""},
    {Type::kQuantity, "", "", "io.k8s.apimachinery.pkg.api.resource.Quantity", ""},
    {Type::kTime, "", "", "io.k8s.apimachinery.pkg.apis.meta.v1.Time", ""},
    {Type::kMicroTime, "", "", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", ""},
    {Type::kDuration, "", "", "io.k8s.apimachinery.pkg.apis.meta.v1.Duration", ""},
    {Type::kIntOrString, "", "", "io.k8s.apimachinery.pkg.util.intstr.IntOrString", ""},
    {Type::kRawExtension, "", "", "io.k8s.apimachinery.pkg.runtime.RawExtension", ""},
    {Type::kFieldsV1, "", "", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", ""},
    {Type::kAny, "object", "", "", ""},
    {Type::kStringList, "array", "", "", ""},
}};

// Models that are no messages, by the last part of their name.
struct SpecialRow {
  std::string_view name;
  std::string_view schema;  // JSON
};
constexpr SpecialRow kSpecials[] = {
    {"Time", R"({"type":"string","format":"date-time"})"},
    {"MicroTime", R"({"type":"string","format":"date-time"})"},
    {"Duration", R"({"type":"string"})"},
    {"Quantity", R"({"oneOf":[{"type":"string"},{"type":"number"}]})"},
    {"IntOrString", R"({"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]})"},
    {"RawExtension", R"({"type":"object"})"},
    {"FieldsV1", R"({"type":"object"})"},
    {"Patch", R"({"type":"object"})"},
    {"JSON", "{}"},
    {"JSONSchemaPropsOrArray", "{}"},
    {"JSONSchemaPropsOrBool", "{}"},
    {"JSONSchemaPropsOrStringArray", "{}"}};

const TypeRow& RowOf(Type type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row;
  return kTypes.back();
}

void SetJson(Mut out, std::string_view key, std::string_view json) {
  auto value = api::ParseJson(json);
  if (value) out[key].Set(*value);
}

void SetRef(Mut out, std::string_view model, std::set<std::string>& needed) {
  out.Set("$ref", std::string(kSchemaPrefix) + std::string(model));
  needed.emplace(model);
}

// What the tables do not say: the models of values that may be anything, and the fields about which
// Kubernetes says nothing, so that their reference stands alone.
struct Untold {
  std::string_view message, field;
  std::string_view model;  // in the message's package; empty: as the tables say
  bool silent;
};
constexpr std::string_view kSchemaProps =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
constexpr Untold kUntold[] = {{kSchemaProps, "additionalItems", "JSONSchemaPropsOrBool", true},
                              {kSchemaProps, "additionalProperties", "JSONSchemaPropsOrBool", true},
                              {kSchemaProps, "default", "JSON", false},
                              {kSchemaProps, "dependencies", "JSONSchemaPropsOrStringArray", true},
                              {kSchemaProps, "enum", "JSON", true},
                              {kSchemaProps, "example", "JSON", true},
                              {kSchemaProps, "externalDocs", "", true},
                              {kSchemaProps, "items", "JSONSchemaPropsOrArray", true},
                              {kSchemaProps, "not", "", true},
                              {"io.k8s.api.networking.v1.IngressRule", "http", "", true}};

const Untold& UntoldOf(const api::Message& message, const Field& field) {
  static constexpr Untold kNothing = {};
  for (const Untold& row : kUntold) {
    if (row.message == message.name && row.field == field.name) return row;
  }
  return kNothing;
}

// The model that a field's value has, "" for plain types.
std::string ModelOf(const Field& field, const Untold& untold) {
  if (!untold.model.empty()) {
    const std::string_view package = untold.message.substr(0, untold.message.rfind('.') + 1);
    return std::string(package) + std::string(untold.model);
  }
  return std::string(field.type == Type::kMessage ? field.message->name : RowOf(field.type).model);
}

// What one value of the field is. A reference with nothing beside it stands alone, else in allOf.
void WriteType(const Field& field, const Untold& untold, Mut out, std::set<std::string>& needed) {
  const std::string model = ModelOf(field, untold);
  if (!model.empty()) return SetRef(untold.silent ? out : out["allOf"].Append(), model, needed);
  const TypeRow& row = RowOf(field.type);
  out.Set("type", row.json);
  const std::string_view format = field.format.empty() ? row.format : field.format;
  if (!format.empty()) out.Set("format", format);
  for (std::string_view value : field.enum_values) out["enum"].Append().SetString(value);
  if (field.type == Type::kStringList) {
    out["items"].Set("type", "string");
    out["items"].Set("default", "");
  }
}

// An item or a map's value: structs have a default, what describes itself has none.
void WriteElement(const Field& field, const Untold& untold, Mut out,
                  std::set<std::string>& needed) {
  if (field.type == Type::kMessage) {
    out["default"].SetMap();
    return WriteType(field, untold, out, needed);
  }
  const std::string model = ModelOf(field, untold);
  if (!model.empty()) return SetRef(out, model, needed);
  WriteType(field, untold, out, needed);
  const std::string_view zero = RowOf(field.type).zero;
  if (!zero.empty()) SetJson(out, "default", zero);
}

std::string_view ListTypeName(api::ListType type) {
  switch (type) {
    case api::ListType::kAtomic:
      return "atomic";
    case api::ListType::kSet:
      return "set";
    case api::ListType::kMap:
      return "map";
    case api::ListType::kUnset:
      break;
  }
  return "";
}

std::string PatchStrategy(const Field& field) {
  std::string text;
  const auto add = [&text](std::string_view word) {
    if (!text.empty()) text += ',';
    text += word;
  };
  if (field.patch_merge) add("merge");
  if (field.patch_replace) add("replace");
  if (field.patch_retain_keys) add("retainKeys");
  return text;
}

void WriteValue(const Field& field, const Untold& untold, Mut out, std::set<std::string>& needed) {
  if (field.shape == Shape::kList) {
    out.Set("type", "array");
    return WriteElement(field, untold, out["items"], needed);
  }
  if (field.shape == Shape::kMap) {
    out.Set("type", "object");
    return WriteElement(field, untold, out["additionalProperties"], needed);
  }
  WriteType(field, untold, out, needed);
  // A struct that is no pointer always exists; so does a plain value that is always written.
  if (field.type == Type::kMessage && !field.pointer) out["default"].SetMap();
  const std::string_view zero = RowOf(field.type).zero;
  if (field.presence == api::Presence::kAlways && !field.pointer && !zero.empty()) {
    SetJson(out, "default", zero);
  }
}

void WriteProperty(const api::Message& message, const Field& field, Mut out,
                   std::set<std::string>& needed) {
  const Untold& untold = UntoldOf(message, field);
  WriteValue(field, untold, out, needed);
  if (!field.default_json.empty()) SetJson(out, "default", field.default_json);
  if (!field.description.empty() && !untold.silent) out.Set("description", field.description);
  for (std::string_view key : field.list_map_keys) {
    out["x-kubernetes-list-map-keys"].Append().SetString(key);
  }
  if (field.list_type != api::ListType::kUnset) {
    out.Set("x-kubernetes-list-type", ListTypeName(field.list_type));
  }
  if (field.map_atomic) out.Set("x-kubernetes-map-type", "atomic");
  if (field.map_granular) out.Set("x-kubernetes-map-type", "granular");
  if (!field.patch_merge_key.empty()) {
    out.Set("x-kubernetes-patch-merge-key", field.patch_merge_key);
  }
  if (const std::string strategy = PatchStrategy(field); !strategy.empty()) {
    out.Set("x-kubernetes-patch-strategy", strategy);
  }
}

}  // namespace

void WriteSchema(const api::Message& message, Mut out, std::set<std::string>& needed) {
  out.Set("type", "object");
  if (!message.description.empty()) out.Set("description", message.description);
  std::vector<const Field*> fields;
  for (const Field& field : message.fields) {
    if (field.inlined) continue;
    fields.push_back(&field);
    if (field.required) out["required"].Append().SetString(field.name);
  }
  std::sort(fields.begin(), fields.end(),
            [](const Field* a, const Field* b) { return a->name < b->name; });
  Mut properties = out["properties"];
  if (!fields.empty()) properties.SetMap();
  if (message.top) {
    properties["apiVersion"].Set("type", "string");
    properties["kind"].Set("type", "string");
  }
  for (const Field* field : fields) {
    if (message.top && (field->name == "apiVersion" || field->name == "kind")) continue;
    WriteProperty(message, *field, properties[field->name], needed);
  }
  if (message.atomic) out.Set("x-kubernetes-map-type", "atomic");
  if (!message.unions.empty()) SetJson(out, "x-kubernetes-unions", message.unions);
}

bool WriteSpecialSchema(std::string_view model, Mut out) {
  const std::string_view name = model.substr(model.rfind('.') + 1);
  for (const SpecialRow& row : kSpecials) {
    if (row.name != name) continue;
    const auto schema = api::ParseJson(row.schema);
    CHECK(schema);
    out.Set(*schema);
    return true;
  }
  return false;
}

}  // namespace sextant::server
