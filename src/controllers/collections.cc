#include "controllers/collections.h"

#include <set>

namespace sextant::controllers {

std::vector<Collection> CollectionsOf(const api::Registry& registry) {
  std::vector<Collection> collections;
  std::set<std::string> seen;
  for (const api::Resource* resource : registry.resources()) {
    if (resource->virtual_review) continue;
    if (!resource->HasVerb("list") || !resource->HasVerb("watch") || !resource->HasVerb("delete")) {
      continue;
    }
    std::string storage(resource->storage_name);
    if (storage.empty()) {
      storage = std::string(resource->plural) + "." + std::string(resource->group_version.group);
    }
    if (!seen.insert(storage).second) continue;
    const api::GroupVersion& gv = resource->group_version;
    collections.push_back({{gv.group, gv.version, resource->plural}, resource->namespaced});
  }
  return collections;
}

}  // namespace sextant::controllers
