#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/conditions.h"
#include "api/pods.h"
#include "base/log.h"
#include "scheduler/claims.h"

namespace sextant::scheduler {
namespace {

using api::Object;
using client::NameOf;
using client::ObjectName;

constexpr std::string_view kRoom = "scheduler";
// Below this many nodes all are looked at; above, 50 - nodes/125 percent, at least 5 percent
// (schedule_one.go numFeasibleNodesToFind).
constexpr size_t kMinFeasible = 100;

constexpr client::Gvr kReplicationControllers{"", "v1", "replicationcontrollers"};

bool IsTerminal(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Succeeded" || phase == "Failed";
}

bool HasNode(const Object& pod) { return !pod["spec"]["nodeName"].AsString().empty(); }

std::string_view NominatedIn(const Object& pod) {
  return pod["status"]["nominatedNodeName"].AsString();
}

size_t FeasibleWanted(size_t nodes) {
  if (nodes < kMinFeasible) return nodes;
  const size_t percent = nodes / 125 >= 45 ? 5 : 50 - nodes / 125;
  return std::max(kMinFeasible, nodes * percent / 100);
}

// What a node's change must touch to matter to Pods that wait.
bool NodeMatters(const client::Change& change) {
  if (change.added() || change.deleted()) return true;
  const Object& a = change.before;
  const Object& b = change.after;
  return !Equal(a["status"]["allocatable"], b["status"]["allocatable"]) ||
         !Equal(a["metadata"]["labels"], b["metadata"]["labels"]) || !Equal(a["spec"], b["spec"]);
}

// What a Pod's change must touch to matter to the Pod itself, when it waits.
bool PodMatters(const client::Change& change) {
  if (change.added()) return true;
  const Object& a = change.before;
  const Object& b = change.after;
  return !Equal(a["spec"], b["spec"]) || !Equal(a["metadata"]["labels"], b["metadata"]["labels"]) ||
         !Equal(a["metadata"]["annotations"], b["metadata"]["annotations"]);
}

Lookups LookupsOf(client::SharedInformers& informers) {
  return {informers.For({.gvr = client::kNamespaces}),
          informers.For({.gvr = client::kServices}),
          informers.For({.gvr = kReplicationControllers}),
          informers.For({.gvr = client::kReplicaSets}),
          informers.For({.gvr = client::kStatefulSets}),
          informers.For({.gvr = client::kPersistentVolumeClaims}),
          informers.For({.gvr = client::kPersistentVolumes}),
          informers.For({.gvr = client::kStorageClasses})};
}

}  // namespace

Scheduler::Scheduler(client::Client& client, client::SharedInformers& informers,
                     SchedulerOptions options, uint64_t seed)
    : client_(client),
      pods_(informers.For({.gvr = client::kPods})),
      nodes_(informers.For({.gvr = client::kNodes})),
      budgets_(informers.For({.gvr = client::kPodDisruptionBudgets})),
      used_(LookupsOf(informers).all()),
      storage_{&LookupsOf(informers).claims, &LookupsOf(informers).volumes,
               &LookupsOf(informers).storage_classes},
      options_(std::move(options)),
      events_(client, {options_.name, ""}),
      random_(seed),
      framework_(DefaultPlugins(client, LookupsOf(informers))) {
  used_.push_back(&pods_);
  used_.push_back(&nodes_);
  used_.push_back(&budgets_);
}

Scheduler::~Scheduler() {
  alive_.End();
  client_.executor().Cancel(timer_);
}

Duration Scheduler::Now() const { return client_.executor().clock().Monotonic(); }

void Scheduler::Start() {
  node_subscription_ = nodes_.Subscribe([this](const client::Change& change) { OnNode(change); });
  pod_subscription_ = pods_.Subscribe([this](const client::Change& change) { OnPod(change); });
  for (client::Informer* informer : storage_) {
    storage_subscriptions_.push_back(
        informer->Subscribe([this](const client::Change&) { Happened({.storage = true}); }));
  }
}

// ---- what the cluster says ----

void Scheduler::Happened(const ClusterEvent& event) {
  queue_.OnEvent(event, Now());
  Wake();
}

void Scheduler::OnNode(const client::Change& change) {
  const std::string name(change.object().name());
  if (change.deleted()) {
    cluster_.RemoveNode(name);
  } else {
    cluster_.SetNode(change.after);
  }
  if (!NodeMatters(change)) return;
  Happened({.node = cluster_.FindNode(name), .node_before = change.before});
}

void Scheduler::OnPod(const client::Change& change) {
  if (!change.added() && !change.deleted() && change.before.uid() != change.after.uid()) {
    PodGone(change.before.uid());
  }
  const Object& pod = change.object();
  if (change.deleted() || IsTerminal(pod)) return PodGone(pod.uid());
  if (HasNode(pod)) {
    PodAssigned(pod);
  } else {
    PodUnassigned(change);
  }
}

void Scheduler::PodGone(std::string_view uid) {
  queue_.Remove(uid);
  assumed_.erase(std::string(uid));
  PodPtr nominated = nominations_.Drop(uid);
  if (PodPtr gone = cluster_.Unplace(uid)) return Happened({.pod_before = std::move(gone)});
  if (nominated) RoomIsFree(std::move(nominated));
}

// Pods of its priority or less took it for one that is on its node already.
void Scheduler::RoomIsFree(PodPtr pod) {
  const int64_t priority = pod->priority;
  Happened({.pod_before = std::move(pod), .up_to_priority = priority});
}

void Scheduler::PodAssigned(const Object& pod) {
  PodPtr info = MakePodInfo(pod);
  queue_.Remove(info->uid);
  nominations_.Drop(info->uid);
  const bool ours = assumed_.erase(info->uid) > 0;
  const Placed* placed = cluster_.FindPod(info->uid);
  PodPtr before = placed && !ours ? placed->pod : nullptr;
  cluster_.Place(info, std::string(pod["spec"]["nodeName"].AsString()));
  const bool same =
      before && before->requests == info->requests && Equal(before->labels(), info->labels());
  if (!same) Happened({.pod = std::move(info), .pod_before = std::move(before)});
}

void Scheduler::PodUnassigned(const client::Change& change) {
  const Object& pod = change.after;
  if (pod["spec"]["schedulerName"].AsString("default-scheduler") != options_.name) return;
  if (assumed_.contains(pod.uid())) return;  // an old word about a Pod being bound
  if (pod["metadata"]["deletionTimestamp"]) return PodGone(pod.uid());
  PodPtr info = MakePodInfo(pod);
  const bool ready = framework_.PreEnqueue(*info);
  queue_.Add(info, ready, PodMatters(change), Now());
  NominationChanged(change, info);
  Wake();
}

void Scheduler::NominationChanged(const client::Change& change, const PodPtr& pod) {
  const std::string before(NominatedIn(change.before));
  const std::string now(NominatedIn(change.after));
  // One that the API does not know yet stands, until the API speaks of another.
  const std::string node = before.empty() && now.empty() ? nominations_.NodeOf(pod->uid) : now;
  nominations_.Drop(pod->uid);
  if (!node.empty()) nominations_.Set(pod, node);
  if (!before.empty() && before != now) RoomIsFree(MakePodInfo(change.before));
}

// ---- the loop ----

void Scheduler::Wake() {
  if (step_posted_) return;
  step_posted_ = true;
  client_.executor().Post(alive_.Guard([this] {
    step_posted_ = false;
    Step();
  }));
}

void Scheduler::Step() {
  for (client::Informer* informer : used_) {
    if (!informer->synced()) return informer->OnSynced(alive_.Guard([this] { Wake(); }));
  }
  if (ScheduleOne()) return Wake();
  ArmTimer();
}

void Scheduler::ArmTimer() {
  client_.executor().Cancel(timer_);
  timer_ = 0;
  const auto wake = queue_.NextWake();
  if (!wake) return;
  timer_ = client_.executor().After(std::max(Duration(0), *wake - Now()),
                                    alive_.Guard([this] { Wake(); }));
}

bool Scheduler::ScheduleOne() {
  PodPtr pod = queue_.Pop(Now());
  if (!pod) return false;
  CycleState state{pod, {}};
  Diagnosis diagnosis;
  const std::vector<const NodeInfo*> feasible = Feasible(state, diagnosis);
  if (feasible.empty()) {
    Preempt(state, diagnosis);
    Fail(pod, diagnosis);
  } else {
    Bind(std::move(pod), Best(state, feasible).name);
  }
  return true;
}

Verdict Scheduler::Filter(const CycleState& state, const NodeInfo& node) const {
  std::vector<PodPtr> coming;
  for (const auto& [uid, pod] : nominations_.On(node.name))
    if (uid != state.pod->uid && pod->priority >= state.pod->priority) coming.push_back(pod);
  if (!coming.empty()) {
    CycleState later = state;
    NodeInfo full = node;
    for (PodPtr& pod : coming) framework_.Move(later, full, std::move(pod), 1);
    Verdict verdict = framework_.Filter(later, full);
    if (!verdict.ok()) return verdict;
  }
  // They may never come.
  return framework_.Filter(state, node);
}

std::vector<const NodeInfo*> Scheduler::Candidates(const Framework::Left& left) const {
  std::vector<const NodeInfo*> candidates;
  if (left.nodes) {
    for (const std::string& name : *left.nodes) {
      const auto at = cluster_.nodes().find(name);
      if (at != cluster_.nodes().end()) candidates.push_back(&at->second);
    }
    return candidates;
  }
  candidates.reserve(cluster_.nodes().size());
  for (const auto& [name, node] : cluster_.nodes()) candidates.push_back(&node);
  return candidates;
}

// Said of the nodes that no Filter has seen; only a Pod that fits nowhere needs it.
void Scheduler::TellLeftOut(const Framework::Left& left, Diagnosis& diagnosis) const {
  if (!left.nodes) return;
  std::set<std::string_view> names;
  for (const Plugin* plugin : left.by) names.insert(plugin->name());
  Verdict verdict = Verdict::RejectForGood(
      fmt::format("node(s) didn't satisfy plugin(s) [{}]", fmt::join(names, " ")));
  verdict.plugin = left.by.front();
  for (const auto& [name, node] : cluster_.nodes()) {
    if (!left.nodes->contains(name)) diagnosis.nodes[name] = verdict;
  }
}

std::vector<const NodeInfo*> Scheduler::Feasible(CycleState& state, Diagnosis& diagnosis) {
  Framework::Left only;
  diagnosis.pre_filter = framework_.PreFilter(state, cluster_, only);
  if (!diagnosis.pre_filter.ok()) return {};
  const std::vector<const NodeInfo*> candidates = Candidates(only);
  const NodeInfo* nominated = NominatedNode(state.pod->uid);
  const bool left = std::ranges::find(candidates, nominated) != candidates.end();
  if (left && Filter(state, *nominated).ok()) return {nominated};
  std::vector<const NodeInfo*> found;
  const size_t wanted = FeasibleWanted(candidates.size());
  size_t looked = 0;
  for (; looked < candidates.size() && found.size() < wanted; ++looked) {
    const NodeInfo* node = candidates[(next_start_ + looked) % candidates.size()];
    Verdict verdict = Filter(state, *node);
    if (verdict.ok()) {
      found.push_back(node);
    } else {
      diagnosis.nodes[node->name] = std::move(verdict);
    }
  }
  if (!candidates.empty()) next_start_ = (next_start_ + looked) % candidates.size();
  if (found.empty()) TellLeftOut(only, diagnosis);
  return found;
}

const NodeInfo& Scheduler::Best(CycleState& state, const std::vector<const NodeInfo*>& nodes) {
  if (nodes.size() == 1) return *nodes[0];
  const std::vector<int64_t> total = framework_.Score(state, cluster_, nodes);
  // Among equals each has the same chance.
  size_t best = 0;
  uint64_t equals = 1;
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (total[i] > total[best]) {
      best = i;
      equals = 1;
    } else if (total[i] == total[best] && random_.Below(++equals) == 0) {
      best = i;
    }
  }
  return *nodes[best];
}

