#include "gpu/labels.h"

#include <algorithm>
#include <set>
#include <vector>

namespace sextant::gpu {
namespace {

using Labels = std::map<std::string, std::string>;

constexpr std::string_view kGpu = "nvidia.com/gpu";

std::string_view Family(const Model& m) {
  switch (m.compute_major) {
    case 7:
      return m.compute_minor < 5 ? "volta" : "turing";
    case 8:
      return m.compute_minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    default:
      return "undefined";
  }
}

std::vector<std::string> SplitDots(std::string_view text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == '.') {
      out.emplace_back();
    } else {
      out.back().push_back(c);
    }
  }
  return out;
}

void Versions(const Inventory& inventory, Labels& out) {
  std::vector<std::string> driver = SplitDots(inventory.driver_version);
  driver.resize(3);
  std::vector<std::string> cuda = SplitDots(inventory.cuda_version);
  cuda.resize(2);
  out["nvidia.com/cuda.driver.major"] = driver[0];
  out["nvidia.com/cuda.driver.minor"] = driver[1];
  out["nvidia.com/cuda.driver.rev"] = driver[2];
  out["nvidia.com/cuda.driver-version.major"] = driver[0];
  out["nvidia.com/cuda.driver-version.minor"] = driver[1];
  out["nvidia.com/cuda.driver-version.revision"] = driver[2];
  out["nvidia.com/cuda.driver-version.full"] = inventory.driver_version;
  out["nvidia.com/cuda.runtime.major"] = cuda[0];
  out["nvidia.com/cuda.runtime.minor"] = cuda[1];
  out["nvidia.com/cuda.runtime-version.major"] = cuda[0];
  out["nvidia.com/cuda.runtime-version.minor"] = cuda[1];
  out["nvidia.com/cuda.runtime-version.full"] = cuda[0] + "." + cuda[1];
}

// GFD's base labels of one resource: product, count, replicas, sharing strategy.
void Base(std::string_view resource, const std::string& product, int count, int replicas,
          const LabelOptions& options, Labels& out) {
  const std::string stem(resource);
  const bool shared = options.sharing != Sharing::kNone && replicas > 1;
  out[stem + ".product"] = product + (shared && !options.renamed ? "-SHARED" : "");
  out[stem + ".count"] = std::to_string(count);
  out[stem + ".replicas"] = std::to_string(replicas);
  out[stem + ".sharing-strategy"] = !shared                            ? "none"
                                    : options.sharing == Sharing::kMps ? "mps"
                                                                       : "time-slicing";
}

void WholeCards(const std::vector<const Card*>& cards, const LabelOptions& options, Labels& out) {
  // Of several models one wins: the last whole card's, then the last MIG-enabled one's.
  const Card* chosen = cards.back();
  for (const Card* card : cards) {
    if (!card->mig_enabled || chosen->mig_enabled) chosen = card;
  }
  const auto same = std::ranges::count(cards, chosen->product, &Card::product);
  const int replicas = chosen->mig_enabled                 ? 0
                       : options.sharing == Sharing::kNone ? 1
                                                           : options.replicas;
  const std::string stem(kGpu);
  Base(kGpu, SanitiseLabel(chosen->product), static_cast<int>(same), replicas, options, out);
  out[stem + ".memory"] = std::to_string(chosen->memory_mib);
  out[stem + ".family"] = Family(*chosen->model);
  out[stem + ".compute.major"] = std::to_string(chosen->model->compute_major);
  out[stem + ".compute.minor"] = std::to_string(chosen->model->compute_minor);
  std::set<int> classes;
  for (const Card* card : cards) classes.insert(card->model->pci_class);
  out[stem + ".mode"] = classes.size() > 1           ? "unknown"
                        : *classes.begin() == 0x0302 ? "compute"
                        : *classes.begin() == 0x0300 ? "graphics"
                                                     : "unknown";
}

// What a MIG profile is called in a resource name: "1g.5gb+me" -> "1g.5gb.me".
std::string ResourcePart(std::string name) {
  std::ranges::replace(name, '+', '.');
  return name;
}

void MigResource(const std::string& resource, const Card& card, const MigProfile& p, int count,
                 const LabelOptions& options, Labels& out) {
  const int replicas = options.sharing == Sharing::kNone ? 1 : options.replicas;
  Base(resource, SanitiseLabel(card.product) + "-MIG-" + SanitiseLabel(ResourcePart(p.name)), count,
       replicas, options, out);
  out[resource + ".memory"] = std::to_string(p.memory_mib);
  out[resource + ".multiprocessors"] = std::to_string(p.multiprocessors);
  out[resource + ".slices.gi"] = std::to_string(p.slices);
  out[resource + ".slices.ci"] = std::to_string(p.slices);
  out[resource + ".engines.copy"] = std::to_string(p.copy_engines);
  out[resource + ".engines.decoder"] = std::to_string(p.decoders);
  out[resource + ".engines.encoder"] = std::to_string(p.encoders);
  out[resource + ".engines.jpeg"] = std::to_string(p.jpegs);
  out[resource + ".engines.ofa"] = std::to_string(p.ofas);
}

