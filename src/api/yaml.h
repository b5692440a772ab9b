// YAML in and out, with the meanings that Kubernetes' tools give it (sigs.k8s.io/yaml: YAML 1.1's
// yes and no, octal numbers, merge keys; timestamps stay text).
//
//   ASSIGN_OR_RETURN(std::vector<YamlDocument> docs, ParseYaml(text));
//   docs[0].object["nodes"].at(1)
//   docs[0].PlaceOf(docs[0].object["nodes"].at(1)).line     // for messages "file:line"
//
// Everything is bounded: bytes, depth, values (aliases count each time they are used).
// Errors: 400 "yaml: line 3: did not find expected key". Plain data.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/document.h"
#include "api/json.h"
#include "base/status.h"

namespace sextant::api {

inline constexpr size_t kMaxYamlBytes = size_t{16} << 20;
inline constexpr int kMaxYamlDepth = 200;
inline constexpr size_t kMaxYamlValues = 1'000'000;

struct YamlPlace {
  int line = 0;  // from 1; 0: unknown
  int column = 0;
  bool operator==(const YamlPlace&) const = default;
};

struct YamlDocument {
  Object object;  // null for an empty document
  // Where each value starts; of a member of a map: where its key does.
  std::unordered_map<const Node*, YamlPlace> places;

  YamlPlace PlaceOf(Value v) const;
};

struct YamlOptions {
  // Takes duplicate keys (`line 3: key "a" already set in map`), of which the last counts. Without
  // it they are an error.
  StrictReport* strict = nullptr;
  size_t max_bytes = kMaxYamlBytes;
  int max_depth = kMaxYamlDepth;
  size_t max_values = kMaxYamlValues;
  bool first_only = false;  // what comes behind the first document is not looked at
};

// All documents of a stream ("---").
Result<std::vector<YamlDocument>> ParseYaml(std::string_view text, const YamlOptions& options = {});

// Appends block style with sorted keys, as `kubectl -o yaml` prints.
void WriteYaml(Value v, std::string& out);

// What a plain scalar means ("yes" is true, "0x10" is 16); text when nothing else.
enum class YamlKind : uint8_t { kText, kNull, kBool, kInt, kFloat };
struct YamlScalar {
  YamlKind kind = YamlKind::kText;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
};
YamlScalar ResolveYaml(std::string_view plain);

}  // namespace sextant::api
