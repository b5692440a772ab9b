#include "base/strand.h"

namespace sextant {

void Strand::Add(const std::shared_ptr<State>& state, Task task) {
  {
    std::lock_guard lock(state->mutex);
    state->tasks.push_back(std::move(task));
    if (state->running) return;
    state->running = true;
  }
  state->pool.Post([state] { Run(state); });
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
  state->pool.Post([state] { Run(state); });
}

}  // namespace sextant
