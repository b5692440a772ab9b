// PodTopologySpread: Pods of one kind evenly over zones, nodes, or whatever nodes are labelled by.
// Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread at v1.36.
#include <algorithm>
#include <cmath>

#include "scheduler/affinity.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {
namespace {

using api::LabelSelector;
using api::Value;

constexpr std::string_view kName = "PodTopologySpread";
constexpr std::string_view kScores = "PodTopologySpread/scores";
constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kMismatch = "node(s) didn't match pod topology spread constraints";

using Constraint = SpreadConstraint;
using Constraints = std::vector<Constraint>;

// What kube-scheduler spreads by where a Pod says nothing (defaultingType System).
Constraints SystemDefaults(const LabelSelector& selector) {
  return {{.max_skew = 3, .key = std::string(kHostname), .selector = selector},
          {.max_skew = 5, .key = std::string(kZone), .selector = selector}};
}

bool HasAllKeys(const Constraints& constraints, Value node_labels) {
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const Constraint& c) { return node_labels.Has(c.key); });
}

// Whether a node's Pods count for a constraint.
bool Includes(const Constraint& c, const PodInfo& pod, const NodeInfo& node) {
  if (c.honor_affinity && !MatchesRequiredNodeAffinity(pod.pod.root(), node.node.root()))
    return false;
  return !c.honor_taints ||
         !FirstUntolerated(pod.pod["spec"]["tolerations"], node.node["spec"]["taints"], true, true);
}

bool Counts(const Constraint& c, const PodInfo& other) {
  return !other.deleting && !c.selector.Empty() && c.selector.Matches(other.labels());
}

bool AnySelects(const Constraints& constraints, const PodInfo& pod) {
  return std::any_of(constraints.begin(), constraints.end(),
                     [&](const Constraint& c) { return c.selector.Matches(pod.labels()); });
}

// Matching Pods by topology value, with the least of them at hand.
class Domains {
 public:
  void Add(const std::string& value, int64_t by) {
    const auto [at, fresh] = counts_.try_emplace(value, 0);
    if (!fresh) Drop(at->second);
    at->second += by;
    ++how_many_[at->second];
  }
  int64_t Of(std::string_view value) const {
    const auto at = counts_.find(value);
    return at == counts_.end() ? 0 : at->second;
  }
  bool Has(std::string_view value) const { return counts_.contains(value); }
  size_t size() const { return counts_.size(); }
  int64_t Least() const { return how_many_.empty() ? 0 : how_many_.begin()->first; }

 private:
  void Drop(int64_t count) {
    const auto at = how_many_.find(count);
    if (--at->second == 0) how_many_.erase(at);
  }
  std::map<std::string, int64_t, std::less<>> counts_;
  std::map<int64_t, size_t> how_many_;  // count to number of values that have it
};

struct Known {
  std::shared_ptr<const PodInfo> pod;  // whose required constraints these are
  std::vector<Domains> domains;        // one for each

  const Constraints& constraints() const { return pod->spread.required; }
};

struct Scores {
  Constraints constraints;
  std::vector<Domains> domains;  // one for each; unused for kHostname
  std::vector<double> weights;
  bool all_keys = true;  // nodes that lack one of the keys score nothing

  bool Ignores(const NodeInfo& node) const {
    return all_keys && !HasAllKeys(constraints, node.labels());
  }
};

class PodTopologySpread : public Plugin {
 public:
  explicit PodTopologySpread(Lookups lookups) : lookups_(lookups) {}
  std::string_view name() const override { return kName; }
  int64_t weight() const override { return 2; }

  Verdict PreFilter(CycleState& state, const ClusterState& cluster, NodeSet&) const override {
    const PodInfo& pod = *state.pod;
    const Constraints& constraints = pod.spread.required;
    if (constraints.empty()) return {};
    Known known{state.pod, std::vector<Domains>(constraints.size())};
    for (const auto& [name, node] : cluster.nodes()) {
      if (!HasAllKeys(constraints, node.labels())) continue;
      Each(known, pod, node, [&](const Constraint&, Domains& domains, const std::string& value) {
        domains.Add(value, 0);
      });
    }
    for (const auto& [uid, placed] : cluster.PodsIn(pod.pod.ns())) {
      if (placed.on_known_node()) Count(known, pod, *placed.pod, *placed.node, 1);
    }
    state.data[kName] = std::move(known);
    return {};
  }

