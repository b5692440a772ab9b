// The scheduler's picture of the cluster: which nodes there are and which Pod stands where. Indexes
// keep what a cycle asks for cheap: it looks at the Pods of a namespace, or at those with affinity
// terms, not at all.
//
// A Pod may be known before its node is, and outlive it: such Pods are remembered with a node that
// is not among nodes().
//
// Core loop only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "scheduler/node_info.h"

namespace sextant::scheduler {

struct Placed {
  std::shared_ptr<const PodInfo> pod;
  NodeInfo* node = nullptr;  // without a `node` object while it is unknown

  bool on_known_node() const { return static_cast<bool>(node->node); }
};
using PlacedPods = std::map<std::string, Placed, std::less<>>;  // by uid

class ClusterState {
 public:
  const NodeMap& nodes() const { return nodes_; }
  const NodeInfo* FindNode(const std::string& name) const;
  const Placed* FindPod(std::string_view uid) const;
  // By namespace.
  const std::map<std::string, PlacedPods, std::less<>>& pods() const { return by_namespace_; }
  const PlacedPods& PodsIn(std::string_view ns) const;
  const PlacedPods& PodsWithAffinity() const { return with_affinity_; }

  void SetNode(api::Object node);
  void RemoveNode(const std::string& name);
  // Puts a Pod onto a node, or brings its newer state; takes it from where it was before.
  void Place(std::shared_ptr<const PodInfo> pod, const std::string& node);
  // What stood there; null if it stood nowhere.
  std::shared_ptr<const PodInfo> Unplace(std::string_view uid);

 private:
  NodeMap nodes_;
  NodeMap unknown_;  // that Pods name and nobody has
  PlacedPods placed_;
  std::map<std::string, PlacedPods, std::less<>> by_namespace_;
  PlacedPods with_affinity_;
};

}  // namespace sextant::scheduler
