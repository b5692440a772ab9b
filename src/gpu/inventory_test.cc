#include "gpu/inventory.h"

#include <gtest/gtest.h>

#include <set>

#include "gpu/json.h"
#include "gpu/uuid.h"

namespace sextant::gpu {
namespace {

Inventory Build(PoolSpec pool) {
  Result<Inventory> built = BuildInventory(pool, "gpu-lab", "gpu-lab-worker");
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  return built.value_or(Inventory());
}

TEST(BuildInventory, EightA100s) {
  const Inventory node = Build({});
  ASSERT_EQ(node.cards.size(), 8u);
  std::set<std::string> uuids, serials;
  for (const Card& card : node.cards) {
    EXPECT_EQ(card.product, "NVIDIA A100-SXM4-40GB");
    EXPECT_EQ(card.memory_mib, 40960);
    EXPECT_EQ(card.minor, card.index);
    EXPECT_TRUE(uuids.insert(card.uuid).second);
    EXPECT_TRUE(serials.insert(card.serial).second);
    EXPECT_EQ(card.serial.size(), 13u);
    EXPECT_EQ(card.allocation, Allocation::kPlugin);
  }
  EXPECT_EQ(node.cards[1].bus_id, "00000000:0F:00.0");
  EXPECT_EQ(node.cards[1].PciAddress(), "0000:0f:00.0");
  EXPECT_EQ(node.cards[0].numa_node, 3);
}

TEST(BuildInventory, UuidsAreTheSameEveryTime) {
  EXPECT_EQ(Build({}), Build({}));
  // Pinned: a change here changes the identity of every card in every kept lab.
  EXPECT_EQ(CardUuid("gpu-lab", "gpu-lab-worker", 0), "GPU-1cd7532e-4109-5c8a-b3e0-ed7546ae0398");
  EXPECT_NE(CardUuid("a", "bc", 0), CardUuid("ab", "c", 0));
  EXPECT_NE(CardUuid("a", "b", 1), CardUuid("a", "b", 11));
}

TEST(BuildInventory, MoreCardsThanTheUsualServer) {
  for (const char* model : {"gb200", "a100", "gh200"}) {
    const Inventory node = Build({.model = model, .count = 20});
    std::set<std::string> bus_ids;
    for (const Card& card : node.cards) EXPECT_TRUE(bus_ids.insert(card.bus_id).second) << model;
  }
}

TEST(BuildInventory, PoolsMayRename) {
  const Inventory node = Build(
      {.model = "t4", .count = 2, .product = "Tesla-K80", .memory_mib = 11441, .dra_cards = 1});
  EXPECT_EQ(node.cards[0].product, "Tesla-K80");
  EXPECT_EQ(node.cards[0].memory_mib, 11441);
  EXPECT_EQ(node.cards[0].allocation, Allocation::kPlugin);
  EXPECT_EQ(node.cards[1].allocation, Allocation::kDra);
}

TEST(BuildInventory, Refuses) {
  const PoolSpec wrong[] = {
      {.model = "a1000000"},
      {.count = -1},
      {.count = kMaxCards + 1},
      {.memory_mib = -1},
      {.count = 2, .dra_cards = 3},
      {.model = "t4", .mig_enabled = true},
      {.model = "t4", .mig = {{"1g.5gb", 1}}},
      {.mig = {{"1g.99gb", 1}}},
      {.mig = {{"1g.5gb", 8}}},
      {.mig = {{"3g.20gb", 2}, {"1g.5gb", 1}}},
  };
  for (const PoolSpec& pool : wrong) {
    EXPECT_FALSE(BuildInventory(pool, "c", "n").has_value())
        << pool.model << " " << pool.count << " " << pool.mig.size();
  }
}

TEST(BuildInventory, CutsMig) {
  const Inventory node =
      Build({.count = 1, .mig = {{"1g.5gb", 2}, {"2g.10gb", 1}, {"3g.20gb", 1}}});
  const Card& card = node.cards[0];
  EXPECT_TRUE(card.mig_enabled);
  ASSERT_EQ(card.mig.size(), 4u);
  EXPECT_EQ(card.mig[0].profile, "3g.20gb");
  EXPECT_EQ(card.mig[0].start, 4);
  EXPECT_EQ(card.mig[0].gpu_instance, 2);
  EXPECT_EQ(card.mig[1].profile, "2g.10gb");
  EXPECT_EQ(card.mig[1].start, 0);
  EXPECT_EQ(card.mig[1].gpu_instance, 3);
  EXPECT_EQ(card.mig[2].gpu_instance, 9);
  EXPECT_EQ(card.mig[3].gpu_instance, 10);
  std::set<std::string> uuids;
  std::set<int> instances;
  for (const MigDevice& d : card.mig) {
    EXPECT_TRUE(uuids.insert(d.uuid).second);
    EXPECT_TRUE(instances.insert(d.gpu_instance).second);
    EXPECT_EQ(node.Find(d.uuid), &card);
  }
}

TEST(BuildInventory, TakesEveryGeometryOfOneProfile) {
  for (const Model& model : Catalogue().models) {
    for (const MigProfile& p : model.mig_profiles) {
      const auto built =
          BuildInventory({.model = model.id, .count = 1, .mig = {{p.name, p.instances}}}, "c", "n");
      ASSERT_TRUE(built.has_value()) << model.id << " " << built.error().message;
      EXPECT_EQ(built->cards[0].mig.size(), static_cast<size_t>(p.instances));
    }
  }
  // mig-parted's all-balanced.
  EXPECT_TRUE(
      BuildInventory({.model = "h200", .mig = {{"1g.18gb", 2}, {"2g.35gb", 1}, {"3g.71gb", 1}}},
                     "c", "n")
          .has_value());
  EXPECT_TRUE(BuildInventory({.model = "a100", .mig = {{"4g.20gb", 1}, {"3g.20gb", 1}}}, "c", "n")
                  .has_value());
}

TEST(View, ShowsExactlyWhatIsGiven) {
  const Inventory node = Build({});
  const std::vector<std::string> wanted = {node.cards[6].uuid, node.cards[2].uuid};
  const Result<Inventory> seen = node.View(wanted);
  ASSERT_TRUE(seen.has_value());
  ASSERT_EQ(seen->cards.size(), 2u);
  EXPECT_EQ(seen->cards[0].uuid, node.cards[2].uuid);
  EXPECT_EQ(seen->cards[0].index, 0);
  EXPECT_EQ(seen->cards[0].minor, 2);
  EXPECT_EQ(seen->cards[1].uuid, node.cards[6].uuid);
  EXPECT_TRUE(node.View({})->cards.empty());
  const std::vector<std::string> unknown = {"GPU-0"};
  EXPECT_EQ(node.View(unknown).error().message, "no GPU GPU-0 on node gpu-lab-worker");
}

TEST(View, ShowsOneMigDevice) {
  Inventory node = Build({.count = 2, .mig = {{"1g.5gb", 7}}});
  const MigDevice& chosen = node.cards[1].mig[3];
  node.cards[1].processes = {{.pid = 1,
                              .name = "mine",
                              .memory_mib = 10,
                              .gpu_instance = chosen.gpu_instance,
                              .compute_instance = 0},
                             {.pid = 2,
                              .name = "other",
                              .memory_mib = 10,
                              .gpu_instance = node.cards[1].mig[0].gpu_instance,
                              .compute_instance = 0}};
  const std::vector<std::string> wanted = {chosen.uuid};
  const Result<Inventory> seen = node.View(wanted);
  ASSERT_TRUE(seen.has_value());
  ASSERT_EQ(seen->cards.size(), 1u);
  ASSERT_EQ(seen->cards[0].mig.size(), 1u);
  EXPECT_EQ(seen->cards[0].mig[0], chosen);
  ASSERT_EQ(seen->cards[0].processes.size(), 1u);
  EXPECT_EQ(seen->cards[0].processes[0].name, "mine");
}

TEST(Serialise, ComesBack) {
  Inventory node = Build({.count = 3, .mig = {{"3g.20gb", 1}}});
  node.cards[0].healthy = false;
  node.cards[0].unhealthy_reason = "Xid 79: \"fallen off the bus\"\n";
  node.cards[0].last_xid = 79;
  node.cards[0].lost = true;
  node.cards[1].ecc_enabled = false;
  node.cards[1].ecc_uncorrected = 3;
  node.cards[2].processes = {{.pid = 4711, .name = "python3 \xC3\xA9", .memory_mib = 512}};
  node.cards[2].gpu_util = 97;
  node.cards[2].memory_used_mib = 512;
  const Result<Inventory> back = ParseInventory(Serialise(node));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, node);
}

TEST(ParseInventory, RefusesWhatIsWrong) {
  const std::string good = Serialise(Build({.count = 1}));
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(ParseInventory(good.substr(0, cut)).has_value()) << cut;
  }
  for (const char* text : {
           "",
           "[]",
           "null",
           R"({"format":2,"cards":[]})",
           R"({"format":1,"cards":[{"model":"nothing"}]})",
           R"({"format":1,"cards":[{"model":"t4"}]})",
           R"({"format":1,"cards":[{"model":"t4","uuid":"GPU-1","bus_id":"x","memory_mib":-5}]})",
       }) {
    EXPECT_FALSE(ParseInventory(text).has_value()) << text;
  }
}

