#include "client/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "base/file.h"

namespace sextant::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class KubeconfigTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir.path() + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  std::string Read(const std::string& path) { return *ReadFile(path, 1 << 20); }
  KubeconfigPlace Place(std::string path = "") {
    return {std::move(path), [this](const char* name) { return env[name]; }};
  }
  std::string ErrorOf(const std::string& text, std::string_view context = "") {
    const Result<Kubeconfig> config = LoadKubeconfig({Write("config", text)});
    if (!config) return config.error().message;
    const Result<RemoteOptions> options = OptionsFor(*config, context);
    return options ? "" : options.error().message;
  }

  TempDir dir = *TempDir::Make();
  std::map<std::string, std::string> env{{"HOME", dir.path()}};
};

constexpr const char* kOne = R"(apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c1
  cluster:
    server: https://one:6443/prefix
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: team}
users:
- name: u1
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: S0VZ
    as: boss
    as-groups: [a, b]
)";

TEST_F(KubeconfigTest, ReadsAContext) {
  ASSERT_TRUE(MakeDirectories(Path("pki"), 0755));
  Write("pki/ca.crt", "CA");
  const Result<Kubeconfig> config = LoadKubeconfig({Write("config", kOne)});
  ASSERT_TRUE(config) << config.error().message;
  const Result<RemoteOptions> options = OptionsFor(*config, "");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->server, "https://one:6443/prefix");
  EXPECT_EQ(options->tls.ca_pem, "CA");
  EXPECT_EQ(options->tls.server_name, "kubernetes");
  EXPECT_EQ(options->tls.cert_pem, "CERT");
  EXPECT_EQ(options->tls.key_pem, "KEY");
  EXPECT_EQ(options->impersonate_user, "boss");
  EXPECT_THAT(options->impersonate_groups, ElementsAre("a", "b"));
  EXPECT_EQ(NamespaceFor(*config, ""), "team");
  EXPECT_EQ(NamespaceFor(*config, "other"), "default");
}

