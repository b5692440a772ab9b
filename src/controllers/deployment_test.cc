#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/replicaset.h"
#include "controllers/rollout.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

const ObjectName kWeb{"default", "web"};

std::string Image(const Object& object) {
  return std::string(object["spec"]["containers"].at(0)["image"].AsString());
}

class DeploymentTest : public ::testing::Test {
 protected:
  DeploymentTest() { cluster.AddNode("node-1"); }

  void Make(int replicas, std::string_view more = "") {
    cluster.Create(client::kDeployments, fmt::format(R"({{
      "metadata": {{"name": "web", "annotations": {{"team": "gpu"}}}},
      "spec": {{"replicas": {}, {} "selector": {{"matchLabels": {{"app": "web"}}}},
        "template": {{"metadata": {{"labels": {{"app": "web"}}}},
          "spec": {{"containers": [{{"name": "web", "image": "web:1"}}]}}}}}}}})",
                                                     replicas, more));
    cluster.Play();
  }
  void SetImage(std::string_view image) {
    cluster.Patch(client::kDeployments, kWeb,
                  fmt::format(R"({{"spec":{{"template":{{"spec":{{"containers":)"
                              R"([{{"name":"web","image":"{}"}}]}}}}}}}})",
                              image));
  }
  Object Get() { return cluster.Get(client::kDeployments, kWeb); }
  std::vector<Object> Sets() { return cluster.List(client::kReplicaSets, "default"); }
  std::string Reason(std::string_view type) {
    const Object web = Get();
    return std::string(FindCondition(web["status"]["conditions"], type)["reason"].AsString());
  }
  size_t With(std::string_view image) {
    size_t count = 0;
    for (const Object& pod : cluster.Pods("web-")) count += Image(pod) == image;
    return count;
  }
  Cluster cluster;
};

TEST_F(DeploymentTest, ComesUp) {
  Make(3);
  const Object web = Get();
  EXPECT_EQ(cluster.Pods("web-").size(), 3U);
  const api::Value status = web["status"];
  EXPECT_EQ(status["replicas"].AsInt(), 3);
  EXPECT_EQ(status["updatedReplicas"].AsInt(), 3);
  EXPECT_EQ(status["readyReplicas"].AsInt(), 3);
  EXPECT_EQ(status["availableReplicas"].AsInt(), 3);
  EXPECT_FALSE(status.Has("unavailableReplicas"));
  EXPECT_EQ(status["observedGeneration"].AsInt(), 1);
  EXPECT_EQ(Reason("Available"), "MinimumReplicasAvailable");
  EXPECT_EQ(Reason("Progressing"), "NewReplicaSetAvailable");
  EXPECT_EQ(web["metadata"]["annotations"][kRevision].AsString(), "1");
  ASSERT_EQ(Sets().size(), 1U);
  const Object set = Sets()[0];
  EXPECT_EQ(FindCondition(status["conditions"], "Progressing")["message"].AsString(),
            fmt::format("ReplicaSet \"{}\" has successfully progressed.", set.name()));
  EXPECT_THAT(std::string(set.name()), MatchesRegex("web-[a-z0-9]+"));
  EXPECT_EQ(set.name().substr(4), set["metadata"]["labels"][kTemplateHash].AsString());
  const api::Value annotations = set["metadata"]["annotations"];
  EXPECT_EQ(annotations["team"].AsString(), "gpu");
  EXPECT_EQ(annotations[kDesiredReplicas].AsString(), "3");
  EXPECT_EQ(annotations[kMaxReplicas].AsString(), "4");
  EXPECT_THAT(
      cluster.Events("web"),
      Contains(fmt::format("ScalingReplicaSet: Scaled up replica set {} from 0 to 3", set.name())));
  for (const Object& pod : cluster.Pods("web-"))
    EXPECT_EQ(pod["metadata"]["labels"][kTemplateHash].AsString(), set.name().substr(4));
}

TEST_F(DeploymentTest, Scales) {
  Make(1);
  cluster.Patch(client::kDeployments, kWeb, R"({"spec":{"replicas":5}})");
  cluster.Play();
  EXPECT_EQ(Get()["status"]["availableReplicas"].AsInt(), 5);
  EXPECT_EQ(Sets()[0]["metadata"]["annotations"][kMaxReplicas].AsString(), "7");
  cluster.Patch(client::kDeployments, kWeb, R"({"spec":{"replicas":2}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
  EXPECT_EQ(Get()["status"]["replicas"].AsInt(), 2);
  cluster.Patch(client::kDeployments, kWeb, R"({"spec":{"replicas":0}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 0U);
  EXPECT_EQ(Get()["status"]["replicas"].AsInt(), 0);
}

TEST_F(DeploymentTest, ReplacesADeletedPod) {
  Make(2);
  cluster.Delete(client::kPods, NameOf(cluster.Pods("web-")[0]));
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
}

TEST_F(DeploymentTest, RollsWithinSurgeAndUnavailableAndBack) {
  Make(4, R"("strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}},)");
  SetImage("web:2");
  // No new Pod is ready yet: one more than wanted, one old one down.
  EXPECT_EQ(With("web:2"), 2U);
  EXPECT_EQ(With("web:1"), 3U);
  EXPECT_EQ(Reason("Progressing"), "ReplicaSetUpdated");
  cluster.Play();
  EXPECT_EQ(With("web:2"), 4U);
  EXPECT_EQ(With("web:1"), 0U);
  EXPECT_EQ(Get()["metadata"]["annotations"][kRevision].AsString(), "2");
  EXPECT_EQ(Sets().size(), 2U);
  EXPECT_EQ(Reason("Progressing"), "NewReplicaSetAvailable");
  // Back: the old set is used again with a new revision.
  SetImage("web:1");
  cluster.Play();
  EXPECT_EQ(With("web:1"), 4U);
  EXPECT_EQ(Sets().size(), 2U);
  EXPECT_EQ(Get()["metadata"]["annotations"][kRevision].AsString(), "3");
  for (const Object& set : Sets()) {
    if (Replicas(set) == 0) continue;
    EXPECT_EQ(set["metadata"]["annotations"][kRevision].AsString(), "3");
    EXPECT_EQ(set["metadata"]["annotations"][kRevisionHistory].AsString(), "1");
  }
}

