#include "server/admission_test.h"

namespace sextant::server {
namespace {

class NodeRestrictionTest : public AdmissionTest {
 protected:
  NodeRestrictionTest() {
    Make("", "nodes", R"({"metadata":{"name":"n"}})");
    Make("", "nodes", R"({"metadata":{"name":"other"}})");
    Make("", "pods", Pod("mine", "", R"("nodeName":"n",)"));
    Make("", "pods", Pod("foreign", "", R"("nodeName":"other",)"));
  }

  std::string Try(const Ask& ask) { return Do(Node("n"), ask).message; }
  std::string TryChange(std::string group, std::string plural, std::string name, std::string patch,
                        std::string subresource = "") {
    return Change(Node("n"), std::move(group), std::move(plural), std::move(name), std::move(patch),
                  std::move(subresource))
        .message;
  }
};

TEST_F(NodeRestrictionTest, ANodeChangesItself) {
  EXPECT_EQ(TryChange("", "nodes", "other", R"({"metadata":{"annotations":{"a":"b"}}})"),
            "nodes \"other\" is forbidden: node \"n\" is not allowed to modify node \"other\"");
  EXPECT_EQ(TryChange("", "nodes", "n", R"({"spec":{"taints":[]}})"),
            "nodes \"n\" is forbidden: node \"n\" is not allowed to modify taints");
  EXPECT_EQ(TryChange("", "nodes", "n", R"({"metadata":{"labels":{
                "node-role.kubernetes.io/x":"","nvidia.com/gpu.count":"8","k8s.io/y":"z"}}})"),
            "nodes \"n\" is forbidden: is not allowed to modify labels: k8s.io/y, "
            "node-role.kubernetes.io/x");
  EXPECT_EQ(TryChange("", "nodes", "n", R"({"metadata":{"labels":{
                "kubernetes.io/hostname":"n","nvidia.com/gpu.count":"8",
                "feature.node.kubernetes.io/pci-10de.present":"true"}}})"),
            "");
  EXPECT_EQ(TryChange("", "nodes", "n", R"({"status":{"phase":"Running"}})", "status"), "");
  EXPECT_EQ(Do(Node("new"), {"create", "", "nodes", R"({"metadata":{"name":"new","labels":{
                "example.node-restriction.kubernetes.io/a":"b"}}})"})
                .message,
            "nodes \"new\" is forbidden: node \"new\" is not allowed to set the following labels: "
            "example.node-restriction.kubernetes.io/a");
  EXPECT_EQ(Try({"create", "", "nodes", R"({"metadata":{"name":"third"}})"}),
            "nodes \"third\" is forbidden: node \"n\" is not allowed to modify node \"third\"");
}

TEST_F(NodeRestrictionTest, ItsPods) {
  EXPECT_EQ(TryChange("", "pods", "mine", R"({"status":{"phase":"Running"}})", "status"), "");
  EXPECT_EQ(TryChange("", "pods", "foreign", R"({"status":{"phase":"Running"}})", "status"),
            "pods \"foreign\" is forbidden: node \"n\" can only update pod status for pods with "
            "spec.nodeName set to itself");
  EXPECT_EQ(TryChange("", "pods", "mine", R"({"metadata":{"labels":{"a":"b"}}})"),
            "pods \"mine\" is forbidden: unexpected operation \"UPDATE\", node \"n\" can only "
            "create and delete mirror pods");
  EXPECT_EQ(Try({"create", "", "pods", Pod("p")}),
            "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" "
            "annotation, node \"n\" can only create mirror pods");
  EXPECT_EQ(Try({"delete", "", "pods", "", "foreign"}),
            "pods \"foreign\" is forbidden: node \"n\" can only delete pods with spec.nodeName set "
            "to itself");
  EXPECT_EQ(
      Try({"create", "", "pods", R"({"metadata":{"name":"foreign"}})", "foreign", "eviction"}),
      "pods \"foreign\" is forbidden: node n can only evict pods with spec.nodeName set to "
      "itself");
  EXPECT_EQ(Try({"delete", "", "pods", "", "mine"}), "");
}

