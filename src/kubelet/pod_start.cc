// How containers start, and what follows when they have.
#include <fmt/format.h>

#include <algorithm>

#include "api/quantity.h"
#include "kubelet/container_files.h"
#include "kubelet/log_reader.h"
#include "kubelet/pod_worker.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

using api::Value;

// FallbackToLogsOnError: MaxContainerTerminationMessageLogLines, ...LogLength.
constexpr int64_t kFallbackLines = 80;
constexpr int64_t kFallbackBytes = 2048;

// The runtime's key of one instance: 64 hexadecimal digits, as of a real container.
std::string InstanceId(std::string_view uid, std::string_view container, int restart_count) {
  uint64_t halves[4] = {0x9ae16a3b2f90404f, 0xc949d7c7509e6557, 0xff51afd7ed558ccd,
                        0xc4ceb9fe1a85ec53};
  const std::string text = fmt::format("{}/{}/{}", uid, container, restart_count);
  std::string id;
  for (uint64_t& hash : halves) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    id += fmt::format("{:016x}", hash ^ (hash >> 29));
  }
  return id;
}

uint32_t UserOf(Value pod_spec, Value container, const char* key) {
  const Value own = container["securityContext"][key];
  const Value value = own.IsInt() ? own : pod_spec["securityContext"][key];
  return static_cast<uint32_t>(std::max<int64_t>(value.AsInt(), 0));
}

// pkg/kubelet/kuberuntime/security_context.go: verifyRunAsNonRoot.
Status CheckNonRoot(const api::Object& pod, Value container) {
  const Value own = container["securityContext"]["runAsNonRoot"];
  const Value pod_wide = pod["spec"]["securityContext"]["runAsNonRoot"];
  if (!(own ? own : pod_wide).AsBool()) return {};
  if (UserOf(pod["spec"], container, "runAsUser") != 0) return {};
  const bool told = container["securityContext"]["runAsUser"].IsInt() ||
                    pod["spec"]["securityContext"]["runAsUser"].IsInt();
  return Fail(TextError(fmt::format("{} (pod: \"{}\", container: {})",
                                    told ? "container's runAsUser breaks non-root policy"
                                         : "container has runAsNonRoot and image will run as root",
                                    FormatPod(pod), container["name"].AsString())));
}

}  // namespace

// One container's way to its start.
struct PodWorker::Start {
  std::string name;
  Value container;  // in `pod`
  api::Object pod;
  ContainerSpec spec;
};

// True while the container has to wait: CrashLoopBackOff. The first restart comes at once.
bool PodWorker::BackOff(ContainerState& container) {
  Instance& instance = instances_[container.name];
  if (!instance.ended_at) return false;
  Loop& loop = parts_.client.executor();
  const Time now = loop.clock().Now();
  const bool expired = instance.backoff == Duration{0} ||
                       *instance.ended_at - instance.backoff_since > 2 * kMaxBackOff;
  if (!expired && now - *instance.ended_at < instance.backoff) {
    ContainerEventTold(container, client::EventKind::kWarning, "BackOff",
                       fmt::format("Back-off restarting failed container {} in pod {}",
                                   container.name, FormatPod(record_.pod)));
    if (container.terminated) container.last = std::exchange(container.terminated, std::nullopt);
    container.phase = ContainerState::Phase::kWaiting;
    container.waiting_reason = "CrashLoopBackOff";
    container.waiting_message =
        fmt::format("back-off {} restarting failed container={} pod={}",
                    FormatDuration(instance.backoff), container.name, FormatPod(record_.pod));
    instance.timer = loop.After(*instance.ended_at + instance.backoff - now,
                                Guard([this, name = container.name] {
                                  instances_[name].timer = 0;
                                  Sync();
                                }));
    Tell();
    return true;
  }
  instance.backoff = expired ? kFirstBackOff : std::min(instance.backoff * 2, kMaxBackOff);
  instance.backoff_since = now;
  return false;
}

