#include "kubelet/pod_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "kubelet/pod_status.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

// Waits between attempts to mount: nestedpendingoperations' exponential back-off.
constexpr Duration kFirstMountWait = std::chrono::milliseconds(500);
constexpr Duration kMaxMountWait = std::chrono::seconds(122);
// How a kubelet waits for volumes before it tells anybody (pkg/kubelet/volumemanager).
constexpr Duration kVolumePoll = std::chrono::milliseconds(300);
constexpr Duration kVolumeTimeout = std::chrono::seconds(123);
constexpr int kMaxMountDoublings = 8;
constexpr size_t kMaxHostname = 63;

}  // namespace

PodWorker::PodWorker(WorkerParts parts, Object pod, std::function<void()> gone)
    : parts_(std::move(parts)),
      gone_(std::move(gone)),
      writer_(parts_.client, pod),
      volumes_({parts_.client, parts_.files,
                fmt::format("{}/pods/{}", parts_.options.state_directory, pod.uid()),
                parts_.options.state_directory + "/disk", parts_.options.materialise,
                parts_.runtime.FileOwner()},
               pod) {
  const Time now = parts_.client.executor().clock().Now();
  record_.pod = pod;
  record_.containers = InitialContainers(pod, now);
  record_.host_ip = parts_.options.internal_ip;
  if (const Value started = pod["status"]["startTime"]) {
    if (auto time = ParseTime(started.AsString())) record_.start_time = *time;
    restored_ = true;
  }
}

PodWorker::~PodWorker() {
  alive_.End();
  Loop& loop = parts_.client.executor();
  for (const TimerId timer : {timer_, deadline_, refresh_}) loop.Cancel(timer);
  for (const auto& [name, instance] : instances_) {
    loop.Cancel(instance.timer);
    loop.Cancel(instance.stop_timer);
  }
  if (!record_.pod_ip.empty()) parts_.give_ip(record_.pod_ip);
}

std::string PodWorker::PodDirectory() const {
  return fmt::format("{}/pods/{}", parts_.options.state_directory, record_.pod.uid());
}

std::string PodWorker::LogPath(const std::string& container, int restart_count) const {
  return fmt::format("{}/logs/{}/{}.log", PodDirectory(), container, restart_count);
}

void PodWorker::PodEvent(client::EventKind kind, std::string_view reason,
                         std::string_view message) {
  parts_.events.Tell(client::ReferenceTo(record_.pod), kind, reason, message);
}

void PodWorker::ContainerEventTold(const ContainerState& container, client::EventKind kind,
                                   std::string_view reason, std::string_view message) {
  parts_.events.Tell(
      client::ReferenceTo(
          record_.pod, fmt::format("spec.{}{{{}}}", ListOf(container.kind).spec, container.name)),
      kind, reason, message);
}

EnvFacts PodWorker::Facts(Value container, const Object& node) const {
  return {record_.pod,
          container,
          record_.pod_ip,
          record_.host_ip,
          ApiServerEnv(parts_.options.service_host, parts_.options.service_port),
          node.root()};
}

bool PodWorker::AlreadyEnded() const {
  if (IsTerminalPhase(record_.pod["status"]["phase"].AsString())) return true;
  return static_cast<bool>(record_.pod["metadata"]["deletionTimestamp"]);
}

void PodWorker::Begin() {
  CHECK(stage_ == Stage::kWaiting);
  admitted_ = true;
  stage_ = Stage::kPreparing;
  if (!record_.start_time) record_.start_time = parts_.client.executor().clock().Now();
  record_.devices = parts_.devices.Held(std::string(record_.pod.uid()));
  bool anything = false;
  for (const ContainerState& container : record_.containers) {
    if (container.kind != ContainerKind::kRegular) continue;
    anything = anything || !container.done() || WillRestart(record_, container);
  }
  if (!anything) return Stop(Duration{0});  // it ended while nobody looked
  if (restored_) {
    PodEvent(client::EventKind::kNormal, "SandboxChanged",
             "Pod sandbox changed, it will be killed and re-created.");
  }
  Tell();
  ArmDeadline();
  PrepareVolumes();
}

