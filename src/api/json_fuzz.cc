#include "api/json.h"
#include "api/schema.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {
namespace {

const Message& PodMessage() { return *Registry::Builtin().FindKind({"", "v1"}, "Pod")->message; }

}  // namespace

// What was read and is written again says the same.
FUZZ_TARGET(json) {
  StrictReport strict;
  const Result<Object> tree = ParseJson(input, {.strict = &strict});
  (void)PeekTypeMeta(input);
  if (!tree) return;
  const std::string text = ToJson(tree->root());
  const Result<Object> again = ParseJson(text);
  CHECK(again.has_value());
  CHECK(Equal(tree->root(), again->root()));
  // Not always the same text: -0e1 is written as -0, which is read as 0, as in Go.
  const std::string twice = ToJson(again->root());
  CHECK(ToJson(ParseJson(twice).value().root()) == twice);
  CHECK(ParseJson(ToJson(tree->root(), {.indent = 2, .newline = true})).has_value());
}

// By a schema: what was decoded is in canonical form, so that decoding it again changes nothing.
FUZZ_TARGET(json_pod) {
  StrictReport strict;
  const Result<Object> pod = DecodeJson(input, PodMessage(), {.strict = &strict});
  if (!pod) return;
  const std::string text = ToJson(pod->root());
  const Result<Object> again = DecodeJson(text, PodMessage());
  CHECK(again.has_value());
  CHECK(ToJson(again->root()) == text);
  const Result<Object> tree = ParseJson(text);
  CHECK(tree.has_value());
  const Result<Object> from_tree = DecodeTree(tree->root(), PodMessage());
  CHECK(from_tree.has_value());
  CHECK(ToJson(from_tree->root()) == text);
}

}  // namespace sextant::api
