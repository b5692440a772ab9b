// Discovery, aggregated (apidiscovery.k8s.io v2) and legacy, from the registry's tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "api/custom_kind.h"
#include "api/json.h"
#include "base/base64.h"
#include "net/tls.h"
#include "server/fixed_paths.h"
#include "server/negotiate.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Resource;
using api::Subresource;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kDiscoveryGroup = "apidiscovery.k8s.io";

// Which form the client takes: "v2" or "" for the legacy one; 406 if it takes an aggregated form
// that there is not, and no other.
Result<std::string> AggregatedVersion(std::string_view accept) {
  bool others = false;
  for (const MediaRange& range : ParseAccept(accept)) {
    if (range.type != kJson && range.type != "*/*" && range.type != "application/*") continue;
    if (range.Get("as").empty()) return std::string();
    others = true;
    if (range.Get("g") == kDiscoveryGroup && range.Get("as") == "APIGroupDiscoveryList" &&
        range.Get("v") == "v2") {
      return std::string("v2");
    }
  }
  if (others) return Fail(NotAcceptable(kAcceptedMedia));
  return std::string();
}

void AddAll(Mut list, std::span<const std::string_view> values) {
  for (std::string_view value : values) list.Append().SetString(value);
}

Object Root(std::string_view kind, std::string_view api_version) {
  Editor edit;
  edit.Root().Set("kind", kind);
  edit.Root().Set("apiVersion", api_version);
  return std::move(edit).Finish();
}

// Groups in the registry's order, each with its versions in order.
struct Group {
  std::string_view name;
  std::vector<api::GroupVersion> versions;
};
std::vector<Group> GroupsOf(const api::Registry& registry) {
  std::vector<Group> groups;
  for (const Resource* resource : registry.resources()) {
    const api::GroupVersion& gv = resource->group_version;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.name == gv.group; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{gv.group, {}});
    if (std::find(group->versions.begin(), group->versions.end(), gv) == group->versions.end()) {
      group->versions.push_back(gv);
    }
  }
  return groups;
}

void SetResponseKind(Mut out, const api::GroupVersionKind& gvk, const api::GroupVersion& home) {
  const bool same = gvk.group == home.group && gvk.version == home.version;
  out.Set("group", same ? std::string_view() : gvk.group);
  out.Set("version", same ? std::string_view() : gvk.version);
  out.Set("kind", gvk.kind);
}

void AddAggregated(const Resource& resource, Mut list) {
  const api::GroupVersion& gv = resource.group_version;
  Mut out = list.Append();
  out.Set("resource", resource.plural);
  SetResponseKind(out["responseKind"], {gv.group, gv.version, resource.kind}, gv);
  out.Set("scope", resource.namespaced ? "Namespaced" : "Cluster");
  out.Set("singularResource", resource.singular);
  AddAll(out["verbs"], resource.verbs);
  if (!resource.short_names.empty()) AddAll(out["shortNames"], resource.short_names);
  if (!resource.categories.empty()) AddAll(out["categories"], resource.categories);
  for (const Subresource& sub : resource.subresources) {
    Mut item = out["subresources"].Append();
    item.Set("subresource", sub.name);
    SetResponseKind(item["responseKind"], sub.kind, gv);
    AddAll(item["verbs"], sub.verbs);
  }
}

std::string Aggregated(const api::Registry& registry, bool core, std::string_view version) {
  Editor edit(Root("APIGroupDiscoveryList", fmt::format("{}/{}", kDiscoveryGroup, version)));
  edit.Root()["metadata"].SetMap();
  Mut items = edit.Root()["items"];
  items.SetList();
  for (const Group& group : GroupsOf(registry)) {
    if (group.name.empty() != core) continue;
    Mut item = items.Append();
    item["metadata"].SetMap();
    if (!group.name.empty()) item["metadata"].Set("name", group.name);
    for (const api::GroupVersion& gv : group.versions) {
      Mut one = item["versions"].Append();
      one.Set("version", gv.version);
      Mut resources = one["resources"];
      for (const Resource* resource : registry.resources()) {
        if (resource->group_version == gv) AddAggregated(*resource, resources);
      }
      one.Set("freshness", "Current");
    }
  }
  const Object list = std::move(edit).Finish();
  return api::ToJson(list.root(), {.newline = true});
}

void SetGroup(Mut out, const Group& group) {
  out.Set("name", group.name);
  const auto set = [](Mut version, const api::GroupVersion& gv) {
    version.Set("groupVersion", gv.ToString());
    version.Set("version", gv.version);
  };
  for (const api::GroupVersion& gv : group.versions) set(out["versions"].Append(), gv);
  set(out["preferredVersion"], group.versions.front());
}

// apiserver's discovery.StorageVersionHash: of the version that a custom resource is stored in.
std::string StorageHash(const Resource& resource) {
  const api::CustomVersion* custom = api::AsCustom(resource);
  if (!custom) return std::string(resource.storage_version_hash);
  constexpr size_t kBytes = 8;
  const std::string name =
      fmt::format("{}/{}", custom->storage->group_version.ToString(), resource.kind);
  return Base64(net::Sha256(name).substr(0, kBytes));
}

