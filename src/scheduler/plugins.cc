// The default plugins. Reasons are kube-scheduler 1.36's own texts
// (pkg/scheduler/framework/plugins).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scheduler/affinity.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {
namespace {

using api::Value;

class SchedulingGates : public Plugin {
 public:
  std::string_view name() const override { return "SchedulingGates"; }
  Verdict PreEnqueue(const PodInfo& info) const override {
    const Value gates = info.pod["spec"]["schedulingGates"];
    if (gates.empty()) return {};
    std::string names;
    for (Value gate : gates.items()) {
      if (!names.empty()) names += ' ';
      names += gate["name"].AsString();
    }
    return Verdict::RejectForGood(fmt::format("waiting for scheduling gates: [{}]", names));
  }
};

class NodeUnschedulable : public Plugin {
 public:
  std::string_view name() const override { return "NodeUnschedulable"; }
  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    if (!node.node["spec"]["unschedulable"].AsBool()) return {};
    api::Editor taint;
    taint.Root().Set("key", "node.kubernetes.io/unschedulable");
    taint.Root().Set("effect", "NoSchedule");
    const api::Object cordon = std::move(taint).Finish();
    for (Value toleration : state.pod->pod["spec"]["tolerations"].items()) {
      if (Tolerates(toleration, cordon.root())) return {};
    }
    return Verdict::RejectForGood("node(s) were unschedulable");
  }
};

class NodeName : public Plugin {
 public:
  std::string_view name() const override { return "NodeName"; }
  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const std::string_view wanted = state.pod->pod["spec"]["nodeName"].AsString();
    if (wanted.empty() || wanted == node.name) return {};
    return Verdict::RejectForGood("node(s) didn't match the requested node name");
  }
};

class TaintToleration : public Plugin {
 public:
  std::string_view name() const override { return "TaintToleration"; }
  int64_t weight() const override { return 3; }
  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const Value taint = FirstUntolerated(state.pod->pod["spec"]["tolerations"],
                                         node.node["spec"]["taints"], true, true);
    if (!taint) return {};
    return Verdict::RejectForGood("node(s) had untolerated taint(s)");
  }
  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    int64_t count = 0;
    for (Value taint : node.node["spec"]["taints"].items()) {
      if (taint["effect"].AsString() != "PreferNoSchedule") continue;
      bool tolerated = false;
      for (Value toleration : state.pod->pod["spec"]["tolerations"].items()) {
        tolerated = tolerated || Tolerates(toleration, taint);
      }
      if (!tolerated) ++count;
    }
    return count;
  }
  void Normalize(const CycleState&, const std::vector<const NodeInfo*>&,
                 std::vector<int64_t>& scores) const override {
    DefaultNormalize(scores, true);
  }
};

class NodeAffinity : public Plugin {
 public:
  std::string_view name() const override { return "NodeAffinity"; }
  int64_t weight() const override { return 2; }

  // Terms that name nodes (matchFields metadata.name In [x]) leave over just those: of each term
  // what all its fields name, of all terms together what one of them names.
  Verdict PreFilter(CycleState& state, const ClusterState&, NodeSet& left) const override {
    const Value terms = Required(state)["nodeSelectorTerms"];
    if (terms.empty()) return {};
    std::set<std::string> named;
    for (Value term : terms.items()) {
      NodeSet of_term;
      for (Value field : term["matchFields"].items()) {
        if (field["key"].AsString() != "metadata.name" || field["operator"].AsString() != "In") {
          continue;
        }
        std::set<std::string> of_field;
        for (Value value : field["values"].items()) {
          std::string name(value.AsString());
          if (!of_term || of_term->contains(name)) of_field.insert(std::move(name));
        }
        of_term = std::move(of_field);
      }
      if (!of_term) return {};
      named.merge(*of_term);
    }
    if (named.empty()) return Verdict::RejectForGood("pod affinity terms conflict");
    left = std::move(named);
    return {};
  }
  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    if (MatchesRequiredNodeAffinity(state.pod->pod.root(), node.node.root())) return {};
    return Verdict::RejectForGood("node(s) didn't match Pod's node affinity/selector");
  }
  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    int64_t score = 0;
    const Value preferred = state.pod->pod["spec"]["affinity"]["nodeAffinity"]
                                          ["preferredDuringSchedulingIgnoredDuringExecution"];
    for (Value term : preferred.items()) {
      if (MatchesNodeSelectorTerm(term["preference"], node.node.root())) {
        score += term["weight"].AsInt();
      }
    }
    return score;
  }
  void Normalize(const CycleState&, const std::vector<const NodeInfo*>&,
                 std::vector<int64_t>& scores) const override {
    DefaultNormalize(scores, false);
  }

 private:
  static Value Required(const CycleState& state) {
    return state.pod
        ->pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  }
};

