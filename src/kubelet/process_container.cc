#include "kubelet/process_container.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <charconv>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "kubelet/init/launch_spec.h"
#include "kubelet/launch_records.h"
#include "kubelet/process_session.h"
#include "kubelet/process_stats.h"

namespace sextant::kubelet {
namespace {

constexpr size_t kStatusMax = 4096;
constexpr size_t kEarlyMax = 1024;
constexpr int kPidPatienceMs = 2000, kPidPauseMs = 10;
constexpr Duration kMemoryPeriod = std::chrono::milliseconds(200);
constexpr int kStartErrorCode = 128;  // containerd's code for a container that could not start

void AppendBounded(std::string& text, std::string_view data, size_t max) {
  text.append(data.substr(0, max - std::min(max, text.size())));
}

// {"child-pid": 1234, …}
pid_t ParseChildPid(std::string_view json) {
  constexpr std::string_view kKey = "\"child-pid\":";
  size_t at = json.find(kKey);
  if (at == json.npos) return -1;
  at += kKey.size();
  while (at < json.size() && json[at] == ' ') ++at;
  pid_t pid = -1;
  std::from_chars(json.data() + at, json.data() + json.size(), pid);
  return pid;
}

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

Result<Terminal> OpenTerminal() {
  Terminal terminal{Fd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), Fd()};
  if (!terminal.master.ok() || grantpt(terminal.master.get()) != 0 ||
      unlockpt(terminal.master.get()) != 0)
    return Fail(ErrnoError("open a terminal"));
  // By descriptor: the name in /dev/pts may be another mount's.
  terminal.slave = Fd(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave.ok()) return Fail(ErrnoError("open a terminal"));
  return terminal;
}

Result<Console> MakeConsole() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return Fail(ErrnoError("socketpair"));
  return Console{Fd(pair[0]), Fd(pair[1])};
}

Fd TakeConsole(Fd& console) {
  const Fd from = std::move(console);
  if (!from.ok()) return Fd();
  Result<std::optional<Fd>> master = ReceiveSocket(from);
  return master && *master ? std::move(**master) : Fd();
}

// ---- Launched

Result<std::unique_ptr<Launched>> Launched::Start(FdLoop& loop, SpawnRequest request, bool want_pid,
                                                  Handlers handlers) {
  std::unique_ptr<Launched> self(new Launched(loop));
  self->handlers_ = std::move(handlers);
  ASSIGN_OR_RETURN(Pipe status, MakePipe());
  request.Give(std::move(status.write), kStatusFd);
  Launched* raw = self.get();
  Pipe info;
  if (want_pid) {
    ASSIGN_OR_RETURN(info, MakePipe());
    request.Give(std::move(info.write), kInfoFd);
  }
  ASSIGN_OR_RETURN(self->process_, Spawn(std::move(request)));
  self->status_ = std::make_unique<OutputPump>(
      loop, std::move(status.read),
      [raw](std::string_view data) { AppendBounded(raw->status_text_, data, kStatusMax); },
      [raw] { raw->Progress(); });
  if (want_pid)
    self->info_ = std::make_unique<OutputPump>(
        loop, std::move(info.read),
        [raw](std::string_view data) {
          AppendBounded(raw->info_text_, data, kStatusMax);
          raw->LearnPid();
        },
        [raw] { raw->Progress(); });
  self->watch_ = loop.Watch(self->process_.pidfd.get(), EPOLLIN, [raw](uint32_t) {
    raw->loop_.Unwatch(std::exchange(raw->watch_, 0));
    raw->wait_status_ = Reap(raw->process_);
    raw->exited_ = true;
    raw->status_->WriterEnded();
    if (raw->info_) raw->info_->WriterEnded();
    raw->Progress();
  });
  return self;
}

Launched::~Launched() {
  loop_.Unwatch(watch_);
  if (exited_ || process_.pid < 0) return;
  // Its monitor alone must not be killed: half-made, the program would stay behind. It names the
  // program at once or ends.
  for (int waited = 0; info_ && !pidfd_.ok() && waited < kPidPatienceMs; waited += kPidPauseMs) {
    pollfd ended{process_.pidfd.get(), POLLIN, 0};
    if (poll(&ended, 1, kPidPauseMs) > 0) break;
    info_->Drain();
    LearnPid();
  }
  if (pidfd_.ok())
    Signal(pidfd_, SIGKILL);
  else
    Signal(process_.pidfd, SIGKILL);
  Reap(process_);
}

