// The scheduling queue: Pods that can be tried now (by priority, then age), Pods that wait out a
// back-off, and Pods that no node fits until something changes.
//
//   A failed try is followed by a back-off of 1 s, 2 s, 4 s ... 10 s, counted apart for Pods that
//   fit nowhere and for errors. A Pod that fits nowhere is tried again when one of the plugins that
//   refused it says that an event may help it (at once if nothing else is ready, else after its
//   back-off), at the latest after 5 minutes.
//
// Source: k8s.io/kubernetes pkg/scheduler/backend/queue at v1.36 (SchedulerPopFromBackoffQ on).
// Core loop only; time comes in as an argument.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "scheduler/framework.h"

namespace sextant::scheduler {

inline constexpr Duration kInitialBackoff = std::chrono::seconds(1);
inline constexpr Duration kMaxBackoff = std::chrono::seconds(10);
inline constexpr Duration kMaxUnschedulable = std::chrono::minutes(5);

class SchedulingQueue {
 public:
  // A new Pod, or a newer state of one that waits. `ready` false keeps it out (PreEnqueue);
  // `changed` says that its own change may help it.
  void Add(std::shared_ptr<const PodInfo> pod, bool ready, bool changed, Duration now);
  void Remove(std::string_view uid);
  bool Has(std::string_view uid) const { return entries_.contains(std::string(uid)); }

  // The next Pod to try, taken out of the queue; null if none is ready. The caller hands it back
  // with Unschedulable or Retry unless it was bound or is gone.
  std::shared_ptr<const PodInfo> Pop(Duration now);
  // No node fits: waits for an event that helps with one of `refused_by` (none: for any event).
  void Unschedulable(std::string_view uid, std::set<const Plugin*> refused_by, Duration now);
  // Something went wrong that time alone may heal.
  void Retry(std::string_view uid, Duration now);

  void OnEvent(const ClusterEvent& event, Duration now);

  // When the next back-off or the 5 minutes end; nothing if nobody waits for time.
  std::optional<Duration> NextWake() const;

 private:
  enum class Place : uint8_t {
    kActive,
    kBackoff,
    kErrorBackoff,
    kUnschedulable,
    kGated,
    kInFlight
  };
  struct Entry {
    std::shared_ptr<const PodInfo> pod;
    Place place = Place::kActive;
    uint64_t sequence = 0;  // when it came or was tried last: decides among equal priorities
    Duration until{};       // when it leaves its place by itself
    Duration backoff_end{};
    std::set<const Plugin*> refused_by;
    int refusals = 0;  // in all
    int errors = 0;    // in a row
  };
  using ActiveKey = std::tuple<int64_t, uint64_t, std::string>;  // -priority, sequence, uid
  using BackoffKey = std::pair<Duration, ActiveKey>;  // the second in which it ends, then as above
  static ActiveKey KeyOf(const Entry& entry);
  static BackoffKey BackoffKeyOf(const Entry& entry);
  static Duration BackoffOf(int failures);
  void Put(Entry& entry, Place place, Duration until = {});
  void TakeOut(Entry& entry);
  void Wake(Entry& entry, Duration now);
  void Flush(Duration now);
  Entry* InFlight(std::string_view uid);
  Entry* Next();

  std::unordered_map<std::string, Entry> entries_;  // by uid
  std::set<ActiveKey> active_;
  std::set<std::pair<Duration, std::string>> waiting_;  // all that wait for a time: `until`, uid
  std::set<BackoffKey> backing_off_;                    // those that may be tried early
  std::set<std::string> unschedulable_;                 // those that an event may wake
  uint64_t next_sequence_ = 0;
};

}  // namespace sextant::scheduler
