#include "kubelet/process_runtime.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "kubelet/builtin_nvidia_smi.h"
#include "kubelet/init/launch_spec.h"
#include "kubelet/process_probe.h"
#include "kubelet/process_session.h"
#include "kubelet/process_stats.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPauseTimeout = std::chrono::seconds(20);
constexpr size_t kIdMax = 128;

Error UnknownSandbox(const std::string& uid) { return NotFound({"", "sandboxes"}, uid); }

// An id becomes a directory's name.
bool ValidId(const std::string& id) {
  return !id.empty() && id.size() <= kIdMax && id[0] != '.' &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

// Why nothing listens in a Pod where nothing really runs; empty if something does.
std::string WhoIsSimulated(const ProcessCore& core, const std::string& sandbox) {
  std::vector<std::string> names;
  for (const auto& [id, container] : core.containers) {
    if (container->spec().sandbox_uid != sandbox || !container->running()) continue;
    if (!container->simulated()) return {};
    names.push_back(container->spec().name);
  }
  if (names.empty()) return {};
  return fmt::format("nothing really runs in the container {}: it is simulated",
                     fmt::join(names, ", "));
}

// Whether another user may pass through all directories down to `path`.
bool OthersCanReach(const fs::path& path) {
  fs::path at;
  for (const fs::path& part : fs::absolute(path)) {
    at /= part;
    struct stat info{};
    if (stat(at.c_str(), &info) != 0 || (info.st_mode & S_IXOTH) == 0) return false;
  }
  return true;
}

}  // namespace

// ---- ProcessSandbox

ProcessSandbox::~ProcessSandbox() {
  core_.loop->Unwatch(watch_);
  core_.loop->Cancel(timer_);
  control_.Reset();
  if (pause_.pid < 0) return;
  Signal(pause_.pidfd, SIGKILL);
  Reap(pause_);
}

void ProcessSandbox::Start(DoneCallback done) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return done(Fail(ErrnoError("socketpair")));
  control_ = Fd(pair[0]);
  Result<Process> pause = Spawn(PauseProcess(*core_.toolbox, core_.identity, spec_, Fd(pair[1])));
  if (!pause) return done(Fail(pause.error()));
  pause_ = *std::move(pause);
  starting_ = std::move(done);
  watch_ = core_.loop->Watch(control_.get(), EPOLLIN, [this](uint32_t) { OnControl(); });
  timer_ = core_.loop->After(kPauseTimeout,
                             [this] { Broken(Timeout("the Pod's sandbox did not start", 0)); });
}

void ProcessSandbox::OnControl() {
  if (starting_) {
    Result<SandboxNamespaces> namespaces = ReceiveNamespaces(control_);
    if (!namespaces) return Broken(namespaces.error());
    namespaces_ = *std::move(namespaces);
    core_.loop->Cancel(std::exchange(timer_, 0));
    return std::exchange(starting_, nullptr)({});
  }
  for (;;) {
    Result<std::optional<Fd>> answer = ReceiveSocket(control_);
    if (answer && !*answer) return;
    if (waiting_.empty()) return Broken(InternalError("the Pod's pause process has ended"));
    SocketCallback next = std::move(waiting_.front());
    waiting_.pop_front();
    if (answer) {
      next(*std::exchange(*answer, std::nullopt));
      continue;
    }
    next(Fail(answer.error()));
    return;  // an end of the socket comes again and finds waiting_ empty at last
  }
}

void ProcessSandbox::Broken(const Error& error) {
  core_.loop->Unwatch(std::exchange(watch_, 0));
  core_.loop->Cancel(std::exchange(timer_, 0));
  control_.Reset();
  for (SocketCallback& waiting : std::exchange(waiting_, {})) waiting(Fail(error));
  if (auto starting = std::exchange(starting_, nullptr)) starting(Fail(error));
}

