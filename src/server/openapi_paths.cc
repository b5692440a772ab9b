#include "server/openapi_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "api/custom_kind.h"
#include "api/rules.h"
#include "base/ascii.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::GroupVersion;
using api::Resource;
using api::Subresource;
using Words = std::span<const std::string_view>;

constexpr ApiParameter kName = {"name", "path", "string"};
constexpr ApiParameter kNamespace = {"namespace", "path", "string"};
constexpr ApiParameter kPretty = {"pretty", "query", "string"};
constexpr ApiParameter kPathBelow = {"path", "path", "string"};
constexpr ApiParameter kVersionQuery[] = {{"resourceVersion", "query", "string"}};
constexpr ApiParameter kWriteQuery[] = {{"dryRun", "query", "string"},
                                        {"fieldManager", "query", "string"},
                                        {"fieldValidation", "query", "string"}};
constexpr ApiParameter kPatchQuery[] = {{"dryRun", "query", "string"},
                                        {"fieldManager", "query", "string"},
                                        {"fieldValidation", "query", "string"},
                                        {"force", "query", "boolean"}};
constexpr ApiParameter kDeleteQuery[] = {
    {"dryRun", "query", "string"},
    {"gracePeriodSeconds", "query", "integer"},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean"},
    {"orphanDependents", "query", "boolean"},
    {"propagationPolicy", "query", "string"}};
constexpr ApiParameter kListQuery[] = {{"allowWatchBookmarks", "query", "boolean"},
                                       {"continue", "query", "string"},
                                       {"fieldSelector", "query", "string"},
                                       {"labelSelector", "query", "string"},
                                       {"limit", "query", "integer"},
                                       {"resourceVersion", "query", "string"},
                                       {"resourceVersionMatch", "query", "string"},
                                       {"sendInitialEvents", "query", "boolean"},
                                       {"shardSelector", "query", "string"},
                                       {"timeoutSeconds", "query", "integer"},
                                       {"watch", "query", "boolean"}};
constexpr ApiParameter kDeleteManyQuery[] = {
    {"continue", "query", "string"},
    {"dryRun", "query", "string"},
    {"fieldSelector", "query", "string"},
    {"gracePeriodSeconds", "query", "integer"},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean"},
    {"labelSelector", "query", "string"},
    {"limit", "query", "integer"},
    {"orphanDependents", "query", "boolean"},
    {"propagationPolicy", "query", "string"},
    {"resourceVersion", "query", "string"},
    {"resourceVersionMatch", "query", "string"},
    {"sendInitialEvents", "query", "boolean"},
    {"shardSelector", "query", "string"},
    {"timeoutSeconds", "query", "integer"}};

