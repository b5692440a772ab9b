#include "kubelet/node_reporter.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/conditions.h"
#include "base/log.h"
#include "kubelet/admission.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

// registerWithAPIServer's waits.
constexpr Duration kFirstWait = std::chrono::milliseconds(100);
constexpr Duration kLongestWait = std::chrono::seconds(7);
constexpr char kLeaseNamespace[] = "kube-node-lease";

std::string_view ReadyStatus(const Object& node) {
  return api::FindCondition(node["status"]["conditions"], "Ready")["status"].AsString();
}

}  // namespace

NodeReporter::NodeReporter(client::Client& client, host::SimulatedMachine& machine,
                           DeviceManager& devices, client::EventRecorder& events,
                           const KubeletOptions& options, std::string runtime_level)
    : client_(client),
      machine_(machine),
      devices_(devices),
      events_(events),
      options_(options),
      runtime_level_(std::move(runtime_level)) {}

NodeReporter::~NodeReporter() {
  *alive_ = false;
  client_.executor().Cancel(timer_);
}

NodeFacts NodeReporter::Facts() const {
  return {options_, machine_.spec(), devices_.Resources(), runtime_level_, boot_id_};
}

void NodeReporter::Tell(client::EventKind kind, std::string_view reason, std::string_view message) {
  // The kubelet refers to its node by name, also where a uid should stand (nodeRef).
  events_.Tell({"v1", "Node", "", options_.node, options_.node, "", ""}, kind, reason, message);
}

void NodeReporter::Start(std::function<void()> registered) {
  registered_ = std::move(registered);
  const auto now = client_.executor().clock().Now().time_since_epoch().count();
  boot_id_ = fmt::format("{}-{:x}", options_.node, now);
  machine_handle_ = machine_.OnChange([this] { OnMachine(); });
  Tell(client::EventKind::kNormal, "Starting", "Starting kubelet.");
  Register(kFirstWait);
}

void NodeReporter::Register(Duration wait) {
  const Object node = BuildNode(Facts(), client_.executor().clock().Now());
  client_.Create(client::kNodes, {"", options_.node}, node, {.field_manager = "kubelet"},
                 [this, alive = alive_, wait](Result<Object> created) {
                   if (!*alive) return;
                   if (created || created.error().Is("AlreadyExists")) return Adopt(wait);
                   log::Warning("kubelet", "cannot register node {}: {}", options_.node,
                                created.error().message);
                   RegisterAfter(wait);
                 });
}

void NodeReporter::RegisterAfter(Duration wait) {
  timer_ =
      client_.executor().After(wait, [this, wait] { Register(std::min(wait * 2, kLongestWait)); });
}

// The Node is there: made just now, or found.
void NodeReporter::Adopt(Duration wait) {
  client_.Get(client::kNodes, {"", options_.node},
              [this, alive = alive_, wait](Result<Object> node) {
                if (!*alive) return;
                if (!node) return RegisterAfter(wait);
                const Object initial = BuildNode(Facts(), client_.executor().clock().Now());
                const Object patch = ReconcileNode(initial, *node);
                patch ? Reconcile(*node, patch, wait) : Adopted(*std::move(node));
              });
}

// Somebody else has made the Node, or changed what its kubelet has to say.
void NodeReporter::Reconcile(const Object& existing, const Object& patch, Duration wait) {
  api::Editor edit(patch);
  edit.Root()["metadata"].Set("uid", existing.uid());
  client_.Patch(client::kNodes, {"", options_.node}, client::PatchType::kStrategic,
                std::move(edit).Finish(), {.field_manager = "kubelet", .subresource = "status"},
                [this, alive = alive_, wait](Result<Object> node) {
                  if (!*alive) return;
                  if (node) return Adopted(*std::move(node));
                  log::Warning("kubelet", "cannot reconcile node {}: {}", options_.node,
                               node.error().message);
                  RegisterAfter(wait);
                });
}

// From now on its status and lease are kept.
void NodeReporter::Adopted(Object node) {
  const std::string_view old_boot = node["status"]["nodeInfo"]["bootID"].AsString();
  if (!old_boot.empty() && old_boot != boot_id_) {
    Tell(client::EventKind::kWarning, "Rebooted",
         fmt::format("Node {} has been rebooted, boot id: {}", options_.node, boot_id_));
  }
  node_ = std::move(node);
  is_registered_ = true;
  Report(true);
  Beat();
  if (KnowsItsMachine()) std::exchange(registered_, nullptr)();
}

void NodeReporter::OnMachine() {
  Changed();
  if (is_registered_ && registered_ && KnowsItsMachine()) std::exchange(registered_, nullptr)();
}

