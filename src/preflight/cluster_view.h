// What a walk reads of a cluster's nodes: which have NVIDIA GPUs, what they say of them, and what
// stands between them and a Pod that asks for one. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"

namespace sextant::preflight {

inline constexpr std::string_view kGpu = "nvidia.com/gpu";
inline constexpr std::string_view kPciLabel = "feature.node.kubernetes.io/pci-10de.present";

struct GpuNode {
  std::string name;
  bool labelled = false;  // by node feature discovery or the GPU operator
  bool ready = false;
  std::string ready_message;  // why not
  int64_t capacity = 0;
  int64_t allocatable = 0;
  bool cordoned = false;
  std::vector<std::string> taints;  // that keep the capability Pod away: "key=value:effect"
  std::string facts;                // "8 x NVIDIA-A100-SXM4-40GB, driver 590.48.01"
};

// The nodes that are labelled as having a GPU or have the resource, by name.
std::vector<GpuNode> GpuNodesOf(const std::vector<api::Object>& nodes);

// Whether a node shows that its cards are simulated, whoever does it.
bool SaysSimulated(const api::Object& node);

// What a node says that only pretends to run its containers; empty where they run.
std::string RunsNothing(const api::Object& node);

// Cards that Pods ask for, by node; Pods that have ended ask for none.
std::map<std::string, int64_t> RequestedCards(const std::vector<api::Object>& pods);

struct Unplaced {
  std::string code;  // of sched.place
  std::string summary;
  std::vector<std::pair<std::string, std::string>> by_node;  // node, what stands in the way
};
// Why the scheduler found no node for one card: what the nodes themselves show, else what its
// message says.
Unplaced ExplainUnplaced(const std::vector<GpuNode>& nodes,
                         const std::map<std::string, int64_t>& requested, std::string_view message);

}  // namespace sextant::preflight
