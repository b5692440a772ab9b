// The inside of ProcessRuntime: what its thread owns. Everything here runs on `loop` only, except
// Deliver and the constructor.
#pragma once

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "kubelet/fd_loop.h"
#include "kubelet/isolation.h"
#include "kubelet/process_runtime.h"

namespace sextant::kubelet {

class ProcessContainer;
class ProcessSession;

// A Pod's sandbox. At the levels without namespaces it has a spec only.
class ProcessSandbox {
 public:
  using SocketCallback = std::function<void(Result<Fd>)>;

  ProcessSandbox(ProcessCore& core, PodSandboxSpec spec) : core_(core), spec_(std::move(spec)) {}
  ~ProcessSandbox();
  ProcessSandbox(const ProcessSandbox&) = delete;
  ProcessSandbox& operator=(const ProcessSandbox&) = delete;

  // Starts the pause process and waits for its namespaces.
  void Start(DoneCallback done);
  // A new non-blocking socket in the Pod's network.
  void NewSocket(int domain, int type, SocketCallback done);
  const PodSandboxSpec& spec() const { return spec_; }
  const SandboxNamespaces& namespaces() const { return namespaces_; }

 private:
  void OnControl();
  void Broken(const Error& error);

  ProcessCore& core_;
  const PodSandboxSpec spec_;
  Process pause_;
  Fd control_;
  SandboxNamespaces namespaces_;
  FdLoop::WatchId watch_ = 0;
  TimerId timer_ = 0;
  DoneCallback starting_;
  std::deque<SocketCallback> waiting_;  // answers come in the order of the requests
};

class ProcessCore {
 public:
  ProcessCore(ProcessRuntimeOptions options, const Clock& clock, Executor& callbacks);
  ~ProcessCore();

  // Finds the level; first thing on the loop.
  void SetUp();
  // Runs `call` on the callbacks' executor, unless the runtime is gone by then.
  template <typename Call>
  void Deliver(Call call) {
    callbacks.Post([alive = alive_, call = std::move(call)]() mutable {
      if (alive->load()) call();
    });
  }
  std::shared_ptr<ProcessContainer> Find(const std::string& id) const;
  std::shared_ptr<ProcessSandbox> FindSandbox(const std::string& uid) const;
  // Called by a container at its end.
  void Ended(const std::string& id);
  void Shutdown();

  const ProcessRuntimeOptions options;
  const Clock& clock;
  Executor& callbacks;
  const Identity identity;
  const std::shared_ptr<FdLoop> loop;  // sessions hold it too

  // Written by SetUp, then constant. Other threads wait for `ready`.
  Level level = Level::kBuiltIn;
  std::string explanation;
  std::optional<Toolbox> toolbox;
  std::optional<Error> unusable;  // the forced level does not work
  std::shared_future<void> ready;

  std::map<std::string, std::shared_ptr<ProcessSandbox>> sandboxes;
  std::map<std::string, std::shared_ptr<ProcessContainer>> containers;
  std::set<std::string> removing;  // containers to be forgotten at their end
  std::multimap<std::string, DoneCallback> sandbox_removals;  // wait for their containers
  std::set<std::shared_ptr<ProcessSession>> sessions;         // until on_exit

 private:
  std::string WorkDirectory();
  bool TryLevel(kubelet::Level candidate, const std::string& directory);

  std::promise<void> ready_promise_;
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);

 public:
  std::string directory;       // of toolbox and containers
  bool own_directory = false;  // made by us, removed at the end
};

// A terminal pair; the master non-blocking.
struct Terminal {
  Fd master, slave;
};
Result<Terminal> OpenTerminal();

// Where a program that opens its terminal itself sends the master (Stdio::console).
struct Console {
  Fd ours, childs;
};
Result<Console> MakeConsole();
// The master, once the program runs; closed where none came. Nothing comes at `console` any more.
Fd TakeConsole(Fd& console);

}  // namespace sextant::kubelet
