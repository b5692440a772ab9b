// The scheduler as a whole, over a played API: who gets which node, who waits, and what is said.
#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include "scheduler/testing.h"

namespace sextant::scheduler {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::NodeSpec;
using testing::PodSpec;

constexpr std::string_view kNotHelpful =
    " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";

TEST(Scheduler, BindsAndTells) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "train", .gpus = 1});
  EXPECT_EQ(cluster.NodeOf("train"), "a");
  EXPECT_EQ(
      cluster.api.events,
      std::vector<std::string>{"Normal Scheduled train: Successfully assigned default/train to a"});
}

TEST(Scheduler, LeavesOtherSchedulersPodsAlone) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "web", .spec = R"({"schedulerName":"other"})"});
  EXPECT_EQ(cluster.NodeOf("web"), "");
  EXPECT_TRUE(cluster.api.events.empty());
}

class Unsynced : public ::testing::TestWithParam<std::string> {};

// Nothing is tried, and nothing spins, before every list has come.
TEST_P(Unsynced, WaitsForEveryList) {
  Cluster cluster(false);
  cluster.api.Hold(GetParam());
  cluster.Start();
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "web"});
  EXPECT_LT(cluster.loop.RunReady(), 10);
  EXPECT_EQ(cluster.NodeOf("web"), "");
  EXPECT_TRUE(cluster.api.events.empty());
  cluster.api.Release(GetParam());
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}
INSTANTIATE_TEST_SUITE_P(Lists, Unsynced,
                         ::testing::Values("pods", "nodes", "namespaces", "services",
                                           "replicationcontrollers", "replicasets", "statefulsets",
                                           "persistentvolumeclaims", "persistentvolumes",
                                           "storageclasses", "poddisruptionbudgets"));

// One node, one Pod: where it goes, or what FailedScheduling says.
struct FitCase {
  std::string name;
  NodeSpec node;
  PodSpec pod;
  std::string why;  // "" if it fits
};
class Fit : public ::testing::TestWithParam<FitCase> {};

TEST_P(Fit, OneNode) {
  Cluster cluster;
  NodeSpec node = GetParam().node;
  PodSpec pod = GetParam().pod;
  node.name = "a";
  pod.name = "web";
  cluster.AddNode(node);
  cluster.AddPod({.name = "there",
                  .spec = R"({"containers":[{"name":"p","ports":[
      {"containerPort":80,"hostPort":80,"hostIP":"10.0.0.1"}]}]})",
                  .node = "a"});
  cluster.AddPod(pod);
  EXPECT_EQ(cluster.NodeOf("web"), GetParam().why.empty() ? "a" : "");
  EXPECT_EQ(cluster.Why("web"), GetParam().why);
  EXPECT_EQ(cluster.Told("FailedScheduling", "web"), GetParam().why.empty() ? 0 : 1);
}

