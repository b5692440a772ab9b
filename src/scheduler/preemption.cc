#include "scheduler/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace sextant::scheduler {
namespace {

using PodPtr = std::shared_ptr<const PodInfo>;
using Victims = std::vector<PodPtr>;

// scheduler/util MoreImportantPod; the name makes the order total.
bool MoreImportant(const PodPtr& a, const PodPtr& b) {
  return std::tie(b->priority, a->started, a->key) < std::tie(a->priority, b->started, b->key);
}

// Ended by a preemption that is still under way.
bool IsGoing(const PodInfo& pod) {
  if (!pod.deleting) return false;
  for (api::Value condition : pod.pod["status"]["conditions"].items()) {
    if (condition["type"].AsString() == kDisruptionTarget)
      return condition["status"].AsString() == "True" &&
             condition["reason"].AsString() == kPreemptedReason;
  }
  return false;
}

// Smaller is better: the highest priority among them, the sum of priorities (all made positive, so
// that more victims weigh more), their number, and how long the most important has run.
auto CostOf(const Victims& victims) {
  constexpr int64_t kPositive = int64_t{INT32_MAX} + 1;
  const int64_t highest = victims.front()->priority;
  int64_t sum = 0;
  Time earliest = Time::max();
  for (const PodPtr& victim : victims) {
    sum += victim->priority + kPositive;
    if (victim->priority == highest) earliest = std::min(earliest, victim->started);
  }
  return std::tuple(highest, sum, victims.size(), -earliest.time_since_epoch());
}

}  // namespace

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
// as fit are put back, the more important first. Empty, and why, where that does not help.
Victims PreemptionSearch::VictimsOn(const CycleState& original, const NodeInfo& node,
                                    Verdict& verdict) const {
  Victims lower;
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
  for (const PodPtr& pod : lower) {
    framework.Move(state, trial, pod, 1);
    if (filter(state, trial).ok()) continue;
    framework.Move(state, trial, pod, -1);
    victims.push_back(pod);
  }
  return victims;
}

Preemption PreemptionSearch::Find(const CycleState& state) const {
  Preemption best;
  if (std::string why = NotEligible(*state.pod); !why.empty()) {
    best.message = "preemption: " + why;
    best.tried = false;
    return best;
  }
  Diagnosis tried;
  for (const auto& [name, node] : cluster.nodes()) {
    const auto refused = diagnosis.nodes.find(name);
    Verdict verdict = Verdict::RejectForGood("Preemption is not helpful for scheduling");
    if (refused != diagnosis.nodes.end() && refused->second.code == Code::kUnschedulable) {
      Victims victims = VictimsOn(state, node, verdict);
      if (verdict.ok() && !victims.empty() &&
          (best.node.empty() || CostOf(victims) < CostOf(best.victims))) {
        best.node = name;
        best.victims = std::move(victims);
      }
    }
    if (!verdict.ok()) tried.nodes[name] = std::move(verdict);
  }
  if (best.node.empty()) best.message = "preemption: " + FitError(tried, cluster.nodes().size());
  return best;
}

}  // namespace sextant::scheduler