void Launched::Send(int signal) {
  if (exited_) return;
  Signal(info_ ? pidfd_ : process_.pidfd, signal);
}

void Launched::Kill() {
  kill_when_known_ = true;
  Send(SIGKILL);
}

void Launched::LearnPid() {
  if (!info_ || pidfd_.ok() || exited_) return;
  pid_ = ParseChildPid(info_text_);
  if (pid_ <= 0) return;
  if (Result<Fd> fd = OpenPid(pid_)) pidfd_ = *std::move(fd);
  if (kill_when_known_) Signal(pidfd_, SIGKILL);
}

void Launched::Progress() {
  if (ended_) return;
  LearnPid();
  const bool known = !info_ || pidfd_.ok() || exited_;
  if (!status_->ended() || !known) return;
  const bool ready = status_text_ == std::string_view(&kReady, 1);
  if (ready && !running_) {
    running_ = true;
    handlers_.on_running();
    if (ended_) return;
  }
  if (!exited_) return;
  ended_ = true;
  std::string error;
  if (!ready) {
    error = status_text_.starts_with(kReady) ? status_text_.substr(1) : status_text_;
    if (error.empty()) error = "the sandbox could not be built";
  }
  handlers_.on_ended(wait_status_, std::move(error));  // may destroy this object's owner, not it
}

// ---- ProcessContainer

ProcessContainer::ProcessContainer(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox,
                                   ContainerSpec spec, EventCallback events)
    : core_(core),
      sandbox_(std::move(sandbox)),
      spec_(std::move(spec)),
      events_(std::move(events)) {}

ProcessContainer::~ProcessContainer() {
  core_.loop->Cancel(run_timer_);
  core_.loop->Cancel(kill_timer_);
  core_.loop->Cancel(memory_timer_);
}

std::optional<BuiltinScript> MakeBuiltin(const ProcessCore& core, const ContainerInput& input,
                                         const std::vector<std::string>& argv) {
  std::map<std::string, std::string> files;
  for (const Mount& mount : input.spec.mounts) {
    const std::string path = CleanPath(mount.container_path);
    if (mount.kind == Mount::Kind::kFile) files[path] = mount.content;
    if (mount.kind != Mount::Kind::kHostPath) continue;
    const Result<std::string> source = MountSource(mount);
    std::error_code error;
    if (!source || !std::filesystem::is_regular_file(*source, error)) continue;
    if (Result<std::string> text = ReadFile(*source, kMaxPlacedBytes))
      files[path] = *std::move(text);
  }
  for (auto& [path, content] : EtcFiles(input.sandbox, input.spec)) files[path] = content;
  return BuiltinScript::Parse(argv, FullEnvironment(input.sandbox, input.spec, kDefaultPath),
                              std::move(files), core.options.builtin_programs);
}

ContainerInput ProcessContainer::input(bool hold) const {
  return {*core_.toolbox, core_.identity, sandbox_->spec(), spec_, hold, beside_};
}

std::string ProcessContainer::root() const { return core_.directory + "/containers/" + spec_.id; }

void ProcessContainer::Start() {
  Result<LogWriter> log = LogWriter::Open(spec_.log_path, core_.options.log_limits, core_.clock);
  if (!log) return End(kStartErrorCode, 0, "StartError", log.error().message);
  log_ = std::make_unique<LogWriter>(*std::move(log));
  if (core_.unusable) return End(kStartErrorCode, 0, "StartError", core_.unusable->message);

  if (core_.level == Level::kBuiltIn) {
    if (spec_.simulated) return StartSimulated("the Pod asks to be simulated");
    std::optional<BuiltinScript> script = MakeBuiltin(core_, input(false), spec_.argv);
    if (!script)
      return StartSimulated("without isolation only simple commands of the toolbox are run");
    return StartBuiltin(*std::move(script));
  }
  const Toolbox::Program program = core_.toolbox->Resolve(spec_);
  if (!program.runs) return StartSimulated(program.why);
  if (!spec_.target.empty() && core_.level == Level::kBubblewrap) return StartBeside();
  if (Status started = StartProgram(false); !started)
    End(kStartErrorCode, 0, "StartError", started.error().message);
}