TEST_F(DeploymentTest, ABrokenRolloutStopsAndTimesOut) {
  Make(4, R"("progressDeadlineSeconds":60,)");
  cluster.deaf = true;
  SetImage("web:broken");
  cluster.Settle();
  EXPECT_EQ(With("web:1"), 3U);  // 25 % of 4 may be unavailable
  EXPECT_EQ(With("web:broken"), 2U);
  for (int i = 0; i < 14; ++i) {
    cluster.RenewLease("node-1");
    cluster.Advance(5s);
  }
  EXPECT_EQ(Reason("Progressing"), "ProgressDeadlineExceeded");
  EXPECT_EQ(Reason("Available"), "MinimumReplicasAvailable");
}

TEST_F(DeploymentTest, RecreateNeverMixes) {
  Make(3, R"("strategy":{"type":"Recreate"},)");
  SetImage("web:2");
  EXPECT_EQ(With("web:2"), 0U);
  EXPECT_EQ(With("web:1"), 0U);  // all are ending
  cluster.Play();
  EXPECT_EQ(With("web:2"), 3U);
  EXPECT_EQ(Reason("Progressing"), "NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, PausedRolloutsWait) {
  Make(2);
  cluster.Patch(client::kDeployments, kWeb, R"({"spec":{"paused":true}})");
  EXPECT_EQ(Reason("Progressing"), "DeploymentPaused");
  SetImage("web:2");
  cluster.Play();
  EXPECT_EQ(With("web:1"), 2U);
  cluster.Patch(client::kDeployments, kWeb, R"({"spec":{"paused":false}})");
  cluster.Play();
  EXPECT_EQ(With("web:2"), 2U);
  EXPECT_EQ(Reason("Progressing"), "NewReplicaSetAvailable");
}

TEST_F(DeploymentTest, KeepsNoMoreHistoryThanAskedFor) {
  Make(1, R"("revisionHistoryLimit":1,)");
  for (const char* image : {"web:2", "web:3", "web:4"}) {
    SetImage(image);
    cluster.Play();
  }
  EXPECT_EQ(Sets().size(), 2U);
}

TEST_F(DeploymentTest, AdoptsOrphansAndReleasesWhatNoLongerMatches) {
  Make(2);
  const Object pod = cluster.Pods("web-")[0];
  cluster.Patch(client::kPods, NameOf(pod), R"({"metadata":{"labels":{"app":"other"}}})");
  cluster.Play();
  EXPECT_FALSE(ControllerOf(cluster.Get(client::kPods, NameOf(pod))));
  EXPECT_EQ(cluster.Pods("web-").size(), 3U);
  cluster.Patch(client::kPods, NameOf(pod), R"({"metadata":{"labels":{"app":"web"}}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
}

TEST(ControllersTest, StopInTheMiddleOfTheirWork) {
  for (int turns = 4; turns < 40; turns += 3) {
    Cluster cluster;
    cluster.AddNode("node-1");
    cluster.StopAfter(turns);
    cluster.Create(client::kDeployments, R"({"metadata":{"name":"web"},"spec":{"replicas":9,
      "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    cluster.Advance(10s);
    EXPECT_LE(cluster.Pods("web-").size(), 9U);
  }
}

TEST(PodsToGiveUpTest, UnboundThenUnreadyThenCheapThenCrowded) {
  const auto pod = [](const char* name, const char* node, bool ready, const char* cost) {
    api::Editor edit;
    edit["metadata"].Set("name", name);
    edit["metadata"].Set("uid", name);
    edit["metadata"]["annotations"].Set("controller.kubernetes.io/pod-deletion-cost", cost);
    edit["spec"].Set("nodeName", node);
    edit["status"].Set("phase", "Running");
    api::Mut condition = edit["status"]["conditions"].Append();
    condition.Set("type", "Ready");
    condition.Set("status", ready ? "True" : "False");
    return std::move(edit).Finish();
  };
  const std::vector<Object> pods = {pod("alone", "b", true, "0"),    pod("dear", "a", true, "5"),
                                    pod("crowded", "a", true, "0"),  pod("cheap", "b2", true, "-5"),
                                    pod("unready", "c", false, "9"), pod("unbound", "", true, "9")};
  std::vector<std::string> order;
  for (const Object& given : PodsToGiveUp(pods, pods, 5, Time{})) order.emplace_back(given.name());
  EXPECT_THAT(order, ::testing::ElementsAre("unbound", "unready", "cheap", "crowded", "alone"));
}

}  // namespace
}  // namespace sextant::controllers
