#include "kubelet/runtime_simulated.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "kubelet/log_writer.h"

namespace sextant::kubelet {
namespace {

constexpr int kStartErrorCode = 128;

// One attached or exec'd client; it only waits for an end.
class SilentSession : public Session, public std::enable_shared_from_this<SilentSession> {
 public:
  SilentSession(Loop& loop, std::function<void(Result<int>)> on_exit)
      : loop_(loop), on_exit_(std::move(on_exit)) {}
  bool Write(std::string_view) override { return true; }
  void CloseStdin() override {}
  void Resize(uint16_t, uint16_t) override {}
  void Consumed(size_t) override {}
  void Cancel() override {
    loop_.Post([self = shared_from_this()] { self->End(Fail(InternalError("detached"))); });
  }
  void End(Result<int> result) {
    if (auto on_exit = std::exchange(on_exit_, nullptr)) on_exit(std::move(result));
  }

 private:
  Loop& loop_;
  std::function<void(Result<int>)> on_exit_;
};

}  // namespace

class SimulatedRuntime::State {
 public:
  explicit State(Loop& loop) : loop_(loop) {}
  ~State() {
    for (auto& [id, container] : containers_) loop_.Cancel(container.timer);
  }

  struct Container {
    ContainerSpec spec;
    EventCallback events;
    Time started_at{};
    TimerId timer = 0;
    bool running = false;
    std::vector<std::weak_ptr<SilentSession>> attached;
  };

  void Start(ContainerSpec spec, EventCallback events) {
    std::string problem;
    if (!sandboxes_.contains(spec.sandbox_uid))
      problem = NotFound({"", "sandboxes"}, spec.sandbox_uid).message;
    else if (containers_.contains(spec.id))
      problem = "the container exists already";
    if (!problem.empty()) {
      const Time now = loop_.clock().Now();
      return events({.kind = ContainerEvent::Kind::kExited,
                     .container_id = spec.id,
                     .sandbox_uid = spec.sandbox_uid,
                     .simulated = true,
                     .exit_code = kStartErrorCode,
                     .reason = "StartError",
                     .message = problem,
                     .started_at = now,
                     .finished_at = now});
    }
    const std::string id = spec.id;
    Container& container = containers_[id];
    container = {.spec = std::move(spec),
                 .events = std::move(events),
                 .started_at = loop_.clock().Now(),
                 .running = true};
    // An empty log is a log: `kubectl logs` finds it.
    if (Result<LogWriter> log = LogWriter::Open(container.spec.log_path, {}, loop_.clock()))
      log->Finish();
    if (container.spec.run_for)
      container.timer = loop_.After(*container.spec.run_for, [this, id] {
        const auto it = containers_.find(id);
        if (it != containers_.end()) End(it->second, it->second.spec.simulated_exit_code, 0);
      });
    const EventCallback notify = container.events;  // the callback may remove the container
    notify({.kind = ContainerEvent::Kind::kStarted,
            .container_id = id,
            .sandbox_uid = container.spec.sandbox_uid,
            .simulated = true,
            .message = "containers are simulated in this lab",
            .started_at = container.started_at});
  }

  void Stop(const std::string& id, int signal, Duration grace) {
    const auto it = containers_.find(id);
    if (it == containers_.end()) return;
    if (grace <= Duration{0}) signal = SIGKILL;
    End(it->second, 128 + signal, signal);
  }

  void Remove(const std::string& id) {
    Stop(id, SIGKILL, Duration{0});
    containers_.erase(id);
  }

  void RemoveSandbox(const std::string& uid) {
    std::vector<std::string> ids;
    for (const auto& [id, container] : containers_)
      if (container.spec.sandbox_uid == uid) ids.push_back(id);
    for (const std::string& id : ids) Remove(id);
    sandboxes_.erase(uid);
  }

  Container* Running(const std::string& id) {
    const auto it = containers_.find(id);
    return it == containers_.end() || !it->second.running ? nullptr : &it->second;
  }

  std::set<std::string> sandboxes_;

 private:
  void End(Container& container, int code, int signal) {
    if (!std::exchange(container.running, false)) return;
    loop_.Cancel(std::exchange(container.timer, 0));
    for (const auto& weak : std::exchange(container.attached, {}))
      if (const auto session = weak.lock()) session->End(code);
    const EventCallback notify = container.events;
    notify({.kind = ContainerEvent::Kind::kExited,
            .container_id = container.spec.id,
            .sandbox_uid = container.spec.sandbox_uid,
            .simulated = true,
            .exit_code = code,
            .signal = signal,
            .reason = code == 0 ? "Completed" : "Error",
            .started_at = container.started_at,
            .finished_at = loop_.clock().Now()});
  }

