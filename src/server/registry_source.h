// The registry of kinds as it is now; replaced as a whole when custom resources come or go.
// Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "api/schema.h"

namespace sextant::server {

class RegistrySource {
 public:
  explicit RegistrySource(std::shared_ptr<const api::Registry> first) : now_(std::move(first)) {}

  std::shared_ptr<const api::Registry> Get() const {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Set(std::shared_ptr<const api::Registry> next) {
    std::lock_guard lock(mutex_);
    now_ = std::move(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const api::Registry> now_;  // guarded by mutex_
};

}  // namespace sextant::server