// A node that comes back had offered what neither its plugins nor its machine, as far as that has
// been told, have: Pods wait until it has been.
bool NodeReporter::KnowsItsMachine() const {
  if (machine_.told()) return true;
  for (auto [name, amount] : node_["status"]["capacity"].members())
    if (IsExtended(name) && amount.AsString() != "0" && !devices_.Resources().contains(name))
      return false;
  return true;
}

void NodeReporter::OnNode(const client::Change& change) {
  if (!is_registered_) return;
  if (change.deleted()) {  // somebody has deleted the Node: only a new start brings it back
    node_ = {};
    return;
  }
  node_ = change.after;
}

void NodeReporter::Beat() {
  timer_ = client_.executor().After(kLeaseRenewInterval, [this] { Beat(); });
  RenewLease();
  const bool due = client_.executor().clock().Now() - last_report_ >= kStatusReportInterval;
  Report(due);
}

void NodeReporter::Changed() {
  if (!is_registered_ || report_posted_) return;
  report_posted_ = true;
  client_.executor().Post([this, alive = alive_] {
    if (!*alive) return;
    report_posted_ = false;
    Report(false);
  });
}

void NodeReporter::RenewLease() {
  if (lease_in_flight_ || !node_) return;
  if (!lease_) return CreateLease();
  lease_in_flight_ = true;
  api::Editor edit(lease_);
  edit.Root()["spec"].Set("renewTime", FormatMicroTime(client_.executor().clock().Now()));
  client_.Update(client::kLeases, {kLeaseNamespace, options_.node}, std::move(edit).Finish(),
                 {.field_manager = "kubelet"}, [this, alive = alive_](Result<Object> renewed) {
                   if (!*alive) return;
                   lease_in_flight_ = false;
                   lease_ = renewed ? *std::move(renewed) : Object();  // else looked up again
                 });
}

void NodeReporter::CreateLease() {
  lease_in_flight_ = true;
  const auto took = [this, alive = alive_](Result<Object> lease) {
    if (!*alive) return;
    lease_in_flight_ = false;
    if (lease) lease_ = *std::move(lease);
  };
  api::Editor edit;
  const api::Mut root = edit.Root();
  root.Set("kind", "Lease");
  root.Set("apiVersion", "coordination.k8s.io/v1");
  root["metadata"].Set("name", options_.node);
  root["metadata"].Set("namespace", kLeaseNamespace);
  const api::Mut owner = root["metadata"]["ownerReferences"].Append();
  owner.Set("apiVersion", "v1");
  owner.Set("kind", "Node");
  owner.Set("name", options_.node);
  owner.Set("uid", node_.uid());
  root["spec"].Set("holderIdentity", options_.node);
  root["spec"].Set("leaseDurationSeconds", kLeaseSeconds);
  root["spec"].Set("renewTime", FormatMicroTime(client_.executor().clock().Now()));
  client_.Create(client::kLeases, {kLeaseNamespace, options_.node}, std::move(edit).Finish(),
                 {.field_manager = "kubelet"},
                 [this, alive = alive_, took](Result<Object> created) {
                   if (!*alive) return;
                   if (created || !created.error().Is("AlreadyExists"))
                     return took(std::move(created));
                   client_.Get(client::kLeases, {kLeaseNamespace, options_.node},
                               [this, alive, took](Result<Object> lease) {
                                 took(std::move(lease));
                                 if (*alive && lease_) RenewLease();
                               });
                 });
}

void NodeReporter::Report(bool heartbeat) {
  if (!is_registered_ || !node_) return;
  if (report_in_flight_) {
    report_again_ = true;
    return;
  }
  const Time now = client_.executor().clock().Now();
  const Object status = BuildNodeStatus(Facts(), node_["status"], told_resources_, now);
  if (!heartbeat && StatusHolds(status.root(), node_["status"])) return;
  for (auto [name, amount] : status["capacity"].members())
    if (!amount.IsNull()) told_resources_.emplace(name);
  if (ReadyStatus(node_) == "Unknown" || ReadyStatus(node_) == "False") {
    Tell(client::EventKind::kNormal, "NodeReady",
         fmt::format("Node {} status is now: NodeReady", options_.node));
  }
  report_in_flight_ = true;
  api::Editor edit;
  edit.Root()["status"].Set(status);
  client_.Patch(client::kNodes, {"", options_.node}, client::PatchType::kStrategic,
                std::move(edit).Finish(), {.field_manager = "kubelet", .subresource = "status"},
                [this, alive = alive_](Result<Object> result) {
                  if (*alive) OnReported(std::move(result));
                });
}

void NodeReporter::OnReported(Result<Object> result) {
  report_in_flight_ = false;
  if (result) {
    node_ = *std::move(result);
    last_report_ = client_.executor().clock().Now();
  } else {
    log::Warning("kubelet", "node status of {}: {}", options_.node, result.error().message);
  }
  if (std::exchange(report_again_, false)) Report(false);
}

}  // namespace sextant::kubelet
