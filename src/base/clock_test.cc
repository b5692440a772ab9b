#include "base/clock.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

// Expected values in this file: what Go 1.26 answers.

TEST(ParseDurationTest, ReadsAndPrintsAsGo) {
  struct Case {
    const char* in;
    int64_t nanos;
    const char* out;
  };
  const Case cases[] = {
      {"0", 0, "0s"},
      {"0s", 0, "0s"},
      {"+5s", 5'000'000'000, "5s"},
      {"-1.5h", -5'400'000'000'000, "-1h30m0s"},
      {"1h30m", 5'400'000'000'000, "1h30m0s"},
      {"300ms", 300'000'000, "300ms"},
      {"1.0000000001s", 1'000'000'000, "1s"},
      {"0.100000000000000000000h", 360'000'000'000, "6m0s"},
      {"9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s"},
      {"-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s"},
      {"9223372036s", 9'223'372'036'000'000'000, "2562047h47m16s"},
      {"1us", 1'000, "1\xc2\xb5s"},
      {"1\xc2\xb5s", 1'000, "1\xc2\xb5s"},
      {"1\xce\xbcs", 1'000, "1\xc2\xb5s"},
      {"0.3333333333333333333h", 1'200'000'000'000, "20m0s"},
      {"0.9223372036854775807h", 3'320'413'933'267, "55m20.413933267s"},
      {"39h9m14.425s", 140'954'425'000'000, "39h9m14.425s"},
      {".5s", 500'000'000, "500ms"},
      {"5.s", 5'000'000'000, "5s"},
      {"1m1m", 120'000'000'000, "2m0s"},
      {"17ns", 17, "17ns"},
      {"1.5ms", 1'500'000, "1.5ms"},
  };
  for (const Case& c : cases) {
    const Result<Duration> got = ParseDuration(c.in);
    ASSERT_TRUE(got) << c.in;
    EXPECT_EQ(got->count(), c.nanos) << c.in;
    EXPECT_EQ(FormatDuration(*got), c.out);
  }
}

TEST(ParseDurationTest, RefusesAsGo) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "time: invalid duration \"\""},
      {".s", "time: invalid duration \".s\""},
      {"-", "time: invalid duration \"-\""},
      {"3", "time: missing unit in duration \"3\""},
      {"3 s", "time: unknown unit \" s\" in duration \"3 s\""},
      {"1d", "time: unknown unit \"d\" in duration \"1d\""},
      {"9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""},
      {"99999999999999999999ns", "time: invalid duration \"99999999999999999999ns\""},
      {"3000000h", "time: invalid duration \"3000000h\""},
      {"2000000h2000000h", "time: invalid duration \"2000000h2000000h\""},
  };
  for (const auto& [in, want] : cases) {
    const Result<Duration> got = ParseDuration(in);
    ASSERT_FALSE(got) << in;
    EXPECT_EQ(got.error().message, want);
  }
}

TEST(ParseTimeTest, ReadsAsGo) {
  struct Case {
    const char* in;
    int64_t nanos;
    const char* time;
    const char* micro;
  };
  const Case cases[] = {
      {"2026-11-30T09:47:59Z", 1796032079000000000, "2026-11-30T09:47:59Z",
       "2026-11-30T09:47:59.000000Z"},
      {"2026-11-30T09:47:59.123456789123Z", 1796032079123456789, "2026-11-30T09:47:59Z",
       "2026-11-30T09:47:59.123456Z"},
      {"2026-11-30T09:47:59,5Z", 1796032079500000000, "2026-11-30T09:47:59Z",
       "2026-11-30T09:47:59.500000Z"},
      {"2026-11-30T9:47:59Z", 1796032079000000000, "2026-11-30T09:47:59Z",
       "2026-11-30T09:47:59.000000Z"},
      {"2026-11-30T09:47:59+08:00", 1796003279000000000, "2026-11-30T01:47:59Z",
       "2026-11-30T01:47:59.000000Z"},
      {"2026-11-30T09:47:59-00:30", 1796033879000000000, "2026-11-30T10:17:59Z",
       "2026-11-30T10:17:59.000000Z"},
      {"2024-02-29T00:00:00Z", 1709164800000000000, "2024-02-29T00:00:00Z",
       "2024-02-29T00:00:00.000000Z"},
      {"1969-12-31T23:59:59.5Z", -500000000, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.500000Z"},
      {"2026-11-30T23:59:59+24:00", 1795996799000000000, "2026-11-29T23:59:59Z",
       "2026-11-29T23:59:59.000000Z"},
  };
  for (const Case& c : cases) {
    const Result<Time> got = ParseTime(c.in);
    ASSERT_TRUE(got) << c.in << ": " << got.error().message;
    EXPECT_EQ(got->time_since_epoch().count(), c.nanos) << c.in;
    EXPECT_EQ(FormatTime(*got), c.time);
    EXPECT_EQ(FormatMicroTime(*got), c.micro);
  }
}

TEST(ParseTimeTest, ClampsWhatNanosecondsCannotHold) {
  EXPECT_EQ(ParseTime("0001-01-01T00:00:00Z"), Time::min());
  EXPECT_EQ(ParseTime("9999-12-31T23:59:59Z"), Time::max());
  EXPECT_EQ(FormatTime(Time::max()), "2262-04-11T23:47:16Z");
  EXPECT_EQ(FormatTime(Time::min()), "1677-09-21T00:12:43Z");
  EXPECT_EQ(FormatMicroTime(Time::min()), "1677-09-21T00:12:43.145224Z");
}

TEST(ParseTimeTest, RefusesAsGo) {
  const std::string layout = " as \"2006-01-02T15:04:05Z07:00\": cannot parse ";
  const std::pair<std::string, std::string> cases[] = {
      {"", layout + "\"\" as \"2006\""},
      {"x", layout + "\"x\" as \"2006\""},
      {"26-11-30T00:00:00Z", layout + "\"26-11-30T00:00:00Z\" as \"2006\""},
      {"2026-1-01T00:00:00Z", layout + "\"1-01T00:00:00Z\" as \"01\""},
      {"2026-11-30 23:59:59Z", layout + "\" 23:59:59Z\" as \"T\""},
      {"2026-11-30T23:59:59", layout + "\"\" as \"Z07:00\""},
      {"2026-11-30T23:59:59.Z", layout + "\".Z\" as \"Z07:00\""},
      {"2026-13-01T00:00:00Z", ": month out of range"},
      {"2026-00-01T00:00:00Z", ": month out of range"},
      {"2026-02-29T00:00:00Z", ": day out of range"},
      {"2026-11-31T00:00:00Z", ": day out of range"},
      {"2026-11-30T24:00:00Z", ": hour out of range"},
      {"2026-11-30T23:60:00Z", ": minute out of range"},
      {"2026-11-30T23:59:60Z", ": second out of range"},
      {"2026-11-30T23:59:59Zx", ": extra text: \"x\""},
      {"2026-11-30T23:59:59+25:00", ": time zone offset hour out of range"},
      {"2026-11-30T23:59:59+00:61", ": time zone offset minute out of range"},
  };
  for (const auto& [in, want] : cases) {
    const Result<Time> got = ParseTime(in);
    ASSERT_FALSE(got) << in;
    EXPECT_EQ(got.error().message, "parsing time \"" + in + "\"" + want);
  }
}

TEST(RealClockTest, IsLaterThanThisFile) {
  const RealClock clock;
  EXPECT_GT(clock.Now(), *ParseTime("2025-01-01T00:00:00Z"));
  const Duration before = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), before);
}

}  // namespace
}  // namespace sextant