void PodWorker::Reject(const Refusal& refusal) {
  PodEvent(client::EventKind::kWarning, refusal.reason, refusal.message);
  record_.rejected = true;
  record_.failed_reason = refusal.reason;
  record_.failed_message = "Pod was rejected: " + refusal.message;
  stage_ = Stage::kOver;
  writer_.Set(BuildPodStatus(record_, writer_.last(), parts_.client.executor().clock().Now()));
  MaybeDelete();
}

void PodWorker::EndAtOnce() {
  if (IsTerminalPhase(record_.pod["status"]["phase"].AsString())) {
    stage_ = Stage::kOver;
    parts_.devices.Release(std::string(record_.pod.uid()));
    return MaybeDelete();
  }
  Stop(Duration{0});
}

void PodWorker::ArmDeadline() {
  const Value seconds = record_.pod["spec"]["activeDeadlineSeconds"];
  Loop& loop = parts_.client.executor();
  loop.Cancel(deadline_);
  deadline_ = 0;
  if (!seconds.IsInt() || !record_.start_time) return;
  const Duration left =
      *record_.start_time + std::chrono::seconds(seconds.AsInt()) - loop.clock().Now();
  deadline_ = loop.After(
      std::max(left, Duration{0}), Guard([this] {
        if (stage_ == Stage::kStopping || stage_ == Stage::kOver) return;
        record_.failed_reason = "DeadlineExceeded";
        record_.failed_message = "Pod was active on the node longer than the specified deadline";
        PodEvent(client::EventKind::kNormal, record_.failed_reason, record_.failed_message);
        Stop(std::chrono::seconds(record_.pod["spec"]["terminationGracePeriodSeconds"].AsInt(30)));
      }));
}

void PodWorker::PrepareVolumes() {
  if (stage_ != Stage::kPreparing) return;
  if (record_.pod_ip.empty()) {
    const bool host_network = record_.pod["spec"]["hostNetwork"].AsBool();
    record_.pod_ip = host_network ? record_.host_ip : parts_.take_ip();
  }
  const Object node = parts_.node();
  volumes_.Prepare(Facts(record_.pod["spec"]["containers"].at(0), node),
                   Guard([this](Status ready) {
                     if (stage_ != Stage::kPreparing) return;
                     if (!ready) return FailedMount(ready.error());
                     CreateSandbox();
                   }));
}

void PodWorker::FailedMount(const Error& error) {
  if (error.Is(kVolumeWaits)) {
    const Duration now = parts_.client.executor().clock().Monotonic();
    if (!volumes_due_) volumes_due_ = now + kVolumeTimeout;
    if (now < *volumes_due_) {
      timer_ = parts_.client.executor().After(kVolumePoll, Guard([this] { PrepareVolumes(); }));
      return;
    }
    volumes_due_.reset();
  }
  PodEvent(client::EventKind::kWarning, "FailedMount", error.message);
  const int doublings = std::min(mount_failures_++, kMaxMountDoublings);
  const Duration wait = std::min(kFirstMountWait * (1 << doublings), kMaxMountWait);
  timer_ = parts_.client.executor().After(wait, Guard([this] { PrepareVolumes(); }));
}

void PodWorker::CreateSandbox() {
  const Value spec = record_.pod["spec"];
  PodSandboxSpec sandbox;
  sandbox.uid = record_.pod.uid();
  sandbox.ns = record_.pod.ns();
  sandbox.name = record_.pod.name();
  sandbox.host_network = spec["hostNetwork"].AsBool();
  sandbox.hostname = spec["hostname"].AsString(record_.pod.name());
  if (sandbox.host_network) sandbox.hostname = parts_.options.node;
  sandbox.hostname = sandbox.hostname.substr(0, kMaxHostname);
  sandbox.ips = {record_.pod_ip};
  sandbox.log_directory = PodDirectory() + "/logs";
  for (Value alias : spec["hostAliases"].items()) {
    std::string line(alias["ip"].AsString());
    for (Value name : alias["hostnames"].items()) line += fmt::format("\t{}", name.AsString());
    sandbox.host_aliases.push_back(std::move(line));
  }
  parts_.runtime.CreateSandbox(
      std::move(sandbox), Guard([this](Status made) {
        if (stage_ != Stage::kPreparing) return;
        if (!made) {
          PodEvent(client::EventKind::kWarning, "FailedCreatePodSandBox",
                   "Failed to create pod sandbox: " + made.error().message);
          timer_ = parts_.client.executor().After(kSyncRetry, Guard([this] {
                                                    if (stage_ == Stage::kPreparing)
                                                      CreateSandbox();
                                                  }));
          return;
        }
        record_.sandbox_ready = true;
        stage_ = Stage::kRunning;
        RefreshVolumesLater();
        Tell();
        Sync();
      }));
}

