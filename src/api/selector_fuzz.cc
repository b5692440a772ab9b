#include "api/json.h"
#include "api/selector.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

// A selector, and after a line "---" the labels that it looks at.
FUZZ_TARGET(selector) {
  fuzz::Bytes bytes(input);
  const std::string_view text = bytes.Part();
  const Result<Object> labels = ParseJson(bytes.Rest());
  const Value on = labels ? labels->root() : Value();
  if (const auto selector = LabelSelector::Parse(text)) {
    const auto again = LabelSelector::Parse(selector->ToString());
    CHECK(again.has_value());
    CHECK(again->ToString() == selector->ToString());
    CHECK(again->Matches(on) == selector->Matches(on));
  }
  if (const auto selector = FieldSelector::Parse(text)) {
    const auto again = FieldSelector::Parse(selector->ToString());
    CHECK(again.has_value());
    CHECK(again->ToString() == selector->ToString());
  }
  if (const auto selector = LabelSelector::From(on)) (void)selector->Matches(on);
}

}  // namespace sextant::api
