// JSON in and out, as the API server reads and prints it.
//
//   StrictReport strict;
//   Result<Object> pod = DecodeJson(body, *message, {.strict = &strict});
//   // strict.errors: {"unknown field \"spec.containrs\""}
//   std::string text;
//   WriteJson(pod->root(), text);
//
// Reading follows sigs.k8s.io/json (Go's decoder, case-sensitive) down to its messages, so that a
// request that is wrong gets Kubernetes' own answer; the result is in canonical form (canonical.h).
// Own parser: the messages need the offending number's text, quantities too, and one pass from text
// to tree is what a request costs.
// Errors: 400 with Go's text ("json: cannot unmarshal string into Go struct field
// PodSpec.spec.containers of type []v1.Container"), 413 for what is over the limits. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/schema.h"
#include "base/status.h"

namespace sextant::api {

inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;
inline constexpr int kMaxJsonDepth = 1000;  // Go: 10000; no object comes near either

// What strict field validation objects to, each once, in the order of the text; at most 100.
struct StrictReport {
  std::vector<std::string> errors;  // `unknown field "spec.x"`, `duplicate field "spec.y"`
  void Add(std::string_view what, std::string_view path);
};

struct JsonOptions {
  StrictReport* strict = nullptr;
  size_t max_bytes = kMaxJsonBytes;
  int max_depth = kMaxJsonDepth;
  // Errors of types in the words of Go's converter from maps, which strategic patches go through.
  bool unstructured = false;
};

// Any JSON value. Members keep their order, of duplicates the last counts (at its place).
Result<Object> ParseJson(std::string_view text, const JsonOptions& options = {});
// By a schema: unknown fields are dropped and reported.
Result<Object> DecodeJson(std::string_view text, const Message& message,
                          const JsonOptions& options = {});
// The same from a tree, for what came as YAML or out of a patch.
Result<Object> DecodeTree(Value tree, const Message& message, const JsonOptions& options = {});

struct TypeMeta {
  std::string api_version;
  std::string kind;
};
// apiVersion and kind of an object, whatever else it holds; also finds all syntax errors. Message
// as the API server's: "couldn't get version/kind; json parse error: ...".
Result<TypeMeta> PeekTypeMeta(std::string_view text);
// The object with this type if it lacks its kind or its apiVersion.
Object WithTypeMeta(Object object, const TypeMeta& meta, const Message& message);

struct JsonStyle {
  int indent = 0;               // spaces per level; 0: compact, one line
  bool newline = false;         // ends with one
  bool omit_type_meta = false;  // leaves out the root's kind and apiVersion (items of typed lists)
  bool escape_html = true;      // < > & as \u003c..., as Go's encoder does
};
// Appends.
void WriteJson(Value v, std::string& out, const JsonStyle& style = {});
std::string ToJson(Value v, const JsonStyle& style = {});
// Appends a JSON string with its quotes.
void WriteJsonString(std::string_view text, std::string& out, bool escape_html = true);

}  // namespace sextant::api
