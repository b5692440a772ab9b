// How containers and Pods end.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "kubelet/pod_worker.h"

namespace sextant::kubelet {
namespace {

using api::Value;

constexpr int64_t kDefaultGraceSeconds = 30;

}  // namespace

Duration PodWorker::DeletionGrace() const {
  const Value told = record_.pod["metadata"]["deletionGracePeriodSeconds"];
  const int64_t own =
      record_.pod["spec"]["terminationGracePeriodSeconds"].AsInt(kDefaultGraceSeconds);
  return std::chrono::seconds(told.IsInt() ? told.AsInt() : own);
}

// Runs a hook of one container; gives up after `timeout` (0: never).
void PodWorker::RunHook(const std::string& name, Value hook, Duration timeout,
                        std::function<void(bool ok)> done) {
  const auto once = std::make_shared<std::function<void(bool)>>(std::move(done));
  auto finish = Guard([once](bool ok) {
    if (auto told = std::exchange(*once, nullptr)) told(ok);
  });
  Loop& loop = parts_.client.executor();
  Instance& instance = instances_[name];
  if (timeout > Duration{0}) {
    instance.stop_timer = loop.After(timeout, [finish]() mutable { finish(false); });
  }
  const ContainerState& container = *record_.Find(name);
  if (instance.simulated) {  // nothing is there that a hook could reach
    loop.Post([finish]() mutable { finish(true); });
  } else if (const Value exec = hook["exec"]) {
    ExecSpec spec;
    spec.container_id = container.id;
    for (Value word : exec["command"].items()) spec.argv.emplace_back(word.AsString());
    spec.timeout = timeout;
    // Its output goes nowhere, but has to be taken.
    auto session = std::make_shared<std::weak_ptr<Session>>();
    const auto drop = [session](std::string_view bytes) {
      if (auto open = session->lock()) open->Consumed(bytes.size());
    };
    instance.hook = parts_.runtime.Exec(
        std::move(spec),
        {drop, drop, [finish](Result<int> code) mutable { finish(code && *code == 0); }});
    *session = instance.hook;
  } else if (const Value http = hook["httpGet"]) {
    constexpr Duration kHookTimeout = std::chrono::seconds(30);
    parts_.runtime.Probe(HttpProbeOf(http, FindContainerSpec(record_.pod, name), container.id,
                                     timeout > Duration{0} ? timeout : kHookTimeout),
                         [finish](ProbeResult result) mutable { finish(result.success); });
  } else if (const Value sleep = hook["sleep"]) {
    loop.After(std::chrono::seconds(sleep["seconds"].AsInt()),
               [finish]() mutable { finish(true); });
  } else {
    loop.Post([finish]() mutable { finish(false); });
  }
}

void PodWorker::PostStart(ContainerState& container) {
  const Value hook = FindContainerSpec(record_.pod, container.name)["lifecycle"]["postStart"];
  if (!hook) return BeginProbes(container);
  RunHook(container.name, hook, Duration{0},
          [this, name = container.name, id = container.id](bool ok) {
            ContainerState& state = *record_.Find(name);
            if (!state.running() || state.id != id) return;
            if (ok) {
              BeginProbes(state);
              return SyncSoon();
            }
            ContainerEventTold(state, client::EventKind::kWarning, "FailedPostStartHook",
                               "PostStartHook failed");
            Kill(state, "FailedPostStartHook", DeletionGrace());
          });
}

// Says it, runs the preStop hook in the grace, then stops the container.
void PodWorker::Kill(ContainerState& container, const std::string& message, Duration grace) {
  Instance& instance = instances_[container.name];
  if (!instance.active()) return;
  if (!std::exchange(instance.stopping, true) && container.running()) {
    ContainerEventTold(container, client::EventKind::kNormal, "Killing", message);
    const Value hook = FindContainerSpec(record_.pod, container.name)["lifecycle"]["preStop"];
    if (hook && grace > Duration{0} && !instance.component) {
      const Duration began = parts_.client.executor().clock().Monotonic();
      RunHook(container.name, hook, grace, [this, name = container.name, began, grace](bool ok) {
        const Duration spent = parts_.client.executor().clock().Monotonic() - began;
        if (!ok) {
          ContainerEventTold(*record_.Find(name), client::EventKind::kWarning, "FailedPreStopHook",
                             "PreStopHook failed");
        }
        StopNow(name, grace - spent);
      });
      return;
    }
  }
  StopNow(container.name, grace);
}

void PodWorker::StopNow(const std::string& name, Duration grace) {
  Instance& instance = instances_[name];
  if (!instance.active()) return;
  if (instance.component) {
    instance.component.reset();
    const Time now = parts_.client.executor().clock().Now();
    parts_.client.executor().Post(Guard([this, name, now] {
      ContainerState& container = *record_.Find(name);
      ContainerEvent event{.kind = ContainerEvent::Kind::kExited, .container_id = container.id};
      event.reason = "Completed";
      event.started_at = container.started_at.value_or(now);
      event.finished_at = now;
      OnExited(name, event);
    }));
    return;
  }
  if (!instance.launched) return;  // it will not be: its start sees that the Pod stops
  parts_.runtime.StopContainer(record_.Find(name)->id, SIGTERM, std::max(grace, kLeastGrace));
}

void PodWorker::Evict(std::string message) {
  if (stopping()) return;
  record_.evicted = true;
  record_.failed_reason = "Evicted";
  record_.failed_message = std::move(message);
  PodEvent(client::EventKind::kWarning, record_.failed_reason, record_.failed_message);
  Stop(kEvictionGrace);
}

// Begins the Pod's end, or shortens its grace.
void PodWorker::Stop(Duration grace) {
  Loop& loop = parts_.client.executor();
  const Duration deadline = loop.clock().Monotonic() + grace;
  const bool first = stage_ != Stage::kStopping;
  if (!first && deadline >= stop_deadline_) return;
  stop_deadline_ = deadline;
  if (first) {
    stage_ = Stage::kStopping;
    loop.Cancel(timer_);
    loop.Cancel(deadline_);
    loop.Cancel(refresh_);
    for (auto& [name, instance] : instances_) {
      loop.Cancel(std::exchange(instance.timer, 0));
    }
  }
  for (ContainerState& container : record_.containers) {
    if (container.kind == ContainerKind::kSidecar && !instances_[container.name].stopping) continue;
    Kill(container, "Stopping container " + container.name, grace);
  }
  AdvanceStop();
}

// Sidecars end after the others, the last one first.
void PodWorker::AdvanceStop() {
  if (stage_ != Stage::kStopping) return;
  Tell();
  for (const ContainerState& container : record_.containers) {
    if (container.kind != ContainerKind::kSidecar && instances_[container.name].active()) return;
  }
  const Duration left = stop_deadline_ - parts_.client.executor().clock().Monotonic();
  for (auto it = record_.containers.rbegin(); it != record_.containers.rend(); ++it) {
    Instance& instance = instances_[it->name];
    if (!instance.active()) continue;
    if (!instance.stopping) Kill(*it, "Stopping container " + it->name, left);
    return;
  }
  RemoveSandbox();
}

void PodWorker::RemoveSandbox() {
  if (std::exchange(removing_sandbox_, true)) return;
  parts_.runtime.RemoveSandbox(std::string(record_.pod.uid()),
                               Guard([this](Status) { Stopped(); }));
}

void PodWorker::Stopped() {
  if (stage_ == Stage::kOver) return;
  stage_ = Stage::kOver;
  record_.sandbox_ready = false;
  record_.terminal = true;
  parts_.devices.Release(std::string(record_.pod.uid()));
  MarkUnstarted();
  if (vanished_) return CleanUp();
  RemoveFiles("/volumes");  // its logs stay as long as the API has the Pod
  Tell();
}

void PodWorker::RemoveFiles(const std::string& below) {
  if (!parts_.options.materialise) return;
  parts_.files.Post([directory = PodDirectory() + below] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  });
}

