// What the tests of ProcessRuntime share: a runtime with a sandbox "pod", and waiting for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/executor.h"
#include "base/file.h"
#include "kubelet/process_runtime.h"

namespace sextant::kubelet {

struct ExecRun {
  std::string out, err;
  Result<int> result = -1;
};

class RuntimeHost {
 public:
  explicit RuntimeHost(std::optional<Level> level,
                       std::function<void(ProcessRuntimeOptions&)> change = {});
  ~RuntimeHost();

  LogLimits log_limits;       // set before the first use
  ProcessRuntime& runtime();  // made at the first use
  bool Usable(Level level);   // else why()
  const std::string& why() const { return why_; }
  const std::string& directory() const { return directory_.path(); }
  std::string LogPath(const std::string& id) const;
  std::string MakeVolume(const std::string& name);  // a directory that containers may write to

  void AddSandbox(const std::string& uid, std::vector<std::string> ips);
  void RemoveSandbox(const std::string& uid);
  std::string Start(ContainerSpec spec);  // gives the id
  ContainerEvent Started(const std::string& id);
  ContainerEvent Ended(const std::string& id);
  ContainerEvent RunToEnd(ContainerSpec spec);
  std::string LogOf(ContainerSpec spec);  // runs to its end; the log's text without heads
  std::string ReadLog(const std::string& id);
  void WaitForLog(const std::string& id, const std::string& text);
  void WaitFor(const std::function<bool()>& condition);
  ExecRun Exec(ExecSpec spec, const std::string& input = "",
               std::optional<std::pair<uint16_t, uint16_t>> size = {});
  ExecRun Attach(AttachSpec spec, const std::string& input);
  template <typename P>
  ProbeResult Probe(P probe) {
    return Await<ProbeResult>([&](auto done) { runtime().Probe(std::move(probe), done); });
  }
  Result<int> Dial(const std::string& uid, uint16_t port);
  Result<ContainerStats> Stats(const std::string& id);
  void Close();  // destroys the runtime

 private:
  template <typename T>
  T Await(const std::function<void(std::function<void(T)>)>& start) {
    auto result = std::make_shared<std::optional<T>>();
    start([this, result](T value) {
      std::lock_guard lock(mutex_);
      *result = std::move(value);
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return result->has_value(); });
    return std::move(**result);
  }
  ContainerEvent WaitForEvent(const std::string& id, ContainerEvent::Kind kind);
  ExecRun Finish(const std::function<std::shared_ptr<Session>(SessionCallbacks)>& begin,
                 const std::string& input, std::optional<std::pair<uint16_t, uint16_t>> size);

  std::optional<Level> level_;
  std::function<void(ProcessRuntimeOptions&)> change_;
  TempDir directory_;
  std::string why_;
  RealClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, ContainerEvent::Kind>, ContainerEvent> events_;
  int next_id_ = 0;
  EventLoop loop_;
  std::unique_ptr<ProcessRuntime> runtime_;
};

// A server on the machine's own loopback that answers "reached".
class LoopbackServer {
 public:
  LoopbackServer();
  ~LoopbackServer();
  uint16_t port() const { return port_; }

 private:
  Fd listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

// Processes of this machine whose command line contains `mark`.
int CountProcesses(const std::string& mark);
// This test program as a lab with one container that sleeps for `mark`; gives its process id. Its
// files lie in `directory`: being killed, it cannot remove them.
pid_t StartLab(Level level, const std::string& mark, const std::string& directory);
void RunLab();  // inside it
// All tests again as nobody: the exit code.
int RunAsNobody();

}  // namespace sextant::kubelet
