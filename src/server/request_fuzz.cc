#include "base/check.h"
#include "base/fuzz.h"
#include "net/http.h"
#include "server/negotiate.h"
#include "server/request_info.h"

namespace sextant::server {

// "GET\n---\n/api/v1/pods?limit=5\n---\napplication/json;as=Table;..." taken apart as requests are.
FUZZ_TARGET(request) {
  fuzz::Bytes bytes(input);
  const std::string_view method = bytes.Part();
  net::Request request;
  request.SetTarget(std::string(bytes.Part()));
  const std::string_view accept = bytes.Rest();
  RequestInfo info = ParseRequest(method, request.path);
  CHECK(!info.is_resource || !info.resource.empty());
  if (const auto options = ParseOptions(request.query)) {
    ResolveVerb(*options, info);
    NoteFieldSelector(options->field_selector, info);
  }
  if (const auto form = Negotiate(accept, false)) {
    CHECK(!form->ContentType().empty() && !form->StreamContentType().empty());
  }
}

}  // namespace sextant::server
