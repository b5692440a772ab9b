#include "controllers/node_lifecycle.h"

#include <fmt/format.h>

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr Duration kMonitorPeriod = 5s;
constexpr Duration kGrace = 50s;
constexpr Duration kStartupGrace = 60s;
constexpr const char* kLeaseNamespace = "kube-node-lease";
// Rate of NoExecute taints in a zone: normal; where most nodes of a large zone are gone; a small
// zone then gets none.
constexpr Duration kTaintEvery = 10s;
constexpr Duration kTaintEveryReduced = 100s;
constexpr int64_t kLargeZone = 50;
constexpr double kUnhealthyShare = 0.55;

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";

struct ConditionTaint {
  std::string_view condition;
  std::string_view status;
  std::string_view key;
};
constexpr ConditionTaint kConditionTaints[] = {
    {"Ready", "False", kNotReady},
    {"Ready", "Unknown", kUnreachable},
    {"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
    {"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
    {"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
    {"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
};
constexpr std::string_view kWatched[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};

// Old label, which follows the stable one.
constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
    {"kubernetes.io/os", "beta.kubernetes.io/os"},
    {"kubernetes.io/arch", "beta.kubernetes.io/arch"},
};

struct TaintOf {
  std::string_view key;
  std::string_view effect;
  auto operator<=>(const TaintOf&) const = default;
};

bool IsOurs(Value taint) {
  const std::string_view key = taint["key"].AsString();
  const std::string_view effect = taint["effect"].AsString();
  if (effect == "NoExecute") return key == kNotReady || key == kUnreachable;
  if (effect != "NoSchedule") return false;
  if (key == kUnschedulable) return true;
  for (const ConditionTaint& each : kConditionTaints)
    if (each.key == key) return true;
  return false;
}

bool Has(Value taints, TaintOf wanted) {
  for (Value taint : taints.items())
    if (taint["key"].AsString() == wanted.key && taint["effect"].AsString() == wanted.effect) {
      return true;
    }
  return false;
}

std::string_view ReadyStatus(const Object& node) {
  return FindCondition(node["status"]["conditions"], "Ready")["status"].AsString();
}

std::string ZoneOf(const Object& node) {
  const Value labels = node["metadata"]["labels"];
  return fmt::format("{}:{}", labels["topology.kubernetes.io/region"].AsString(),
                     labels["topology.kubernetes.io/zone"].AsString());
}

bool LabelsDiffer(const Object& node) {
  const Value labels = node["metadata"]["labels"];
  for (const auto& [stable, old] : kLabels) {
    if (labels.Has(stable) && labels[stable].AsString() != labels[old].AsString()) return true;
  }
  return false;
}

}  // namespace

NodeLifecycleController::NodeLifecycleController(Deps deps)
    : Reconciler(deps, {.component = "node-controller", .parallel = 8}),
      nodes_(*this, client::kNodes),
      pods_(*this, client::kPods),
      leases_(Use(client::kLeases)) {
  pods_.cache().AddIndex("node", client::NodeNames);
  Hear(nodes_.cache(), [this](const Change& change) { OnNode(change); });
}

void NodeLifecycleController::Count(const Object& node, int by) {
  if (!node) return;
  const bool ready = ReadyStatus(node) == "True";
  Zone& zone = zones_[ZoneOf(node)];
  (ready ? zone.ready : zone.silent) += by;
  if (ready) ready_ += by;
}

void NodeLifecycleController::OnNode(const Change& change) {
  const ObjectName name = change.name();
  Count(change.before, -1);
  Count(change.after, 1);
  if (change.deleted()) {
    events().Normal(
        change.before, "RemovingNode",
        fmt::format("Node {} event: Removing Node {} from Controller", name.name, name.name));
    health_.erase(name.name);
    return;
  }
  Enqueue(name);
}

bool NodeLifecycleController::IsSilent(const Object& node) {
  const std::string name(node.name());
  const auto [at, first] = health_.try_emplace(name);
  Health& health = at->second;
  const Value ready = FindCondition(node["status"]["conditions"], "Ready");
  const Object lease = leases_.Get({kLeaseNamespace, name});
  const std::string heartbeat(ready["lastHeartbeatTime"].AsString());
  const std::string renewed(lease["spec"]["renewTime"].AsString());
  if (first) {
    health = {heartbeat, renewed, ready ? Now() : CreatedAt(node), false};
    if (!renewed.empty()) health.heard = Now();
  }
  if (!health.registered) {
    health.registered = true;
    events().Normal(node, "RegisteredNode",
                    fmt::format("Node {} event: Registered Node {} in Controller", name, name));
  }
  if (heartbeat != health.heartbeat || (!renewed.empty() && renewed > health.renewed)) {
    health.heard = Now();
    health.heartbeat = heartbeat;
    health.renewed = std::max(health.renewed, renewed);
  }
  return Now() > health.heard + (ready ? kGrace : kStartupGrace);
}

void NodeLifecycleController::Reconcile(const ObjectName& key, Done done) {
  const Object node = nodes_.cache().Get(key);
  if (!node) return done({});
  EnqueueAfter(key, kMonitorPeriod);
  const bool silent = IsSilent(node);
  if (silent && ReadyStatus(node) != "Unknown") return MarkUnknown(node, std::move(done));
  Taint(node, std::move(done));
}

void NodeLifecycleController::MarkUnknown(const Object& node, Done done) {
  const bool was_ready = ReadyStatus(node) == "True";
  Editor edit(node);
  Mut conditions = edit["status"]["conditions"];
  const std::string now = FormatTime(Now());
  for (const std::string_view type : kWatched) {
    const Value have = FindCondition(node["status"]["conditions"], type);
    if (have && have["status"].AsString() == "Unknown") continue;
    SetCondition(conditions,
                 have ? Condition{type, "Unknown", "NodeStatusUnknown",
                                  "Kubelet stopped posting node status."}
                      : Condition{type, "Unknown", "NodeStatusNeverUpdated",
                                  "Kubelet never posted node status."},
                 Now());
    if (!have) {
      conditions.at(conditions.size() - 1)
          .Set("lastHeartbeatTime", node["metadata"]["creationTimestamp"]);
    }
  }
  nodes_.UpdateStatus(nodes_.Finish(std::move(edit)), [this, was_ready, done = std::move(done)](
                                                          Result<Object> updated) mutable {
    if (!updated) return done(Fail(std::move(updated).error()));
    const Object now_unknown = *updated;
    const auto join = JoinThen([this, now_unknown, done = std::move(done)](Status status) mutable {
      if (!status) return done(std::move(status));
      Taint(now_unknown, std::move(done));
    });
    if (!was_ready) return;
    events().Normal(now_unknown, "NodeNotReady",
                    fmt::format("Node {} status is now: NodeNotReady", now_unknown.name()));
    MarkPodsNotReady(now_unknown, join);
  });
}

void NodeLifecycleController::MarkPodsNotReady(const Object& node,
                                               const std::shared_ptr<Join>& join) {
  for (const Object& pod : pods_.cache().ByIndex("node", std::string(node.name()))) {
    if (!IsPodReady(pod)) continue;
    Editor edit;
    Mut condition = edit["status"]["conditions"].Append();
    condition.Set("type", "Ready");
    condition.Set("status", "False");
    condition.Set("lastTransitionTime", FormatTime(Now()));
    pods_.Patch(pod, client::PatchType::kStrategic, std::move(edit).Finish(), join->Piece(),
                "status");
    events().Warning(pod, "NodeNotReady", "Node is not ready");
  }
}

// Whether the node may get its NoExecute taint now, by its zone's rate.
bool NodeLifecycleController::MayTaint(const Object& node) {
  if (ready_ == 0) return false;
  Zone& zone = zones_[ZoneOf(node)];
  const int64_t size = zone.ready + zone.silent;
  const bool partial =
      zone.ready > 0 && zone.silent > 2 &&
      static_cast<double>(zone.silent) >= kUnhealthyShare * static_cast<double>(size);
  if (partial && size <= kLargeZone) return false;
  if (Now() < zone.next_taint) return false;
  zone.next_taint = Now() + (partial ? kTaintEveryReduced : kTaintEvery);
  return true;
}

void NodeLifecycleController::Taint(const Object& node, Done done) {
  std::vector<TaintOf> wanted;
  const Value conditions = node["status"]["conditions"];
  for (const ConditionTaint& each : kConditionTaints) {
    if (FindCondition(conditions, each.condition)["status"].AsString() == each.status) {
      wanted.push_back({each.key, "NoSchedule"});
    }
  }
  if (node["spec"]["unschedulable"].AsBool()) wanted.push_back({kUnschedulable, "NoSchedule"});
  const Value have = node["spec"]["taints"];
  const std::string_view ready = ReadyStatus(node);
  if (ready == "False" || ready == "Unknown") {
    const TaintOf taint{ready == "False" ? kNotReady : kUnreachable, "NoExecute"};
    const TaintOf opposite{ready == "False" ? kUnreachable : kNotReady, "NoExecute"};
    if (Has(have, taint) || Has(have, opposite)) {
      if (ready_ > 0) wanted.push_back(taint);
    } else if (MayTaint(node)) {
      wanted.push_back(taint);
    }
  } else if (ready.empty()) {  // not heard of yet: what it registered with stays
    for (const std::string_view key : {kNotReady, kUnreachable})
      if (Has(have, {key, "NoExecute"})) wanted.push_back({key, "NoExecute"});
  }
  Editor edit;
  edit.Keep(node);
  Mut taints = edit["spec"]["taints"];
  taints.SetList();
  bool changed = LabelsDiffer(node);
  for (Value taint : have.items()) {
    const TaintOf is{taint["key"].AsString(), taint["effect"].AsString()};
    const bool stays =
        !IsOurs(taint) || std::find(wanted.begin(), wanted.end(), is) != wanted.end();
    if (stays) taints.Append().Set(taint);
    changed = changed || !stays;
  }
  for (const TaintOf& taint : wanted) {
    if (Has(have, taint)) continue;
    changed = true;
    Mut added = taints.Append();
    added.Set("key", taint.key);
    added.Set("effect", taint.effect);
    added.Set("timeAdded", FormatTime(Now()));
  }
  if (!changed) return done({});
  edit["metadata"].Set("resourceVersion", node.resource_version());
  const Value labels = node["metadata"]["labels"];
  for (const auto& [stable, old] : kLabels)
    if (labels.Has(stable)) edit["metadata"]["labels"].Set(old, labels[stable].AsString());
  nodes_.Patch(node, client::PatchType::kMerge, std::move(edit).Finish(), Ending(std::move(done)));
}

}  // namespace sextant::controllers
