#include "base/check.h"
#include "base/clock.h"
#include "base/fuzz.h"

namespace sextant {

FUZZ_TARGET(duration) {
  if (const Result<Duration> duration = ParseDuration(input)) {
    const std::string text = FormatDuration(*duration);
    CHECK(ParseDuration(text).value() == *duration);
    CHECK(FormatDuration(*duration) == text);
  }
  if (const Result<Time> time = ParseTime(input)) {
    // Whole seconds are what is written of a time.
    const std::string text = FormatTime(*time);
    CHECK(FormatTime(ParseTime(text).value()) == text);
  }
}

}  // namespace sextant
