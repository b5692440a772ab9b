// OpenAPI: version 3's index and documents and version 2's one document, made when they are first
// asked for and then served from memory. Version 3 has the headers that let kubectl keep them for
// good.
//
// Source: k8s.io/kube-aggregator pkg/controllers/openapiv3/aggregator, k8s.io/kube-openapi
// pkg/{handler,handler3}.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "api/json.h"
#include "base/ascii.h"
#include "net/http.h"
#include "net/tls.h"
#include "server/fixed_paths.h"
#include "server/negotiate.h"
#include "server/openapi_document.h"
#include "server/openapi_protobuf.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Object;
using api::Resource;

constexpr std::string_view kV3 = "/openapi/v3";
enum class Form : uint8_t { kJson, kProtobuf };

// What a version of OpenAPI is called in the names of its protobuf form; "@" is how it began.
struct Names {
  std::string_view protobuf;
  std::string_view old;
  std::string (*encode)(api::Value);
};
constexpr Names kNames2 = {"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                           "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
                           OpenApiV2Protobuf};
constexpr Names kNames3 = {"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
                           "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
                           OpenApiV3Protobuf};

// The form that `accept` asks for; none where nothing can be served.
std::optional<Form> FormOf(std::string_view accept, const Names& names) {
  if (accept.empty()) return Form::kJson;
  for (const MediaRange& range : ParseAccept(accept)) {
    for (std::string_view any : {"application/json", "application/*", "*/*"}) {
      if (range.type == any) return Form::kJson;
    }
    if (range.type == names.protobuf || range.type == names.old) return Form::kProtobuf;
  }
  return std::nullopt;
}

// In capitals, as the real server writes its hashes.
std::string HashOfBody(std::string_view body) {
  std::string hash = net::Hex(net::Sha256(body));
  for (char& c : hash) c = AsciiUpper(c);
  return hash;
}

Document Made(std::string body) {
  Document document;
  document.content_type = "application/json";
  document.cache_control = "no-cache, private";
  document.etag = fmt::format("\"{}\"", HashOfBody(body));
  document.body = net::MakeBuffer(std::move(body));
  return document;
}

std::string TypeOf(Form form, const Names& names) {
  return form == Form::kJson ? "application/json" : std::string(names.protobuf);
}

// A document, and its protobuf form once somebody has asked for it.
struct Kept {
  Document json;
  net::Buffer protobuf;
};

Result<Document> In(Form form, Kept& kept, const Names& names) {
  if (form == Form::kJson) return kept.json;
  if (!kept.protobuf) {
    ASSIGN_OR_RETURN(const Object object, api::ParseJson(*kept.json.body));
    kept.protobuf = net::MakeBuffer(names.encode(object.root()));
  }
  Document document = kept.json;
  document.content_type = TypeOf(form, names);
  document.body = kept.protobuf;
  return document;
}

std::string_view HashOf(const Document& document) {
  return std::string_view(document.etag).substr(1, document.etag.size() - 2);
}

std::string UrlOf(std::string_view name, const Document& document) {
  return fmt::format("{}/{}?hash={}", kV3, name, HashOf(document));
}

class TableOpenApi : public OpenApi {
 public:
  Result<Document> Serve(std::string_view path, std::string_view query, std::string_view accept,
                         const std::shared_ptr<const api::Registry>& registry) override {
    ASSIGN_OR_RETURN(const auto parameters, net::ParseQuery(query));
    std::lock_guard lock(mutex_);
    if (path == "/openapi/v2") return ServeV2(accept, registry);
    if (path != kV3 && !path.starts_with("/openapi/v3/")) return Fail(PathNotFound());
    if (registry != known_) Build(registry);
    if (path == kV3) return index_;
    const auto found = documents_.find(std::string(path.substr(kV3.size() + 1)));
    if (found == documents_.end()) return Document{.status = 404};
    const std::optional<Form> form = FormOf(accept, kNames3);
    if (!form) return Document{.status = 406};
    const auto hash = std::find_if(parameters.begin(), parameters.end(),
                                   [](const auto& one) { return one.first == "hash"; });
    const bool hashed = hash != parameters.end() && !hash->second.empty();
    Kept& kept = found->second;
    if (hashed && hash->second != HashOf(kept.json)) {
      return Document{.status = 301,
                      .content_type = TypeOf(*form, kNames3),
                      .location = UrlOf(found->first, kept.json)};
    }
    ASSIGN_OR_RETURN(Document document, In(*form, kept, kNames3));
    if (!hashed) return document;
    // A path with the right hash never changes its content.
    document.cache_control = "public, immutable";
    document.expires = "Fri, 31 Dec 2055 23:59:59 GMT";
    return document;
  }

 private:
  Result<Document> ServeV2(std::string_view accept,
                           const std::shared_ptr<const api::Registry>& registry) {
    const std::optional<Form> form = FormOf(accept, kNames2);
    if (!form) return Document{.status = 406};
    if (registry != known_to_v2_) {
      v2_ = {.json = Made(WriteOpenApiV2(*registry))};
      v2_.json.cache_control.clear();
      v2_.json.vary = {"Accept-Encoding", "Accept"};
      known_to_v2_ = registry;
    }
    return In(*form, v2_, kNames2);
  }

  // Documents of group versions whose resources are still the same ones stay.
  void Build(const std::shared_ptr<const api::Registry>& registry) {
    std::map<std::string, std::vector<const Resource*>> resources;  // by name
    for (const Resource* resource : registry->resources()) {
      resources[DocumentName(resource->group_version)].push_back(resource);
    }
    std::map<std::string, Kept> documents;
    for (const auto& [name, group] : resources) {
      const auto had = resources_.find(name);
      if (had != resources_.end() && had->second == group) {
        documents[name] = documents_.at(name);
        continue;
      }
      const api::GroupVersion& gv = group.front()->group_version;
      documents[name].json = Made(WriteOpenApi(*registry, PathsOf(*registry, gv), gv));
    }
    for (const auto& [name, paths] : DiscoveryPaths(*registry)) {
      documents[name].json = Made(WriteOpenApi(*registry, paths, {}));
    }
    documents_ = std::move(documents);
    resources_ = std::move(resources);
    known_ = registry;  // until now the old one kept its resources' addresses taken
    WriteIndex();
  }

  void WriteIndex() {
    Editor edit;
    edit.Root()["paths"].SetMap();
    for (const auto& [name, kept] : documents_) {
      edit.Root()["paths"][name].Set("serverRelativeURL", UrlOf(name, kept.json));
    }
    const Object index = std::move(edit).Finish();
    index_ = Made(api::ToJson(index.root()));
    index_.content_type = "text/plain; charset=utf-8";  // as the real server sends it
    index_.vary.clear();
  }

  std::mutex mutex_;
  std::shared_ptr<const api::Registry> known_;                     // guarded by mutex_
  std::map<std::string, std::vector<const Resource*>> resources_;  // guarded by mutex_; of known_
  Document index_;                                                 // guarded by mutex_
  std::map<std::string, Kept> documents_;                          // guarded by mutex_; by name
  std::shared_ptr<const api::Registry> known_to_v2_;               // guarded by mutex_
  Kept v2_;                                                        // guarded by mutex_
};

}  // namespace

std::unique_ptr<OpenApi> MakeOpenApi() { return std::make_unique<TableOpenApi>(); }

}  // namespace sextant::server
