// What a card's sensors say: a pure function of the card and its load, with a small fixed offset
// per card, so that eight idle cards do not read alike and every view of one card reads the same.
//
//   Readings r = ReadingsOf(card);   // r.temperature, r.power_w, r.clock_graphics ...
//
// Degrees Celsius, watts, MHz, MiB.
#pragma once

#include <string>

#include "gpu/inventory.h"

namespace sextant::gpu {

struct Readings {
  bool idle = true;
  std::string pstate;
  int temperature = 0;
  int memory_temperature = -1;  // -1: no sensor
  double power_w = 0;
  double memory_power_w = -1;  // -1: no sensor
  int clock_graphics = 0, clock_memory = 0, clock_video = 0;
  int memory_used_mib = 0, memory_reserved_mib = 0, memory_free_mib = 0;
};

Readings ReadingsOf(const Card& card);

// Memory that a MIG device shows as used: its processes and what the driver keeps for it.
int MigMemoryUsedMib(const Card& card, const MigDevice& device);

}  // namespace sextant::gpu
