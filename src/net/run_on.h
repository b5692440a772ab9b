// Internal to net: runs tasks on I/O threads and waits for them.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "net/io.h"

namespace sextant::net {

// Counts down to zero; a part that is dropped unrun counts too, so that a stopped I/O thread keeps
// nobody waiting.
class Countdown {
 public:
  class Part {
   public:
    explicit Part(std::shared_ptr<Countdown> c) : c_(std::move(c)) {}
    Part(Part&&) = default;
    Part& operator=(Part&&) = delete;
    ~Part() {
      if (c_) c_->Done();
    }

   private:
    std::shared_ptr<Countdown> c_;
  };

  explicit Countdown(size_t parts) : left_(parts) {}
  void Wait() {
    std::unique_lock lock(mutex_);
    zero_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  void Done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable zero_;
  size_t left_;
};

// Runs `make(i)()` on each thread and waits for all. Not from one of them.
template <typename Make>
void RunOnAll(const std::vector<IoThread*>& threads, Make make) {
  const auto countdown = std::make_shared<Countdown>(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i]->Post([task = make(i), part = Countdown::Part(countdown)]() mutable { task(); });
  }
  countdown->Wait();
}

}  // namespace sextant::net
