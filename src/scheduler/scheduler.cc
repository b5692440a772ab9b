#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "scheduler/preemption.h"

namespace sextant::scheduler {
namespace {

using api::Object;
using client::ObjectName;

constexpr std::string_view kRoom = "scheduler";
// Below this many nodes all are looked at; above, 50 - nodes/125 percent, at least 5 percent
// (schedule_one.go numFeasibleNodesToFind).
constexpr size_t kMinFeasible = 100;

bool IsTerminal(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Succeeded" || phase == "Failed";
}

size_t FeasibleWanted(size_t nodes) {
  if (nodes < kMinFeasible) return nodes;
  const size_t percent = nodes / 125 >= 45 ? 5 : 50 - nodes / 125;
  return std::max(kMinFeasible, nodes * percent / 100);
}

ObjectName NameOf(const PodInfo& pod) {
  return {std::string(pod.pod.ns()), std::string(pod.pod.name())};
}

// What a node's change must touch to matter to Pods that wait.
bool NodeMatters(const client::Change& change) {
  if (change.added() || change.deleted()) return true;
  const Object& a = change.before;
  const Object& b = change.after;
  return !Equal(a["status"]["allocatable"], b["status"]["allocatable"]) ||
         !Equal(a["metadata"]["labels"], b["metadata"]["labels"]) || !Equal(a["spec"], b["spec"]);
}

}  // namespace

Scheduler::Scheduler(client::Client& client, client::SharedInformers& informers,
                     SchedulerOptions options, EventSink events, uint64_t seed)
    : client_(client),
      pods_(informers.For({.gvr = client::kPods})),
      nodes_informer_(informers.For({.gvr = client::kNodes})),
      options_(std::move(options)),
      events_(std::move(events)),
      random_(seed),
      plugins_(DefaultPlugins()) {}

Scheduler::~Scheduler() {
  *alive_ = false;
  client_.executor().Cancel(timer_);
}

Duration Scheduler::Now() const { return client_.executor().clock().Monotonic(); }

void Scheduler::Start() {
  node_subscription_ =
      nodes_informer_.Subscribe([this](const client::Change& change) { OnNode(change); });
  pod_subscription_ = pods_.Subscribe([this](const client::Change& change) { OnPod(change); });
}

void Scheduler::OnNode(const client::Change& change) {
  const std::string name(change.object().name());
  if (change.deleted()) {
    NodeInfo& node = nodes_[name];
    node.node = Object();
    if (node.pods.empty()) nodes_.erase(name);
  } else {
    nodes_[name].SetNode(change.after);
  }
  if (!NodeMatters(change)) return;
  queue_.OnEvent(ClusterEvent::kNodeChanged, Now());
  Wake();
}

void Scheduler::OnPod(const client::Change& change) {
  const Object& pod = change.object();
  if (change.deleted() || IsTerminal(pod)) {
    return PodGone(pod.uid(), !pod["spec"]["nodeName"].AsString().empty());
  }
  if (!change.added() && change.before.uid() != change.after.uid()) {
    PodGone(change.before.uid(), true);
  }
  if (pod["spec"]["nodeName"].AsString().empty()) {
    PodUnassigned(pod);
  } else {
    PodAssigned(pod);
  }
}

void Scheduler::PodGone(std::string_view uid, bool had_node) {
  queue_.Remove(uid);
  assumed_.erase(std::string(uid));
  const auto placed = placed_.find(std::string(uid));
  if (placed != placed_.end()) {
    nodes_[placed->second].RemovePod(uid);
    placed_.erase(placed);
  }
  if (!had_node) return;
  queue_.OnEvent(ClusterEvent::kPodGone, Now());
  Wake();
}

void Scheduler::PodAssigned(const Object& pod) {
  const std::string uid(pod.uid());
  const std::string node(pod["spec"]["nodeName"].AsString());
  queue_.Remove(uid);
  assumed_.erase(uid);
  const auto placed = placed_.find(uid);
  if (placed != placed_.end() && placed->second != node) nodes_[placed->second].RemovePod(uid);
  nodes_[node].name = node;
  nodes_[node].AddPod(MakePodInfo(pod));
  placed_[uid] = node;
}

void Scheduler::PodUnassigned(const Object& pod) {
  const std::string_view scheduler = pod["spec"]["schedulerName"].AsString("default-scheduler");
  if (scheduler != options_.name) return;
  if (assumed_.contains(std::string(pod.uid()))) return;  // an old word about a Pod being bound
  if (pod["metadata"]["deletionTimestamp"]) return queue_.Remove(pod.uid());
  Enqueue(pod);
}

void Scheduler::Enqueue(const Object& pod) {
  auto info = MakePodInfo(pod);
  bool ready = true;
  for (const auto& plugin : plugins_) ready = ready && plugin->PreEnqueue(*info).ok();
  queue_.Add(std::move(info), ready, Now());
  Wake();
}

void Scheduler::Wake() {
  if (step_posted_) return;
  step_posted_ = true;
  client_.executor().Post([this, alive = alive_] {
    if (!*alive) return;
    step_posted_ = false;
    Step();
  });
}

void Scheduler::Step() {
  if (!pods_.synced() || !nodes_informer_.synced()) {
    pods_.OnSynced([this, alive = alive_] {
      if (*alive) Wake();
    });
    return;
  }
  if (ScheduleOne()) return Wake();
  ArmTimer();
}

void Scheduler::ArmTimer() {
  client_.executor().Cancel(timer_);
  timer_ = 0;
  const auto wake = queue_.NextWake();
  if (!wake) return;
  timer_ = client_.executor().After(std::max(Duration(0), *wake - Now()), [this, alive = alive_] {
    if (*alive) Wake();
  });
}

bool Scheduler::ScheduleOne() {
  std::shared_ptr<const PodInfo> pod = queue_.Pop(Now());
  if (!pod) return false;
  const uint64_t cycle = queue_.Cycle();
  CycleState state;
  state.pod = pod;
  Diagnosis diagnosis;
  const std::vector<const NodeInfo*> feasible = Feasible(state, diagnosis);
  if (feasible.empty()) {
    PostFilter(state, diagnosis);
    Fail(std::move(pod), std::move(diagnosis), cycle);
  } else {
    Bind(std::move(pod), Best(state, feasible).name);
  }
  return true;
}

Verdict Scheduler::RunFilters(const CycleState& state, const NodeInfo& node) const {
  for (const auto& plugin : plugins_) {
    Verdict verdict = plugin->Filter(state, node);
    if (verdict.ok()) continue;
    verdict.plugin = plugin->name();
    return verdict;
  }
  return {};
}

std::vector<const NodeInfo*> Scheduler::Feasible(CycleState& state, Diagnosis& diagnosis) {
  NodeSet left;
  for (const auto& plugin : plugins_) {
    Verdict verdict = plugin->PreFilter(state, nodes_, left);
    if (verdict.ok() || verdict.code == Code::kSkip) continue;
    diagnosis.pre_filter = fmt::format("{}", fmt::join(verdict.reasons, ", "));
    return {};
  }
  std::vector<const NodeInfo*> candidates;
  for (const auto& [name, node] : nodes_) {
    if (!node.node) continue;
    if (left && !left->contains(name)) {
      diagnosis.nodes[name] =
          Verdict::RejectForGood("node(s) didn't satisfy plugin(s) [NodeAffinity]");
      continue;
    }
    candidates.push_back(&node);
  }
  std::vector<const NodeInfo*> found;
  const size_t wanted = FeasibleWanted(candidates.size());
  size_t looked = 0;
  for (; looked < candidates.size() && found.size() < wanted; ++looked) {
    const NodeInfo* node = candidates[(next_start_ + looked) % candidates.size()];
    Verdict verdict = RunFilters(state, *node);
    if (verdict.ok()) {
      found.push_back(node);
    } else {
      diagnosis.nodes[node->name] = std::move(verdict);
    }
  }
  if (!candidates.empty()) next_start_ = (next_start_ + looked) % candidates.size();
  return found;
}

const NodeInfo& Scheduler::Best(const CycleState& state,
                                const std::vector<const NodeInfo*>& nodes) {
  if (nodes.size() == 1) return *nodes[0];
  std::vector<int64_t> total(nodes.size(), 0);
  std::vector<int64_t> scores(nodes.size());
  for (const auto& plugin : plugins_) {
    if (plugin->weight() == 0) continue;
    for (size_t i = 0; i < nodes.size(); ++i) scores[i] = plugin->Score(state, *nodes[i]);
    plugin->Normalize(scores);
    for (size_t i = 0; i < nodes.size(); ++i) total[i] += plugin->weight() * scores[i];
  }
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

void Scheduler::Bind(std::shared_ptr<const PodInfo> pod, const std::string& node) {
  // Assumed: counted on the node from now on.
  nodes_[node].AddPod(pod);
  placed_[pod->uid] = node;
  assumed_[pod->uid] = node;
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", "Binding");
  root.Set("apiVersion", "v1");
  root["metadata"].Set("name", pod->pod.name());
  root["metadata"].Set("namespace", pod->pod.ns());
  root["metadata"].Set("uid", pod->uid);
  root["target"].Set("kind", "Node");
  root["target"].Set("name", node);
  client_.Create(client::kPods, NameOf(*pod), std::move(edit).Finish(),
                 {.field_manager = options_.name, .subresource = "binding"},
                 [this, alive = alive_, pod, node](Result<Object> result) {
                   if (!*alive) return;
                   Status status;
                   if (!result) status = std::unexpected(std::move(result).error());
                   OnBound(pod, node, std::move(status));
                 });
}

void Scheduler::OnBound(std::shared_ptr<const PodInfo> pod, const std::string& node,
                        Status result) {
  if (result) {
    ++bound_;
    queue_.Remove(pod->uid);
    events_(pod->pod, "Normal", "Scheduled", "Binding",
            fmt::format("Successfully assigned {} to {}", pod->key, node));
    return;
  }
  log::Warning(kRoom, "binding failed pod={} node={}: {}", pod->key, node, result.error().message);
  // Unless the API has meanwhile said where the Pod is, it is nowhere.
  if (assumed_.erase(pod->uid) > 0) {
    nodes_[node].RemovePod(pod->uid);
    placed_.erase(pod->uid);
    queue_.OnEvent(ClusterEvent::kPodGone, Now());
  }
  if (!queue_.Has(pod->uid)) return;
  if (result.error().Is("NotFound")) return queue_.Remove(pod->uid);
  events_(pod->pod, "Warning", "FailedScheduling", "Scheduling",
          fmt::format("running Bind plugin \"DefaultBinder\": {}", result.error().message));
  queue_.Retry(std::move(pod), Now());
  Wake();
}

void Scheduler::PostFilter(const CycleState& state, Diagnosis& diagnosis) {
  if (!diagnosis.pre_filter.empty() || nodes_.empty()) return;
  const Preemption found =
      FindPreemption(state, nodes_, diagnosis,
                     [this](const CycleState& s, const NodeInfo& n) { return RunFilters(s, n); });
  if (found.node.empty()) {
    diagnosis.post_filter = found.message;
    return;
  }
  diagnosis.nominated = found.node;
  for (const auto& victim : found.victims) {
    if (victim->pod["metadata"]["deletionTimestamp"]) continue;
    events_(victim->pod, "Normal", "Preempted", "Preempting",
            fmt::format("Preempted by pod {} on node {}", state.pod->uid, found.node));
    client_.Delete(client::kPods, NameOf(*victim), {.uid = victim->uid}, [](Result<Object>) {});
  }
}

void Scheduler::Fail(std::shared_ptr<const PodInfo> pod, Diagnosis diagnosis, uint64_t cycle) {
  const size_t count =
      static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const auto& n) {
        return static_cast<bool>(n.second.node);
      }));
  const std::string message = FitError(diagnosis, count);
  events_(pod->pod, "Warning", "FailedScheduling", "Scheduling", message);
  SetCondition(*pod, "Unschedulable", message, diagnosis.nominated);
  queue_.Unschedulable(std::move(pod), cycle, Now());
}

void Scheduler::SetCondition(const PodInfo& pod, std::string_view reason,
                             const std::string& message, const std::string& nominated) {
  for (api::Value condition : pod.pod["status"]["conditions"].items()) {
    if (condition["type"].AsString() == "PodScheduled" &&
        condition["message"].AsString() == message && nominated.empty()) {
      return;
    }
  }
  api::Editor edit;
  api::Mut condition = edit.Root()["status"]["conditions"].Append();
  condition.Set("type", "PodScheduled");
  condition.Set("status", "False");
  condition["lastProbeTime"].SetNull();
  condition.Set("lastTransitionTime", FormatTime(client_.executor().clock().Now()));
  condition.Set("reason", reason);
  condition.Set("message", message);
  if (!nominated.empty()) edit.Root()["status"].Set("nominatedNodeName", nominated);
  edit.Root()["metadata"].Set("uid", pod.uid);
  client_.Patch(client::kPods, NameOf(pod), client::PatchType::kStrategic, std::move(edit).Finish(),
                {.field_manager = options_.name, .subresource = "status"}, [](Result<Object>) {});
}

}  // namespace sextant::scheduler
