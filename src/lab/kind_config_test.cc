#include "lab/kind_config.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace sextant::lab {
namespace {

constexpr char kHead[] = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n";

TEST(KindConfigTest, ReadsThePublishedFileAsItIs) {
  auto text = ReadFile(SEXTANT_SOURCE_DIR "/src/lab/testdata/fake-gpu-cluster.yaml", 1 << 20);
  ASSERT_TRUE(text) << text.error().message;
  auto file = ReadKindFile(*text, "fake-gpu-cluster.yaml");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->config.name, "gpu-lab");
  NameNodes(file->config);
  ASSERT_EQ(file->config.nodes.size(), 3u);
  EXPECT_EQ(file->config.nodes[0].name, "gpu-lab-control-plane");
  EXPECT_EQ(file->config.nodes[1].name, "gpu-lab-worker");
  EXPECT_EQ(file->config.nodes[2].name, "gpu-lab-worker2");
  EXPECT_EQ(file->config.feature_gates.size(), 6u);
  EXPECT_EQ(file->config.runtime_config.at("scheduling.k8s.io/v1alpha2"), "true");
}

struct Refusal {
  std::string text;
  std::string error;
};

TEST(KindConfigTest, RefusesByNameAndLine) {
  const std::vector<Refusal> cases = {
      {"featureGates:\n  GangSchedulin: true\n",
       "f.yaml:4: unknown feature gate \"GangSchedulin\" in Kubernetes 1.36 (did you mean "
       "\"GangScheduling\"?)"},
      {"runtimeConfig:\n  resource.k8s.io/v1beta7: \"true\"\n",
       "f.yaml:4: unknown group version \"resource.k8s.io/v1beta7\" in Kubernetes 1.36 (did you "
       "mean \"resource.k8s.io/v1beta1\"?)"},
      {"nodez: []\n", "f.yaml:3: unknown field \"nodez\" (did you mean \"nodes\"?)"},
      {"nodes:\n- role: boss\n", "f.yaml:4: role: \"boss\" must be control-plane or worker"},
      {"nodes:\n- role: worker\n", "f.yaml:3: nodes: at least one must be a control-plane"},
      {"nodes:\n- role: control-plane\n  image: kindest/node:v1.33.1\n",
       "f.yaml:5: image: this lab is Kubernetes 1.36, not 1.33"},
      {"networking:\n  podSubnet: 10.0.0.0/8\n",
       "f.yaml:4: networking.podSubnet is not supported: the lab's Pods have 10.244.0.0/16"},
      {"featureGates:\n  DynamicResourceAllocation: false\n",
       "f.yaml:4: feature gate DynamicResourceAllocation is locked to true in Kubernetes 1.36"},
  };
  for (const Refusal& one : cases) {
    auto file = ReadKindFile(kHead + one.text, "f.yaml");
    ASSERT_FALSE(file) << one.text;
    EXPECT_EQ(file.error().message, one.error);
  }
}

// What would keep a node from registering is found before anything is made.
TEST(KindConfigTest, RefusesWhatNodesCannotRegisterWith) {
  const std::string node = "nodes:\n- role: control-plane\n  labels:\n    ";
  const std::string patch =
      "nodes:\n- role: control-plane\n  kubeadmConfigPatches:\n  - |\n"
      "    kind: InitConfiguration\n    nodeRegistration:\n      kubeletExtraArgs:\n"
      "        node-labels: ";
  const std::vector<Refusal> cases = {
      {node + "\"a b\": c\n", "f.yaml:6: label a b=c: the key is not valid: "},
      {node + "a: \"b c\"\n", "f.yaml:6: label a=b c: the value is not valid: "},
      {node + "a: 1\n", "f.yaml:6: labels: a must be a string: put it in quotes"},
      {node + "ok: x\n    kubernetes.io/x: z1\n",
       "f.yaml:7: label kubernetes.io/x: a kubelet may not give its node a label of kubernetes.io"},
      {patch + "node-role.kubernetes.io/gpu=\n",
       "f.yaml:6: label node-role.kubernetes.io/gpu: a kubelet may not"},
      {patch + "a=" + std::string(64, 'b') + "\n", "f.yaml:6: label a="},
      {"networking:\n  apiServerAddress: here\n",
       "f.yaml:4: networking.apiServerAddress: \"here\" is no IP address"},
      {"---\nkind: GPUPool\napiVersion: sextant.dev/v1alpha1\nmetadata: {name: A_b}\n"
       "spec:\n  model: l4\n",
       "f.yaml:6: GPUPool A_b: metadata.name: Invalid value: \"A_b\""},
      {"---\nkind: GPUPool\napiVersion: sextant.dev/v1alpha1\nmetadata: {name: b}\n"
       "spec:\n  model: l4\n  count: 70000\n",
       "f.yaml:9: GPUPool b: spec.count: Invalid value: 70000"},
  };
  for (const Refusal& one : cases) {
    auto file = ReadKindFile(kHead + one.text, "f.yaml");
    ASSERT_FALSE(file) << one.text;
    EXPECT_EQ(file.error().message.substr(0, one.error.size()), one.error);
  }
  const std::string good = node + "node.kubernetes.io/x: z1\n    topology.kubernetes.io/zone: z1\n";
  EXPECT_TRUE(ReadKindFile(kHead + good, "f.yaml"));
}

