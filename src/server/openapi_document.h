// OpenAPI documents: paths and the schemas that they speak of, as JSON. Pure; any thread.
#pragma once

#include <string>

#include "api/document.h"
#include "api/schema.h"
#include "server/openapi_paths.h"

namespace sextant::server {

// One of version 3. `gv` is that of the paths, empty for discovery's.
std::string WriteOpenApi(const api::Registry& registry, const ApiPaths& paths,
                         const api::GroupVersion& gv);

// The one of version 2: everything in one document.
std::string WriteOpenApiV2(const api::Registry& registry);

// Words of both.
void AddExtensions(api::Mut out, const ApiOperation& operation);
void AddBearerToken(api::Mut out);

}  // namespace sextant::server