constexpr std::string_view kJson[] = {"application/json"};
constexpr std::string_view kKeySet[] = {"application/jwk-set+json"};
constexpr std::string_view kJsonAndYaml[] = {"application/json", "application/yaml"};
constexpr std::string_view kMedia[] = {"application/json", "application/yaml",
                                       "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kMediaAndText[] = {"text/plain", "application/json", "application/yaml",
                                              "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kStreams[] = {
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"};
constexpr std::string_view kAnyMedia[] = {"*/*"};
constexpr std::string_view kPatches[] = {
    "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml"};
constexpr std::string_view kCustomPatches[] = {
    "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"};

constexpr std::string_view kCodes[] = {"200", "201", "202"};
constexpr Words kOk = Words(kCodes).first(1);
constexpr Words kOkOrCreated = Words(kCodes).first(2);
constexpr Words kOkCreatedOrAccepted = kCodes;
constexpr std::string_view kOkOrAcceptedCodes[] = {"200", "202"};
constexpr Words kOkOrAccepted = kOkOrAcceptedCodes;

// What a body or an answer is.
enum class Speaks : uint8_t { kNothing, kObject, kList, kOptions, kPatch, kStatus, kGone, kEvent };

// One verb as HTTP has it. An operation's name is `word`, the API's name, `tail`, the kind's names.
struct Verb {
  std::string_view verb;    // Kubernetes'
  std::string_view method;  // OpenAPI's key
  std::string_view action;
  std::string_view word, tail;
  bool on_collection;
  std::span<const ApiParameter> parameters;
  Speaks body;
  Words body_media;
  Speaks answer;
  Words answer_media;
  Words codes;
};
using enum Speaks;
// clang-format off
constexpr Verb kBuiltin[] = {
  {"list", "get", "list", "list", "", true, kListQuery,
   kNothing, kAnyMedia, kList, kStreams, kOk},
  {"create", "post", "post", "create", "", true, kWriteQuery,
   kObject, kAnyMedia, kObject, kMedia, kOkCreatedOrAccepted},
  {"deletecollection", "delete", "deletecollection", "delete", "Collection", true, kDeleteManyQuery,
   kOptions, kAnyMedia, kStatus, kMedia, kOk},
  {"get", "get", "get", "read", "", false, {},
   kNothing, kAnyMedia, kObject, kMedia, kOk},
  {"update", "put", "put", "replace", "", false, kWriteQuery,
   kObject, kAnyMedia, kObject, kMedia, kOkOrCreated},
  {"patch", "patch", "patch", "patch", "", false, kPatchQuery,
   kPatch, kPatches, kObject, kMedia, kOkOrCreated},
  {"delete", "delete", "delete", "delete", "", false, kDeleteQuery,
   kOptions, kAnyMedia, kGone, kMedia, kOkOrAccepted}};
// Below /watch/, of what can be watched.
constexpr Verb kWatches[] = {
  {"watch", "get", "watchlist", "watch", "", true, kListQuery,
   kNothing, kAnyMedia, kEvent, kStreams, kOk},
  {"watch", "get", "watch", "watch", "", false, kListQuery,
   kNothing, kAnyMedia, kEvent, kStreams, kOk}};
constexpr Verb kCustom[] = {
  {"list", "get", "list", "list", "", true, kListQuery,
   kNothing, kJsonAndYaml, kList, kJsonAndYaml, kOk},
  {"create", "post", "post", "create", "", true, kWriteQuery,
   kObject, kJsonAndYaml, kObject, kJsonAndYaml, kOkCreatedOrAccepted},
  {"deletecollection", "delete", "deletecollection", "delete", "Collection", true, kListQuery,
   kNothing, kJsonAndYaml, kStatus, kJsonAndYaml, kOk},
  {"get", "get", "get", "read", "", false, kVersionQuery,
   kNothing, kJsonAndYaml, kObject, kJsonAndYaml, kOk},
  {"update", "put", "put", "replace", "", false, kWriteQuery,
   kObject, kJsonAndYaml, kObject, kJsonAndYaml, kOkOrCreated},
  {"patch", "patch", "patch", "patch", "", false, kPatchQuery,
   kPatch, kCustomPatches, kObject, kJsonAndYaml, kOk},
  {"delete", "delete", "delete", "delete", "", false, kDeleteQuery,
   kOptions, kJsonAndYaml, kGone, kJsonAndYaml, kOkOrAccepted}};
// clang-format on

// The verbs of what is connected to. The last two nobody can be granted.
struct ConnectVerb {
  std::string_view verb, method, word;
};
constexpr ConnectVerb kConnects[] = {{"get", "get", "Get"},       {"update", "put", "Put"},
                                     {"create", "post", "Post"},  {"delete", "delete", "Delete"},
                                     {"patch", "patch", "Patch"}, {"", "options", "Options"},
                                     {"", "head", "Head"}};

// Subresources that answer with a text, and whose parameters they take.
struct TextRow {
  std::string_view group, plural, subresource, options;
};
constexpr TextRow kTexts[] = {{"", "pods", "log", "io.k8s.api.core.v1.PodLogOptions"}};

// DELETE answers with an object in the end, but the registry's storage does not say so.
constexpr std::array<std::string_view, 2> kSaysStatus[] = {{"", "namespaces"}};

std::string Meta(std::string_view name) { return std::string(kMetaPrefix) + std::string(name); }

// "rbac.authorization.k8s.io" -> "rbacAuthorization": letters and digits, capitals after the rest.
std::string Camel(std::string_view text, bool capital) {
  std::string out;
  for (const char c : text) {
    const bool letter = IsAlphanumeric(c);
    if (letter) out += capital ? AsciiUpper(c) : c;
    capital = !letter;
  }
  return out;
}

std::string_view ShortGroup(std::string_view group) {
  constexpr std::string_view kOfficial = ".k8s.io";
  if (group.empty()) return "core";
  return group.ends_with(kOfficial) ? group.substr(0, group.size() - kOfficial.size()) : group;
}

std::string Title(std::string_view text) {
  std::string out(text);
  if (!out.empty()) out[0] = AsciiUpper(out[0]);
  return out;
}

void Sort(std::vector<ApiParameter>& parameters) {
  std::sort(parameters.begin(), parameters.end(), [](const ApiParameter& a, const ApiParameter& b) {
    return std::tie(a.name, a.in) < std::tie(b.name, b.in);
  });
}

bool IsConnect(const Subresource& sub) { return sub.kind.kind.ends_with("Options"); }

const TextRow* TextOf(const Resource& resource, const Subresource& sub) {
  for (const TextRow& row : kTexts) {
    if (row.group == resource.group_version.group && row.plural == resource.plural &&
        row.subresource == sub.name) {
      return &row;
    }
  }
  return nullptr;
}

bool DeletesToStatus(const Resource& resource) {
  if (!api::RulesFor(resource).returns_deleted) return true;
  return std::any_of(std::begin(kSaysStatus), std::end(kSaysStatus), [&](const auto& row) {
    return row[0] == resource.group_version.group && row[1] == resource.plural;
  });
}

// The fields of an Options message that a query can carry.
void AddOptions(const api::Message& options, std::vector<ApiParameter>& out) {
  for (const api::Field& field : options.fields) {
    if (field.number == 0) continue;  // kind and apiVersion
    switch (field.type) {
      case api::Type::kString:
        out.push_back({field.name, "query", "string"});
        break;
      case api::Type::kBool:
        out.push_back({field.name, "query", "boolean"});
        break;
      case api::Type::kInt32:
      case api::Type::kInt64:
        out.push_back({field.name, "query", "integer"});
        break;
      default:
        break;
    }
  }
}

class PathsWriter {
 public:
  PathsWriter(const api::Registry& registry, GroupVersion gv)
      : registry_(registry), gv_(gv), base_("/" + DocumentName(gv) + "/") {}

  ApiPaths Write() {
    bool custom = false;
    for (const Resource* resource : registry_.resources()) {
      if (resource->group_version != gv_) continue;
      custom = custom || api::AsCustom(*resource);
      AddResource(*resource);
    }
    if (!custom) AddDiscovery();
    return std::move(paths_);
  }

 private:
  // Where operations are: of all namespaces or of one, under watch/ or not.
  struct Place {
    const Resource& resource;
    const Subresource* sub = nullptr;
    bool everywhere = false;
    std::string_view under = "";

    bool InNamespace() const { return resource.namespaced && !everywhere; }
  };

  std::string PathOf(const Place& place, bool on_collection) const {
    return fmt::format("{}{}{}{}{}{}{}", base_, place.under,
                       place.InNamespace() ? "namespaces/{namespace}/" : "", place.resource.plural,
                       on_collection ? "" : "/{name}", place.sub ? "/" : "",
                       place.sub ? place.sub->name : "");
  }

  std::string ModelOf(const Place& place, Speaks speaks) const {
    const Resource& resource = place.resource;
    const bool custom = api::AsCustom(resource) != nullptr;
    switch (speaks) {
      case kNothing:
        return "";
      case kObject:
        if (place.sub && !place.sub->message->custom) return std::string(place.sub->message->name);
        return custom ? CustomModel(gv_, resource.kind) : std::string(resource.message->name);
      case kList:
        if (custom) return CustomModel(gv_, resource.list_kind);
        return std::string(registry_.FindKindMessage(gv_, resource.list_kind)->name);
      case kOptions:
        return Meta("DeleteOptions");
      case kPatch:
        return Meta("Patch");
      case kStatus:
        return Meta("Status");
      case kGone:
        return ModelOf(place, DeletesToStatus(resource) ? kStatus : kObject);
      case kEvent:
        return Meta("WatchEvent");
    }
    return "";
  }

  // The operation with what all have in common; `word` and what follows make its id.
  ApiOperation& Add(const std::string& path, const Place& place, std::string_view word,
                    std::string_view tail, std::string_view end) {
    ApiOperation& out = paths_[path].emplace_back();
    const Resource& resource = place.resource;
    out.id = fmt::format("{}{}{}{}{}{}{}{}{}", word, Camel(ShortGroup(gv_.group), true),
                         Title(gv_.version), tail, place.InNamespace() ? "Namespaced" : "",
                         resource.kind, place.sub ? Title(place.sub->name) : "", end,
                         place.everywhere ? "ForAllNamespaces" : "");
    out.tag = Tag();
    out.kind = {gv_.group, gv_.version, resource.kind};
    if (place.sub && !api::AsCustom(resource)) out.kind = place.sub->kind;
    if (place.InNamespace()) out.parameters.push_back(kNamespace);
    return out;
  }

  void AddVerb(const Place& place, const Verb& verb) {
    const bool collection = verb.on_collection && !place.sub;
    const bool list_event = verb.action == "watchlist";
    ApiOperation& out =
        Add(PathOf(place, collection), place, verb.word, verb.tail, list_event ? "List" : "");
    out.method = verb.method;
    out.action = verb.action;
    out.body = ModelOf(place, verb.body);
    out.body_required = verb.body == kObject || verb.body == kPatch;
    out.body_media = verb.body_media;
    out.answer = ModelOf(place, verb.answer);
    out.answer_media = verb.answer_media;
    out.codes = verb.codes;
    out.parameters.insert(out.parameters.end(), verb.parameters.begin(), verb.parameters.end());
    if (!collection) out.parameters.push_back(kName);
    out.parameters.push_back(kPretty);
    if (const TextRow* text = place.sub ? TextOf(place.resource, *place.sub) : nullptr) {
      AddOptions(*registry_.FindMessage(text->options), out.parameters);
      out.answer.clear();
      out.answer_media = kMediaAndText;
    }
    Sort(out.parameters);
  }

  void AddResource(const Resource& resource) {
    const bool custom = api::AsCustom(resource) != nullptr;
    for (const Verb& verb : custom ? std::span<const Verb>(kCustom) : kBuiltin) {
      if (!resource.HasVerb(verb.verb)) continue;
      AddVerb({resource}, verb);
      if (resource.namespaced && verb.verb == "list") {
        AddVerb({.resource = resource, .everywhere = true}, verb);
      }
    }
    for (const Subresource& sub : resource.subresources) {
      if (IsConnect(sub)) {
        AddConnects(resource, sub);
      } else {
        AddPart({.resource = resource, .sub = &sub});
      }
    }
    if (!custom && resource.HasVerb("watch")) AddWatches(resource);
  }

  void AddWatches(const Resource& resource) {
    for (const Verb& verb : kWatches) {
      AddVerb({.resource = resource, .under = "watch/"}, verb);
      if (resource.namespaced && verb.on_collection) {
        AddVerb({.resource = resource, .everywhere = true, .under = "watch/"}, verb);
      }
    }
  }

  void AddPart(const Place& place) {
    for (const Verb& verb :
         api::AsCustom(place.resource) ? std::span<const Verb>(kCustom) : kBuiltin) {
      const Words verbs = place.sub->verbs;
      if (std::find(verbs.begin(), verbs.end(), verb.verb) != verbs.end()) AddVerb(place, verb);
    }
  }

  // What has a path below it takes every method.
  void AddConnects(const Resource& resource, const Subresource& sub) {
    const bool below = sub.message->FindField("path") != nullptr;
    for (const ConnectVerb& verb : kConnects) {
      if (verb.verb.empty()
              ? !below
              : std::find(sub.verbs.begin(), sub.verbs.end(), verb.verb) == sub.verbs.end()) {
        continue;
      }
      AddConnect({.resource = resource, .sub = &sub}, verb, false);
      if (below) AddConnect({.resource = resource, .sub = &sub}, verb, true);
    }
  }

  void AddConnect(const Place& place, const ConnectVerb& verb, bool below) {
    ApiOperation& out = Add(PathOf(place, false) + (below ? "/{path}" : ""), place, "connect",
                            verb.word, below ? "WithPath" : "");
    out.method = verb.method;
    out.action = "connect";
    out.body_media = kAnyMedia;
    out.answer_media = kAnyMedia;
    out.codes = kOk;
    AddOptions(*place.sub->message, out.parameters);
    out.parameters.push_back(kName);
    if (below) out.parameters.push_back(kPathBelow);
    Sort(out.parameters);
  }

  void AddDiscovery() {
    ApiOperation& out = paths_[base_].emplace_back();
    out.method = "get";
    out.id =
        fmt::format("get{}{}APIResources", Camel(ShortGroup(gv_.group), true), Title(gv_.version));
    out.tag = Tag();
    out.answer = Meta("APIResourceList");
    out.body_media = kMedia;
    out.answer_media = kMedia;
    out.codes = kOk;
  }

  std::string Tag() const {
    return fmt::format("{}_{}", Camel(ShortGroup(gv_.group), false), gv_.version);
  }

  const api::Registry& registry_;
  const GroupVersion gv_;
  const std::string base_;
  ApiPaths paths_;
};

ApiPaths One(std::string_view name, std::string id, std::string tag, std::string model, Words takes,
             Words gives) {
  ApiOperation operation{.method = "get", .id = std::move(id), .tag = std::move(tag)};
  operation.answer = std::move(model);
  operation.body_media = takes;
  operation.answer_media = gives;
  operation.codes = kOk;
  return {{fmt::format("/{}/", name), {std::move(operation)}}};
}

}  // namespace

