// Claims and volumes: binding, provisioning, what keeps them and what takes them away.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "controllers/testing.h"
#include "scheduler/claims.h"

namespace sextant::controllers {
namespace {

using namespace scheduler;  // claims.h
using api::Object;
using testing::Cluster;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kStandard = R"({"metadata":{"name":"standard",
  "annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},
  "provisioner":"rancher.io/local-path","reclaimPolicy":"Delete",
  "volumeBindingMode":"WaitForFirstConsumer"})";

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() { cluster.AddNode("node-1"); }

  // `more` goes into the spec: "" or "\"volumeName\":\"pv\",".
  void Claim(const std::string& name, const std::string& more = "", std::string_view size = "1Gi") {
    cluster.Create(client::kPersistentVolumeClaims,
                   fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}"accessModes":[
      "ReadWriteOnce"],"resources":{{"requests":{{"storage":"{}"}}}}}}}})",
                               name, more, size));
  }
  void Volume(const std::string& name, std::string_view size, const std::string& more = "",
              std::string_view source = R"("nfs":{"server":"s","path":"/"})") {
    cluster.Create(client::kPersistentVolumes,
                   fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}"capacity":{{
      "storage":"{}"}},"accessModes":["ReadWriteOnce"],{}}}}})",
                               name, more, size, source));
  }
  void Pod(const std::string& name, const std::string& claim) {
    cluster.Create(client::kPods,
                   fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"containers":[
      {{"name":"c","image":"x"}}],"volumes":[{{"name":"v","persistentVolumeClaim":{{
      "claimName":"{}"}}}}]}}}})",
                               name, claim));
  }
  // As the scheduler does it before it binds a Pod.
  void SelectNode(const std::string& claim) {
    cluster.Patch(
        client::kPersistentVolumeClaims, {"default", claim},
        fmt::format(R"({{"metadata":{{"annotations":{{"{}":"node-1"}}}}}})", kSelectedNode));
  }
  Object GetClaim(const std::string& name) {
    return cluster.Get(client::kPersistentVolumeClaims, {"default", name});
  }
  Object GetVolume(const std::string& name) {
    return cluster.Get(client::kPersistentVolumes, {"", name});
  }
  std::string Phase(const Object& object) {
    return std::string(object["status"]["phase"].AsString("gone"));
  }
  void Delete(const std::string& claim) {
    cluster.Delete(client::kPersistentVolumeClaims, {"default", claim});
  }

  Cluster cluster;
};

TEST_F(VolumesTest, AClaimTakesTheSmallestVolumeThatFits) {
  Volume("small", "500Mi");
  Volume("large", "5Gi");
  Volume("right", "2Gi");
  EXPECT_EQ(Phase(GetVolume("right")), "Available");
  Claim("data");
  const Object claim = GetClaim("data");
  EXPECT_EQ(Phase(claim), "Bound");
  EXPECT_EQ(claim["spec"]["volumeName"].AsString(), "right");
  EXPECT_EQ(claim["status"]["capacity"]["storage"].AsString(), "2Gi");
  EXPECT_EQ(AnnotationOf(claim, kBindCompleted), "yes");
  EXPECT_EQ(AnnotationOf(claim, kBoundByController), "yes");
  const Object volume = GetVolume("right");
  EXPECT_EQ(Phase(volume), "Bound");
  EXPECT_EQ(volume["spec"]["claimRef"]["uid"].AsString(), claim.uid());
  EXPECT_EQ(AnnotationOf(volume, kBoundByController), "yes");
  EXPECT_EQ(Phase(GetVolume("large")), "Available");
}

TEST_F(VolumesTest, AClaimWaitsForAVolumeAndTellsWhy) {
  Volume("tiny", "1Mi");
  Claim("data");
  EXPECT_EQ(Phase(GetClaim("data")), "Pending");
  EXPECT_THAT(cluster.Events("data"),
              Contains("FailedBinding: no persistent volumes available for this claim and no "
                       "storage class is set"));
  Volume("pv", "1Gi");
  EXPECT_EQ(GetClaim("data")["spec"]["volumeName"].AsString(), "pv");
}

