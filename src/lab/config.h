// What a lab is made of: the result of flags, a kind file and the state of an earlier run.
// Plain data. Pools here are the *first* state only: once the lab runs, GPUPool objects rule.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sextant::lab {

struct NodeConfig {
  std::string name;  // "gpu-lab-worker2", as kind names nodes
  bool control_plane = false;
  std::map<std::string, std::string> labels;
  std::string image;  // as in the file, for the record
};

struct PoolConfig {
  std::string name = "default";
  std::string model = "a100-sxm4-40gb";
  int count = 8;
  std::string allocation = "plugin";
  std::string spec;  // of a GPUPool in a file, as JSON; where given it says everything
};

enum class RuntimeMode { kAuto, kProcess, kSimulated };

struct LabConfig {
  std::string name = "gpu-lab";
  std::vector<NodeConfig> nodes;  // never empty; the first is a control plane
  std::vector<PoolConfig> pools;  // by flag or file
  std::string listen_address = "127.0.0.1";
  int port = 0;  // 0: any free port
  RuntimeMode runtime = RuntimeMode::kAuto;
  std::map<std::string, bool> feature_gates;
  std::map<std::string, std::string> runtime_config;  // "resource.k8s.io/v1beta1" → "true"
};

// The pools that a lab starts with: its configuration's, and "default" if that is not among them.
std::vector<PoolConfig> FirstPools(const LabConfig& config);

// Nodes that a lab may start with; AddressPlan has addresses for some more.
inline constexpr size_t kMaxNodes = 16'000;
// Nodes above which "auto" simulates Pods instead of running processes.
inline constexpr size_t kMaxProcessNodes = 64;

}  // namespace sextant::lab
