#include "gpu/catalogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace sextant::gpu {
namespace {

TEST(Catalogue, HasTheModelsOfTheIssue) {
  for (const char* name : {"v100",  "t4",          "a10",       "a30",       "a40",
                           "a100",  "a100-40gb",   "a100-80gb", "a100-pcie", "a100-80gb-pcie",
                           "l4",    "l40s",        "h100",      "h100-pcie", "h100-nvl",
                           "h200",  "gh200",       "b200",      "gb200",     "b300",
                           "gb300", "rtx-pro-6000"}) {
    EXPECT_TRUE(FindModel(name).has_value()) << name;
  }
}

TEST(Catalogue, EveryModelIsWhole) {
  std::set<uint32_t> pci_ids;
  std::set<std::string> products;
  for (const Model& m : Catalogue().models) {
    SCOPED_TRACE(m.id);
    EXPECT_TRUE(products.insert(m.product).second);
    EXPECT_TRUE(pci_ids.insert(m.pci_device_id).second);
    EXPECT_EQ(m.pci_device_id & 0xFFFF, 0x10DEu);
    EXPECT_EQ(m.pci_subsystem_id & 0xFFFF, 0x10DEu);
    EXPECT_FALSE(m.sources.empty());
    EXPECT_GE(m.compute_major, 7);
    EXPECT_LT(m.reserved_mib, m.memory_mib / 16);
    EXPECT_LE(m.power_min, m.power_default);
    EXPECT_LE(m.power_default, m.power_max);
    EXPECT_LT(m.power_idle, m.power_default);
    EXPECT_LT(m.temp_idle, m.temp_max);
    EXPECT_LE(m.temp_max, m.temp_slowdown);
    EXPECT_LT(m.temp_slowdown, m.temp_shutdown);
    EXPECT_LE(m.clock_graphics_idle, m.clock_graphics_max);
    EXPECT_LE(m.clock_memory_idle, m.clock_memory_max);
    EXPECT_LE(m.clock_graphics_app, m.clock_graphics_max);
    EXPECT_FALSE(m.driver.empty());
    EXPECT_EQ(m.nvlink_links > 0, m.nvlink_version > 0);
  }
}

TEST(Catalogue, ServersAddUp) {
  for (const Model& m : Catalogue().models) {
    SCOPED_TRACE(m.id);
    const ServerLayout& s = m.server;
    EXPECT_EQ(std::set<std::string>(s.bus_ids.begin(), s.bus_ids.end()).size(), s.bus_ids.size());
    for (const std::string& bus : s.bus_ids) {
      EXPECT_EQ(bus.size(), std::string("00000000:07:00.0").size()) << bus;
    }
    if (m.nvlink_group > 0) {
      EXPECT_EQ(s.count % m.nvlink_group, 0);
    }
    if (s.nvlink_matrix.empty()) continue;
    ASSERT_EQ(s.nvlink_matrix.size(), s.bus_ids.size());
    for (size_t i = 0; i < s.bus_ids.size(); ++i) {
      ASSERT_EQ(s.nvlink_matrix[i].size(), s.bus_ids.size());
      int links = 0;
      for (size_t j = 0; j < s.bus_ids.size(); ++j) {
        EXPECT_EQ(s.nvlink_matrix[i][j], s.nvlink_matrix[j][i]);
        links += s.nvlink_matrix[i][j];
      }
      EXPECT_EQ(links, m.nvlink_links) << "card " << i;
    }
  }
}

// GFD's and nvidia-smi's rule (go-nvlib, device/mig_profile.go): the memory part of a profile's
// name follows from its memory and the card's.
int NameGigabytes(int mig_mib, int card_mib) {
  const double eighths = std::ceil(static_cast<double>(mig_mib) / card_mib * 8) / 8;
  return static_cast<int>(std::round(eighths * std::ceil(card_mib / 1024.0)));
}

TEST(Catalogue, MigProfilesFit) {
  for (const Model& m : Catalogue().models) {
    std::set<int> ids;
    std::set<std::string> names;
    for (const MigProfile& p : m.mig_profiles) {
      SCOPED_TRACE(m.id + " " + p.name);
      EXPECT_TRUE(ids.insert(p.id).second);
      EXPECT_TRUE(names.insert(p.name).second);
      const std::string stem = std::to_string(p.slices) + "g." +
                               std::to_string(NameGigabytes(p.memory_mib, m.memory_mib)) + "gb";
      EXPECT_TRUE(p.name.starts_with(stem)) << stem;
      EXPECT_GE(static_cast<int>(p.starts.size()), p.instances);
      EXPECT_LE(p.instances * p.slices, m.mig_max_instances);
      EXPECT_LE(p.multiprocessors, m.multiprocessors);
      int last_end = 0;
      for (const int start : p.starts) {
        EXPECT_GE(start, last_end) << "places of one profile overlap";
        last_end = start + p.size;
      }
      EXPECT_LE(last_end, m.mig_memory_slices);
    }
  }
}

TEST(FindModel, TakesManyNames) {
  const Model* a100 = *FindModel("a100-sxm4-40gb");
  EXPECT_EQ(*FindModel("NVIDIA A100-SXM4-40GB"), a100);
  EXPECT_EQ(*FindModel("NVIDIA-A100-SXM4-40GB"), a100);
  EXPECT_EQ(*FindModel("A100-SXM4-40GB"), a100);
  EXPECT_EQ(*FindModel("A100"), a100);
  EXPECT_EQ((*FindModel("Tesla-T4"))->product, "Tesla T4");
}

TEST(FindModel, SuggestsTheNearest) {
  const auto wrong = FindModel("a100-90gb");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().message.substr(0, 63),
            "unknown GPU model \"a100-90gb\"; did you mean a100-40gb, a100-80g");
  EXPECT_EQ(NearestModels("h10", 1), std::vector<std::string>{"h100"});
  EXPECT_EQ(FindModel("voodoo2-with-glide").error().message,
            "unknown GPU model \"voodoo2-with-glide\"; `sextant models` lists them");
  EXPECT_TRUE(NearestModels(std::string(100000, 'x')).empty());
  // By the product's name, as a ConfigMap of fake-gpu-operator has it.
  EXPECT_EQ(NearestModels("NVIDIA-H100-80GB-HBM4", 1), std::vector<std::string>{"h100-sxm5-80gb"});
  EXPECT_EQ(NearestModels("Tesla-V101-SXM2-16GB", 1), std::vector<std::string>{"v100-sxm2-16gb"});
}

TEST(SanitiseLabel, AsGfd) {
  EXPECT_EQ(SanitiseLabel("NVIDIA H100 80GB HBM3"), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(SanitiseLabel("  DGX-1 with  V100 (rev. A)/x "), "DGX-1-with-V100-rev.-Ax");
  EXPECT_EQ(SanitiseLabel(""), "");
}

TEST(ParseCatalogue, RefusesMistakes) {
  EXPECT_FALSE(ParseCatalogue("").has_value());
  EXPECT_FALSE(ParseCatalogue("{}").has_value());
  EXPECT_FALSE(ParseCatalogue(R"({"models":[{"id":"x","product":"X"}]})").has_value());
}

}  // namespace
}  // namespace sextant::gpu
