#include "api/cron_schedule.h"

#include <gtest/gtest.h>

namespace sextant::api {
namespace {

TEST(CronSchedule, FindsTheNextTime) {
  struct Case {
    const char* schedule;
    const char* after;
    const char* next;
  };
  // The times are what github.com/robfig/cron v3.0.1 answers.
  for (const Case& c : std::vector<Case>{
           {"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
           {"*/15 * * * *", "2026-01-01T00:15:01Z", "2026-01-01T00:30:00Z"},
           {"30 6-16/4 * * 1-5", "2026-01-02T14:30:00Z", "2026-01-05T06:30:00Z"},
           {"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
           {"0 0 29 2 *", "2099-01-01T00:00:00Z", "2104-02-29T00:00:00Z"},
           {"0 12 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T12:00:00Z"},
           {"0 12 */2 * fri", "2026-01-01T13:00:00Z", "2026-01-02T12:00:00Z"},
           {"0 12 */1 * FRI", "2026-01-02T13:00:00Z", "2026-01-09T12:00:00Z"},
           {"1/2147483647 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
           {"1/9223372036854775807 * * * *", "2026-01-01T00:01:00Z", "2026-01-01T01:01:00Z"},
           {"+5,,10 * * * ?", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"},
           {"*-7 0 * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
           {"TZ=UTC  30 * * * * ", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"},
           {"CRON_TZ= @hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
           {"@monthly", "2026-01-31T10:00:00Z", "2026-02-01T00:00:00Z"},
           {"@weekly", "2026-01-01T10:00:00Z", "2026-01-04T00:00:00Z"},
           {"@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"},
           {"@every 1ms", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"}}) {
    const auto schedule = CronSchedule::Parse(c.schedule);
    ASSERT_TRUE(schedule) << c.schedule << ": " << schedule.error().message;
    const auto next = schedule->Next(*ParseTime(c.after));
    ASSERT_TRUE(next) << c.schedule;
    EXPECT_EQ(FormatTime(*next), c.next) << c.schedule;
  }
}

TEST(CronSchedule, SomeHaveNoNextTime) {
  const Time now = *ParseTime("2026-01-01T00:00:00Z");
  EXPECT_FALSE(CronSchedule::Parse("59 23 31 2 *")->Next(now));
  EXPECT_FALSE(CronSchedule::Parse(", * * * *")->Next(now));
  EXPECT_FALSE(CronSchedule::Parse("* * * * *")->Next(Time::max()));
  EXPECT_FALSE(CronSchedule::Parse("@every 2540400h")->Next(now));
}

TEST(CronSchedule, SaysWhatIsWrong) {
  struct Case {
    const char* schedule;
    const char* error;
  };
  for (const Case& c : std::vector<Case>{
           {"", "empty spec string"},
           {" ", "expected exactly 5 fields, found 0: []"},
           {"* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
           {"60 * * * *", "end of range (60) above maximum (59): 60"},
           {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
           {"5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"},
           {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
           {"*/2/3 * * * *", "too many slashes: */2/3"},
           {"*/0 * * * *", "step of range should be a positive number: */0"},
           {"*/-1 * * * *", "negative number (-1) not allowed: -1"},
           {"x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"},
           {"-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"},
           {"+-1 * * * *",
            "failed to parse int from +: strconv.Atoi: parsing \"+\": invalid syntax"},
           {"*/+-1 * * * *",
            "failed to parse int from +-1: strconv.Atoi: parsing \"+-1\": invalid syntax"},
           {"99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: strconv.Atoi: parsing "
            "\"99999999999999999999\": value out of range"},
           {"99999999999999999999x * * * *",
            "failed to parse int from 99999999999999999999x: strconv.Atoi: parsing "
            "\"99999999999999999999x\": value out of range"},
           {"@fortnightly", "unrecognized descriptor: @fortnightly"},
           {"@daily ", "unrecognized descriptor: @daily "},
           {"@every junk", "failed to parse duration @every junk: time: invalid duration \"junk\""},
           {"@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""},
           {"TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"},
           {"TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"},
           {"TZ=UTC * * *", "expected exactly 5 fields, found 3: [* * *]"}}) {
    const auto schedule = CronSchedule::Parse(c.schedule);
    ASSERT_FALSE(schedule) << c.schedule;
    EXPECT_EQ(schedule.error().message, c.error) << c.schedule;
  }
}

TEST(CronSchedule, KeepsItsZone) {
  EXPECT_EQ(CronSchedule::Parse("TZ=UTC * * * * *")->zone(), "UTC");
  EXPECT_EQ(CronSchedule::Parse("* * * * *")->zone(), "");
}

TEST(TimeZone, OnlyZonesAreKnown) {
  EXPECT_EQ(TimeZoneError("UTC"), "");
  EXPECT_EQ(TimeZoneError("/etc/passwd"), "time: invalid location name");
  if (TimeZoneError("Nowhere/Town").empty()) GTEST_SKIP() << "this system has no time zones";
  EXPECT_EQ(TimeZoneError("Europe/Berlin"), "");
  EXPECT_EQ(TimeZoneError("Nowhere/Town"), "unknown time zone Nowhere/Town");
  EXPECT_EQ(TimeZoneError("Europe"), "unknown time zone Europe");
  EXPECT_EQ(TimeZoneError("zone.tab"), "unknown time zone zone.tab");
}

}  // namespace
}  // namespace sextant::api
