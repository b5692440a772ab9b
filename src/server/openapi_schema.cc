#include "server/openapi_schema.h"

#include <algorithm>
#include <array>

#include "api/json.h"

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

// What one value of the field is. A reference stands alone in items without default, else in allOf.
void WriteType(const Field& field, Mut out, std::set<std::string>& needed) {
  const TypeRow& row = RowOf(field.type);
  std::string_view model = row.model;
  if (field.type == Type::kMessage) model = field.message->name;
  if (!model.empty()) return SetRef(out["allOf"].Append(), model, needed);
  out.Set("type", row.json);
  const std::string_view format = field.format.empty() ? row.format : field.format;
  if (!format.empty()) out.Set("format", format);
  if (field.type == Type::kStringList) {
    out["items"].Set("type", "string");
    out["items"].Set("default", "");
  }
}

void WriteElement(const Field& field, Mut out, std::set<std::string>& needed) {
  const TypeRow& row = RowOf(field.type);
  if (field.type == Type::kMessage) {
    out["default"].SetMap();
    return WriteType(field, out, needed);
  }
  if (!row.model.empty()) return SetRef(out, row.model, needed);
  WriteType(field, out, needed);
  if (!row.zero.empty()) SetJson(out, "default", row.zero);
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

void WriteProperty(const Field& field, Mut out, std::set<std::string>& needed) {
  if (field.shape == Shape::kList) {
    out.Set("type", "array");
    WriteElement(field, out["items"], needed);
  } else if (field.shape == Shape::kMap) {
    out.Set("type", "object");
    WriteElement(field, out["additionalProperties"], needed);
  } else {
    WriteType(field, out, needed);
    for (std::string_view value : field.enum_values) out["enum"].Append().SetString(value);
    // A struct that is no pointer always exists; so does a plain value that is always written.
    if (field.type == Type::kMessage && !field.pointer) out["default"].SetMap();
    const std::string_view zero = RowOf(field.type).zero;
    if (field.presence == api::Presence::kAlways && !field.pointer && !zero.empty()) {
      SetJson(out, "default", zero);
    }
  }
  if (!field.default_json.empty()) SetJson(out, "default", field.default_json);
  if (!field.description.empty()) out.Set("description", field.description);
  for (std::string_view key : field.list_map_keys) {
    out["x-kubernetes-list-map-keys"].Append().SetString(key);
  }
  if (field.list_type != api::ListType::kUnset) {
    out.Set("x-kubernetes-list-type", ListTypeName(field.list_type));
  }
  if (field.map_atomic) out.Set("x-kubernetes-map-type", "atomic");
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
    WriteProperty(*field, properties[field->name], needed);
  }
  if (message.atomic) out.Set("x-kubernetes-map-type", "atomic");
}

bool WriteSpecialSchema(std::string_view model, Mut out) {
  const std::string_view name = model.substr(model.rfind('.') + 1);
  if (name == "Time" || name == "MicroTime") {
    out.Set("type", "string");
    out.Set("format", "date-time");
  } else if (name == "Duration") {
    out.Set("type", "string");
  } else if (name == "Quantity") {
    out["oneOf"].Append().Set("type", "string");
    out["oneOf"].Append().Set("type", "number");
  } else if (name == "IntOrString") {
    out.Set("format", "int-or-string");
    out["oneOf"].Append().Set("type", "integer");
    out["oneOf"].Append().Set("type", "string");
  } else if (name == "RawExtension" || name == "FieldsV1" || name == "Patch") {
    out.Set("type", "object");
  } else {
    return false;
  }
  return true;
}

}  // namespace sextant::server
