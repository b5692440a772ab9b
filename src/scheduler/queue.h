// The scheduling queue: Pods that can be tried now (by priority, then age), Pods that wait out a
// back-off, and Pods that no node fits until something changes.
//
//   1 s, 2 s, 4 s ... 10 s of back-off after each failed try (kube-scheduler's defaults); an
//   unschedulable Pod is tried again when an event may help it, at the latest after 5 minutes.
//
// Core loop only; time comes in as an argument.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "scheduler/node_info.h"

namespace sextant::scheduler {

inline constexpr Duration kInitialBackoff = std::chrono::seconds(1);
inline constexpr Duration kMaxBackoff = std::chrono::seconds(10);
inline constexpr Duration kMaxUnschedulable = std::chrono::minutes(5);

// What happened in the cluster that may make an unschedulable Pod fit.
enum class ClusterEvent : uint8_t {
  kNodeChanged,  // added, or its allocatable, labels, taints changed
  kPodGone,      // resources came free
  kPodChanged,   // an unschedulable Pod was itself changed
};

class SchedulingQueue {
 public:
  // A new Pod, or a newer state of one that waits. `ready` false keeps it out (PreEnqueue).
  void Add(std::shared_ptr<const PodInfo> pod, bool ready, Duration now);
  void Remove(std::string_view uid);
  bool Has(std::string_view uid) const { return entries_.contains(std::string(uid)); }

  // The next Pod to try, taken out of the queue; null if none is ready. The caller hands it back
  // with Unschedulable or Retry unless it was bound or is gone.
  std::shared_ptr<const PodInfo> Pop(Duration now);
  // No node fits: waits for an event. `cycle` is what Cycle() said when the try began, so that an
  // event that came meanwhile is not missed.
  void Unschedulable(std::shared_ptr<const PodInfo> pod, uint64_t cycle, Duration now);
  // Something went wrong that time alone may heal.
  void Retry(std::shared_ptr<const PodInfo> pod, Duration now);

  void OnEvent(ClusterEvent event, Duration now);
  uint64_t Cycle() const { return events_; }

  // When the next back-off or the 5 minutes end; nothing if nobody waits for time.
  std::optional<Duration> NextWake() const;
  size_t size() const { return entries_.size(); }
  size_t unschedulable() const;

 private:
  enum class Place : uint8_t { kActive, kBackoff, kUnschedulable, kGated, kInFlight };
  struct Entry {
    std::shared_ptr<const PodInfo> pod;
    Place place = Place::kActive;
    Duration added{};  // first seen: the tie-breaker among equals
    Duration until{};  // end of back-off, or of the 5 minutes
    int attempts = 0;
    uint64_t sequence = 0;  // order of arrival
  };
  using ActiveKey = std::tuple<int64_t, Duration, uint64_t, std::string>;  // -priority, age, ...
  static ActiveKey KeyOf(const Entry& entry);
  void Put(Entry& entry, Place place, Duration until = {});
  void TakeOut(Entry& entry);
  void Flush(Duration now);
  static Duration BackoffOf(int attempts);

  std::unordered_map<std::string, Entry> entries_;  // by uid
  std::set<ActiveKey> active_;
  std::set<std::pair<Duration, std::string>> waiting_;  // back-off and unschedulable, by `until`
  uint64_t next_sequence_ = 0;
  uint64_t events_ = 0;
};

}  // namespace sextant::scheduler