std::string One(std::string_view reasons) {
  return fmt::format("0/1 nodes are available: {}.{}", reasons, kNotHelpful);
}
std::string OneFull(std::string_view reasons) {
  return fmt::format(
      "0/1 nodes are available: {}. preemption: 0/1 nodes are available: 1 No preemption victims "
      "found for incoming pod.",
      reasons);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Fit,
    ::testing::Values(
        FitCase{"gpu", {.gpus = 1}, {.gpus = 1}, ""},
        FitCase{"too_many_gpus", {.gpus = 1}, {.gpus = 2}, One("1 Insufficient nvidia.com/gpu")},
        FitCase{"several_reasons",
                {.cpu = "1"},
                {.gpus = 1, .cpu = "2"},
                One("1 Insufficient cpu, 1 Insufficient nvidia.com/gpu")},
        FitCase{"no_place", {.pods = 1}, {}, OneFull("1 Too many pods")},
        FitCase{"cordoned",
                {.spec = R"({"unschedulable":true})"},
                {},
                One("1 node(s) were unschedulable")},
        FitCase{"cordoned_but_tolerated",
                {.spec = R"({"unschedulable":true})"},
                {.spec = R"({"tolerations":[{"key":"node.kubernetes.io/unschedulable",
                         "operator":"Exists"}]})"},
                ""},
        FitCase{"tainted",
                {.spec = R"({"taints":[{"key":"gpu","value":"x","effect":"NoSchedule"}]})"},
                {},
                One("1 node(s) had untolerated taint(s)")},
        FitCase{"taint_tolerated",
                {.spec = R"({"taints":[{"key":"gpu","value":"x","effect":"NoSchedule"}]})"},
                {.spec = R"({"tolerations":[{"key":"gpu","value":"x"}]})"},
                ""},
        FitCase{"soft_taint",
                {.spec = R"({"taints":[{"key":"gpu","effect":"PreferNoSchedule"}]})"},
                {},
                ""},
        FitCase{"node_selector",
                {.labels = R"({"gpu":"t4"})"},
                {.spec = R"({"nodeSelector":{"gpu":"h100"}})"},
                One("1 node(s) didn't match Pod's node affinity/selector")},
        FitCase{"affinity_gt",
                {.labels = R"({"memory":"80"})"},
                {.spec = R"({"affinity":{"nodeAffinity":{
                   "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                   {"matchExpressions":[{"key":"memory","operator":"Gt","values":["79"]}]}]}}}})"},
                ""},
        FitCase{"named_other_node",
                {},
                {.spec = R"({"affinity":{"nodeAffinity":{
                   "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                   {"matchFields":[{"key":"metadata.name","operator":"In","values":["b"]}]}]}}}})"},
                One("1 node(s) didn't satisfy plugin(s) [NodeAffinity]")},
        FitCase{"names_conflict",
                {},
                {.spec = R"({"affinity":{"nodeAffinity":{
                   "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                   {"matchFields":[{"key":"metadata.name","operator":"In","values":["a"]},
                                   {"key":"metadata.name","operator":"In","values":["b"]}]}]}}}})"},
                One("pod affinity terms conflict")},
        FitCase{"port_taken",
                {},
                {.spec = R"({"containers":[{"name":"p","ports":[
                   {"containerPort":1,"hostPort":80}]}]})"},
                OneFull("1 node(s) didn't have free ports for the requested pod ports")},
        FitCase{"port_of_another_address",
                {},
                {.spec = R"({"containers":[{"name":"p","ports":[
                   {"containerPort":1,"hostPort":80,"hostIP":"10.0.0.2"}]}]})"},
                ""}),
    [](const auto& info) { return info.param.name; });

TEST(Scheduler, NoNodes) {
  Cluster cluster;
  cluster.AddPod({.name = "web"});
  EXPECT_EQ(cluster.Why("web"), "no nodes available to schedule pods");
  cluster.AddNode({.name = "a"});
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

TEST(Scheduler, CountsAreSortedAsText) {
  Cluster cluster;
  for (int i = 0; i < 2; ++i)
    cluster.AddNode({.name = fmt::format("t{}", i), .spec = R"({"taints":[
      {"key":"x","effect":"NoSchedule"}]})"});
  for (int i = 0; i < 10; ++i) cluster.AddNode({.name = fmt::format("n{}", i)});
  cluster.AddPod({.name = "web", .gpus = 1});
  EXPECT_EQ(cluster.Why("web"),
            "0/12 nodes are available: 10 Insufficient nvidia.com/gpu, 2 node(s) had untolerated "
            "taint(s). preemption: 0/12 nodes are available: 12 Preemption is not helpful for "
            "scheduling.");
}

TEST(Scheduler, NinePodsOnEightGpus) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 8, .cpu = "64"});
  for (int i = 0; i < 9; ++i) cluster.AddPod({.name = fmt::format("p{}", i), .gpus = 1});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(cluster.NodeOf(fmt::format("p{}", i)), "a");
  EXPECT_EQ(cluster.NodeOf("p8"), "");
  EXPECT_EQ(cluster.Why("p8"), OneFull("1 Insufficient nvidia.com/gpu"));
  cluster.RemovePod("p3");
  EXPECT_EQ(cluster.NodeOf("p8"), "a");
}

// A Pod that has ended holds nothing.
TEST(Scheduler, EndedPodsLeaveTheirGpus) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "first", .gpus = 1});
  cluster.AddPod({.name = "second", .gpus = 1});
  EXPECT_EQ(cluster.NodeOf("second"), "");
  cluster.ChangePod("first", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(cluster.NodeOf("second"), "a");
}

// A container that is to shrink has what it was given until the kubelet takes it away.
TEST(Scheduler, AResizeUnderWayCountsWithTheLarger) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .cpu = "8"});
  cluster.AddPod({.name = "shrinks", .cpu = "1", .node = "a"});
  cluster.ChangePod("shrinks", R"({"status":{"containerStatuses":[{"name":"c",
      "allocatedResources":{"cpu":"6"},"resources":{"requests":{"cpu":"6"}}}]}})");
  cluster.AddPod({.name = "web", .cpu = "4"});
  EXPECT_EQ(cluster.Why("web"), OneFull("1 Insufficient cpu"));
  cluster.ChangePod("shrinks", R"({"status":{"containerStatuses":[{"name":"c",
      "allocatedResources":{"cpu":"1"},"resources":{"requests":{"cpu":"1"}}}]}})");
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

