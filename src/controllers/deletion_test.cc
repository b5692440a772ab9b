// What goes with what: owners and dependents, namespaces and their content.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/objects.h"
#include "controllers/testing.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Object;
using testing::Cluster;
using ::testing::HasSubstr;

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() { cluster.AddNode("node-1"); }

  Object Map(std::string_view name, const std::vector<Object>& owners, bool block = true) {
    std::string references;
    for (const Object& owner : owners) {
      references +=
          fmt::format(R"({}{{"apiVersion":"v1","kind":"ConfigMap","name":"{}","uid":"{}",)"
                      R"("blockOwnerDeletion":{}}})",
                      references.empty() ? "" : ",", owner.name(), owner.uid(), block);
    }
    return cluster.Create(
        client::kConfigMaps,
        fmt::format(R"({{"metadata":{{"name":"{}","ownerReferences":[{}]}}}})", name, references));
  }
  Object Get(const std::string& name) {
    return cluster.Get(client::kConfigMaps, {"default", name});
  }
  void Delete(const std::string& name, const std::string& how) {
    cluster.Delete(client::kConfigMaps, {"default", name}, how);
  }
  Cluster cluster;
};

TEST_F(CollectorTest, BackgroundTakesDependentsAlong) {
  const Object root = Map("root", {});
  const Object child = Map("child", {root});
  Map("grandchild", {child});
  Map("other", {});
  Delete("root", "Background");
  EXPECT_FALSE(Get("root"));
  EXPECT_FALSE(Get("child"));
  EXPECT_FALSE(Get("grandchild"));
  EXPECT_TRUE(Get("other"));
}

TEST_F(CollectorTest, ADependentStaysWhileOneOwnerDoes) {
  const Object a = Map("a", {});
  const Object b = Map("b", {});
  Map("shared", {a, b});
  Delete("a", "Background");
  const Object shared = Get("shared");
  ASSERT_TRUE(shared);
  ASSERT_EQ(shared["metadata"]["ownerReferences"].size(), 1U);
  EXPECT_EQ(shared["metadata"]["ownerReferences"].at(0)["name"].AsString(), "b");
  Delete("b", "Background");
  EXPECT_FALSE(Get("shared"));
}

TEST_F(CollectorTest, OrphanLeavesDependentsWithoutTheReference) {
  const Object root = Map("root", {});
  Map("child", {root});
  Delete("root", "Orphan");
  EXPECT_FALSE(Get("root"));
  const Object child = Get("child");
  ASSERT_TRUE(child);
  EXPECT_TRUE(child["metadata"]["ownerReferences"].empty());
}

TEST_F(CollectorTest, ForegroundWaitsForWhatBlocks) {
  const Object root = Map("root", {});
  const Object child = Map("child", {root});
  cluster.Patch(client::kConfigMaps, {"default", "child"},
                R"({"metadata":{"finalizers":["example.com/hold"]}})");
  Map("loose", {root}, false);
  Delete("root", "Foreground");
  EXPECT_TRUE(Get("root"));
  EXPECT_TRUE(IsDeleting(Get("child")));
  cluster.Patch(client::kConfigMaps, {"default", "child"}, R"({"metadata":{"finalizers":null}})");
  EXPECT_FALSE(Get("child"));
  EXPECT_FALSE(Get("root"));
  EXPECT_FALSE(Get("loose"));
}

TEST_F(CollectorTest, ACircleDoesNotHoldItselfUp) {
  const Object a = Map("a", {});
  const Object b = Map("b", {a});
  cluster.Patch(client::kConfigMaps, {"default", "a"},
                fmt::format(R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"v1",)"
                            R"("kind":"ConfigMap","name":"b","uid":"{}",)"
                            R"("blockOwnerDeletion":true}}]}}}})",
                            b.uid()));
  Delete("a", "Foreground");
  EXPECT_FALSE(Get("a"));
  EXPECT_FALSE(Get("b"));
}

TEST_F(CollectorTest, AnOwnerThatNeverWasIsNoOwner) {
  cluster.Create(client::kConfigMaps,
                 R"({"metadata":{"name":"lost","ownerReferences":[{"apiVersion":"v1",)"
                 R"("kind":"ConfigMap","name":"nobody","uid":"0000"}]}})");
  EXPECT_FALSE(Get("lost"));
  // A kind that is not served says nothing.
  cluster.Create(
      client::kConfigMaps,
      R"({"metadata":{"name":"foreign","ownerReferences":[{"apiVersion":"example.com/v1",)"
      R"("kind":"Thing","name":"nobody","uid":"0001"}]}})");
  EXPECT_TRUE(Get("foreign"));
}

