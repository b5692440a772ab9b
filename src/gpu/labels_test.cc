#include "gpu/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::gpu {
namespace {

using ::testing::IsSupersetOf;
using ::testing::Pair;
using Labels = std::map<std::string, std::string>;

Inventory Build(const PoolSpec& pool) {
  Result<Inventory> built = BuildInventory(pool, "gpu-lab", "gpu-lab-worker");
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  return built.value_or(Inventory());
}

// The whole set: NVIDIA's stack, table of GFD's labels, column A100.
TEST(NodeLabels, WholeSetOfADgxA100) {
  const Labels want = {
      {"feature.node.kubernetes.io/pci-10de.present", "true"},
      {"nvidia.com/cuda.driver-version.full", "580.126.20"},
      {"nvidia.com/cuda.driver-version.major", "580"},
      {"nvidia.com/cuda.driver-version.minor", "126"},
      {"nvidia.com/cuda.driver-version.revision", "20"},
      {"nvidia.com/cuda.driver.major", "580"},
      {"nvidia.com/cuda.driver.minor", "126"},
      {"nvidia.com/cuda.driver.rev", "20"},
      {"nvidia.com/cuda.runtime-version.full", "13.0"},
      {"nvidia.com/cuda.runtime-version.major", "13"},
      {"nvidia.com/cuda.runtime-version.minor", "0"},
      {"nvidia.com/cuda.runtime.major", "13"},
      {"nvidia.com/cuda.runtime.minor", "0"},
      {"nvidia.com/gfd.timestamp", "1790000000"},
      {"nvidia.com/gpu.compute.major", "8"},
      {"nvidia.com/gpu.compute.minor", "0"},
      {"nvidia.com/gpu.count", "8"},
      {"nvidia.com/gpu.deploy.client", "true"},
      {"nvidia.com/gpu.deploy.container-toolkit", "true"},
      {"nvidia.com/gpu.deploy.dcgm", "true"},
      {"nvidia.com/gpu.deploy.dcgm-exporter", "true"},
      {"nvidia.com/gpu.deploy.device-plugin", "true"},
      {"nvidia.com/gpu.deploy.driver", "true"},
      {"nvidia.com/gpu.deploy.gpu-feature-discovery", "true"},
      {"nvidia.com/gpu.deploy.mig-manager", "true"},
      {"nvidia.com/gpu.deploy.node-status-exporter", "true"},
      {"nvidia.com/gpu.deploy.operator-validator", "true"},
      {"nvidia.com/gpu.family", "ampere"},
      {"nvidia.com/gpu.machine", "DGXA100-920-23687-2530-000"},
      {"nvidia.com/gpu.memory", "81920"},
      {"nvidia.com/gpu.mode", "compute"},
      {"nvidia.com/gpu.present", "true"},
      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
      {"nvidia.com/gpu.replicas", "1"},
      {"nvidia.com/gpu.sharing-strategy", "none"},
      {"nvidia.com/mig.capable", "true"},
      {"nvidia.com/mps.capable", "false"},
      {"nvidia.com/vgpu.present", "false"},
      {"sextant.dev/gpu.vram-tier", "80g"},
  };
  const Inventory node =
      Build({.model = "a100-80gb", .driver_version = "580.126.20", .cuda_version = "13.0"});
  EXPECT_EQ(NodeLabels(node, {.timestamp_s = 1790000000}), want);
}

TEST(NodeLabels, OfOtherModels) {
  const struct {
    const char* model;
    const char* product;
    const char* family;
    const char* memory;
    const char* mig;
    const char* tier;
  } cases[] = {
      {"t4", "Tesla-T4", "turing", "15360", "false", "16g"},
      {"v100", "Tesla-V100-SXM2-16GB", "volta", "16384", "false", "16g"},
      {"a10", "NVIDIA-A10", "ampere", "23028", "false", "24g"},
      {"a100", "NVIDIA-A100-SXM4-40GB", "ampere", "40960", "true", "40g"},
      {"l40s", "NVIDIA-L40S", "ada-lovelace", "46068", "false", "48g"},
      {"h100", "NVIDIA-H100-80GB-HBM3", "hopper", "81559", "true", "80g"},
      {"h100-nvl", "NVIDIA-H100-NVL", "hopper", "95830", "true", "96g"},
      {"h200", "NVIDIA-H200", "hopper", "143771", "true", "128g"},
      {"b200", "NVIDIA-B200", "blackwell", "183359", "true", "180g"},
      {"b300", "NVIDIA-B300-SXM6-AC", "blackwell", "275040", "true", "256g"},
      {"rtx-pro-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "blackwell", "97887", "true",
       "96g"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        NodeLabels(Build({.model = c.model, .count = 2})),
        IsSupersetOf(
            {Pair("nvidia.com/gpu.product", c.product), Pair("nvidia.com/gpu.family", c.family),
             Pair("nvidia.com/gpu.memory", c.memory), Pair("nvidia.com/gpu.count", "2"),
             Pair("nvidia.com/mig.capable", c.mig), Pair("sextant.dev/gpu.vram-tier", c.tier)}))
        << c.model;
  }
}

TEST(NodeLabels, AreValid) {
  for (const Model& model : Catalogue().models) {
    for (const auto& [key, value] : NodeLabels(Build({.model = model.id, .count = 1}))) {
      EXPECT_LE(value.size(), 63u) << key;
      EXPECT_EQ(value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-_."),
                std::string::npos)
          << key << "=" << value;
    }
  }
}

TEST(NodeLabels, NoneWithoutCards) {
  EXPECT_TRUE(NodeLabels(Build({.count = 0})).empty());
  Inventory node = Build({.count = 2});
  node.cards[1].lost = true;
  EXPECT_EQ(NodeLabels(node)["nvidia.com/gpu.count"], "1");
  node.cards[0].lost = true;
  EXPECT_TRUE(NodeLabels(node).empty());
}

TEST(NodeLabels, Sharing) {
  const Inventory node = Build({.model = "l40s", .count = 4});
  Labels out = NodeLabels(node, {.sharing = Sharing::kTimeSlicing, .replicas = 10});
  EXPECT_EQ(out["nvidia.com/gpu.product"], "NVIDIA-L40S-SHARED");
  EXPECT_EQ(out["nvidia.com/gpu.replicas"], "10");
  EXPECT_EQ(out["nvidia.com/gpu.count"], "4");
  EXPECT_EQ(out["nvidia.com/gpu.sharing-strategy"], "time-slicing");
  out = NodeLabels(node, {.sharing = Sharing::kMps, .replicas = 2, .renamed = true});
  EXPECT_EQ(out["nvidia.com/gpu.product"], "NVIDIA-L40S");
  EXPECT_EQ(out["nvidia.com/gpu.sharing-strategy"], "mps");
  EXPECT_EQ(out["nvidia.com/mps.capable"], "true");
}

TEST(NodeLabels, MigSingle) {
  const Inventory node = Build({.model = "a100-80gb", .mig = {{"1g.10gb", 7}}});
  EXPECT_THAT(
      NodeLabels(node, {.mig_strategy = MigStrategy::kSingle}),
      IsSupersetOf(
          {Pair("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"),
           Pair("nvidia.com/gpu.count", "56"), Pair("nvidia.com/gpu.replicas", "1"),
           Pair("nvidia.com/gpu.memory", "9728"), Pair("nvidia.com/gpu.multiprocessors", "14"),
           Pair("nvidia.com/gpu.slices.gi", "1"), Pair("nvidia.com/gpu.slices.ci", "1"),
           Pair("nvidia.com/gpu.engines.copy", "1"), Pair("nvidia.com/gpu.engines.encoder", "0"),
           Pair("nvidia.com/mig.strategy", "single")}));
  // Without a strategy a MIG-enabled card shows as a whole one, with no replicas.
  EXPECT_THAT(NodeLabels(node), IsSupersetOf({Pair("nvidia.com/gpu.count", "8"),
                                              Pair("nvidia.com/gpu.replicas", "0")}));
}

TEST(NodeLabels, MigSingleInvalid) {
  Inventory mixed = Build({.count = 2, .mig = {{"1g.5gb", 2}, {"2g.10gb", 1}}});
  Inventory half = Build({.count = 2, .mig = {{"1g.5gb", 2}}});
  half.cards[1].mig_enabled = false;
  half.cards[1].mig.clear();
  const Inventory empty = Build({.count = 2, .mig_enabled = true});
  for (const Inventory& node : {mixed, half, empty}) {
    EXPECT_THAT(
        NodeLabels(node, {.mig_strategy = MigStrategy::kSingle}),
        IsSupersetOf({Pair("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-INVALID"),
                      Pair("nvidia.com/gpu.count", "0"), Pair("nvidia.com/gpu.replicas", "0"),
                      Pair("nvidia.com/gpu.memory", "0"),
                      Pair("nvidia.com/gpu.sharing-strategy", "")}));
  }
}

TEST(NodeLabels, MigMixed) {
  const Inventory node =
      Build({.model = "h200", .count = 2, .mig = {{"1g.18gb+me", 1}, {"2g.35gb", 1}}});
  EXPECT_THAT(NodeLabels(node, {.mig_strategy = MigStrategy::kMixed}),
              IsSupersetOf({Pair("nvidia.com/gpu.product", "NVIDIA-H200"),
                            Pair("nvidia.com/mig-1g.18gb.me.product", "NVIDIA-H200-MIG-1g.18gb.me"),
                            Pair("nvidia.com/mig-1g.18gb.me.count", "2"),
                            Pair("nvidia.com/mig-1g.18gb.me.engines.ofa", "1"),
                            Pair("nvidia.com/mig-2g.35gb.count", "2"),
                            Pair("nvidia.com/mig-2g.35gb.memory", "33280"),
                            Pair("nvidia.com/mig.strategy", "mixed")}));
}

TEST(NodeLabels, DraAndFabric) {
  Labels out = NodeLabels(Build({.model = "gb200", .count = 4, .dra_cards = 4}));
  EXPECT_EQ(out["nvidia.com/gpu.deploy.dra-driver"], "true");
  EXPECT_FALSE(out.contains("nvidia.com/gpu.deploy.device-plugin"));
  EXPECT_TRUE(out["nvidia.com/gpu.clique"].ends_with(".0")) << out["nvidia.com/gpu.clique"];
  // One rack, one clique; another rack, another.
  EXPECT_NE(Build({.model = "gb200", .count = 4, .fabric = "rack-2"}).fabric_uuid,
            Build({.model = "gb200", .count = 4, .fabric = "rack-1"}).fabric_uuid);
  EXPECT_FALSE(NodeLabels(Build({.model = "h200"})).contains("nvidia.com/gpu.clique"));
}

}  // namespace
}  // namespace sextant::gpu
