// Namespaces and nodes: what stands in every namespace, what happens to silent nodes and their
// Pods.
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Taints(Cluster& cluster, const std::string& node) {
  std::vector<std::string> taints;
  const Object object = cluster.Get(client::kNodes, {"", node});
  for (api::Value taint : object["spec"]["taints"].items()) {
    taints.push_back(fmt::format("{}:{}", taint["key"].AsString(), taint["effect"].AsString()));
  }
  return taints;
}

TEST(NamespaceObjectsTest, EveryNamespaceHasItsAccountAndItsCa) {
  Cluster cluster;
  cluster.Create(client::kNamespaces, R"({"metadata":{"name":"team"}})");
  for (const char* ns : {"default", "kube-system", "team"}) {
    EXPECT_TRUE(cluster.Get(client::kServiceAccounts, {ns, "default"})) << ns;
    const Object ca = cluster.Get(client::kConfigMaps, {ns, "kube-root-ca.crt"});
    EXPECT_EQ(ca["data"]["ca.crt"].AsString(), "CA") << ns;
  }
}

TEST(NamespaceObjectsTest, WhatIsDeletedOrChangedComesBack) {
  Cluster cluster;
  cluster.Delete(client::kServiceAccounts, {"default", "default"});
  cluster.Patch(client::kConfigMaps, {"default", "kube-root-ca.crt"}, R"({"data":{"ca.crt":"x"}})");
  EXPECT_TRUE(cluster.Get(client::kServiceAccounts, {"default", "default"}));
  EXPECT_EQ(cluster.Get(client::kConfigMaps, {"default", "kube-root-ca.crt"})["data"]["ca.crt"]
                .AsString(),
            "CA");
}

TEST(NodeLifecycleTest, ConditionsAndCordonShowAsTaints) {
  Cluster cluster;
  cluster.AddNode("node-1");
  EXPECT_THAT(Taints(cluster, "node-1"), IsEmpty());
  cluster.Patch(client::kNodes, {"", "node-1"}, R"({"spec":{"unschedulable":true}})");
  EXPECT_THAT(Taints(cluster, "node-1"),
              ElementsAre("node.kubernetes.io/unschedulable:NoSchedule"));
  cluster.Patch(client::kNodes, {"", "node-1"}, R"({"spec":{"unschedulable":null}})");
  cluster.Patch(client::kNodes, {"", "node-1"},
                R"({"status":{"conditions":[{"type":"Ready","status":"True"},)"
                R"({"type":"MemoryPressure","status":"True"}]}})",
                "status");
  EXPECT_THAT(Taints(cluster, "node-1"),
              ElementsAre("node.kubernetes.io/memory-pressure:NoSchedule"));
}

TEST(NodeLifecycleTest, ASilentNodeBecomesUnknownAndItsPodsGo) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.AddNode("node-2");
  cluster.Create(client::kPods, R"({"metadata":{"name":"web"},"spec":{"containers":[)"
                                R"({"name":"c","image":"i"}],"tolerations":[)"
                                R"({"key":"node.kubernetes.io/unreachable","operator":"Exists",)"
                                R"("effect":"NoExecute","tolerationSeconds":300}]}})");
  cluster.Play();
  for (int i = 0; i < 12; ++i) {
    cluster.Advance(5s);
    cluster.RenewLease("node-2");
  }
  const Object node = cluster.Get(client::kNodes, {"", "node-1"});
  const api::Value ready = FindCondition(node["status"]["conditions"], "Ready");
  EXPECT_EQ(ready["status"].AsString(), "Unknown");
  EXPECT_EQ(ready["reason"].AsString(), "NodeStatusUnknown");
  EXPECT_EQ(ready["message"].AsString(), "Kubelet stopped posting node status.");
  EXPECT_THAT(Taints(cluster, "node-1"),
              UnorderedElementsAre("node.kubernetes.io/unreachable:NoSchedule",
                                   "node.kubernetes.io/unreachable:NoExecute"));
  EXPECT_THAT(Taints(cluster, "node-2"), IsEmpty());
  EXPECT_THAT(cluster.Events("node-1"),
              Contains("NodeNotReady: Node node-1 status is now: NodeNotReady"));
  Object web = cluster.Get(client::kPods, {"default", "web"});
  EXPECT_FALSE(IsPodReady(web));
  EXPECT_FALSE(IsDeleting(web));
  for (int i = 0; i < 62; ++i) {
    cluster.Advance(5s);
    cluster.RenewLease("node-2");
  }
  web = cluster.Get(client::kPods, {"default", "web"});
  EXPECT_TRUE(IsDeleting(web));
  EXPECT_TRUE(IsConditionTrue(web["status"]["conditions"], "DisruptionTarget"));
  EXPECT_THAT(cluster.Events("web"),
              Contains("TaintManagerEviction: Marking for deletion Pod default/web"));
}