// Profile -> how many and on which card.
struct MigKind {
  const Card* card = nullptr;
  int count = 0;
};
std::map<std::string, MigKind> MigKinds(const std::vector<const Card*>& cards) {
  std::map<std::string, MigKind> out;
  for (const Card* card : cards) {
    for (const MigDevice& d : card->mig) {
      MigKind& kind = out[d.profile];
      if (kind.card == nullptr) kind.card = card;
      ++kind.count;
    }
  }
  return out;
}

void MigSingle(const std::vector<const Card*>& cards, const LabelOptions& options, Labels& out) {
  const auto enabled = std::ranges::count(cards, true, &Card::mig_enabled);
  if (enabled == 0) return;
  const std::map<std::string, MigKind> kinds = MigKinds(cards);
  const bool empty =
      std::ranges::any_of(cards, [](const Card* c) { return c->mig_enabled && c->mig.empty(); });
  if (empty || enabled != static_cast<int64_t>(cards.size()) || kinds.size() != 1) {
    const auto first = std::ranges::find(cards, true, &Card::mig_enabled);
    const std::string stem(kGpu);
    out[stem + ".product"] = SanitiseLabel((*first)->product) + "-MIG-INVALID";
    out[stem + ".count"] = out[stem + ".replicas"] = out[stem + ".memory"] = "0";
    out[stem + ".sharing-strategy"] = "";
    return;
  }
  const auto& [profile, kind] = *kinds.begin();
  MigResource(std::string(kGpu), *kind.card, *kind.card->model->FindMigProfile(profile), kind.count,
              options, out);
}

void MigMixed(const std::vector<const Card*>& cards, const LabelOptions& options, Labels& out) {
  for (const auto& [profile, kind] : MigKinds(cards)) {
    MigResource("nvidia.com/mig-" + ResourcePart(profile), *kind.card,
                *kind.card->model->FindMigProfile(profile), kind.count, options, out);
  }
}

// What the operator would run here (its state manager's label sets).
void Deploy(const std::vector<const Card*>& cards, bool mig_capable, Labels& out) {
  std::set<std::string_view> operands = {"driver"};
  for (const Card* card : cards) {
    if (card->allocation == Allocation::kPlugin) {
      operands.insert({"gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm",
                       "dcgm-exporter", "node-status-exporter", "operator-validator", "client"});
      if (mig_capable) operands.insert("mig-manager");
    } else {
      operands.insert({"dra-driver", "dra-validator", "dcgm-dra", "dcgm-exporter-dra"});
    }
  }
  for (const std::string_view operand : operands) {
    out["nvidia.com/gpu.deploy." + std::string(operand)] = "true";
  }
}

}  // namespace

std::string VramTier(int memory_mib) {
  constexpr int kTiers[] = {8, 16, 24, 32, 40, 48, 80, 96, 128, 180, 256};
  // Nine tenths of a tier are enough: ECC and the driver take the rest.
  int tier = 0;
  for (const int gib : kTiers) {
    if (memory_mib * 10LL >= gib * 1024LL * 9) tier = gib;
  }
  return std::to_string(tier) + "g";
}

std::map<std::string, std::string> NodeLabels(const Inventory& inventory,
                                              const LabelOptions& options) {
  Labels out;
  std::vector<const Card*> cards;
  for (const Card& card : inventory.cards) {
    if (!card.lost) cards.push_back(&card);
  }
  if (cards.empty()) return out;
  const bool mig_capable =
      std::ranges::any_of(cards, [](const Card* c) { return c->model->MigCapable(); });
  Versions(inventory, out);
  WholeCards(cards, options, out);
  const std::string machine = SanitiseLabel(inventory.machine);
  out["nvidia.com/gpu.machine"] = machine.empty() ? "unknown" : machine;
  out["nvidia.com/mig.capable"] = mig_capable ? "true" : "false";
  const bool any_mig = std::ranges::any_of(cards, [](const Card* c) { return c->mig_enabled; });
  out["nvidia.com/mps.capable"] = options.sharing == Sharing::kMps && !any_mig ? "true" : "false";
  out["nvidia.com/vgpu.present"] = "false";
  if (options.timestamp_s > 0) {
    out["nvidia.com/gfd.timestamp"] = std::to_string(options.timestamp_s);
  }
  if (options.mig_strategy == MigStrategy::kSingle) {
    out["nvidia.com/mig.strategy"] = "single";
    MigSingle(cards, options, out);
  } else if (options.mig_strategy == MigStrategy::kMixed) {
    out["nvidia.com/mig.strategy"] = "mixed";
    MigMixed(cards, options, out);
  }
  if (!inventory.fabric_uuid.empty()) {
    out["nvidia.com/gpu.clique"] =
        inventory.fabric_uuid + "." + std::to_string(inventory.fabric_clique);
  }
  out[std::string(kPciLabel)] = "true";
  out["nvidia.com/gpu.present"] = "true";
  Deploy(cards, mig_capable, out);
  int smallest = cards.front()->memory_mib;
  for (const Card* card : cards) smallest = std::min(smallest, card->memory_mib);
  out["sextant.dev/gpu.vram-tier"] = VramTier(smallest);
  return out;
}

}  // namespace sextant::gpu