TEST(Scheduler, HigherPriorityGoesFirstThenAge) {
  Cluster cluster(false);
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "low", .gpus = 1, .priority = 1});
  cluster.AddPod({.name = "high", .gpus = 1, .priority = 7});
  cluster.AddPod({.name = "high-later", .gpus = 1, .priority = 7});
  cluster.Start();
  cluster.Settle();
  EXPECT_EQ(cluster.NodesOf({"low", "high", "high-later"}),
            (std::vector<std::string>{"", "a", ""}));
  cluster.RemovePod("high");
  EXPECT_EQ(cluster.NodesOf({"low", "high-later"}), (std::vector<std::string>{"", "a"}));
}

// ---- scores ----

struct ScoreCase {
  std::string name;
  std::vector<NodeSpec> nodes;
  PodSpec pod;
  std::string chosen;
};
class Score : public ::testing::TestWithParam<ScoreCase> {};

TEST_P(Score, Chooses) {
  Cluster cluster;
  for (const NodeSpec& node : GetParam().nodes) cluster.AddNode(node);
  for (int i = 0; i < 8; ++i) {
    PodSpec pod = GetParam().pod;
    pod.name = "web";
    cluster.AddPod(pod);
    EXPECT_EQ(cluster.NodeOf("web"), GetParam().chosen);
    cluster.RemovePod("web");
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Score,
    ::testing::Values(
        ScoreCase{"the_emptier_one",
                  {{.name = "small", .cpu = "4", .memory = "16Gi"},
                   {.name = "large", .cpu = "16", .memory = "64Gi"}},
                  {.cpu = "2"},
                  "large"},
        ScoreCase{"without_soft_taints",
                  {{.name = "a", .spec = R"({"taints":[{"key":"x","effect":"PreferNoSchedule"}]})"},
                   {.name = "b"}},
                  {},
                  "b"},
        ScoreCase{"preferred_node_affinity",
                  {{.name = "a"}, {.name = "b", .labels = R"({"gpu":"h100"})"}},
                  {.spec = R"({"affinity":{"nodeAffinity":{
                     "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"preference":
                     {"matchExpressions":[{"key":"gpu","operator":"In","values":["h100"]}]}}]}}})"},
                  "b"}),
    [](const auto& info) { return info.param.name; });

// ---- waiting and waking ----

TEST(Scheduler, CordonAndUncordon) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .spec = R"({"unschedulable":true})"});
  cluster.AddPod({.name = "web"});
  EXPECT_EQ(cluster.NodeOf("web"), "");
  cluster.AddNode({.name = "a"});
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

TEST(Scheduler, EventsThatCannotHelpWakeNobody) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "web", .spec = R"({"nodeSelector":{"gpu":"h100"}})"});
  cluster.AddPod({.name = "other"});
  cluster.Advance(1s);
  cluster.RemovePod("other");                 // room is not what it lacks
  cluster.AddNode({.name = "b"});             // another node without the label
  cluster.AddNode({.name = "a", .gpus = 4});  // more of what it does not want
  EXPECT_EQ(cluster.Tries("web"), 1);
  cluster.AddNode({.name = "b", .labels = R"({"gpu":"h100"})"});
  EXPECT_EQ(cluster.NodeOf("web"), "b");
}

TEST(Scheduler, TriedAgainAfterFiveMinutesAtTheLatest) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "web", .gpus = 1});
  EXPECT_EQ(cluster.Tries("web"), 1);
  cluster.Advance(299s);
  EXPECT_EQ(cluster.Tries("web"), 1);
  cluster.Advance(2s);
  EXPECT_EQ(cluster.Tries("web"), 2);
}

TEST(Scheduler, ItsOwnStatusDoesNotWakeAPodItsOwnSpecDoes) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .spec = R"({"taints":[{"key":"x","effect":"NoSchedule"}]})"});
  cluster.AddPod({.name = "web"});
  cluster.Advance(60s);
  EXPECT_EQ(cluster.Tries("web"), 1);
  cluster.ChangePod("web", R"({"spec":{"tolerations":[{"operator":"Exists"}]}})");
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