TEST(NodeLifecycleTest, ANodeThatComesBackKeepsItsPods) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.AddNode("node-2");
  cluster.Create(client::kPods, R"({"metadata":{"name":"web"},"spec":{"containers":[)"
                                R"({"name":"c","image":"i"}],"tolerations":[)"
                                R"({"key":"node.kubernetes.io/unreachable","operator":"Exists",)"
                                R"("effect":"NoExecute","tolerationSeconds":300}]}})");
  cluster.Play();
  for (int i = 0; i < 20; ++i) {
    cluster.Advance(5s);
    cluster.RenewLease("node-2");
  }
  ASSERT_EQ(Taints(cluster, "node-1").size(), 2U);
  cluster.Patch(client::kNodes, {"", "node-1"},
                R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})", "status");
  EXPECT_THAT(Taints(cluster, "node-1"), IsEmpty());
  EXPECT_THAT(cluster.Events("web"),
              Contains("TaintManagerEviction: Cancelling deletion of Pod default/web"));
  EXPECT_FALSE(IsDeleting(cluster.Get(client::kPods, {"default", "web"})));
}

TEST(NodeLifecycleTest, WhenAllNodesAreSilentNoneIsEmptied) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.AddNode("node-2");
  cluster.Advance(120s);
  EXPECT_THAT(Taints(cluster, "node-1"), ElementsAre("node.kubernetes.io/unreachable:NoSchedule"));
  EXPECT_THAT(Taints(cluster, "node-2"), ElementsAre("node.kubernetes.io/unreachable:NoSchedule"));
}

TEST(TaintEvictionTest, WhatIsNotToleratedGoesAtOnce) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.Create(client::kPods, R"({"metadata":{"name":"stays"},"spec":{"containers":[)"
                                R"({"name":"c","image":"i"}],"tolerations":[)"
                                R"({"key":"drain","operator":"Exists"}]}})");
  cluster.Create(client::kPods, R"({"metadata":{"name":"goes"},"spec":{"containers":[)"
                                R"({"name":"c","image":"i"}]}})");
  cluster.Play();
  cluster.Patch(client::kNodes, {"", "node-1"},
                R"({"spec":{"taints":[{"key":"drain","effect":"NoExecute"}]}})");
  EXPECT_FALSE(IsDeleting(cluster.Get(client::kPods, {"default", "stays"})));
  EXPECT_TRUE(IsDeleting(cluster.Get(client::kPods, {"default", "goes"})));
}

TEST(PodGcTest, PodsOfANodeThatIsGoneAreEnded) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.Create(client::kPods,
                 R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  cluster.Play();
  cluster.Delete(client::kNodes, {"", "node-1"});
  cluster.Advance(30s);
  EXPECT_TRUE(cluster.Get(client::kPods, {"default", "web"}));
  cluster.Advance(60s);
  EXPECT_FALSE(cluster.Get(client::kPods, {"default", "web"}));
}

}  // namespace
}  // namespace sextant::controllers
