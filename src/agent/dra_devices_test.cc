#include "agent/dra_devices.h"

#include <gtest/gtest.h>

#include "api/json.h"

namespace sextant::agent {
namespace {

gpu::Inventory Cards(gpu::PoolSpec pool) {
  pool.dra_cards = pool.count;
  return *gpu::BuildInventory(pool, "lab", "worker");
}

api::Value FirstDevice(const std::vector<DriverDevices>& all) {
  return all[0].spec["devices"].at(0);
}

TEST(DraDevices, ACardIsADevice) {
  const gpu::Inventory cards = Cards({.model = "l40s", .count = 2});
  const auto all = DraDevices(cards);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].driver, "gpu.nvidia.com");
  EXPECT_EQ(all[0].spec["devices"].size(), 2u);
  const api::Value device = FirstDevice(all);
  EXPECT_EQ(device["name"].AsString(), "gpu-0");
  EXPECT_EQ(api::ToJson(device["capacity"]), R"({"memory":{"value":"46068Mi"}})");
  const std::vector<std::pair<const char*, std::string>> texts = {
      {"type", "gpu"},
      {"uuid", cards.cards[0].uuid},
      {"productName", "NVIDIA L40S"},
      {"brand", "Nvidia"},
      {"architecture", "Ada Lovelace"},
      {"resource.kubernetes.io/pciBusID", cards.cards[0].PciAddress()}};
  for (const auto& [name, text] : texts)
    EXPECT_EQ(device["attributes"][name]["string"].AsString(), text) << name;
  EXPECT_EQ(device["attributes"]["cudaComputeCapability"]["version"].AsString(), "8.9.0");
}

// Semantic versions have three numbers and no leading zeros.
TEST(DraDevices, VersionsAreSemantic) {
  const auto all = DraDevices(
      Cards({.model = "h100", .count = 1, .driver_version = "580.05.01", .cuda_version = "13.0"}));
  const api::Value attributes = FirstDevice(all)["attributes"];
  EXPECT_EQ(attributes["driverVersion"]["version"].AsString(), "580.5.1");
  EXPECT_EQ(attributes["cudaDriverVersion"]["version"].AsString(), "13.0.0");
}

TEST(DraDevices, ACardInMigModeIsItsMigDevices) {
  const auto all = DraDevices(
      Cards({.model = "a100-80gb", .count = 1, .mig = {{.profile = "1g.10gb", .count = 2}}}));
  const api::Value devices = all[0].spec["devices"];
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(devices.at(0)["name"].AsString().starts_with("gpu-0-mig-1g10gb-19-"));
  EXPECT_NE(devices.at(0)["name"].AsString(), devices.at(1)["name"].AsString());
  EXPECT_EQ(devices.at(0)["attributes"]["type"]["string"].AsString(), "mig");
  EXPECT_EQ(devices.at(0)["attributes"]["profile"]["string"].AsString(), "1g.10gb");
  EXPECT_EQ(devices.at(0)["capacity"]["multiprocessors"]["value"].AsString(), "14");
}

TEST(DraDevices, TheComputeDomainDriverHasAChannelAndADaemon) {
  const auto all = DraDevices(Cards({.model = "t4", .count = 1}));
  EXPECT_EQ(all[1].driver, "compute-domain.nvidia.com");
  EXPECT_EQ(api::ToJson(all[1].spec["devices"]),
            R"([{"name":"channel-0","attributes":{"type":{"string":"channel"},"id":{"int":0}}},)"
            R"({"name":"daemon-0","attributes":{"type":{"string":"daemon"},"id":{"int":0}}}])");
}

// A card is offered on one path at a time, and one that fell off the bus on none.
TEST(DraDevices, OtherCardsAreNotAnnounced) {
  gpu::Inventory cards =
      *gpu::BuildInventory({.model = "l4", .count = 4, .dra_cards = 2}, "l", "w");
  EXPECT_EQ(DraDevices(cards)[0].spec["devices"].size(), 2u);
  EXPECT_EQ(FirstDevice(DraDevices(cards))["name"].AsString(), "gpu-2");
  cards.cards[2].lost = true;
  EXPECT_EQ(FirstDevice(DraDevices(cards))["name"].AsString(), "gpu-3");
  for (gpu::Card& card : cards.cards) card.allocation = gpu::Allocation::kPlugin;
  for (const DriverDevices& driver : DraDevices(cards)) EXPECT_FALSE(driver.spec);
}

}  // namespace
}  // namespace sextant::agent
