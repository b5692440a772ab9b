// The collections of a cluster that can be listed, watched and deleted from: what the garbage
// collector and the deletion of namespaces look after.
#pragma once

#include <string>
#include <vector>

#include "api/schema.h"
#include "client/client.h"

namespace sextant::controllers {

struct Collection {
  client::Gvr gvr;  // points into the registry
  bool namespaced = true;
};

// Each storage once, in its preferred version.
std::vector<Collection> CollectionsOf(const api::Registry& registry);

}  // namespace sextant::controllers
