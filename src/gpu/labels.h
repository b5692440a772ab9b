// Labels of a GPU node, as a pure function of its cards: what GPU feature discovery, NFD and the
// GPU operator would set there, and our own tier.
//
//   for (auto& [key, value] : NodeLabels(inventory)) ...   // "nvidia.com/gpu.count": "8"
//
// Names and rules: GPU feature discovery v0.20 (internal/lm of NVIDIA/k8s-device-plugin), the
// operator's state manager (nvidia.com/gpu.deploy.*). A card that fell off the bus is not counted;
// without a card left there are no labels at all, as with GFD.
//
// sextant.dev/gpu.vram-tier lets a Pod ask for "at least so much memory" by name. The tier is the
// largest of 8g, 16g, 24g, 32g, 40g, 48g, 80g, 96g, 128g, 180g, 256g (GiB) of which the card's
// memory is at least nine tenths: ECC and the driver take a part (a 24 GB A10 reports 22.5 GiB and
// is 24g). The smallest card of the node decides.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "gpu/inventory.h"

namespace sextant::gpu {

enum class MigStrategy { kNone, kSingle, kMixed };
enum class Sharing { kNone, kTimeSlicing, kMps };

struct LabelOptions {
  MigStrategy mig_strategy = MigStrategy::kNone;
  Sharing sharing = Sharing::kNone;
  int replicas = 1;         // per card when shared
  bool renamed = false;     // shared cards are offered under another name
  int64_t timestamp_s = 0;  // nvidia.com/gfd.timestamp, seconds since 1970; 0: left out
};

// NFD's mark of a node with an NVIDIA device on its PCI bus.
inline constexpr std::string_view kPciLabel = "feature.node.kubernetes.io/pci-10de.present";

std::map<std::string, std::string> NodeLabels(const Inventory& inventory,
                                              const LabelOptions& options = {});

std::string VramTier(int memory_mib);

// The taint that keeps other Pods off GPU nodes, where a user asks for it.
struct NodeTaint {
  std::string_view key, value, effect;
};
inline constexpr NodeTaint kGpuTaint = {"nvidia.com/gpu", "present", "NoSchedule"};

}  // namespace sextant::gpu