std::vector<ApiParameter> CommonParameters(const std::vector<ApiOperation>& operations) {
  std::vector<ApiParameter> common = operations.front().parameters;
  std::erase_if(common, [&operations](const ApiParameter& parameter) {
    return !std::all_of(operations.begin(), operations.end(), [&](const ApiOperation& operation) {
      return std::find(operation.parameters.begin(), operation.parameters.end(), parameter) !=
             operation.parameters.end();
    });
  });
  return common;
}

std::vector<ApiParameter> OwnParameters(const ApiOperation& operation,
                                        const std::vector<ApiParameter>& common) {
  std::vector<ApiParameter> own = operation.parameters;
  std::erase_if(own, [&common](const ApiParameter& parameter) {
    return std::find(common.begin(), common.end(), parameter) != common.end();
  });
  return own;
}

std::string_view MeaningOf(std::string_view code) {
  if (code == "200") return "OK";
  if (code == "201") return "Created";
  if (code == "202") return "Accepted";
  return "Unauthorized";
}

std::string DocumentName(const GroupVersion& gv) {
  return (gv.group.empty() ? "api/" : "apis/") + gv.ToString();
}

ApiPaths PathsOf(const api::Registry& registry, GroupVersion gv) {
  return PathsWriter(registry, gv).Write();
}