void PodWorker::StartContainer(ContainerState& container) {
  Instance& instance = instances_[container.name];
  instance = Instance{.starting = true,
                      .backoff = instance.backoff,
                      .backoff_since = instance.backoff_since,
                      .ended_at = instance.ended_at};
  auto start = std::make_shared<Start>();
  start->name = container.name;
  start->pod = record_.pod;
  start->container = FindContainerSpec(start->pod, container.name);
  ContainerEventTold(container, client::EventKind::kNormal, "Pulled",
                     fmt::format("Container image \"{}\" is not pulled: the lab's own toolbox "
                                 "stands in its place",
                                 container.image));
  FetchSources(
      parts_.client, std::string(start->pod.ns()), EnvSources(start->container),
      Guard([this, start](std::shared_ptr<const Sources> sources) { OnSources(start, *sources); }));
}

void PodWorker::OnSources(const std::shared_ptr<Start>& start, const Sources& sources) {
  ContainerState& container = *record_.Find(start->name);
  Instance& instance = instances_[start->name];
  if (stage_ != Stage::kRunning) {
    instance.starting = false;
    return AdvanceStop();
  }
  if (auto composed = Compose(*start, sources); !composed) {
    return ConfigError(container, composed.error().message);
  }
  if (StartComponent(start)) return;
  if (!parts_.options.materialise) return Launch(start);
  Loop& loop = parts_.client.executor();
  parts_.files.Post([&loop, start, owner = parts_.runtime.FileOwner(),
                     message = instance.message_path, log = instance.log_path,
                     then = Guard([this, start](Status made) {
                       if (!made)
                         return ConfigError(*record_.Find(start->name), made.error().message);
                       Launch(start);
                     })]() mutable {
    std::vector<Mount> own;
    for (const Mount& mount : start->spec.mounts)
      if (!mount.sub_path.empty()) own.push_back(mount);
    loop.Post([made = MakeContainerFiles(log, message, own, owner),
               then = std::move(then)]() mutable { then(std::move(made)); });
  });
}

