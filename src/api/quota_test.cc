#include "api/quota.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace sextant::api {
namespace {

std::string Text(const Amounts& amounts) {
  std::string out;
  for (const auto& [name, q] : amounts) {
    out += (out.empty() ? "" : " ") + name + "=" + q.ToString();
  }
  return out;
}

TEST(PodAmounts, AreWhatThePodNeedsAtMost) {
  struct Case {
    const char* pod;
    const char* requests;
    const char* limits;
  };
  for (const Case& c : std::vector<Case>{
           {R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"a/b":"2"}}},
               {"resources":{"requests":{"cpu":"500m"}}}]}})",
            "cpu=1500m", "a/b=2"},
           // An init container runs beside the restartable ones before it, and alone otherwise.
           {R"({"spec":{"initContainers":[
               {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
               {"resources":{"requests":{"cpu":"3"}}}],
               "containers":[{"resources":{"requests":{"cpu":"2"}}}]}})",
            "cpu=4", ""},
           {R"({"spec":{"initContainers":[
               {"resources":{"requests":{"cpu":"2500m"}}},
               {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}],
               "containers":[{"resources":{"requests":{"cpu":"2"}}}]}})",
            "cpu=3", ""},
           // The Pod's own word counts; overhead comes on top, for limits where there are any.
           {R"({"spec":{"resources":{"requests":{"cpu":"8"},"limits":{"memory":"1Gi"}},
               "overhead":{"cpu":"1","memory":"1Gi"},
               "containers":[{"resources":{"requests":{"cpu":"2","x/y":"1"}}}]}})",
            "cpu=9 memory=1Gi x/y=1", "memory=2Gi"},
           // A resize under way: the larger of what was and what will be.
           {R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},
               "status":{"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"2"},
                 "resources":{"requests":{"cpu":"3"}}}]}})",
            "cpu=3", ""},
           {R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"9"}}}]},
               "status":{"conditions":[{"type":"PodResizePending","reason":"Infeasible"}],
                 "containerStatuses":[{"name":"c","allocatedResources":{"cpu":"2"},
                 "resources":{"requests":{"cpu":"1"}}}]}})",
            "cpu=2", ""}}) {
    const Object pod = *ParseJson(c.pod);
    EXPECT_EQ(Text(PodAmounts(pod.root(), "requests")), c.requests) << c.pod;
    EXPECT_EQ(Text(PodAmounts(pod.root(), "limits")), c.limits) << c.pod;
  }
}

TEST(QuotaKind, TracksItsNames) {
  const QuotaKind pods("", "pods");
  for (const char* name : {"pods", "count/pods", "cpu", "limits.memory", "requests.nvidia.com/gpu",
                           "requests.hugepages-2Mi", "hugepages-2Mi"}) {
    EXPECT_TRUE(pods.Tracks(name)) << name;
  }
  for (const char* name : {"count/services", "nvidia.com/gpu", "requests.storage", "secrets",
                           "limits.nvidia.com/gpu", "requests.kubernetes.io/x"}) {
    EXPECT_FALSE(pods.Tracks(name)) << name;
  }
  EXPECT_TRUE(QuotaKind("", "secrets").Tracks("secrets"));
  EXPECT_FALSE(QuotaKind("example.com", "secrets").Tracks("secrets"));
  EXPECT_TRUE(QuotaKind("example.com", "things").Tracks("count/things.example.com"));
  EXPECT_TRUE(QuotaKind("", "persistentvolumeclaims")
                  .Tracks("gold.storageclass.storage.k8s.io/requests.storage"));
  EXPECT_FALSE(QuotaKind("", "events").Counted());
  EXPECT_FALSE(QuotaKind("authorization.k8s.io", "subjectaccessreviews").Counted());
  EXPECT_TRUE(QuotaKind("batch", "jobs").Counted());
}

