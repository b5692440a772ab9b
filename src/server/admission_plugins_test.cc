// Plugins of which there is little to say each: accounts, priorities, Pods' small things, storage,
// certificates.
#include "server/admission_test.h"

namespace sextant::server {
namespace {

using ::testing::HasSubstr;
using PluginTest = AdmissionTest;

TEST_F(PluginTest, EveryPluginHasItsNameOnce) {
  std::set<std::string_view> names;
  for (const auto& plugin : DefaultAdmission()) {
    if (!plugin->name().empty()) EXPECT_TRUE(names.insert(plugin->name()).second) << plugin->name();
  }
  EXPECT_TRUE(names.contains("NodeRestriction"));
  EXPECT_TRUE(names.contains("PodSecurity"));
}

TEST_F(PluginTest, NamespacesMustBeThereAndStay) {
  EXPECT_EQ(Do(Admin(), {"create", "", "configmaps", R"({"metadata":{"name":"m"}})", "", "", "x"})
                .message,
            "namespaces \"x\" not found");
  EXPECT_EQ(Do(Admin(), {"delete", "", "namespaces", "", "default"}).message,
            "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

TEST_F(PluginTest, NothingIsMadeInANamespaceThatEnds) {
  Make("", "namespaces", R"({"metadata":{"name":"x"},"spec":{"finalizers":["kubernetes"]}})");
  EXPECT_TRUE(Do(Admin(), {"delete", "", "namespaces", "", "x"}).ok);
  const Answer answer =
      Do(Admin(), {"create", "", "configmaps", R"({"metadata":{"name":"m"}})", "", "", "x"});
  EXPECT_EQ(answer.message,
            "configmaps \"m\" is forbidden: unable to create new content in "
            "namespace x because it is being terminated");
  ASSERT_EQ(answer.error.causes.size(), 1U);
  EXPECT_EQ(answer.error.causes[0].reason, "NamespaceTerminating");
}

TEST_F(PluginTest, AccountsMustBeThere) {
  EXPECT_EQ(
      Do(Admin(), {"create", "", "pods", Pod("p", "", R"("serviceAccountName":"x",)")}).message,
      "pods \"p\" is forbidden: error looking up service account default/x: serviceaccount \"x\" "
      "not found");
}

TEST_F(PluginTest, AccountsLimitSecrets) {
  Make("", "serviceaccounts", R"({"metadata":{"name":"a","annotations":{
      "kubernetes.io/enforce-mountable-secrets":"true"}},"secrets":[{"name":"mine"}],
      "imagePullSecrets":[{"name":"pull"}]})");
  const auto pod = [&](std::string_view container, std::string_view spec) {
    return Do(Admin(), {"create", "", "pods",
                        Pod("p", container, fmt::format(R"("serviceAccountName":"a",{})", spec))})
        .message;
  };
  EXPECT_EQ(pod("", R"("volumes":[{"name":"v","secret":{"secretName":"x"}}],)"),
            "pods \"p\" is forbidden: volume with secret.secretName=\"x\" is not allowed because "
            "service account a does not reference that secret");
  EXPECT_EQ(pod(R"(,"env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"x","key":"k"}}}])", ""),
            "pods \"p\" is forbidden: container c with envVar E referencing "
            "secret.secretName=\"x\" is not allowed because service account a does not reference "
            "that secret");
  EXPECT_EQ(
      pod("", R"("imagePullSecrets":[{"name":"x"}],)"),
      "pods \"p\" is forbidden: imagePullSecrets[0].name=\"x\" is not allowed because service "
      "account a does not reference that imagePullSecret");
  EXPECT_EQ(pod(R"(,"envFrom":[{"secretRef":{"name":"mine"}}])", ""), "");
}

TEST_F(PluginTest, MirrorPodsNeedNothingOfTheApi) {
  EXPECT_EQ(Do(Admin(), {"create", "", "pods", R"({"metadata":{"name":"p","annotations":{
                "kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n","serviceAccountName":
                "default","containers":[{"name":"c","image":"i"}]}})"})
                .message,
            "pods \"p\" is forbidden: a mirror pod may not reference service accounts");
}