// Among the processes of another container.
void ProcessContainer::StartBeside() {
  const auto fail = [this](const std::string& why) {
    End(kStartErrorCode, 0, "StartError", "target container: " + why);
  };
  const auto target = core_.Find(spec_.target);
  if (!target) return fail(fmt::format("container {} is not running", spec_.target));
  target->WhenEnterable([weak = weak_from_this(), fail](Result<pid_t> pid) {
    const auto self = weak.lock();
    if (!self || self->ended_) return;
    if (!pid) return fail(pid.error().message);
    self->beside_ = *pid;
    if (Status started = self->StartProgram(false); !started) fail(started.error().message);
  });
}

Result<Stdio> ProcessContainer::MakeStdio() {
  const std::weak_ptr<ProcessContainer> weak = weak_from_this();
  const auto on_end = [weak] {
    if (const auto self = weak.lock()) self->MaybeEnd();
  };
  const auto on_data = [weak](LogStream stream) {
    return [weak, stream](std::string_view data) {
      if (const auto self = weak.lock()) self->OnOutput(stream, data);
    };
  };
  Stdio child{.tty = spec_.tty};
  if (spec_.tty && core_.level == Level::kBubblewrap) {
    ASSIGN_OR_RETURN(Console console, MakeConsole());
    console_ = std::move(console.ours);
    child.console = std::move(console.childs);
    // For what bwrap has to complain of; the program gets its terminal there too.
    ASSIGN_OR_RETURN(Pipe err, MakePipe());
    err_ = std::make_unique<OutputPump>(*core_.loop, std::move(err.read),
                                        on_data(LogStream::kStderr), on_end);
    child.err = std::move(err.write);
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
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  if (spec_.stdin_open) {
    ASSIGN_OR_RETURN(Pipe in, MakePipe());
    input_ = MakeInput(std::move(in.write));
    child.in = std::move(in.read);
  }
  out_ = std::make_unique<OutputPump>(*core_.loop, std::move(out.read), on_data(LogStream::kStdout),
                                      on_end);
  err_ = std::make_unique<OutputPump>(*core_.loop, std::move(err.read), on_data(LogStream::kStderr),
                                      on_end);
  if (core_.identity.drop) {
    // Programs open /dev/stdout again by name: that asks the pipe's owner.
    for (const Fd* end : {&out.write, &err.write})
      if (fchown(end->get(), core_.identity.drop->uid, core_.identity.drop->gid) != 0)
        return Fail(ErrnoError("chown of a pipe"));
  }
  child.out = std::move(out.write);
  child.err = std::move(err.write);
  return child;
}

void ProcessContainer::TakeTerminal(Fd master) {
  const std::weak_ptr<ProcessContainer> weak = weak_from_this();
  terminal_ = Duplicate(master);
  if (spec_.stdin_open) input_ = MakeInput(Duplicate(master));
  out_ = std::make_unique<OutputPump>(
      *core_.loop, std::move(master),
      [weak](std::string_view data) {
        if (const auto self = weak.lock()) self->OnOutput(LogStream::kStdout, data);
      },
      [weak] {
        if (const auto self = weak.lock()) self->MaybeEnd();
      });
}

std::unique_ptr<InputPump> ProcessContainer::MakeInput(Fd fd) {
  // The pump is ours, so `this` outlives it.
  return std::make_unique<InputPump>(*core_.loop, std::move(fd), [this](size_t bytes) {
    while (bytes > 0 && !owed_.empty()) {
      auto& [session, count] = owed_.front();
      const size_t part = std::min(bytes, count);
      if (const auto from = session.lock()) from->Taken(part);
      bytes -= part;
      count -= part;
      if (count == 0) owed_.pop_front();
    }
  });
}

void ProcessContainer::Input(std::string_view data, const std::shared_ptr<ProcessSession>& from) {
  if (!input_) {
    from->Taken(data.size());
    return;
  }
  owed_.emplace_back(from, data.size());
  input_->Write(data);
}

Result<SpawnRequest> ProcessContainer::MakeRequest(bool hold, Stdio stdio) {
  if (core_.level == Level::kBubblewrap)
    return BubblewrapContainer(input(hold), sandbox_->namespaces(), std::move(stdio));
  RETURN_IF_ERROR(MakeContainerRoot(spec_, sandbox_->spec(), core_.identity, root()));
  return LandlockContainer(input(hold), root(), std::move(stdio));
}

Status ProcessContainer::StartProgram(bool hold) {
  Stdio stdio;
  if (!hold) {
    ASSIGN_OR_RETURN(stdio, MakeStdio());
  }
  ASSIGN_OR_RETURN(SpawnRequest request, MakeRequest(hold, std::move(stdio)));
  const std::weak_ptr<ProcessContainer> weak = weak_from_this();
  Launched::Handlers handlers;
  handlers.on_running = [weak, hold] {
    const auto self = weak.lock();
    if (!self) return;
    if (!hold) {
      if (Fd master = TakeConsole(self->console_); master.ok()) {
        self->TakeTerminal(std::move(master));
      }
      return self->Started();
    }
    for (auto& done : std::exchange(self->waiting_for_body_, {})) done(self->program_->pid());
  };
  handlers.on_ended = [weak, hold](int wait_status, std::string error) {
    const auto self = weak.lock();
    if (!self) return;
    if (!hold) return self->OnProgramEnded(wait_status, std::move(error));
    for (auto& done : std::exchange(self->waiting_for_body_, {}))
      done(Fail(InternalError("the container cannot be entered: " + error)));
  };
  ASSIGN_OR_RETURN(program_,
                   Launched::Start(*core_.loop, std::move(request), true, std::move(handlers)));
  return {};
}

void ProcessContainer::WhenEnterable(std::function<void(Result<pid_t>)> done) {
  if (!running())
    return done(Fail(InternalError(fmt::format("container {} is not running", spec_.id))));
  if (program_ && program_->running() && !program_->ended()) return done(program_->pid());
  if (!simulated_) return done(Fail(InternalError("the container has no process")));
  waiting_for_body_.push_back(std::move(done));
  if (waiting_for_body_.size() > 1) return;
  if (Status started = StartProgram(true); !started)
    for (auto& waiting : std::exchange(waiting_for_body_, {})) waiting(Fail(started.error()));
}

void ProcessContainer::StartSimulated(std::string why) {
  simulated_ = true;
  simulated_why_ = std::move(why);
  Started();
  if (!spec_.run_for || ended_) return;
  run_timer_ = core_.loop->After(*spec_.run_for, [this] {
    const int code = spec_.simulated_exit_code;
    End(code, 0, code == 0 ? "Completed" : "Error", "");
  });
}

void ProcessContainer::StartBuiltin(BuiltinScript script) {
  script_ = std::move(script);
  Started();
  if (!ended_) StepBuiltin();
}

void ProcessContainer::StepBuiltin() {
  const BuiltinScript::Step step = script_->Run();
  if (!step.out.empty()) OnOutput(LogStream::kStdout, step.out);
  if (!step.err.empty()) OnOutput(LogStream::kStderr, step.err);
  if (step.ended) return End(step.exit_code, 0, step.exit_code == 0 ? "Completed" : "Error", "");
  if (step.sleep == Duration::max()) return;
  run_timer_ = core_.loop->After(step.sleep, [this] { StepBuiltin(); });
}

void ProcessContainer::Started() {
  started_ = true;
  started_at_ = core_.clock.Now();
  ContainerEvent event{.kind = ContainerEvent::Kind::kStarted,
                       .container_id = spec_.id,
                       .sandbox_uid = spec_.sandbox_uid,
                       .pid = program_ ? program_->pid() : 0,
                       .simulated = simulated_,
                       .message = simulated_why_,
                       .started_at = started_at_};
  core_.Deliver([events = events_, event = std::move(event)] { events(event); });
  if (program_ && spec_.limits.memory_bytes > 0) WatchMemory();
  if (pending_signal_ == 0) return;
  if (program_) return program_->Send(pending_signal_);
  End(128 + pending_signal_, pending_signal_, "Error", "");
}

// What a memory cgroup does, without one: looks every 200 ms at what the processes have together.
void ProcessContainer::WatchMemory() {
  memory_timer_ = core_.loop->After(kMemoryPeriod, [this] {
    if (ended_ || program_ended_ || !program_) return;
    if (ReadStats(program_->pid()).memory_bytes <= spec_.limits.memory_bytes) return WatchMemory();
    out_of_memory_ = true;
    program_->Kill();
  });
}

void ProcessContainer::Stop(int signal, Duration grace) {
  if (ended_) return;
  if (grace <= Duration{0}) signal = SIGKILL;
  if (!started_) {
    pending_signal_ = signal;
  } else if (!program_ || simulated_) {
    return End(128 + signal, signal, "Error", "");
  } else {
    program_->Send(signal);
  }
  if (signal == SIGKILL) return Kill();
  core_.loop->Cancel(kill_timer_);
  kill_timer_ = core_.loop->After(grace, [this] { Kill(); });
}

void ProcessContainer::Kill() {
  if (ended_) return;
  if (program_ && !simulated_) return program_->Kill();
  End(128 + SIGKILL, SIGKILL, "Error", "");
}

void ProcessContainer::OnOutput(LogStream stream, std::string_view data) {
  if (!started_) AppendBounded(early_, data, kEarlyMax);
  log_->Write(stream, data);
  for (AttachSession* session : std::set(attached_)) session->OnOutput(stream, data);
}

void ProcessContainer::OnProgramEnded(int wait_status, std::string error) {
  program_ended_ = true;
  wait_status_ = wait_status;
  program_error_ = std::move(error);
  if (out_) out_->WriterEnded();
  if (err_) err_->WriterEnded();
  MaybeEnd();
}

void ProcessContainer::MaybeEnd() {
  if (!program_ended_ || (out_ && !out_->ended()) || (err_ && !err_->ended())) return;
  if (!program_error_.empty()) {
    if (program_error_.starts_with("the sandbox") && !early_.empty())
      program_error_ += ": " + FirstLine(early_);
    return End(kStartErrorCode, 0, "StartError", program_error_);
  }
  // bwrap and sextant-init pass a signal on as 128 + signal, as a shell does.
  const int code = ExitCodeOf(wait_status_);
  const int signal = code > 128 && code <= 128 + 64 ? code - 128 : 0;
  if (out_of_memory_ && signal == SIGKILL) return End(code, signal, "OOMKilled", "");
  End(code, signal, code == 0 ? "Completed" : "Error", "");
}

void ProcessContainer::End(int exit_code, int signal, std::string reason, std::string message) {
  if (ended_) return;
  ended_ = true;
  const std::shared_ptr<ProcessContainer> self = shared_from_this();
  core_.loop->Cancel(std::exchange(run_timer_, 0));
  core_.loop->Cancel(std::exchange(kill_timer_, 0));
  core_.loop->Cancel(std::exchange(memory_timer_, 0));
  if (log_) log_->Finish();
  if (simulated_ && program_) program_->Kill();
  input_.reset();
  terminal_.Reset();
  for (AttachSession* session : std::set(attached_)) session->OnEnd(exit_code);
  ContainerEvent event{.kind = ContainerEvent::Kind::kExited,
                       .container_id = spec_.id,
                       .sandbox_uid = spec_.sandbox_uid,
                       .simulated = simulated_,
                       .exit_code = exit_code,
                       .signal = signal,
                       .reason = std::move(reason),
                       .message = std::move(message),
                       .started_at = started_at_,
                       .finished_at = core_.clock.Now()};
  if (!started_) event.started_at = event.finished_at;
  core_.Deliver([events = events_, event = std::move(event)] { events(event); });
  if (core_.level == Level::kLandlock) {
    std::error_code error;
    std::filesystem::remove_all(root(), error);
  }
  // Not from inside a callback of what is destroyed with us.
  core_.loop->Post([core = &core_, self] { core->Ended(self->spec_.id); });
}

void ProcessContainer::Release() {
  program_.reset();
  out_.reset();
  err_.reset();
}

void ProcessContainer::RemoveAttached(AttachSession* session) {
  attached_.erase(session);
  if (spec_.stdin_once && attached_.empty() && !spec_.tty) CloseInput();
}

void ProcessContainer::CloseInput() {
  if (input_) input_->CloseAfter(spec_.tty);
}

void ProcessContainer::Resize(uint16_t columns, uint16_t rows) {
  if (!terminal_.ok()) return;
  const winsize size{rows, columns, 0, 0};
  ioctl(terminal_.get(), TIOCSWINSZ, &size);
}

}  // namespace sextant::kubelet
