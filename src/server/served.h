// Which of the known kinds this server offers: group versions by default and by --runtime-config.
// A Registry that shows a part of another one. Immutable; any thread.
#pragma once

#include <functional>
#include <memory>

#include "api/schema.h"

namespace sextant::server {

// True for the group versions that are served unless the configuration says otherwise.
bool ServedByDefault(const api::GroupVersion& gv);

// The resources of `base` for which `keep` holds; messages of all of them stay known.
std::shared_ptr<const api::Registry> ServedRegistry(
    const api::Registry& base, const std::function<bool(const api::Resource&)>& keep);

}  // namespace sextant::server
