// The scheduler: gives Pods without a node one, or says why it cannot.
//
//   Scheduler scheduler(client, informers, {.name = "default-scheduler"}, events, seed);
//   scheduler.Start();
//
// It keeps its own picture of nodes and Pods from two informers, tries one Pod a step, assumes the
// result at once and binds through the API; what the API says later confirms or undoes it.
// Everything on client.executor(); knows the cluster only as client::Client.
// Source of behaviour: k8s.io/kubernetes pkg/scheduler (schedule_one.go) at v1.36.3.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "client/informer.h"
#include "scheduler/diagnosis.h"
#include "scheduler/framework.h"
#include "scheduler/queue.h"

namespace sextant::scheduler {

// Told of every decision; the lab makes events of them. `action` as in events.k8s.io: "Binding",
// "Scheduling", "Preempting".
using EventSink =
    std::function<void(const api::Object& about, std::string_view type, std::string_view reason,
                       std::string_view action, std::string note)>;

struct SchedulerOptions {
  std::string name = "default-scheduler";  // Pods with another spec.schedulerName are not ours
};

class Scheduler {
 public:
  Scheduler(client::Client& client, client::SharedInformers& informers, SchedulerOptions options,
            EventSink events, uint64_t seed);
  ~Scheduler();
  // From here on until destroyed.
  void Start();

  // For tests and metrics.
  uint64_t bound() const { return bound_; }
  const SchedulingQueue& queue() const { return queue_; }

 private:
  struct Cycle;
  void OnPod(const client::Change& change);
  void OnNode(const client::Change& change);
  void PodAssigned(const api::Object& pod);
  void PodUnassigned(const api::Object& pod);
  void PodGone(std::string_view uid, bool had_node);
  void Enqueue(const api::Object& pod);

  void Wake();      // makes sure that a step is posted
  void ArmTimer();  // for the next back-off
  void Step();      // tries one Pod
  bool ScheduleOne();
  Verdict RunFilters(const CycleState& state, const NodeInfo& node) const;
  std::vector<const NodeInfo*> Feasible(CycleState& state, Diagnosis& diagnosis);
  const NodeInfo& Best(const CycleState& state, const std::vector<const NodeInfo*>& nodes);
  void Bind(std::shared_ptr<const PodInfo> pod, const std::string& node);
  void OnBound(std::shared_ptr<const PodInfo> pod, const std::string& node, Status result);
  void Fail(std::shared_ptr<const PodInfo> pod, Diagnosis diagnosis, uint64_t cycle);
  void PostFilter(const CycleState& state, Diagnosis& diagnosis);
  void SetCondition(const PodInfo& pod, std::string_view reason, const std::string& message,
                    const std::string& nominated);
  Duration Now() const;

  client::Client& client_;
  client::Informer& pods_;
  client::Informer& nodes_informer_;
  const SchedulerOptions options_;
  const EventSink events_;
  Random random_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  NodeMap nodes_;
  // Where each Pod that has a node (assumed or told) is counted: uid to node name.
  std::unordered_map<std::string, std::string> placed_;
  std::unordered_map<std::string, std::string> assumed_;  // bound by us, not yet told by the API
  SchedulingQueue queue_;
  size_t next_start_ = 0;  // where the next search of nodes begins
  bool step_posted_ = false;
  TimerId timer_ = 0;
  uint64_t bound_ = 0;
  std::unique_ptr<client::Subscription> pod_subscription_;
  std::unique_ptr<client::Subscription> node_subscription_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::scheduler
