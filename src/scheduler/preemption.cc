#include "scheduler/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/conditions.h"
#include "api/pods.h"

namespace sextant::scheduler {
namespace {

using PodPtr = std::shared_ptr<const PodInfo>;
using Pods = std::vector<PodPtr>;

// scheduler/util MoreImportantPod; the name makes the order total.
bool MoreImportant(const PodPtr& a, const PodPtr& b) {
  return std::tie(b->priority, a->started, a->key) < std::tie(a->priority, b->started, b->key);
}

// Ended by a preemption that is still under way.
bool IsGoing(const PodInfo& pod) {
  if (!pod.deleting) return false;
  const api::Value target =
      api::FindCondition(pod.pod["status"]["conditions"], api::kDisruptionTarget);
  return target["status"].AsString() == "True" && target["reason"].AsString() == kPreemptedReason;
}

// Smaller is better: budgets violated, the highest priority among them, the sum of priorities (all
// made positive, so that more victims weigh more), their number, and how long the most important
// has run.
auto CostOf(const Victims& victims) {
  constexpr int64_t kPositive = int64_t{INT32_MAX} + 1;
  const int64_t highest = victims.pods.front()->priority;
  int64_t sum = 0;
  Time earliest = Time::max();
  for (const PodPtr& victim : victims.pods) {
    sum += victim->priority + kPositive;
    if (victim->priority == highest) earliest = std::min(earliest, victim->started);
  }
  return std::tuple(victims.violations, highest, sum, victims.pods.size(),
                    -earliest.time_since_epoch());
}

// Takes out of `pods` those whose going would violate a budget, as long as all before them go too.
Pods TakeViolating(Pods& pods, const std::vector<Budget>& budgets) {
  std::vector<int64_t> left;
  for (const Budget& budget : budgets) left.push_back(budget.left);
  Pods violating;
  std::erase_if(pods, [&](const PodPtr& pod) {
    bool violates = false;
    for (size_t i = 0; i < budgets.size(); ++i)
      if (budgets[i].Covers(*pod) && --left[i] < 0) violates = true;
    if (violates) violating.push_back(pod);
    return violates;
  });
  return violating;
}

}  // namespace

bool Budget::Covers(const PodInfo& pod) const {
  return object.ns() == pod.pod.ns() && selector.Matches(pod.labels()) &&
         // Its eviction has been allowed already.
         !object["status"]["disruptedPods"].Has(pod.pod.name());
}

std::vector<Budget> ReadBudgets(const std::vector<api::Object>& objects) {
  std::vector<Budget> budgets;
  for (const api::Object& object : objects) {
    auto selector = api::LabelSelector::From(object["spec"]["selector"]);
    // One that selects everything covers nothing here.
    if (!selector || selector->Empty()) continue;
    budgets.push_back(
        {object, *std::move(selector), object["status"]["disruptionsAllowed"].AsInt()});
  }
  return budgets;
}

size_t CandidatesWanted(size_t nodes) {
  constexpr size_t kAtLeast = 100;
  constexpr size_t kPercent = 10;
  return std::min(nodes, std::max(kAtLeast, nodes * kPercent / 100));
}

std::string PreemptionSearch::NotEligible(const PodInfo& pod) const {
  if (pod.pod["spec"]["preemptionPolicy"].AsString() == "Never") {
    return "not eligible due to preemptionPolicy=Never.";
  }
  if (!nominated) return "";
  const auto refused = diagnosis.nodes.find(nominated->name);
  if (refused != diagnosis.nodes.end() &&
      refused->second.code == Code::kUnschedulableAndUnresolvable) {
    return "";
  }
  for (const auto& [uid, other] : nominated->pods) {
    if (other->priority < pod.priority && IsGoing(*other)) {
      return "not eligible due to a terminating pod on the nominated node.";
    }
  }
  return "";
}

// The fewest Pods of lower priority whose going makes room: all of them go in thought, then as many
// as fit are put back: those that a budget protects, then the more important. Empty, and why, where
// that does not help.
Victims PreemptionSearch::VictimsOn(const CycleState& original, const NodeInfo& node,
                                    Verdict& verdict) const {
  Pods lower;
  for (const auto& [uid, pod] : node.pods) {
    if (pod->priority < original.pod->priority) lower.push_back(pod);
  }
  if (lower.empty()) {
    verdict = Verdict::RejectForGood("No preemption victims found for incoming pod");
    return {};
  }
  CycleState state = original;
  NodeInfo trial = node;
  for (const PodPtr& pod : lower) framework.Move(state, trial, pod, -1);
  verdict = filter(state, trial);
  if (!verdict.ok()) return {};
  std::sort(lower.begin(), lower.end(), MoreImportant);
  Victims victims;
  const auto put_back = [&](const Pods& pods) {
    for (const PodPtr& pod : pods) {
      framework.Move(state, trial, pod, 1);
      if (filter(state, trial).ok()) continue;
      framework.Move(state, trial, pod, -1);
      victims.pods.push_back(pod);
    }
  };
  put_back(TakeViolating(lower, budgets));
  victims.violations = victims.pods.size();
  put_back(lower);
  std::sort(victims.pods.begin(), victims.pods.end(), MoreImportant);
  return victims;
}

// Nodes that refuse the Pod only for what stands on them.
std::vector<const NodeInfo*> PreemptionSearch::Promising() const {
  std::vector<const NodeInfo*> nodes;
  for (const auto& [name, node] : cluster.nodes()) {
    const auto refused = diagnosis.nodes.find(name);
    if (refused != diagnosis.nodes.end() && refused->second.code == Code::kUnschedulable)
      nodes.push_back(&node);
  }
  return nodes;
}

Preemption PreemptionSearch::Find(const CycleState& state) const {
  Preemption best;
  if (std::string why = NotEligible(*state.pod); !why.empty()) {
    best.message = "preemption: " + why;
    best.tried = false;
    return best;
  }
  Diagnosis tried;
  for (const auto& [name, node] : cluster.nodes())
    tried.nodes[name] = Verdict::RejectForGood("Preemption is not helpful for scheduling");
  const std::vector<const NodeInfo*> nodes = Promising();
  const size_t wanted = CandidatesWanted(nodes.size());
  const size_t first = nodes.empty() ? 0 : random.Below(nodes.size());
  Victims least;
  size_t found = 0;
  bool spares_budgets = false;  // one of those found does
  for (size_t i = 0; i < nodes.size() && (found < wanted || !spares_budgets); ++i) {
    const NodeInfo& node = *nodes[(first + i) % nodes.size()];
    Verdict verdict;
    Victims victims = VictimsOn(state, node, verdict);
    if (!verdict.ok()) tried.nodes[node.name] = std::move(verdict);
    if (victims.pods.empty()) continue;
    ++found;
    spares_budgets = spares_budgets || victims.violations == 0;
    if (best.node.empty() || CostOf(victims) < CostOf(least)) {
      best.node = node.name;
      least = std::move(victims);
    }
  }
  best.victims = std::move(least.pods);
  if (best.node.empty()) best.message = "preemption: " + FitError(tried, cluster.nodes().size());
  return best;
}

}  // namespace sextant::scheduler
