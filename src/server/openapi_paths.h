// The paths of the API in the words of OpenAPI: what can be done to each, how it is named, what it
// takes and what it answers. Made from the registry's tables; the documents print it.
//
//   for (const auto& [path, operations] : PathsOf(registry, {"apps", "v1"})) ...
//
// Texts point into tables that live as long as the registry. Pure; any thread.
// Source: k8s.io/apiserver pkg/endpoints/{installer.go,discovery}, pkg/endpoints/openapi and, for
// custom kinds, k8s.io/apiextensions-apiserver pkg/controller/openapi/builder at v0.36.3.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema.h"

namespace sextant::server {

struct ApiParameter {
  std::string_view name;
  std::string_view in;  // "path", "query"
  std::string_view type;
  bool operator==(const ApiParameter&) const = default;
};

struct ApiOperation {
  std::string_view method;  // OpenAPI's key: "get"
  std::string id;
  std::string tag;
  std::string_view action;               // x-kubernetes-action; "" for discovery
  api::GroupVersionKind kind;            // of no meaning without action
  std::vector<ApiParameter> parameters;  // by name and place
  std::string body;                      // model; "": none
  bool body_required = false;
  std::span<const std::string_view> body_media;  // also where there is no body
  std::string answer;                            // model; "": a string
  std::span<const std::string_view> answer_media;
  std::span<const std::string_view> codes;  // that answer so
};
using ApiPaths = std::map<std::string, std::vector<ApiOperation>>;

ApiPaths PathsOf(const api::Registry& registry, api::GroupVersion gv);
// What is served beside the group versions: a document each, by its name in the index ("apis").
// Groups of custom kinds have none.
std::map<std::string, ApiPaths> DiscoveryPaths(const api::Registry& registry);

// The parameters that all operations of a path have: they stand at the path. The rest of one's own.
std::vector<ApiParameter> CommonParameters(const std::vector<ApiOperation>& operations);
std::vector<ApiParameter> OwnParameters(const ApiOperation& operation,
                                        const std::vector<ApiParameter>& common);
// "OK" of "200".
std::string_view MeaningOf(std::string_view code);

// The name of a group version's document: "api/v1", "apis/apps/v1".
std::string DocumentName(const api::GroupVersion& gv);

}  // namespace sextant::server