void AddLegacy(const Resource& resource, Mut list) {
  Mut out = list.Append();
  out.Set("name", resource.plural);
  out.Set("singularName", resource.singular);
  out.Set("namespaced", resource.namespaced);
  out.Set("kind", resource.kind);
  AddAll(out["verbs"], resource.verbs);
  if (!resource.short_names.empty()) AddAll(out["shortNames"], resource.short_names);
  if (!resource.categories.empty()) AddAll(out["categories"], resource.categories);
  if (const std::string hash = StorageHash(resource); !hash.empty()) {
    out.Set("storageVersionHash", hash);
  }
  const api::GroupVersion& gv = resource.group_version;
  for (const Subresource& sub : resource.subresources) {
    Mut item = list.Append();
    item.Set("name", fmt::format("{}/{}", resource.plural, sub.name));
    item.Set("singularName", "");
    item.Set("namespaced", resource.namespaced);
    if (sub.kind.group != gv.group || sub.kind.version != gv.version) {
      if (!sub.kind.group.empty()) item.Set("group", sub.kind.group);
      item.Set("version", sub.kind.version);
    }
    item.Set("kind", sub.kind.kind);
    AddAll(item["verbs"], sub.verbs);
  }
}

class RegistryDiscovery : public Discovery {
 public:
  explicit RegistryDiscovery(std::string address) : address_(std::move(address)) {}

  Result<Document> Serve(std::string_view path, std::string_view accept,
                         const std::shared_ptr<const api::Registry>& registry) override {
    RETURN_IF_ERROR(Negotiate(StripDiscovery(accept), false));
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    const bool top = path == "/api" || path == "/apis";
    std::string version;
    if (top) {
      ASSIGN_OR_RETURN(version, AggregatedVersion(accept));
    }
    const std::string key = fmt::format("{} {}", path, version);
    std::lock_guard lock(mutex_);
    if (registry != known_) {
      documents_.clear();
      known_ = registry;
    }
    if (const auto it = documents_.find(key); it != documents_.end()) return it->second;
    ASSIGN_OR_RETURN(const std::string body, Make(path, version, *registry));
    Document document;
    document.content_type = std::string(kJson);
    if (!version.empty()) {
      document.content_type +=
          fmt::format(";g={};v={};as=APIGroupDiscoveryList", kDiscoveryGroup, version);
      document.etag = fmt::format("\"{}\"", net::Hex(net::Sha256(body)));
      document.cache_control = "public";
    } else {
      document.cache_control = "no-cache, private";
    }
    document.body = net::MakeBuffer(body);
    return documents_.emplace(key, std::move(document)).first->second;
  }

 private:
  // A client that only takes the aggregated form is refused by nothing here: it falls back.
  static std::string_view StripDiscovery(std::string_view accept) {
    return accept.find(kDiscoveryGroup) == std::string_view::npos ? accept : std::string_view();
  }

  Result<std::string> Make(std::string_view path, std::string_view version,
                           const api::Registry& registry) const {
    if (!version.empty()) return Aggregated(registry, path == "/api", version);
    if (path == "/api") return Versions();
    if (path == "/apis") return GroupList(registry);
    if (path.starts_with("/api/")) return ResourceList(registry, {"", path.substr(5)});
    const std::string_view rest = path.substr(std::string_view("/apis/").size());
    const size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
      return ResourceList(registry, {rest.substr(0, slash), rest.substr(slash + 1)});
    }
    return OneGroup(registry, rest);
  }

  std::string Versions() const {
    Editor edit(Root("APIVersions", ""));
    edit.Root().Erase("apiVersion");
    edit.Root()["versions"].Append().SetString("v1");
    Mut address = edit.Root()["serverAddressByClientCIDRs"].Append();
    address.Set("clientCIDR", "0.0.0.0/0");
    address.Set("serverAddress", address_);
    const Object object = std::move(edit).Finish();
    return api::ToJson(object.root(), {.newline = true});
  }

  static std::string GroupList(const api::Registry& registry) {
    Editor edit(Root("APIGroupList", "v1"));
    Mut groups = edit.Root()["groups"];
    for (const Group& group : GroupsOf(registry)) {
      if (!group.name.empty()) SetGroup(groups.Append(), group);
    }
    const Object object = std::move(edit).Finish();
    return api::ToJson(object.root(), {.newline = true});
  }

  static Result<std::string> OneGroup(const api::Registry& registry, std::string_view name) {
    for (const Group& group : GroupsOf(registry)) {
      if (group.name != name) continue;
      Editor edit(Root("APIGroup", "v1"));
      SetGroup(edit.Root(), group);
      const Object object = std::move(edit).Finish();
      return api::ToJson(object.root(), {.newline = true});
    }
    return Fail(PathNotFound());
  }

  static Result<std::string> ResourceList(const api::Registry& registry, api::GroupVersion gv) {
    Editor edit(Root("APIResourceList", gv.group.empty() ? "" : "v1"));
    if (gv.group.empty()) edit.Root().Erase("apiVersion");
    edit.Root().Set("groupVersion", gv.ToString());
    Mut resources = edit.Root()["resources"];
    bool found = false;
    for (const Resource* resource : registry.resources()) {
      if (resource->group_version != gv) continue;
      found = true;
      AddLegacy(*resource, resources);
    }
    if (!found) return Fail(PathNotFound());
    const Object object = std::move(edit).Finish();
    return api::ToJson(object.root(), {.newline = true});
  }

  const std::string address_;
  std::mutex mutex_;
  std::shared_ptr<const api::Registry> known_;  // guarded by mutex_
  std::map<std::string, Document> documents_;   // guarded by mutex_; of known_
};

}  // namespace

std::unique_ptr<Discovery> MakeDiscovery(std::string server_address) {
  return std::make_unique<RegistryDiscovery>(std::move(server_address));
}

}  // namespace sextant::server
