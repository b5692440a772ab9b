#include <fmt/format.h>

#include "scheduler/testing.h"

namespace sextant::scheduler {
namespace {

using namespace std::chrono_literals;
using testing::Cluster;
using testing::PodSpec;

constexpr std::string_view kZone = "topology.kubernetes.io/zone";

// spec.affinity with one required term.
std::string Required(std::string_view which, std::string_view app, std::string_view key,
                     std::string_view more = "") {
  return fmt::format(R"({{"affinity":{{"{}":{{"requiredDuringSchedulingIgnoredDuringExecution":[
      {{"labelSelector":{{"matchLabels":{{"app":"{}"}}}},"topologyKey":"{}"{}}}]}}}}}})",
                     which, app, key, more);
}
std::string Near(std::string_view app, std::string_view key = kZone, std::string_view more = "") {
  return Required("podAffinity", app, key, more);
}
std::string Apart(std::string_view app, std::string_view key = kZone, std::string_view more = "") {
  return Required("podAntiAffinity", app, key, more);
}
std::string Preferred(std::string_view which, std::string_view app, int weight) {
  return fmt::format(R"({{"affinity":{{"{}":{{"preferredDuringSchedulingIgnoredDuringExecution":[
      {{"weight":{},"podAffinityTerm":{{"labelSelector":{{"matchLabels":{{"app":"{}"}}}},
        "topologyKey":"{}"}}}}]}}}}}})",
                     which, weight, app, kZone);
}
std::string App(std::string_view app) { return fmt::format(R"({{"app":"{}"}})", app); }

// Zone east: a and b; zone west: c; d has no zone.
void AddZones(Cluster& cluster) {
  const auto zone = [](std::string_view name) {
    return fmt::format(R"({{"{}":"{}"}})", kZone, name);
  };
  cluster.AddNode({.name = "a", .labels = zone("east")});
  cluster.AddNode({.name = "b", .labels = zone("east")});
  cluster.AddNode({.name = "c", .labels = zone("west")});
  cluster.AddNode({.name = "d"});
}

struct AffinityCase {
  std::string name;
  std::vector<PodSpec> there;
  PodSpec pod;
  std::set<std::string> nodes;  // one of them
  std::string why;              // where there are none: without the counts of preemption
};
class Affinity : public ::testing::TestWithParam<AffinityCase> {};

TEST_P(Affinity, Required) {
  Cluster cluster;
  AddZones(cluster);
  cluster.Add("namespaces", R"({"metadata":{"name":"default","labels":{"team":"infra"}}})");
  cluster.Add("namespaces", R"({"metadata":{"name":"lab","labels":{"team":"ml"}}})");
  for (const PodSpec& pod : GetParam().there) cluster.AddPod(pod);
  PodSpec pod = GetParam().pod;
  pod.name = "new";
  cluster.AddPod(pod);
  const std::string node = cluster.NodeOf("new");
  if (GetParam().nodes.empty()) {
    EXPECT_EQ(node, "");
  } else {
    EXPECT_TRUE(GetParam().nodes.contains(node)) << node;
  }
  EXPECT_EQ(cluster.Why("new").substr(0, cluster.Why("new").find(" preemption:")), GetParam().why);
}

