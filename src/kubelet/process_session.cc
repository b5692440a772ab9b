#include "kubelet/process_session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "base/check.h"
#include "base/quote.h"

namespace sextant::kubelet {
namespace {

// runc's words for a program that cannot be run, as containerd passes them on.
constexpr std::string_view kExecFailed =
    "OCI runtime exec failed: exec failed: unable to start container process: ";

class SessionHandle : public Session {
 public:
  SessionHandle(std::shared_ptr<FdLoop> loop, std::shared_ptr<ProcessSession> session)
      : loop_(std::move(loop)), session_(std::move(session)) {}
  ~SessionHandle() override {
    session_->dropped.store(true);
    Post([](ProcessSession& session) { session.Cancel(); });
  }

  bool Write(std::string_view data) override {
    const size_t queued = session_->queued_input.load();
    if (queued > 0 && queued + data.size() > kSessionInputMax) {
      session_->refused.store(true);
      Post([](ProcessSession& session) { session.Taken(0); });  // it may all be gone by now
      return false;
    }
    session_->queued_input.fetch_add(data.size());
    Post([text = std::string(data)](ProcessSession& session) { session.Write(text); });
    return true;
  }
  void CloseStdin() override {
    Post([](ProcessSession& session) { session.CloseStdin(); });
  }
  void Resize(uint16_t columns, uint16_t rows) override {
    Post([columns, rows](ProcessSession& session) { session.Resize(columns, rows); });
  }
  void Consumed(size_t bytes) override {
    const size_t before = session_->outstanding.fetch_sub(bytes);
    if (before > kSessionWindow && before - bytes <= kSessionWindow)
      Post([](ProcessSession& session) { session.Pause(false); });
  }
  void Cancel() override {
    Post([](ProcessSession& session) { session.Cancel(); });
  }

 private:
  template <typename Call>
  void Post(Call call) {
    loop_->Post([session = session_, call = std::move(call)] { call(*session); });
  }

  const std::shared_ptr<FdLoop> loop_;
  const std::shared_ptr<ProcessSession> session_;
};

// An exec'd program in a container of the levels with processes.
class ExecSession : public ProcessSession {
 public:
  ExecSession(ProcessCore& core, ExecSpec spec, SessionCallbacks callbacks)
      : ProcessSession(core, std::move(callbacks)), spec_(std::move(spec)) {}

  void Begin() override {
    container_ = core_.Find(spec_.container_id);
    if (!container_ || !container_->running())
      return Finish(Fail(NotFound({"", "containers"}, spec_.container_id)));
    if (spec_.argv.empty()) return Finish(Fail(BadRequest("you must specify at least 1 command")));
    if (core_.level == Level::kBuiltIn) return RunBuiltin();
    if (core_.level == Level::kLandlock) return StartWith(0);
    container_->WhenEnterable([weak = weak_from_this()](Result<pid_t> pid) {
      const auto self = std::static_pointer_cast<ExecSession>(weak.lock());
      if (!self || self->finished()) return;
      if (!pid) return self->Finish(Fail(pid.error()));
      self->StartWith(*pid);
    });
  }

  void Write(std::string data) override {
    if (starting()) {
      early_input_ += data;  // bounded by kSessionInputMax: not yet taken off queued_input
      return;
    }
    if (input_) return input_->Write(data);
    Taken(data.size());
  }
  void CloseStdin() override {
    if (input_ && !starting()) input_->CloseAfter(spec_.tty);
    close_early_ = true;
  }
  void Resize(uint16_t columns, uint16_t rows) override {
    size_ = winsize{rows, columns, 0, 0};
    if (terminal_.ok()) ioctl(terminal_.get(), TIOCSWINSZ, &size_);
  }
  void Cancel() override {
    if (finished()) return;
    cancelled_ = true;
    if (program_ && !ended_) return program_->Kill();
    Finish(Fail(InternalError("cancelled")));
  }
  void OnContainerEnded(const std::string& id) override {
    // With namespaces it has been killed already.
    if (program_ && id == spec_.container_id) program_->Kill();
  }
  void Release() override {
    core_.loop->Cancel(std::exchange(timer_, 0));
    program_.reset();
    input_.reset();
    out_.reset();
    err_.reset();
    container_.reset();
  }
  void Pause(bool paused) override {
    if (out_) out_->Pause(paused);
    if (err_) err_->Pause(paused);
  }

 private:
  // Until the program runs there may be no terminal, or none whose Ctrl-C would reach it.
  bool starting() const { return !running_ && !finished(); }

  void StartWith(pid_t target) {
    if (Status started = TryStart(target); !started) Finish(Fail(started.error()));
  }

