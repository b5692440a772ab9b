// InterPodAffinity: Pods that want to be near others, or far from them.
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity at v1.36.
#include <algorithm>

#include "scheduler/framework.h"
#include "scheduler/topology.h"

namespace sextant::scheduler {
namespace {

using api::LabelSelector;
using api::Value;

constexpr std::string_view kName = "InterPodAffinity";
constexpr std::string_view kScores = "InterPodAffinity/scores";
constexpr int64_t kHardPodAffinityWeight = 1;

bool MatchesAll(const std::vector<AffinityTerm>& terms, const PodInfo& pod) {
  if (terms.empty()) return false;
  return std::all_of(terms.begin(), terms.end(), [&](const AffinityTerm& term) {
    return term.Matches(pod.pod.ns(), {}, pod.labels());
  });
}

bool MatchesAny(const std::vector<AffinityTerm>& terms, const PodInfo& pod, Value spaces_labels) {
  return std::any_of(terms.begin(), terms.end(), [&](const AffinityTerm& term) {
    return term.Matches(pod.pod.ns(), spaces_labels, pod.labels());
  });
}

bool HasKeyOf(const std::vector<AffinityTerm>& terms, Value node_labels) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const AffinityTerm& term) { return node_labels.Has(term.topology_key); });
}

// What Filter needs; `terms` and the namespace never change in a cycle.
struct Known {
  std::shared_ptr<const AffinityTerms> terms;  // of the Pod, namespace selectors resolved to names
  api::Object space;                           // the Pod's namespace
  // Of Pods that match all of the Pod's required terms.
  TopologyCounts affinity;
  // Of Pods that match one of its required anti-affinity terms.
  TopologyCounts anti;
  // Of Pods with a required anti-affinity term that matches it.
  TopologyCounts existing_anti;
};

class InterPodAffinity : public Plugin {
 public:
  explicit InterPodAffinity(Lookups lookups) : namespaces_(lookups.namespaces) {}
  std::string_view name() const override { return kName; }
  int64_t weight() const override { return 2; }

  Verdict PreFilter(CycleState& state, const ClusterState& cluster, NodeSet&) const override {
    const PodInfo& pod = *state.pod;
    if (pod.affinity.required.empty() && pod.affinity.required_anti.empty() &&
        cluster.PodsWithAffinity().empty()) {
      return {};
    }
    Known known{Resolved(state.pod), Space(pod), {}, {}, {}};
    for (const auto& [uid, placed] : cluster.PodsWithAffinity()) {
      if (placed.on_known_node()) CountExisting(known, pod, *placed.pod, *placed.node, 1);
    }
    EachPod(cluster, {&known.terms->required, &known.terms->required_anti},
            [&](const PodInfo& other, const NodeInfo& node) { CountOwn(known, other, node, 1); });
    state.data[kName] = std::move(known);
    return {};
  }