TEST_F(KubeconfigTest, FirstFileThatDefinesANameWins) {
  env["KUBECONFIG"] = Write("a",
                            "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
                            "users: [{name: u, user: {token: first}}]\n") +
                      "::" + Path("missing") + ":" +
                      Write("b",
                            "current-context: x\n"
                            "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                            "clusters: [{name: c, cluster: {server: 'https://b', "
                            "insecure-skip-tls-verify: true}}]\n") +
                      ":" + Write("c", "current-context: y\n");
  const Result<Kubeconfig> config = LoadKubeconfig(Place());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->current_context, "x");
  const Result<RemoteOptions> options = OptionsFor(*config, "");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->server, "https://a");
  EXPECT_FALSE(options->tls.insecure_skip_verify) << "entries are not mixed";
  EXPECT_EQ(options->token, "first");
}

TEST_F(KubeconfigTest, DefaultIsUnderHome) {
  EXPECT_TRUE(LoadKubeconfig(Place()).value().files.empty());
  ASSERT_TRUE(MakeDirectories(Path(".kube"), 0755));
  Write(".kube/config", "current-context: home\n");
  EXPECT_EQ(LoadKubeconfig(Place()).value().current_context, "home");
}

TEST_F(KubeconfigTest, Errors) {
  EXPECT_THAT(LoadKubeconfig({Path("none")}).error().message, HasSubstr("no such file"));
  EXPECT_THAT(ErrorOf("a: [\n"), HasSubstr("error loading config file"));
  EXPECT_THAT(ErrorOf("kind: Pod\n"), HasSubstr("no kubeconfig"));
  EXPECT_THAT(ErrorOf("[]\n"), HasSubstr("no kubeconfig"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("no context is chosen"));
  EXPECT_EQ(ErrorOf("", "x"), "context \"x\" does not exist");
  const std::string base = "contexts: [{name: x, context: {cluster: c, user: u}}]\n";
  EXPECT_EQ(ErrorOf(base, "x"), "cluster \"c\" does not exist");
  EXPECT_THAT(ErrorOf(base + "clusters: [{name: c, cluster: {}}]\n", "x"),
              HasSubstr("no server found for cluster \"c\""));
  const std::string cluster = base + "clusters: [{name: c, cluster: {server: 'https://s'}}]\n";
  EXPECT_EQ(ErrorOf(cluster, "x"), "auth info \"u\" does not exist");
  EXPECT_EQ(ErrorOf(cluster + "users: [{name: u, user: {token: t}}]\n", "x"), "");
  EXPECT_THAT(
      ErrorOf(cluster + "users: [{name: u, user: {exec: {command: aws, apiVersion: v0}}}]\n", "x"),
      HasSubstr("getting credentials for user \"u\": exec plugin"));
  EXPECT_THAT(ErrorOf(cluster + "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n", "x"),
              HasSubstr("auth-provider"));
  EXPECT_THAT(ErrorOf(cluster + "users: [{name: u, user: {client-key-data: '#'}}]\n", "x"),
              HasSubstr("no base64"));
  EXPECT_THAT(ErrorOf(cluster + "users: [{name: u, user: {client-certificate: c.pem}}]\n", "x"),
              HasSubstr("unable to read client-certificate " + Path("c.pem")));
  EXPECT_THAT(ErrorOf(cluster + "users: [{name: u, user: {client-key-data: S0VZ}}]\n", "x"),
              HasSubstr("must be specified for u"));
}

TEST_F(KubeconfigTest, InCluster) { EXPECT_EQ(InClusterOptions(Place()).error().code, 404); }

ContextEntry Lab(std::string name = "sextant-lab") {
  return {.name = std::move(name),
          .server = "https://127.0.0.1:6443",
          .ca_pem = "CA",
          .client_cert_pem = "CERT",
          .client_key_pem = "KEY"};
}

TEST_F(KubeconfigTest, MergeMakesFoldersAndAPrivateFile) {
  const Result<std::string> file = MergeContext(Lab(), Place());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, Path(".kube/config"));
  struct stat info;
  ASSERT_EQ(stat(file->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_NE(stat((*file + ".lock").c_str(), &info), 0) << "the lock is let go";
  EXPECT_EQ(Read(*file), KubeconfigText(Lab()));

  const Result<RemoteOptions> options = OptionsFor(*LoadKubeconfig(Place()), "");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->server, "https://127.0.0.1:6443");
  EXPECT_EQ(options->tls.key_pem, "KEY");
}

TEST_F(KubeconfigTest, MergeKeepsTheRestAndReplacesItsOwn) {
  const std::string file = Write("config", std::string(kOne) +
                                               "preferences: {colors: true}\n"
                                               "extensions: [{name: x, extension: {a: 1}}]\n");
  ASSERT_TRUE(MergeContext(Lab(), Place(file)));
  ContextEntry again = Lab();
  again.server = "https://127.0.0.1:7777";
  again.client_cert_pem = again.client_key_pem = "";
  again.token = "t";
  ASSERT_TRUE(MergeContext(again, Place(file)));
  const Kubeconfig config = *LoadKubeconfig({file});
  EXPECT_EQ(config.clusters.size(), 2u);
  EXPECT_EQ(config.current_context, "sextant-lab");
  const RemoteOptions options = *OptionsFor(config, "");
  EXPECT_EQ(options.server, "https://127.0.0.1:7777");
  EXPECT_EQ(options.token, "t");
  EXPECT_EQ(options.tls.cert_pem, "") << "the old entry is replaced, not mixed";
  EXPECT_EQ(Kubeconfig::Find(config.users, "u1")->value["as"].AsString(), "boss");
  EXPECT_THAT(Read(file), HasSubstr("colors: true"));
  EXPECT_THAT(Read(file), HasSubstr("extension:"));

  ASSERT_TRUE(RemoveContext("sextant-lab", Place(file)));
  const Kubeconfig after = *LoadKubeconfig({file});
  EXPECT_EQ(after.clusters.size(), 1u);
  EXPECT_EQ(after.users.size(), 1u);
  EXPECT_EQ(after.contexts.size(), 1u);
  EXPECT_EQ(after.current_context, "");
  EXPECT_THAT(Read(file), Not(HasSubstr("sextant")));
}

TEST_F(KubeconfigTest, MergeGoesToTheFirstThatExistsElseToTheLast) {
  env["KUBECONFIG"] = Path("a") + ":" + Path("b");
  EXPECT_EQ(MergeContext(Lab(), Place()).value(), Path("b"));
  Write("a", "");
  EXPECT_EQ(MergeContext(Lab("other"), Place()).value(), Path("a"));
  ASSERT_TRUE(RemoveContext("sextant-lab", Place())) << "wherever it stands";
  EXPECT_THAT(Read(Path("b")), Not(HasSubstr("sextant-lab")));
}

TEST_F(KubeconfigTest, RemoveLeavesOtherFilesUntouched) {
  const std::string text = "# my comment\n" + std::string(kOne);
  const std::string file = Write("config", text);
  ASSERT_TRUE(RemoveContext("sextant-lab", Place(file)));
  EXPECT_EQ(Read(file), text);
  EXPECT_TRUE(RemoveContext("sextant-lab", Place(Path("missing"))));
}

TEST_F(KubeconfigTest, DamagedFileIsNotOverwritten) {
  const std::string file = Write("config", "clusters: [\n");
  EXPECT_FALSE(MergeContext(Lab(), Place(file)));
  EXPECT_EQ(Read(file), "clusters: [\n");
  EXPECT_NE(access((file + ".lock").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace sextant::client