void Scheduler::Bind(PodPtr pod, const std::string& node) {
  // Assumed: counted on the node from now on.
  cluster_.Place(pod, node);
  assumed_.insert(pod->uid);
  nominations_.Drop(pod->uid);
  framework_.PreBind(pod, *cluster_.FindNode(node), alive_.Guard([this, pod, node](Status ready) {
    if (!ready) return OnBound(pod, node, ready);
    if (assumed_.contains(pod->uid)) CreateBinding(pod, node);  // else it is gone by now
  }));
}

void Scheduler::CreateBinding(const PodPtr& pod, const std::string& node) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", "Binding");
  root.Set("apiVersion", "v1");
  root["metadata"].Set("name", pod->pod.name());
  root["metadata"].Set("namespace", pod->pod.ns());
  root["metadata"].Set("uid", pod->uid);
  root["target"].Set("kind", "Node");
  root["target"].Set("name", node);
  ObjectName name = NameOf(pod->pod);
  client_.Create(client::kPods, std::move(name), std::move(edit).Finish(),
                 {.field_manager = options_.name, .subresource = "binding"},
                 alive_.Guard([this, pod, node](Result<Object> result) {
                   if (result) return OnBound(pod, node, {});
                   Error error = std::move(result).error();
                   error.message = "running Bind plugin \"DefaultBinder\": " + error.message;
                   OnBound(pod, node, std::unexpected(std::move(error)));
                 }));
}

