#include "agent/gpu_plugin.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace sextant::agent {
namespace {

class GpuPluginTest : public testing::Test {
 protected:
  GpuPluginTest()
      : dir_(*TempDir::Make("gpu-plugin")),
        plugin_(loop_, loop_, {.state_directory = dir_.path()}) {}

  gpu::Inventory Cards(int count) {
    return *gpu::BuildInventory({.model = "a100", .count = count}, "lab", "worker");
  }

  ManualLoop loop_;
  TempDir dir_;
  GpuPlugin plugin_;
};

TEST_F(GpuPluginTest, TellsDevicesAndTheirChanges) {
  std::vector<std::vector<plugin::Device>> told;
  auto handle = plugin_.ListAndWatch([&](const auto& devices) { told.push_back(devices); });
  loop_.RunReady();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].empty());
  gpu::Inventory cards = Cards(8);
  plugin_.SetInventory(cards);
  loop_.RunReady();
  ASSERT_EQ(told.size(), 2u);
  ASSERT_EQ(told[1].size(), 8u);
  EXPECT_EQ(told[1][0].id, cards.cards[0].uuid);
  cards.cards[3].healthy = false;
  plugin_.SetInventory(cards);
  plugin_.SetInventory(cards);  // the same again tells nothing
  loop_.RunReady();
  ASSERT_EQ(told.size(), 3u);
  EXPECT_FALSE(told[2][3].healthy);
  handle.reset();
  plugin_.SetInventory({});
  loop_.RunReady();
  EXPECT_EQ(told.size(), 3u);
}

TEST_F(GpuPluginTest, AllocatesExactlyTheCardsAsked) {
  const gpu::Inventory cards = Cards(8);
  plugin_.SetInventory(cards);
  std::optional<Result<std::vector<plugin::ContainerAllocation>>> answer;
  plugin_.Allocate({{cards.cards[5].uuid}}, [&](auto result) { answer = std::move(result); });
  EXPECT_FALSE(answer.has_value()) << "never inline";
  loop_.RunReady();
  ASSERT_TRUE(answer && *answer);
  const plugin::ContainerAllocation& one = (**answer)[0];
  EXPECT_EQ(one.envs.at("NVIDIA_VISIBLE_DEVICES"), cards.cards[5].uuid);
  EXPECT_EQ(one.devices.back().container_path, "/dev/nvidia5");
  ASSERT_EQ(one.mounts.size(), 1u);
  EXPECT_EQ(one.mounts[0].container_path, gpu::kContainerInventoryPath);
  auto text = ReadFile(one.mounts[0].host_path, 1 << 20);
  ASSERT_TRUE(text);
  auto seen = gpu::ParseInventory(*text);
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->cards.size(), 1u);
  EXPECT_EQ(seen->cards[0].uuid, cards.cards[5].uuid);
}

TEST_F(GpuPluginTest, RefusesAnUnknownDevice) {
  plugin_.SetInventory(Cards(1));
  std::optional<Result<std::vector<plugin::ContainerAllocation>>> answer;
  plugin_.Allocate({{"GPU-nowhere"}}, [&](auto result) { answer = std::move(result); });
  loop_.RunReady();
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_NE(answer->error().message.find("GPU-nowhere"), std::string::npos);
}

TEST_F(GpuPluginTest, PrefersCardsThatStandTogether) {
  const gpu::Inventory cards = *gpu::BuildInventory({.model = "l40s", .count = 8}, "lab", "worker");
  plugin_.SetInventory(cards);
  std::vector<std::string> all;
  for (const gpu::Card& card : cards.cards) all.push_back(card.uuid);
  std::vector<std::string> chosen;
  plugin_.GetPreferredAllocation(all, {all[5]}, 2, [&](auto result) { chosen = *result; });
  loop_.RunReady();
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0], all[5]);
  EXPECT_EQ(cards.Find(chosen[1])->numa_node, cards.cards[5].numa_node);
}

}  // namespace
}  // namespace sextant::agent
