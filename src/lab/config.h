// What a lab is made of: the result of flags, a kind file and the state of an earlier run.
// Plain data. Pools here are the *first* state only: once the lab runs, GPUPool objects rule.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sextant::lab {

struct NodeConfig {
  std::string name;  // "gpu-lab-worker2", as kind names nodes
  bool control_plane = false;
  std::map<std::string, std::string> labels;
  std::string image;  // as in the file, for the record
};

struct PoolConfig {
  std::string name;
  std::string model;
  int count = 0;
  std::string allocation = "plugin";
};

enum class RuntimeMode { kAuto, kProcess, kSimulated };

struct LabConfig {
  std::string name = "gpu-lab";
  std::vector<NodeConfig> nodes;  // never empty; the first is a control plane
  std::vector<PoolConfig> pools;  // by flag or file; "default" is added if it is not among them
  std::string listen_address = "127.0.0.1";
  int port = 0;  // 0: any free port
  RuntimeMode runtime = RuntimeMode::kAuto;
  std::map<std::string, bool> feature_gates;
  std::map<std::string, std::string> runtime_config;  // "resource.k8s.io/v1beta1" → "true"
  std::vector<std::string> admission_plugins;         // beyond kubeadm's own
};

// Nodes above which "auto" simulates Pods instead of running processes.
inline constexpr size_t kMaxProcessNodes = 64;

}  // namespace sextant::lab
