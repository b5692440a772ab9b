#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/job_state.h"
#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const ObjectName kSum{"default", "sum"};

TEST(IndexSetTest, ReadsAndPrintsTheCompressedForm) {
  for (const auto& [text, printed] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"3", "3"},
                                                        {"0,1", "0,1"},
                                                        {"0-1", "0,1"},
                                                        {"0,1,2", "0-2"},
                                                        {"1,3-4,5", "1,3-5"},
                                                        {"x,2,4-", "2"},
                                                        {"8,9,10-20", "8,9"}}) {
    EXPECT_EQ(IndexSet::Parse(text, 10).ToString(), printed) << text;
  }
}

TEST(IndexSetTest, AddsFindsAndMisses) {
  IndexSet set = IndexSet::Parse("0,2,4-6", 100);
  set.Add(1);
  set.Add(3);
  EXPECT_EQ(set.ToString(), "0-6");
  EXPECT_TRUE(set.Has(6));
  EXPECT_FALSE(set.Has(7));
  EXPECT_EQ(IndexSet::Parse("1,3", 10).Missing(3, 5), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(IndexSet::Parse("1-5", 10).Overlap(IndexSet::Parse("0-2,5,9", 10)), 3);
}

class JobTest : public ::testing::Test {
 protected:
  JobTest() { cluster.AddNode("node-1"); }

  void Make(std::string_view spec) {
    cluster.Create(client::kJobs, fmt::format(R"({{"metadata":{{"name":"sum"}},"spec":{{{}
      "template":{{"spec":{{"restartPolicy":"Never",
      "containers":[{{"name":"c","image":"i"}}]}}}}}}}})",
                                              spec));
    cluster.Play();
  }
  Object Get() { return cluster.Get(client::kJobs, kSum); }
  api::Value Status() {
    last_ = Get();
    return last_["status"];
  }
  std::string Reason(std::string_view type) {
    return std::string(FindCondition(Status()["conditions"], type)["reason"].AsString());
  }
  // Ends the active Pods with this phase.
  void End(std::string_view phase, size_t count = 100, std::string_view more = "") {
    for (const Object& pod : cluster.Pods("sum-")) {
      if (IsPodTerminal(pod) || count-- == 0) continue;
      cluster.Patch(client::kPods, NameOf(pod),
                    fmt::format(R"({{"status":{{"phase":"{}"{},"conditions":[{{"type":"Ready",)"
                                R"("status":"False","lastTransitionTime":"{}"}}]}}}})",
                                phase, more, FormatTime(cluster.loop.Now())),
                    "status");
      if (count == 0) break;
    }
    cluster.Play();
  }
  size_t Active() {
    size_t active = 0;
    for (const Object& pod : cluster.Pods("sum-")) active += IsPodActive(pod);
    return active;
  }
  Cluster cluster;

 private:
  Object last_;
};

TEST_F(JobTest, Completes) {
  Make("");
  ASSERT_EQ(Active(), 1U);
  EXPECT_EQ(Status()["active"].AsInt(), 1);
  EXPECT_EQ(Status()["ready"].AsInt(), 1);
  EXPECT_TRUE(Status()["startTime"]);
  EXPECT_TRUE(IsTracked(cluster.Pods("sum-")[0]));
  End("Succeeded");
  EXPECT_EQ(Status()["succeeded"].AsInt(), 1);
  EXPECT_EQ(Status()["active"].AsInt(), 0);
  EXPECT_TRUE(Status()["completionTime"]);
  EXPECT_EQ(Reason("SuccessCriteriaMet"), "CompletionsReached");
  EXPECT_EQ(Reason("Complete"), "CompletionsReached");
  EXPECT_EQ(Status()["uncountedTerminatedPods"].size(), 0U);
  EXPECT_FALSE(IsTracked(cluster.Pods("sum-")[0]));
  EXPECT_THAT(cluster.Events("sum"), Contains("Completed: Job completed"));
  EXPECT_THAT(cluster.Events("sum"), Contains(StartsWith("SuccessfulCreate: Created pod: sum-")));
}

TEST_F(JobTest, RunsSideBySideUntilEnoughHaveSucceeded) {
  Make(R"("completions":5,"parallelism":2,)");
  for (const int64_t done : {2, 4}) {
    EXPECT_EQ(Active(), 2U);
    End("Succeeded");
    EXPECT_EQ(Status()["succeeded"].AsInt(), done);
  }
  EXPECT_EQ(Active(), 1U);
  End("Succeeded");
  EXPECT_EQ(Status()["succeeded"].AsInt(), 5);
  EXPECT_EQ(Reason("Complete"), "CompletionsReached");
}

