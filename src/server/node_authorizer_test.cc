#include "server/node_authorizer.h"

#include "server/admission_test.h"

namespace sextant::server {
namespace {

class NodeAuthorizerTest : public AdmissionTest {
 protected:
  NodeAuthorizerTest() {
    Make("", "nodes", R"({"metadata":{"name":"n"}})");
    Make("", "pods",
         Pod("mine", R"(,"envFrom":[{"secretRef":{"name":"env"}}])",
             R"("nodeName":"n","resourceClaims":[{"name":"g","resourceClaimName":
                            "gpus"}],"volumes":[{"name":"v","configMap":{"name":"files"}},
                            {"name":"w","persistentVolumeClaim":{"claimName":"disk"}}],)"));
    Make("", "pods",
         Pod("foreign", R"(,"envFrom":[{"secretRef":{"name":"other"}}])", R"("nodeName":"m",)"));
    Make("", "persistentvolumes", R"({"metadata":{"name":"v1"},"spec":{"capacity":{"storage":"1Gi"},
        "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},
        "claimRef":{"namespace":"default","name":"disk"}}})");
  }

  // "" if allowed, else the reason; "no" for none.
  std::string Try(std::string verb, std::string group, std::string resource, std::string name = "",
                  std::string subresource = "", std::string selector = "",
                  std::string ns = "default") {
    RequestInfo info;
    info.is_resource = true;
    info.verb = std::move(verb);
    info.group = std::move(group);
    info.resource = std::move(resource);
    info.name = std::move(name);
    info.subresource = std::move(subresource);
    info.field_selector = std::move(selector);
    info.ns = std::move(ns);
    const Decision decision = AuthorizeNode(Node("n"), info, *pipeline);
    if (decision.allowed) return "";
    return decision.reason.empty() ? "no" : decision.reason;
  }
};

TEST_F(NodeAuthorizerTest, ReadsWhatItsPodsReferTo) {
  const std::string unrelated = "no relationship found between node 'n' and this object";
  EXPECT_EQ(Try("get", "", "secrets", "env"), "");
  EXPECT_EQ(Try("watch", "", "secrets", "env"), "");
  EXPECT_EQ(Try("get", "", "secrets", "other"), unrelated);
  EXPECT_EQ(Try("list", "", "secrets"), "No Object name found");
  EXPECT_EQ(Try("delete", "", "secrets", "env"), "can only read resources of this type");
  EXPECT_EQ(Try("get", "", "configmaps", "files"), "");
  EXPECT_EQ(Try("get", "", "persistentvolumeclaims", "disk"), "");
  EXPECT_EQ(Try("get", "", "persistentvolumeclaims", "x"), unrelated);
  EXPECT_EQ(Try("patch", "", "persistentvolumeclaims", "disk", "status"), "");
  EXPECT_EQ(Try("get", "", "persistentvolumes", "v1", "", "", ""), "");
  EXPECT_EQ(Try("get", "", "persistentvolumes", "v2", "", "", ""), unrelated);
  EXPECT_EQ(Try("get", "resource.k8s.io", "resourceclaims", "gpus"), "");
  EXPECT_EQ(Try("list", "resource.k8s.io", "resourceclaims"),
            "can only get individual resources of this type");
  EXPECT_EQ(Try("create", "", "serviceaccounts", "default", "token"), "");
  EXPECT_EQ(Try("create", "", "serviceaccounts", "x", "token"), unrelated);
}

TEST_F(NodeAuthorizerTest, ReadsItselfAndItsPods) {
  EXPECT_EQ(Try("get", "", "nodes", "n"), "");
  EXPECT_EQ(Try("get", "", "nodes", "m"), "node 'n' cannot read 'm', only its own Node object");
  EXPECT_EQ(Try("list", "", "nodes"), "node 'n' cannot read all nodes, only its own Node object");
  EXPECT_EQ(Try("delete", "", "nodes", "n"), "no");
  EXPECT_EQ(Try("get", "", "pods", "mine"), "");
  EXPECT_EQ(Try("get", "", "pods", "foreign"),
            "no relationship found between node 'n' and this object");
  EXPECT_EQ(Try("list", "", "pods", "", "", "spec.nodeName=n", ""), "");
  EXPECT_EQ(Try("list", "", "pods", "", "", "spec.nodeName=m", ""),
            "can only list/watch pods with spec.nodeName field selector");
  EXPECT_EQ(Try("list", "", "pods"), "can only list/watch pods with spec.nodeName field selector");
  EXPECT_EQ(Try("get", "", "pods", "mine", "log"), "no");
}

TEST_F(NodeAuthorizerTest, ItsLeaseAndSlices) {
  EXPECT_EQ(Try("update", "coordination.k8s.io", "leases", "n", "", "", "kube-node-lease"), "");
  EXPECT_EQ(Try("update", "coordination.k8s.io", "leases", "n"),
            "can only access leases in the \"kube-node-lease\" system namespace");
  EXPECT_EQ(Try("list", "resource.k8s.io", "resourceslices", "", "", "spec.nodeName=n", ""), "");
  EXPECT_EQ(Try("deletecollection", "resource.k8s.io", "resourceslices", "", "", "", ""),
            "can only list/watch/deletecollection resourceslices with nodeName field selector");
}

TEST_F(NodeAuthorizerTest, TheRestIsTheRole) {
  EXPECT_EQ(Try("list", "", "services"), "no");
  Make("rbac.authorization.k8s.io", "clusterroles", R"({"metadata":{"name":"system:node"},"rules":[
      {"apiGroups":[""],"resources":["services"],"verbs":["list"]}]})");
  EXPECT_EQ(Try("list", "", "services"), "");
}

TEST_F(NodeAuthorizerTest, RefusalsSayWhy) {
  const Answer answer = Do(Node("n"), {"list", "", "nodes", ""}, true);
  EXPECT_EQ(
      answer.message,
      "nodes is forbidden: User \"system:node:n\" cannot list resource \"nodes\" in API group "
      "\"\" at the cluster scope: node 'n' cannot read all nodes, only its own Node object");
}

}  // namespace
}  // namespace sextant::server
