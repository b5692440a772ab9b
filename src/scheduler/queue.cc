#include "scheduler/queue.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::scheduler {

SchedulingQueue::ActiveKey SchedulingQueue::KeyOf(const Entry& entry) {
  return {-entry.pod->priority, entry.sequence, entry.pod->uid};
}

// Among those whose back-off ends in the same second the more important goes first (upstream's
// backoffQOrderingWindowDuration).
SchedulingQueue::BackoffKey SchedulingQueue::BackoffKeyOf(const Entry& entry) {
  return {std::chrono::floor<std::chrono::seconds>(entry.backoff_end), KeyOf(entry)};
}

Duration SchedulingQueue::BackoffOf(int failures) {
  Duration backoff = kInitialBackoff;
  for (int i = 1; i < failures && backoff < kMaxBackoff; ++i) backoff *= 2;
  return std::min(backoff, kMaxBackoff);
}

void SchedulingQueue::TakeOut(Entry& entry) {
  active_.erase(KeyOf(entry));
  waiting_.erase({entry.until, entry.pod->uid});
  backing_off_.erase(BackoffKeyOf(entry));
  unschedulable_.erase(entry.pod->uid);
}

void SchedulingQueue::Put(Entry& entry, Place place, Duration until) {
  const std::string& uid = entry.pod->uid;
  entry.place = place;
  entry.until = until;
  switch (place) {
    case Place::kActive:
      active_.insert(KeyOf(entry));
      return;
    case Place::kBackoff:
      backing_off_.insert(BackoffKeyOf(entry));
      break;
    case Place::kUnschedulable:
      unschedulable_.insert(uid);
      break;
    case Place::kErrorBackoff:
      break;
    case Place::kGated:
    case Place::kInFlight:
      return;
  }
  waiting_.insert({until, uid});
}

// Out of waiting for events: now, or when its back-off ends.
void SchedulingQueue::Wake(Entry& entry, Duration now) {
  TakeOut(entry);
  if (entry.backoff_end <= now) {
    Put(entry, Place::kActive);
  } else {
    Put(entry, Place::kBackoff, entry.backoff_end);
  }
}

void SchedulingQueue::Add(std::shared_ptr<const PodInfo> pod, bool ready, bool changed,
                          Duration now) {
  auto [it, fresh] = entries_.try_emplace(pod->uid);
  Entry& entry = it->second;
  if (fresh) {
    entry.pod = std::move(pod);
    entry.sequence = next_sequence_++;
    return Put(entry, ready ? Place::kActive : Place::kGated);
  }
  const Place before = entry.place;
  const Duration until = entry.until;
  TakeOut(entry);
  entry.pod = std::move(pod);
  if (before == Place::kInFlight) return;
  if (!ready) return Put(entry, Place::kGated);
  if (before == Place::kGated) return Put(entry, Place::kActive);
  Put(entry, before, until);
  if (before == Place::kUnschedulable && changed) Wake(entry, now);
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

SchedulingQueue::Entry* SchedulingQueue::Next() {
  if (!active_.empty()) return &entries_.at(std::get<2>(*active_.begin()));
  if (!backing_off_.empty()) return &entries_.at(std::get<2>(backing_off_.begin()->second));
  return nullptr;
}

std::shared_ptr<const PodInfo> SchedulingQueue::Pop(Duration now) {
  Flush(now);
  Entry* entry = Next();
  if (!entry) return nullptr;
  TakeOut(*entry);
  Put(*entry, Place::kInFlight);
  return entry->pod;
}

SchedulingQueue::Entry* SchedulingQueue::InFlight(std::string_view uid) {
  const auto it = entries_.find(std::string(uid));
  if (it == entries_.end()) return nullptr;  // gone meanwhile
  CHECK(it->second.place == Place::kInFlight);
  it->second.sequence = next_sequence_++;  // behind those that came while it was tried
  return &it->second;
}

void SchedulingQueue::Unschedulable(std::string_view uid, std::set<const Plugin*> refused_by,
                                    Duration now) {
  Entry* entry = InFlight(uid);
  if (!entry) return;
  entry->refused_by = std::move(refused_by);
  entry->errors = 0;
  entry->backoff_end = now + BackoffOf(++entry->refusals);
  Put(*entry, Place::kUnschedulable, now + kMaxUnschedulable);
}

void SchedulingQueue::Retry(std::string_view uid, Duration now) {
  Entry* entry = InFlight(uid);
  if (entry) Put(*entry, Place::kErrorBackoff, now + BackoffOf(++entry->errors));
}

void SchedulingQueue::OnEvent(const ClusterEvent& event, Duration now) {
  std::vector<Entry*> woken;
  for (const std::string& uid : unschedulable_) {
    Entry& entry = entries_.at(uid);
    if (entry.pod->priority > event.up_to_priority) continue;
    const auto helps = [&](const Plugin* plugin) { return plugin->MayHelp(event, entry.pod); };
    if (entry.refused_by.empty() ||
        std::any_of(entry.refused_by.begin(), entry.refused_by.end(), helps)) {
      woken.push_back(&entry);
    }
  }
  for (Entry* entry : woken) Wake(*entry, now);
}

std::optional<Duration> SchedulingQueue::NextWake() const {
  if (waiting_.empty()) return {};
  return waiting_.begin()->first;
}

}  // namespace sextant::scheduler
