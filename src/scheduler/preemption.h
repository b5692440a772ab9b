// Preemption: which Pods of lower priority would have to go so that a Pod fits.
// The search of k8s.io/kubernetes pkg/scheduler/framework/preemption without disruption budgets:
// victims are the fewest, then of the lowest priority. Pure over the scheduler's picture.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/diagnosis.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {

struct Preemption {
  std::string node;  // empty: no node can be freed
  std::vector<std::shared_ptr<const PodInfo>> victims;
  std::string message;  // "preemption: 0/3 nodes are available: ..." when no node was found
};

using FilterFunction = std::function<Verdict(const CycleState&, const NodeInfo&)>;

Preemption FindPreemption(const CycleState& state, const NodeMap& nodes, const Diagnosis& diagnosis,
                          const FilterFunction& filter);

}  // namespace sextant::scheduler
