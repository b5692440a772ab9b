// What an object's status.conditions say. Pure; any thread.
#pragma once

#include <string_view>

#include "api/lists.h"

namespace sextant::server {

// True if the condition `type` is there with status True.
inline bool HasCondition(api::Value object, std::string_view type) {
  return api::FindBy(object["status"]["conditions"], "type", type)["status"].AsString() == "True";
}

}  // namespace sextant::server