TEST(KindConfigTest, TheKindIsNamedWithItsLine) {
  const std::vector<Refusal> cases = {
      {"# a\n\nkind: Clusters\napiVersion: kind.x-k8s.io/v1alpha4\n",
       "f.yaml:3: kind: must be Cluster"},
      {"# a\napiVersion: kind.x-k8s.io/v1alpha4\n", "f.yaml:2: kind: must be Cluster"},
      {"apiVersion: sextant.dev/v1alpha1\nkind: GPUPool\n",
       "f.yaml:2: kind: must be Cluster; GPUPool documents stand behind it"},
      {"---\n\napiVersion: v1\nkind: Cluster\n",
       "f.yaml:3: apiVersion: must be kind.x-k8s.io/v1alpha4"}};
  for (const Refusal& one : cases) {
    auto file = ReadKindFile(one.text, "f.yaml");
    ASSERT_FALSE(file) << one.text;
    EXPECT_EQ(file.error().message, one.error);
  }
}

TEST(KindConfigTest, NodesOfTheseNamesCanRegister) {
  const auto check = [](const std::string& name, int workers) {
    LabConfig config{.name = name, .nodes = {{.control_plane = true}}};
    for (int i = 0; i < workers; ++i) config.nodes.push_back({});
    NameNodes(config);
    return CheckNodeNames(config);
  };
  EXPECT_TRUE(check("a.b", 2));
  EXPECT_TRUE(check(std::string(49, 'a'), 2)) << "with -control-plane 63 characters";
  const Status long_name = check(std::string(50, 'a'), 2);
  ASSERT_FALSE(long_name);
  EXPECT_NE(long_name.error().message.find("it may have 49 characters here"), std::string::npos)
      << long_name.error().message;
  for (const char* bad : {"a..b", "a.", "a.-b"}) {
    const Status refused = check(bad, 0);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find("no node can be called"), std::string::npos);
  }
}

