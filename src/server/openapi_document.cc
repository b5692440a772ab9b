#include "server/openapi_document.h"

#include <fmt/format.h>

#include "api/json.h"
#include "server/openapi_models.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;

// What the documents of one kind of group say of themselves.
struct Head {
  std::string_view title;
  std::string_view version;
  bool security;
};
constexpr Head kBuiltinHead = {"Kubernetes", "1.36", true};
constexpr Head kCustomHead = {"Kubernetes CRD Swagger", "v0.1.0", false};

void AddParameters(Mut out, const std::vector<ApiParameter>& parameters) {
  for (const ApiParameter& parameter : parameters) {
    Mut one = out["parameters"].Append();
    one.Set("name", parameter.name);
    one.Set("in", parameter.in);
    if (parameter.in == "path") one.Set("required", true);
    one["schema"].Set("type", parameter.type);
    one["schema"].Set("uniqueItems", true);
  }
}

void AddContent(Mut out, std::span<const std::string_view> media, const std::string& model) {
  for (std::string_view type : media) {
    Mut schema = out["content"][type]["schema"];
    if (model.empty()) {
      schema.Set("type", "string");
    } else {
      schema.Set("$ref", std::string(kSchemaPrefix) + model);
    }
  }
}

class DocumentWriter {
 public:
  DocumentWriter(const api::Registry& registry, const api::GroupVersion& gv)
      : models_(registry, gv) {}

  std::string Write(const ApiPaths& paths) {
    const Head& head = models_.custom() ? kCustomHead : kBuiltinHead;
    Mut root = edit_.Root();
    root.Set("openapi", "3.0.0");
    root["info"].Set("title", head.title);
    root["info"].Set("version", head.version);
    root["paths"].SetMap();
    for (const auto& [path, operations] : paths) AddPath(root["paths"][path], operations);
    models_.Write(root["components"]["schemas"]);
    if (head.security) AddBearerToken(root["components"]["securitySchemes"]["BearerToken"]);
    const Object document = std::move(edit_).Finish();
    return api::ToJson(document.root());
  }

 private:
  void AddPath(Mut out, const std::vector<ApiOperation>& operations) {
    const std::vector<ApiParameter> common = CommonParameters(operations);
    for (const ApiOperation& operation : operations) {
      AddOperation(out[operation.method], operation, common);
    }
    AddParameters(out, common);
  }

  void AddOperation(Mut out, const ApiOperation& operation,
                    const std::vector<ApiParameter>& common) {
    out["tags"].Append().SetString(operation.tag);
    out.Set("operationId", operation.id);
    AddParameters(out, OwnParameters(operation, common));
    if (!operation.body.empty()) {
      models_.Need(operation.body);
      AddContent(out["requestBody"], operation.body_media, operation.body);
      if (operation.body_required) out["requestBody"].Set("required", true);
    }
    if (!operation.answer.empty()) models_.Need(operation.answer);
    for (std::string_view code : operation.codes) {
      out["responses"][code].Set("description", MeaningOf(code));
      AddContent(out["responses"][code], operation.answer_media, operation.answer);
    }
    out["responses"]["401"].Set("description", MeaningOf("401"));
    AddExtensions(out, operation);
  }

  ModelWriter models_;
  Editor edit_;
};

}  // namespace

void AddExtensions(Mut out, const ApiOperation& operation) {
  if (operation.action.empty()) return;
  out.Set("x-kubernetes-action", operation.action);
  Mut kind = out["x-kubernetes-group-version-kind"];
  kind.Set("group", operation.kind.group);
  kind.Set("version", operation.kind.version);
  kind.Set("kind", operation.kind.kind);
}

void AddBearerToken(Mut out) {
  out.Set("type", "apiKey");
  out.Set("description", "Bearer Token authentication");
  out.Set("name", "authorization");
  out.Set("in", "header");
}

std::string WriteOpenApi(const api::Registry& registry, const ApiPaths& paths,
                         const api::GroupVersion& gv) {
  return DocumentWriter(registry, gv).Write(paths);
}

}  // namespace sextant::server
