// OpenAPI v3: the index and one document a group version, built from the registry's tables once and
// then served from memory with the cache headers that let kubectl keep them for good.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "api/json.h"
#include "net/http.h"
#include "net/tls.h"
#include "server/fixed_paths.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Resource;
using api::Subresource;

std::string PathOf(const api::GroupVersion& gv) {
  return (gv.group.empty() ? "api/" : "apis/") + gv.ToString();
}

struct Parameter {
  std::string_view name;
  std::string_view type;
};
constexpr Parameter kWrite[] = {
    {"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}};
constexpr Parameter kPatch[] = {{"dryRun", "string"},
                                {"fieldManager", "string"},
                                {"fieldValidation", "string"},
                                {"force", "boolean"}};
constexpr Parameter kDelete[] = {{"dryRun", "string"},
                                 {"gracePeriodSeconds", "integer"},
                                 {"orphanDependents", "boolean"},
                                 {"propagationPolicy", "string"}};
constexpr Parameter kList[] = {{"allowWatchBookmarks", "boolean"},
                               {"continue", "string"},
                               {"fieldSelector", "string"},
                               {"labelSelector", "string"},
                               {"limit", "integer"},
                               {"resourceVersion", "string"},
                               {"resourceVersionMatch", "string"},
                               {"sendInitialEvents", "boolean"},
                               {"timeoutSeconds", "integer"},
                               {"watch", "boolean"}};

void AddParameters(Mut operation, std::span<const Parameter> parameters, std::string_view in) {
  for (const Parameter& parameter : parameters) {
    Mut out = operation["parameters"].Append();
    out.Set("name", parameter.name);
    out.Set("in", in);
    if (in == "path") out.Set("required", true);
    out["schema"].Set("type", parameter.type);
    out["schema"].Set("uniqueItems", true);
  }
}

void AddResponse(Mut operation, std::string_view code, std::string_view model) {
  Mut response = operation["responses"][code];
  response.Set("description", "");
  for (std::string_view media :
       {"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"}) {
    response["content"][media]["schema"].Set("$ref",
                                             std::string(kSchemaPrefix) + std::string(model));
  }
}

// One verb as HTTP has it.
struct Verb {
  std::string_view verb;    // Kubernetes'
  std::string_view method;  // OpenAPI's key
  std::string_view action;  // x-kubernetes-action
  std::span<const Parameter> parameters;
  bool on_collection;
};
const Verb kVerbs[] = {{"get", "get", "get", {}, false},
                       {"list", "get", "list", kList, true},
                       {"create", "post", "post", kWrite, true},
                       {"update", "put", "put", kWrite, false},
                       {"patch", "patch", "patch", kPatch, false},
                       {"delete", "delete", "delete", kDelete, false},
                       {"deletecollection", "delete", "deletecollection", kDelete, true}};

class DocumentWriter {
 public:
  DocumentWriter(const api::Registry& registry, api::GroupVersion gv)
      : registry_(registry), gv_(gv) {}

  std::string Write() {
    Mut root = edit_.Root();
    root.Set("openapi", "3.0.0");
    root["info"].Set("title", "Kubernetes");
    root["info"].Set("version", "v1.36.3");
    root["paths"].SetMap();
    for (const Resource* resource : registry_.resources()) {
      if (resource->group_version == gv_) AddResource(*resource);
    }
    AddSchemas();
    Mut token = root["components"]["securitySchemes"]["BearerToken"];
    token.Set("type", "apiKey");
    token.Set("in", "header");
    token.Set("name", "authorization");
    const Object document = std::move(edit_).Finish();
    return api::ToJson(document.root());
  }

 private:
  std::string Model(const api::Message* message) {
    needed_.emplace(message->name);
    return std::string(message->name);
  }

  // `body` and `answer` are models, "" where there is none.
  void AddOperation(Mut path, const Verb& verb, const api::GroupVersionKind& gvk,
                    const std::string& body, const std::string& answer, bool custom) {
    Mut operation = path[verb.method];
    AddParameters(operation, verb.parameters, "query");
    const bool deletes = verb.method == "delete";
    if (verb.verb == "patch") {
      for (std::string_view media : {"application/json-patch+json", "application/merge-patch+json",
                                     "application/strategic-merge-patch+json"}) {
        if (custom && media.find("strategic") != std::string_view::npos) continue;
        operation["requestBody"]["content"][media]["schema"].Set(
            "$ref", fmt::format("{}{}Patch", kSchemaPrefix, kMetaPrefix));
      }
      needed_.insert(std::string(kMetaPrefix) + "Patch");
    } else if (verb.method == "post" || verb.method == "put" || deletes) {
      const std::string model = deletes ? std::string(kMetaPrefix) + "DeleteOptions" : body;
      needed_.insert(model);
      operation["requestBody"]["content"]["*/*"]["schema"].Set("$ref",
                                                               std::string(kSchemaPrefix) + model);
    }
    if (!answer.empty()) {
      needed_.insert(answer);
      AddResponse(operation, "200", answer);
      if (verb.method == "post" || verb.method == "put" || verb.method == "patch") {
        AddResponse(operation, "201", answer);
      }
    }
    operation.Set("x-kubernetes-action", verb.action);
    Mut kind = operation["x-kubernetes-group-version-kind"];
    kind.Set("group", gvk.group);
    kind.Set("version", gvk.version);
    kind.Set("kind", gvk.kind);
  }

  // The models of a resource, of a list of it and of what a subresource speaks.
  std::string ModelOf(const Resource& resource) {
    if (const api::CustomVersion* custom = api::AsCustom(resource)) {
      const std::string model = CustomModel(gv_, resource.kind);
      custom_.emplace(model, custom);
      return model;
    }
    return Model(resource.message);
  }
  std::string ListModelOf(const Resource& resource) {
    if (const api::CustomVersion* custom = api::AsCustom(resource)) {
      const std::string model = CustomModel(gv_, resource.list_kind);
      custom_lists_.emplace(model, custom);
      return model;
    }
    return Model(registry_.FindKindMessage(gv_, resource.list_kind));
  }

  void AddResource(const Resource& resource) {
    const api::GroupVersionKind gvk{gv_.group, gv_.version, resource.kind};
    const std::string base = "/" + PathOf(gv_);
    const std::string collection = base + (resource.namespaced ? "/namespaces/{namespace}/" : "/") +
                                   std::string(resource.plural);
    const bool custom = api::AsCustom(resource) != nullptr;
    const std::string model = ModelOf(resource);
    for (const Verb& verb : kVerbs) {
      if (!resource.HasVerb(verb.verb)) continue;
      std::string answer = model;
      if (verb.verb == "list") answer = ListModelOf(resource);
      if (verb.method == "delete") answer = std::string(kMetaPrefix) + "Status";
      AddOperation(PathNode(collection + (verb.on_collection ? "" : "/{name}"), resource), verb,
                   gvk, model, answer, custom);
    }
    if (resource.namespaced && resource.HasVerb("list")) {
      Mut all = PathNode(base + "/" + std::string(resource.plural), resource);
      AddOperation(all, kVerbs[1], gvk, "", ListModelOf(resource), custom);
    }
    for (const Subresource& sub : resource.subresources) AddSubresource(resource, sub, collection);
  }

  void AddSubresource(const Resource& resource, const Subresource& sub,
                      const std::string& collection) {
    Mut path = PathNode(fmt::format("{}/{{name}}/{}", collection, sub.name), resource);
    const bool whole = sub.message && sub.message->custom;
    for (std::string_view known : sub.verbs) {
      for (const Verb& verb : kVerbs) {
        if (verb.verb != known || !sub.message) continue;
        const std::string model = whole ? ModelOf(resource) : Model(sub.message);
        AddOperation(path, verb, sub.kind, model, model, whole);
      }
    }
  }

  // The node of one path, with its path parameters.
  Mut PathNode(const std::string& path, const Resource&) {
    Mut node = edit_.Root()["paths"][path];
    if (node.Has("parameters")) return node;
    node["parameters"].SetList();
    constexpr Parameter kName[] = {{"name", "string"}};
    constexpr Parameter kNamespace[] = {{"namespace", "string"}};
    constexpr Parameter kPretty[] = {{"pretty", "string"}};
    if (path.find("{name}") != std::string::npos) AddParameters(node, kName, "path");
    if (path.find("{namespace}") != std::string::npos) AddParameters(node, kNamespace, "path");
    AddParameters(node, kPretty, "query");
    return node;
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
    std::set<std::string> said;
    const auto add = [&out, &said](std::string_view group, std::string_view version,
                                   std::string_view kind) {
      if (!said.insert(fmt::format("{}/{}/{}", group, version, kind)).second) return;
      Mut gvk = out["x-kubernetes-group-version-kind"].Append();
      gvk.Set("group", group);
      gvk.Set("kind", kind);
      gvk.Set("version", version);
    };
    for (const Resource* resource : registry_.resources()) {
      const api::GroupVersion& gv = resource->group_version;
      if (resource->message == &message) add(gv.group, gv.version, resource->kind);
      if (registry_.FindKindMessage(gv, resource->list_kind) == &message) {
        add(gv.group, gv.version, resource->list_kind);
      }
      for (const Subresource& sub : resource->subresources) {
        if (sub.message == &message && sub.message != resource->message) {
          add(sub.kind.group, sub.kind.version, sub.kind.kind);
        }
      }
    }
    if (message.name == std::string(kMetaPrefix) + "DeleteOptions") {
      add("", "v1", "DeleteOptions");
      if (!gv_.group.empty()) add(gv_.group, gv_.version, "DeleteOptions");
    }
    if (message.name == std::string(kMetaPrefix) + "Status") add("", "v1", "Status");
  }

  const api::Registry& registry_;
  const api::GroupVersion gv_;
  Editor edit_;
  std::set<std::string> needed_;
  std::map<std::string, const api::CustomVersion*> custom_, custom_lists_;  // by model
};

class TableOpenApi : public OpenApi {
 public:
  Result<Document> Serve(std::string_view path, std::string_view query, std::string_view,
                         const std::shared_ptr<const api::Registry>& registry) override {
    constexpr std::string_view kV3 = "/openapi/v3";
    std::lock_guard lock(mutex_);
    if (registry != known_) Build(registry);
    if (path == kV3) return index_;
    if (!path.starts_with("/openapi/v3/")) return Fail(PathNotFound());
    const auto found = documents_.find(std::string(path.substr(kV3.size() + 1)));
    if (found == documents_.end()) return Fail(PathNotFound());
    Document document = found->second;
    ASSIGN_OR_RETURN(const auto parameters, net::ParseQuery(query));
    for (const auto& [name, value] : parameters) {
      if (name != "hash" || fmt::format("\"{}\"", value) != document.etag) continue;
      // A path with the right hash never changes its content.
      document.cache_control = "public, immutable";
      document.expires = "Fri, 31 Dec 2055 23:59:59 GMT";
    }
    return document;
  }

 private:
  // Documents of group versions whose resources are still the same ones stay.
  void Build(const std::shared_ptr<const api::Registry>& registry) {
    std::map<std::string, std::vector<const Resource*>> resources;  // by path
    for (const Resource* resource : registry->resources()) {
      resources[PathOf(resource->group_version)].push_back(resource);
    }
    std::map<std::string, Document> documents;
    Editor edit;
    edit.Root()["paths"].SetMap();
    for (const auto& [path, group] : resources) {
      const auto had = resources_.find(path);
      const bool same = had != resources_.end() && had->second == group;
      Document& document = documents[path];
      document = same ? documents_.at(path) : Made(*registry, group.front()->group_version);
      const std::string_view hash =
          std::string_view(document.etag).substr(1, document.etag.size() - 2);
      edit.Root()["paths"][path].Set("serverRelativeURL",
                                     fmt::format("/openapi/v3/{}?hash={}", path, hash));
    }
    documents_ = std::move(documents);
    resources_ = std::move(resources);
    known_ = registry;  // until now the old one kept its resources' addresses taken
    const Object index = std::move(edit).Finish();
    std::string body = api::ToJson(index.root());
    index_.content_type = "text/plain; charset=utf-8";  // as the real server sends it
    index_.cache_control = "no-cache, private";
    index_.etag = fmt::format("\"{}\"", net::Hex(net::Sha256(body)));
    index_.body = net::MakeBuffer(std::move(body));
  }

  static Document Made(const api::Registry& registry, const api::GroupVersion& gv) {
    std::string body = DocumentWriter(registry, gv).Write();
    Document document;
    document.content_type = "application/json";
    document.cache_control = "no-cache, private";
    document.etag = fmt::format("\"{}\"", net::Hex(net::Sha256(body)));
    document.body = net::MakeBuffer(std::move(body));
    return document;
  }

  std::mutex mutex_;
  std::shared_ptr<const api::Registry> known_;                     // guarded by mutex_
  std::map<std::string, std::vector<const Resource*>> resources_;  // guarded by mutex_; of known_
  Document index_;                                                 // guarded by mutex_
  std::map<std::string, Document> documents_;                      // guarded by mutex_
};

}  // namespace

std::unique_ptr<OpenApi> MakeOpenApi() { return std::make_unique<TableOpenApi>(); }

}  // namespace sextant::server
