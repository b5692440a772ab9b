#include "server/admission_test.h"

namespace sextant::server {
namespace {

using ::testing::HasSubstr;

class QuotaTest : public AdmissionTest {
 protected:
  // A quota whose use is counted already, as its controller would.
  void Quota(std::string_view name, std::string_view hard, std::string_view used,
             std::string_view scopes = "") {
    Make("", "resourcequotas",
         fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}"hard":{}}}}})", name, scopes,
                     hard));
    const Answer counted =
        Change(Admin(), "", "resourcequotas", std::string(name),
               fmt::format(R"({{"status":{{"hard":{},"used":{}}}}})", hard, used), "status");
    ASSERT_TRUE(counted.ok) << counted.message;
  }
  std::string Used(std::string_view name) {
    return api::ToJson(Get("", "resourcequotas", name)["status"]["used"]);
  }
  std::string CreatePod(std::string_view name, std::string_view resources = "{}",
                        std::string_view spec = "") {
    return Do(Admin(),
              {"create", "", "pods", Pod(name, fmt::format(R"(,"resources":{})", resources), spec)})
        .message;
  }
};

TEST_F(QuotaTest, PodsTakeWhatTheyAskFor) {
  Quota("q", R"({"pods":"2","requests.nvidia.com/gpu":"8","count/pods":"9"})",
        R"({"pods":"0","requests.nvidia.com/gpu":"0","count/pods":"0"})");
  EXPECT_EQ(CreatePod("a", R"({"limits":{"nvidia.com/gpu":"6"}})"), "");
  EXPECT_EQ(Used("q"), R"({"count/pods":"1","pods":"1","requests.nvidia.com/gpu":"6"})");
  EXPECT_EQ(CreatePod("b", R"({"limits":{"nvidia.com/gpu":"4"}})"),
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=4, "
            "used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8");
  EXPECT_EQ(CreatePod("b"), "");
  EXPECT_EQ(CreatePod("c", R"({"limits":{"nvidia.com/gpu":"3"}})"),
            "pods \"c\" is forbidden: exceeded quota: q, requested: "
            "pods=1,requests.nvidia.com/gpu=3, used: pods=2,requests.nvidia.com/gpu=6, limited: "
            "pods=2,requests.nvidia.com/gpu=8");
  EXPECT_EQ(Used("q"), R"({"count/pods":"2","pods":"2","requests.nvidia.com/gpu":"6"})");
}

// Two requests that are under way at the same time cannot take the same rest.
TEST_F(QuotaTest, NothingIsTakenTwice) {
  Quota("q", R"({"count/configmaps":"3"})", R"({"count/configmaps":"0"})");
  int made = 0;
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    Operation op = OperationOf(Admin(), {"create", "", "configmaps",
                                         fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i)});
    op.authorized = true;
    pipeline->Execute(std::move(op), [&](Result<Outcome> result) {
      if (result) return static_cast<void>(++made);
      ++refused;
      EXPECT_THAT(result.error().message, HasSubstr("exceeded quota: q"));
    });
  }
  loop.RunReady();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(Used("q"), R"({"count/configmaps":"3"})");
}

TEST_F(QuotaTest, WhatIsNotStoredIsNotTaken) {
  Quota("q", R"({"count/configmaps":"2"})", R"({"count/configmaps":"0"})");
  const Ask ask{"create", "", "configmaps", R"({"metadata":{"name":"m"}})"};
  EXPECT_EQ(Do(Admin(), ask).message, "");
  EXPECT_EQ(Do(Admin(), ask).message, "configmaps \"m\" already exists");
  EXPECT_EQ(Used("q"), R"({"count/configmaps":"1"})");
}

TEST_F(QuotaTest, ComputeMustBeNamed) {
  Quota("q", R"({"limits.cpu":"4","requests.memory":"4Gi"})",
        R"({"limits.cpu":"0","requests.memory":"0"})");
  EXPECT_EQ(CreatePod("a", "{}", R"("initContainers":[{"name":"i","image":"i","resources":
                {"requests":{"memory":"1Gi"}}}],)"),
            "pods \"a\" is forbidden: failed quota: q: must specify limits.cpu for: c,i; "
            "requests.memory for: c");
  EXPECT_EQ(CreatePod("a", R"({"limits":{"cpu":"1"},"requests":{"memory":"1Gi"}})"), "");
  EXPECT_EQ(Used("q"), R"({"limits.cpu":"1","requests.memory":"1Gi"})");
}

TEST_F(QuotaTest, AQuotaThatIsNotCountedYetLetsNothingPass) {
  Make("", "resourcequotas", R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"2"}}})");
  EXPECT_EQ(CreatePod("a"), "");  // its status names no limit yet
  Change(Admin(), "", "resourcequotas", "q", R"({"status":{"hard":{"pods":"2"}}})", "status");
  EXPECT_EQ(CreatePod("b"),
            "pods \"b\" is forbidden: status unknown for quota: q, resources: pods");
}

