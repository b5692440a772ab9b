#include "host/machine.h"

namespace sextant::host {

std::shared_ptr<void> SimulatedMachine::OnChange(std::function<void()> changed) {
  const uint64_t id = next_++;
  listeners_.emplace(id, std::move(changed));
  return std::shared_ptr<void>(nullptr, [this, alive = alive_, id](void*) {
    if (*alive) listeners_.erase(id);
  });
}

void SimulatedMachine::SetCards(gpu::Inventory cards) {
  if (cards == cards_) return;
  cards_ = std::move(cards);
  Tell();
}

void SimulatedMachine::SetSpec(MachineSpec spec) {
  if (std::exchange(told_, true) && spec == spec_) return;
  spec_ = std::move(spec);
  Tell();
}

void SimulatedMachine::Tell() {
  loop_.Post([this, alive = alive_] {
    if (!*alive) return;
    const auto listeners = listeners_;  // one may drop its handle, or the host, while it is told
    for (const auto& [id, changed] : listeners) {
      if (!*alive) return;
      if (listeners_.contains(id)) changed();
    }
  });
}

}  // namespace sextant::host