PodSpec Db(std::string node, std::string ns = "default") {
  return {.name = "db", .labels = App("db"), .ns = std::move(ns), .node = std::move(node)};
}
PodSpec With(std::string spec, std::string app = "web") {
  return {.labels = App(app), .spec = std::move(spec)};
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Affinity,
    ::testing::Values(
        AffinityCase{"near", {Db("c")}, With(Near("db")), {"c"}, ""},
        AffinityCase{"near_in_the_same_zone", {Db("a")}, With(Near("db")), {"a", "b"}, ""},
        AffinityCase{"near_nobody",
                     {},
                     With(Near("db")),
                     {},
                     "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."},
        AffinityCase{"first_of_its_kind", {}, With(Near("web")), {"a", "b", "c"}, ""},
        AffinityCase{"second_of_its_kind",
                     {{.name = "first", .labels = App("web"), .node = "c"}},
                     With(Near("web")),
                     {"c"},
                     ""},
        AffinityCase{"apart", {Db("a")}, With(Apart("db")), {"c", "d"}, ""},
        AffinityCase{"apart_by_node",
                     {Db("a"),
                      {.name = "db2", .labels = App("db"), .node = "b"},
                      {.name = "db3", .labels = App("db"), .node = "c"},
                      {.name = "db4", .labels = App("db"), .node = "d"}},
                     With(Apart("db", "kubernetes.io/hostname")),
                     {},
                     "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."},
        AffinityCase{"the_others_want_to_be_apart",
                     {{.name = "shy", .spec = Apart("web"), .node = "a"}},
                     With("{}"),
                     {"c", "d"},
                     ""},
        AffinityCase{"all_the_others_do",
                     {{.name = "s1", .spec = Apart("web", "kubernetes.io/hostname"), .node = "d"},
                      {.name = "s2", .spec = Apart("web"), .node = "a"},
                      {.name = "s3", .spec = Apart("web"), .node = "c"}},
                     With("{}"),
                     {},
                     "0/4 nodes are available: 4 node(s) didn't satisfy existing pods "
                     "anti-affinity rules."},
        AffinityCase{"another_namespace_does_not_count",
                     {Db("a", "lab")},
                     With(Near("db")),
                     {},
                     "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."},
        AffinityCase{"named_namespace",
                     {Db("c", "lab")},
                     With(Near("db", kZone, R"(,"namespaces":["lab"])")),
                     {"c"},
                     ""},
        AffinityCase{
            "selected_namespace",
            {Db("c", "lab")},
            With(Near("db", kZone, R"(,"namespaceSelector":{"matchLabels":{"team":"ml"}})")),
            {"c"},
            ""},
        AffinityCase{
            "namespace_not_selected",
            {Db("c", "lab")},
            With(Near("db", kZone, R"(,"namespaceSelector":{"matchLabels":{"team":"x"}})")),
            {},
            "0/4 nodes are available: 4 node(s) didn't match pod affinity rules."},
        AffinityCase{"every_namespace",
                     {Db("c", "lab")},
                     With(Near("db", kZone, R"(,"namespaceSelector":{})")),
                     {"c"},
                     ""},
        AffinityCase{"the_others_select_namespaces",
                     {{.name = "shy",
                       .spec = Apart("web", kZone,
                                     R"(,"namespaceSelector":{"matchLabels":{"team":"infra"}})"),
                       .ns = "lab",
                       .node = "a"}},
                     With("{}"),
                     {"c", "d"},
                     ""},
        AffinityCase{"the_others_select_other_namespaces",
                     {{.name = "shy",
                       .spec = Apart("web", "nobody/has-it",
                                     R"(,"namespaceSelector":{"matchLabels":{"team":"ml"}})"),
                       .ns = "lab",
                       .node = "a"}},
                     With("{}"),
                     {"a", "b", "c", "d"},
                     ""},
        AffinityCase{
            "preferred_near", {Db("c")}, With(Preferred("podAffinity", "db", 100)), {"c"}, ""},
        AffinityCase{"preferred_apart",
                     {Db("a"),
                      {.name = "db2", .labels = App("db"), .node = "d"},
                      {.name = "x", .cpu = "4", .node = "c"}},
                     With(Preferred("podAntiAffinity", "db", 100)),
                     {"c", "d"},
                     ""},
        AffinityCase{"others_prefer_it_near",
                     {{.name = "friend", .spec = Preferred("podAffinity", "web", 50), .node = "c"}},
                     With("{}"),
                     {"c"},
                     ""},
        AffinityCase{"others_that_need_it_pull",
                     {{.name = "friend", .labels = App("web"), .spec = Near("web"), .node = "c"}},
                     With("{}"),
                     {"c"},
                     ""}),
    [](const auto& info) { return info.param.name; });

// What is woken, and what is left to sleep.
TEST(AffinityHints, AMatchingPodWakes) {
  Cluster cluster;
  AddZones(cluster);
  cluster.AddPod({.name = "new", .spec = Near("db")});
  cluster.AddPod({.name = "other", .labels = App("cache"), .node = "a"});
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.ChangePod("other", R"({"metadata":{"labels":{"tier":"1"}}})");
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.ChangePod("other", R"({"metadata":{"labels":{"app":"db"}}})");
  EXPECT_NE(cluster.NodeOf("new"), "");
}

TEST(AffinityHints, ThePodItShunsLeaves) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "db", .labels = App("db"), .node = "a"});
  cluster.AddPod({.name = "cache", .labels = App("cache"), .node = "a"});
  cluster.AddPod({.name = "new", .spec = Apart("db", "kubernetes.io/hostname")});
  cluster.RemovePod("cache");
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.RemovePod("db");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(AffinityHints, ThePodThatShunsItLeaves) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "shy", .spec = Apart("web", "kubernetes.io/hostname"), .node = "a"});
  cluster.AddPod({.name = "new", .labels = App("web")});
  EXPECT_EQ(cluster.NodeOf("new"), "");
  cluster.RemovePod("shy");
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(AffinityHints, ANodeGetsTheLabel) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "db", .labels = App("db"), .node = "a"});
  cluster.AddPod({.name = "new", .spec = Near("db", "rack")});
  cluster.AddNode({.name = "b"});
  EXPECT_EQ(cluster.Tries("new"), 1);
  cluster.AddNode({.name = "a", .labels = R"({"rack":"r1"})"});
  EXPECT_EQ(cluster.NodeOf("new"), "a");
}

TEST(AffinityHints, ANodeOutOfReachAppears) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "shy", .spec = Apart("web", "kubernetes.io/hostname"), .node = "a"});
  cluster.AddPod({.name = "new", .labels = App("web")});
  cluster.AddNode({.name = "b"});
  EXPECT_EQ(cluster.NodeOf("new"), "b");
}

// Preemption sees what the victims' going does to affinity.
TEST(AffinityPreemption, AShyPodOfLowerPriorityGoes) {
  Cluster cluster;
  cluster.AddNode({.name = "a"});
  cluster.AddPod({.name = "shy", .spec = Apart("web", "kubernetes.io/hostname"), .node = "a"});
  cluster.AddPod({.name = "bystander", .node = "a"});
  cluster.AddPod({.name = "new", .priority = 5, .labels = App("web")});
  EXPECT_EQ(cluster.NodeOf("new"), "a");
  EXPECT_EQ(cluster.NodeOf("bystander"), "a");
  EXPECT_FALSE(cluster.api.Find("pods", {"default", "shy"}));
}

}  // namespace
}  // namespace sextant::scheduler