TEST_F(QuotaTest, ScopesTellPodsApart) {
  Quota("best", R"({"pods":"1"})", R"({"pods":"0"})", R"("scopes":["BestEffort"],)");
  Quota("batch", R"({"pods":"1"})", R"({"pods":"0"})", R"("scopes":["Terminating"],)");
  EXPECT_EQ(CreatePod("a", R"({"requests":{"cpu":"1"}})"), "");
  EXPECT_EQ(CreatePod("b"), "");
  EXPECT_EQ(Used("best"), R"({"pods":"1"})");
  EXPECT_EQ(Used("batch"), R"({"pods":"0"})");
  EXPECT_THAT(CreatePod("c"), HasSubstr("exceeded quota: best"));
  EXPECT_EQ(CreatePod("d", R"({"requests":{"cpu":"1"}})", R"("activeDeadlineSeconds":9,)"), "");
  EXPECT_EQ(Used("batch"), R"({"pods":"1"})");
}

TEST_F(QuotaTest, UpdatesTakeTheIncrease) {
  Quota("q", R"({"services.nodeports":"3","services":"5"})",
        R"({"services.nodeports":"0","services":"0"})");
  Make("", "services", R"({"metadata":{"name":"s"},"spec":{"type":"NodePort",
      "ports":[{"name":"a","port":1},{"name":"b","port":2}]}})");
  EXPECT_EQ(Used("q"), R"({"services":"1","services.nodeports":"2"})");
  EXPECT_EQ(
      Change(Admin(), "", "services", "s", R"({"spec":{"ports":[{"name":"a","port":1},
                {"name":"b","port":2},{"name":"c","port":3},{"name":"d","port":4}]}})")
          .message,
      "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: "
      "services.nodeports=2, limited: services.nodeports=3");
  EXPECT_EQ(Change(Admin(), "", "services", "s", R"({"spec":{"ports":[{"name":"a","port":1},
                {"name":"b","port":2},{"name":"c","port":3}]}})")
                .message,
            "");
  EXPECT_EQ(Used("q"), R"({"services":"1","services.nodeports":"3"})");
}

TEST_F(QuotaTest, DryRunTakesNothing) {
  Quota("q", R"({"count/configmaps":"1"})", R"({"count/configmaps":"0"})");
  Operation op = OperationOf(Admin(), {"create", "", "configmaps", R"({"metadata":{"name":"m"}})"});
  op.authorized = true;
  op.options.dry_run_values = {"All"};
  bool ok = false;
  pipeline->Execute(std::move(op), [&](Result<Outcome> result) { ok = result.has_value(); });
  loop.RunReady();
  EXPECT_TRUE(ok);
  EXPECT_EQ(Used("q"), R"({"count/configmaps":"0"})");
}

TEST_F(QuotaTest, KindsOfOtherGroupsCountByName) {
  Quota("q", R"({"count/deployments.apps":"0"})", R"({"count/deployments.apps":"0"})");
  EXPECT_EQ(Do(Admin(), {"create", "apps", "deployments", R"({"metadata":{"name":"d"},"spec":{
                "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
                "spec":{"containers":[{"name":"c","image":"i"}]}}}})"})
                .message,
            "deployments.apps \"d\" is forbidden: exceeded quota: q, requested: "
            "count/deployments.apps=1, used: count/deployments.apps=0, limited: "
            "count/deployments.apps=0");
}

TEST_F(QuotaTest, DevicesCountByClass) {
  Quota("q", R"({"gpu.nvidia.com.deviceclass.resource.k8s.io/devices":"4"})",
        R"({"gpu.nvidia.com.deviceclass.resource.k8s.io/devices":"0"})");
  const auto claim = [&](std::string_view name, std::string_view request) {
    return Do(Admin(),
              {"create", "resource.k8s.io", "resourceclaims",
               fmt::format(
                   R"({{"metadata":{{"name":"{}"}},"spec":{{"devices":{{"requests":[{}]}}}}}})",
                   name, request)})
        .message;
  };
  EXPECT_EQ(claim("a", R"({"name":"r","exactly":{"deviceClassName":"gpu.nvidia.com","count":3}})"),
            "");
  EXPECT_THAT(claim("b", R"({"name":"r","exactly":{"deviceClassName":"gpu.nvidia.com",
                             "allocationMode":"All"}})"),
              HasSubstr("devices=32, used: "));
  EXPECT_THAT(claim("c", R"({"name":"r","firstAvailable":[
                  {"name":"x","deviceClassName":"gpu.nvidia.com","count":1},
                  {"name":"y","deviceClassName":"gpu.nvidia.com","count":2}]})"),
              HasSubstr("devices=2, used: "));
  EXPECT_EQ(Used("q"), R"({"gpu.nvidia.com.deviceclass.resource.k8s.io/devices":"3"})");
}

}  // namespace
}  // namespace sextant::server
