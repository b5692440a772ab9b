// fake-gpu-operator's ConfigMap `topology`, read into pools. Pure.
// Both schemas (reference/simulators.md 1.4): the old one names product, count and memory, the new
// one a backend and a profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sextant::lab {

struct TopologyPool {
  std::string name;
  std::string model;    // a model of the catalogue that stands for it
  std::string product;  // printed instead of the model's name; empty: the model's
  int memory_mib = 0;   // instead of the model's; 0: the model's
  int count = 0;
  std::vector<std::pair<std::string, int>> devices;            // otherDevices
  std::vector<std::pair<std::string, std::string>> resources;  // new schema
};

struct Topology {
  std::vector<TopologyPool> pools;
  std::string pool_label_key;  // empty: the usual one
};

// Errors name what is wrong and where in the text.
Result<Topology> ParseTopology(std::string_view yaml);

}  // namespace sextant::lab