// Everything about the container that the runtime has to know.
Status PodWorker::Compose(Start& start, const Sources& sources) {
  const ContainerState& state = *record_.Find(start.name);
  const Value container = start.container;
  const Value pod_spec = start.pod["spec"];
  const std::string uid(start.pod.uid());
  RETURN_IF_ERROR(CheckNonRoot(start.pod, container));
  const api::Object node = parts_.node();
  const EnvFacts facts = Facts(container, node);
  ASSIGN_OR_RETURN(Env env, BuildEnv(facts, sources));
  const plugin::ContainerAllocation devices = parts_.devices.Options(uid, start.name);
  for (const auto& [name, value] : devices.envs) env[name] = value;
  ContainerSpec& spec = start.spec;
  ASSIGN_OR_RETURN(spec.mounts, volumes_.MountsFor(container, env));
  for (const plugin::Mount& mount : devices.mounts) {
    spec.mounts.push_back({.container_path = mount.container_path,
                           .host_path = mount.host_path,
                           .read_only = mount.read_only});
  }
  // The devices of a simulated machine lead nowhere, never to this machine's.
  for (const plugin::DeviceSpec& device : devices.devices) {
    spec.devices.push_back({.container_path = device.container_path, .host_path = ""});
  }
  const bool ran = !state.id.empty() || state.last;
  const int restart_count = state.restart_count + ran;
  spec.id = InstanceId(uid, start.name, restart_count);
  spec.sandbox_uid = uid;
  spec.name = start.name;
  spec.image = state.image;
  spec.simulated =
      start.pod["metadata"]["annotations"][kRuntimeAnnotation].AsString() == "simulated";
  // Args alone are a command line too (`kubectl run -- sh -c ...`): the images that the toolbox
  // stands in for have no entrypoint, or one that runs its arguments.
  spec.argv = ExpandAll(container["command"], env);
  for (std::string& word : ExpandAll(container["args"], env)) spec.argv.push_back(std::move(word));
  for (const auto& [name, value] : env) spec.env.push_back(name + "=" + value);
  spec.working_dir = container["workingDir"].AsString();
  spec.limits.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(
      api::Quantity::ParseOrZero(container["resources"]["limits"]["memory"].AsString()).Value(),
      0));
  spec.run_as_user = UserOf(pod_spec, container, "runAsUser");
  spec.run_as_group = UserOf(pod_spec, container, "runAsGroup");
  spec.read_only_root = container["securityContext"]["readOnlyRootFilesystem"].AsBool();
  spec.tty = container["tty"].AsBool();
  spec.stdin_open = container["stdin"].AsBool();
  spec.stdin_once = container["stdinOnce"].AsBool();
  if (const std::string_view target = container["targetContainerName"].AsString();
      !target.empty()) {
    const ContainerState* other = record_.Find(target);
    if (!other || other->id.empty()) {
      return Fail(TextError(fmt::format("unable to find target container {}", target)));
    }
    spec.target = other->id;
  }
  if (const Value text = start.pod["metadata"]["annotations"][kRunForAnnotation]) {
    ASSIGN_OR_RETURN(spec.run_for, ParseDuration(text.AsString()));
  }
  Instance& instance = instances_[start.name];
  instance.log_path = LogPath(start.name, restart_count);
  if (!parts_.options.materialise) return {};
  spec.log_path = instance.log_path;
  instance.message_path =
      fmt::format("{}/termination/{}/{}", PodDirectory(), start.name, restart_count);
  spec.mounts.push_back({.container_path = std::string(
                             container["terminationMessagePath"].AsString("/dev/termination-log")),
                         .host_path = instance.message_path});
  return {};
}

void PodWorker::ConfigError(ContainerState& container, const std::string& message) {
  Instance& instance = instances_[container.name];
  instance.starting = false;
  if (stage_ != Stage::kRunning) return AdvanceStop();
  ContainerEventTold(container, client::EventKind::kWarning, "Failed", "Error: " + message);
  if (container.terminated) container.last = std::exchange(container.terminated, std::nullopt);
  container.phase = ContainerState::Phase::kWaiting;
  container.waiting_reason = "CreateContainerConfigError";
  container.waiting_message = message;
  instance.timer = parts_.client.executor().After(kSyncRetry, Guard([this, name = container.name] {
                                                    instances_[name].timer = 0;
                                                    Sync();
                                                  }));
  Tell();
}

// A program of this process in the container's place.
bool PodWorker::StartComponent(const std::shared_ptr<Start>& start) {
  if (start->spec.argv.empty() || start->spec.simulated) return false;
  Instance& instance = instances_[start->name];
  instance.component =
      parts_.components.Start(start->spec.argv[0], parts_.options.node, parts_.registrar);
  if (!instance.component) return false;
  ContainerState& container = *record_.Find(start->name);
  if (!container.id.empty() || container.last) ++container.restart_count;
  container.id = start->spec.id;
  instance.launched = true;
  ContainerEventTold(container, client::EventKind::kNormal, "Created", "Container created");
  AppendLog(instance.log_path, fmt::format("{} runs inside the lab's process for node {}",
                                           start->spec.argv[0], parts_.options.node));
  ContainerEvent event{.kind = ContainerEvent::Kind::kStarted, .container_id = container.id};
  event.started_at = parts_.client.executor().clock().Now();
  parts_.client.executor().Post(
      Guard([this, name = start->name, event] { OnRuntimeEvent(name, event); }));
  return true;
}

void PodWorker::AppendLog(const std::string& path, std::string line) {
  if (!parts_.options.materialise) return;
  const Time now = parts_.client.executor().clock().Now();
  parts_.files.Post([path, line = std::move(line), now] { (void)AppendLogLine(path, line, now); });
}

