// The scheduling framework: kube-scheduler's extension points as C++ interfaces.
//
// A plugin is a small object with a name; it implements the points it cares about. A cycle asks, in
// order: PreFilter, Filter (per node), and where no node fits, Filter again on what preemption
// tries; else PreScore, Score (per node), Normalize. PreEnqueue stands at the queue's door, MayHelp
// wakes what waits, PreBind comes when the node is chosen. What a cycle computes once lives in
// CycleState.
//
// Source: k8s.io/kubernetes pkg/scheduler/framework. Core loop only; no plugin blocks.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/informer.h"
#include "scheduler/cluster_state.h"

namespace sextant::scheduler {

class Plugin;

enum class Code : uint8_t {
  kSuccess,
  kUnschedulable,                 // evicting Pods might help
  kUnschedulableAndUnresolvable,  // it would not
};

// What a plugin answers. Reasons are the texts that FailedScheduling counts.
struct Verdict {
  Code code = Code::kSuccess;
  std::vector<std::string> reasons;
  const Plugin* plugin = nullptr;  // who refused

  bool ok() const { return code == Code::kSuccess; }
  static Verdict Reject(std::string reason) { return {Code::kUnschedulable, {std::move(reason)}}; }
  static Verdict RejectForGood(std::string reason) {
    return {Code::kUnschedulableAndUnresolvable, {std::move(reason)}};
  }
};

// Node names that a PreFilter plugin leaves over; nothing: all.
using NodeSet = std::optional<std::set<std::string>>;

// Of one cycle. A copy can be changed without touching the original: preemption tries on copies.
struct CycleState {
  std::shared_ptr<const PodInfo> pod;
  std::map<std::string_view, std::any> data;  // by plugin

  // Null where the plugin computed nothing.
  template <typename T>
  const T* Find(std::string_view plugin) const {
    const auto at = data.find(plugin);
    return at == data.end() ? nullptr : std::any_cast<T>(&at->second);
  }
  template <typename T>
  T* Find(std::string_view plugin) {
    return const_cast<T*>(std::as_const(*this).Find<T>(plugin));
  }
};

// Something happened that may make a Pod fit. About a node, about a Pod that has one, or storage.
struct ClusterEvent {
  const NodeInfo* node = nullptr;             // as it is now; null: gone, or about something else
  api::Object node_before;                    // empty: it is new
  std::shared_ptr<const PodInfo> pod;         // as it is now; null: gone
  std::shared_ptr<const PodInfo> pod_before;  // null: it came to its node
  int64_t up_to_priority = INT64_MAX;         // Pods of more than this care nothing for it
  bool storage = false;  // a claim, a volume or a storage class is another than before
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  // False keeps the Pod out of the queue until it changes.
  virtual Verdict PreEnqueue(const PodInfo&) const { return {}; }
  virtual Verdict PreFilter(CycleState&, const ClusterState&, NodeSet&) const { return {}; }
  virtual Verdict Filter(const CycleState&, const NodeInfo&) const { return {}; }
  // In thought a Pod came to (by = 1) or left (by = -1) a node: what PreFilter computed follows.
  virtual void Moved(CycleState&, const PodInfo&, const NodeInfo&, int /*by*/) const {}
  // Whether the event may let a Pod pass that this plugin refused. Unless a plugin knows better: a
  // node that it does not refuse.
  virtual bool MayHelp(const ClusterEvent& event, const std::shared_ptr<const PodInfo>& pod) const {
    return event.node && Filter({pod, {}}, *event.node).ok();
  }

  virtual int64_t weight() const { return 0; }  // 0: does not score
  // False: scores nothing in this cycle.
  virtual bool PreScore(CycleState&, const ClusterState&,
                        const std::vector<const NodeInfo*>& /*feasible*/) const {
    return true;
  }
  // Raw score of a node; `Normalize` brings all of a cycle's into 0..100.
  virtual int64_t Score(const CycleState&, const NodeInfo&) const { return 0; }
  virtual void Normalize(const CycleState&, const std::vector<const NodeInfo*>&,
                         std::vector<int64_t>&) const {}

  using Done = std::move_only_function<void(Status)>;
  // What the Pod needs on the node before it is bound to it. `done` is called once, now or later;
  // an error puts the Pod back into the queue.
  virtual void PreBind(const std::shared_ptr<const PodInfo>&, const NodeInfo&, Done done) {
    done({});
  }
};

inline constexpr int64_t kMaxScore = 100;
// Scales so that the largest becomes 100, and turns around if asked.
void DefaultNormalize(std::vector<int64_t>& scores, bool reverse);

// What plugins look up beside nodes and Pods.
struct Lookups {
  client::Informer& namespaces;
  client::Informer& services;
  client::Informer& replication_controllers;
  client::Informer& replica_sets;
  client::Informer& stateful_sets;
  client::Informer& claims;
  client::Informer& volumes;
  client::Informer& storage_classes;

  std::vector<client::Informer*> all() const {
    return {&namespaces, &services, &replication_controllers, &replica_sets, &stateful_sets,
            &claims,     &volumes,  &storage_classes};
  }
};

std::unique_ptr<Plugin> MakePodTopologySpread(Lookups lookups);
std::unique_ptr<Plugin> MakeInterPodAffinity(Lookups lookups);
// `client` writes what it binds.
std::unique_ptr<Plugin> MakeVolumeBinding(client::Client& client, Lookups lookups);
// The default profile, in kube-scheduler's MultiPoint order, as far as this scheduler has them.
std::vector<std::unique_ptr<Plugin>> DefaultPlugins(client::Client& client, Lookups lookups);

// A profile's plugins, asked in their order.
class Framework {
 public:
  explicit Framework(std::vector<std::unique_ptr<Plugin>> plugins) : plugins_(std::move(plugins)) {}

  // Nodes that PreFilter plugins left over, and who did so.
  struct Left {
    NodeSet nodes;
    std::vector<const Plugin*> by;
  };

  bool PreEnqueue(const PodInfo& pod) const;
  Verdict PreFilter(CycleState& state, const ClusterState& cluster, Left& left) const;
  Verdict Filter(const CycleState& state, const NodeInfo& node) const;
  // All plugins' PreBind side by side; `done` once, an error names its plugin.
  void PreBind(const std::shared_ptr<const PodInfo>& pod, const NodeInfo& node,
               Plugin::Done done) const;
  void Move(CycleState& state, NodeInfo& node, std::shared_ptr<const PodInfo> pod, int by) const;
  // The weighted sum for each node.
  std::vector<int64_t> Score(CycleState& state, const ClusterState& cluster,
                             const std::vector<const NodeInfo*>& nodes) const;

 private:
  const std::vector<std::unique_ptr<Plugin>> plugins_;
};

}  // namespace sextant::scheduler
