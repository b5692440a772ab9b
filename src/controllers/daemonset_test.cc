#include <gmock/gmock.h>

#include <set>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::StartsWith;

const ObjectName kName{"default", "agent"};

constexpr std::string_view kAgent = R"({
  "metadata": {"name": "agent"},
  "spec": {
    "selector": {"matchLabels": {"app": "agent"}},
    "template": {
      "metadata": {"labels": {"app": "agent"}},
      "spec": {"containers": [{"name": "agent", "image": "agent:1"}]}
    }
  }
})";

std::set<std::string> NodesOf(const std::vector<Object>& pods) {
  std::set<std::string> nodes;
  for (const Object& pod : pods) nodes.emplace(pod["spec"]["nodeName"].AsString());
  return nodes;
}

class DaemonSetTest : public ::testing::Test {
 protected:
  DaemonSetTest() {
    for (const char* node : {"node-1", "node-2", "node-3"}) cluster.AddNode(node);
    cluster.Create(client::kDaemonSets, kAgent);
    cluster.Play();
  }
  api::Value Status() {
    set = cluster.Get(client::kDaemonSets, kName);
    return set["status"];
  }
  Cluster cluster;
  Object set;
};

TEST_F(DaemonSetTest, OnePodOnEachNodeWithStatusAndEvents) {
  const auto pods = cluster.Pods("agent-");
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_EQ(NodesOf(pods), (std::set<std::string>{"node-1", "node-2", "node-3"}));
  const api::Value status = Status();
  EXPECT_EQ(status["desiredNumberScheduled"].AsInt(), 3);
  EXPECT_EQ(status["currentNumberScheduled"].AsInt(), 3);
  EXPECT_EQ(status["numberReady"].AsInt(), 3);
  EXPECT_EQ(status["numberAvailable"].AsInt(), 3);
  EXPECT_EQ(status["updatedNumberScheduled"].AsInt(), 3);
  EXPECT_EQ(status["numberUnavailable"].AsInt(), 0);
  EXPECT_EQ(status["observedGeneration"].AsInt(), 1);
  EXPECT_THAT(cluster.Events("agent"),
              Contains(StartsWith("SuccessfulCreate: Created pod: agent-")));
  const auto revisions = cluster.List(client::kControllerRevisions, "default");
  ASSERT_EQ(revisions.size(), 1U);
  EXPECT_EQ(revisions[0]["revision"].AsInt(), 1);
  EXPECT_EQ(revisions[0]["data"]["spec"]["template"]["$patch"].AsString(), "replace");
  for (const Object& pod : pods) {
    EXPECT_EQ(pod["metadata"]["labels"]["controller-revision-hash"].AsString(),
              revisions[0]["metadata"]["labels"]["controller-revision-hash"].AsString());
    EXPECT_TRUE(IsControlledBy(pod, set));
  }
}

TEST_F(DaemonSetTest, ADeletedPodComesBackOnItsNode) {
  const Object victim = cluster.Pods("agent-")[1];
  cluster.Delete(client::kPods, NameOf(victim));
  cluster.Play();
  const auto pods = cluster.Pods("agent-");
  EXPECT_EQ(NodesOf(pods), (std::set<std::string>{"node-1", "node-2", "node-3"}));
  for (const Object& pod : pods) EXPECT_NE(pod.uid(), victim.uid());
}

TEST_F(DaemonSetTest, FollowsNodesAsTheyComeChangeAndAreTainted) {
  cluster.AddNode("node-4");
  cluster.AddNode("tainted", R"({"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]})");
  cluster.AddNode("cordoned", R"({"unschedulable":true})");
  cluster.Play();
  EXPECT_EQ(NodesOf(cluster.Pods("agent-")),
            (std::set<std::string>{"node-1", "node-2", "node-3", "node-4", "cordoned"}));
  // NoSchedule leaves a Pod that is there, NoExecute does not.
  cluster.Patch(client::kNodes, {"", "node-4"},
                R"({"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("agent-").size(), 5U);
  EXPECT_EQ(Status()["numberMisscheduled"].AsInt(), 1);
  cluster.Patch(client::kNodes, {"", "node-4"},
                R"({"spec":{"taints":[{"key":"gpu","effect":"NoExecute"}]}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("agent-").size(), 4U);
  EXPECT_EQ(Status()["numberMisscheduled"].AsInt(), 0);
}

