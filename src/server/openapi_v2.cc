// OpenAPI v2: the same operations and schemas as in version 3, in one document and in its words.
//
// Source: k8s.io/kube-openapi pkg/builder, k8s.io/apiextensions-apiserver
// pkg/controller/openapi/{builder,v2} at v0.36.3. Parameters that many operations share stand in
// each of them: what the real document refers to has names made of its descriptions.
#include <algorithm>
#include <set>

#include "api/json.h"
#include "base/version.h"
#include "server/openapi_document.h"
#include "server/openapi_models.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Kind;
using api::Mut;

constexpr std::string_view kDefinitions = "#/definitions/";

std::string ReferenceTo(std::string_view model) {
  return std::string(kDefinitions) + std::string(model);
}

bool IsTrue(Mut schema, std::string_view key) { return schema.Has(key) && schema[key].AsBool(); }

// The schemas below one.
template <typename Visit>
void ForEachBelow(Mut schema, const Visit& visit) {
  if (schema.Has("properties")) {
    for (const std::string& name : schema["properties"].Keys()) visit(schema["properties"][name]);
  }
  for (std::string_view key : {"items", "additionalProperties"}) {
    if (schema.Has(key) && schema[key].kind() == Kind::kMap) visit(schema[key]);
  }
}

// A reference has nothing beside it but its description.
void MoveReference(Mut schema) {
  if (schema.Has("allOf") && schema["allOf"].size() == 1 && schema["allOf"].at(0).Has("$ref")) {
    schema.Set("$ref", std::string(schema["allOf"].at(0)["$ref"].AsString()));
    schema.Erase("allOf");
  }
  if (!schema.Has("$ref")) return;
  const std::string old(schema["$ref"].AsString());
  schema.Set("$ref", ReferenceTo(std::string_view(old).substr(kSchemaPrefix.size())));
}

void Rewrite(Mut schema) {
  MoveReference(schema);
  schema.Erase("default");
  if (schema.Has("oneOf")) {  // a text or a number
    schema.Erase("oneOf");
    schema.Set("type", "string");
  }
  ForEachBelow(schema, Rewrite);
}

// Version 2 knows no null: what may be null need not be there.
void DropNullableFromRequired(Mut schema) {
  if (!schema.Has("required")) return;
  if (schema.Has("additionalProperties") && schema["additionalProperties"].kind() == Kind::kMap &&
      IsTrue(schema["additionalProperties"], "nullable")) {
    return schema.Erase("required");
  }
  const Mut required = schema["required"];
  for (size_t i = required.size(); i-- > 0;) {
    const std::string name(required.at(i).AsString());
    if (!schema.Has("properties") || !schema["properties"].Has(name)) continue;
    if (IsTrue(schema["properties"][name], "nullable")) required.EraseAt(i);
  }
  if (required.size() == 0) schema.Erase("required");
}

// Custom schemas lose what version 2 has no word for, and what kubectl would take for a closed
// list.
void RewriteCustom(Mut schema) {
  MoveReference(schema);
  for (std::string_view junctor : {"allOf", "oneOf", "anyOf", "not"}) schema.Erase(junctor);
  DropNullableFromRequired(schema);
  const bool nullable = IsTrue(schema, "nullable");
  const bool preserves = IsTrue(schema, "x-kubernetes-preserve-unknown-fields");
  if (nullable || preserves) {
    schema.Erase("items");
    schema.Erase("properties");
  }
  const std::string type(schema.Has("type") ? schema["type"].AsString() : "");
  if (nullable || (type == "array" && !schema.Has("items")) || (preserves && type == "object")) {
    schema.Erase("type");
  }
  schema.Erase("nullable");
  ForEachBelow(schema, RewriteCustom);
}

// Of a kind whose objects may hold anything, nothing is said.
void RewriteCustomRoot(Mut schema) {
  if (!IsTrue(schema, "x-kubernetes-preserve-unknown-fields")) return RewriteCustom(schema);
  for (const std::string& key : schema.Keys()) {
    if (key != "x-kubernetes-group-version-kind" && key != "x-kubernetes-selectable-fields") {
      schema.Erase(key);
    }
  }
  schema.Set("type", "object");
}

class V2Writer {
 public:
  explicit V2Writer(const api::Registry& registry) : registry_(registry), models_(registry) {}

  std::string Write() {
    Mut root = edit_.Root();
    root.Set("swagger", "2.0");
    root["info"].Set("title", "Kubernetes");
    root["info"].Set("version", version::kKubernetes);
    for (const auto& [name, paths] : DiscoveryPaths(registry_)) AddPaths(paths);
    std::set<std::string> done;
    for (const api::Resource* resource : registry_.resources()) {
      const api::GroupVersion& gv = resource->group_version;
      if (done.insert(gv.ToString()).second) AddPaths(PathsOf(registry_, gv));
    }
    AddDefinitions(root["definitions"]);
    AddBearerToken(root["securityDefinitions"]["BearerToken"]);
    root["security"].Append()["BearerToken"].SetList();
    const api::Object document = std::move(edit_).Finish();
    return api::ToJson(document.root());
  }

 private:
  void AddPaths(const ApiPaths& paths) {
    for (const auto& [path, operations] : paths) {
      Mut out = edit_.Root()["paths"][path];
      const std::vector<ApiParameter> common = CommonParameters(operations);
      for (const ApiOperation& operation : operations) {
        AddOperation(out[operation.method], operation, common);
      }
      AddParameters(out, common);
    }
  }

  void AddOperation(Mut out, const ApiOperation& operation,
                    const std::vector<ApiParameter>& common) {
    for (std::string_view type : operation.body_media) out["consumes"].Append().SetString(type);
    for (std::string_view type : operation.answer_media) out["produces"].Append().SetString(type);
    out["schemes"].Append().SetString("https");
    out["tags"].Append().SetString(operation.tag);
    out.Set("operationId", operation.id);
    if (!operation.body.empty()) AddBody(out["parameters"].Append(), operation);
    AddParameters(out, OwnParameters(operation, common));
    if (!operation.answer.empty()) models_.Need(operation.answer);
    for (std::string_view code : operation.codes) {
      Mut response = out["responses"][code];
      response.Set("description", MeaningOf(code));
      if (operation.answer.empty()) {
        response["schema"].Set("type", "string");
      } else {
        response["schema"].Set("$ref", ReferenceTo(operation.answer));
      }
    }
    out["responses"]["401"].Set("description", MeaningOf("401"));
    AddExtensions(out, operation);
  }

  void AddBody(Mut out, const ApiOperation& operation) {
    models_.Need(operation.body);
    out.Set("in", "body");
    out.Set("name", "body");
    if (operation.body_required) out.Set("required", true);
    out["schema"].Set("$ref", ReferenceTo(operation.body));
  }

  static void AddParameters(Mut out, const std::vector<ApiParameter>& parameters) {
    for (const ApiParameter& parameter : parameters) {
      Mut one = out["parameters"].Append();
      one.Set("in", parameter.in);
      one.Set("name", parameter.name);
      if (parameter.in == "path") one.Set("required", true);
      one.Set("type", parameter.type);
      one.Set("uniqueItems", true);
    }
  }

  void AddDefinitions(Mut out) {
    models_.Write(out);
    for (const std::string& model : out.Keys()) {
      models_.IsCustom(model) ? RewriteCustomRoot(out[model]) : Rewrite(out[model]);
    }
  }

  const api::Registry& registry_;
  ModelWriter models_;
  Editor edit_;
};

}  // namespace

std::string WriteOpenApiV2(const api::Registry& registry) { return V2Writer(registry).Write(); }

}  // namespace sextant::server
