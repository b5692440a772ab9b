// The life of one Pod on its node, from admission to its end.
//
//   PodWorker worker(parts, pod, [&] { Forget(uid); });
//   worker.Begin();              // admitted: makes volumes and sandbox, starts containers
//   worker.Reject(refusal);      // or not
//   worker.Update(pod);          // the API shows it changed; a deletion ends it gracefully
//   worker.Vanished();           // the API has it no more
//
// Stages: admitted → preparing → running → stopping → over. Every step is idempotent: Sync looks at
// the containers and does what is due. One status is told per turn of the loop.
//
// Threads: the loop. `gone` runs once, when the Pod is over here and gone from the API.
// Source: pkg/kubelet/pod_workers.go, kuberuntime/kuberuntime_manager.go (computePodActions).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/alive.h"
#include "client/events.h"
#include "kubelet/admission.h"
#include "kubelet/device_manager.h"
#include "kubelet/kubelet.h"
#include "kubelet/pod_model.h"
#include "kubelet/probes.h"
#include "kubelet/status_writer.h"
#include "kubelet/volumes.h"

namespace sextant::kubelet {

struct WorkerParts {
  client::Client& client;
  Runtime& runtime;
  Executor& files;
  Components& components;
  plugin::Registrar& registrar;
  client::EventRecorder& events;
  DeviceManager& devices;
  const KubeletOptions& options;
  std::function<api::Object()> node;
  std::function<std::string()> take_ip;
  std::function<void(const std::string&)> give_ip;
};

// pkg/kubelet: backOffPeriod, MaxContainerBackOff, minimumGracePeriodInSeconds.
inline constexpr Duration kSyncRetry = std::chrono::seconds(10);
inline constexpr Duration kFirstBackOff = std::chrono::seconds(10);
inline constexpr Duration kMaxBackOff = std::chrono::minutes(5);
inline constexpr Duration kLeastGrace = std::chrono::seconds(2);
inline constexpr Duration kEvictionGrace = std::chrono::seconds(1);  // immediateEvictionGracePeriod
inline constexpr Duration kVolumeRefresh = std::chrono::minutes(1);

class PodWorker {
 public:
  PodWorker(WorkerParts parts, api::Object pod, std::function<void()> gone);
  ~PodWorker();
  PodWorker(const PodWorker&) = delete;
  PodWorker& operator=(const PodWorker&) = delete;

  // True while it counts on the node: taken, and not over.
  bool active() const { return admitted_ && stage_ != Stage::kOver; }
  bool stopping() const { return stage_ == Stage::kStopping || stage_ == Stage::kOver; }
  // Nothing is to run (any more): it needs no admission.
  bool AlreadyEnded() const;

  void Begin();
  void Reject(const Refusal& refusal);
  void EndAtOnce();  // it had ended before this kubelet started, or is deleted before it began
  void Update(api::Object pod);
  void Vanished();
  void DevicesChanged();
  // The node has no room for it: ends the Pod at once, as Failed. `message` is the eviction's own.
  void Evict(std::string message);
  // The machine is switched off: everything stops, nothing is told.
  void PowerOff();

  const PodRecord& record() const { return record_; }
  std::string PodDirectory() const;
  std::string LogPath(const std::string& container, int restart_count) const;

 private:
  enum class Stage { kWaiting, kPreparing, kRunning, kStopping, kOver };
  // What one container is doing, beyond what its status says.
  struct Instance {
    bool starting = false;  // from the decision to start until it has started or ended
    bool launched = false;  // the runtime has been asked to start it
    bool stopping = false;
    bool simulated = false;
    TimerId timer = 0;  // of the next attempt
    Duration backoff{0};
    Time backoff_since{};
    std::optional<Time> ended_at;  // what the back-off counts from
    std::shared_ptr<void> component;
    std::unique_ptr<Prober> prober;
    TimerId stop_timer = 0;
    std::shared_ptr<Session> hook;
    std::string message_path;
    std::string log_path;
    bool active() const { return starting || launched; }
  };
  struct Start;  // one container's way to its start: pod_start.cc

  template <typename F>
  auto Guard(F f) {
    return alive_.Guard(std::move(f));
  }

  // pod_worker.cc
  void PrepareVolumes();
  void CreateSandbox();
  void RefreshVolumesLater();
  void Sync();
  void SyncSoon();
  bool SyncInit();
  void Ensure(ContainerState& container);
  void Tell();
  void ArmDeadline();
  void FailedMount(const Error& error);
  // Views into `node`, which outlives the facts.
  EnvFacts Facts(api::Value container, const api::Object& node) const;
  void PodEvent(client::EventKind kind, std::string_view reason, std::string_view message);
  void ContainerEventTold(const ContainerState& container, client::EventKind kind,
                          std::string_view reason, std::string_view message);

  // pod_start.cc
  bool BackOff(ContainerState& container);
  void StartContainer(ContainerState& container);
  void OnSources(const std::shared_ptr<Start>& start, const Sources& sources);
  Status Compose(Start& start, const Sources& sources);
  bool StartComponent(const std::shared_ptr<Start>& start);
  void Launch(const std::shared_ptr<Start>& start);
  void ConfigError(ContainerState& container, const std::string& message);
  void OnRuntimeEvent(const std::string& name, const ContainerEvent& event);
  void OnStarted(ContainerState& container, const ContainerEvent& event);
  void OnExited(const std::string& name, const ContainerEvent& event);
  void OnMessage(const std::string& name, const ContainerEvent& event, std::string message);
  void Exited(ContainerState& container, const ContainerEvent& event, std::string message);
  void BeginProbes(ContainerState& container);
  void OnProbe(const std::string& name, std::function<void(ContainerState&)> change);
  void AppendLog(const std::string& path, std::string line);

  // pod_stop.cc
  void Kill(ContainerState& container, const std::string& message, Duration grace);
  void StopNow(const std::string& name, Duration grace);
  void RunHook(const std::string& name, api::Value hook, Duration timeout,
               std::function<void(bool ok)> done);
  void PostStart(ContainerState& container);
  void Stop(Duration grace);
  void AdvanceStop();
  void RemoveSandbox();
  void Stopped();
  void MarkUnstarted();
  void MaybeDelete();
  void CleanUp();
  void RemoveFiles(const std::string& below);  // of the Pod's directory
  Duration DeletionGrace() const;

  WorkerParts parts_;
  const std::function<void()> gone_;
  PodRecord record_;
  StatusWriter writer_;
  VolumeSet volumes_;
  Stage stage_ = Stage::kWaiting;
  bool admitted_ = false;
  bool initialised_ = false;  // all init containers have passed in this sandbox
  bool vanished_ = false;
  bool restored_ = false;  // it ran in an earlier life of this kubelet
  bool tell_posted_ = false;
  bool sync_posted_ = false;
  bool removing_sandbox_ = false;
  Duration stop_deadline_{0};  // monotonic: when the grace is over
  int mount_failures_ = 0;
  std::optional<Duration> volumes_due_;  // until when claims may be waited for in silence
  TimerId timer_ = 0;
  TimerId deadline_ = 0;
  TimerId refresh_ = 0;
  std::map<std::string, Instance> instances_;
  Alive alive_;
};

}  // namespace sextant::kubelet