TEST(QuotaKind, MeasuresUsage) {
  struct Case {
    const char* group;
    const char* plural;
    const char* object;
    const char* usage;
  };
  for (const Case& c : std::vector<Case>{
           {"", "pods",
            R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"1","nvidia.com/gpu":"2",
                "hugepages-2Mi":"4Mi"},"limits":{"memory":"1Gi"}}}]}})",
            "count/pods=1 cpu=1 hugepages-2Mi=4Mi limits.memory=1Gi pods=1 requests.cpu=1 "
            "requests.hugepages-2Mi=4Mi requests.nvidia.com/gpu=2"},
           {"", "pods", R"({"spec":{"containers":[{}]},"status":{"phase":"Succeeded"}})",
            "count/pods=1"},
           {"", "pods",
            R"({"metadata":{"deletionTimestamp":"2025-12-31T23:59:00Z",
                "deletionGracePeriodSeconds":30},"spec":{"containers":[{}]}})",
            "count/pods=1"},
           {"", "services",
            R"({"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,
                "ports":[{"nodePort":30000},{}]}})",
            "count/services=1 services=1 services.loadbalancers=1 services.nodeports=1"},
           {"", "persistentvolumeclaims",
            R"({"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1500m"}}},
                "status":{"allocatedResources":{"storage":"3"}}})",
            "count/persistentvolumeclaims=1 "
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 "
            "gold.storageclass.storage.k8s.io/requests.storage=3 persistentvolumeclaims=1 "
            "requests.storage=3"},
           {"", "configmaps", "{}", "configmaps=1 count/configmaps=1"}}) {
    const Object object = *ParseJson(c.object);
    const Time now = *ParseTime("2026-01-01T00:00:00Z");
    EXPECT_EQ(Text(QuotaKind(c.group, c.plural).Usage(object.root(), now)), c.usage) << c.object;
  }
}

TEST(QuotaKind, KnowsScopes) {
  struct Case {
    const char* plural;
    const char* spec;  // of the quota
    const char* object;
    bool in;
  };
  constexpr const char* kHigh = R"({"spec":{"priorityClassName":"high","containers":[{}]}})";
  constexpr const char* kPlain = R"({"spec":{"containers":[{}]}})";
  const auto selector = [](std::string_view op, std::string_view values) {
    return R"({"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":")" +
           std::string(op) + R"(","values":)" + std::string(values) + "}]}}";
  };
  const std::string in_high = selector("In", R"(["high"])");
  const std::string not_in_high = selector("NotIn", R"(["high"])");
  const std::string none = selector("DoesNotExist", "[]");
  for (
      const Case& c : std::vector<Case>{
          {"pods", "{}", kPlain, true},
          {"pods", R"({"scopes":["BestEffort"]})", kPlain, true},
          {"pods", R"({"scopes":["NotBestEffort"]})", kPlain, false},
          {"pods", R"({"scopes":["BestEffort","Terminating"]})", kPlain, false},
          {"pods", R"({"scopes":["PriorityClass"]})", kHigh, true},
          {"pods", R"({"scopes":["PriorityClass"]})", kPlain, false},
          {"pods", in_high.c_str(), kHigh, true},
          {"pods", in_high.c_str(), kPlain, false},
          {"pods", not_in_high.c_str(), kPlain, true},
          {"pods", not_in_high.c_str(), kHigh, false},
          {"pods", none.c_str(), kPlain, true},
          {"pods", R"({"scopes":["CrossNamespacePodAffinity"]})",
           R"({"spec":{"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":
                [{"podAffinityTerm":{"namespaceSelector":{}}}]}}}})",
           true},
          {"configmaps", R"({"scopes":["BestEffort"]})", "{}", false}}) {
    const Object quota = *ParseJson(R"({"spec":)" + std::string(c.spec) + "}");
    const Object object = *ParseJson(c.object);
    EXPECT_EQ(QuotaKind("", c.plural).InScopes(quota.root(), object.root()), c.in)
        << c.spec << c.object;
  }
}

}  // namespace
}  // namespace sextant::api
