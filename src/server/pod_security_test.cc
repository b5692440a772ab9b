#include "server/pod_security.h"

#include "server/admission_test.h"

namespace sextant::server {
namespace {

using api::Object;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LeveledPolicy kBaseline{SecurityLevel::kBaseline, kLatestMinor};
constexpr LeveledPolicy kRestricted{SecurityLevel::kRestricted, kLatestMinor};

std::string Detail(const LeveledPolicy& policy, std::string_view spec,
                   std::string_view metadata = "{}") {
  const auto parse = [](std::string_view json) { return *api::ParseJson(json); };
  const Object m = parse(metadata);
  const Object s = parse(spec);
  return Violations::Of(policy, m.root(), s.root()).Detail();
}

// The texts are those of k8s.io/pod-security-admission v0.36.3 for the same Pods.
TEST(PodSecurityPolicyTest, Baseline) {
  struct Case {
    const char* spec;
    const char* detail;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"containers":[{"name":"a"}]})", ""},
           {R"({"hostNetwork":true,"hostPID":true,"containers":[{"name":"a"}]})",
            "host namespaces (hostNetwork=true, hostPID=true)"},
           {R"({"containers":[{"name":"a","securityContext":{"privileged":true}},
                              {"name":"b","securityContext":{"privileged":true}}]})",
            R"(privileged (containers "a", "b" must not set securityContext.privileged=true))"},
           {R"({"initContainers":[{"name":"i","securityContext":{"capabilities":
                {"add":["SYS_ADMIN","CHOWN","NET_RAW"]}}}],"containers":[{"name":"a"}]})",
            R"(non-default capabilities (container "i" must not include "NET_RAW", "SYS_ADMIN" in )"
            R"(securityContext.capabilities.add))"},
           {R"({"volumes":[{"name":"v","hostPath":{"path":"/"}}],"containers":[{"name":"a"}]})",
            R"(hostPath volumes (volume "v"))"},
           {R"({"containers":[{"name":"a","ports":[{"hostPort":80},{"hostPort":443}]}]})",
            R"(hostPort (container "a" uses hostPorts 443, 80))"},
           {R"({"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"x"}}}]})",
            R"(probe or lifecycle host (container "a" uses probe or lifecycle host "x"))"},
           {R"({"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})",
            R"(procMount (container "a" must not set securityContext.procMount to "Unmasked"))"},
           {R"({"hostUsers":false,
                "containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]})",
            ""},
           {R"({"securityContext":{"seLinuxOptions":{"type":"t","user":"u"}},
                "containers":[{"name":"a"}]})",
            R"(seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "t"; )"
            R"(user may not be set))"},
           {R"({"securityContext":{"seccompProfile":{"type":"Unconfined"},
                "sysctls":[{"name":"kernel.msgmax"},{"name":"net.ipv4.tcp_rmem"}]},
                "containers":[{"name":"a"}]})",
            R"(seccompProfile (pod must not set securityContext.seccompProfile.type to )"
            R"("Unconfined"), forbidden sysctls (kernel.msgmax))"},
           {R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"},
                "windowsOptions":{"hostProcess":true}},"containers":[{"name":"a"}]})",
            R"(forbidden AppArmor profile (pod must not set AppArmor profile type to )"
            R"("Unconfined"), hostProcess (pod must not set )"
            R"(securityContext.windowsOptions.hostProcess=true))"}}) {
    EXPECT_EQ(Detail(kBaseline, c.spec), c.detail) << c.spec;
  }
  EXPECT_EQ(Detail(kBaseline, R"({"containers":[{"name":"a"}]})",
                   R"({"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"x"}})"),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
            "\"container.apparmor.security.beta.kubernetes.io/a=\"x\"\")");
}

TEST(PodSecurityPolicyTest, Restricted) {
  EXPECT_EQ(
      Detail(kRestricted, R"({"containers":[{"name":"a"}]})"),
      R"(allowPrivilegeEscalation != false (container "a" must set )"
      R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "a" )"
      R"(must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or )"
      R"(container "a" must set securityContext.runAsNonRoot=true), seccompProfile (pod or )"
      R"(container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or )"
      R"("Localhost"))");
  constexpr const char* kSound =
      R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
          "volumes":[{"name":"v","emptyDir":{}}],
          "containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,
            "capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}]})";
  EXPECT_EQ(Detail(kRestricted, kSound), "");
  EXPECT_EQ(
      Detail(kRestricted,
             R"({"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true,"runAsUser":0},
                       "volumes":[{"name":"n","nfs":{}},{"name":"h","hostPath":{}}],
                       "containers":[{"name":"a","securityContext":{"runAsNonRoot":false}}]})"),
      R"(restricted volume types (volumes "n", "h" use restricted volume types "hostPath", )"
      R"("nfs"), runAsNonRoot != true (container "a" must not set )"
      R"(securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set runAsUser=0))");
}

