#include "gpu/smi.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gpu/telemetry.h"

namespace sextant::gpu {
namespace {

Inventory Build(const PoolSpec& pool) {
  Result<Inventory> built = BuildInventory(pool, "gpu-lab", "gpu-lab-worker");
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  return built.value_or(Inventory());
}

SmiTime Noon() {
  SmiTime now;
  now.local.tm_year = 126;
  now.local.tm_mon = 6;
  now.local.tm_mday = 4;
  now.local.tm_wday = 6;
  now.local.tm_hour = 12;
  now.milliseconds = 7;
  return now;
}

SmiResult Smi(const Inventory& visible, const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> args;
  for (std::string word; words >> word;) args.push_back(word);
  return RunSmi(visible, args, Noon());
}

// UPDATE_GOLDEN=1 writes the files anew; look at the difference before you commit it.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(SEXTANT_SOURCE_DIR) + "/tests/golden/nvidia-smi/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  std::ostringstream want;
  want << file.rdbuf();
  EXPECT_EQ(text, want.str()) << name;
}

// A card in use beside one at rest, one in trouble and one that left the bus.
Inventory Mixed() {
  Inventory node = Build({.model = "l40s", .count = 4});
  node.cards[1].gpu_util = 97;
  node.cards[1].memory_util = 41;
  node.cards[1].processes = {
      {.pid = 4711, .name = "python3", .memory_mib = 20480},
      {.pid = 4712,
       .name = "/opt/a/very/long/path/that/does/not/fit/into/the/column/train.py",
       .memory_mib = 512}};
  node.cards[2].healthy = false;
  node.cards[2].last_xid = 48;
  node.cards[2].ecc_uncorrected = 3;
  node.cards[3].lost = true;
  return node;
}

Inventory Mig() {
  Inventory node =
      Build({.model = "h100", .count = 1, .mig = {{"1g.10gb", 2}, {"2g.20gb", 1}, {"3g.40gb", 1}}});
  node.cards[0].processes = {{.pid = 99,
                              .name = "./gpu_burn",
                              .memory_mib = 1000,
                              .gpu_instance = 2,
                              .compute_instance = 0}};
  return node;
}

TEST(SmiGolden, Views) {
  const Inventory a100 = Build({});
  const Inventory one = *a100.View(std::vector<std::string>{a100.cards[5].uuid});
  const Inventory rtx = Build({.model = "rtx-pro-6000", .count = 2});
  const struct {
    const char* file;
    const Inventory inventory;
    const char* args;
  } cases[] = {
      {"a100-table.txt", a100, ""},
      {"a100-one-card-table.txt", one, ""},
      {"a100-list.txt", a100, "-L"},
      {"a100-query.txt", one, "-q"},
      {"a100-query.xml", one, "-q -x"},
      {"a100-topo.txt", a100, "topo -m"},
      {"v100-topo.txt", Build({.model = "v100"}), "topo -m"},
      {"gb200-topo.txt", Build({.model = "gb200", .count = 4}), "topo -m"},
      {"gb200-table.txt", Build({.model = "gb200", .count = 4}), ""},
      {"v100-ecc.txt", Build({.model = "v100", .count = 1}), "-q -d ECC,PAGE_RETIREMENT"},
      {"t4-query.txt", Build({.model = "t4", .count = 1}), "-q"},
      {"rtx-table.txt", rtx, ""},
      {"rtx-mig-profiles.txt", rtx, "mig -i 1 -lgip"},
      {"mixed-table.txt", Mixed(), ""},
      {"mixed-ecc.txt", Mixed(), "-q -d ECC,PIDS,UTILIZATION -i 1,2"},
      {"mixed-apps.csv", Mixed(),
       "--query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv"},
      {"mig-table.txt", Mig(), ""},
      {"mig-list.txt", Mig(), "-L"},
      {"mig-query.txt", Mig(), "-q"},
      {"mig-query.xml", Mig(), "-q -x"},
      {"mig-profiles.txt", Mig(), "mig -lgip"},
      {"mig-placements.txt", Mig(), "mig -lgipp"},
      {"mig-instances.txt", Mig(), "mig -lgi"},
      {"h100-nvlink.txt", Build({.model = "h100", .count = 1}), "nvlink -s"},
      {"help.txt", a100, "-h"},
      {"help-query-gpu.txt", a100, "--help-query-gpu"},
      {"version.txt", a100, "--version"},
  };
  for (const auto& c : cases) {
    const SmiResult r = Smi(c.inventory, c.args);
    ExpectGolden(c.file, r.out);
    const bool lost =
        std::string(c.file) == "mixed-table.txt" || std::string(c.file) == "mixed-apps.csv";
    EXPECT_EQ(r.code, lost ? 15 : 0) << c.file;
  }
}

// Every property at once: the list is the one of --help-query-gpu.
TEST(SmiGolden, EveryProperty) {
  const Inventory h200 = Build({.model = "h200", .count = 1});
  std::istringstream help(Smi(h200, "--help-query-gpu").out);
  std::string names;
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with('"')) {
      names += (names.empty() ? "" : ",") + line.substr(1, line.find('"', 1) - 1);
    }
  }
  const SmiResult r = Smi(h200, "--query-gpu=" + names + " --format=csv");
  EXPECT_EQ(r.code, 0);
  ExpectGolden("h200-every-property.csv", r.out);
}