// A kind that goes and comes back in another version is collected as before.
TEST_F(CollectorTest, KindsComeAndGo) {
  const auto widget_goes_with_its_owner = [this](Gvr widgets) {
    const Object root = Map("root", {});
    cluster.Create(widgets, fmt::format(R"({{"metadata":{{"name":"w","ownerReferences":[{{
        "apiVersion":"v1","kind":"ConfigMap","name":"root","uid":"{}"}}]}}}})",
                                        root.uid()));
    Delete("root", "Background");
    EXPECT_FALSE(cluster.Get(widgets, {"default", "w"})) << widgets.version;
  };
  cluster.Create(client::kCustomResourceDefinitions, testing::WidgetsIn("v1"));
  widget_goes_with_its_owner({"x.io", "v1", "widgets"});
  cluster.Delete(client::kCustomResourceDefinitions, {"", "widgets.x.io"});
  cluster.Advance(1s);
  ASSERT_FALSE(cluster.Served()->Find({"x.io", "v1"}, "widgets"));
  cluster.Create(client::kCustomResourceDefinitions, testing::WidgetsIn("v2"));
  widget_goes_with_its_owner({"x.io", "v2", "widgets"});
}

TEST_F(CollectorTest, ADeploymentTakesItsSetsAndPodsAlong) {
  for (const char* how : {"Background", "Foreground"}) {
    cluster.Create(client::kDeployments, R"({"metadata":{"name":"web"},"spec":{"replicas":2,
      "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    cluster.Play();
    ASSERT_EQ(cluster.Pods("web-").size(), 2U);
    cluster.Delete(client::kDeployments, {"default", "web"}, how);
    cluster.Play();
    EXPECT_TRUE(cluster.List(client::kPods).empty()) << how;
    EXPECT_TRUE(cluster.List(client::kReplicaSets).empty()) << how;
    EXPECT_FALSE(cluster.Get(client::kDeployments, {"default", "web"})) << how;
  }
}

TEST_F(CollectorTest, OrphanedPodsOfADeploymentRunOn) {
  cluster.Create(client::kDeployments, R"({"metadata":{"name":"web"},"spec":{"replicas":2,
    "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  cluster.Play();
  cluster.Delete(client::kDeployments, {"default", "web"}, "Orphan");
  cluster.Play();
  EXPECT_FALSE(cluster.Get(client::kDeployments, {"default", "web"}));
  EXPECT_EQ(cluster.List(client::kReplicaSets).size(), 1U);
  EXPECT_EQ(cluster.Pods("web-").size(), 2U);
}

TEST_F(CollectorTest, ANamespaceGoesWithAllThatIsInIt) {
  cluster.Create(client::kNamespaces, R"({"metadata":{"name":"team"}})");
  cluster.Create(client::kConfigMaps, R"({"metadata":{"name":"a","namespace":"team"}})");
  cluster.Create(client::kDeployments, R"({"metadata":{"name":"web","namespace":"team"},
    "spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  cluster.Play();
  ASSERT_EQ(cluster.Pods("web-", "team").size(), 2U);
  cluster.Delete(client::kNamespaces, {"", "team"});
  // Pods have their grace; the rest waits for them.
  const Object team = cluster.Get(client::kNamespaces, {"", "team"});
  EXPECT_EQ(team["status"]["phase"].AsString(), "Terminating");
  EXPECT_TRUE(FindCondition(team["status"]["conditions"], "NamespaceDeletionContentFailure"));
  EXPECT_TRUE(cluster.Get(client::kConfigMaps, {"team", "a"}));
  cluster.Play();
  cluster.Advance(5s);
  EXPECT_FALSE(cluster.Get(client::kNamespaces, {"", "team"}));
  EXPECT_FALSE(cluster.Get(client::kConfigMaps, {"team", "a"}));
  EXPECT_TRUE(cluster.List(client::kReplicaSets, "team").empty());
}

TEST_F(CollectorTest, ANamespaceWaitsForFinalizersAndSaysSo) {
  cluster.Create(client::kNamespaces, R"({"metadata":{"name":"team"}})");
  cluster.Create(
      client::kConfigMaps,
      R"({"metadata":{"name":"a","namespace":"team","finalizers":["example.com/hold"]}})");
  cluster.Delete(client::kNamespaces, {"", "team"});
  Object team = cluster.Get(client::kNamespaces, {"", "team"});
  const api::Value held =
      FindCondition(team["status"]["conditions"], "NamespaceFinalizersRemaining");
  EXPECT_EQ(held["status"].AsString(), "True");
  EXPECT_EQ(
      held["message"].AsString(),
      "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource "
      "instances");
  cluster.Patch(client::kConfigMaps, {"team", "a"}, R"({"metadata":{"finalizers":null}})");
  cluster.Advance(3s);
  EXPECT_FALSE(cluster.Get(client::kNamespaces, {"", "team"}));
}

}  // namespace
}  // namespace sextant::controllers