void Scheduler::OnBound(PodPtr pod, const std::string& node, const Status& result) {
  if (result) {
    queue_.Remove(pod->uid);
    events_.Normal(pod->pod, "Scheduled",
                   fmt::format("Successfully assigned {} to {}", pod->key, node));
    return;
  }
  log::Warning(kRoom, "binding failed pod={} node={}: {}", pod->key, node, result.error().message);
  // Unless the API has meanwhile said where the Pod is, it is nowhere.
  if (assumed_.erase(pod->uid) > 0) Happened({.pod_before = cluster_.Unplace(pod->uid)});
  if (!queue_.Has(pod->uid)) return;
  if (result.error().Is("NotFound")) return queue_.Remove(pod->uid);
  events_.Warning(pod->pod, "FailedScheduling", result.error().message);
  queue_.Retry(pod->uid, Now());
  Wake();
}

// ---- when no node fits ----

void Scheduler::Preempt(const CycleState& state, Diagnosis& diagnosis) {
  if (cluster_.nodes().empty()) return;
  const FilterFunction filter = [this](const CycleState& s, const NodeInfo& n) {
    return Filter(s, n);
  };
  const std::vector<Budget> budgets = ReadBudgets(budgets_.List());
  const Preemption found =
      PreemptionSearch{
          cluster_, framework_, diagnosis, filter, budgets, random_, NominatedNode(state.pod->uid)}
          .Find(state);
  diagnosis.post_filter = found.message;
  if (found.node.empty()) {
    if (found.tried) ClearNomination(*state.pod);
    return;
  }
  for (const PodPtr& victim : found.victims)
    if (!victim->deleting) Evict(victim, *state.pod, found.node);
  Nominate(state.pod, found.node);
}

