#include "gpu/telemetry.h"

#include <algorithm>
#include <cstdint>

namespace sextant::gpu {
namespace {

// FNV-1a: a fixed number per card, no more than a seed for small offsets.
uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash;
}

}  // namespace

int MigMemoryUsedMib(const Card& card, const MigDevice& device) {
  const MigProfile* profile = card.model->FindMigProfile(device.profile);
  // 9, 17 and 26 MiB for one, two and three slices: captured on H100 and H200.
  int used = profile == nullptr ? 0 : (26 * profile->slices + 1) / 3;
  for (const Process& p : card.processes) {
    if (p.gpu_instance == device.gpu_instance) used += p.memory_mib;
  }
  return used;
}

Readings ReadingsOf(const Card& card) {
  const Model& m = *card.model;
  const uint32_t seed = Hash(card.uuid);
  const int offset = static_cast<int>(seed % 5) - 2;
  const int util = std::clamp(card.gpu_util, 0, 100);
  Readings r;
  r.idle = util == 0 && card.processes.empty();
  r.pstate = r.idle ? m.idle_pstate : "P0";
  r.temperature = m.temp_idle + offset + (m.temp_max - m.temp_idle) * util * 6 / 1000;
  // HBM has its own sensor; it runs a little warmer than the processors at rest.
  if (m.temp_memory_max > 0) r.memory_temperature = r.temperature + 5;
  const double hundredths = static_cast<double>(seed / 5 % 200) / 100;
  r.power_w = m.power_idle + hundredths + (m.power_default - m.power_idle) * 0.9 * util / 100;
  if (m.compute_major == 9) r.memory_power_w = 43.0 + hundredths + util * 0.5;
  r.clock_graphics = r.idle ? m.clock_graphics_idle : m.clock_graphics_max;
  r.clock_memory = r.idle ? m.clock_memory_idle : m.clock_memory_max;
  r.clock_video = r.idle ? m.clock_video_idle : m.clock_video_max;
  // A pool may give the card less memory than its model has.
  r.memory_reserved_mib = std::min(m.reserved_mib, card.memory_mib / 16);
  int used = card.memory_used_mib;
  for (const Process& p : card.processes) used += p.gpu_instance < 0 ? p.memory_mib : 0;
  for (const MigDevice& d : card.mig) used += MigMemoryUsedMib(card, d);
  r.memory_used_mib = std::clamp(used, 0, card.memory_mib - r.memory_reserved_mib);
  r.memory_free_mib = card.memory_mib - r.memory_reserved_mib - r.memory_used_mib;
  return r;
}

}  // namespace sextant::gpu
