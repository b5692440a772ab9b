// Pods with claims: where they may go, what is bound before they are, what is said when they wait.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "scheduler/claims.h"
#include "scheduler/testing.h"

namespace sextant::scheduler {
namespace {

using namespace std::chrono_literals;
using api::Object;
using ::testing::Contains;
using ::testing::HasSubstr;

class VolumeBindingTest : public ::testing::Test {
 protected:
  VolumeBindingTest() {
    cluster.AddNode({.name = "a"});
    cluster.AddNode({.name = "b"});
    Class("standard", "rancher.io/local-path");
    cluster.Settle();
  }
  void Class(const std::string& name, const std::string& provisioner,
             const std::string& mode = "WaitForFirstConsumer", const std::string& more = "") {
    cluster.Add("storageclasses", fmt::format(R"({{"metadata":{{"name":"{}"}},"provisioner":"{}",
      "volumeBindingMode":"{}"{}}})",
                                              name, provisioner, mode, more));
  }
  // A claim that waits, or is bound to `volume`.
  void Claim(const std::string& name, const std::string& storage_class = "standard",
             const std::string& volume = "", const std::string& metadata = "") {
    const std::string bound =
        volume.empty() ? "" : R"("annotations":{"pv.kubernetes.io/bind-completed":"yes"},)";
    cluster.Add("persistentvolumeclaims",
                fmt::format(R"({{"metadata":{{{}{}"name":"{}","namespace":"default","uid":"u-{}"}},
      "spec":{{"storageClassName":"{}","volumeName":"{}","accessModes":["ReadWriteOnce"],
      "resources":{{"requests":{{"storage":"1Gi"}}}}}},"status":{{"phase":"{}"}}}})",
                            bound, metadata, name, name, storage_class, volume,
                            volume.empty() ? "Pending" : "Bound"));
  }
  void Volume(const std::string& name, const std::string& node, const std::string& spec = "") {
    cluster.Add(
        "persistentvolumes",
        fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}"capacity":{{"storage":"1Gi"}},
      "accessModes":["ReadWriteOnce"],"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{
      "matchExpressions":[{{"key":"kubernetes.io/hostname","operator":"In","values":["{}"]}}]}}]}}}}}},
      "status":{{"phase":"Available"}}}})",
                    name, spec, node));
  }
  void Pod(const std::string& name, const std::string& claim, const std::string& node = "") {
    const std::string selector =
        node.empty() ? ""
                     : fmt::format(R"("nodeSelector":{{"kubernetes.io/hostname":"{}"}},)", node);
    cluster.AddPod({.name = name,
                    .spec = fmt::format(R"({{{}"volumes":[{{"name":"v","persistentVolumeClaim":{{
      "claimName":"{}"}}}}]}})",
                                        selector, claim)});
    cluster.Settle();
  }
  Object GetClaim(const std::string& name) {
    return cluster.api.Find("persistentvolumeclaims", {"default", name});
  }
  // As the binder does it.
  void Bind(const std::string& claim, const std::string& volume) {
    Claim(claim, "standard", volume);
    cluster.Settle();
  }
  testing::Cluster cluster;
};

TEST_F(VolumeBindingTest, APodFollowsItsVolume) {
  Volume("pv", "b");
  Claim("data", "standard", "pv");
  for (const char* name : {"one", "two", "three"}) {
    Pod(name, "data");
    EXPECT_EQ(cluster.NodeOf(name), "b");
  }
  Pod("elsewhere", "data", "a");
  EXPECT_EQ(cluster.NodeOf("elsewhere"), "");
  EXPECT_THAT(cluster.Why("elsewhere"),
              HasSubstr("1 node(s) didn't match PersistentVolume's node affinity"));
}

TEST_F(VolumeBindingTest, ANodeIsChosenForTheClaimAndThePodWaitsUntilItIsBound) {
  Claim("data");
  Pod("db", "data", "b");
  EXPECT_EQ(AnnotationOf(GetClaim("data"), kSelectedNode), "b");
  EXPECT_EQ(cluster.NodeOf("db"), "");
  // The claim is taken: a second Pod must go to the same node.
  Pod("second", "data", "a");
  EXPECT_THAT(cluster.Why("second"),
              HasSubstr("1 node(s) didn't find available persistent volumes to bind"));
  Volume("pv", "b");
  Bind("data", "pv");
  EXPECT_EQ(cluster.NodeOf("db"), "b");
}

TEST_F(VolumeBindingTest, AVolumeThatIsThereIsTakenBeforeOneIsMade) {
  Class("local", "kubernetes.io/no-provisioner");
  Claim("data", "local");
  Pod("db", "data");
  EXPECT_THAT(cluster.Why("db"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));
  Volume("pv", "a", R"("storageClassName":"local",)");
  cluster.Advance(30s);
  const Object volume = cluster.api.Find("persistentvolumes", {"", "pv"});
  EXPECT_EQ(volume["spec"]["claimRef"]["uid"].AsString(), "u-data");
  EXPECT_EQ(AnnotationOf(volume, kBoundByController), "yes");
  EXPECT_FALSE(HasAnnotation(GetClaim("data"), kSelectedNode));
  EXPECT_EQ(cluster.NodeOf("db"), "");
  Claim("data", "local", "pv");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("db"), "a");
}

