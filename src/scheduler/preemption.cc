#include "scheduler/preemption.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::scheduler {
namespace {

using Victims = std::vector<std::shared_ptr<const PodInfo>>;

constexpr std::string_view kNotHelpful = "Preemption is not helpful for scheduling";
constexpr std::string_view kNoVictims = "No preemption victims found for incoming pod";

// The fewest Pods of lower priority whose going makes room: all of them go in thought, then as many
// as fit are put back, the more important first.
std::optional<Victims> VictimsOn(const CycleState& state, const NodeInfo& node,
                                 const FilterFunction& filter) {
  NodeInfo trial = node;
  Victims lower;
  for (const auto& [uid, pod] : node.pods) {
    if (pod->priority < state.pod->priority) lower.push_back(pod);
  }
  if (lower.empty()) return {};
  for (const auto& pod : lower) trial.RemovePod(pod->uid);
  if (!filter(state, trial).ok()) return {};
  std::sort(lower.begin(), lower.end(), [](const auto& a, const auto& b) {
    return a->priority != b->priority ? a->priority > b->priority : a->key < b->key;
  });
  Victims victims;
  for (const auto& pod : lower) {
    trial.AddPod(pod);
    if (filter(state, trial).ok()) continue;
    trial.RemovePod(pod->uid);
    victims.push_back(pod);
  }
  return victims;
}

int64_t HighestPriority(const Victims& victims) {
  int64_t highest = INT64_MIN;
  for (const auto& victim : victims) highest = std::max(highest, victim->priority);
  return highest;
}

bool Better(const Victims& a, const Victims& b) {
  if (HighestPriority(a) != HighestPriority(b)) return HighestPriority(a) < HighestPriority(b);
  return a.size() < b.size();
}

}  // namespace

Preemption FindPreemption(const CycleState& state, const NodeMap& nodes, const Diagnosis& diagnosis,
                          const FilterFunction& filter) {
  Preemption best;
  const size_t total = nodes.size();
  if (state.pod->pod["spec"]["preemptionPolicy"].AsString() == "Never") {
    best.message = fmt::format(
        "preemption: 0/{} nodes are available: {} not eligible due to preemptionPolicy=Never..",
        total, total);
    return best;
  }
  std::map<std::string, int> counts;
  for (const auto& [name, verdict] : diagnosis.nodes) {
    const auto node = nodes.find(name);
    if (verdict.code == Code::kUnschedulableAndUnresolvable || node == nodes.end()) {
      ++counts[std::string(kNotHelpful)];
      continue;
    }
    auto victims = VictimsOn(state, node->second, filter);
    if (!victims) {
      ++counts[std::string(kNoVictims)];
      continue;
    }
    if (best.node.empty() || Better(*victims, best.victims)) {
      best.node = name;
      best.victims = *std::move(victims);
    }
  }
  if (!best.node.empty()) return best;
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} {}", count, text));
  std::sort(parts.begin(), parts.end());
  best.message =
      fmt::format("preemption: 0/{} nodes are available: {}.", total, fmt::join(parts, ", "));
  return best;
}

}  // namespace sextant::scheduler