TEST(Scheduler, GatedPodsWaitOutside) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "web", .spec = R"({"schedulingGates":[{"name":"quota"}]})"});
  EXPECT_EQ(cluster.NodeOf("web"), "");
  EXPECT_EQ(cluster.Tries("web"), 0);
  cluster.ChangePod("web", R"({"spec":{"schedulingGates":null}})");
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

TEST(Scheduler, AFailedBindingIsTriedAgainAfterItsBackoff) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.api.binding_error = "the store is full";
  cluster.AddPod({.name = "web", .gpus = 1});
  EXPECT_EQ(cluster.api.events.back(),
            "Warning FailedScheduling web: running Bind plugin \"DefaultBinder\": the store is "
            "full");
  cluster.AddPod({.name = "quick", .gpus = 1});  // the card is free meanwhile
  EXPECT_EQ(cluster.NodeOf("quick"), "a");
  cluster.RemovePod("quick");
  cluster.Advance(999ms);
  EXPECT_EQ(cluster.NodeOf("web"), "");
  cluster.Advance(1ms);
  EXPECT_EQ(cluster.NodeOf("web"), "a");
}

// ---- nodes that come and go ----

TEST(Scheduler, ADeletedNodeCountsNoMore) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddNode({.name = "b"});
  cluster.AddPod({.name = "old", .gpus = 1});
  EXPECT_EQ(cluster.NodeOf("old"), "a");
  cluster.RemoveNode("a");  // its Pod stays for a while
  cluster.AddPod({.name = "new", .gpus = 1, .priority = 5});
  EXPECT_EQ(cluster.Why("new"), One("1 Insufficient nvidia.com/gpu"));
  EXPECT_TRUE(cluster.Pod("old"));
}

TEST(Scheduler, ANodeThatComesBackFindsItsPods) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "old", .gpus = 1});
  cluster.RemoveNode("a");
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "new", .gpus = 1});
  EXPECT_EQ(cluster.Why("new"), OneFull("1 Insufficient nvidia.com/gpu"));
  cluster.RemovePod("old");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(Scheduler, APodMayBeKnownBeforeItsNode) {
  Cluster cluster;
  cluster.AddPod({.name = "early", .gpus = 1, .node = "a"});
  cluster.AddPod({.name = "web", .gpus = 1});
  EXPECT_EQ(cluster.Why("web"), "no nodes available to schedule pods");
  cluster.AddNode({.name = "a", .gpus = 1});
  EXPECT_EQ(cluster.NodeOf("web"), "");
}

// ---- preemption ----

TEST(Preemption, TheLesserPodGoesAndIsTold) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "low", .gpus = 1});
  cluster.api.victims_linger = true;
  cluster.AddPod({.name = "high", .gpus = 1, .priority = 10});
  const api::Object low = cluster.Pod("low");
  const api::Value condition = low["status"]["conditions"].at(0);
  EXPECT_EQ(condition["type"].AsString(), "DisruptionTarget");
  EXPECT_EQ(condition["reason"].AsString(), "PreemptionByScheduler");
  EXPECT_EQ(condition["message"].AsString(),
            "default-scheduler: preempting to accommodate a higher priority pod");
  EXPECT_TRUE(low["metadata"]["deletionTimestamp"]);
  const api::Object high = cluster.Pod("high");
  EXPECT_EQ(high["status"]["nominatedNodeName"].AsString(), "a");
  EXPECT_EQ(cluster.Why("high"), "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
  EXPECT_EQ(cluster.api.events.back(),
            fmt::format("Normal Preempted low: Preempted by pod {} on node a", high.uid()));
}

// The victims of one Pod end one after the other, and nobody lesser takes the room between.
TEST(Preemption, TheRoomIsKept) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 2});
  cluster.AddPod({.name = "low1", .gpus = 1});
  cluster.AddPod({.name = "low2", .gpus = 1});
  cluster.api.victims_linger = true;
  cluster.AddPod({.name = "high", .gpus = 2, .priority = 10});
  cluster.RemovePod("low1");
  cluster.AddPod({.name = "lesser", .gpus = 1, .priority = 5});
  cluster.AddPod({.name = "greater", .gpus = 1, .priority = 20});
  EXPECT_EQ(cluster.NodesOf({"high", "lesser", "greater"}),
            (std::vector<std::string>{"", "", "a"}));
  cluster.RemovePod("greater");
  cluster.RemovePod("low2");
  EXPECT_EQ(cluster.NodesOf({"high", "lesser"}), (std::vector<std::string>{"a", ""}));
}

