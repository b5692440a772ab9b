#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/cron_schedule.h"
#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;

constexpr Gvr kCronJobs{"batch", "v1", "cronjobs"};

TEST(CronScheduleTest, FindsTheNextTime) {
  struct Case {
    const char* schedule;
    const char* after;
    const char* next;
  };
  for (const Case& c :
       std::vector<Case>{{"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
                         {"*/15 * * * *", "2026-01-01T00:15:01Z", "2026-01-01T00:30:00Z"},
                         {"30 6-16/4 * * 1-5", "2026-01-02T14:30:00Z", "2026-01-05T06:30:00Z"},
                         {"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
                         {"0 12 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T12:00:00Z"},
                         {"@monthly", "2026-01-31T10:00:00Z", "2026-02-01T00:00:00Z"},
                         {"@every 90s", "2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z"}}) {
    const auto schedule = CronSchedule::Parse(c.schedule);
    ASSERT_TRUE(schedule) << c.schedule;
    const auto next = schedule->Next(*ParseTime(c.after));
    ASSERT_TRUE(next) << c.schedule;
    EXPECT_EQ(FormatTime(*next), c.next) << c.schedule;
  }
  EXPECT_FALSE(CronSchedule::Parse("59 23 31 2 *")->Next(*ParseTime("2026-01-01T00:00:00Z")));
  for (const char* bad : {"", "* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "x * * * *"})
    EXPECT_FALSE(CronSchedule::Parse(bad)) << bad;
}

class CronJobTest : public ::testing::Test {
 protected:
  CronJobTest() { cluster.AddNode("node-1"); }
  void Make(std::string_view more) {
    cluster.Create(kCronJobs, fmt::format(R"({{"metadata":{{"name":"tick"}},"spec":{{{}
      "schedule":"*/5 * * * *","jobTemplate":{{"spec":{{"template":{{"spec":{{
      "restartPolicy":"Never","containers":[{{"name":"c","image":"i"}}]}}}}}}}}}}}})",
                                          more));
  }
  void Pass(Duration time) {
    cluster.Advance(time);
    cluster.RenewLease("node-1");
    cluster.Play();
  }
  size_t Jobs() { return cluster.List(client::kJobs, "default").size(); }
  Object Get() { return cluster.Get(kCronJobs, {"default", "tick"}); }
  Cluster cluster;
};

TEST_F(CronJobTest, StartsJobsAndTrimsThem) {
  cluster.phases["tick-"] = "Succeeded";
  Make(R"("successfulJobsHistoryLimit":2,)");
  EXPECT_EQ(Jobs(), 0U);
  Pass(5min + 1s);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(Get()["status"]["lastScheduleTime"].AsString(), "2026-01-01T00:05:00Z");
  EXPECT_TRUE(Get()["status"]["lastSuccessfulTime"]);
  EXPECT_EQ(Get()["status"]["active"].size(), 0U);
  for (int i = 0; i < 3; ++i) Pass(5min);
  EXPECT_EQ(Jobs(), 2U);
}

TEST_F(CronJobTest, ForbidWaitsForTheOneThatRuns) {
  Make(R"("concurrencyPolicy":"Forbid",)");
  Pass(5min + 1s);
  Pass(5min);
  EXPECT_EQ(Jobs(), 1U);
  EXPECT_EQ(Get()["status"]["active"].size(), 1U);
  EXPECT_THAT(cluster.Events("tick"),
              Contains("JobAlreadyActive: Not starting job because prior execution is running and "
                       "concurrency policy is Forbid"));
}

TEST_F(CronJobTest, SuspendedStartsNothing) {
  Make(R"("suspend":true,)");
  Pass(11min);
  EXPECT_EQ(Jobs(), 0U);
}

}  // namespace
}  // namespace sextant::controllers
