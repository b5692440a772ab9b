// Nodes that preemption frees for Pods: who is to come where. Core loop only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/node_info.h"

namespace sextant::scheduler {

class Nominations {
 public:
  using PodPtr = std::shared_ptr<const PodInfo>;
  using Pods = std::map<std::string, PodPtr, std::less<>>;  // by uid

  // In place of an earlier one.
  void Set(PodPtr pod, const std::string& node) {
    Drop(pod->uid);
    nodes_[pod->uid] = node;
    by_node_[node][pod->uid] = std::move(pod);
  }
  // Who was to come; null if nobody was.
  PodPtr Drop(std::string_view uid) {
    const auto node = nodes_.find(uid);
    if (node == nodes_.end()) return nullptr;
    const auto there = by_node_.find(node->second);
    const auto at = there->second.find(uid);
    PodPtr pod = std::move(at->second);
    there->second.erase(at);
    if (there->second.empty()) by_node_.erase(there);
    nodes_.erase(node);
    return pod;
  }
  // Empty if there is none.
  std::string NodeOf(std::string_view uid) const {
    const auto node = nodes_.find(uid);
    return node == nodes_.end() ? "" : node->second;
  }
  const Pods& On(std::string_view node) const {
    static const Pods none;
    const auto there = by_node_.find(node);
    return there == by_node_.end() ? none : there->second;
  }

 private:
  std::map<std::string, std::string, std::less<>> nodes_;  // by uid
  std::map<std::string, Pods, std::less<>> by_node_;
};

}  // namespace sextant::scheduler
