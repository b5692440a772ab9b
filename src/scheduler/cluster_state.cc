#include "scheduler/cluster_state.h"

namespace sextant::scheduler {

const NodeInfo* ClusterState::FindNode(const std::string& name) const {
  const auto at = nodes_.find(name);
  return at == nodes_.end() ? nullptr : &at->second;
}

const Placed* ClusterState::FindPod(std::string_view uid) const {
  const auto at = placed_.find(uid);
  return at == placed_.end() ? nullptr : &at->second;
}

const PlacedPods& ClusterState::PodsIn(std::string_view ns) const {
  static const PlacedPods none;
  const auto at = by_namespace_.find(ns);
  return at == by_namespace_.end() ? none : at->second;
}

// Nodes move between the two maps as they are, so that Placed::node stays right.
void ClusterState::SetNode(api::Object node) {
  const std::string name(node.name());
  if (auto known = unknown_.extract(name)) nodes_.insert(std::move(known));
  nodes_[name].SetNode(std::move(node));
}

void ClusterState::RemoveNode(const std::string& name) {
  auto gone = nodes_.extract(name);
  if (!gone || gone.mapped().pods.empty()) return;
  gone.mapped().node = {};
  unknown_.insert(std::move(gone));
}

void ClusterState::Place(std::shared_ptr<const PodInfo> pod, const std::string& node) {
  Unplace(pod->uid);
  NodeInfo& info = nodes_.contains(node) ? nodes_[node] : unknown_[node];
  info.name = node;
  info.AddPod(pod);
  const Placed placed{pod, &info};
  placed_[pod->uid] = placed;
  by_namespace_[std::string(pod->pod.ns())][pod->uid] = placed;
  if (!pod->affinity.empty()) with_affinity_[pod->uid] = placed;
}

std::shared_ptr<const PodInfo> ClusterState::Unplace(std::string_view uid) {
  const auto at = placed_.find(uid);
  if (at == placed_.end()) return nullptr;
  const Placed placed = std::move(at->second);
  placed_.erase(at);
  const auto space = by_namespace_.find(placed.pod->pod.ns());
  space->second.erase(placed.pod->uid);
  if (space->second.empty()) by_namespace_.erase(space);
  with_affinity_.erase(placed.pod->uid);
  placed.node->RemovePod(uid);
  if (placed.node->pods.empty()) unknown_.erase(placed.node->name);
  return placed.pod;
}

}  // namespace sextant::scheduler
