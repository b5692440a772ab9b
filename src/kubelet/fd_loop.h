// A thread that waits for file descriptors: pipes, sockets, terminals and pidfds of the processes
// that the runtime started. Children are spawned on it, since a child that asks to die with its
// parent dies with the *thread* that made it.
//
//   loop.Post([&] { loop.Watch(fd, EPOLLIN, [](uint32_t events) { ... }); });
//
// Threads: Post, Stop and OnLoop from any; all else on the loop's thread only. A callback may
// remove any watch, its own too; it is then not called again, even if its event was already seen.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "kubelet/fd.h"

namespace sextant::kubelet {

class FdLoop {
 public:
  using WatchId = uint64_t;  // 0: none
  using FdCallback = std::function<void(uint32_t events)>;

  FdLoop(std::string name, const Clock& clock);
  ~FdLoop();  // Stop

  void Post(Task task);
  void Stop();  // joins; tasks not yet begun are dropped. Not from the loop's own thread
  bool OnLoop() const { return thread_id_.load() == std::this_thread::get_id(); }
  const Clock& clock() const { return clock_; }

  // The descriptor must stay open until Unwatch.
  WatchId Watch(int fd, uint32_t events, FdCallback callback);
  void Modify(WatchId id, uint32_t events);
  void Unwatch(WatchId id);

  TimerId After(Duration delay, Task task);
  void Cancel(TimerId id);

 private:
  struct Watched {
    int fd;
    FdCallback callback;
  };
  void Run();
  void RunTasks();
  int RunTimers();  // milliseconds until the next one, -1: none

  const std::string name_;
  const Clock& clock_;
  Fd epoll_;
  Fd wake_;
  std::mutex mutex_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::unordered_map<WatchId, std::shared_ptr<Watched>> watches_;
  WatchId next_watch_ = 1;
  std::map<std::pair<Duration, TimerId>, Task> timers_;
  std::unordered_map<TimerId, Duration> deadlines_;
  TimerId next_timer_ = 1;
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

}  // namespace sextant::kubelet