// A victim learns why before it goes.
void Scheduler::Evict(const PodPtr& victim, const PodInfo& preemptor, const std::string& node) {
  api::Editor edit;
  api::AddDisruptionTarget(
      edit, kPreemptedReason,
      fmt::format("{}: preempting to accommodate a higher priority pod", options_.name),
      FormatTime(client_.executor().clock().Now()));
  std::string told = fmt::format("Preempted by pod {} on node {}", preemptor.uid, node);
  PatchStatus(*victim, std::move(edit),
              alive_.Guard([this, victim, told = std::move(told)](Result<Object> patched) mutable {
                if (!patched) return;  // gone, or the next try will see
                client_.Delete(
                    client::kPods, NameOf(victim->pod), {.uid = victim->uid},
                    alive_.Guard([this, victim, told = std::move(told)](Result<Object> gone) {
                      if (gone) events_.Normal(victim->pod, "Preempted", told);
                    }));
              }));
}

void Scheduler::Fail(const PodPtr& pod, const Diagnosis& diagnosis) {
  const std::string message = FitError(diagnosis, cluster_.nodes().size());
  events_.Warning(pod->pod, "FailedScheduling", message);
  SetUnschedulable(*pod, message);
  std::set<const Plugin*> refused_by;
  if (!diagnosis.pre_filter.ok()) refused_by.insert(diagnosis.pre_filter.plugin);
  for (const auto& [node, verdict] : diagnosis.nodes) refused_by.insert(verdict.plugin);
  queue_.Unschedulable(pod->uid, std::move(refused_by), Now());
}

// ---- nominations ----

void Scheduler::Nominate(const PodPtr& pod, const std::string& node) {
  // Lesser ones must look again: the room may no longer be theirs.
  std::vector<PodPtr> lesser;
  for (const auto& [uid, other] : nominations_.On(node))
    if (other->priority < pod->priority) lesser.push_back(other);
  for (const PodPtr& other : lesser) ClearNomination(*other);
  nominations_.Set(pod, node);
}

const NodeInfo* Scheduler::NominatedNode(std::string_view uid) const {
  return cluster_.FindNode(nominations_.NodeOf(uid));
}

void Scheduler::ClearNomination(const PodInfo& pod) {
  if (!nominations_.Drop(pod.uid)) return;
  api::Editor edit;
  edit["status"]["nominatedNodeName"].SetNull();
  PatchStatus(pod, std::move(edit), [](Result<Object>) {});
}

// ---- the Pod's status ----

void Scheduler::SetUnschedulable(const PodInfo& pod, const std::string& message) {
  const std::string nominated = nominations_.NodeOf(pod.uid);
  const bool same = nominated.empty() || NominatedIn(pod.pod) == nominated;
  const api::Value before = api::FindCondition(pod.pod["status"]["conditions"], "PodScheduled");
  if (same && before && before["message"].AsString() == message) return;
  api::Editor edit;
  api::Mut condition = edit.Root()["status"]["conditions"].Append();
  condition.Set("type", "PodScheduled");
  condition.Set("status", "False");
  condition["lastProbeTime"].SetNull();
  condition.Set("lastTransitionTime", FormatTime(client_.executor().clock().Now()));
  condition.Set("reason", "Unschedulable");
  condition.Set("message", message);
  if (!nominated.empty()) edit["status"].Set("nominatedNodeName", nominated);
  PatchStatus(pod, std::move(edit), [](Result<Object>) {});
}

void Scheduler::PatchStatus(const PodInfo& pod, api::Editor edit, client::Callback<Object> done) {
  edit["metadata"].Set("uid", pod.uid);
  client_.Patch(client::kPods, NameOf(pod.pod), client::PatchType::kStrategic,
                std::move(edit).Finish(), {.field_manager = options_.name, .subresource = "status"},
                std::move(done));
}

}  // namespace sextant::scheduler