  void Moved(CycleState& state, const PodInfo& other, const NodeInfo& node, int by) const override {
    Known* known = state.Find<Known>(kName);
    if (!known) return;
    CountExisting(*known, *state.pod, other, node, by);
    CountOwn(*known, other, node, by);
  }

  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const Known* known = state.Find<Known>(kName);
    if (!known) return {};
    const Value labels = node.labels();
    if (!NearEnough(*known, *state.pod, labels)) {
      return Verdict::RejectForGood("node(s) didn't match pod affinity rules");
    }
    for (const AffinityTerm& term : known->terms->required_anti) {
      if (known->anti.Of(term.topology_key, labels) > 0) {
        return Verdict::Reject("node(s) didn't match pod anti-affinity rules");
      }
    }
    if (known->existing_anti.AnyPositive(labels)) {
      return Verdict::Reject("node(s) didn't satisfy existing pods anti-affinity rules");
    }
    return {};
  }

  bool MayHelp(const ClusterEvent& event,
               const std::shared_ptr<const PodInfo>& pod) const override {
    const std::shared_ptr<const AffinityTerms> terms = Resolved(pod);
    if (event.node) return NodeMayHelp(event, *pod, *terms);
    const PodInfo* now = event.pod.get();
    const PodInfo* before = event.pod_before.get();
    const auto came = [&](const std::vector<AffinityTerm>& wanted) {
      return now && MatchesAll(wanted, *now) && !(before && MatchesAll(wanted, *before));
    };
    const auto went = [&](const std::vector<AffinityTerm>& unwanted) {
      return before && MatchesAny(unwanted, *before, {}) &&
             !(now && MatchesAny(unwanted, *now, {}));
    };
    if (came(terms->required) || went(terms->required_anti)) return true;
    // A Pod that did not want this one near it is gone.
    const api::Object space = Space(*pod);
    return before && !now &&
           MatchesAny(before->affinity.required_anti, *pod, space["metadata"]["labels"]);
  }

  bool PreScore(CycleState& state, const ClusterState& cluster,
                const std::vector<const NodeInfo*>&) const override {
    const PodInfo& pod = *state.pod;
    const bool own = !pod.affinity.preferred.empty() || !pod.affinity.preferred_anti.empty();
    if (!own && cluster.PodsWithAffinity().empty()) return false;
    TopologyCounts scores;
    if (own) {
      const auto terms = Resolved(state.pod);
      EachPod(cluster, {&terms->preferred, &terms->preferred_anti},
              [&](const PodInfo& other, const NodeInfo& node) {
                Weigh(scores, terms->preferred, other, {}, node, 1);
                Weigh(scores, terms->preferred_anti, other, {}, node, -1);
              });
    }
    const api::Object space = Space(pod);
    const Value labels = space["metadata"]["labels"];
    for (const auto& [uid, placed] : cluster.PodsWithAffinity()) {
      if (!placed.on_known_node()) continue;
      const AffinityTerms& theirs = placed.pod->affinity;
      for (const AffinityTerm& term : theirs.required) {
        if (term.Matches(pod.pod.ns(), labels, pod.labels())) {
          scores.Add(term.topology_key, placed.node->labels(), kHardPodAffinityWeight);
        }
      }
      Weigh(scores, theirs.preferred, pod, labels, *placed.node, 1);
      Weigh(scores, theirs.preferred_anti, pod, labels, *placed.node, -1);
    }
    if (scores.empty()) return false;
    state.data[kScores] = std::move(scores);
    return true;
  }

  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    return state.Find<TopologyCounts>(kScores)->Sum(node.labels());
  }

  // From the lowest, 0, to the highest, 100.
  void Normalize(const CycleState&, const std::vector<const NodeInfo*>&,
                 std::vector<int64_t>& scores) const override {
    const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
    const int64_t least = *low;
    const int64_t range = *high - least;
    for (int64_t& score : scores) {
      // In doubles, as there: 29 of 100 give 28.
      const double part = static_cast<double>(score - least) / static_cast<double>(range);
      score = range == 0 ? 0 : static_cast<int64_t>(static_cast<double>(kMaxScore) * part);
    }
  }

 private:
  api::Object Space(const PodInfo& pod) const {
    return namespaces_.Get({"", std::string(pod.pod.ns())});
  }

  // Selectors of namespaces become names, unless they select every namespace.
  void Resolve(std::vector<AffinityTerm>& terms) const {
    for (AffinityTerm& term : terms) {
      if (!term.selects_namespaces()) continue;
      for (const api::Object& space : namespaces_.List()) {
        if (term.namespace_selector.Matches(space["metadata"]["labels"])) {
          term.namespaces.emplace(space.name());
        }
      }
      term.namespace_selector = LabelSelector::Nothing();
    }
  }
  // The Pod's own where there is nothing to resolve.
  std::shared_ptr<const AffinityTerms> Resolved(const std::shared_ptr<const PodInfo>& pod) const {
    if (!pod->affinity.selects_namespaces()) return {pod, &pod->affinity};
    auto out = std::make_shared<AffinityTerms>(pod->affinity);
    for (auto* list : {&out->required, &out->required_anti, &out->preferred, &out->preferred_anti})
      Resolve(*list);
    return out;
  }

  // Calls `look` for each Pod of the namespaces that the terms speak of, once.
  template <typename F>
  static void EachPod(const ClusterState& cluster,
                      const std::vector<const std::vector<AffinityTerm>*>& lists, F look) {
    std::set<std::string, std::less<>> spaces;
    bool everywhere = false;
    for (const auto* list : lists) {
      for (const AffinityTerm& term : *list) {
        spaces.insert(term.namespaces.begin(), term.namespaces.end());
        everywhere = everywhere || term.namespace_selector.Empty();
      }
    }
    for (const auto& [space, pods] : cluster.pods()) {
      if (!everywhere && !spaces.contains(space)) continue;
      for (const auto& [uid, placed] : pods)
        if (placed.on_known_node()) look(*placed.pod, *placed.node);
    }
  }

  static void CountExisting(Known& known, const PodInfo& pod, const PodInfo& other,
                            const NodeInfo& node, int by) {
    for (const AffinityTerm& term : other.affinity.required_anti) {
      if (term.Matches(pod.pod.ns(), known.space["metadata"]["labels"], pod.labels())) {
        known.existing_anti.Add(term.topology_key, node.labels(), by);
      }
    }
  }

  static void CountOwn(Known& known, const PodInfo& other, const NodeInfo& node, int by) {
    if (MatchesAll(known.terms->required, other)) {
      for (const AffinityTerm& term : known.terms->required)
        known.affinity.Add(term.topology_key, node.labels(), by);
    }
    for (const AffinityTerm& term : known.terms->required_anti) {
      if (term.Matches(other.pod.ns(), {}, other.labels())) {
        known.anti.Add(term.topology_key, node.labels(), by);
      }
    }
  }

  static void Weigh(TopologyCounts& scores, const std::vector<AffinityTerm>& terms,
                    const PodInfo& pod, Value space_labels, const NodeInfo& node, int sign) {
    for (const AffinityTerm& term : terms) {
      if (term.Matches(pod.pod.ns(), space_labels, pod.labels())) {
        scores.Add(term.topology_key, node.labels(), sign * term.weight);
      }
    }
  }

  static bool NearEnough(const Known& known, const PodInfo& pod, Value labels) {
    bool all = true;
    for (const AffinityTerm& term : known.terms->required) {
      if (!labels.Has(term.topology_key)) return false;
      all = all && known.affinity.Of(term.topology_key, labels) > 0;
    }
    // The first of Pods that want to be near their own kind has nobody to be near to.
    return all || (known.affinity.empty() && MatchesAll(known.terms->required, pod));
  }

  static bool NodeMayHelp(const ClusterEvent& event, const PodInfo& pod,
                          const AffinityTerms& terms) {
    if (HasKeyOf(terms.required, event.node->labels()) ||
        HasKeyOf(terms.required_anti, event.node->labels())) {
      return true;
    }
    // Refused for others' anti-affinity: another node, or one that moved, may be out of its reach.
    return pod.affinity.required.empty() &&
           (!event.node_before ||
            !Equal(event.node_before["metadata"]["labels"], event.node->labels()));
  }

  client::Informer& namespaces_;
};

}  // namespace

std::unique_ptr<Plugin> MakeInterPodAffinity(Lookups lookups) {
  return std::make_unique<InterPodAffinity>(lookups);
}

}  // namespace sextant::scheduler
