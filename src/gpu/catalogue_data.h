// catalogue.json as text, embedded by the build (src/CMakeLists.txt). For catalogue.cc only.
#pragma once

#include <string_view>

namespace sextant::gpu {
extern const std::string_view kCatalogueJson;
}  // namespace sextant::gpu