  void Moved(CycleState& state, const PodInfo& other, const NodeInfo& node, int by) const override {
    Known* known = state.Find<Known>(kName);
    if (known && other.pod.ns() == state.pod->pod.ns()) Count(*known, *state.pod, other, node, by);
  }

  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const Known* known = state.Find<Known>(kName);
    if (!known) return {};
    for (size_t i = 0; i < known->domains.size(); ++i) {
      const Constraint& c = known->constraints()[i];
      const Domains& domains = known->domains[i];
      const Value value = node.labels()[c.key];
      if (value.IsAbsent()) {
        return Verdict::RejectForGood(std::string(kMismatch) + " (missing required label)");
      }
      const bool too_few = static_cast<int64_t>(domains.size()) < c.min_domains;
      const int64_t least = too_few ? 0 : domains.Least();
      const int64_t self = c.selector.Matches(state.pod->labels()) ? 1 : 0;
      if (domains.Of(value.AsString()) + self - least > c.max_skew) {
        return Verdict::Reject(std::string(kMismatch));
      }
    }
    return {};
  }

  bool MayHelp(const ClusterEvent& event,
               const std::shared_ptr<const PodInfo>& pod) const override {
    const Constraints& constraints = pod->spread.required;
    if (event.pod || event.pod_before) return PodMayHelp(event, *pod, constraints);
    const Value before = event.node_before["metadata"]["labels"];
    const bool had = event.node_before && HasAllKeys(constraints, before);
    if (!event.node || !event.node_before)
      return event.node ? HasAllKeys(constraints, event.node->labels()) : had;
    const bool has = HasAllKeys(constraints, event.node->labels());
    if (had != has) return true;
    const auto moved = [&](const Constraint& c) {
      return before[c.key].AsString() != event.node->labels()[c.key].AsString();
    };
    return has && (std::any_of(constraints.begin(), constraints.end(), moved) ||
                   !Equal(event.node_before["spec"]["taints"], event.node->node["spec"]["taints"]));
  }

  bool PreScore(CycleState& state, const ClusterState& cluster,
                const std::vector<const NodeInfo*>& feasible) const override {
    const PodInfo& pod = *state.pod;
    Scores scores;
    scores.all_keys = !pod.spread.empty();
    scores.constraints = scores.all_keys ? pod.spread.preferred : DefaultConstraints(pod);
    if (scores.constraints.empty()) return false;
    scores.domains.resize(scores.constraints.size());
    size_t scored = 0;
    for (const NodeInfo* node : feasible) {
      if (scores.Ignores(*node)) continue;
      ++scored;
      for (size_t i = 0; i < scores.constraints.size(); ++i) {
        const std::string& key = scores.constraints[i].key;
        if (key != kHostname) scores.domains[i].Add(std::string(node->labels()[key].AsString()), 0);
      }
    }
    // Few values weigh less than many, so that zones are not drowned out by nodes.
    for (size_t i = 0; i < scores.constraints.size(); ++i) {
      const bool host = scores.constraints[i].key == kHostname;
      const size_t values = host ? scored : scores.domains[i].size();
      scores.weights.push_back(std::log(static_cast<double>(values + 2)));
    }
    for (const auto& [uid, placed] : cluster.PodsIn(pod.pod.ns()))
      if (placed.on_known_node()) Count(scores, pod, *placed.pod, *placed.node);
    state.data[kScores] = std::move(scores);
    return true;
  }

  // The more Pods of its kind, the higher; Normalize turns it around.
  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    const Scores& scores = *state.Find<Scores>(kScores);
    if (scores.Ignores(node)) return 0;
    double sum = 0;
    for (size_t i = 0; i < scores.constraints.size(); ++i) {
      const Constraint& c = scores.constraints[i];
      const Value value = node.labels()[c.key];
      if (value.IsAbsent()) continue;
      const int64_t count = c.key == kHostname ? CountOn(node, c, *state.pod)
                                               : scores.domains[i].Of(value.AsString());
      sum += static_cast<double>(count) * scores.weights[i] + static_cast<double>(c.max_skew - 1);
    }
    return std::llround(sum);
  }

  void Normalize(const CycleState& state, const std::vector<const NodeInfo*>& nodes,
                 std::vector<int64_t>& values) const override {
    const Scores& scores = *state.Find<Scores>(kScores);
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (scores.Ignores(*nodes[i])) continue;
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (scores.Ignores(*nodes[i])) {
        values[i] = 0;
      } else {
        values[i] = most == 0 ? kMaxScore : kMaxScore * (most + least - values[i]) / most;
      }
    }
  }

 private:
  // Calls `act` for each constraint for which the node counts.
  template <typename F>
  static void Each(Known& known, const PodInfo& pod, const NodeInfo& node, F act) {
    for (size_t i = 0; i < known.domains.size(); ++i) {
      const Constraint& c = known.constraints()[i];
      if (Includes(c, pod, node))
        act(c, known.domains[i], std::string(node.labels()[c.key].AsString()));
    }
  }

  static void Count(Known& known, const PodInfo& pod, const PodInfo& other, const NodeInfo& node,
                    int by) {
    const auto selects = [&](const Constraint& c) { return Counts(c, other); };
    if (std::ranges::none_of(known.constraints(), selects)) return;
    if (!HasAllKeys(known.constraints(), node.labels())) return;
    Each(known, pod, node, [&](const Constraint& c, Domains& domains, const std::string& value) {
      if (Counts(c, other)) domains.Add(value, by);
    });
  }

  // Values that no feasible node has do not matter, and nodes are counted one by one in Score.
  static void Count(Scores& scores, const PodInfo& pod, const PodInfo& other,
                    const NodeInfo& node) {
    if (scores.Ignores(node)) return;
    for (size_t i = 0; i < scores.constraints.size(); ++i) {
      const Constraint& c = scores.constraints[i];
      const std::string value(node.labels()[c.key].AsString());
      if (c.key == kHostname || !Counts(c, other) || !scores.domains[i].Has(value)) continue;
      if (Includes(c, pod, node)) scores.domains[i].Add(value, 1);
    }
  }

  static int64_t CountOn(const NodeInfo& node, const Constraint& c, const PodInfo& pod) {
    return std::count_if(node.pods.begin(), node.pods.end(), [&](const auto& entry) {
      return entry.second->pod.ns() == pod.pod.ns() && Counts(c, *entry.second);
    });
  }

  static bool PodMayHelp(const ClusterEvent& event, const PodInfo& pod,
                         const Constraints& constraints) {
    const PodInfo* now = event.pod.get();
    const PodInfo* before = event.pod_before.get();
    if ((now ? now : before)->pod.ns() != pod.pod.ns()) return false;
    if (!now || !before) return AnySelects(constraints, now ? *now : *before);
    return std::any_of(constraints.begin(), constraints.end(), [&](const Constraint& c) {
      return c.selector.Matches(now->labels()) != c.selector.Matches(before->labels());
    });
  }

  // By the selectors of the Services and of the controller that a Pod belongs to; none if there
  // are no such (plugins/helper: DefaultSelector).
  Constraints DefaultConstraints(const PodInfo& pod) const {
    const std::string ns(pod.pod.ns());
    api::Editor selector;
    const api::Mut labels = selector["matchLabels"];
    for (const api::Object& service : lookups_.services.List(ns)) {
      const Value wanted = service["spec"]["selector"];
      if (!wanted || !LabelSelector::FromMap(wanted).Matches(pod.labels())) continue;
      selector.Keep(service);
      for (auto [key, value] : wanted.members()) labels.Set(key, value);
    }
    AddOwnersSelector(pod, ns, selector);
    const api::Object whole = std::move(selector).Finish();
    auto read = LabelSelector::From(whole.root());
    if (!read || read->Empty() || read->IsNothing()) return {};
    return SystemDefaults(*read);
  }

  void AddOwnersSelector(const PodInfo& pod, const std::string& ns, api::Editor& selector) const {
    const struct {
      std::string_view kind;
      client::Informer& objects;
    } known[] = {{"ReplicationController", lookups_.replication_controllers},
                 {"ReplicaSet", lookups_.replica_sets},
                 {"StatefulSet", lookups_.stateful_sets}};
    for (Value owner : pod.pod["metadata"]["ownerReferences"].items()) {
      if (!owner["controller"].AsBool()) continue;
      for (const auto& [kind, objects] : known) {
        if (owner["kind"].AsString() != kind) continue;
        const api::Object set = objects.Get({ns, std::string(owner["name"].AsString())});
        const Value wanted = set["spec"]["selector"];
        selector.Keep(set);
        const bool plain = kind == "ReplicationController";
        for (auto [key, value] : (plain ? wanted : wanted["matchLabels"]).members())
          selector["matchLabels"].Set(key, value);
        if (plain) return;
        for (Value expression : wanted["matchExpressions"].items())
          selector["matchExpressions"].Append().Set(expression);
      }
      return;
    }
  }

  const Lookups lookups_;
};

}  // namespace

std::unique_ptr<Plugin> MakePodTopologySpread(Lookups lookups) {
  return std::make_unique<PodTopologySpread>(lookups);
}

}  // namespace sextant::scheduler
