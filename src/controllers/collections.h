// The collections of a cluster that can be listed, watched and deleted from: what the garbage
// collector and the deletion of namespaces look after.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/schema.h"
#include "client/client.h"

namespace sextant::controllers {

// What the cluster serves now: custom resources come and go.
using Registries = std::function<std::shared_ptr<const api::Registry>()>;

struct Collection {
  client::Gvr gvr;  // points into the registry
  bool namespaced = true;
};

// Each storage once, in its preferred version.
std::vector<Collection> CollectionsOf(const api::Registry& registry);

}  // namespace sextant::controllers