TEST_F(VolumeBindingTest, NoVolumeServesTwoClaims) {
  Class("local", "kubernetes.io/no-provisioner");
  Claim("one", "local");
  Claim("two", "local");
  const std::string local = R"("storageClassName":"local",)";
  Volume("a-1", "a", local);
  const auto claims_of_volumes = [this](const std::vector<std::string>& names) {
    std::set<std::string> claims;
    for (const std::string& name : names)
      claims.insert(ClaimOfVolume(cluster.api.Find("persistentvolumes", {"", name})).name);
    return claims;
  };
  cluster.AddPod({.name = "db", .spec = R"({"volumes":[
      {"name":"1","persistentVolumeClaim":{"claimName":"one"}},
      {"name":"2","persistentVolumeClaim":{"claimName":"two"}}]})"});
  EXPECT_THAT(cluster.Why("db"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));
  Volume("b-1", "b", local);
  Volume("b-2", "b", local);
  cluster.Advance(30s);
  EXPECT_EQ(claims_of_volumes({"b-1", "b-2"}), (std::set<std::string>{"one", "two"}));
  EXPECT_EQ(claims_of_volumes({"a-1"}), std::set<std::string>{""});
}

// The cache does not show yet that it is taken.
TEST_F(VolumeBindingTest, AVolumeThatIsBeingBoundIsNotFree) {
  Class("local", "kubernetes.io/no-provisioner");
  Claim("first", "local");
  Claim("second", "local");
  Volume("pv", "a", R"("storageClassName":"local",)");
  cluster.Settle();
  cluster.api.Hold("persistentvolumes");
  Pod("one", "first");
  Pod("two", "second");
  EXPECT_EQ(ClaimOfVolume(cluster.api.Find("persistentvolumes", {"", "pv"})).name, "first");
  EXPECT_THAT(cluster.Why("two"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));
}

TEST_F(VolumeBindingTest, AVolumeThatIsKeptForTheClaimDecidesTheNode) {
  Class("local", "kubernetes.io/no-provisioner");
  Claim("data", "local");
  Volume("kept", "b",
         R"("storageClassName":"local","claimRef":{"namespace":"default","name":"data"},)");
  Volume("other", "a", R"("storageClassName":"local",)");
  Pod("elsewhere", "data", "a");
  EXPECT_THAT(cluster.Why("elsewhere"),
              HasSubstr("1 node(s) didn't find available persistent volumes to bind"));
  Pod("db", "data");
  Claim("data", "local", "kept");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("db"), "b");
}

TEST_F(VolumeBindingTest, WhatIsWrongWithAClaimIsSaid) {
  Class("now", "x.io/p", "Immediate");
  Claim("unbound", "now");
  Claim("going", "standard", "", R"("deletionTimestamp":"2026-01-01T00:00:00Z",)");
  Claim("orphan", "standard", "nowhere");
  const std::pair<const char*, const char*> cases[] = {
      {"none", "persistentvolumeclaim \"none\" not found"},
      {"unbound", "pod has unbound immediate PersistentVolumeClaims"},
      {"going", "persistentvolumeclaim \"going\" is being deleted"},
      {"orphan", "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"}};
  for (const auto& [claim, why] : cases) {
    Pod(claim, claim);
    EXPECT_THAT(cluster.Why(claim), HasSubstr(why));
  }
  cluster.AddPod({.name = "own", .spec = R"({"volumes":[{"name":"v","ephemeral":{}}]})"});
  EXPECT_THAT(cluster.Why("own"), HasSubstr("waiting for ephemeral volume controller to create the "
                                            "persistentvolumeclaim \"own-v\""));
  // What was missing comes.
  Claim("none", "standard", "pv");
  Volume("pv", "a");
  cluster.Advance(30s);
  EXPECT_EQ(cluster.NodeOf("none"), "a");
}

TEST_F(VolumeBindingTest, ATopologyThatTheClassAllowsDecides) {
  cluster.AddNode({.name = "z", .labels = R"({"zone":"one"})"});
  Class("zoned", "x.io/p", "WaitForFirstConsumer",
        R"(,"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone","values":["one"]}]}])");
  Claim("data", "zoned");
  Pod("db", "data");
  EXPECT_EQ(AnnotationOf(GetClaim("data"), kSelectedNode), "z");
}

TEST_F(VolumeBindingTest, ABindingThatFailsOrTakesTooLongPutsThePodBack) {
  Claim("data");
  cluster.api.update_error = "the object has been modified";
  Pod("db", "data");
  EXPECT_THAT(cluster.api.events,
              Contains("Warning FailedScheduling db: running PreBind plugin \"VolumeBinding\": the "
                       "object has been modified"));
  cluster.Advance(2s);  // tried again
  EXPECT_TRUE(HasAnnotation(GetClaim("data"), kSelectedNode));
  cluster.Advance(11min);
  EXPECT_THAT(
      cluster.api.events,
      Contains("Warning FailedScheduling db: running PreBind plugin \"VolumeBinding\": binding "
               "volumes: timed out waiting for the condition"));
  EXPECT_EQ(cluster.NodeOf("db"), "");
}

// The provisioner takes the annotation away, for the node is gone.
TEST_F(VolumeBindingTest, ANodeThatCannotBeProvisionedIsGivenUp) {
  Claim("data");
  Pod("db", "data");
  const std::string first = AnnotationOf(GetClaim("data"), kSelectedNode);
  cluster.RemoveNode(first);
  Claim("data");
  cluster.Settle();
  EXPECT_THAT(cluster.api.events,
              Contains("Warning FailedScheduling db: running PreBind plugin \"VolumeBinding\": "
                       "binding volumes: selectedNode annotation reset for PVC \"data\""));
  cluster.Advance(2s);
  EXPECT_EQ(AnnotationOf(GetClaim("data"), kSelectedNode), first == "a" ? "b" : "a");
}

TEST_F(VolumeBindingTest, APodThatGoesMeanwhileIsNotBound) {
  Claim("data");
  Pod("db", "data");
  cluster.RemovePod("db");
  Volume("pv", "a");
  Bind("data", "pv");
  EXPECT_TRUE(cluster.api.events.empty());
}

}  // namespace
}  // namespace sextant::scheduler