void PodWorker::Launch(const std::shared_ptr<Start>& start) {
  ContainerState& container = *record_.Find(start->name);
  Instance& instance = instances_[start->name];
  if (stage_ != Stage::kRunning) {
    instance.starting = false;
    return AdvanceStop();
  }
  if (!container.id.empty()) {
    parts_.runtime.RemoveContainer(container.id);
  }
  if (!container.id.empty() || container.last) ++container.restart_count;
  container.id = start->spec.id;
  instance.launched = true;
  ContainerEventTold(container, client::EventKind::kNormal, "Created", "Container created");
  parts_.runtime.StartContainer(start->spec,
                                Guard([this, name = start->name](const ContainerEvent& event) {
                                  OnRuntimeEvent(name, event);
                                }));
}

void PodWorker::OnRuntimeEvent(const std::string& name, const ContainerEvent& event) {
  ContainerState& container = *record_.Find(name);
  if (event.container_id != container.id) return;  // of an instance before
  if (event.kind == ContainerEvent::Kind::kStarted) return OnStarted(container, event);
  OnExited(name, event);
}

void PodWorker::OnStarted(ContainerState& container, const ContainerEvent& event) {
  Instance& instance = instances_[container.name];
  instance.starting = false;
  instance.simulated = event.simulated;
  if (container.terminated) container.last = std::exchange(container.terminated, std::nullopt);
  container.phase = ContainerState::Phase::kRunning;
  container.waiting_reason.clear();
  container.waiting_message.clear();
  container.started_at = event.started_at;
  container.started = false;
  container.ready = false;
  ContainerEventTold(container, client::EventKind::kNormal, "Started", "Container started");
  // In a lab where everything is simulated the node says so; here this container is the exception.
  if (event.simulated && parts_.runtime.Level() != "simulated") {
    ContainerEventTold(container, client::EventKind::kNormal, "Simulated",
                       "Nothing really runs in this container: " + event.message);
  }
  if (stage_ == Stage::kStopping) {
    const Duration left = stop_deadline_ - parts_.client.executor().clock().Monotonic();
    StopNow(container.name, left);
    return Tell();
  }
  PostStart(container);
  Tell();
  SyncSoon();
}

void PodWorker::BeginProbes(ContainerState& container) {
  Instance& instance = instances_[container.name];
  const Value spec = FindContainerSpec(record_.pod, container.name);
  const std::string name = container.name;
  Prober::Callbacks callbacks;
  callbacks.on_started = [this, name, spec] {
    OnProbe(name, [spec](ContainerState& state) {
      state.started = true;
      state.ready = !spec["readinessProbe"];
    });
  };
  callbacks.on_ready = [this, name](bool ready) {
    OnProbe(name, [ready](ContainerState& state) { state.ready = ready; });
  };
  callbacks.on_unhealthy = [this, name](Prober::Kind kind, const std::string& output) {
    ContainerEventTold(*record_.Find(name), client::EventKind::kWarning, "Unhealthy",
                       fmt::format("{} probe failed: {}", Name(kind), output));
  };
  callbacks.on_failed = [this, name, spec](Prober::Kind kind) {
    if (stage_ != Stage::kRunning) return;
    const bool startup = kind == Prober::Kind::kStartup;
    const bool init = IsInit(record_.Find(name)->kind);
    const std::string_view policy =
        spec["restartPolicy"].AsString(record_.pod["spec"]["restartPolicy"].AsString());
    const Value own =
        spec[startup ? "startupProbe" : "livenessProbe"]["terminationGracePeriodSeconds"];
    Kill(*record_.Find(name),
         fmt::format("{} {} failed {} probe{}", init ? "Init container" : "Container", name,
                     startup ? "startup" : "liveness",
                     !init && policy != "Never" ? ", will be restarted" : ""),
         own.IsInt() ? Duration(std::chrono::seconds(own.AsInt())) : DeletionGrace());
  };
  instance.prober = std::make_unique<Prober>(parts_.client.executor(), parts_.runtime, record_.pod,
                                             spec, container.id, std::move(callbacks));
  // A program of this process has nothing that a probe could reach.
  const bool component = instance.component != nullptr;
  if (component || !instance.prober->has_startup()) {
    container.started = true;
    const bool serves =
        container.kind == ContainerKind::kRegular || container.kind == ContainerKind::kSidecar;
    container.ready = serves && (component || !instance.prober->has_readiness());
  }
  if (!component) instance.prober->Start();
}

