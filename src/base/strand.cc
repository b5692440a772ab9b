#include "base/strand.h"

#include <utility>

namespace sextant {

// What the pool holds: one turn of the strand. A pool that ends drops it without running it; then
// the strand's queue goes as well, for its tasks may hold the strand's owner.
class Strand::Turn {
 public:
  explicit Turn(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Turn(Turn&&) = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (state_) End(*state_);
  }
  void operator()() { Run(std::exchange(state_, nullptr)); }

 private:
  std::shared_ptr<State> state_;
};

void Strand::Add(const std::shared_ptr<State>& state, Task task) {
  {
    std::lock_guard lock(state->mutex);
    if (state->ended) return;
    state->tasks.push_back(std::move(task));
    if (state->running) return;
    state->running = true;
  }
  state->pool.Post(Turn(state));
}

// Runs one task a turn, so that a busy strand does not hold a thread of the pool for itself.
void Strand::Run(const std::shared_ptr<State>& state) {
  Task task;
  {
    std::lock_guard lock(state->mutex);
    task = std::move(state->tasks.front());
    state->tasks.pop_front();
  }
  task();
  {
    std::lock_guard lock(state->mutex);
    if (state->tasks.empty()) {
      state->running = false;
      return;
    }
  }
  state->pool.Post(Turn(state));
}

void Strand::End(State& state) {
  std::deque<Task> dropped;  // outside the lock: a task that goes may post another
  std::lock_guard lock(state.mutex);
  state.ended = true;
  dropped.swap(state.tasks);
}

}  // namespace sextant
