// The one truth about devices (DESIGN, law 7): the cards of one node. Device-plugin ids, DRA device
// names, pod-resources, CDI, nvidia-smi, metrics, labels and preflight's identity chain are views
// of it.
//
//   ASSIGN_OR_RETURN(Inventory node, BuildInventory({.model = "a100", .count = 8}, "gpu-lab",
//                                                   "gpu-lab-worker"));
//   ASSIGN_OR_RETURN(Inventory seen, node.View({"GPU-..."}));  // what one container may see
//   WriteFile(root / kContainerInventoryPath, Serialise(seen));
//
// UUIDs are name-based (SHA-1, RFC 4122 version 5) over cluster, node and index: the same after a
// restart. Memory in MiB, utilisation in percent. Plain values: copy them freely, no threads, no
// clock. Temperature and power are functions of the card's load (telemetry.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/catalogue.h"

namespace sextant::gpu {

// Where the static nvidia-smi finds its cards, inside a container. The runtime puts it there.
inline constexpr char kContainerInventoryPath[] = "/run/sextant/gpus.json";

// More cards on a node than any server has; a limit for what comes from outside.
inline constexpr int kMaxCards = 256;
inline constexpr int kMaxProcessesPerCard = 1024;

// A program that uses a card (simulated telemetry).
struct Process {
  int64_t pid = 0;
  std::string name;
  int memory_mib = 0;
  int gpu_instance = -1, compute_instance = -1;  // -1: not on a MIG device

  bool operator==(const Process&) const = default;
};

// A GPU instance with one compute instance over all of it: one MIG device.
struct MigDevice {
  std::string uuid;     // "MIG-..."
  std::string profile;  // name in the model's mig_profiles
  int gpu_instance = 0, compute_instance = 0;
  int start = 0;  // first memory slice

  bool operator==(const MigDevice&) const = default;
};

// On which path a card is offered; on one at a time.
enum class Allocation { kPlugin, kDra };

struct Card {
  int index = 0;  // as nvidia-smi counts: 0.. within this inventory
  int minor = 0;  // /dev/nvidia<minor>; keeps its host value in a view
  std::string uuid;
  std::string bus_id;  // "00000000:07:00.0", NVML's form
  std::string serial;
  const Model* model = nullptr;  // never null
  std::string product;           // the model's, or the pool's own
  int memory_mib = 0;            // the model's, or the pool's own
  int numa_node = -1;
  std::string cpus;  // of the NUMA node, "0-31,64-95"
  int slot = 0;      // place in the model's usual server (ServerLayout)
  Allocation allocation = Allocation::kPlugin;

  bool mig_enabled = false;
  std::vector<MigDevice> mig;

  bool healthy = true;
  std::string unhealthy_reason;  // for a person; empty when healthy
  int last_xid = 0;
  bool lost = false;  // fell off the bus: nvidia-smi cannot reach it
  bool ecc_enabled = true;
  int64_t ecc_corrected = 0, ecc_uncorrected = 0;  // since the driver was loaded

  int gpu_util = 0, memory_util = 0;
  int memory_used_mib = 0;  // beyond what the driver reserves
  std::vector<Process> processes;

  bool operator==(const Card&) const = default;
  // "0000:07:00.0": sysfs' and the DRA attribute's form.
  std::string PciAddress() const;
};

struct Inventory {
  std::string cluster;
  std::string node;
  std::string machine;  // DMI product name
  std::string driver_version, cuda_version;
  // The NVLink domain that spans nodes (GB200, GB300 racks): nvidia.com/gpu.clique. Empty: none.
  std::string fabric_uuid;
  int fabric_clique = 0;
  std::vector<Card> cards;

  bool operator==(const Inventory&) const = default;

  // By GPU UUID, or by the UUID of one of its MIG devices. nullptr when absent.
  const Card* Find(std::string_view uuid) const;
  Card* Find(std::string_view uuid);

  // Exactly the cards (and of MIG-enabled cards exactly the MIG devices) whose UUIDs are given, in
  // this inventory's order, counted anew from 0. An unknown UUID is an error.
  Result<Inventory> View(std::span<const std::string> uuids) const;
};

// MIG devices to cut out of every card of a pool: `count` instances of `profile`.
struct MigWish {
  std::string profile;
  int count = 0;
};

// What a GPUPool object says about its cards.
struct PoolSpec {
  std::string model = "a100-sxm4-40gb";  // any name that FindModel knows
  int count = 8;
  std::string product;  // printed instead of the model's name (fake-gpu-operator's pools)
  int memory_mib = 0;   // instead of the model's memory; 0: the model's
  std::string driver_version, cuda_version;  // empty: the model's
  std::string machine;                       // empty: the usual server's
  std::string fabric;  // name of the NVLink domain (a rack's) of cards that have one
  int dra_cards = 0;   // the last so many cards are offered by DRA, the others by the plugin
  bool mig_enabled = false;
  std::vector<MigWish> mig;  // per card; implies mig_enabled
};

// The cards of one node. `cluster` is the lab's id or name: with `node` and the index it makes the
// UUIDs. Errors: unknown model, count out of range, a MIG wish that does not fit on the card.
Result<Inventory> BuildInventory(const PoolSpec& pool, std::string_view cluster,
                                 std::string_view node);

// Several pools on one node: `more`'s cards come after those of `inventory`, numbered on.
void Append(Inventory& inventory, const Inventory& more);

// One compact JSON text, and back. Parse checks and bounds everything: the text may come from
// outside.
std::string Serialise(const Inventory& inventory);
Result<Inventory> ParseInventory(std::string_view json);

// NVLinks between two cards of one node; 0: none.
int NvLinksBetween(const Card& a, const Card& b);

// How PCIe joins two cards, in nvidia-smi's words: "PIX" one switch, "NODE" one NUMA node, "SYS"
// across sockets, "X" the same card.
std::string_view PcieRelation(const Card& a, const Card& b);

}  // namespace sextant::gpu