void ProcessSandbox::NewSocket(int domain, int type, SocketCallback done) {
  if (!control_.ok())
    return done(Fail(ServiceUnavailable(
        fmt::format("the isolation level \"{}\" gives Pods no network", LevelName(core_.level)))));
  const SocketRequest request{domain, type};
  if (send(control_.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(sizeof request))
    return done(Fail(ErrnoError("ask the Pod's pause process")));
  waiting_.push_back(std::move(done));
}

// ---- ProcessCore

namespace {
ProcessRuntimeOptions WithNvidiaSmi(ProcessRuntimeOptions options, const Clock& clock) {
  options.builtin_programs.try_emplace("nvidia-smi", NvidiaSmiProgram(clock));
  return options;
}
}  // namespace

ProcessCore::ProcessCore(ProcessRuntimeOptions given, const Clock& given_clock, Executor& executor)
    : options(WithNvidiaSmi(std::move(given), given_clock)),
      clock(given_clock),
      callbacks(executor),
      identity(CurrentIdentity()),
      loop(std::make_shared<FdLoop>("pods", given_clock)) {
  ready = ready_promise_.get_future().share();
  loop->Post([this] { SetUp(); });
}

ProcessCore::~ProcessCore() {
  alive_->store(false);
  std::promise<void> done;
  loop->Post([&] {
    Shutdown();
    done.set_value();
  });
  done.get_future().wait();
  loop->Stop();
  std::error_code error;
  if (own_directory) fs::remove_all(directory, error);
}

void ProcessCore::Shutdown() {
  for (const auto& session : sessions) session->Release();
  for (auto& [id, container] : containers) container->Release();
  sessions.clear();
  containers.clear();
  sandboxes.clear();
  sandbox_removals.clear();
}

// The toolbox where another user can run it: root's own state directory is closed to the user
// that root's Pods have at the levels without a mount namespace.
std::string ProcessCore::WorkDirectory() {
  if (!identity.drop || OthersCanReach(options.toolbox.directory)) return options.toolbox.directory;
  std::string path = "/tmp/sextant-pods-XXXXXX";
  if (!mkdtemp(path.data())) return options.toolbox.directory;
  chmod(path.c_str(), 0711);
  own_directory = true;
  return path;
}

bool ProcessCore::TryLevel(kubelet::Level candidate, const std::string& candidate_directory) {
  ToolboxOptions tools = options.toolbox;
  tools.directory = candidate_directory;
  Result<Toolbox> built = Toolbox::Build(tools);
  Status works = {};
  if (!built)
    works = Fail(built.error());
  else if (candidate == Level::kBubblewrap)
    works = ProbeBubblewrap(*built, identity);
  else
    works = ProbeLandlock(*built, identity, candidate_directory + "/containers/probe");
  if (works) {
    toolbox = *std::move(built);
    level = candidate;
    directory = candidate_directory;
    return true;
  }
  if (!explanation.empty()) explanation += "; ";
  explanation += fmt::format("{}: {}", LevelName(candidate), works.error().message);
  return false;
}

void ProcessCore::SetUp() {
  const std::optional<kubelet::Level> force = options.force;
  std::error_code error;
  fs::create_directories(options.toolbox.directory, error);
  bool found = false;
  if (!force || *force == Level::kBubblewrap)
    found = TryLevel(Level::kBubblewrap, options.toolbox.directory);
  if (!found && (!force || *force == Level::kLandlock)) {
    const std::string work = WorkDirectory();
    fs::remove_all(work + "/containers", error);  // of a lab that was killed
    fs::create_directories(work + "/containers", error);
    found = TryLevel(Level::kLandlock, work);
  }
  if (!found) {
    level = force.value_or(Level::kBuiltIn);
    toolbox.emplace();
    directory = options.toolbox.directory;
    if (force && *force != Level::kBuiltIn)
      unusable = InternalError(fmt::format("the isolation level {} does not work here: {}",
                                           LevelName(*force), explanation));
  }
  if (!explanation.empty()) log::Warning("kubelet", "isolation of Pods: {}", explanation);
  ready_promise_.set_value();
}

std::shared_ptr<ProcessContainer> ProcessCore::Find(const std::string& id) const {
  const auto it = containers.find(id);
  return it == containers.end() ? nullptr : it->second;
}

std::shared_ptr<ProcessSandbox> ProcessCore::FindSandbox(const std::string& uid) const {
  const auto it = sandboxes.find(uid);
  return it == sandboxes.end() ? nullptr : it->second;
}

void ProcessCore::Ended(const std::string& id) {
  const std::shared_ptr<ProcessContainer> container = Find(id);
  if (!container) return;
  container->Release();
  for (const auto& session : std::set(sessions)) session->OnContainerEnded(id);
  const std::string uid = container->spec().sandbox_uid;
  if (removing.erase(id) > 0) containers.erase(id);
  const auto [first, last] = sandbox_removals.equal_range(uid);
  if (first == last) return;
  for (const auto& [other_id, other] : containers)
    if (other->spec().sandbox_uid == uid && !other->ended()) return;
  std::erase_if(containers,
                [&](const auto& entry) { return entry.second->spec().sandbox_uid == uid; });
  sandboxes.erase(uid);
  for (auto it = first; it != last; ++it) Deliver([done = std::move(it->second)] { done({}); });
  sandbox_removals.erase(first, last);
}

// ---- ProcessRuntime

ProcessRuntime::ProcessRuntime(ProcessRuntimeOptions options, const Clock& clock,
                               Executor& callbacks)
    : core_(std::make_unique<ProcessCore>(std::move(options), clock, callbacks)) {}

ProcessRuntime::~ProcessRuntime() = default;

std::string ProcessRuntime::Level() const {
  core_->ready.wait();
  return std::string(LevelName(core_->level));
}

std::string ProcessRuntime::Explanation() const {
  core_->ready.wait();
  return core_->explanation;
}

Owner ProcessRuntime::FileOwner() const {
  return core_->identity.drop.value_or(Owner{geteuid(), getegid()});
}

void ProcessRuntime::CreateSandbox(PodSandboxSpec spec, DoneCallback done) {
  core_->loop->Post([core = core_.get(), spec = std::move(spec), done = std::move(done)]() mutable {
    const auto reply = [core, done = std::move(done)](Status status) {
      core->Deliver([done, status = std::move(status)] { done(status); });
    };
    const std::string uid = spec.uid;
    if (!ValidId(uid)) return reply(Fail(BadRequest("bad sandbox id")));
    if (core->FindSandbox(uid)) return reply(Fail(AlreadyExists({"", "sandboxes"}, uid)));
    if (core->unusable) return reply(Fail(*core->unusable));
    auto sandbox = std::make_shared<ProcessSandbox>(*core, std::move(spec));
    core->sandboxes[uid] = sandbox;
    if (core->level != Level::kBubblewrap) return reply({});
    sandbox->Start([core, uid, reply](Status status) {
      // Posted: the sandbox is not destroyed inside its own callback.
      if (!status) core->loop->Post([core, uid] { core->sandboxes.erase(uid); });
      reply(std::move(status));
    });
  });
}

void ProcessRuntime::RemoveSandbox(std::string uid, DoneCallback done) {
  core_->loop->Post([core = core_.get(), uid = std::move(uid), done = std::move(done)]() mutable {
    bool waits = false;
    std::vector<std::shared_ptr<ProcessContainer>> running;
    for (const auto& [id, container] : core->containers)
      if (container->spec().sandbox_uid == uid && !container->ended()) running.push_back(container);
    waits = !running.empty();
    if (waits) core->sandbox_removals.emplace(uid, std::move(done));
    for (const auto& container : running) container->Kill();
    if (waits) return;
    std::erase_if(core->containers,
                  [&](const auto& entry) { return entry.second->spec().sandbox_uid == uid; });
    core->sandboxes.erase(uid);
    core->Deliver([done = std::move(done)] { done({}); });
  });
}

void ProcessRuntime::StartContainer(ContainerSpec spec, EventCallback events) {
  core_->loop->Post(
      [core = core_.get(), spec = std::move(spec), events = std::move(events)]() mutable {
        const std::shared_ptr<ProcessSandbox> sandbox = core->FindSandbox(spec.sandbox_uid);
        const std::string id = spec.id;
        std::string problem;
        if (!ValidId(id))
          problem = "bad container id";
        else if (!sandbox)
          problem = UnknownSandbox(spec.sandbox_uid).message;
        else if (core->Find(id))
          problem = "the container exists already";
        if (!problem.empty()) {
          ContainerEvent event{.kind = ContainerEvent::Kind::kExited,
                               .container_id = id,
                               .sandbox_uid = spec.sandbox_uid,
                               .exit_code = 128,
                               .reason = "StartError",
                               .message = problem,
                               .started_at = core->clock.Now(),
                               .finished_at = core->clock.Now()};
          return core->Deliver(
              [events = std::move(events), event = std::move(event)] { events(event); });
        }
        auto container =
            std::make_shared<ProcessContainer>(*core, sandbox, std::move(spec), std::move(events));
        core->containers[id] = container;
        container->Start();
      });
}

void ProcessRuntime::StopContainer(std::string id, int signal, Duration grace) {
  core_->loop->Post([core = core_.get(), id = std::move(id), signal, grace] {
    if (const auto container = core->Find(id)) container->Stop(signal, grace);
  });
}

void ProcessRuntime::RemoveContainer(std::string id) {
  core_->loop->Post([core = core_.get(), id = std::move(id)] {
    const auto container = core->Find(id);
    if (!container) return;
    if (container->ended()) {
      core->containers.erase(id);
      return;
    }
    core->removing.insert(id);
    container->Kill();
  });
}

std::shared_ptr<Session> ProcessRuntime::Exec(ExecSpec spec, SessionCallbacks callbacks) {
  auto session = MakeExec(*core_, std::move(spec), std::move(callbacks));
  core_->loop->Post([core = core_.get(), session] {
    core->sessions.insert(session);
    session->Begin();
  });
  return MakeHandle(core_->loop, std::move(session));
}

std::shared_ptr<Session> ProcessRuntime::Attach(AttachSpec spec, SessionCallbacks callbacks) {
  auto session = MakeAttach(*core_, std::move(spec), std::move(callbacks));
  core_->loop->Post([core = core_.get(), session] {
    core->sessions.insert(session);
    session->Begin();
  });
  return MakeHandle(core_->loop, std::move(session));
}

namespace {

// The sandbox to probe; nothing where the answer was given already.
std::shared_ptr<ProcessSandbox> Probed(ProcessCore& core, const std::string& container_id,
                                       const ProbeCallback& done) {
  const auto container = core.Find(container_id);
  if (!container || !container->running()) {
    done({false, "the container is not running"});
    return nullptr;
  }
  if (container->simulated()) {
    done({true, ""});
    return nullptr;
  }
  auto sandbox = core.FindSandbox(container->spec().sandbox_uid);
  if (!sandbox) done({false, "the Pod's sandbox is gone"});
  return sandbox;
}

ProbeCallback Delivered(ProcessCore* core, ProbeCallback done) {
  return [core, done = std::move(done)](ProbeResult result) {
    core->Deliver([done, result = std::move(result)] { done(result); });
  };
}

}  // namespace

namespace {

// Through a socket in the Pod of the container.
template <typename P>
void ProbeBySocket(ProcessCore* core, P probe, ProbeCallback done,
                   void (*run)(ProcessCore&, std::shared_ptr<ProcessSandbox>, P, ProbeCallback)) {
  core->loop->Post([core, probe = std::move(probe), done = std::move(done), run]() mutable {
    ProbeCallback reply = Delivered(core, std::move(done));
    if (auto sandbox = Probed(*core, probe.container_id, reply)) {
      run(*core, std::move(sandbox), std::move(probe), std::move(reply));
    }
  });
}

}  // namespace

void ProcessRuntime::Probe(HttpProbe probe, ProbeCallback done) {
  ProbeBySocket(core_.get(), std::move(probe), std::move(done), RunHttpProbe);
}

void ProcessRuntime::Probe(TcpProbe probe, ProbeCallback done) {
  ProbeBySocket(core_.get(), std::move(probe), std::move(done), RunTcpProbe);
}

void ProcessRuntime::Probe(GrpcProbe probe, ProbeCallback done) {
  ProbeBySocket(core_.get(), std::move(probe), std::move(done), RunGrpcProbe);
}

void ProcessRuntime::Probe(ExecProbe probe, ProbeCallback done) {
  core_->loop->Post([core = core_.get(), probe = std::move(probe),
                     done = std::move(done)]() mutable {
    ProbeCallback reply = Delivered(core, std::move(done));
    if (!Probed(*core, probe.container_id, reply)) return;
    // Both callbacks run on the same executor, one after the other.
    auto output = std::make_shared<std::string>();
    const auto collect = [output](std::string_view data) {
      output->append(data.substr(0, kProbeBodyMax - std::min(kProbeBodyMax, output->size())));
    };
    SessionCallbacks callbacks{.on_stdout = collect, .on_stderr = collect};
    callbacks.on_exit = [output, reply](Result<int> code) {
      if (!code) return reply({false, code.error().message});
      reply({*code == 0, *output});
    };
    auto session = MakeExec(
        *core, {.container_id = probe.container_id, .argv = probe.argv, .timeout = probe.timeout},
        std::move(callbacks));
    core->sessions.insert(session);
    session->Begin();
  });
}

void ProcessRuntime::DialPort(std::string sandbox_uid, uint16_t port,
                              std::function<void(Result<int>)> done) {
  core_->loop->Post(
      [core = core_.get(), uid = std::move(sandbox_uid), port, done = std::move(done)]() mutable {
        const auto reply = [core, done = std::move(done)](Result<Fd> fd) {
          auto shared = std::make_shared<Result<Fd>>(std::move(fd));
          core->Deliver([done, shared] {
            if (*shared) return done((*shared)->Release());
            done(Fail(shared->error()));
          });
        };
        const auto sandbox = core->FindSandbox(uid);
        if (!sandbox) return reply(Fail(UnknownSandbox(uid)));
        const std::string simulated = WhoIsSimulated(*core, uid);
        DialLocalhost(*core, sandbox, port, [reply, simulated](Result<Fd> fd) {
          if (!fd && !simulated.empty()) fd.error().message += "(" + simulated + ")";
          reply(std::move(fd));
        });
      });
}

void ProcessRuntime::Stats(std::string container_id,
                           std::function<void(Result<ContainerStats>)> done) {
  core_->loop->Post([core = core_.get(), id = std::move(container_id), done = std::move(done)] {
    const auto container = core->Find(id);
    Result<ContainerStats> stats = Fail(NotFound({"", "containers"}, id));
    if (container && container->running())
      stats = container->pid() > 0 ? ReadStats(container->pid()) : ContainerStats{};
    core->Deliver([done, stats = std::move(stats)] { done(stats); });
  });
}

}  // namespace sextant::kubelet
