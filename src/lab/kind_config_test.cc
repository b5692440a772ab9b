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
