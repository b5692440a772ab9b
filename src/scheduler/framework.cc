#include "scheduler/framework.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::scheduler {

void DefaultNormalize(std::vector<int64_t>& scores, bool reverse) {
  const int64_t most = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  for (int64_t& score : scores) {
    if (most > 0) score = score * kMaxScore / most;
    if (reverse) score = kMaxScore - score;
  }
}

bool Framework::PreEnqueue(const PodInfo& pod) const {
  return std::all_of(plugins_.begin(), plugins_.end(),
                     [&](const auto& plugin) { return plugin->PreEnqueue(pod).ok(); });
}

Verdict Framework::PreFilter(CycleState& state, const ClusterState& cluster, Left& left) const {
  for (const auto& plugin : plugins_) {
    NodeSet nodes;
    Verdict verdict = plugin->PreFilter(state, cluster, nodes);
    if (!verdict.ok()) {
      verdict.plugin = plugin.get();
      return verdict;
    }
    if (!nodes) continue;
    left.by.push_back(plugin.get());
    if (left.nodes) std::erase_if(*nodes, [&](const auto& n) { return !left.nodes->contains(n); });
    left.nodes = std::move(nodes);
  }
  return {};
}

Verdict Framework::Filter(const CycleState& state, const NodeInfo& node) const {
  for (const auto& plugin : plugins_) {
    Verdict verdict = plugin->Filter(state, node);
    if (verdict.ok()) continue;
    verdict.plugin = plugin.get();
    return verdict;
  }
  return {};
}

void Framework::PreBind(const std::shared_ptr<const PodInfo>& pod, const NodeInfo& node,
                        Plugin::Done done) const {
  struct Open {
    size_t left;
    Plugin::Done done;  // empty when it was called
  };
  // One more than there are plugins, so that it ends even where there is none.
  const auto open = std::make_shared<Open>(plugins_.size() + 1, std::move(done));
  const auto end = [open](Status status) {
    const bool last = --open->left == 0;
    if (open->done && (last || !status)) std::exchange(open->done, {})(std::move(status));
  };
  for (const auto& plugin : plugins_) {
    plugin->PreBind(pod, node, [end, name = plugin->name()](Status status) {
      if (status) return end({});
      Error error = std::move(status).error();
      error.message = fmt::format("running PreBind plugin \"{}\": {}", name, error.message);
      end(Fail(std::move(error)));
    });
  }
  end({});
}

void Framework::Move(CycleState& state, NodeInfo& node, std::shared_ptr<const PodInfo> pod,
                     int by) const {
  for (const auto& plugin : plugins_) plugin->Moved(state, *pod, node, by);
  if (by > 0) {
    node.AddPod(std::move(pod));
  } else {
    node.RemovePod(pod->uid);
  }
}

std::vector<int64_t> Framework::Score(CycleState& state, const ClusterState& cluster,
                                      const std::vector<const NodeInfo*>& nodes) const {
  std::vector<int64_t> total(nodes.size(), 0);
  std::vector<int64_t> scores(nodes.size());
  for (const auto& plugin : plugins_) {
    if (plugin->weight() == 0 || !plugin->PreScore(state, cluster, nodes)) continue;
    for (size_t i = 0; i < nodes.size(); ++i) scores[i] = plugin->Score(state, *nodes[i]);
    plugin->Normalize(state, nodes, scores);
    for (size_t i = 0; i < nodes.size(); ++i) total[i] += plugin->weight() * scores[i];
  }
  return total;
}

}  // namespace sextant::scheduler
