#include "api/quantity.h"
#include "api/time_value.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

FUZZ_TARGET(quantity) {
  const Result<Quantity> quantity = Quantity::Parse(input);
  std::string buffer;
  const Result<std::string_view> shown = CanonicalQuantity(input, buffer);
  CHECK(quantity.has_value() == shown.has_value());
  if (!quantity) return;
  const std::string text = quantity->ToString();
  const Result<Quantity> again = Quantity::Parse(text);
  CHECK(again.has_value());
  CHECK(again->ToString() == text);  // the canonical form is one
  std::string other;
  CHECK(CanonicalQuantity(*shown, other) == *shown);
  (void)(*quantity + *again - *quantity * 3).Value();
  (void)(-*quantity).MilliValue();
  (void)quantity->AsDouble();
}

FUZZ_TARGET(time) {
  for (const TimeKind kind : {TimeKind::kSeconds, TimeKind::kMicro}) {
    std::string buffer, other;
    const Result<std::string_view> shown = CanonicalTime(input, kind, buffer);
    if (shown) CHECK(CanonicalTime(*shown, kind, other) == *shown);
  }
  std::string buffer, other;
  const Result<std::string_view> shown = CanonicalDuration(input, buffer);
  if (shown) CHECK(CanonicalDuration(*shown, other) == *shown);
}

}  // namespace sextant::api