TEST_F(JobTest, FailuresAreTriedAgainWithBackoffUpToTheLimit) {
  Make(R"("backoffLimit":1,)");
  End("Failed");
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
  EXPECT_EQ(Active(), 0U);
  cluster.Advance(9s);
  EXPECT_EQ(Active(), 0U);
  cluster.Advance(2s);
  cluster.Play();
  EXPECT_EQ(Active(), 1U);
  End("Failed");
  EXPECT_EQ(Status()["failed"].AsInt(), 2);
  EXPECT_EQ(Reason("FailureTarget"), "BackoffLimitExceeded");
  EXPECT_EQ(Reason("Failed"), "BackoffLimitExceeded");
  EXPECT_THAT(cluster.Events("sum"),
              Contains("BackoffLimitExceeded: Job has reached the specified backoff limit"));
}

TEST_F(JobTest, ADeadlineEndsItsPods) {
  Make(R"("activeDeadlineSeconds":60,)");
  cluster.Advance(59s);
  EXPECT_EQ(Active(), 1U);
  cluster.Advance(2s);
  EXPECT_EQ(Reason("FailureTarget"), "DeadlineExceeded");
  EXPECT_EQ(Reason("Failed"), "");  // its Pod is still ending
  cluster.Play();
  EXPECT_EQ(Active(), 0U);
  EXPECT_EQ(Reason("Failed"), "DeadlineExceeded");
}

TEST_F(JobTest, IndexesAreCountedAndStarted) {
  Make(R"("completionMode":"Indexed","completions":3,"parallelism":2,)");
  const auto pods = cluster.Pods("sum-");
  ASSERT_EQ(pods.size(), 2U);
  EXPECT_THAT(std::string(pods[0].name()), StartsWith("sum-0-"));
  EXPECT_EQ(pods[0]["spec"]["hostname"].AsString(), "sum-0");
  EXPECT_EQ(pods[0]["metadata"]["labels"][kCompletionIndex].AsString(), "0");
  EXPECT_EQ(pods[0]["spec"]["containers"].at(0)["env"].at(0)["name"].AsString(),
            "JOB_COMPLETION_INDEX");
  End("Succeeded");
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "0,1");
  EXPECT_EQ(Active(), 1U);
  End("Succeeded");
  EXPECT_EQ(Status()["completedIndexes"].AsString(), "0-2");
  EXPECT_EQ(Reason("Complete"), "CompletionsReached");
}

TEST_F(JobTest, AFailurePolicyEndsTheJobAtOnce) {
  Make(R"("podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":)"
       R"({"operator":"In","values":[42]}}]},)");
  End("Failed", 1,
      R"(,"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,)"
      R"("restartCount":0,)"
      R"("state":{"terminated":{"exitCode":42,"reason":"Error"}}}])");
  EXPECT_EQ(Reason("Failed"), "PodFailurePolicy");
  const Object job = Get();
  EXPECT_THAT(
      std::string(FindCondition(job["status"]["conditions"], "Failed")["message"].AsString()),
      HasSubstr("failed with exit code 42 matching FailJob rule at index 0"));
}

TEST_F(JobTest, SuspendsAndResumes) {
  Make(R"("suspend":true,)");
  EXPECT_EQ(Active(), 0U);
  EXPECT_EQ(Reason("Suspended"), "JobSuspended");
  EXPECT_FALSE(Status()["startTime"]);
  cluster.Patch(client::kJobs, kSum, R"({"spec":{"suspend":false}})");
  cluster.Play();
  EXPECT_EQ(Active(), 1U);
  EXPECT_EQ(Reason("Suspended"), "JobResumed");
  EXPECT_TRUE(Status()["startTime"]);
  cluster.Patch(client::kJobs, kSum, R"({"spec":{"suspend":true}})");
  cluster.Play();
  EXPECT_EQ(Active(), 0U);
  EXPECT_EQ(Status()["failed"].AsInt(), 0);
}

TEST_F(JobTest, AFinishedJobGoesAfterItsTime) {
  Make(R"("ttlSecondsAfterFinished":30,)");
  End("Succeeded");
  cluster.Advance(29s);
  EXPECT_TRUE(Get());
  cluster.Advance(2s);
  cluster.Play();
  EXPECT_FALSE(Get());
  EXPECT_TRUE(cluster.List(client::kPods).empty());
}

TEST_F(JobTest, ADeletedJobLetsItsPodsGo) {
  Make("");
  cluster.Delete(client::kJobs, kSum, "Background");
  cluster.Advance(1s);  // the collector meets the Pod that the controller has just released
  cluster.Play();
  EXPECT_FALSE(Get());
  EXPECT_TRUE(cluster.List(client::kPods).empty());
}

TEST_F(JobTest, APodThatIsDeletedCountsAsFailedAndIsReplaced) {
  Make("");
  cluster.Delete(client::kPods, NameOf(cluster.Pods("sum-")[0]));
  cluster.Play();
  cluster.Advance(15s);
  cluster.Play();
  EXPECT_EQ(Active(), 1U);
  EXPECT_EQ(Status()["failed"].AsInt(), 1);
}

}  // namespace
}  // namespace sextant::controllers