void PodWorker::OnProbe(const std::string& name, std::function<void(ContainerState&)> change) {
  ContainerState& container = *record_.Find(name);
  if (!container.running() || stage_ == Stage::kOver) return;
  change(container);
  Tell();
  SyncSoon();
}

void PodWorker::OnExited(const std::string& name, const ContainerEvent& event) {
  ContainerState& container = *record_.Find(name);
  Instance& instance = instances_[name];
  instance.prober.reset();
  container.ready = false;
  if (instance.message_path.empty() || event.simulated) {
    return Exited(container, event, event.message);
  }
  Loop& loop = parts_.client.executor();
  parts_.files.Post(
      [&loop, path = instance.message_path, then = Guard([this, name, event](std::string message) {
                                              if (event.container_id == record_.Find(name)->id) {
                                                OnMessage(name, event, std::move(message));
                                              }
                                            })]() mutable {
        loop.Post([message = ReadTerminationMessage(path), then = std::move(then)]() mutable {
          then(std::move(message));
        });
      });
}

// With FallbackToLogsOnError the end of the log speaks for a container that left no message.
void PodWorker::OnMessage(const std::string& name, const ContainerEvent& event,
                          std::string message) {
  ContainerState& container = *record_.Find(name);
  if (message.empty()) message = event.message;
  const std::string_view policy =
      FindContainerSpec(record_.pod, name)["terminationMessagePolicy"].AsString();
  if (policy != "FallbackToLogsOnError" || !message.empty() || event.exit_code == 0) {
    return Exited(container, event, std::move(message));
  }
  LogOptions options;
  options.tail_lines = kFallbackLines;
  options.limit_bytes = kFallbackBytes;
  const auto reader = LogReader::Open(instances_[name].log_path, options, parts_.files,
                                      parts_.client.executor(), [] { return false; });
  reader->Next(Guard([this, reader, name, event](Result<std::optional<std::string>> log) {
    ContainerState& state = *record_.Find(name);
    if (event.container_id != state.id) return;
    Exited(state, event, log ? log->value_or("") : "");
  }));
}

void PodWorker::Exited(ContainerState& container, const ContainerEvent& event,
                       std::string message) {
  Instance& instance = instances_[container.name];
  const bool started = container.running();
  instance.starting = false;
  instance.launched = false;
  instance.stopping = false;
  instance.component.reset();
  instance.ended_at = event.finished_at;
  if (container.terminated) container.last = container.terminated;
  container.phase = ContainerState::Phase::kTerminated;
  container.started = false;
  container.ready = container.kind == ContainerKind::kInit && event.exit_code == 0;
  Terminated end{.exit_code = event.exit_code,
                 .reason = event.reason,
                 .message = std::move(message),
                 .finished_at = event.finished_at,
                 .container_id = event.container_id};
  end.started_at = started ? container.started_at : std::optional(event.started_at);
  container.terminated = std::move(end);
  container.started_at.reset();
  if (event.reason == "StartError") {
    ContainerEventTold(container, client::EventKind::kWarning, "Failed", "Error: " + event.message);
  }
  Tell();
  if (stage_ == Stage::kStopping) return AdvanceStop();
  SyncSoon();
}

}  // namespace sextant::kubelet
