#include "api/time_value.h"

#include <gtest/gtest.h>

namespace sextant::api {
namespace {

std::string Canonical(std::string_view text, TimeKind kind) {
  std::string buffer;
  auto form = CanonicalTime(text, kind, buffer);
  return form ? std::string(*form) : form.error().message;
}

TEST(CanonicalTime, Seconds) {
  struct Case {
    const char* in;
    const char* out;
  } cases[] = {
      {"2026-11-30T09:47:59Z", "2026-11-30T09:47:59Z"},
      {"2026-11-30T09:47:59.999Z", "2026-11-30T09:47:59Z"},
      {"2026-11-30T00:30:00+01:00", "2026-11-29T23:30:00Z"},
      {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
      {"0001-01-01T00:00:00Z", ""},
      {"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"},
      {"2026-02-30T00:00:00Z", "parsing time \"2026-02-30T00:00:00Z\": day out of range"},
      {"", "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"2006\""},
  };
  for (const Case& c : cases) EXPECT_EQ(Canonical(c.in, TimeKind::kSeconds), c.out) << c.in;
}

TEST(CanonicalTime, Micro) {
  struct Case {
    const char* in;
    const char* out;
  } cases[] = {
      {"2026-11-30T09:47:59.123456Z", "2026-11-30T09:47:59.123456Z"},
      {"2026-11-30T09:47:59.123456+00:30", "2026-11-30T09:17:59.123456Z"},
      {"2026-11-30T09:47:59Z",
       "parsing time \"2026-11-30T09:47:59Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot "
       "parse \"Z\" as \".000000\""},
      {"x",
       "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as "
       "\"2006\""},
  };
  for (const Case& c : cases) EXPECT_EQ(Canonical(c.in, TimeKind::kMicro), c.out) << c.in;
}

TEST(Instant, RoundTrips) {
  for (int64_t seconds : {int64_t{0}, int64_t{-1}, int64_t{1790000000}, kZeroInstant.seconds}) {
    Instant t{seconds, 250000};
    auto again = ParseInstant(FormatInstant(t, TimeKind::kMicro), TimeKind::kMicro);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, t);
  }
}

TEST(CanonicalDuration, IsGos) {
  std::string buffer;
  EXPECT_EQ(*CanonicalDuration("90m", buffer), "1h30m0s");
  EXPECT_EQ(*CanonicalDuration("30s", buffer), "30s");
  EXPECT_EQ(CanonicalDuration("x", buffer).error().message, "time: invalid duration \"x\"");
}

}  // namespace
}  // namespace sextant::api