TEST_F(PluginTest, PrioritiesComeFromClasses) {
  Make("scheduling.k8s.io", "priorityclasses",
       R"({"metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"})");
  const Answer pod =
      Do(Admin(), {"create", "", "pods", Pod("p", "", R"("priorityClassName":"high",)")});
  ASSERT_TRUE(pod.ok) << pod.message;
  EXPECT_EQ(pod["spec"]["priority"].AsInt(), 1000);
  EXPECT_EQ(pod["spec"]["preemptionPolicy"].AsString(), "Never");
  EXPECT_EQ(
      Do(Admin(), {"create", "", "pods", Pod("q", "", R"("priorityClassName":"low",)")}).message,
      "pods \"q\" is forbidden: no PriorityClass with name low was found");
  EXPECT_EQ(
      Do(Admin(), {"create", "", "pods", Pod("q", "", R"("priority":7,)")}).message,
      "pods \"q\" is forbidden: the integer value of priority (7) must not be provided in pod "
      "spec; priority admission controller computed 0 from the given PriorityClass name");
  Make("scheduling.k8s.io", "priorityclasses",
       R"({"metadata":{"name":"normal"},"value":5,"globalDefault":true})");
  EXPECT_EQ(Do(Admin(), {"create", "scheduling.k8s.io", "priorityclasses",
                         R"({"metadata":{"name":"x"},"value":6,"globalDefault":true})"})
                .message,
            "priorityclasses.scheduling.k8s.io \"x\" is forbidden: PriorityClass normal is already "
            "marked as default. Only one default can exist");
}

TEST_F(PluginTest, RuntimeClassesMustBeThere) {
  EXPECT_EQ(
      Do(Admin(), {"create", "", "pods", Pod("p", "", R"("runtimeClassName":"nvidia",)")}).message,
      "pods \"p\" is forbidden: pod rejected: RuntimeClass \"nvidia\" not found");
}

TEST_F(PluginTest, PodsTolerateLostNodesForAWhile) {
  const auto pod = Make("", "pods", Pod("p", "", R"("tolerations":[{"operator":"Exists",
      "key":"node.kubernetes.io/not-ready","effect":"NoExecute","tolerationSeconds":9}],)"));
  const api::Value tolerations = pod["spec"]["tolerations"];
  ASSERT_EQ(tolerations.size(), 2U);
  EXPECT_EQ(tolerations.at(0)["tolerationSeconds"].AsInt(), 9);
  EXPECT_EQ(tolerations.at(1)["key"].AsString(), "node.kubernetes.io/unreachable");
  EXPECT_EQ(tolerations.at(1)["tolerationSeconds"].AsInt(), 300);
}

TEST_F(PluginTest, PodsKnowTheirZone) {
  Make("", "nodes", R"({"metadata":{"name":"n","labels":{"topology.kubernetes.io/zone":"z",
      "topology.kubernetes.io/region":"r","other":"x"}}})");
  Make("", "pods", Pod("p"));
  EXPECT_TRUE(Do(Admin(), {"create", "", "pods", R"({"metadata":{"name":"p"},"target":{
      "kind":"Node","name":"n"}})",
                           "p", "binding"})
                  .ok);
  EXPECT_EQ(api::ToJson(Get("", "pods", "p")["metadata"]["labels"]),
            R"({"topology.kubernetes.io/region":"r","topology.kubernetes.io/zone":"z"})");
  EXPECT_EQ(Make("", "pods", Pod("q", "", R"("nodeName":"n",)"))["metadata"]["labels"].size(), 2U);
}

TEST_F(PluginTest, NewNodesAreNotReady) {
  const auto node = Make("", "nodes", R"({"metadata":{"name":"n"},"spec":{"taints":[
      {"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}})");
  ASSERT_EQ(node["spec"]["taints"].size(), 2U);
  EXPECT_EQ(node["spec"]["taints"].at(1)["effect"].AsString(), "NoSchedule");
}

TEST_F(PluginTest, PodsGrowAsFarAsTheirNode) {
  Make("", "nodes", R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2",
      "memory":"4Gi"}}})");
  Make("", "pods", Pod("p", R"(,"resources":{"requests":{"cpu":"1"}})", R"("nodeName":"n",)"));
  const Answer answer =
      Do(Admin(), {"patch", "", "pods", R"({"spec":{"containers":[{"name":"c","image":"i",
          "resources":{"requests":{"cpu":"3"}}}]}})",
                   "p", "resize"});
  EXPECT_THAT(answer.message, HasSubstr("node didn't have enough allocatable resources: cpu, "
                                        "requested: 3000, allocatable: 2000"));
  ASSERT_EQ(answer.error.causes.size(), 1U);
  EXPECT_EQ(answer.error.causes[0].reason, "NodeCapacity");
}