// What was kept for a Pod is free when the Pod goes, or when the API says that it is not kept.
TEST(Preemption, RoomThatIsNoLongerKeptIsTaken) {
  for (const bool deleted : {true, false}) {
    Cluster cluster;
    cluster.AddNode({.name = "a", .gpus = 2});
    cluster.AddPod({.name = "low1", .gpus = 1});
    cluster.AddPod({.name = "low2", .gpus = 1});
    cluster.api.victims_linger = true;
    cluster.AddPod({.name = "high", .gpus = 2, .priority = 10});
    cluster.RemovePod("low1");
    cluster.AddPod({.name = "lesser", .gpus = 1, .priority = 5});
    cluster.AddPod({.name = "greater", .gpus = 3, .priority = 20});
    ASSERT_EQ(cluster.NodeOf("lesser"), "");
    const int tries = cluster.Tries("greater");
    if (deleted) {
      cluster.RemovePod("high");
    } else {
      cluster.ChangePod("high", R"({"status":{"nominatedNodeName":null}})");
    }
    EXPECT_EQ(cluster.NodeOf("lesser"), "a") << deleted;
    EXPECT_EQ(cluster.Tries("greater"), tries);
  }
}

TEST(Preemption, SaysThatItWaitsForTheVictim) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "low", .gpus = 1});
  cluster.api.victims_linger = true;
  cluster.AddPod({.name = "high", .gpus = 1, .priority = 10});
  cluster.Advance(301s);
  EXPECT_EQ(cluster.Why("high"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: not eligible due "
            "to a terminating pod on the nominated node.");
  EXPECT_EQ(cluster.Pod("high")["status"]["nominatedNodeName"].AsString(), "a");
}

TEST(Preemption, NeverMeansNever) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 1});
  cluster.AddPod({.name = "low", .gpus = 1});
  cluster.AddPod(
      {.name = "high", .gpus = 1, .priority = 10, .spec = R"({"preemptionPolicy":"Never"})"});
  EXPECT_EQ(cluster.Why("high"),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: not eligible due "
            "to preemptionPolicy=Never.");
  EXPECT_EQ(cluster.NodeOf("low"), "a");
}

// Budgets stand above priorities, but do not keep a Pod waiting where nothing else is left.
TEST(Preemption, BudgetsAreSparedWhereThatIsPossible) {
  const auto budget = [](int allowed, std::string_view more = "") {
    return fmt::format(R"({{"metadata":{{"name":"b","namespace":"default"}},
        "spec":{{"selector":{{"matchLabels":{{"app":"db"}}}}}},
        "status":{{"disruptionsAllowed":{}{}}}}})",
                       allowed, more);
  };
  const struct {
    std::string budget;
    std::string gone;
  } cases[] = {
      {budget(0), "web"},
      {budget(1), "db"},
      {budget(0, R"(,"disruptedPods":{"db":"2026-01-01T00:00:00Z"})"), "db"},
  };
  for (const auto& c : cases) {
    Cluster cluster;
    cluster.AddNode({.name = "a", .gpus = 1});
    cluster.AddNode({.name = "b", .gpus = 1});
    cluster.AddPod({.name = "db", .gpus = 1, .labels = R"({"app":"db"})", .node = "a"});
    cluster.AddPod({.name = "web", .gpus = 1, .priority = 5, .node = "b"});
    cluster.Add("poddisruptionbudgets", c.budget);
    cluster.AddPod({.name = "high", .gpus = 1, .priority = 10});
    EXPECT_FALSE(cluster.api.Find("pods", {"default", c.gone})) << c.budget;
    cluster.AddPod({.name = "high2", .gpus = 1, .priority = 10});
    EXPECT_NE(cluster.NodeOf("high2"), "");
  }
}

TEST(Preemption, SoManyNodesAreEnough) {
  const std::pair<size_t, size_t> cases[] = {{0, 0},     {7, 7},      {100, 100},  {101, 100},
                                             {999, 100}, {1000, 100}, {1020, 102}, {5000, 500}};
  for (const auto& [nodes, wanted] : cases) EXPECT_EQ(CandidatesWanted(nodes), wanted) << nodes;
}

