// topo -m, nvlink -s and the mig lists.
#include <fmt/format.h>

#include <algorithm>

#include "gpu/smi_views.h"

namespace sextant::gpu::smi {
namespace {

std::string Relation(const Card& a, const Card& b) {
  if (a.uuid == b.uuid) return " X ";
  const int links = NvLinksBetween(a, b);
  return links > 0 ? fmt::format("NV{}", links) : std::string(PcieRelation(a, b));
}

std::string GpuNuma(const Card& card) {
  const auto& nodes = card.model->server.gpu_numa_nodes;
  const auto slot = static_cast<size_t>(card.slot);
  return slot < nodes.size() ? std::to_string(nodes[slot]) : std::string(kNotAvailable);
}

// How many more instances of `profile` fit beside those that are there.
int FreeInstances(const Card& card, const MigProfile& profile) {
  if (!card.mig_enabled) return 0;
  int used_slices = 0;
  for (const MigDevice& d : card.mig) used_slices += card.model->FindMigProfile(d.profile)->slices;
  int free = 0, end = 0;
  for (const int start : profile.starts) {
    const bool taken =
        start < end || std::ranges::any_of(
                           card.mig,
                           [&](const MigDevice& d) {
                             const MigProfile* p = card.model->FindMigProfile(d.profile);
                             return start < d.start + p->size && d.start < start + profile.size;
                           });
    if (taken) continue;
    ++free;
    end = start + profile.size;
  }
  const int by_slices = (card.model->mig_max_instances - used_slices) / profile.slices;
  return std::min({free, by_slices, profile.instances});
}

std::string NotMig() { return "No MIG-supported devices found.\n"; }

}  // namespace

std::string Topology(const Scene& scene) {
  std::string out = "\t\x1b[4m";
  for (const Card* card : scene.cards) out += fmt::format("GPU{}\t", card->index);
  out += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  for (const Card* row : scene.cards) {
    out += fmt::format("GPU{}\t", row->index);
    for (const Card* column : scene.cards) out += Relation(*row, *column) + "\t";
    // Short lists take a second tab to reach the next column.
    out += row->cpus + (row->cpus.size() < 4 ? "\t\t" : "\t");
    out += (row->numa_node < 0 ? "N/A" : std::to_string(row->numa_node)) + "\t\t" + GpuNuma(*row) +
           "\n";
  }
  out +=
      "\nLegend:\n\n"
      "  X    = Self\n"
      "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
      "(e.g., QPI/UPI)\n"
      "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
      "within a NUMA node\n"
      "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
      "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
      "Bridge)\n"
      "  PIX  = Connection traversing at most a single PCIe bridge\n"
      "  NV#  = Connection traversing a bonded set of # NVLinks\n";
  return out;
}

std::string NvLinkStatus(const Scene& scene) {
  std::string out;
  for (const Card* card : scene.cards) {
    out += fmt::format("GPU {}: {} (UUID: {})\n", card->index, card->product, card->uuid);
    if (card->mig_enabled) {
      out += "Nvlink queries are not supported for Devices in MIG mode\n";
      continue;
    }
    const bool joined = card->model->nvlink_group > 0 || !card->model->server.nvlink_matrix.empty();
    for (int i = 0; joined && i < card->model->nvlink_links; ++i) {
      out += fmt::format("\t Link {}: {:.3f} GB/s\n", i, card->model->nvlink_mbps / 1000.0);
    }
  }
  return out;
}

std::string MigProfiles(const Scene& scene) {
  constexpr std::string_view kRule =
      "+-------------------------------------------------------------------------------+\n";
  std::string rows;
  for (const Card* card : scene.cards) {
    for (const MigProfile& p : card->model->mig_profiles) {
      const std::string count = fmt::format("{}/{}", FreeInstances(*card, p), p.instances);
      rows += fmt::format("|{:>4}  MIG {:<15}{:>3}     {:<11}{:<11.2f}No     {:<7}{:<6}{:<4}|\n",
                          card->index, p.name, p.id, count, p.memory_mib / 1024.0,
                          p.multiprocessors, p.decoders, p.encoders);
      rows += fmt::format("|{:63}{:<6}{:<6}{:<4}|\n", "", p.copy_engines, p.jpegs, p.ofas);
      rows += kRule;
    }
  }
  if (rows.empty()) return NotMig();
  std::string out(kRule);
  out +=
      "| GPU instance profiles:                                                        |\n"
      "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
      "|                                Free/Total   GiB              CE    JPEG  OFA  |\n"
      "|===============================================================================|\n";
  return out + rows;
}

std::string MigPlacements(const Scene& scene) {
  std::string out;
  for (const Card* card : scene.cards) {
    for (const MigProfile& p : card->model->mig_profiles) {
      out += fmt::format("GPU {:>2} Profile ID {:>2} {}: {{{}}}:{}\n", card->index, p.id,
                         p.starts.size() > 1 ? "Placements" : "Placement ",
                         fmt::join(p.starts, ","), p.size);
    }
  }
  return out.empty() ? NotMig() : out;
}

std::string MigInstances(const Scene& scene) {
  constexpr std::string_view kRule =
      "+---------------------------------------------------------+\n";
  std::string rows;
  bool enabled = false;
  for (const Card* card : scene.cards) {
    enabled = enabled || card->mig_enabled;
    for (const MigDevice& d : card->mig) {
      const MigProfile& p = *card->model->FindMigProfile(d.profile);
      rows += fmt::format("|{:>4}  MIG {:<16}{:>4}{:>9}{:>11}:{:<6}|\n", card->index, d.profile,
                          p.id, d.gpu_instance, d.start, p.size);
      rows += kRule;
    }
  }
  if (!enabled) return "No MIG-enabled devices found.\n";
  if (rows.empty()) return "No GPU instances found: Not Found\n";
  std::string out(kRule);
  out +=
      "| GPU instances:                                          |\n"
      "| GPU   Name               Profile  Instance   Placement  |\n"
      "|                            ID       ID       Start:Size |\n"
      "|=========================================================|\n";
  return out + rows;
}

}  // namespace sextant::gpu::smi
