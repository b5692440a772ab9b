#include "server/openapi_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/json.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Resource;
using api::Subresource;

// What the documents of one kind of group say of themselves.
struct Head {
  std::string_view title;
  std::string_view version;
  bool security;
};
constexpr Head kBuiltinHead = {"Kubernetes", "1.36", true};
constexpr Head kCustomHead = {"Kubernetes CRD Swagger", "v0.1.0", false};

std::string_view Describe(std::string_view code) {
  if (code == "200") return "OK";
  if (code == "201") return "Created";
  if (code == "202") return "Accepted";
  return "Unauthorized";
}

// Every group version that Kubernetes can decode, served or not: custom kinds' documents name them.
constexpr std::string_view kDecoded[] = {"v1",
                                         "admissionregistration.k8s.io/v1",
                                         "admissionregistration.k8s.io/v1alpha1",
                                         "admissionregistration.k8s.io/v1beta1",
                                         "apps/v1",
                                         "apps/v1beta1",
                                         "apps/v1beta2",
                                         "authentication.k8s.io/v1",
                                         "authentication.k8s.io/v1alpha1",
                                         "authentication.k8s.io/v1beta1",
                                         "authorization.k8s.io/v1",
                                         "authorization.k8s.io/v1beta1",
                                         "autoscaling/v1",
                                         "autoscaling/v2",
                                         "batch/v1",
                                         "batch/v1beta1",
                                         "certificates.k8s.io/v1",
                                         "certificates.k8s.io/v1alpha1",
                                         "certificates.k8s.io/v1beta1",
                                         "coordination.k8s.io/v1",
                                         "coordination.k8s.io/v1alpha2",
                                         "coordination.k8s.io/v1beta1",
                                         "discovery.k8s.io/v1",
                                         "discovery.k8s.io/v1beta1",
                                         "events.k8s.io/v1",
                                         "events.k8s.io/v1beta1",
                                         "extensions/v1beta1",
                                         "flowcontrol.apiserver.k8s.io/v1",
                                         "flowcontrol.apiserver.k8s.io/v1beta1",
                                         "flowcontrol.apiserver.k8s.io/v1beta2",
                                         "flowcontrol.apiserver.k8s.io/v1beta3",
                                         "internal.apiserver.k8s.io/v1alpha1",
                                         "networking.k8s.io/v1",
                                         "networking.k8s.io/v1beta1",
                                         "node.k8s.io/v1",
                                         "node.k8s.io/v1alpha1",
                                         "node.k8s.io/v1beta1",
                                         "policy/v1",
                                         "policy/v1beta1",
                                         "rbac.authorization.k8s.io/v1",
                                         "rbac.authorization.k8s.io/v1alpha1",
                                         "rbac.authorization.k8s.io/v1beta1",
                                         "resource.k8s.io/v1",
                                         "resource.k8s.io/v1alpha3",
                                         "resource.k8s.io/v1beta1",
                                         "resource.k8s.io/v1beta2",
                                         "scheduling.k8s.io/v1",
                                         "scheduling.k8s.io/v1alpha2",
                                         "scheduling.k8s.io/v1beta1",
                                         "storage.k8s.io/v1",
                                         "storage.k8s.io/v1alpha1",
                                         "storage.k8s.io/v1beta1",
                                         "storagemigration.k8s.io/v1beta1"};

// Kinds of meta/v1 that are no resources. Some are spoken in every group.
struct SharedKind {
  std::string_view kind;
  bool in_groups;
};
constexpr SharedKind kSharedKinds[] = {{"DeleteOptions", true},   {"WatchEvent", true},
                                       {"Status", false},         {"APIVersions", false},
                                       {"APIGroup", false},       {"APIGroupList", false},
                                       {"APIResourceList", false}};

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

// The parameters that all operations of a path have: they stand at the path.
std::vector<ApiParameter> Common(const std::vector<ApiOperation>& operations) {
  std::vector<ApiParameter> common = operations.front().parameters;
  std::erase_if(common, [&operations](const ApiParameter& parameter) {
    return !std::all_of(operations.begin(), operations.end(), [&](const ApiOperation& operation) {
      return std::find(operation.parameters.begin(), operation.parameters.end(), parameter) !=
             operation.parameters.end();
    });
  });
  return common;
}

class DocumentWriter {
 public:
  DocumentWriter(const api::Registry& registry, const api::GroupVersion& gv)
      : registry_(registry), gv_(gv) {}

  std::string Write(const ApiPaths& paths) {
    FindCustomModels();
    FindKinds();
    const Head& head = custom_.empty() ? kBuiltinHead : kCustomHead;
    Mut root = edit_.Root();
    root.Set("openapi", "3.0.0");
    root["info"].Set("title", head.title);
    root["info"].Set("version", head.version);
    root["paths"].SetMap();
    for (const auto& [path, operations] : paths) AddPath(root["paths"][path], operations);
    AddSchemas();
    if (head.security) AddSecurity(root["components"]["securitySchemes"]["BearerToken"]);
    const Object document = std::move(edit_).Finish();
    return api::ToJson(document.root());
  }

 private:
  static void AddSecurity(Mut token) {
    token.Set("type", "apiKey");
    token.Set("description", "Bearer Token authentication");
    token.Set("name", "authorization");
    token.Set("in", "header");
  }

