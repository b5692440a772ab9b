// The scheduler: gives Pods without a node one, or says why it cannot.
//
//   Scheduler scheduler(client, informers, {.name = "default-scheduler"}, seed);
//   scheduler.Start();
//
// It keeps its own picture of nodes and Pods from informers, tries one Pod a step, assumes the
// result at once and binds through the API; what the API says later confirms or undoes it.
// Everything on client.executor(); knows the cluster only as client::Client.
// Source of behaviour: k8s.io/kubernetes pkg/scheduler (schedule_one.go) at v1.36.3.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/alive.h"
#include "base/random.h"
#include "client/events.h"
#include "client/informer.h"
#include "scheduler/cluster_state.h"
#include "scheduler/diagnosis.h"
#include "scheduler/framework.h"
#include "scheduler/nominations.h"
#include "scheduler/preemption.h"
#include "scheduler/queue.h"

namespace sextant::scheduler {

struct SchedulerOptions {
  std::string name = "default-scheduler";  // Pods with another spec.schedulerName are not ours
};

class Scheduler {
 public:
  // The seed decides between nodes of equal score.
  Scheduler(client::Client& client, client::SharedInformers& informers, SchedulerOptions options,
            uint64_t seed);
  ~Scheduler();
  // From here on until destroyed.
  void Start();

 private:
  using PodPtr = std::shared_ptr<const PodInfo>;

  void OnPod(const client::Change& change);
  void OnNode(const client::Change& change);
  void PodAssigned(const api::Object& pod);
  void PodUnassigned(const client::Change& change);
  void PodGone(std::string_view uid);
  void NominationChanged(const client::Change& change, const PodPtr& pod);
  void RoomIsFree(PodPtr pod);
  void Happened(const ClusterEvent& event);

  void Wake();      // makes sure that a step is posted
  void ArmTimer();  // for the next back-off
  void Step();      // tries one Pod
  bool ScheduleOne();
  // Filters, also with the Pods in thought that freed the node for themselves.
  Verdict Filter(const CycleState& state, const NodeInfo& node) const;
  std::vector<const NodeInfo*> Feasible(CycleState& state, Diagnosis& diagnosis);
  std::vector<const NodeInfo*> Candidates(const Framework::Left& left) const;
  void TellLeftOut(const Framework::Left& left, Diagnosis& diagnosis) const;
  const NodeInfo& Best(CycleState& state, const std::vector<const NodeInfo*>& nodes);
  void Bind(PodPtr pod, const std::string& node);
  void CreateBinding(const PodPtr& pod, const std::string& node);
  void OnBound(PodPtr pod, const std::string& node, const Status& result);
  void Fail(const PodPtr& pod, const Diagnosis& diagnosis);
  void Preempt(const CycleState& state, Diagnosis& diagnosis);
  void Evict(const PodPtr& victim, const PodInfo& preemptor, const std::string& node);

  // Nominations: nodes that preemption frees for Pods.
  void Nominate(const PodPtr& pod, const std::string& node);
  const NodeInfo* NominatedNode(std::string_view uid) const;
  void ClearNomination(const PodInfo& pod);

  void SetUnschedulable(const PodInfo& pod, const std::string& message);
  void PatchStatus(const PodInfo& pod, api::Editor edit, client::Callback<api::Object> done);
  Duration Now() const;

  client::Client& client_;
  client::Informer& pods_;
  client::Informer& nodes_;
  client::Informer& budgets_;
  std::vector<client::Informer*> used_;  // none may be behind when a Pod is tried
  const std::vector<client::Informer*> storage_;
  const SchedulerOptions options_;
  client::EventRecorder events_;
  Random random_;
  const Framework framework_;
  ClusterState cluster_;
  std::set<std::string, std::less<>> assumed_;  // uids: bound by us, not yet told by the API
  Nominations nominations_;
  SchedulingQueue queue_;
  size_t next_start_ = 0;  // where the next search of nodes begins
  bool step_posted_ = false;
  TimerId timer_ = 0;
  std::unique_ptr<client::Subscription> pod_subscription_;
  std::unique_ptr<client::Subscription> node_subscription_;
  std::vector<std::unique_ptr<client::Subscription>> storage_subscriptions_;
  Alive alive_;
};

}  // namespace sextant::scheduler
