// Services, budgets and aggregated roles.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using api::Object;
using testing::Cluster;
using ::testing::ElementsAre;

constexpr Gvr kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles"};

class ServicesTest : public ::testing::Test {
 protected:
  ServicesTest() {
    cluster.AddNode("node-1");
    cluster.Create(client::kServices, R"({"metadata":{"name":"web"},"spec":{
      "selector":{"app":"web"},"clusterIP":"None","ports":[{"port":80,"targetPort":"http"}]}})");
  }
  void Pod(const std::string& name, const std::string& ip) {
    cluster.Create(client::kPods, fmt::format(R"({{"metadata":{{"name":"{}",
      "labels":{{"app":"web"}}}},"spec":{{"containers":[{{"name":"c","image":"i",
      "ports":[{{"name":"http","containerPort":8080}}]}}]}}}})",
                                              name));
    cluster.Play();
    cluster.Patch(client::kPods, {"default", name},
                  fmt::format(R"({{"status":{{"podIP":"{}","podIPs":[{{"ip":"{}"}}]}}}})", ip, ip),
                  "status");
  }
  Object Slice() {
    const auto slices = cluster.List(client::kEndpointSlices, "default");
    EXPECT_EQ(slices.size(), 1U);
    return slices.empty() ? Object() : slices[0];
  }
  Cluster cluster;
};

TEST_F(ServicesTest, SlicesFollowPods) {
  EXPECT_EQ(Slice()["endpoints"].size(), 0U);
  Pod("a", "10.0.0.1");
  Pod("b", "10.0.0.2");
  const Object slice = Slice();
  ASSERT_EQ(slice["endpoints"].size(), 2U);
  const api::Value first = slice["endpoints"].at(0);
  EXPECT_EQ(first["addresses"].at(0).AsString(), "10.0.0.1");
  EXPECT_TRUE(first["conditions"]["ready"].AsBool());
  EXPECT_EQ(first["targetRef"]["name"].AsString(), "a");
  EXPECT_EQ(first["nodeName"].AsString(), "node-1");
  EXPECT_EQ(slice["ports"].at(0)["port"].AsInt(), 8080);
  EXPECT_EQ(slice["metadata"]["labels"]["kubernetes.io/service-name"].AsString(), "web");
  cluster.Delete(client::kPods, {"default", "a"});
  EXPECT_FALSE(Slice()["endpoints"].at(0)["conditions"]["ready"].AsBool());
  EXPECT_TRUE(Slice()["endpoints"].at(0)["conditions"]["terminating"].AsBool());
  cluster.Play();
  EXPECT_EQ(Slice()["endpoints"].size(), 1U);
}

TEST_F(ServicesTest, EndpointsFollowPodsAndGoWithTheService) {
  Pod("a", "10.0.0.1");
  const Object endpoints = cluster.Get(client::kEndpoints, {"default", "web"});
  ASSERT_EQ(endpoints["subsets"].size(), 1U);
  EXPECT_EQ(endpoints["subsets"].at(0)["addresses"].at(0)["ip"].AsString(), "10.0.0.1");
  EXPECT_EQ(endpoints["subsets"].at(0)["ports"].at(0)["port"].AsInt(), 8080);
  cluster.Delete(client::kServices, {"default", "web"});
  EXPECT_FALSE(cluster.Get(client::kEndpoints, {"default", "web"}));
  EXPECT_TRUE(cluster.List(client::kEndpointSlices, "default").empty());
}

TEST(DisruptionTest, CountsWhatMayBeTakenAway) {
  Cluster cluster;
  cluster.AddNode("node-1");
  cluster.Create(client::kDeployments, R"({"metadata":{"name":"web"},"spec":{"replicas":4,
    "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  cluster.Create(client::kPodDisruptionBudgets,
                 R"({"metadata":{"name":"web"},"spec":{"maxUnavailable":"50%",
    "selector":{"matchLabels":{"app":"web"}}}})");
  cluster.Play();
  const Object budget = cluster.Get(client::kPodDisruptionBudgets, {"default", "web"});
  const api::Value status = budget["status"];
  EXPECT_EQ(status["expectedPods"].AsInt(), 4);
  EXPECT_EQ(status["currentHealthy"].AsInt(), 4);
  EXPECT_EQ(status["desiredHealthy"].AsInt(), 2);
  EXPECT_EQ(status["disruptionsAllowed"].AsInt(), 2);
  EXPECT_EQ(FindCondition(status["conditions"], "DisruptionAllowed")["reason"].AsString(),
            "SufficientPods");
}

TEST(ClusterRoleAggregationTest, RulesFollowTheRolesThatAreSelected) {
  Cluster cluster;
  cluster.Create(kClusterRoles, R"({"metadata":{"name":"all"},"aggregationRule":
    {"clusterRoleSelectors":[{"matchLabels":{"part":"yes"}}]},"rules":[]})");
  cluster.Create(kClusterRoles, R"({"metadata":{"name":"part","labels":{"part":"yes"}},
    "rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})");
  Object all = cluster.Get(kClusterRoles, {"", "all"});
  ASSERT_EQ(all["rules"].size(), 1U);
  EXPECT_EQ(all["rules"].at(0)["resources"].at(0).AsString(), "pods");
  cluster.Delete(kClusterRoles, {"", "part"});
  all = cluster.Get(kClusterRoles, {"", "all"});
  EXPECT_EQ(all["rules"].size(), 0U);
}

}  // namespace
}  // namespace sextant::controllers
