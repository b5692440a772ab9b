// A strand: tasks run one after another, in the order in which they were posted, on the threads of
// another executor. What one watch or one connection needs to keep its order on a pool.
// Threads: Post from any. The strand may be dropped while tasks are queued: they still run. When
// the pool ends first, what is queued is dropped with it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "base/executor.h"

namespace sextant {

class Strand : public Executor {
 public:
  explicit Strand(Executor& pool) : state_(std::make_shared<State>(pool)) {}
  void Post(Task task) override { Add(state_, std::move(task)); }

 private:
  struct State {
    explicit State(Executor& on) : pool(on) {}
    Executor& pool;
    std::mutex mutex;
    std::deque<Task> tasks;  // guarded by mutex
    bool running = false;    // guarded by mutex
    bool ended = false;      // guarded by mutex; the pool ran its last task
  };
  class Turn;
  static void Add(const std::shared_ptr<State>& state, Task task);
  static void Run(const std::shared_ptr<State>& state);
  static void End(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace sextant
