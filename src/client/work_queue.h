// WorkQueue: what a controller has to look at, each thing once, failures again later.
//
//   WorkQueue<ObjectName> queue(loop, {.parallel = 4}, [&](const ObjectName& name, auto done) {
//     Reconcile(name, std::move(done));        // done({}) or done(Fail(error)), now or later
//   });
//   informer.Subscribe([&](const Change& change) { queue.Add(change.name()); });
//
// The rules are those of client-go's workqueue: a key that waits is not queued twice; a key added
// while it is worked on is worked on again afterwards, never twice at the same time; a failed key
// comes back after 5 ms, 10 ms, 20 ms ... at most 1000 s, until it succeeds once
// (util/workqueue/default_rate_limiters.go). One rule is ours: work that took long is begun again
// after as long a rest, so that a key that every event touches (a DaemonSet on thousands of nodes)
// takes no more than half of the time.
//
// Threads: everything on the loop. `work` is never called inline from Add. Destroying the queue
// ends it: work begun may still call its `done`, which then does nothing.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/check.h"
#include "base/executor.h"
#include "base/status.h"

namespace sextant::client {

struct WorkQueueOptions {
  int parallel = 1;  // keys worked on at the same time
  Duration base_delay = std::chrono::milliseconds(5);
  Duration max_delay = std::chrono::seconds(1000);
};

// Key: copyable, ordered by <.
template <typename Key>
class WorkQueue {
 public:
  using Done = std::move_only_function<void(Status)>;
  using Work = std::function<void(const Key& key, Done done)>;

  WorkQueue(Loop& loop, WorkQueueOptions options, Work work)
      : loop_(loop), options_(options), work_(std::move(work)) {
    CHECK(options_.parallel > 0);
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() {
    *alive_ = false;
    for (const auto& [key, waiting] : later_) loop_.Cancel(waiting.timer);
    for (const auto& [key, timer] : resting_) loop_.Cancel(timer);
  }

  void Add(const Key& key) {
    DCHECK(loop_.OnLoop());
    if (!dirty_.insert(key).second) return;
    if (working_.contains(key) || resting_.contains(key)) return;
    ready_.push_back(key);
    Schedule();
  }

  // Adds after `delay`; of several the earliest counts.
  void AddAfter(const Key& key, Duration delay) {
    if (delay <= Duration{0}) return Add(key);
    const Duration due = loop_.clock().Monotonic() + delay;
    const auto found = later_.find(key);
    if (found != later_.end()) {
      if (found->second.due <= due) return;
      loop_.Cancel(found->second.timer);
    }
    const TimerId timer = loop_.After(delay, [this, alive = alive_, key] {
      if (!*alive) return;
      later_.erase(key);
      Add(key);
    });
    later_[key] = {due, timer};
  }

  // Adds after the delay of its failures so far, and counts one more.
  void AddRateLimited(const Key& key) { AddAfter(key, NextDelay(key)); }
  void Forget(const Key& key) { failures_.erase(key); }
  int failures(const Key& key) const {
    const auto found = failures_.find(key);
    return found == failures_.end() ? 0 : found->second;
  }

  // Keys ready, not counting those worked on or waiting for their time.
  size_t size() const { return ready_.size(); }
  bool idle() const { return dirty_.empty() && working_.empty() && later_.empty(); }

 private:
  static constexpr Duration kShort = std::chrono::milliseconds(10);
  static constexpr Duration kMaxRest = std::chrono::seconds(1);

  struct Waiting {
    Duration due{0};
    TimerId timer = 0;
  };

  Duration NextDelay(const Key& key) {
    const int failures = failures_[key]++;
    constexpr int kMaxDoublings = 40;  // 5 ms * 2^40 fits into 64 bits of nanoseconds
    if (failures > kMaxDoublings) return options_.max_delay;
    return std::min(options_.base_delay * (int64_t{1} << failures), options_.max_delay);
  }

  void Schedule() {
    if (scheduled_) return;
    scheduled_ = true;
    loop_.Post([this, alive = alive_] {
      if (!*alive) return;
      scheduled_ = false;
      Begin();
    });
  }

  void Begin() {
    const std::shared_ptr<bool> alive = alive_;
    while (*alive && !ready_.empty() && working_.size() < static_cast<size_t>(options_.parallel)) {
      const Key key = std::move(ready_.front());
      ready_.pop_front();
      dirty_.erase(key);
      working_[key] = loop_.clock().Monotonic();
      work_(key, [this, alive, key](Status status) {
        if (*alive) End(key, std::move(status));
      });
    }
  }

  void End(const Key& key, Status status) {
    DCHECK(loop_.OnLoop());
    const auto began = working_.find(key);
    CHECK(began != working_.end());  // done called twice
    const Duration took = loop_.clock().Monotonic() - began->second;
    working_.erase(began);
    if (status) {
      Forget(key);
    } else {
      AddRateLimited(key);
    }
    if (took > kShort) {
      Rest(key, std::min(took, kMaxRest));
    } else if (dirty_.contains(key)) {
      ready_.push_back(key);
    }
    if (!ready_.empty()) Schedule();
  }

  void Rest(const Key& key, Duration rest) {
    resting_[key] = loop_.After(rest, [this, alive = alive_, key] {
      if (!*alive) return;
      resting_.erase(key);
      if (!dirty_.contains(key)) return;
      ready_.push_back(key);
      Schedule();
    });
  }

  Loop& loop_;
  const WorkQueueOptions options_;
  const Work work_;
  std::deque<Key> ready_;
  std::set<Key> dirty_;              // ready, or to be made ready when the work on it ends
  std::map<Key, Duration> working_;  // since when
  std::map<Key, TimerId> resting_;   // until when
  std::map<Key, Waiting> later_;
  std::map<Key, int> failures_;
  bool scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::client
