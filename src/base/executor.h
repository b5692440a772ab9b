// Where work runs. Rooms never make threads of their own: they are handed an Executor.
//
// The core thread of a lab is one EventLoop (DESIGN, law 2): it orders everything and takes no
// locks; workers are a ThreadPool that computes over immutable snapshots. A task never blocks on
// an EventLoop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sextant {

using Task = std::move_only_function<void()>;

// Threads: all methods may be called from any thread. Tasks posted by one thread to one serial
// executor run in the order in which they were posted.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
};

using TimerId = uint64_t;  // 0: no timer

// A serial executor: one task at a time, with timers.
class Loop : public Executor {
 public:
  // Runs `task` once after `delay`. The timer can be cancelled until it has run.
  virtual TimerId After(Duration delay, Task task) = 0;
  // False if it has run already, is unknown or 0.
  virtual bool Cancel(TimerId id) = 0;
  virtual const Clock& clock() const = 0;
  // True on the thread that runs this loop's tasks: for checks.
  virtual bool OnLoop() const = 0;
};

// A Loop with a thread of its own. The destructor stops it: tasks not yet begun are dropped.
// `clock` must run with real time. Timers that are due run after the tasks posted before.
class EventLoop : public Loop {
 public:
  EventLoop(std::string name, const Clock& clock);
  ~EventLoop() override;
  void Post(Task task) override;
  TimerId After(Duration delay, Task task) override;
  bool Cancel(TimerId id) override;
  const Clock& clock() const override { return clock_; }
  bool OnLoop() const override;
  void Stop();  // joins; idempotent; not from the loop's own thread

 private:
  void Run();

  const std::string name_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_;                              // guarded by mutex_
  std::map<std::pair<Duration, TimerId>, Task> timers_;  // guarded by mutex_
  std::unordered_map<TimerId, Duration> deadlines_;      // guarded by mutex_
  TimerId next_timer_ = 1;                               // guarded by mutex_
  std::atomic<bool> stopping_ = false;                   // set under mutex_
  std::atomic<std::thread::id> thread_id_;
  std::thread thread_;
};

// Tasks run side by side on `threads` threads, begun in the order in which they were posted.
class ThreadPool : public Executor {
 public:
  ThreadPool(std::string name, int threads);
  ~ThreadPool() override;
  void Post(Task task) override;
  void Stop();  // joins; idempotent; not from one of its own threads

 private:
  void Run(int index);

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;  // guarded by mutex_
  bool stopping_ = false;   // guarded by mutex_
  std::vector<std::thread> threads_;
};

// A Loop for tests and for virtual time: nothing runs until the owner says so, time moves only
// when Advance moves it. One thread.
class ManualLoop : public Loop, public Clock {
 public:
  explicit ManualLoop(Time start = Time{std::chrono::seconds{1'767'225'600}});  // 2026-01-01
  void Post(Task task) override;
  TimerId After(Duration delay, Task task) override;
  bool Cancel(TimerId id) override;
  const Clock& clock() const override { return *this; }
  bool OnLoop() const override { return true; }
  Time Now() const override { return start_ + elapsed_; }
  Duration Monotonic() const override { return elapsed_; }

  // Runs posted tasks and due timers until none is left, without moving time. Returns how many
  // ran.
  int RunReady();
  // Moves time forward by `d`, running tasks and timers in their order on the way.
  int Advance(Duration d);

 private:
  const Time start_;
  Duration elapsed_{0};
  std::vector<Task> tasks_;
  std::map<std::pair<Duration, TimerId>, Task> timers_;
  std::unordered_map<TimerId, Duration> deadlines_;
  TimerId next_timer_ = 1;
};

}  // namespace sextant