TEST(RunSmi, CsvForms) {
  const Inventory node = Build({.count = 2});
  const struct {
    const char* args;
    const char* out;
  } cases[] = {
      {"--query-gpu=index,name --format=csv",
       "index, name\n0, NVIDIA A100-SXM4-40GB\n1, NVIDIA A100-SXM4-40GB\n"},
      {"--query-gpu=index,memory.total --format=csv",
       "index, memory.total [MiB]\n0, 40960 MiB\n1, 40960 MiB\n"},
      {"--query-gpu=index,memory.total --format=csv,noheader", "0, 40960 MiB\n1, 40960 MiB\n"},
      {"--query-gpu=index,memory.total --format=csv,noheader,nounits -i 1", "1, 40960\n"},
      {"--query-gpu=memory.total --format=csv,nounits -i 0", "memory.total [MiB]\n40960\n"},
      {"--query-gpu index --format csv,noheader --id 1", "1\n"},
      {"--format=csv,noheader --id=00000000:0F:00.0 --query-gpu=index", "1\n"},
      {"-i 0000:0f:00.0 --format=csv,noheader --query-gpu=index", "1\n"},
      {"-i=0 --format=csv,noheader --query-gpu=gpu_name,clocks.sm",
       "NVIDIA A100-SXM4-40GB, 210 MHz\n"},
      {"--query-gpu=gom.current,vbios_version --format=csv,noheader -i 0",
       "[N/A], 92.00.45.00.03\n"},
      {"--query-compute-apps=pid --format=csv,noheader", ""},
      {"--query-remapped-rows=gpu_bus_id,remapped_rows.pending --format=csv -i 0",
       "gpu_bus_id, remapped_rows.pending\n00000000:07:00.0, No\n"},
  };
  for (const auto& c : cases) {
    const SmiResult r = Smi(node, c.args);
    EXPECT_EQ(r.out, c.out) << c.args;
    EXPECT_EQ(r.code, 0) << c.args;
  }
}

TEST(RunSmi, RefusesAsTheRealOne) {
  const Inventory node = Build({.count = 1});
  const struct {
    const char* args;
    int code;
    const char* out;
  } cases[] = {
      {"--query-gpu=index,foo --format=csv", 2, "Field \"foo\" is not a valid field to query.\n\n"},
      {"--query-gpu= --format=csv", 2, "Field \"\" is not a valid field to query.\n\n"},
      {"--query-gpu=index", 2,
       "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n\n"},
      {"--query-gpu=index --format=json", 2,
       "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"},
      {"--query-gpu=index --query-compute-apps=pid --format=csv", 2,
       "Only one --query-* switch can be used at a time.\n\n"},
      {"--bogus", 2,
       "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h' for help.\n\n"},
      {"-i", 2, "ERROR: Option -i is missing its value. Please run 'nvidia-smi -h' for help.\n\n"},
      {"-q -d MEMORY,BOGUS", 2,
       "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"},
      {"-l 0", 2,
       "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"},
      {"-i 1", 6, "No devices were found\n"},
      {"-i GPU-unknown -L", 6, "No devices were found\n"},
      {"mig -lgi", 6, "No MIG-enabled devices found.\n"},
      {"-pl 300", 3,
       "\"-pl\" is not available on simulated GPUs: change the pool or the card through the lab "
       "instead.\n"},
      {"dmon -s u -c 5", 3,
       "\"dmon\" is not available on simulated GPUs: the table, -q and --query-gpu, with -l again "
       "and again, are.\n"},
      {"--qurey-gpu=name --format=csv", 2,
       "ERROR: Option --qurey-gpu=name is not recognized. Please run 'nvidia-smi -h' for help.\n"
       "Did you mean --query-gpu?\n\n"},
      {"topo -p", 3, "\"topo -p\" is not available on simulated GPUs.\n"},
  };
  for (const auto& c : cases) {
    const SmiResult r = Smi(node, c.args);
    EXPECT_EQ(r.out, c.out) << c.args;
    EXPECT_EQ(r.code, c.code) << c.args;
  }
}

