#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/json.h"
#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr Gvr kQuotas{"", "v1", "resourcequotas"};

class QuotaTest : public ::testing::Test {
 protected:
  QuotaTest() { cluster.AddNode("node-1"); }
  void Quota(std::string_view hard) {
    cluster.Create(kQuotas,
                   fmt::format(R"({{"metadata":{{"name":"q"}},"spec":{{"hard":{}}}}})", hard));
    cluster.Settle();
  }
  std::string Status() { return api::ToJson(cluster.Get(kQuotas, {"default", "q"})["status"]); }
  void Pod(std::string_view name) {
    cluster.Create(client::kPods,
                   fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[
                       {{"name":"c","image":"i","resources":{{"limits":{{"nvidia.com/gpu":"2"}}}}
                       }}]}}}})",
                               name));
    cluster.Settle();
  }
  Cluster cluster;
};

TEST_F(QuotaTest, CountsWhatIsThere) {
  Pod("a");
  Quota(R"({"pods":"5","requests.nvidia.com/gpu":"8","count/deployments.apps":"1"})");
  EXPECT_EQ(Status(), R"({"hard":{"count/deployments.apps":"1","pods":"5",)"
                      R"("requests.nvidia.com/gpu":"8"},"used":{"count/deployments.apps":"0",)"
                      R"("pods":"1","requests.nvidia.com/gpu":"2"}})");
  Pod("b");
  EXPECT_THAT(Status(), HasSubstr(R"("pods":"2","requests.nvidia.com/gpu":"4"}})"));
}

TEST_F(QuotaTest, WhatEndsGivesBack) {
  Quota(R"({"pods":"5","requests.nvidia.com/gpu":"8","count/pods":"9"})");
  cluster.phases["done"] = "Succeeded";
  Pod("done");
  Pod("gone");
  EXPECT_THAT(Status(), HasSubstr(R"("used":{"count/pods":"2","pods":"2",)"));
  cluster.Play();
  EXPECT_THAT(Status(), HasSubstr(R"("used":{"count/pods":"2","pods":"1",)"));
  cluster.Delete(client::kPods, {"default", "gone"});
  cluster.Play();
  EXPECT_THAT(Status(), HasSubstr(R"("used":{"count/pods":"1","pods":"0",)"));
}

TEST_F(QuotaTest, FollowsItsLimits) {
  Quota(R"({"pods":"5"})");
  cluster.Patch(kQuotas, {"default", "q"}, R"({"spec":{"hard":{"pods":"7","secrets":"3"}}})");
  cluster.Settle();
  EXPECT_EQ(Status(), R"({"hard":{"pods":"7","secrets":"3"},"used":{"pods":"0","secrets":"0"}})");
}

TEST_F(QuotaTest, WorkloadsGetAsManyPodsAsItAllows) {
  Quota(R"({"pods":"2"})");
  cluster.Create(client::kReplicaSets, R"({"metadata":{"name":"web"},"spec":{"replicas":4,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
  EXPECT_THAT(cluster.Events("web"),
              Contains(HasSubstr("is forbidden: exceeded quota: q, requested: pods=1, used: "
                                 "pods=2, limited: pods=2")));
  EXPECT_THAT(Status(), HasSubstr(R"("used":{"pods":"2"})"));
  // What is given back is used.
  cluster.Delete(client::kPods, NameOf(cluster.Pods("web-")[0]));
  cluster.Play();
  cluster.Advance(std::chrono::minutes(20));
  cluster.RenewLease("node-1");
  cluster.Play();
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
}

// Admission refuses what a quota limits and has no count of.
TEST_F(QuotaTest, CountsKindsThatAreDefinedLater) {
  constexpr Gvr kWidgets{"x.io", "v1", "widgets"};
  Quota(R"({"count/widgets.x.io":"1"})");
  EXPECT_EQ(Status(), R"({"hard":{"count/widgets.x.io":"1"}})");
  cluster.Create(client::kCustomResourceDefinitions, testing::WidgetsIn("v1"));
  cluster.Settle();
  EXPECT_EQ(Status(), R"({"hard":{"count/widgets.x.io":"1"},"used":{"count/widgets.x.io":"0"}})");
  for (int round = 0; round < 2; ++round) {  // what goes gives back
    ASSERT_TRUE(cluster.Create(kWidgets, R"({"metadata":{"name":"w"}})"));
    EXPECT_THAT(Status(), HasSubstr(R"("used":{"count/widgets.x.io":"1"})"));
    cluster.Delete(kWidgets, {"default", "w"});
    EXPECT_THAT(Status(), HasSubstr(R"("used":{"count/widgets.x.io":"0"})"));
  }
}

class StorageProtectionTest : public ::testing::Test {
 protected:
  StorageProtectionTest() { cluster.AddNode("node-1"); }
  Cluster cluster;
};

TEST_F(StorageProtectionTest, ClaimsStayWhileAPodHasThem) {
  cluster.Create(client::kPersistentVolumeClaims,
                 R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"1Gi"}}}})");
  cluster.Create(client::kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[
      {"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":
      {"claimName":"c"}}]}})");
  cluster.Play();
  cluster.Delete(client::kPersistentVolumeClaims, {"default", "c"});
  cluster.Settle();
  EXPECT_TRUE(IsDeleting(cluster.Get(client::kPersistentVolumeClaims, {"default", "c"})));
  cluster.Delete(client::kPods, {"default", "p"});
  cluster.Play();
  EXPECT_FALSE(cluster.Get(client::kPersistentVolumeClaims, {"default", "c"}));
}

TEST_F(StorageProtectionTest, VolumesStayWhileTheyAreBound) {
  cluster.Create(client::kPersistentVolumes,
                 R"({"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},
      "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}})");
  cluster.Create(client::kPersistentVolumeClaims,
                 R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],
      "storageClassName":"","volumeName":"v","resources":{"requests":{"storage":"1Gi"}}}})");
  cluster.Settle();
  ASSERT_EQ(cluster.Get(client::kPersistentVolumes, {"", "v"})["status"]["phase"].AsString(),
            "Bound");
  cluster.Delete(client::kPersistentVolumes, {"", "v"});
  cluster.Settle();
  EXPECT_TRUE(IsDeleting(cluster.Get(client::kPersistentVolumes, {"", "v"})));
  cluster.Delete(client::kPersistentVolumeClaims, {"default", "c"});
  cluster.Settle();
  EXPECT_FALSE(cluster.Get(client::kPersistentVolumes, {"", "v"}));
}

}  // namespace
}  // namespace sextant::controllers