  void AddPath(Mut out, const std::vector<ApiOperation>& operations) {
    const std::vector<ApiParameter> common = Common(operations);
    for (const ApiOperation& operation : operations) {
      AddOperation(out[operation.method], operation, common);
    }
    AddParameters(out, common);
  }

  void AddOperation(Mut out, const ApiOperation& operation,
                    const std::vector<ApiParameter>& common) {
    out["tags"].Append().SetString(operation.tag);
    out.Set("operationId", operation.id);
    std::vector<ApiParameter> own = operation.parameters;
    std::erase_if(own, [&common](const ApiParameter& parameter) {
      return std::find(common.begin(), common.end(), parameter) != common.end();
    });
    AddParameters(out, own);
    if (!operation.body.empty()) {
      needed_.insert(operation.body);
      AddContent(out["requestBody"], operation.body_media, operation.body);
      if (operation.body_required) out["requestBody"].Set("required", true);
    }
    if (!operation.answer.empty()) needed_.insert(operation.answer);
    for (std::string_view code : operation.codes) {
      out["responses"][code].Set("description", Describe(code));
      AddContent(out["responses"][code], operation.answer_media, operation.answer);
    }
    out["responses"]["401"].Set("description", Describe("401"));
    if (operation.action.empty()) return;
    out.Set("x-kubernetes-action", operation.action);
    Mut kind = out["x-kubernetes-group-version-kind"];
    kind.Set("group", operation.kind.group);
    kind.Set("version", operation.kind.version);
    kind.Set("kind", operation.kind.kind);
  }

  void FindCustomModels() {
    for (const Resource* resource : registry_.resources()) {
      const api::CustomVersion* custom = api::AsCustom(*resource);
      if (!custom || resource->group_version != gv_) continue;
      custom_.emplace(CustomModel(gv_, resource->kind), custom);
      custom_lists_.emplace(CustomModel(gv_, resource->list_kind), custom);
    }
  }

  // Every model that something refers to, and what those refer to.
  void AddSchemas() {
    Mut schemas = edit_.Root()["components"]["schemas"];
    std::set<std::string> written;
    while (written.size() < needed_.size()) {
      const std::set<std::string> round = needed_;
      for (const std::string& model : round) {
        if (!written.insert(model).second) continue;
        Mut out = schemas[model];
        if (const auto custom = custom_.find(model); custom != custom_.end()) {
          WriteCustomSchema(*custom->second, out, needed_);
          continue;
        }
        if (const auto custom = custom_lists_.find(model); custom != custom_lists_.end()) {
          WriteCustomListSchema(*custom->second, out, needed_);
          continue;
        }
        if (WriteSpecialSchema(model, out)) continue;
        const api::Message* message = registry_.FindMessage(model);
        if (!message) {
          out.Set("type", "object");
          continue;
        }
        WriteSchema(*message, out, needed_);
        AddKinds(*message, out);
      }
    }
  }

  // x-kubernetes-group-version-kind of models that are kinds.
  void AddKinds(const api::Message& message, Mut out) {
    for (const api::GroupVersionKind& known : kinds_[&message]) AddKind(out, known);
    for (const SharedKind& shared : kSharedKinds) {
      if (message.name != fmt::format("{}{}", kMetaPrefix, shared.kind)) continue;
      AddSharedKind(out, shared);
    }
  }

  void AddSharedKind(Mut out, const SharedKind& shared) const {
    if (shared.in_groups && !custom_.empty()) {
      for (std::string_view decoded : kDecoded) {
        const auto gv = api::GroupVersion::Of(decoded);
        AddKind(out, {gv.group, gv.version, shared.kind});
      }
      return;
    }
    AddKind(out, {"", "v1", shared.kind});
    if (shared.in_groups && !gv_.group.empty()) {
      AddKind(out, {gv_.group, gv_.version, shared.kind});
    }
  }

  static void AddKind(Mut out, const api::GroupVersionKind& kind) {
    Mut gvk = out["x-kubernetes-group-version-kind"].Append();
    gvk.Set("group", kind.group);
    gvk.Set("kind", kind.kind);
    gvk.Set("version", kind.version);
  }

  void FindKinds() {
    for (const Resource* resource : registry_.resources()) {
      const api::GroupVersion& gv = resource->group_version;
      Know(resource->message, {gv.group, gv.version, resource->kind});
      Know(registry_.FindKindMessage(gv, resource->list_kind),
           {gv.group, gv.version, resource->list_kind});
      for (const Subresource& sub : resource->subresources) {
        if (sub.message != resource->message) Know(sub.message, sub.kind);
      }
    }
  }

  void Know(const api::Message* message, const api::GroupVersionKind& kind) {
    std::vector<api::GroupVersionKind>& known = kinds_[message];
    if (std::find(known.begin(), known.end(), kind) == known.end()) known.push_back(kind);
  }

  const api::Registry& registry_;
  const api::GroupVersion gv_;  // empty for discovery
  Editor edit_;
  std::set<std::string> needed_;
  std::map<std::string, const api::CustomVersion*> custom_, custom_lists_;  // by model
  std::map<const api::Message*, std::vector<api::GroupVersionKind>> kinds_;
};

}  // namespace

std::string WriteOpenApi(const api::Registry& registry, const ApiPaths& paths,
                         const api::GroupVersion& gv) {
  return DocumentWriter(registry, gv).Write(paths);
}

}  // namespace sextant::server
