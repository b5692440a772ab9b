#include "server/admission_test.h"

namespace sextant::server {
namespace {

using LimitRangerTest = AdmissionTest;

std::string Range(std::string_view limits) {
  return fmt::format(R"({{"metadata":{{"name":"r"}},"spec":{{"limits":[{}]}}}})", limits);
}

TEST_F(LimitRangerTest, ContainersTakeTheDefaults) {
  Make("", "limitranges", Range(R"({"type":"Container","default":{"cpu":"500m","memory":"1Gi"},
                                    "defaultRequest":{"cpu":"100m"}})"));
  const Answer pod = Do(Admin(), {"create", "", "pods", R"({"metadata":{"name":"p"},"spec":{
      "initContainers":[{"name":"i","image":"i"}],
      "containers":[{"name":"a","image":"i","resources":{"limits":{"cpu":"1"}}}]}})"});
  ASSERT_TRUE(pod.ok) << pod.message;
  EXPECT_EQ(api::ToJson(pod["spec"]["containers"].at(0)["resources"]),
            R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}})");
  EXPECT_EQ(api::ToJson(pod["spec"]["initContainers"].at(0)["resources"]),
            R"({"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}})");
  EXPECT_EQ(pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"].AsString(),
            "LimitRanger plugin set: memory request for container a; memory limit for container a; "
            "cpu, memory request for init container i; cpu, memory limit for init container i");
}

TEST_F(LimitRangerTest, PodsStayWithinLimits) {
  struct Case {
    const char* limits;
    const char* resources;
    const char* why;  // empty: admitted
  };
  for (const Case& c : std::vector<Case>{
           {R"({"type":"Container","min":{"cpu":"100m"}})", R"({"requests":{"cpu":"50m"}})",
            "minimum cpu usage per Container is 100m, but request is 50m"},
           {R"({"type":"Pod","min":{"example.com/a":"1"}})", "{}",
            "minimum example.com/a usage per Pod is 1.  No request is specified"},
           {R"({"type":"Container","max":{"nvidia.com/gpu":"2"}})",
            R"({"limits":{"nvidia.com/gpu":"3"}})",
            "maximum nvidia.com/gpu usage per Container is 2, but limit is 3"},
           {R"({"type":"Container","max":{"nvidia.com/gpu":"2"}})",
            R"({"limits":{"nvidia.com/gpu":"2"}})", ""},
           {R"({"type":"Pod","max":{"cpu":"1"}})", R"({"requests":{"cpu":"2"}})",
            "maximum cpu usage per Pod is 1.  No limit is specified"},
           {R"({"type":"Pod","max":{"cpu":"1","memory":"1Gi"}})",
            R"({"limits":{"cpu":"2","memory":"2Gi"}})",
            "[maximum cpu usage per Pod is 1, but limit is 2, maximum memory usage per Pod is 1Gi, "
            "but limit is 2Gi]"},
           {R"({"type":"Container","maxLimitRequestRatio":{"memory":"2"}})",
            R"({"requests":{"memory":"1Gi"},"limits":{"memory":"3Gi"}})",
            "memory max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
           {R"({"type":"Container","maxLimitRequestRatio":{"memory":"2"}})",
            R"({"requests":{"memory":"1Gi"},"limits":{"memory":"2Gi"}})", ""},
           {R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}})", "{}",
            "cpu max limit to request ratio per Container is 2, but no request is specified or "
            "request is 0"}}) {
    Make("", "limitranges", Range(c.limits));
    const Answer pod = Do(
        Admin(), {"create", "", "pods", Pod("p", fmt::format(R"(,"resources":{})", c.resources))});
    const std::string_view why = c.why;
    EXPECT_EQ(pod.message, why.empty() ? "" : fmt::format("pods \"p\" is forbidden: {}", why))
        << c.limits << c.resources;
    if (pod.ok) {
      Do(Admin(), {"delete", "", "pods", R"({"gracePeriodSeconds":0})", "p"});
    }
    Do(Admin(), {"delete", "", "limitranges", "", "r"});
  }
}

TEST_F(LimitRangerTest, ClaimsStayWithinLimits) {
  Make("", "limitranges", Range(R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},
                                    "max":{"storage":"2Gi"}})"));
  const auto claim = [&](std::string_view size) {
    return Do(Admin(), {"create", "", "persistentvolumeclaims",
                        fmt::format(R"({{"metadata":{{"name":"c"}},"spec":{{"accessModes":
                            ["ReadWriteOnce"],"resources":{{"requests":{{"storage":"{}"}}}}}}}})",
                                    size)})
        .message;
  };
  EXPECT_EQ(claim("3Gi"),
            "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per "
            "PersistentVolumeClaim is 2Gi, but request is 3Gi");
  EXPECT_EQ(claim("512Mi"),
            "persistentvolumeclaims \"c\" is forbidden: minimum storage usage per "
            "PersistentVolumeClaim is 1Gi, but request is 512Mi");
  EXPECT_EQ(claim("1Gi"), "");
}

}  // namespace
}  // namespace sextant::server
