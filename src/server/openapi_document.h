// One OpenAPI v3 document: paths and the schemas that they speak of. Pure; any thread.
#pragma once

#include <string>

#include "api/schema.h"
#include "server/openapi_paths.h"

namespace sextant::server {

// As JSON. `gv` is that of the paths, empty for discovery's.
std::string WriteOpenApi(const api::Registry& registry, const ApiPaths& paths,
                         const api::GroupVersion& gv);

}  // namespace sextant::server
