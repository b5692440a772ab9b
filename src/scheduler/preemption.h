// Preemption: which Pods of lower priority would have to go so that a Pod fits.
//
// The search of k8s.io/kubernetes pkg/scheduler/framework/preemption and plugins/defaultpreemption
// at v1.36. Disruption budgets are kept where that is possible. Pure over the scheduler's picture.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/selector.h"
#include "base/random.h"
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

// A PodDisruptionBudget.
struct Budget {
  api::Object object;
  api::LabelSelector selector;
  int64_t left = 0;

  bool Covers(const PodInfo& pod) const;
};
// Those that can cover a Pod.
std::vector<Budget> ReadBudgets(const std::vector<api::Object>& objects);

// Of `nodes` that eviction may help, so many nodes with victims are enough to choose from
// (minCandidateNodesPercentage 10, minCandidateNodesAbsolute 100).
size_t CandidatesWanted(size_t nodes);

struct PreemptionSearch {
  const ClusterState& cluster;
  const Framework& framework;
  const Diagnosis& diagnosis;
  const FilterFunction& filter;
  const std::vector<Budget>& budgets;
  Random& random;                       // says where among the nodes the search begins
  const NodeInfo* nominated = nullptr;  // the node that an earlier preemption is freeing

  Preemption Find(const CycleState& state) const;

 private:
  std::string NotEligible(const PodInfo& pod) const;
  std::vector<const NodeInfo*> Promising() const;
  Victims VictimsOn(const CycleState& state, const NodeInfo& node, Verdict& verdict) const;
};

// Why a victim is a DisruptionTarget before it is deleted.
inline constexpr const char* kPreemptedReason = "PreemptionByScheduler";

}  // namespace sextant::scheduler
