#include "scheduler/queue.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::scheduler {

SchedulingQueue::ActiveKey SchedulingQueue::KeyOf(const Entry& entry) {
  return {-entry.pod->priority, entry.added, entry.sequence, entry.pod->uid};
}

Duration SchedulingQueue::BackoffOf(int attempts) {
  Duration backoff = kInitialBackoff;
  for (int i = 1; i < attempts && backoff < kMaxBackoff; ++i) backoff *= 2;
  return std::min(backoff, kMaxBackoff);
}

void SchedulingQueue::TakeOut(Entry& entry) {
  active_.erase(KeyOf(entry));
  waiting_.erase({entry.until, entry.pod->uid});
}

void SchedulingQueue::Put(Entry& entry, Place place, Duration until) {
  entry.place = place;
  entry.until = until;
  if (place == Place::kActive) active_.insert(KeyOf(entry));
  if (place == Place::kBackoff || place == Place::kUnschedulable) {
    waiting_.insert({until, entry.pod->uid});
  }
}

void SchedulingQueue::Add(std::shared_ptr<const PodInfo> pod, bool ready, Duration now) {
  const std::string uid = pod->uid;
  auto [it, fresh] = entries_.try_emplace(uid);
  Entry& entry = it->second;
  if (fresh) {
    entry.pod = std::move(pod);
    entry.added = now;
    entry.sequence = next_sequence_++;
    Put(entry, ready ? Place::kActive : Place::kGated);
    return;
  }
  const Place before = entry.place;
  if (before == Place::kInFlight) {
    entry.pod = std::move(pod);
    return;
  }
  TakeOut(entry);
  entry.pod = std::move(pod);
  if (!ready) return Put(entry, Place::kGated);
  switch (before) {
    case Place::kBackoff:
      return Put(entry, Place::kBackoff, entry.until);
    case Place::kUnschedulable:
      // Its own change may help: it waits out what is left of its back-off.
      return Put(entry, Place::kBackoff, now + BackoffOf(entry.attempts));
    case Place::kActive:
    case Place::kGated:
    case Place::kInFlight:
      return Put(entry, Place::kActive);
  }
}

void SchedulingQueue::Remove(std::string_view uid) {
  const auto it = entries_.find(std::string(uid));
  if (it == entries_.end()) return;
  TakeOut(it->second);
  entries_.erase(it);
}

void SchedulingQueue::Flush(Duration now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    Entry& entry = entries_.at(waiting_.begin()->second);
    TakeOut(entry);
    Put(entry, Place::kActive);
  }
}

std::shared_ptr<const PodInfo> SchedulingQueue::Pop(Duration now) {
  Flush(now);
  if (active_.empty()) return nullptr;
  Entry& entry = entries_.at(std::get<3>(*active_.begin()));
  TakeOut(entry);
  entry.place = Place::kInFlight;
  ++entry.attempts;
  return entry.pod;
}

void SchedulingQueue::Unschedulable(std::shared_ptr<const PodInfo> pod, uint64_t cycle,
                                    Duration now) {
  const auto it = entries_.find(pod->uid);
  if (it == entries_.end()) return;  // gone meanwhile
  CHECK(it->second.place == Place::kInFlight);
  if (cycle != events_)
    return Put(it->second, Place::kBackoff, now + BackoffOf(it->second.attempts));
  Put(it->second, Place::kUnschedulable, now + kMaxUnschedulable);
}

void SchedulingQueue::Retry(std::shared_ptr<const PodInfo> pod, Duration now) {
  const auto it = entries_.find(pod->uid);
  if (it == entries_.end()) return;
  CHECK(it->second.place == Place::kInFlight);
  Put(it->second, Place::kBackoff, now + BackoffOf(it->second.attempts));
}

void SchedulingQueue::OnEvent(ClusterEvent event, Duration now) {
  (void)event;
  ++events_;
  std::vector<Entry*> woken;
  for (const auto& [until, uid] : waiting_) {
    Entry& entry = entries_.at(uid);
    if (entry.place == Place::kUnschedulable) woken.push_back(&entry);
  }
  for (Entry* entry : woken) {
    // The back-off counts from the failed try, whose time is 5 minutes before `until`.
    const Duration ready = entry->until - kMaxUnschedulable + BackoffOf(entry->attempts);
    TakeOut(*entry);
    if (ready <= now) {
      Put(*entry, Place::kActive);
    } else {
      Put(*entry, Place::kBackoff, ready);
    }
  }
}

std::optional<Duration> SchedulingQueue::NextWake() const {
  if (waiting_.empty()) return {};
  return waiting_.begin()->first;
}

size_t SchedulingQueue::unschedulable() const {
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.place == Place::kUnschedulable;
  }));
}

}  // namespace sextant::scheduler
