// The JSONPath of custom kinds' printer columns: client-go's dialect, one path without braces.
//
//   ASSIGN_OR_RETURN(const JsonPath path, JsonPath::Parse(".spec.parts[?(@.id==\"a\")].size"));
//   const std::vector<Value> found = path.Find(object.root());
//
// Source: k8s.io/client-go util/jsonpath. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/status.h"

namespace sextant::api {

class JsonPath {
 public:
  JsonPath() = default;
  // Errors: 400, what is not understood and where.
  static Result<JsonPath> Parse(std::string_view text);

  // Everything that the path leads to, in order. Missing members lead nowhere.
  std::vector<Value> Find(Value root) const;

 private:
  struct Step {
    enum class Kind : uint8_t { kMember, kWildcard, kRecursive, kIndex, kSlice, kFilter } kind;
    std::string name;                     // kMember
    int64_t first = 0, last = 0, by = 1;  // kIndex, kSlice; negative: from the end
    bool has_first = false, has_last = false;
    // kFilter: [?(@.path op value)]
    std::vector<Step> left;
    std::string op;  // "" asks whether it is there
    std::string right;
    bool right_is_text = false;
  };
  class Parser;

  static void Walk(std::vector<Value>& at, const Step& step);
  static bool Holds(const Step& filter, Value item);
  static std::vector<Value> Follow(const std::vector<Step>& steps, Value root);

  std::vector<Step> steps_;
};

}  // namespace sextant::api
