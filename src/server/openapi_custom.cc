// OpenAPI v3 schemas of custom resources: what the CRD says, with the fields that every object has.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/openapi/builder at v0.36.3.
#include <fmt/format.h>

#include <algorithm>

#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Value;

void SetRef(Mut out, const std::string& model, std::string_view description,
            std::set<std::string>& needed) {
  out["allOf"].Append().Set("$ref", std::string(kSchemaPrefix) + model);
  if (!description.empty()) out.Set("description", description);
  needed.insert(model);
}

void AddTypeFields(Mut properties) {
  properties["apiVersion"].Set("type", "string");
  properties["kind"].Set("type", "string");
}

// What the extensions mean in the words of OpenAPI: embedded objects have the fields of objects,
// and what may be a number or a text is either.
void AddMeaning(Mut schema, std::set<std::string>& needed) {
  if (schema.Has("properties")) {
    for (const std::string& name : schema["properties"].Keys()) {
      AddMeaning(schema["properties"][name], needed);
    }
  }
  if (schema.Has("items")) AddMeaning(schema["items"], needed);
  if (schema["additionalProperties"].kind() == api::Kind::kMap) {
    AddMeaning(schema["additionalProperties"], needed);
  } else if (!schema["additionalProperties"]) {
    schema.Erase("additionalProperties");
  }
  if (schema.Has("x-kubernetes-int-or-string") && !schema.Has("anyOf")) {
    for (std::string_view type : {"integer", "string"}) schema["anyOf"].Append().Set("type", type);
  }
  if (!schema.Has("x-kubernetes-embedded-resource")) return;
  const Mut properties = schema["properties"];
  AddTypeFields(properties);
  properties.Erase("metadata");
  SetRef(properties["metadata"], std::string(kMetaPrefix) + "ObjectMeta", "", needed);
  for (std::string_view name : {"kind", "apiVersion"}) {
    const Mut required = schema["required"];
    bool there = false;
    for (size_t i = 0; i < required.size(); ++i) {
      there = there || required.at(i).AsString() == name;
    }
    if (!there) required.Append().SetString(name);
  }
}

void AddKind(Mut out, const api::GroupVersion& gv, std::string_view kind) {
  const Mut gvk = out["x-kubernetes-group-version-kind"].Append();
  gvk.Set("group", gv.group);
  gvk.Set("kind", kind);
  gvk.Set("version", gv.version);
}

void AddSelectable(const api::CustomVersion& version, Mut out) {
  for (std::string_view field : version.selectable_fields) {
    out["x-kubernetes-selectable-fields"].Append().Set("fieldPath", field);
  }
}

}  // namespace

std::string CustomModel(const api::GroupVersion& gv, std::string_view kind) {
  std::string_view rest = gv.group;
  std::string reversed;
  while (!rest.empty()) {
    const size_t dot = rest.rfind('.');
    reversed += rest.substr(dot == std::string_view::npos ? 0 : dot + 1);
    reversed += '.';
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  }
  return fmt::format("{}{}.{}", reversed, gv.version, kind);
}

void WriteCustomSchema(const api::CustomVersion& version, Mut out, std::set<std::string>& needed) {
  if (version.schema_source) {
    out.Set(api::CopyOf(version.schema_source));
    AddMeaning(out, needed);
    const Mut properties = out["properties"];
    properties.Erase("metadata");
    SetRef(properties["metadata"], std::string(kMetaPrefix) + "ObjectMeta", "", needed);
    AddTypeFields(properties);
  } else {
    out.Set("type", "object");
  }
  AddKind(out, version.group_version, version.kind);
  AddSelectable(version, out);
}

void WriteCustomListSchema(const api::CustomVersion& version, Mut out,
                           std::set<std::string>& needed) {
  const std::string model = CustomModel(version.group_version, version.kind);
  out.Set("type", "object");
  out.Set("description", fmt::format("{} is a list of {}", version.list_kind, version.kind));
  out["required"].Append().SetString("items");
  const Mut properties = out["properties"];
  AddTypeFields(properties);
  properties["items"].Set("type", "array");
  properties["items"]["items"].Set("$ref", std::string(kSchemaPrefix) + model);
  needed.insert(model);
  SetRef(properties["metadata"], std::string(kMetaPrefix) + "ListMeta", "", needed);
  AddKind(out, version.group_version, version.list_kind);
  AddSelectable(version, out);
}

}  // namespace sextant::server
