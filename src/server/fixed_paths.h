// What the server answers outside the resources: discovery and OpenAPI documents. Built from the
// registry's tables once per registry snapshot, then served from memory.
// Threads: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema.h"
#include "base/status.h"
#include "net/http.h"

namespace sextant::server {

struct Document {
  int status = 200;          // of a status other than 200 there is no body
  std::string content_type;  // empty: none
  net::Buffer body;
  std::string etag;                                 // quoted; empty: none
  std::string cache_control;                        // empty: none
  std::string expires;                              // HTTP date; empty: none
  std::string location;                             // where it is instead; empty: here
  std::vector<std::string_view> vary = {"Accept"};  // request headers that matter
};

// /api, /apis, /api/v1, /apis/<group>, /apis/<group>/<version>: aggregated (apidiscovery v2,
// v2beta1) or legacy by the Accept header. Errors: 404 for what is not served, 406.
class Discovery {
 public:
  virtual ~Discovery() = default;
  virtual Result<Document> Serve(std::string_view path, std::string_view accept,
                                 const std::shared_ptr<const api::Registry>& registry) = 0;
};
std::unique_ptr<Discovery> MakeDiscovery(std::string server_address);

// /openapi/v2, /openapi/v3 and /openapi/v3/<name>?hash=..., documents as JSON or protobuf. An old
// hash leads on to the new one.
class OpenApi {
 public:
  virtual ~OpenApi() = default;
  virtual Result<Document> Serve(std::string_view path, std::string_view query,
                                 std::string_view accept,
                                 const std::shared_ptr<const api::Registry>& registry) = 0;
};
std::unique_ptr<OpenApi> MakeOpenApi();

}  // namespace sextant::server