TEST(Topology, NvLinkAndPcie) {
  const Inventory dgx = Build({});
  EXPECT_EQ(NvLinksBetween(dgx.cards[0], dgx.cards[7]), 12);
  EXPECT_EQ(NvLinksBetween(dgx.cards[0], dgx.cards[0]), 0);
  EXPECT_EQ(PcieRelation(dgx.cards[0], dgx.cards[1]), "PXB");
  EXPECT_EQ(PcieRelation(dgx.cards[0], dgx.cards[2]), "SYS");
  const Inventory volta = Build({.model = "v100"});
  EXPECT_EQ(NvLinksBetween(volta.cards[0], volta.cards[3]), 2);
  EXPECT_EQ(NvLinksBetween(volta.cards[0], volta.cards[7]), 0);
  const Inventory nvl = Build({.model = "h100-nvl", .count = 4});
  EXPECT_EQ(NvLinksBetween(nvl.cards[0], nvl.cards[1]), 12);
  EXPECT_EQ(NvLinksBetween(nvl.cards[1], nvl.cards[2]), 0);
  EXPECT_EQ(PcieRelation(nvl.cards[0], nvl.cards[1]), "NODE");
}

TEST(Json, ReadsAndRefuses) {
  const Result<Json> doc = Json::Parse(R"( {"a":[1,-2.5e1,"\u00e9\ud83d\ude00\n",true,null]} )");
  ASSERT_TRUE(doc.has_value());
  const auto& items = doc->At("a").Items();
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].Int(), 1);
  EXPECT_EQ(items[1].Num(), -25);
  EXPECT_EQ(items[2].Str(), "\xC3\xA9\xF0\x9F\x98\x80\n");
  EXPECT_TRUE(items[3].Bool());
  EXPECT_TRUE(items[4].IsNull());
  EXPECT_TRUE(doc->At("b").IsNull());
  for (const char* text : {"{", "[1,]", "{\"a\"}", "\"\\ud800\"", "\"\\x\"", "nan", "inf", "1 2",
                           "\"a\nb\"", "tru", "\"\\u12\"", "[1 2]", "{1:2}"}) {
    EXPECT_FALSE(Json::Parse(text).has_value()) << text;
  }
  EXPECT_FALSE(Json::Parse(std::string(100000, '[')).has_value());
}

}  // namespace
}  // namespace sextant::gpu
