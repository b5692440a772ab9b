// The registry of kinds as it is now; replaced as a whole when custom resources come or go.
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "api/schema.h"

namespace sextant::server {

class RegistrySource {
 public:
  using Registry = std::shared_ptr<const api::Registry>;
  // Called on the thread that sets, after each Set, as long as somebody holds it.
  using Listener = std::function<void(const api::Registry&)>;

  explicit RegistrySource(Registry first) : now_(std::move(first)) {}

  Registry Get() const {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Set(Registry next) {
    std::vector<std::shared_ptr<Listener>> told;
    {
      std::lock_guard lock(mutex_);
      now_ = next;
      std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
      for (const auto& listener : listeners_)
        if (auto live = listener.lock()) told.push_back(std::move(live));
    }
    for (const auto& listener : told) (*listener)(*next);
  }
  // A Set that runs at this moment may miss the new listener, or call one that is being dropped.
  std::shared_ptr<Listener> OnChange(Listener listener) {
    auto held = std::make_shared<Listener>(std::move(listener));
    std::lock_guard lock(mutex_);
    listeners_.push_back(held);
    return held;
  }

 private:
  mutable std::mutex mutex_;
  Registry now_;                                    // guarded by mutex_
  std::vector<std::weak_ptr<Listener>> listeners_;  // guarded by mutex_
};

}  // namespace sextant::server
