#include "server/admission_test.h"

namespace sextant::server {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";

class EscalationTest : public AdmissionTest {
 protected:
  EscalationTest() {
    Make(kRbac, "clusterroles", R"({"metadata":{"name":"own"},"rules":[
        {"apiGroups":[""],"resources":["pods","*/scale"],"verbs":["get","list"]},
        {"apiGroups":["apps"],"resources":["*"],"verbs":["*"]},
        {"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"],"verbs":["get"]},
        {"nonResourceURLs":["/healthz/*"],"verbs":["get"]}]})");
    Make(kRbac, "clusterrolebindings", R"({"metadata":{"name":"own"},"roleRef":{
        "apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"own"},
        "subjects":[{"kind":"User","name":"dev","apiGroup":"rbac.authorization.k8s.io"}]})");
  }
  static User Dev() { return {"dev", "", {"devs", "system:authenticated"}, {}}; }
  std::string Role(std::string_view rules) {
    return Do(Dev(), {"create", kRbac, "clusterroles",
                      fmt::format(R"({{"metadata":{{"name":"new"}},"rules":[{}]}})", rules)})
        .message;
  }
  static std::string Refusal(std::string_view resource, std::string_view name,
                             std::string_view rights) {
    return fmt::format(
        "{}.rbac.authorization.k8s.io \"{}\" is forbidden: user \"dev\" (groups=[\"devs\" "
        "\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n"
        "{}",
        resource, name, rights);
  }
};

TEST_F(EscalationTest, RolesGiveWhatTheirMakerHolds) {
  EXPECT_EQ(Role(R"({"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]},
                    {"apiGroups":["apps"],"resources":["deployments/status"],"verbs":["patch"]},
                    {"apiGroups":[""],"resources":["things/scale"],"verbs":["get"]},
                    {"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"],"verbs":["get"]},
                    {"nonResourceURLs":["/healthz/ping"],"verbs":["get"]})"),
            "");
}

TEST_F(EscalationTest, AndNoMore) {
  EXPECT_EQ(Role(R"({"apiGroups":["","batch"],"resources":["pods","secrets"],
                     "verbs":["get","delete"]})"),
            Refusal("clusterroles", "new",
                    R"({APIGroups:[""], Resources:["pods"], Verbs:["delete"]})"
                    "\n"
                    R"({APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]})"
                    "\n"
                    R"({APIGroups:["batch"], Resources:["pods"], Verbs:["get" "delete"]})"
                    "\n"
                    R"({APIGroups:["batch"], Resources:["secrets"], Verbs:["get" "delete"]})"));
  EXPECT_EQ(Role(R"({"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"],
                     "verbs":["get"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]})"),
            Refusal("clusterroles", "new",
                    R"({APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]})"
                    "\n"
                    R"({NonResourceURLs:["/metrics"], Verbs:["get"]})"));
  EXPECT_EQ(Do(Dev(), {"create", kRbac, "clusterroles", R"({"metadata":{"name":"new"},
                "aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}})"})
                .message,
            "clusterroles.rbac.authorization.k8s.io \"new\" is forbidden: must have cluster-admin "
            "privileges to use the aggregationRule");
}

TEST_F(EscalationTest, UpdatesAreChecked) {
  Make(kRbac, "roles", R"({"metadata":{"name":"r"},"rules":[
      {"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]})");
  EXPECT_EQ(Change(Dev(), kRbac, "roles", "r", R"({"metadata":{"labels":{"a":"b"}}})").message,
            Refusal("roles", "r", R"({APIGroups:[""], Resources:["nodes"], Verbs:["get"]})"));
  // What the garbage collector has to do.
  EXPECT_EQ(Change(Dev(), kRbac, "roles", "r", R"({"metadata":{"finalizers":["a/b"]}})").message,
            "");
}

TEST_F(EscalationTest, BindingsToo) {
  Make(kRbac, "clusterroles", R"({"metadata":{"name":"big"},"rules":[
      {"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]})");
  const auto bind = [&](std::string_view role) {
    return Do(Dev(), {"create", kRbac, "rolebindings",
                      fmt::format(R"({{"metadata":{{"name":"b-{}"}},"roleRef":{{"apiGroup":
                          "rbac.authorization.k8s.io","kind":"ClusterRole","name":"{}"}},
                          "subjects":[]}})",
                                  role, role)})
        .message;
  };
  EXPECT_EQ(bind("own"), "");
  EXPECT_EQ(bind("big"),
            Refusal("rolebindings", "b-big", R"({APIGroups:["*"], Resources:["*"], Verbs:["*"]})"));
  EXPECT_EQ(bind("none"), "rolebindings.rbac.authorization.k8s.io \"none\" not found");
}

TEST_F(EscalationTest, WhoMayBindOrEscalateMay) {
  Make(kRbac, "clusterroles", R"({"metadata":{"name":"big"},"rules":[
      {"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]})");
  Make(kRbac, "clusterroles", R"({"metadata":{"name":"power"},"rules":[
      {"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],
       "resourceNames":["big"],"verbs":["bind"]},
      {"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}]})");
  Make(kRbac, "clusterrolebindings", R"({"metadata":{"name":"power"},"roleRef":{
      "apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"power"},
      "subjects":[{"kind":"Group","name":"devs","apiGroup":"rbac.authorization.k8s.io"}]})");
  EXPECT_TRUE(Do(Dev(), {"create", kRbac, "clusterrolebindings", R"({"metadata":{"name":"b"},
      "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"big"},
      "subjects":[]})"})
                  .ok);
  EXPECT_TRUE(Do(Dev(), {"create", kRbac, "roles", R"({"metadata":{"name":"r"},"rules":[
      {"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]})"})
                  .ok);
}

}  // namespace
}  // namespace sextant::server
