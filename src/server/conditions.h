// What an object's status.conditions say. Pure; any thread.
#pragma once

#include <string_view>

#include "api/document.h"

namespace sextant::server {

// True if the condition `type` is there with status True.
inline bool HasCondition(api::Value object, std::string_view type) {
  for (api::Value condition : object["status"]["conditions"].items()) {
    if (condition["type"].AsString() == type) return condition["status"].AsString() == "True";
  }
  return false;
}

}  // namespace sextant::server
