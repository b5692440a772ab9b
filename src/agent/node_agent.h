// One node's agent: follows the host's cards and offers them through the device plugin or as DRA
// devices. The node's labels are not its own (feature_discovery.h).
//
//   NodeAgent agent(parts, {.node = "gpu-lab-worker"});
//   agent.Start(kubelet);    // registers the plugin, once there are cards
//   // destroyed: the plugin is withdrawn; slices stay, as with NVIDIA's stack
//
// It learns of cards from its host only (DESIGN, law 8). Threads: everything on client.executor().
#pragma once

#include <memory>
#include <string>

#include "agent/gpu_plugin.h"
#include "agent/slice_publisher.h"
#include "client/client.h"
#include "host/machine.h"
#include "plugin/device_plugin.h"

namespace sextant::agent {

struct NodeAgentParts {
  client::Client& client;
  host::GpuHost& host;
  Executor& files;  // where files are written
};

struct NodeAgentOptions {
  std::string node;
  std::string state_directory;
};

class NodeAgent {
 public:
  NodeAgent(NodeAgentParts parts, NodeAgentOptions options);
  ~NodeAgent();

  void Start(plugin::Registrar& kubelet);

 private:
  void OnCards();

  NodeAgentParts parts_;
  const NodeAgentOptions options_;
  std::shared_ptr<GpuPlugin> plugin_;
  plugin::Registrar* kubelet_ = nullptr;
  bool registered_ = false;
  SlicePublisher slices_;
  bool by_dra_ = false;  // cards have been offered by DRA
  std::shared_ptr<void> host_handle_;
};

}  // namespace sextant::agent
