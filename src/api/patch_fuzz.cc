#include "api/go_values.h"
#include "api/json.h"
#include "api/patch.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

// A byte for the kind of patch, a Pod, a line "---", the patch.
FUZZ_TARGET(patch) {
  fuzz::Bytes bytes(input);
  const auto type = static_cast<PatchType>(bytes.Byte() % 3);
  const Message& message = *Registry::Builtin().FindKind({"", "v1"}, "Pod")->message;
  const Result<Object> current = DecodeJson(bytes.Part(), message);
  if (!current) return;
  const std::string before = ToJson(current->root());
  std::vector<std::string> warnings;
  const std::string_view patch = bytes.Rest();
  const Result<Object> patched = ApplyPatch(
      *current, message, {.type = type, .patch = patch, .field_validation = "Warn"}, &warnings);
  CHECK(ToJson(current->root()) == before);  // the object is another one
  if (!patched) return;
  const std::string after = ToJson(patched->root());
  const Result<Object> again = DecodeJson(after, message);
  CHECK(again.has_value());
  CHECK(ToJson(again->root()) == after);  // the result is in canonical form
  (void)GoPrint(patched->root());
}

}  // namespace sextant::api
