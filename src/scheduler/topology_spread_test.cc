#include <fmt/format.h>

#include "scheduler/testing.h"

namespace sextant::scheduler {
namespace {

using testing::Cluster;
using testing::NodeSpec;
using testing::PodSpec;

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kWeb = R"({"app":"web"})";

std::string Spread(std::string_view key, int skew, std::string_view when = "DoNotSchedule",
                   std::string_view more = "", std::string_view beside = "") {
  return fmt::format(R"({{"topologySpreadConstraints":[{{"maxSkew":{},"topologyKey":"{}",
      "whenUnsatisfiable":"{}","labelSelector":{{"matchLabels":{{"app":"web"}}}}{}}}]{}}})",
                     skew, key, when, more, beside);
}

NodeSpec InZone(std::string name, std::string_view zone, std::string spec = "{}") {
  return {.name = std::move(name),
          .labels = fmt::format(R"({{"{}":"{}"}})", kZone, zone),
          .spec = std::move(spec)};
}
PodSpec Web(std::string name, std::string node, std::string ns = "default") {
  return {.name = std::move(name),
          .labels = std::string(kWeb),
          .ns = std::move(ns),
          .node = std::move(node)};
}

struct SpreadCase {
  std::string name;
  std::vector<NodeSpec> nodes;
  std::vector<PodSpec> there;
  std::string spec;
  std::set<std::string> chosen;  // one of them
  std::string why;               // without the counts of preemption
};
class SpreadTo : public ::testing::TestWithParam<SpreadCase> {};

TEST_P(SpreadTo, Chooses) {
  Cluster cluster;
  for (const NodeSpec& node : GetParam().nodes) cluster.AddNode(node);
  for (const PodSpec& pod : GetParam().there) cluster.AddPod(pod);
  cluster.AddPod({.name = "new", .labels = std::string(kWeb), .spec = GetParam().spec});
  const std::string node = cluster.NodeOf("new");
  if (GetParam().chosen.empty()) {
    EXPECT_EQ(node, "");
  } else {
    EXPECT_TRUE(GetParam().chosen.contains(node)) << node;
  }
  EXPECT_EQ(cluster.Why("new").substr(0, cluster.Why("new").find(" preemption:")), GetParam().why);
}

const std::vector<NodeSpec> kZones = {InZone("a", "east"), InZone("b", "east"),
                                      InZone("c", "west")};
// Only the zone decides: "c" is far fuller than the others.
const std::vector<NodeSpec> kSmallWest = {
    InZone("a", "east"),
    InZone("b", "east"),
    {.name = "c", .cpu = "1", .memory = "1Gi", .labels = InZone("", "west").labels}};
const std::string kTaint = R"({"taints":[{"key":"x","effect":"NoSchedule"}]})";

INSTANTIATE_TEST_SUITE_P(
    Cases, SpreadTo,
    ::testing::Values(
        SpreadCase{"the_emptier_zone", kSmallWest, {Web("w1", "a")}, Spread(kZone, 1), {"c"}, ""},
        SpreadCase{
            "within_the_skew", kSmallWest, {Web("w1", "a")}, Spread(kZone, 2), {"a", "b"}, ""},
        SpreadCase{"no_node_left",
                   {InZone("a", "east"), InZone("c", "west", R"({"unschedulable":true})")},
                   {Web("w1", "a")},
                   Spread(kZone, 1),
                   {},
                   "0/2 nodes are available: 1 node(s) didn't match pod topology spread "
                   "constraints, 1 node(s) were unschedulable."},
        SpreadCase{"no_label",
                   {{.name = "a"}},
                   {},
                   Spread(kZone, 1),
                   {},
                   "0/1 nodes are available: 1 node(s) didn't match pod topology spread "
                   "constraints (missing required label)."},
        SpreadCase{"other_namespaces_do_not_count",
                   kSmallWest,
                   {Web("w1", "a", "other"), Web("w2", "b", "other")},
                   Spread(kZone, 1),
                   {"a", "b"},
                   ""},
        SpreadCase{"min_domains",
                   {InZone("a", "east")},
                   {Web("w1", "a")},
                   Spread(kZone, 1, "DoNotSchedule", R"(,"minDomains":2)"),
                   {},
                   "0/1 nodes are available: 1 node(s) didn't match pod topology spread "
                   "constraints."},
        SpreadCase{"enough_domains",
                   {InZone("a", "east")},
                   {Web("w1", "a")},
                   Spread(kZone, 1, "DoNotSchedule", R"(,"minDomains":1)"),
                   {"a"},
                   ""},
        SpreadCase{"taints_are_ignored",
                   {InZone("a", "east"), InZone("c", "west", kTaint)},
                   {Web("w1", "a")},
                   Spread(kZone, 1),
                   {},
                   "0/2 nodes are available: 1 node(s) didn't match pod topology spread "
                   "constraints, 1 node(s) had untolerated taint(s)."},
        SpreadCase{"taints_are_honored",
                   {InZone("a", "east"), InZone("c", "west", kTaint)},
                   {Web("w1", "a")},
                   Spread(kZone, 1, "DoNotSchedule", R"(,"nodeTaintsPolicy":"Honor")"),
                   {"a"},
                   ""},
        SpreadCase{"affinity_is_honored",
                   {InZone("a", "east"), InZone("c", "west")},
                   {Web("w1", "a")},
                   Spread(kZone, 1, "DoNotSchedule", "",
                          R"(,"nodeSelector":{"topology.kubernetes.io/zone":"east"})"),
                   {"a"},
                   ""},
        SpreadCase{"affinity_is_ignored",
                   {InZone("a", "east"), InZone("c", "west")},
                   {Web("w1", "a")},
                   Spread(kZone, 1, "DoNotSchedule", R"(,"nodeAffinityPolicy":"Ignore")",
                          R"(,"nodeSelector":{"topology.kubernetes.io/zone":"east"})"),
                   {},
                   "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
                   "1 node(s) didn't match pod topology spread constraints."},
        SpreadCase{"soft_by_zone",
                   kZones,
                   {Web("w1", "a"), Web("w2", "b")},
                   Spread(kZone, 1, "ScheduleAnyway"),
                   {"c"},
                   ""},
        SpreadCase{"soft_by_node",
                   kZones,
                   {Web("w1", "a"), Web("w2", "c")},
                   Spread("kubernetes.io/hostname", 1, "ScheduleAnyway"),
                   {"b"},
                   ""},
        SpreadCase{"soft_passes_over_unlabelled_nodes",
                   {InZone("a", "east"), {.name = "d"}},
                   {},
                   Spread(kZone, 1, "ScheduleAnyway"),
                   {"a"},
                   ""}),
    [](const auto& info) { return info.param.name; });