TEST_F(VolumesTest, AccessModeClassAndSelectorMustFit) {
  Volume("fast", "1Gi", R"("storageClassName":"fast",)");
  cluster.Create(client::kPersistentVolumes,
                 R"({"metadata":{"name":"many"},"spec":{"capacity":{"storage":"1Gi"},
    "accessModes":["ReadWriteMany"],"nfs":{"server":"s","path":"/"}}})");
  Claim("data");
  EXPECT_EQ(Phase(GetClaim("data")), "Pending");
  cluster.Create(client::kPersistentVolumes,
                 R"({"metadata":{"name":"red","labels":{"c":"red"}},"spec":{"capacity":{
    "storage":"1Gi"},"accessModes":["ReadWriteOnce","ReadWriteMany"],
    "nfs":{"server":"s","path":"/"}}})");
  EXPECT_EQ(GetClaim("data")["spec"]["volumeName"].AsString(), "red");
  Claim("blue", R"("selector":{"matchLabels":{"c":"blue"}},)");
  EXPECT_EQ(Phase(GetClaim("blue")), "Pending");
}

TEST_F(VolumesTest, AClaimNamesItsVolumeAndAVolumeItsClaim) {
  Claim("a", R"("volumeName":"pv-a",)");
  EXPECT_EQ(Phase(GetClaim("a")), "Pending");
  Volume("pv-a", "1Gi");
  EXPECT_EQ(Phase(GetClaim("a")), "Bound");
  Claim("thief", R"("volumeName":"pv-a",)");
  EXPECT_EQ(Phase(GetClaim("thief")), "Pending");
  EXPECT_THAT(cluster.Events("thief"),
              Contains("FailedBinding: volume \"pv-a\" already bound to a different claim."));
  Volume("pv-b", "9Gi", R"("claimRef":{"namespace":"default","name":"b"},)");
  Volume("pv-c", "1Gi");
  Claim("b");
  EXPECT_EQ(GetClaim("b")["spec"]["volumeName"].AsString(), "pv-b");
  EXPECT_FALSE(HasAnnotation(GetVolume("pv-b"), kBoundByController));
  Claim("big", R"("volumeName":"pv-c",)", "3Gi");
  EXPECT_THAT(cluster.Events("big"),
              Contains("VolumeMismatch: Cannot bind to requested volume \"pv-c\": requested PV is "
                       "too small"));
}

TEST_F(VolumesTest, AReleasedVolumeIsKeptOrFailsByItsPolicy) {
  Volume("kept", "1Gi");
  Claim("a", R"("volumeName":"kept",)");
  Volume("dropped", "1Gi", R"("persistentVolumeReclaimPolicy":"Delete",)");
  Claim("b", R"("volumeName":"dropped",)");
  Delete("a");
  Delete("b");
  EXPECT_EQ(Phase(GetVolume("kept")), "Released");
  EXPECT_EQ(Phase(GetVolume("dropped")), "Failed");
  EXPECT_EQ(
      GetVolume("dropped")["status"]["message"].AsString(),
      "error getting deleter volume plugin for volume \"dropped\": no deletable volume plugin "
      "matched");
  Claim("c");  // a released volume serves nobody
  EXPECT_EQ(Phase(GetClaim("c")), "Pending");
}

TEST_F(VolumesTest, AClaimThatLostItsVolumeSaysSo) {
  Volume("pv", "1Gi");
  Claim("data");
  cluster.Delete(client::kPersistentVolumes, {"", "pv"});
  EXPECT_TRUE(GetVolume("pv"));  // a bound volume stays
  cluster.Patch(client::kPersistentVolumes, {"", "pv"}, R"({"metadata":{"finalizers":null}})");
  EXPECT_FALSE(GetVolume("pv"));
  EXPECT_EQ(Phase(GetClaim("data")), "Lost");
  EXPECT_THAT(cluster.Events("data"), Contains(HasSubstr("ClaimLost: Bound claim has lost its")));
}

TEST_F(VolumesTest, AClaimInUseStaysUntilItsPodsAreGone) {
  Volume("pv", "1Gi");
  Claim("data");
  EXPECT_EQ(GetClaim("data")["metadata"]["finalizers"].at(0).AsString(),
            "kubernetes.io/pvc-protection");
  Pod("user", "data");
  cluster.Play();
  Delete("data");
  EXPECT_TRUE(GetClaim("data"));
  cluster.Delete(client::kPods, {"default", "user"});
  cluster.Play();
  EXPECT_FALSE(GetClaim("data"));
  EXPECT_EQ(Phase(GetVolume("pv")), "Released");
}

