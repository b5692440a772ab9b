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
  (void)(*quantity + *quantity - *quantity * 3).Value();
  (void)(-*quantity).MilliValue();
  (void)quantity->AsDouble();
  const std::string text = quantity->ToString();
  constexpr size_t kExactDigits = 30;  // longer numbers are rounded, and clamped to 128 bits
  if (input.size() > kExactDigits) return;
  // 31.25Ki is printed as 32000, and that as 32k, as in Kubernetes: the number stays, the form need
  // not.
  const Result<Quantity> again = Quantity::Parse(text);
  CHECK(again.has_value());
  CHECK(*again == *quantity);
  CHECK(again->format() != quantity->format() || again->ToString() == text);
  CHECK(Quantity::Parse(*shown).value() == *quantity);
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
