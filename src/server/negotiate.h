// What form the client wants the answer in: media type and transformation, from the Accept header
// (apiserver's negotiation). Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sextant::server {

enum class Media : uint8_t { kJson, kYaml, kProtobuf };
enum class As : uint8_t { kObject, kTable, kPartial, kPartialList };

// What 406 says.
inline constexpr std::string_view kAcceptedMedia =
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf";

struct Form {
  Media media = Media::kJson;
  As as = As::kObject;
  std::string as_version = "v1";  // of Table and PartialObjectMetadata: v1 or v1beta1
  bool pretty = false;

  std::string ContentType() const;        // "application/json", ...
  std::string StreamContentType() const;  // for watches
  bool operator==(const Form&) const = default;
};

// `pretty` is the query parameter. 406 when nothing in `accept` can be served.
// `protobuf` false: the object itself has no protobuf form (custom resources); its metadata has.
Result<Form> Negotiate(std::string_view accept, bool pretty, bool protobuf = true);

// One media range of an Accept header taken apart; also for discovery's own parameters.
struct MediaRange {
  std::string type;  // "application/json", lower case
  std::vector<std::pair<std::string, std::string>> parameters;
  double q = 1;
  std::string_view Get(std::string_view name) const;
};
// By descending q, then as they stand. At most 64.
std::vector<MediaRange> ParseAccept(std::string_view accept);

}  // namespace sextant::server
