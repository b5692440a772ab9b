// One container of ProcessRuntime, from start to end. On the runtime's loop only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/builtin_script.h"
#include "kubelet/log_writer.h"
#include "kubelet/process_core.h"
#include "kubelet/stream_pump.h"

namespace sextant::kubelet {

// A spawned program with what sextant-init reports of it: used by containers and by exec.
class Launched {
 public:
  struct Handlers {
    std::function<void()> on_running;  // exec has happened, `pid` is known where asked for
    // The program ended, or never began: then `error` says why.
    std::function<void(int wait_status, std::string error)> on_ended;
  };
  // `want_pid`: wait for the info of the program's own process id (bwrap, restrict).
  static Result<std::unique_ptr<Launched>> Start(FdLoop& loop, SpawnRequest request, bool want_pid,
                                                 Handlers handlers);
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  // To the program, once it is known.
  void Send(int signal);
  void Kill();
  pid_t pid() const { return pid_ > 0 ? pid_ : process_.pid; }
  bool running() const { return running_; }
  bool ended() const { return ended_; }

 private:
  explicit Launched(FdLoop& loop) : loop_(loop) {}
  void Progress();
  void LearnPid();

  FdLoop& loop_;
  Handlers handlers_;
  Process process_;  // what we spawned: bwrap, or sextant-init
  pid_t pid_ = -1;   // the program
  Fd pidfd_;
  FdLoop::WatchId watch_ = 0;
  std::unique_ptr<OutputPump> status_, info_;
  std::string status_text_, info_text_;
  int wait_status_ = 0;
  bool kill_when_known_ = false;
  bool running_ = false;
  bool exited_ = false;  // reaped
  bool ended_ = false;   // on_ended called
};

class AttachSession;

// The script of a program that runs without a process, with the regular files that the container
// has. nullopt: the command needs more shell than there is.
std::optional<BuiltinScript> MakeBuiltin(const ProcessCore& core, const ContainerInput& input,
                                         const std::vector<std::string>& argv);

class ProcessContainer : public std::enable_shared_from_this<ProcessContainer> {
 public:
  ProcessContainer(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, ContainerSpec spec,
                   EventCallback events);
  ~ProcessContainer();

  void Start();
  void Stop(int signal, Duration grace);
  void Kill();
  // After the end: gives back what the process had.
  void Release();

  const ContainerSpec& spec() const { return spec_; }
  ProcessSandbox& sandbox() const { return *sandbox_; }
  bool simulated() const { return simulated_; }
  bool running() const { return started_ && !ended_; }
  bool ended() const { return ended_; }
  // The process to enter for exec; a simulated container first gets a body that only waits.
  void WhenEnterable(std::function<void(Result<pid_t>)> done);
  pid_t pid() const { return program_ && program_->running() ? program_->pid() : 0; }
  ContainerInput input(bool hold) const;
  std::string root() const;  // level landlock: the container's own directory

  void AddAttached(AttachSession* session) { attached_.insert(session); }
  void RemoveAttached(AttachSession* session);
  // From an attached client; `from` hears when the container has taken it.
  void Input(std::string_view data, const std::shared_ptr<ProcessSession>& from);
  void CloseInput();
  void Resize(uint16_t columns, uint16_t rows);

 private:
  Status StartProgram(bool hold);
  Result<SpawnRequest> MakeRequest(bool hold, Stdio stdio);
  Result<Stdio> MakeStdio();
  std::unique_ptr<InputPump> MakeInput(Fd fd);
  void TakeTerminal(Fd master);
  void StartBeside();
  void StartSimulated(std::string why);
  void StartBuiltin(BuiltinScript script);
  void StepBuiltin();
  void WatchMemory();
  void OnOutput(LogStream stream, std::string_view data);
  void OnProgramEnded(int wait_status, std::string error);
  void Started();
  void MaybeEnd();
  void End(int exit_code, int signal, std::string reason, std::string message);

  ProcessCore& core_;
  const std::shared_ptr<ProcessSandbox> sandbox_;
  const ContainerSpec spec_;
  const EventCallback events_;
  std::unique_ptr<LogWriter> log_;
  std::unique_ptr<Launched> program_;
  std::unique_ptr<OutputPump> out_, err_;
  std::unique_ptr<InputPump> input_;
  Fd console_;         // where the terminal is to come from
  Fd terminal_;        // for its size
  std::string early_;  // the first output: a sandbox that cannot be built complains there
  pid_t beside_ = 0;   // of the target's processes
  std::set<AttachSession*> attached_;
  std::vector<std::function<void(Result<pid_t>)>> waiting_for_body_;
  std::optional<BuiltinScript> script_;
  std::deque<std::pair<std::weak_ptr<ProcessSession>, size_t>> owed_;  // of what is in input_
  TimerId run_timer_ = 0, kill_timer_ = 0, memory_timer_ = 0;
  std::string simulated_why_;
  Time started_at_{};
  int pending_signal_ = 0;  // Stop before the program ran
  int wait_status_ = 0;
  std::string program_error_;
  bool simulated_ = false;
  bool started_ = false;
  bool program_ended_ = false;
  bool out_of_memory_ = false;
  bool ended_ = false;
};

}  // namespace sextant::kubelet