TEST_F(VolumesTest, APodThatHasNoNodeKeepsNoClaim) {
  Volume("pv", "1Gi");
  Claim("data");
  Pod("user", "data");
  Delete("data");
  EXPECT_FALSE(GetClaim("data"));
}

// ---- the class `standard`

TEST_F(VolumesTest, TheDefaultClassMakesAVolumeWhereThePodIs) {
  cluster.Create(client::kStorageClasses, kStandard);
  Claim("data");
  EXPECT_EQ(GetClaim("data")["spec"]["storageClassName"].AsString(), "standard");
  EXPECT_EQ(Phase(GetClaim("data")), "Pending");
  EXPECT_THAT(cluster.Events("data"),
              Contains("WaitForFirstConsumer: waiting for first consumer to be created before "
                       "binding"));
  EXPECT_THAT(cluster.List(client::kPersistentVolumes), IsEmpty());
  Pod("user", "data");
  SelectNode("data");
  const Object claim = GetClaim("data");
  EXPECT_EQ(Phase(claim), "Bound");
  EXPECT_EQ(AnnotationOf(claim, kProvisioner), "rancher.io/local-path");
  const std::string name = fmt::format("pvc-{}", claim.uid());
  const Object volume = GetVolume(name);
  EXPECT_EQ(Phase(volume), "Bound");
  EXPECT_EQ(volume["spec"]["hostPath"]["path"].AsString(),
            fmt::format("/var/local-path-provisioner/{}_default_data", name));
  EXPECT_EQ(volume.Path("spec.nodeAffinity.required.nodeSelectorTerms")
                .at(0)["matchExpressions"]
                .at(0)["values"]
                .at(0)
                .AsString(),
            "node-1");
  EXPECT_THAT(cluster.Events("data"),
              Contains("ProvisioningSucceeded: Successfully provisioned volume " + name));
}

TEST_F(VolumesTest, AProvisionedVolumeGoesWithItsClaim) {
  cluster.Create(client::kStorageClasses, kStandard);
  Claim("data");
  SelectNode("data");
  ASSERT_EQ(cluster.List(client::kPersistentVolumes).size(), 1U);
  Delete("data");
  EXPECT_FALSE(GetClaim("data"));
  EXPECT_THAT(cluster.List(client::kPersistentVolumes), IsEmpty());
}

TEST_F(VolumesTest, AnOlderClaimTakesAClassThatBecomesTheDefault) {
  Claim("data");
  Claim("none", R"("storageClassName":"",)");
  cluster.Create(client::kStorageClasses, kStandard);
  EXPECT_EQ(GetClaim("data")["spec"]["storageClassName"].AsString(), "standard");
  EXPECT_EQ(GetClaim("none")["spec"]["storageClassName"].AsString("absent"), "");
}

TEST_F(VolumesTest, WhatTheProvisionerCannotMakeIsTold) {
  cluster.Create(client::kStorageClasses, R"({"metadata":{"name":"now"},
    "provisioner":"rancher.io/local-path","volumeBindingMode":"Immediate"})");
  Claim("data", R"("storageClassName":"now",)");
  EXPECT_THAT(cluster.Events("data"),
              Contains("ProvisioningFailed: failed to provision volume with StorageClass \"now\": "
                       "configuration error, no node was specified"));
  Claim("lost", R"("storageClassName":"nowhere",)");
  EXPECT_THAT(cluster.Events("lost"),
              Contains("ProvisioningFailed: storageclass.storage.k8s.io \"nowhere\" not found"));
  EXPECT_THAT(cluster.List(client::kPersistentVolumes), IsEmpty());
}

TEST_F(VolumesTest, AClaimWhoseNodeIsGoneIsLeftToTheScheduler) {
  cluster.Create(client::kStorageClasses, kStandard);
  Claim("data");
  cluster.Patch(client::kPersistentVolumeClaims, {"default", "data"},
                fmt::format(R"({{"metadata":{{"annotations":{{"{}":"gone"}}}}}})", kSelectedNode));
  cluster.Settle();
  EXPECT_FALSE(HasAnnotation(GetClaim("data"), kSelectedNode));
  EXPECT_THAT(cluster.Events("data"), Contains("ProvisioningFailed: node \"gone\" not found"));
  SelectNode("data");
  EXPECT_EQ(Phase(GetClaim("data")), "Bound");
}

}  // namespace
}  // namespace sextant::controllers
