// OpenAPI documents in protobuf, as clients of Go ask for them: kubectl reads version 2 so.
//
// Source: OpenAPIv2.proto and OpenAPIv3.proto of github.com/google/gnostic-models v0.7.0. What our
// documents never hold stands in no table. Pure; any thread.
#pragma once

#include <string>

#include "api/document.h"

namespace sextant::server {

std::string OpenApiV2Protobuf(api::Value document);
std::string OpenApiV3Protobuf(api::Value document);

}  // namespace sextant::server