void PodWorker::RefreshVolumesLater() {
  if (!parts_.options.materialise || !volumes_.Refreshable()) return;
  refresh_ = parts_.client.executor().After(
      kVolumeRefresh, Guard([this] {
        if (stage_ != Stage::kRunning) return;
        const Object node = parts_.node();
        volumes_.Prepare(Facts(record_.pod["spec"]["containers"].at(0), node),
                         Guard([this](Status) { RefreshVolumesLater(); }));
      }));
}

// The sidecars and init containers in their order. True once the others may run.
bool PodWorker::SyncInit() {
  for (ContainerState& container : record_.containers) {
    if (!IsInit(container.kind)) break;
    if (container.kind == ContainerKind::kSidecar) {
      if (!container.running()) Ensure(container);
      if (!initialised_ && !container.started) return false;
      continue;
    }
    if (initialised_ || (container.done() && container.terminated->exit_code == 0)) continue;
    if (container.done() && !WillRestart(record_, container)) {
      Stop(DeletionGrace());
      return false;
    }
    Ensure(container);
    return false;
  }
  initialised_ = true;
  return true;
}

void PodWorker::Sync() {
  if (stage_ != Stage::kRunning) return;
  Tell();
  // Before all others: they are to be there also where init containers hang.
  for (ContainerState& container : record_.containers)
    if (container.kind == ContainerKind::kEphemeral) Ensure(container);
  if (!SyncInit() || stage_ != Stage::kRunning) return;
  bool all_over = true;
  for (ContainerState& container : record_.containers) {
    if (container.kind != ContainerKind::kRegular) continue;
    const Instance& instance = instances_[container.name];
    if (!instance.active() && container.done() && !WillRestart(record_, container)) continue;
    all_over = false;
    if (!instance.active()) Ensure(container);
  }
  if (all_over) Stop(DeletionGrace());
}

void PodWorker::SyncSoon() {
  if (std::exchange(sync_posted_, true)) return;
  parts_.client.executor().Post(Guard([this] {
    sync_posted_ = false;
    Sync();
  }));
}

// Starts a container that does not run, unless its time has not come.
void PodWorker::Ensure(ContainerState& container) {
  Instance& instance = instances_[container.name];
  if (instance.active() || instance.timer != 0) return;
  if (container.done() && !WillRestart(record_, container)) return;
  if (BackOff(container)) return;
  StartContainer(container);
}

void PodWorker::Tell() {
  if (std::exchange(tell_posted_, true)) return;
  parts_.client.executor().Post(Guard([this] {
    tell_posted_ = false;
    if (vanished_ || record_.rejected) return;
    writer_.Set(BuildPodStatus(record_, writer_.last(), parts_.client.executor().clock().Now()));
    MaybeDelete();
  }));
}

void PodWorker::Update(Object pod) {
  const bool was_deleted = static_cast<bool>(record_.pod["metadata"]["deletionTimestamp"]);
  record_.pod = std::move(pod);
  const bool deleted = static_cast<bool>(record_.pod["metadata"]["deletionTimestamp"]);
  if (stage_ == Stage::kOver) return MaybeDelete();
  if (deleted && !was_deleted) return Stop(DeletionGrace());
  if (stage_ == Stage::kStopping && deleted) return Stop(DeletionGrace());
  if (!admitted_) return;
  if (AddEphemeralContainers(record_, parts_.client.executor().clock().Now())) SyncSoon();
  ArmDeadline();
  Tell();
}

void PodWorker::Vanished() {
  vanished_ = true;
  writer_.Close();
  if (stage_ == Stage::kOver) return CleanUp();
  Stop(kLeastGrace);
}

void PodWorker::DevicesChanged() {
  if (!active()) return;
  record_.devices = parts_.devices.Held(std::string(record_.pod.uid()));
  if (!record_.devices.empty()) Tell();
}

void PodWorker::PowerOff() {
  writer_.Close();
  for (auto& [name, instance] : instances_) instance.component.reset();
  parts_.runtime.RemoveSandbox(std::string(record_.pod.uid()), [](Status) {});
}

}  // namespace sextant::kubelet
