#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ObjectName kDb{"default", "db"};

class StatefulSetTest : public ::testing::Test {
 protected:
  StatefulSetTest() { cluster.AddNode("node-1"); }

  void Make(int replicas, std::string_view more = "") {
    cluster.Create(client::kStatefulSets, fmt::format(R"({{"metadata":{{"name":"db"}},
      "spec":{{"replicas":{},{}"serviceName":"db","selector":{{"matchLabels":{{"app":"db"}}}},
      "template":{{"metadata":{{"labels":{{"app":"db"}}}},
      "spec":{{"containers":[{{"name":"c","image":"db:1"}}]}}}}}}}})",
                                                      replicas, more));
  }
  void SetImage(std::string_view image) {
    cluster.Patch(client::kStatefulSets, kDb,
                  fmt::format(R"({{"spec":{{"template":{{"spec":{{"containers":)"
                              R"([{{"name":"c","image":"{}"}}]}}}}}}}})",
                              image));
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Object& pod : cluster.Pods("db-"))
      names.push_back(
          fmt::format("{} {}", pod.name(), pod["spec"]["containers"].at(0)["image"].AsString()));
    return names;
  }
  Object Get() { return cluster.Get(client::kStatefulSets, kDb); }
  Cluster cluster;
};

TEST_F(StatefulSetTest, ComesUpOneByOne) {
  Make(3);
  EXPECT_THAT(Names(), ElementsAre("db-0 db:1"));  // not ready yet
  cluster.Play();
  EXPECT_THAT(Names(), ElementsAre("db-0 db:1", "db-1 db:1", "db-2 db:1"));
  const Object set = Get();
  EXPECT_EQ(set["status"]["readyReplicas"].AsInt(), 3);
  EXPECT_EQ(set["status"]["currentReplicas"].AsInt(), 3);
  EXPECT_EQ(set["status"]["updatedReplicas"].AsInt(), 3);
  EXPECT_EQ(set["status"]["currentRevision"].AsString(),
            set["status"]["updateRevision"].AsString());
  const Object pod = cluster.Get(client::kPods, {"default", "db-1"});
  EXPECT_EQ(pod["spec"]["hostname"].AsString(), "db-1");
  EXPECT_EQ(pod["spec"]["subdomain"].AsString(), "db");
  EXPECT_EQ(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"].AsString(), "1");
  EXPECT_EQ(pod["metadata"]["labels"]["controller-revision-hash"].AsString(),
            set["status"]["updateRevision"].AsString());
  EXPECT_THAT(cluster.Events("db"),
              Contains("SuccessfulCreate: create Pod db-2 in StatefulSet db successful"));
}

TEST_F(StatefulSetTest, ParallelComesUpAtOnce) {
  Make(3, R"("podManagementPolicy":"Parallel",)");
  EXPECT_EQ(Names().size(), 3U);
}

TEST_F(StatefulSetTest, ScalesDownFromTheTopAndKeepsNames) {
  Make(3);
  cluster.Play();
  cluster.Patch(client::kStatefulSets, kDb, R"({"spec":{"replicas":1}})");
  cluster.Play();
  EXPECT_THAT(Names(), ElementsAre("db-0 db:1"));
  cluster.Delete(client::kPods, {"default", "db-0"});
  cluster.Play();
  EXPECT_THAT(Names(), ElementsAre("db-0 db:1"));
}

TEST_F(StatefulSetTest, UpdatesFromTheTopDownToThePartition) {
  Make(3, R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}},)");
  cluster.Play();
  SetImage("db:2");
  cluster.Play();
  EXPECT_THAT(Names(), ElementsAre("db-0 db:1", "db-1 db:2", "db-2 db:2"));
  EXPECT_EQ(Get()["status"]["updatedReplicas"].AsInt(), 2);
  // A Pod below the partition comes back as it was.
  cluster.Delete(client::kPods, {"default", "db-0"});
  cluster.Play();
  EXPECT_THAT(Names(), Contains("db-0 db:1"));
  cluster.Patch(client::kStatefulSets, kDb,
                R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}})");
  cluster.Play();
  EXPECT_THAT(Names(), ElementsAre("db-0 db:2", "db-1 db:2", "db-2 db:2"));
}

TEST_F(StatefulSetTest, MakesClaimsForItsPods) {
  Make(1, R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":)"
          R"(["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}],)");
  const Gvr claims{"", "v1", "persistentvolumeclaims"};
  EXPECT_TRUE(cluster.Get(claims, {"default", "data-db-0"}));
  const Object pod = cluster.Get(client::kPods, {"default", "db-0"});
  EXPECT_EQ(pod["spec"]["volumes"].at(0)["persistentVolumeClaim"]["claimName"].AsString(),
            "data-db-0");
}

}  // namespace
}  // namespace sextant::controllers
