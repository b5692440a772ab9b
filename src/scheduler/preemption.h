// Preemption: which Pods of lower priority would have to go so that a Pod fits.
//
// The search of k8s.io/kubernetes pkg/scheduler/framework/preemption and plugins/defaultpreemption
// at v1.36. Disruption budgets are kept where that is possible. Pure over the scheduler's picture.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scheduler/diagnosis.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {

using FilterFunction = std::function<Verdict(const CycleState&, const NodeInfo&)>;

struct Preemption {
  std::string node;                                     // empty: no node can be freed
  std::vector<std::shared_ptr<const PodInfo>> victims;  // the most important first
  std::string message;                                  // "preemption: ..." where no node was found
  bool tried = true;  // false: not eligible, so an earlier nomination stands
};

// What would have to go from one node.
struct Victims {
  std::vector<std::shared_ptr<const PodInfo>> pods;  // the most important first
  size_t violations = 0;                             // of disruption budgets
};

struct PreemptionSearch {
  const ClusterState& cluster;
  const Framework& framework;
  const Diagnosis& diagnosis;
  const FilterFunction& filter;
  const std::vector<api::Object>& budgets;  // PodDisruptionBudgets
  const NodeInfo* nominated = nullptr;      // the node that an earlier preemption is freeing

  Preemption Find(const CycleState& state) const;

 private:
  std::string NotEligible(const PodInfo& pod) const;
  Victims VictimsOn(const CycleState& state, const NodeInfo& node, Verdict& verdict) const;
};

// The condition that a victim gets before it is deleted.
inline constexpr const char* kDisruptionTarget = "DisruptionTarget";
inline constexpr const char* kPreemptedReason = "PreemptionByScheduler";

}  // namespace sextant::scheduler
