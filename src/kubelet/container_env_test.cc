#include "kubelet/container_env.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "kubelet/ip_pool.h"
#include "kubelet/pod_model.h"
#include "kubelet/pod_status.h"

namespace sextant::kubelet {
namespace {

using api::Object;

Object Json(std::string_view text) {
  auto object = api::ParseJson(text);
  EXPECT_TRUE(object);
  return object ? *object : Object();
}

TEST(ExpandTest, AsKubernetesDoes) {
  const auto lookup = [](std::string_view name) -> std::optional<std::string> {
    if (name == "A") return "a";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  // third_party/forked/golang/expansion/expand_test.go has the same kinds of cases.
  const std::pair<const char*, const char*> cases[] = {
      {"$(A)", "a"},      {"___$(A)___", "___a___"},
      {"$(A)$(A)", "aa"}, {"$(NO)", "$(NO)"},
      {"$$(A)", "$(A)"},  {"$$$(A)", "$a"},
      {"$(EMPTY)", ""},   {"$A", "$A"},
      {"a$", "a$"},       {"$(A", "$(A"},
      {"$()", "$()"},     {"$$", "$"},
      {"\n$(A)", "\na"},  {"$(A)$$$(", "a$$("}};
  for (const auto& [text, wanted] : cases) EXPECT_EQ(Expand(text, lookup), wanted) << text;
}

class EnvTest : public ::testing::Test {
 protected:
  Result<Env> Build(std::string_view container, const Sources& sources = {}) {
    container_ = Json(container);
    pod_ = Json(R"({"metadata":{"name":"p","namespace":"ns","labels":{"b":"2","a":"1"}},
      "spec":{"nodeName":"worker","containers":[]}})");
    return BuildEnv(
        {pod_, container_.root(), "10.1.1.1", "172.18.0.2", {{"SERVICE", "svc"}}, node_.root()},
        sources);
  }
  Object pod_;
  Object container_;
  Object node_ = Json(R"({"status":{"allocatable":{"cpu":"8","memory":"32Gi"}}})");
};

TEST_F(EnvTest, DownwardApi) {
  auto env = Build(R"j({"resources":{"limits":{"cpu":"1500m"},"requests":{"memory":"100M"}},"env":[
    {"name":"NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
    {"name":"LABELS","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}},
    {"name":"LABEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}},
    {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
    {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
    {"name":"MILLI","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1m"}}},
    {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Gi"}}},
    {"name":"REQ","valueFrom":{"resourceFieldRef":{"resource":"requests.memory","divisor":"1Mi"}}},
    {"name":"BOTH","value":"$(NAME)@$(SERVICE)"}]})j");
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ((*env)["NAME"], "p");
  EXPECT_EQ((*env)["LABELS"], "a=\"1\"\nb=\"2\"");
  EXPECT_EQ((*env)["LABEL"], "1");
  EXPECT_EQ((*env)["IP"], "10.1.1.1");
  EXPECT_EQ((*env)["CPU"], "2");
  EXPECT_EQ((*env)["MILLI"], "1500");
  EXPECT_EQ((*env)["MEM"], "32");  // no limit: the node's
  EXPECT_EQ((*env)["REQ"], "96");
  EXPECT_EQ((*env)["BOTH"], "p@svc");
  EXPECT_EQ((*env)["SERVICE"], "svc");
}

TEST_F(EnvTest, SourcesAndWhatIsMissing) {
  Sources sources;
  sources.config_maps.emplace("cm", Json(R"({"data":{"K":"v"}})"));
  sources.secrets.emplace("s", Json(R"({"data":{"P":"cGFzcw=="}})"));
  sources.config_maps.emplace("gone", Fail(NotFound({"", "configmaps"}, "gone")));
  auto env = Build(R"({"envFrom":[{"prefix":"X_","configMapRef":{"name":"cm"}},
    {"secretRef":{"name":"s"}},{"configMapRef":{"name":"gone","optional":true}}],
    "env":[{"name":"P","valueFrom":{"secretKeyRef":{"name":"s","key":"P"}}},
    {"name":"Q","valueFrom":{"configMapKeyRef":{"name":"cm","key":"no","optional":true}}}]})",
                   sources);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ((*env)["X_K"], "v");
  EXPECT_EQ((*env)["P"], "pass");
  EXPECT_FALSE(env->contains("Q"));
  env = Build(R"({"env":[{"name":"Q","valueFrom":{"secretKeyRef":{"name":"s","key":"no"}}}]})",
              sources);
  ASSERT_FALSE(env);
  EXPECT_EQ(env.error().message, "couldn't find key no in Secret ns/s");
  env = Build(R"({"envFrom":[{"configMapRef":{"name":"gone"}}]})", sources);
  ASSERT_FALSE(env);
  EXPECT_EQ(env.error().message, "configmaps \"gone\" not found");
}

TEST(ShouldRestartTest, PoliciesAndRules) {
  const Object always = Json(R"({"restartPolicy":"Always"})");
  const Object never = Json(R"({"restartPolicy":"Never"})");
  const Object on_failure = Json(R"({"restartPolicy":"OnFailure"})");
  const Object none = Json("{}");
  EXPECT_TRUE(ShouldRestart(none.root(), always.root(), 0));
  EXPECT_FALSE(ShouldRestart(none.root(), on_failure.root(), 0));
  EXPECT_TRUE(ShouldRestart(none.root(), on_failure.root(), 1));
  EXPECT_FALSE(ShouldRestart(none.root(), never.root(), 1));
  const Object rules = Json(R"({"restartPolicy":"Never","restartPolicyRules":[
    {"action":"Restart","exitCodes":{"operator":"In","values":[42]}}]})");
  EXPECT_TRUE(ShouldRestart(rules.root(), never.root(), 42));
  EXPECT_FALSE(ShouldRestart(rules.root(), always.root(), 1));
}

TEST(IpPoolTest, GivesEachAddressOnce) {
  IpPool pool("10.244.3.0/29");
  std::set<std::string> taken;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(taken.insert(pool.Take()).second);
  EXPECT_TRUE(taken.contains("10.244.3.2"));
  EXPECT_TRUE(taken.contains("10.244.3.6"));
  EXPECT_EQ(pool.Take(), "");
  pool.Give("10.244.3.4");
  pool.Give("192.168.0.1");  // not its own
  EXPECT_EQ(pool.Take(), "10.244.3.4");
  for (const char* bad : {"", "10.0.0.0", "x/24", "10.0.0.0/33", "10.0.0.0/x"})
    EXPECT_EQ(IpPool(bad).Take(), "") << bad;
}

}  // namespace
}  // namespace sextant::kubelet