class NodePorts : public Plugin {
 public:
  std::string_view name() const override { return "NodePorts"; }
  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    if (state.pod->host_ports.empty()) return {};
    for (const auto& [uid, pod] : node.pods) {
      if (Meet(*state.pod, *pod)) {
        return Verdict::Reject("node(s) didn't have free ports for the requested pod ports");
      }
    }
    return {};
  }
  bool MayHelp(const ClusterEvent& event,
               const std::shared_ptr<const PodInfo>& pod) const override {
    if (event.node) return !event.node_before;
    return event.pod_before && !event.pod && Meet(*pod, *event.pod_before);
  }

 private:
  static bool Meet(const PodInfo& a, const PodInfo& b) {
    for (const std::string& wanted : a.host_ports)
      for (const std::string& taken : b.host_ports)
        if (Conflict(wanted, taken)) return true;
    return false;
  }
  // "TCP/10.0.0.1/80": the wildcard address meets every address.
  static bool Conflict(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto protocol = [](std::string_view x) { return x.substr(0, x.find('/')); };
    const auto port = [](std::string_view x) { return x.substr(x.rfind('/')); };
    if (protocol(a) != protocol(b) || port(a) != port(b)) return false;
    return a.find("/0.0.0.0/") != a.npos || b.find("/0.0.0.0/") != b.npos;
  }
};

class NodeResourcesFit : public Plugin {
 public:
  std::string_view name() const override { return "NodeResourcesFit"; }
  int64_t weight() const override { return 1; }

  Verdict Filter(const CycleState& state, const NodeInfo& node) const override {
    const Resources& want = state.pod->requests;
    const Resources& have = node.allocatable;
    const Resources& used = node.requested;
    Verdict verdict;
    const auto refuse = [&](std::string reason, bool for_good) {
      verdict.reasons.push_back(std::move(reason));
      if (verdict.code == Code::kSuccess) verdict.code = Code::kUnschedulable;
      if (for_good) verdict.code = Code::kUnschedulableAndUnresolvable;
    };
    const auto check = [&](std::string_view what, int64_t wanted, int64_t all, int64_t taken) {
      if (wanted > 0 && wanted > all - taken) {
        refuse(fmt::format("Insufficient {}", what), wanted > all);
      }
    };
    if (static_cast<int64_t>(node.pods.size()) + 1 > have.pods) refuse("Too many pods", false);
    check("cpu", want.milli_cpu, have.milli_cpu, used.milli_cpu);
    check("memory", want.memory, have.memory, used.memory);
    check("ephemeral-storage", want.ephemeral_storage, have.ephemeral_storage,
          used.ephemeral_storage);
    for (const auto& [resource, amount] : want.scalars) {
      check(resource, amount, have.Scalar(resource), used.Scalar(resource));
    }
    return verdict;
  }

  // A Pod that left or shrank, or a node that could hold this Pod if nothing else were on it.
  bool MayHelp(const ClusterEvent& event,
               const std::shared_ptr<const PodInfo>& pod) const override {
    if (event.node) {
      NodeInfo bare;
      bare.allocatable = event.node->allocatable;
      return Filter({pod, {}}, bare).ok();
    }
    return event.pod_before && (!event.pod || event.pod->requests != event.pod_before->requests);
  }

  // LeastAllocated over CPU and memory, weight 1 each.
  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    const auto part = [](int64_t wanted, int64_t all) -> int64_t {
      if (all == 0 || wanted > all) return 0;
      return (all - wanted) * kMaxScore / all;
    };
    const Resources& want = state.pod->non_zero;
    const int64_t cpu = part(node.non_zero.milli_cpu + want.milli_cpu, node.allocatable.milli_cpu);
    const int64_t memory = part(node.non_zero.memory + want.memory, node.allocatable.memory);
    const int64_t parts = (node.allocatable.milli_cpu > 0) + (node.allocatable.memory > 0);
    return parts == 0 ? 0 : (cpu + memory) / parts;
  }
};

class BalancedAllocation : public Plugin {
 public:
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }
  int64_t weight() const override { return 1; }

  // 100 when CPU and memory are used to the same fraction.
  int64_t Score(const CycleState& state, const NodeInfo& node) const override {
    const Resources& want = state.pod->requests;
    const auto fraction = [](int64_t wanted, int64_t all) {
      return std::min(1.0, static_cast<double>(wanted) / static_cast<double>(all));
    };
    if (node.allocatable.milli_cpu == 0 || node.allocatable.memory == 0) return kMaxScore;
    const double cpu =
        fraction(node.requested.milli_cpu + want.milli_cpu, node.allocatable.milli_cpu);
    const double memory = fraction(node.requested.memory + want.memory, node.allocatable.memory);
    return static_cast<int64_t>((1.0 - std::abs(cpu - memory) / 2) * kMaxScore);
  }
};

}  // namespace

std::vector<std::unique_ptr<Plugin>> DefaultPlugins(client::Client& client, Lookups lookups) {
  std::vector<std::unique_ptr<Plugin>> plugins;
  plugins.push_back(std::make_unique<SchedulingGates>());
  plugins.push_back(std::make_unique<NodeUnschedulable>());
  plugins.push_back(std::make_unique<NodeName>());
  plugins.push_back(std::make_unique<TaintToleration>());
  plugins.push_back(std::make_unique<NodeAffinity>());
  plugins.push_back(std::make_unique<NodePorts>());
  plugins.push_back(std::make_unique<NodeResourcesFit>());
  plugins.push_back(MakeVolumeBinding(client, lookups));
  plugins.push_back(MakePodTopologySpread(lookups));
  plugins.push_back(MakeInterPodAffinity(lookups));
  plugins.push_back(std::make_unique<BalancedAllocation>());
  return plugins;
}

}  // namespace sextant::scheduler
