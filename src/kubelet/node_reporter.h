// A node's own words about itself: registers the Node, renews its lease, keeps its status right.
//
//   NodeReporter reporter(client, machine, devices, events, options, runtime.Level());
//   reporter.Start([] { ... });   // when the Node is there
//   reporter.Changed();      // devices or the machine changed: the status follows at once
//
// The lease is renewed every 10 s, the status looked at as often: told again when it differs from
// what the API shows, and in any case every five minutes.
//
// Threads: the client's loop. Source: pkg/kubelet/kubelet_node_status.go, nodestatus/setters.go,
// component-helpers/apimachinery/lease.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "api/document.h"
#include "client/client.h"
#include "client/events.h"
#include "host/machine.h"
#include "kubelet/device_manager.h"
#include "kubelet/kubelet.h"

namespace sextant::kubelet {

inline constexpr int kLeaseSeconds = 40;
inline constexpr Duration kLeaseRenewInterval = std::chrono::seconds(10);
inline constexpr Duration kStatusReportInterval = std::chrono::minutes(5);
inline constexpr int kMaxPods = 110;

struct NodeFacts {
  const KubeletOptions& options;
  const host::MachineSpec& machine;
  const std::map<std::string, ResourceAmount, std::less<>>& devices;
  std::string runtime_level;
  std::string boot_id;
};

// The Node as it is first created.
api::Object BuildNode(const NodeFacts& facts, Time now);
// Its status; `previous` is what the API shows (times of unchanged conditions are kept, resources
// that are no longer there are nulls for a strategic merge).
api::Object BuildNodeStatus(const NodeFacts& facts, api::Value previous,
                            const std::set<std::string>& once_told, Time now);
// What a kubelet that finds its Node there already puts right in it (tryRegisterWithAPIServer): the
// labels that are its own to set, and who attaches volumes. A patch of the Node; nothing where all
// is as in `initial`.
api::Object ReconcileNode(const api::Object& initial, const api::Object& existing);
// Whether `shown` says all that `wanted` says, heartbeats apart.
bool StatusHolds(api::Value wanted, api::Value shown);

class NodeReporter {
 public:
  NodeReporter(client::Client& client, host::SimulatedMachine& machine, DeviceManager& devices,
               client::EventRecorder& events, const KubeletOptions& options,
               std::string runtime_level);
  ~NodeReporter();

  void Start(std::function<void()> registered);
  void Changed();
  void OnNode(const client::Change& change);

 private:
  void Register(Duration wait);
  void RegisterAfter(Duration wait);
  void Adopt(Duration wait);
  void Reconcile(const api::Object& existing, const api::Object& patch, Duration wait);
  void Adopted(api::Object node);
  void OnMachine();
  bool KnowsItsMachine() const;
  void Beat();
  void RenewLease();
  void CreateLease();
  void Report(bool heartbeat);
  void OnReported(Result<api::Object> result);
  NodeFacts Facts() const;
  void Tell(client::EventKind kind, std::string_view reason, std::string_view message);

  client::Client& client_;
  host::SimulatedMachine& machine_;
  DeviceManager& devices_;
  client::EventRecorder& events_;
  const KubeletOptions& options_;
  const std::string runtime_level_;
  std::string boot_id_;
  std::function<void()> registered_;  // empty when it has run
  bool is_registered_ = false;
  api::Object node_;  // as the API last showed it
  api::Object lease_;
  bool lease_in_flight_ = false;
  bool report_in_flight_ = false;
  bool report_again_ = false;
  bool report_posted_ = false;
  Time last_report_{};
  std::set<std::string> told_resources_;
  TimerId timer_ = 0;
  std::shared_ptr<void> machine_handle_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::kubelet