class StorageTest : public AdmissionTest {
 protected:
  api::Object Claim(std::string_view spec = "") {
    return Make("", "persistentvolumeclaims",
                fmt::format(R"({{"metadata":{{"generateName":"c-"}},"spec":{{{}"accessModes":
                    ["ReadWriteOnce"],"resources":{{"requests":{{"storage":"1Gi"}}}}}}}})",
                            spec));
  }
  void Class(std::string_view name, bool is_default, std::string_view more = "") {
    Make("storage.k8s.io", "storageclasses",
         fmt::format(R"({{"metadata":{{"name":"{}","annotations":{{
             "storageclass.kubernetes.io/is-default-class":"{}"}}}},"provisioner":"x/y"{}}})",
                     name, is_default, more));
  }
};

TEST_F(StorageTest, ClaimsTakeTheNewestDefaultClass) {
  EXPECT_FALSE(Claim()["spec"]["storageClassName"]);
  Class("old", true);
  loop.Advance(std::chrono::seconds(2));
  Class("new", true);
  Class("plain", false);
  EXPECT_EQ(Claim()["spec"]["storageClassName"].AsString(), "new");
  EXPECT_EQ(Claim(R"("storageClassName":"",)")["spec"]["storageClassName"].AsString("unset"), "");
}

TEST_F(StorageTest, WhatIsInUseIsProtected) {
  EXPECT_EQ(api::ToJson(Claim()["metadata"]["finalizers"]), R"(["kubernetes.io/pvc-protection"])");
  const auto volume = Make("", "persistentvolumes", R"({"metadata":{"name":"v","finalizers":
      ["kubernetes.io/pv-protection"]},"spec":{"capacity":{"storage":"1Gi"},
      "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}})");
  EXPECT_EQ(api::ToJson(volume["metadata"]["finalizers"]), R"(["kubernetes.io/pv-protection"])");
}

TEST_F(StorageTest, ClaimsGrowWhereTheirClassLetsThem) {
  Class("fixed", false);
  Class("growing", false, R"(,"allowVolumeExpansion":true)");
  const auto grow = [&](std::string_view storage_class) {
    const std::string name(Claim(fmt::format(R"("storageClassName":"{}",)", storage_class)).name());
    Change(Admin(), "", "persistentvolumeclaims", name,
           R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})", "status");
    return Change(Admin(), "", "persistentvolumeclaims", name,
                  R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})")
        .message;
  };
  EXPECT_THAT(grow("fixed"),
              HasSubstr("the storageclass that provisions the pvc must support resize"));
  EXPECT_EQ(grow("growing"), "");
}

TEST_F(PluginTest, IngressesTakeTheDefaultClass) {
  Make("networking.k8s.io", "ingressclasses", R"({"metadata":{"name":"nginx","annotations":{
      "ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"a/b"}})");
  const auto ingress = Make("networking.k8s.io", "ingresses", R"({"metadata":{"name":"i"},"spec":{
      "defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})");
  EXPECT_EQ(ingress["spec"]["ingressClassName"].AsString(), "nginx");
}

TEST_F(PluginTest, SignersAskForARightOfTheirOwn) {
  constexpr const char* kRbac = "rbac.authorization.k8s.io";
  Make("certificates.k8s.io", "certificatesigningrequests",
       R"({"metadata":{"name":"r"},"spec":{
      "request":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KZUE9PQotLS0t)"
       R"(LUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K",
      "signerName":"example.com/a","usages":["client auth"]}})");
  const User user{"approver", "", {}, {}};
  const auto approve = [&] {
    return Change(user, "certificates.k8s.io", "certificatesigningrequests", "r",
                  R"({"status":{"conditions":[{"type":"Approved","status":"True","reason":"r"}]}})",
                  "approval")
        .message;
  };
  EXPECT_EQ(approve(),
            "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not "
            "permitted to approve requests with signerName \"example.com/a\"");
  Make(kRbac, "clusterroles", R"({"metadata":{"name":"a"},"rules":[{"apiGroups":
      ["certificates.k8s.io"],"resources":["signers"],"resourceNames":["example.com/*"],
      "verbs":["approve"]}]})");
  Make(kRbac, "clusterrolebindings", R"({"metadata":{"name":"a"},"roleRef":{
      "apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"a"},
      "subjects":[{"kind":"User","name":"approver","apiGroup":"rbac.authorization.k8s.io"}]})");
  EXPECT_EQ(approve(), "");
}

}  // namespace
}  // namespace sextant::server
