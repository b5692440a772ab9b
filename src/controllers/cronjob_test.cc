#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;

constexpr Gvr kCronJobs{"batch", "v1", "cronjobs"};

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

TEST_F(CronJobTest, OtherTimeZonesStartNothing) {
  Make(R"("timeZone":"Europe/Berlin",)");
  Pass(11min);
  EXPECT_EQ(Jobs(), 0U);
  EXPECT_THAT(
      cluster.Events("tick"),
      Contains("UnknownTimeZone: timeZone \"Europe/Berlin\" is not known here: only UTC is"));
}

TEST_F(CronJobTest, SuspendedStartsNothing) {
  Make(R"("suspend":true,)");
  Pass(11min);
  EXPECT_EQ(Jobs(), 0U);
}

}  // namespace
}  // namespace sextant::controllers