  Status TryStart(pid_t target) {
    ASSIGN_OR_RETURN(Stdio stdio, MakeStdio());
    Result<SpawnRequest> request =
        core_.level == Level::kBubblewrap
            ? ExecInContainer(container_->input(false), container_->sandbox().namespaces(), target,
                              spec_.argv, std::move(stdio))
            : LandlockExec(container_->input(false), container_->root(), spec_.argv,
                           std::move(stdio));
    if (!request) return Fail(request.error());
    const auto weak = weak_from_this();
    Launched::Handlers handlers;
    handlers.on_running = [weak] {
      if (const auto self = std::static_pointer_cast<ExecSession>(weak.lock())) self->OnRunning();
    };
    handlers.on_ended = [weak](int wait_status, std::string error) {
      if (const auto self = std::static_pointer_cast<ExecSession>(weak.lock()))
        self->OnEnded(wait_status, std::move(error));
    };
    ASSIGN_OR_RETURN(
        program_, Launched::Start(*core_.loop, *std::move(request), core_.level == Level::kLandlock,
                                  std::move(handlers)));
    if (spec_.timeout > Duration{0})
      timer_ = core_.loop->After(spec_.timeout, [this] {
        program_->Kill();
        // A program that cannot be killed at once must not hold the caller up.
        Finish(Fail(
            Timeout(fmt::format("command timed out after {}", FormatDuration(spec_.timeout)), 0)));
      });
    return {};
  }

  void OnRunning() {
    if (finished()) return;
    running_ = true;
    if (Fd master = TakeConsole(console_); master.ok()) TakeTerminal(std::move(master));
    if (!early_input_.empty()) Write(std::exchange(early_input_, {}));
    if (close_early_) CloseStdin();
  }

  void TakeTerminal(Fd master) {
    const auto weak = weak_from_this();
    const auto with_self = [weak](auto call) {
      if (const auto self = std::static_pointer_cast<ExecSession>(weak.lock())) call(*self);
    };
    if (size_.ws_col != 0) ioctl(master.get(), TIOCSWINSZ, &size_);
    terminal_ = Duplicate(master);
    if (spec_.use_stdin)
      input_ = std::make_unique<InputPump>(
          *core_.loop, Duplicate(master),
          [with_self](size_t bytes) { with_self([&](ExecSession& s) { s.Taken(bytes); }); });
    out_ = std::make_unique<OutputPump>(
        *core_.loop, std::move(master),
        [with_self](std::string_view data) {
          with_self([&](ExecSession& s) { s.OnOutput(LogStream::kStdout, data); });
        },
        [with_self] { with_self([](ExecSession& s) { s.MaybeFinish(); }); });
  }

  Result<Stdio> MakeStdio() {
    const auto weak = weak_from_this();
    const auto on_data = [weak](LogStream stream) {
      return [weak, stream](std::string_view data) {
        if (const auto self = std::static_pointer_cast<ExecSession>(weak.lock()))
          self->OnOutput(stream, data);
      };
    };
    const auto on_end = [weak] {
      if (const auto self = std::static_pointer_cast<ExecSession>(weak.lock())) self->MaybeFinish();
    };
    const auto on_written = [weak](size_t bytes) {
      if (const auto self = weak.lock()) self->Taken(bytes);
    };
    Stdio child{.tty = spec_.tty};
    if (spec_.tty && core_.level == Level::kBubblewrap) {
      ASSIGN_OR_RETURN(Console console, MakeConsole());
      console_ = std::move(console.ours);
      child.console = std::move(console.childs);
      return child;
    }
    if (spec_.tty) {
      ASSIGN_OR_RETURN(Terminal terminal, OpenTerminal());
      TakeTerminal(std::move(terminal.master));
      child.in = Duplicate(terminal.slave);
      child.out = Duplicate(terminal.slave);
      child.err = std::move(terminal.slave);
      return child;
    }
    if (spec_.use_stdin) {
      ASSIGN_OR_RETURN(Pipe in, MakePipe());
      input_ = std::make_unique<InputPump>(*core_.loop, std::move(in.write), on_written);
      child.in = std::move(in.read);
    }
    if (spec_.use_stdout) {
      ASSIGN_OR_RETURN(Pipe out, MakePipe());
      out_ = std::make_unique<OutputPump>(*core_.loop, std::move(out.read),
                                          on_data(LogStream::kStdout), on_end);
      child.out = std::move(out.write);
    }
    if (spec_.use_stderr) {
      ASSIGN_OR_RETURN(Pipe err, MakePipe());
      err_ = std::make_unique<OutputPump>(*core_.loop, std::move(err.read),
                                          on_data(LogStream::kStderr), on_end);
      child.err = std::move(err.write);
    }
    return child;
  }

  void OnOutput(LogStream stream, std::string_view data) {
    Emit(stream, data);
    if (outstanding.load() > kSessionWindow && !dropped.load()) {
      Pause(true);
      // Consumed may have come between the two lines above.
      if (outstanding.load() <= kSessionWindow) Pause(false);
    }
  }

  void OnEnded(int wait_status, std::string error) {
    ended_ = true;
    wait_status_ = wait_status;
    error_ = std::move(error);
    if (out_) out_->WriterEnded();
    if (err_) err_->WriterEnded();
    if (cancelled_ || dropped.load()) return Finish(Fail(InternalError("cancelled")));
    MaybeFinish();
  }

  void MaybeFinish() {
    if (!ended_ || (out_ && !out_->ended()) || (err_ && !err_->ended())) return;
    if (!error_.empty()) return Finish(Fail(InternalError(std::string(kExecFailed) + error_)));
    Finish(ExitCodeOf(wait_status_));
  }