TEST_F(NodeRestrictionTest, MirrorPods) {
  const std::string uid(Get("", "nodes", "n").uid());
  const auto mirror = [&](std::string_view owner, std::string_view spec) {
    return Try({"create", "", "pods",
                fmt::format(R"({{"metadata":{{"name":"m","annotations":{{
                    "kubernetes.io/config.mirror":"x"}},"ownerReferences":[{}]}},
                    "spec":{{{}"nodeName":"n","containers":[{{"name":"c","image":"i"}}]}}}})",
                            owner, spec)});
  };
  const auto owner = [](std::string_view owner_uid) {
    return fmt::format(R"({{"apiVersion":"v1","kind":"Node","name":"n","uid":"{}",
                           "controller":true}})",
                       owner_uid);
  };
  EXPECT_EQ(mirror("", ""),
            "pods \"m\" is forbidden: node \"n\" can only create pods with an owner reference set "
            "to itself");
  EXPECT_EQ(mirror(owner("x"), ""),
            fmt::format("pods \"m\" is forbidden: node n UID mismatch: expected x got {}", uid));
  EXPECT_EQ(mirror(owner(uid), R"("volumes":[{"name":"v","persistentVolumeClaim":
                                  {"claimName":"c"}}],)"),
            "pods \"m\" is forbidden: node \"n\" can not create pods that reference "
            "persistentvolumeclaims");
  EXPECT_EQ(mirror(owner(uid), ""), "");
}

TEST_F(NodeRestrictionTest, LeasesAndSlices) {
  const auto lease = [&](std::string_view name, std::string ns) {
    return Try({"create", "coordination.k8s.io", "leases",
                fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name), "", "", std::move(ns)});
  };
  Make("", "namespaces", R"({"metadata":{"name":"kube-node-lease"}})");
  EXPECT_EQ(lease("n", "default"),
            "leases.coordination.k8s.io \"n\" is forbidden: can only access "
            "leases in the \"kube-node-lease\" system namespace");
  EXPECT_EQ(lease("other", "kube-node-lease"),
            "leases.coordination.k8s.io \"other\" is forbidden: can only access node lease with "
            "the same name as the requesting node");
  EXPECT_EQ(lease("n", "kube-node-lease"), "");
  const auto slice = [&](std::string_view node) {
    return Try({"create", "resource.k8s.io", "resourceslices",
                fmt::format(R"({{"metadata":{{"name":"s"}},"spec":{{"nodeName":"{}","driver":"d",
                    "pool":{{"name":"p","generation":1,"resourceSliceCount":1}}}}}})",
                            node)});
  };
  EXPECT_EQ(slice("other"),
            "resourceslices.resource.k8s.io \"s\" is forbidden: can only create "
            "ResourceSlice with the same NodeName as the requesting node");
  EXPECT_EQ(slice("n"), "");
}

TEST_F(NodeRestrictionTest, TokensOfItsPods) {
  const auto token = [&](std::string_view pod, std::string_view uid, std::string_view audiences) {
    return Try({"create", "", "serviceaccounts",
                fmt::format(R"({{"spec":{{"audiences":[{}],"boundObjectRef":{{"apiVersion":"v1",
                    "kind":"Pod","name":"{}","uid":"{}"}}}}}})",
                            audiences, pod, uid),
                "default", "token"});
  };
  const std::string uid(Get("", "pods", "mine").uid());
  const std::string foreign(Get("", "pods", "foreign").uid());
  EXPECT_EQ(
      Try({"create", "", "serviceaccounts", R"({"spec":{"audiences":[]}})", "default", "token"}),
      "serviceaccounts \"default\" is forbidden: node requested token not bound to a pod");
  EXPECT_EQ(token("foreign", foreign, ""),
            "serviceaccounts \"default\" is forbidden: node requested token bound to a pod "
            "scheduled on a different node");
  EXPECT_EQ(token("mine", uid, R"("vault")"),
            "serviceaccounts \"default\" is forbidden: audience \"vault\" not found in pod spec "
            "volume, system:node:n is not authorized to request tokens for this audience");
  EXPECT_EQ(token("mine", uid, ""), "");
}

TEST_F(NodeRestrictionTest, OthersAreNotMeant) {
  EXPECT_TRUE(Change(Admin(), "", "nodes", "n", R"({"spec":{"taints":[]}})").ok);
}

}  // namespace
}  // namespace sextant::server