  Loop& loop_;
  std::map<std::string, Container> containers_;
};

SimulatedRuntime::SimulatedRuntime(Loop& loop)
    : loop_(loop), state_(std::make_shared<State>(loop)) {}

SimulatedRuntime::~SimulatedRuntime() = default;

void SimulatedRuntime::Post(std::function<void(State&)> task) {
  loop_.Post([weak = std::weak_ptr(state_), task = std::move(task)] {
    if (const auto state = weak.lock()) task(*state);
  });
}

Owner SimulatedRuntime::FileOwner() const { return {geteuid(), getegid()}; }

void SimulatedRuntime::CreateSandbox(PodSandboxSpec spec, DoneCallback done) {
  Post([uid = std::move(spec.uid), done = std::move(done)](State& state) {
    if (!state.sandboxes_.insert(uid).second)
      return done(Fail(AlreadyExists({"", "sandboxes"}, uid)));
    done({});
  });
}

void SimulatedRuntime::RemoveSandbox(std::string uid, DoneCallback done) {
  Post([uid = std::move(uid), done = std::move(done)](State& state) {
    state.RemoveSandbox(uid);
    done({});
  });
}

void SimulatedRuntime::StartContainer(ContainerSpec spec, EventCallback events) {
  Post([spec = std::move(spec), events = std::move(events)](State& state) {
    state.Start(spec, events);
  });
}

void SimulatedRuntime::StopContainer(std::string id, int signal, Duration grace) {
  Post([id = std::move(id), signal, grace](State& state) { state.Stop(id, signal, grace); });
}

void SimulatedRuntime::RemoveContainer(std::string id) {
  Post([id = std::move(id)](State& state) { state.Remove(id); });
}

std::shared_ptr<Session> SimulatedRuntime::Exec(ExecSpec spec, SessionCallbacks callbacks) {
  auto session = std::make_shared<SilentSession>(loop_, std::move(callbacks.on_exit));
  Post([weak = std::weak_ptr(session), spec = std::move(spec)](State& state) {
    const auto self = weak.lock();
    if (!self) return;
    if (!state.Running(spec.container_id))
      return self->End(Fail(NotFound({"", "containers"}, spec.container_id)));
    self->End(Fail(InternalError("the container is simulated: no process runs in it")));
  });
  return session;
}

std::shared_ptr<Session> SimulatedRuntime::Attach(AttachSpec spec, SessionCallbacks callbacks) {
  auto session = std::make_shared<SilentSession>(loop_, std::move(callbacks.on_exit));
  Post([weak = std::weak_ptr(session), id = std::move(spec.container_id)](State& state) {
    const auto self = weak.lock();
    if (!self) return;
    State::Container* container = state.Running(id);
    if (!container) return self->End(Fail(NotFound({"", "containers"}, id)));
    container->attached.push_back(weak);
  });
  return session;
}

void SimulatedRuntime::Probe(HttpProbe probe, ProbeCallback done) {
  Probe(ExecProbe{.container_id = std::move(probe.container_id)}, std::move(done));
}

void SimulatedRuntime::Probe(TcpProbe probe, ProbeCallback done) {
  Probe(ExecProbe{.container_id = std::move(probe.container_id)}, std::move(done));
}

void SimulatedRuntime::Probe(GrpcProbe probe, ProbeCallback done) {
  Probe(ExecProbe{.container_id = std::move(probe.container_id)}, std::move(done));
}

void SimulatedRuntime::Probe(ExecProbe probe, ProbeCallback done) {
  Post([id = std::move(probe.container_id), done = std::move(done)](State& state) {
    const bool running = state.Running(id) != nullptr;
    done({running, running ? "" : "the container is not running"});
  });
}

void SimulatedRuntime::DialPort(std::string sandbox_uid, uint16_t port,
                                std::function<void(Result<int>)> done) {
  Post([uid = std::move(sandbox_uid), port, done = std::move(done)](State& state) {
    if (!state.sandboxes_.contains(uid)) return done(Fail(NotFound({"", "sandboxes"}, uid)));
    done(Fail(
        ServiceUnavailable(fmt::format("nothing listens on port {}: the Pod is simulated", port))));
  });
}

void SimulatedRuntime::Stats(std::string container_id,
                             std::function<void(Result<ContainerStats>)> done) {
  Post([id = std::move(container_id), done = std::move(done)](State& state) {
    if (!state.Running(id)) return done(Fail(NotFound({"", "containers"}, id)));
    done(ContainerStats{});
  });
}

}  // namespace sextant::kubelet