TEST(RunSmi, WithoutCards) {
  for (const char* args :
       {"", "-L", "-q", "-q -x", "topo -m", "--query-gpu=name --format=csv,noheader"}) {
    const SmiResult r = Smi(Inventory(), args);
    EXPECT_EQ(r.out, "No devices were found\n") << args;
    EXPECT_EQ(r.code, 6) << args;
  }
  EXPECT_EQ(Smi(Inventory(), "--query-gpu=foo --format=csv").code, 2);
  EXPECT_EQ(Smi(Inventory(), "-h").code, 0);
}

TEST(RunSmi, LostCardIsNamed) {
  Inventory node = Build({.count = 1});
  node.cards[0].lost = true;
  const SmiResult r = Smi(node, "");
  EXPECT_EQ(r.code, 15);
  EXPECT_EQ(r.out,
            "Unable to determine the device handle for GPU0: 0000:07:00.0: Unknown Error\n"
            "No devices were found\n");
}

TEST(RunSmi, LoopAndFileAreTheCallers) {
  const Inventory node = Build({.count = 1});
  EXPECT_EQ(Smi(node, "-L -l 2 -f /tmp/x").loop_ms, 2000);
  EXPECT_EQ(Smi(node, "-L -l 2 -f /tmp/x").file, "/tmp/x");
  EXPECT_EQ(Smi(node, "-l").loop_ms, 5000);
  EXPECT_EQ(Smi(node, "-lms 250 -L").loop_ms, 250);
  EXPECT_EQ(Smi(node, "-L").loop_ms, 0);
}

TEST(RunSmi, SaysThatItIsSimulated) {
  const Inventory node = Build({.count = 1});
  for (const char* args : {"", "-q", "-q -x", "--version", "-h"}) {
    EXPECT_NE(Smi(node, args).out.find("imulated"), std::string::npos) << args;
  }
}

// Whatever the card, its use and its name: every line of a box is as wide as its rule.
TEST(RunSmi, BoxesAreStraight) {
  constexpr size_t kWidth = 91;
  for (const Model& model : Catalogue().models) {
    for (const bool busy : {false, true}) {
      Inventory node = Build({.model = model.id, .count = 12, .mig_enabled = model.MigCapable()});
      for (Card& card : node.cards) {
        card.gpu_util = busy ? 100 : 0;
        card.memory_used_mib = busy ? card.memory_mib : 0;
      }
      std::istringstream lines(Smi(node, "").out);
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('|') || line.starts_with('+')) {
          EXPECT_EQ(line.size(), kWidth) << line;
        }
      }
    }
  }
}

TEST(RunSmi, EveryModelAnswersEverything) {
  for (const Model& model : Catalogue().models) {
    const Inventory node = Build({.model = model.id, .count = model.server.count});
    for (const char* args : {"-q", "-q -x", "-L", "topo -m", "nvlink -s", "-q -d SUPPORTED_CLOCKS",
                             "--query-gpu=name --format=csv"}) {
      EXPECT_EQ(Smi(node, args).code, 0) << model.id << " " << args;
    }
  }
}

TEST(Telemetry, FollowsTheLoad) {
  Inventory node = Build({.count = 1});
  Card& card = node.cards[0];
  const Readings idle = ReadingsOf(card);
  EXPECT_TRUE(idle.idle);
  EXPECT_EQ(idle.memory_used_mib + idle.memory_reserved_mib + idle.memory_free_mib, 40960);
  double power = idle.power_w;
  int temperature = idle.temperature;
  for (int util = 10; util <= 100; util += 10) {
    card.gpu_util = util;
    const Readings r = ReadingsOf(card);
    EXPECT_GT(r.power_w, power);
    EXPECT_GE(r.temperature, temperature);
    EXPECT_LE(r.power_w, card.model->power_max);
    EXPECT_LT(r.temperature, card.model->temp_max);
    power = r.power_w;
    temperature = r.temperature;
  }
  card.processes = {{.pid = 1, .name = "x", .memory_mib = 1 << 20}};
  EXPECT_EQ(ReadingsOf(card).memory_free_mib, 0);
}

}  // namespace
}  // namespace sextant::gpu