  // Without isolation: at once, and only what needs no waiting.
  void RunBuiltin() {
    script_ = MakeBuiltin(core_, container_->input(false), spec_.argv);
    if (!script_)
      return Finish(Fail(InternalError(std::string(kExecFailed) + "exec: " + Quote(spec_.argv[0]) +
                                       ": the isolation level \"built-in\" runs only simple "
                                       "commands of the toolbox")));
    StepBuiltin();
  }
  void StepBuiltin() {
    const BuiltinScript::Step step = script_->Run();
    if (!step.out.empty()) Emit(LogStream::kStdout, step.out);
    if (!step.err.empty()) Emit(LogStream::kStderr, step.err);
    if (step.ended) return Finish(step.exit_code);
    if (step.sleep != Duration::max())
      timer_ = core_.loop->After(step.sleep, [this] {
        if (!finished()) StepBuiltin();
      });
  }

  const ExecSpec spec_;
  std::shared_ptr<ProcessContainer> container_;
  std::unique_ptr<Launched> program_;
  std::unique_ptr<OutputPump> out_, err_;
  std::unique_ptr<InputPump> input_;
  std::optional<BuiltinScript> script_;
  Fd console_;  // where the terminal is to come from
  Fd terminal_;
  winsize size_{};
  std::string early_input_;
  std::string error_;
  TimerId timer_ = 0;
  int wait_status_ = 0;
  bool close_early_ = false;
  bool running_ = false;
  bool cancelled_ = false;
  bool ended_ = false;
};

}  // namespace

void ProcessSession::Emit(LogStream stream, std::string_view data) {
  if (finished_ || dropped.load()) return;
  outstanding.fetch_add(data.size());
  core_.Deliver([self = shared_from_this(), stream, text = std::string(data)] {
    if (self->dropped.load()) return;
    const auto& callback =
        stream == LogStream::kStdout ? self->callbacks_.on_stdout : self->callbacks_.on_stderr;
    if (callback) callback(text);
  });
}

void ProcessSession::Taken(size_t bytes) {
  const size_t left = queued_input.fetch_sub(bytes) - bytes;
  if (left > kSessionInputMax / 2 || !refused.exchange(false)) return;
  core_.Deliver([self = shared_from_this()] {
    if (!self->dropped.load() && self->callbacks_.on_writable) self->callbacks_.on_writable();
  });
}

void ProcessSession::Finish(Result<int> result) {
  if (std::exchange(finished_, true)) return;
  core_.Deliver([self = shared_from_this(), result = std::move(result)] {
    if (!self->dropped.load() && self->callbacks_.on_exit) self->callbacks_.on_exit(result);
  });
  // Not from inside a callback of what is destroyed with us.
  core_.loop->Post([core = &core_, self = shared_from_this()] {
    self->Release();
    core->sessions.erase(self);
  });
}

std::shared_ptr<Session> MakeHandle(std::shared_ptr<FdLoop> loop,
                                    std::shared_ptr<ProcessSession> session) {
  return std::make_shared<SessionHandle>(std::move(loop), std::move(session));
}

std::shared_ptr<ProcessSession> MakeExec(ProcessCore& core, ExecSpec spec,
                                         SessionCallbacks callbacks) {
  return std::make_shared<ExecSession>(core, std::move(spec), std::move(callbacks));
}

std::shared_ptr<ProcessSession> MakeAttach(ProcessCore& core, AttachSpec spec,
                                           SessionCallbacks callbacks) {
  return std::make_shared<AttachSession>(core, std::move(spec), std::move(callbacks));
}

// ---- AttachSession

void AttachSession::Begin() {
  container_ = core_.Find(spec_.container_id);
  if (!container_ || !container_->running())
    return Finish(Fail(NotFound({"", "containers"}, spec_.container_id)));
  container_->AddAttached(this);
}

void AttachSession::Write(std::string data) {
  if (!finished() && spec_.use_stdin && container_)
    return container_->Input(data, shared_from_this());
  Taken(data.size());
}

void AttachSession::CloseStdin() {
  if (!finished() && spec_.use_stdin && container_ && container_->spec().stdin_once)
    container_->CloseInput();
}

void AttachSession::Resize(uint16_t columns, uint16_t rows) {
  if (!finished() && container_) container_->Resize(columns, rows);
}

void AttachSession::Cancel() {
  Detach();
  Finish(Fail(InternalError("detached")));
}

void AttachSession::Detach() {
  if (container_) container_->RemoveAttached(this);
  container_.reset();
}

void AttachSession::OnOutput(LogStream stream, std::string_view data) {
  const bool wanted = stream == LogStream::kStdout ? spec_.use_stdout : spec_.use_stderr;
  if (!wanted) return;
  if (outstanding.load() + data.size() > 2 * kSessionWindow) {
    // The container does not wait for who looks on.
    Detach();
    return Finish(Fail(InternalError("the attached client reads too slowly")));
  }
  Emit(stream, data);
}

void AttachSession::OnEnd(int exit_code) {
  Detach();
  Finish(exit_code);
}

}  // namespace sextant::kubelet