// A large cluster is not searched to its end, so that the cheapest victims may be missed; but it is
// as long as all that was found costs a budget.
TEST(Preemption, LooksNoLongerThanItMust) {
  Cluster cluster;
  const auto fill = [&](std::string_view labels) {
    for (int i = 0; i < 150; ++i) {
      const std::string name = fmt::format("{:03}", i);
      cluster.AddNode({.name = name, .gpus = 1});
      cluster.AddPod({.name = name,
                      .gpus = 1,
                      .priority = i,
                      .labels = std::string(i == 149 ? "{}" : labels),
                      .node = name});
    }
  };
  const auto gone_for_five = [&](const std::string& preemptor) {
    std::set<std::string> gone;
    for (int i = 0; i < 5; ++i)
      cluster.AddPod({.name = fmt::format("{}{}", preemptor, i), .gpus = 1, .priority = 1000});
    for (int i = 0; i < 150; ++i) {
      const std::string name = fmt::format("{:03}", i);
      if (!cluster.api.Find("pods", {"default", name})) gone.insert(name);
    }
    return gone;
  };
  fill("{}");
  const std::set<std::string> gone = gone_for_five("first");
  EXPECT_EQ(gone.size(), 5U);
  EXPECT_NE(gone, (std::set<std::string>{"000", "001", "002", "003", "004"}));
  for (int i = 0; i < 5; ++i) cluster.RemovePod(fmt::format("first{}", i));
  fill(R"({"app":"db"})");
  cluster.Add("poddisruptionbudgets", R"({"metadata":{"name":"b","namespace":"default"},
      "spec":{"selector":{"matchLabels":{"app":"db"}}},"status":{"disruptionsAllowed":0}})");
  cluster.AddPod({.name = "last", .gpus = 1, .priority = 1000});
  EXPECT_EQ(cluster.NodeOf("last"), "149");
}

// Where even all victims together make too little room, the filter's own words are counted.
TEST(Preemption, SaysNodeByNodeWhyNot) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 2});
  cluster.AddNode({.name = "b", .gpus = 2});
  cluster.AddNode({.name = "c"});
  cluster.AddPod({.name = "peer", .gpus = 2, .priority = 10, .node = "a"});
  cluster.AddPod({.name = "mixed-high", .gpus = 1, .priority = 10, .node = "b"});
  cluster.AddPod({.name = "mixed-low", .gpus = 1, .node = "b"});
  cluster.AddPod({.name = "web", .gpus = 2, .priority = 10});
  EXPECT_EQ(cluster.Why("web"),
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are "
            "available: 1 Insufficient nvidia.com/gpu, 1 No preemption victims found for incoming "
            "pod, 1 Preemption is not helpful for scheduling.");
}

struct VictimsCase {
  std::string name;
  std::vector<PodSpec> there;  // on nodes a and b of 2 cards
  int gpus = 0;                // that the preemptor wants
  std::set<std::string> gone;
};
class VictimsOf : public ::testing::TestWithParam<VictimsCase> {};

TEST_P(VictimsOf, AreTheLeastImportant) {
  Cluster cluster;
  cluster.AddNode({.name = "a", .gpus = 2});
  cluster.AddNode({.name = "b", .gpus = 2});
  for (const PodSpec& pod : GetParam().there) cluster.AddPod(pod);
  cluster.AddPod({.name = "high", .gpus = GetParam().gpus, .priority = 100});
  std::set<std::string> gone;
  for (const PodSpec& pod : GetParam().there)
    if (!cluster.api.Find("pods", {"default", pod.name})) gone.insert(pod.name);
  EXPECT_EQ(gone, GetParam().gone);
  EXPECT_NE(cluster.NodeOf("high"), "");
}

PodSpec On(std::string node, std::string name, int gpus, int priority) {
  return {.name = std::move(name), .gpus = gpus, .priority = priority, .node = std::move(node)};
}
INSTANTIATE_TEST_SUITE_P(
    Cases, VictimsOf,
    ::testing::Values(VictimsCase{"lowest_highest_priority",
                                  {On("a", "a1", 2, 5), On("b", "b1", 1, 4), On("b", "b2", 1, 4)},
                                  2,
                                  {"b1", "b2"}},
                      VictimsCase{"then_fewest",
                                  {On("a", "a1", 2, 5), On("b", "b1", 1, 5), On("b", "b2", 1, 4)},
                                  2,
                                  {"a1"}},
                      VictimsCase{"the_more_important_is_spared",
                                  {On("a", "a1", 1, 9), On("a", "a2", 1, 3), On("b", "b1", 2, 50)},
                                  1,
                                  {"a2"}},
                      VictimsCase{"no_more_than_needed",
                                  {On("a", "a1", 1, 1), On("a", "a2", 1, 1), On("b", "b1", 2, 100)},
                                  1,
                                  {"a2"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sextant::scheduler