TEST_F(DaemonSetTest, ANodeSelectorNarrowsTheNodes) {
  cluster.Patch(client::kDaemonSets, kName,
                R"({"spec":{"template":{"spec":{"nodeSelector":{"gpu":"true"}}}}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("agent-").size(), 0U);
  cluster.Patch(client::kNodes, {"", "node-2"}, R"({"metadata":{"labels":{"gpu":"true"}}})");
  cluster.Play();
  EXPECT_EQ(NodesOf(cluster.Pods("agent-")), (std::set<std::string>{"node-2"}));
}

TEST_F(DaemonSetTest, RollsOneNodeAtATime) {
  cluster.Patch(
      client::kDaemonSets, kName,
      R"({"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"agent:2"}]}}}})");
  size_t old = 0;
  for (const Object& pod : cluster.Pods("agent-"))
    old += pod["spec"]["containers"].at(0)["image"].AsString() == "agent:1";
  EXPECT_EQ(old, 2U);  // the kubelet of the third has not ended its Pod yet
  cluster.Play();
  const auto pods = cluster.Pods("agent-");
  EXPECT_EQ(pods.size(), 3U);
  for (const Object& pod : pods)
    EXPECT_EQ(pod["spec"]["containers"].at(0)["image"].AsString(), "agent:2");
  EXPECT_EQ(Status()["updatedNumberScheduled"].AsInt(), 3);
  EXPECT_EQ(cluster.List(client::kControllerRevisions, "default").size(), 2U);
}

TEST_F(DaemonSetTest, OnDeleteWaitsForDeletion) {
  cluster.Patch(client::kDaemonSets, kName,
                R"({"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null},)"
                R"("template":{"spec":{"containers":[{"name":"agent","image":"agent:2"}]}}}})");
  cluster.Play();
  EXPECT_EQ(Status()["updatedNumberScheduled"].AsInt(), 0);
  cluster.Delete(client::kPods, NameOf(cluster.Pods("agent-")[0]));
  cluster.Play();
  EXPECT_EQ(Status()["updatedNumberScheduled"].AsInt(), 1);
}

TEST_F(DaemonSetTest, SurgeKeepsTheOldPodUntilTheNewOneIsReady) {
  cluster.Patch(client::kDaemonSets, kName,
                R"({"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},)"
                R"("template":{"spec":{"containers":[{"name":"agent","image":"agent:2"}]}}}})");
  EXPECT_EQ(cluster.Pods("agent-").size(), 4U);
  cluster.Play();
  EXPECT_EQ(cluster.Pods("agent-").size(), 3U);
  EXPECT_EQ(Status()["updatedNumberScheduled"].AsInt(), 3);
}

TEST_F(DaemonSetTest, FailedPodsAreReplacedWithBackoff) {
  const Object victim = cluster.Pods("agent-")[0];
  const std::string failed = R"({"status":{"phase":"Failed"}})";
  cluster.Patch(client::kPods, NameOf(victim), failed, "status");
  cluster.Play();
  EXPECT_THAT(cluster.Events("agent"),
              Contains(StartsWith("FailedDaemonPod: Found failed daemon pod")));
  std::string again;
  for (const Object& pod : cluster.Pods("agent-"))
    if (pod["spec"]["nodeName"].AsString() == victim["spec"]["nodeName"].AsString())
      again = pod.name();
  ASSERT_NE(again, victim.name());
  cluster.Patch(client::kPods, {"default", again}, failed, "status");
  cluster.Play();
  EXPECT_EQ(cluster.Get(client::kPods, {"default", again})["status"]["phase"].AsString(), "Failed");
  cluster.Advance(2s);
  cluster.Play();
  EXPECT_FALSE(cluster.Get(client::kPods, {"default", again}));
}

// What failed on a node is forgotten with the node.
TEST_F(DaemonSetTest, ANodeThatComesBackHasNoFailuresBehindIt) {
  const auto there = [this] {
    for (const Object& pod : cluster.Pods("agent-"))
      if (pod["spec"]["nodeName"].AsString() == "node-1") return NameOf(pod);
    return ObjectName{};
  };
  const auto fail = [&] {
    const ObjectName victim = there();
    cluster.Patch(client::kPods, victim, R"({"status":{"phase":"Failed"}})", "status");
    cluster.Play();
    EXPECT_FALSE(cluster.Get(client::kPods, victim));
  };
  fail();
  cluster.Delete(client::kNodes, {"", "node-1"});
  cluster.Delete(client::kLeases, {"kube-node-lease", "node-1"});
  cluster.Delete(client::kPods, there());
  cluster.Play();
  EXPECT_EQ(there().name, "");
  cluster.AddNode("node-1");
  cluster.Play();
  fail();
}

}  // namespace
}  // namespace sextant::controllers