TEST(KindConfigTest, PoolsStandBesideTheCluster) {
  const std::string cluster = std::string(kHead) + "---\n";
  const std::string head = "kind: GPUPool\napiVersion: sextant.dev/v1alpha1\n";
  auto file = ReadKindFile(
      cluster + head + "metadata: {name: big}\nspec:\n  model: h100\n  node: {zone: a}\n",
      "f.yaml");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->config.pools.size(), 1u);
  EXPECT_EQ(file->config.pools[0].name, "big");
  EXPECT_EQ(file->config.pools[0].spec, R"({"model":"h100","node":{"zone":"a"}})");
  const std::vector<Refusal> cases = {
      {"kind: Secret\napiVersion: v1\n",
       "f.yaml:4: only GPUPool objects of sextant.dev/v1alpha1 may stand beside the Cluster"},
      {head + "metadata: {}\n", "f.yaml:4: GPUPool: metadata.name is missing"},
      {head + "metadata: {name: a}\nspec: {model: t4, node: {zon: b}}\n",
       "f.yaml:7: unknown field \"spec.node.zon\" (did you mean \"zone\"?)"},
      {head + "metadata: {name: a}\nspec:\n  model: t4\n  count: many\n",
       "f.yaml:9: spec.count: json: cannot unmarshal string into Go struct field "
       "GPUPoolSpec.count of type int32"},
      {head + "metadata: {name: a}\nspec:\n  model: t4\n  node:\n    zone: 3\n",
       "f.yaml:10: spec.node.zone: json: cannot unmarshal number into Go struct field "
       "GPUPoolNode.zone of type string"},
      {head + "metadata: {name: a}\nspec:\n  model: t4\n  devices:\n  - count: {}\n",
       "f.yaml:10: spec.devices.count: json: cannot unmarshal object into Go struct field "
       "GPUPoolDevice.count of type int32"},
      {head + "metadata: {name: a}\nspec:\n  model: t4\n  node: here\n",
       "f.yaml:9: spec.node: json: cannot unmarshal string into Go struct field "
       "GPUPoolSpec.node of type v1alpha1.GPUPoolNode"},
      {head + "metadata: {name: [a]}\nspec: {model: t4}\n",
       "f.yaml:6: metadata.name: json: cannot unmarshal array into Go struct field "
       "ObjectMeta.name of type string"},
      {head + "metadata: {name: a}\nspec: {model: t44}\n",
       "f.yaml:7: unknown GPU model \"t44\"; did you mean t4?"},
  };
  for (const Refusal& one : cases) {
    auto refused = ReadKindFile(cluster + one.text, "f.yaml");
    ASSERT_FALSE(refused) << one.text;
    EXPECT_EQ(refused.error().message, one.error);
  }
}

// Only what changes nothing is named as not served.
TEST(KindConfigTest, TellsWhatHasNoEffect) {
  auto file =
      ReadKindFile(std::string(kHead) +
                       "featureGates: {GangScheduling: true, ResourceHealthStatus: true}\n"
                       "runtimeConfig: {apps/v1: \"true\", api/alpha: \"false\"}\n"
                       "kubeadmConfigPatches:\n- |\n  kind: ClusterConfiguration\n  apiServer:\n"
                       "    extraArgs:\n      enable-admission-plugins: "
                       "NamespaceLifecycle,AlwaysPullImages\n",
                   "f.yaml");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->notices,
            std::vector<std::string>{
                "accepted, not served yet: GangScheduling, api/alpha=false, AlwaysPullImages"});
  auto wrong = ReadKindFile(std::string(kHead) +
                                "kubeadmConfigPatches:\n- |\n  kind: ClusterConfiguration\n"
                                "  apiServer:\n    extraArgs:\n      enable-admission-plugins: "
                                "NodeRestrictions\n",
                            "f.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("did you mean \"NodeRestriction\"?"), std::string::npos)
      << wrong.error().message;
}

TEST(KindConfigTest, ImagesOfAnotherMinorAreAnError) {
  for (const char* good :
       {"", "kindest/node:v1.36.1", "kindest/node:latest", "reg:5000/node:v1.36.0@sha256:3489"}) {
    EXPECT_TRUE(CheckNodeImage(good)) << good;
  }
  for (const char* bad : {"kindest/node:v1.35.0", "kindest/node:v1.3", "kindest/node:v1.360.1"}) {
    EXPECT_FALSE(CheckNodeImage(bad)) << bad;
  }
}

TEST(KindConfigTest, NodeLabelsComeFromBothPlaces) {
  auto file = ReadKindFile(std::string(kHead) +
                               "nodes:\n- role: control-plane\n- role: worker\n  labels: {a: b}\n"
                               "  kubeadmConfigPatches:\n  - |\n    kind: JoinConfiguration\n"
                               "    nodeRegistration:\n      kubeletExtraArgs:\n"
                               "        node-labels: \"c=d,e=f\"\n",
                           "f.yaml");
  ASSERT_TRUE(file) << file.error().message;
  const std::map<std::string, std::string> wanted = {{"a", "b"}, {"c", "d"}, {"e", "f"}};
  EXPECT_EQ(file->config.nodes[1].labels, wanted);
}

}  // namespace
}  // namespace sextant::lab