// ---- defaults ----

struct DefaultsCase {
  std::string name;
  std::string resource;
  std::string object;
  std::string owner = "{}";
};
class Defaults : public ::testing::TestWithParam<DefaultsCase> {};

// Pods of one Service or one controller go where fewer of them are, although nobody said so.
TEST_P(Defaults, SpreadOverNodes) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddNode({.name = "b", .cpu = "1", .memory = "4Gi"});
  cluster.Add(GetParam().resource, GetParam().object);
  for (const char* there : {"w1", "w2", "w3", "w4"}) cluster.AddPod(Web(there, "a"));
  cluster.AddPod({.name = "stranger"});
  EXPECT_EQ(cluster.NodeOf("stranger"), "a");
  cluster.AddPod({.name = "new", .labels = std::string(kWeb), .owner = GetParam().owner});
  EXPECT_EQ(cluster.NodeOf("new"), "b");
}

constexpr const char* kSet =
    R"({"metadata":{"name":"web","namespace":"default"},
        "spec":{"selector":{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]}}})";
INSTANTIATE_TEST_SUITE_P(
    Cases, Defaults,
    ::testing::Values(DefaultsCase{"service", "services",
                                   R"({"metadata":{"name":"web","namespace":"default"},
                         "spec":{"selector":{"app":"web"}}})"},
                      DefaultsCase{"replica_set", "replicasets", kSet,
                                   R"({"kind":"ReplicaSet","name":"web","controller":true})"},
                      DefaultsCase{"stateful_set", "statefulsets", kSet,
                                   R"({"kind":"StatefulSet","name":"web","controller":true})"},
                      DefaultsCase{
                          "replication_controller", "replicationcontrollers",
                          R"({"metadata":{"name":"web","namespace":"default"},
                         "spec":{"selector":{"app":"web"}}})",
                          R"({"kind":"ReplicationController","name":"web","controller":true})"}),
    [](const auto& info) { return info.param.name; });

// ---- waking ----

// East holds one, the only node of west is not to be used: the next one waits.
void FillEast(Cluster& cluster) {
  cluster.AddNode(InZone("a", "east"));
  cluster.AddNode(InZone("c", "west", R"({"unschedulable":true})"));
  cluster.AddPod(Web("w1", "a"));
  cluster.AddPod({.name = "new", .labels = std::string(kWeb), .spec = Spread(kZone, 1)});
  ASSERT_EQ(cluster.NodeOf("new"), "");
}

TEST(SpreadHints, AMatchingPodLeaves) {
  Cluster cluster;
  FillEast(cluster);
  cluster.AddPod({.name = "other", .node = "a"});
  cluster.RemovePod("other");
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.RemovePod("w1");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(SpreadHints, AMatchingPodComesElsewhere) {
  Cluster cluster;
  FillEast(cluster);
  cluster.AddPod({.name = "other", .node = "c"});
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.AddPod(Web("w2", "c"));
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(SpreadHints, APodNoLongerMatches) {
  Cluster cluster;
  FillEast(cluster);
  cluster.ChangePod("w1", R"({"metadata":{"labels":{"app":"db"}}})");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(SpreadHints, AnEmptyDomainGoes) {
  Cluster cluster;
  FillEast(cluster);
  cluster.RemoveNode("c");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(SpreadHints, ANodeGetsTheLabel) {
  Cluster cluster;
  cluster.AddNode(InZone("a", "east"));
  cluster.AddPod(Web("w1", "a"));
  cluster.AddPod({.name = "new",
                  .labels = std::string(kWeb),
                  .spec = Spread(kZone, 1, "DoNotSchedule", R"(,"minDomains":2)")});
  cluster.AddNode({.name = "x"});
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.AddNode(InZone("x", "west"));
  EXPECT_EQ(cluster.NodeOf("new"), "x");
}

TEST(SpreadPreemption, AMatchingPodOfLowerPriorityGoes) {
  Cluster cluster;
  FillEast(cluster);
  cluster.RemovePod("new");
  cluster.AddPod({.name = "bystander", .node = "a"});
  cluster.AddPod(
      {.name = "high", .priority = 5, .labels = std::string(kWeb), .spec = Spread(kZone, 1)});
  EXPECT_EQ(cluster.NodeOf("high"), "a");
  EXPECT_FALSE(cluster.api.Find("pods", {"default", "w1"}));
  EXPECT_EQ(cluster.NodeOf("bystander"), "a");
}

}  // namespace
}  // namespace sextant::scheduler