// Once a Pod is initialised, a container without an end counts as failed (status manager,
// TerminatePod).
void PodWorker::MarkUnstarted() {
  const bool has_init = !record_.containers.empty() && IsInit(record_.containers[0].kind);
  if (has_init && !initialised_) return;
  for (ContainerState& container : record_.containers) {
    if (container.kind != ContainerKind::kRegular || container.done()) continue;
    container.phase = ContainerState::Phase::kTerminated;
    container.terminated =
        Terminated{.exit_code = 137,
                   .reason = "ContainerStatusUnknown",
                   .message = "The container could not be located when the pod was terminated"};
    if (container.last) container.terminated = container.last;
  }
}

void PodWorker::MaybeDelete() {
  if (stage_ != Stage::kOver || vanished_ || tell_posted_) return;
  if (record_.pod["metadata"]["deletionTimestamp"]) writer_.DeleteWhenTold();
}

// The Pod is over and the API has forgotten it: so does the node.
void PodWorker::CleanUp() {
  RemoveFiles("");
  for (const ContainerState& container : record_.containers)
    if (!container.id.empty()) parts_.runtime.RemoveContainer(container.id);
  // `gone` destroys this worker, and so must not be its own member while it runs.
  parts_.client.executor().Post(Guard([gone = gone_] { gone(); }));
}

}  // namespace sextant::kubelet
