#include "client/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json.h"

namespace sextant::client {
namespace {

using ::testing::HasSubstr;

// Runs a shell script as the plugin.
Result<ExecCredential> RunScript(const std::string& script, bool cluster_info = false) {
  api::Editor edit;
  edit.Root().Set("apiVersion", "client.authentication.k8s.io/v1");
  edit.Root().Set("command", "sh");
  edit["args"].Append().SetString("-c");
  edit["args"].Append().SetString(script);
  edit["env"].Append().Set("name", "EXTRA");
  edit["env"].at(0).Set("value", "more");
  edit.Root().Set("provideClusterInfo", cluster_info);
  const api::Object plugin = std::move(edit).Finish();
  const api::Object cluster = *api::ParseJson(R"({"server":"https://s","other":1})");
  return RunCredentialPlugin(plugin.root(), "/", cluster.root());
}

constexpr const char* kHead =
    R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",)";

std::string Answer(const std::string& status) {
  return fmt::format("echo '{}\"status\":{}}}'", kHead, status);
}

TEST(ExecCredential, TokenWithItsEnvironment) {
  const auto got = RunScript(Answer(R"({"token":"'$EXTRA'"})"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->token, "more");
}

TEST(ExecCredential, Certificate) {
  const auto got = RunScript(Answer(R"({"clientCertificateData":"C","clientKeyData":"K"})"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->client_cert_pem, "C");
  EXPECT_EQ(got->client_key_pem, "K");
}

TEST(ExecCredential, IsToldWhatItAsksFor) {
  const std::string without = fmt::format("{}{}", kHead, R"("spec":{"interactive":false}})");
  const std::string with = fmt::format(
      "{}{}", kHead, R"("spec":{"interactive":false,"cluster":{"server":"https://s"}}})");
  const auto script = [](const std::string& want) {
    return "test \"$KUBERNETES_EXEC_INFO\" = '" + want + "' || exit 3; " +
           Answer(R"({"token":"t"})");
  };
  EXPECT_TRUE(RunScript(script(without)));
  EXPECT_TRUE(RunScript(script(with), true));
  EXPECT_FALSE(RunScript(script(with), false));
}

TEST(ExecCredential, Errors) {
  struct Case {
    std::string script, want;
  };
  const Case cases[] = {
      {"exit 4", "failed with exit code 4"},
      {"kill -9 $$", "failed with exit code -1"},
      {"echo no", "decoding stdout"},
      {R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}')",
       "plugin returned version client.authentication.k8s.io/v1beta1"},
      {Answer("null"), "didn't return a status"},
      {Answer("{}"), "didn't return a token"},
      {Answer(R"({"clientKeyData":"K"})"), "not both"},
      {"yes | head -c 2000000", "said too much"},
  };
  for (const Case& each : cases) {
    const auto got = RunScript(each.script);
    ASSERT_FALSE(got) << each.script;
    EXPECT_THAT(got.error().message, HasSubstr(each.want)) << each.script;
  }
}

TEST(ExecCredential, UnusablePlugins) {
  const auto error = [](const char* json) {
    const api::Object plugin = *api::ParseJson(json);
    return RunCredentialPlugin(plugin.root(), "/nowhere", {}).error().message;
  };
  EXPECT_THAT(error(R"({"apiVersion":"client.authentication.k8s.io/v1"})"),
              HasSubstr("command must be specified"));
  EXPECT_THAT(error(R"({"apiVersion":"v1","command":"x"})"), HasSubstr("invalid apiVersion"));
  EXPECT_EQ(error(R"({"apiVersion":"client.authentication.k8s.io/v1","command":"no-such-plugin"})"),
            "exec: executable no-such-plugin not found");
  EXPECT_EQ(error(R"({"apiVersion":"client.authentication.k8s.io/v1","command":"bin/x"})"),
            "exec: executable /nowhere/bin/x not found");
  EXPECT_THAT(error(R"({"apiVersion":"client.authentication.k8s.io/v1","command":"x",
                        "interactiveMode":"Always"})"),
              HasSubstr("without a terminal"));
}

}  // namespace
}  // namespace sextant::client