std::map<std::string, ApiPaths> DiscoveryPaths(const api::Registry& registry) {
  std::map<std::string, ApiPaths> out;
  out["api"] = One("api", "getCoreAPIVersions", "core", Meta("APIVersions"), kMedia, kMedia);
  out["apis"] = One("apis", "getAPIVersions", "apis", Meta("APIGroupList"), kMedia, kMedia);
  out["version"] = One("version", "getCodeVersion", "version",
                       "io.k8s.apimachinery.pkg.version.Info", kJson, kJson);
  out[".well-known/openid-configuration"] =
      One(".well-known/openid-configuration", "getServiceAccountIssuerOpenIDConfiguration",
          "WellKnown", "", {}, kJson);
  out["openid/v1/jwks"] =
      One("openid/v1/jwks", "getServiceAccountIssuerOpenIDKeyset", "openid", "", {}, kKeySet);
  for (const Resource* resource : registry.resources()) {
    const std::string_view group = resource->group_version.group;
    if (group.empty() || api::AsCustom(*resource)) continue;
    const std::string name = fmt::format("apis/{}", group);
    if (out.contains(name)) continue;
    out[name] = One(name, fmt::format("get{}APIGroup", Camel(ShortGroup(group), true)),
                    Camel(ShortGroup(group), false), Meta("APIGroup"), kMedia, kMedia);
  }
  return out;
}

}  // namespace sextant::server