TEST(PodSecurityPolicyTest, AllContainersAreLookedAt) {
  EXPECT_EQ(
      Detail(kRestricted,
             R"({"securityContext":{"runAsUser":0},"containers":[{"name":"a","securityContext":
                 {"seccompProfile":{"type":"Unconfined"},"capabilities":{"add":["X"]}}},
                 {"name":"b"}],
                 "ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]})"),
      R"(privileged (container "e" must not set securityContext.privileged=true), )"
      R"(allowPrivilegeEscalation != false (containers "a", "b", "e" must set )"
      R"(securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers )"
      R"("a", "b", "e" must set securityContext.capabilities.drop=["ALL"]; container "a" must not )"
      R"(include "X" in securityContext.capabilities.add), runAsNonRoot != true (pod or containers )"
      R"("a", "b", "e" must set securityContext.runAsNonRoot=true), runAsUser=0 (pod must not set )"
      R"(runAsUser=0), seccompProfile (container "a" must not set )"
      R"(securityContext.seccompProfile.type to "Unconfined"))");
}

TEST(PodSecurityPolicyTest, OldVersionsAskLess) {
  constexpr const char* kPlain = R"({"containers":[{"name":"a"}]})";
  EXPECT_EQ(Detail({SecurityLevel::kRestricted, 7}, kPlain),
            "runAsNonRoot != true (pod or container \"a\" must set "
            "securityContext.runAsNonRoot=true)");
  EXPECT_EQ(Detail({SecurityLevel::kBaseline, 18}, kPlain,
                   R"({"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined",
                       "container.seccomp.security.alpha.kubernetes.io/a":"q"}})"),
            "seccompProfile (forbidden annotations "
            "container.seccomp.security.alpha.kubernetes.io/a=\"q\", "
            "seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")");
  constexpr const char* kProbe =
      R"({"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"x"}}}]})";
  EXPECT_EQ(Detail({SecurityLevel::kBaseline, 33}, kProbe), "");
  EXPECT_NE(Detail({SecurityLevel::kBaseline, 34}, kProbe), "");
  constexpr const char* kSysctl =
      R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}]},"containers":[]})";
  EXPECT_NE(Detail({SecurityLevel::kBaseline, 31}, kSysctl), "");
  EXPECT_EQ(Detail({SecurityLevel::kBaseline, 32}, kSysctl), "");
}

class PodSecurityTest : public AdmissionTest {
 protected:
  Answer Label(std::string_view labels) {
    return Change(Admin(), "", "namespaces", "default",
                  fmt::format(R"({{"metadata":{{"labels":{}}}}})", labels));
  }
};

TEST_F(PodSecurityTest, EnforcesTheLevel) {
  EXPECT_TRUE(Label(R"({"pod-security.kubernetes.io/enforce":"baseline"})").ok);
  EXPECT_EQ(Do(Admin(), {"create", "", "pods", Pod("p", "", R"("hostPID":true,)")}).message,
            "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces "
            "(hostPID=true)");
  EXPECT_TRUE(Do(Admin(), {"create", "", "pods", Pod("q")}).ok);
  const Answer deployment =
      Do(Admin(), {"create", "apps", "deployments", R"({"metadata":{"name":"d"},"spec":{
          "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
          "spec":{"hostPID":true,"containers":[{"name":"c","image":"i"}]}}}})"});
  EXPECT_TRUE(deployment.ok);
  EXPECT_THAT(deployment.warnings,
              ElementsAre("would violate PodSecurity \"baseline:latest\": host namespaces "
                          "(hostPID=true)"));
}

TEST_F(PodSecurityTest, WarnsOfALevelThatIsNotEnforced) {
  EXPECT_TRUE(Label(R"({"pod-security.kubernetes.io/warn":"baseline",
                        "pod-security.kubernetes.io/warn-version":"v1.30"})")
                  .ok);
  const Answer pod = Do(Admin(), {"create", "", "pods", Pod("p", "", R"("hostPID":true,)")});
  EXPECT_TRUE(pod.ok) << pod.message;
  EXPECT_THAT(pod.warnings, ElementsAre("would violate PodSecurity \"baseline:v1.30\": host "
                                        "namespaces (hostPID=true)"));
}

TEST_F(PodSecurityTest, LabelsAreChecked) {
  EXPECT_EQ(Label(R"({"pod-security.kubernetes.io/enforce":"strict",
                      "pod-security.kubernetes.io/warn-version":"1.30"})")
                .message,
            "Namespace \"default\" is invalid: "
            "[metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must "
            "be one of privileged, baseline, restricted, "
            "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.30\": "
            "must be \"latest\" or \"v1.x\"]");
}

TEST_F(PodSecurityTest, AStricterLevelTellsOfPodsThatAreThere) {
  Make("", "pods", Pod("b", "", R"("hostPID":true,)"));
  Make("", "pods", Pod("a", "", R"("hostPID":true,)"));
  Make("", "pods", Pod("c"));
  EXPECT_THAT(Label(R"({"pod-security.kubernetes.io/enforce":"baseline"})").warnings,
              ElementsAre("existing pods in namespace \"default\" violate the new PodSecurity "
                          "enforce level \"baseline:latest\"",
                          "a (and 1 other pod): host namespaces"));
  EXPECT_THAT(Label(R"({"pod-security.kubernetes.io/enforce":"privileged"})").warnings, IsEmpty());
}

}  // namespace
}  // namespace sextant::server
