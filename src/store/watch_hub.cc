#include "store/watch_hub.h"

#include "base/check.h"

namespace sextant::store {

class WatchHub::Handle : public Watch {
 public:
  Handle(std::weak_ptr<WatchHub> hub, std::shared_ptr<Watcher> watcher)
      : hub_(std::move(hub)), watcher_(std::move(watcher)) {}
  ~Handle() override {
    if (auto hub = hub_.lock()) hub->End(watcher_);
  }

 private:
  std::weak_ptr<WatchHub> hub_;
  std::shared_ptr<Watcher> watcher_;
};

std::unique_ptr<Watch> WatchHub::Add(const WatchOptions& options, WatchSink sink,
                                     std::vector<Event> backlog, Revision visible) {
  std::unique_ptr<Group>& group = groups_[{options.ns, options.name}];
  if (!group) group = std::make_unique<Group>();
  auto watcher = std::make_shared<Watcher>();
  watcher->sink = std::move(sink);
  watcher->group = group.get();
  watcher->told = visible;
  watcher->live = backlog.empty();
  // Within the backlog the last revision told is that of the last event, at its end `visible`.
  for (size_t i = 0; i < backlog.size(); ++i) {
    const Revision revision = i + 1 == backlog.size() ? visible : backlog[i].revision;
    watcher->backlog.emplace_back(std::move(backlog[i]), revision);
  }
  group->watchers.push_back(watcher);
  ++watchers_;
  if (!watcher->live) PostBacklog(watcher);
  return std::make_unique<Handle>(weak_from_this(), std::move(watcher));
}

void WatchHub::PostBacklog(const std::shared_ptr<Watcher>& watcher) {
  core_.Post([hub = weak_from_this(), weak = std::weak_ptr(watcher)] {
    auto self = hub.lock();
    auto alive = weak.lock();
    if (self && alive && !alive->ended) self->TellBacklog(alive);
  });
}

void WatchHub::TellBacklog(const std::shared_ptr<Watcher>& watcher) {
  std::vector<Event> slice;
  Revision revision = 0;
  while (!watcher->backlog.empty() && slice.size() < kBacklogSlice) {
    revision = watcher->backlog.front().second;
    slice.push_back(std::move(watcher->backlog.front().first));
    watcher->backlog.pop_front();
  }
  watcher->live = watcher->backlog.empty();
  ++telling_;
  watcher->sink(slice, revision);
  if (!watcher->live && !watcher->ended) PostBacklog(watcher);
  DoneTelling();
}

void WatchHub::End(const std::shared_ptr<Watcher>& watcher) {
  CHECK(!watcher->ended);
  watcher->ended = true;
  watcher->backlog.clear();
  ++watcher->group->ended;
  ++ended_;
  --watchers_;
  if (telling_ > 0) {
    closing_.push_back(watcher);
    return;
  }
  watcher->sink = nullptr;
  Sweep();
}

void WatchHub::DoneTelling() {
  if (--telling_ > 0) return;
  for (const auto& watcher : std::exchange(closing_, {})) watcher->sink = nullptr;
  Sweep();
}

// Forgets ended watchers, when they are many enough to pay for the walk.
void WatchHub::Sweep() {
  if (telling_ > 0 || ended_ == 0 || ended_ * 2 < watchers_) return;
  ended_ = 0;
  std::vector<std::shared_ptr<Watcher>> gone;  // their sinks die after the tables are in order
  for (auto it = groups_.begin(); it != groups_.end();) {
    Group& group = *it->second;
    if (group.ended > 0) {
      std::erase_if(group.watchers, [&](std::shared_ptr<Watcher>& watcher) {
        if (!watcher->ended) return false;
        gone.push_back(std::move(watcher));
        return true;
      });
      group.ended = 0;
    }
    it = group.watchers.empty() ? groups_.erase(it) : std::next(it);
  }
}

void WatchHub::Tell(Group& group, std::span<const Event> events, Revision revision) {
  // A watcher that a sink has just added knows these events from its backlog: told is `revision`.
  const size_t n = group.watchers.size();
  for (size_t i = 0; i < n; ++i) {
    const std::shared_ptr<Watcher> watcher = group.watchers[i];
    if (watcher->ended || watcher->told >= revision) continue;
    watcher->told = revision;
    if (watcher->live) {
      watcher->sink(events, revision);
    } else {
      for (const Event& event : events) watcher->backlog.emplace_back(event, event.revision);
    }
  }
}

void WatchHub::Publish(std::span<const Event> events, Revision revision) {
  if (watchers_ == 0) return;
  ++telling_;
  std::vector<Group*> touched;
  const bool only_everything = groups_.size() == 1 && groups_.begin()->first == GroupKey{};
  if (!only_everything) {
    for (const Event& event : events) {
      const Key& key = event.entry->key;
      const GroupKey places[] = {{key.ns, ""}, {key.ns, key.name}, {"", key.name}};
      for (size_t i = 0; i < std::size(places); ++i) {
        // In a cluster-scoped resource the three fall together with each other and with "all".
        if (places[i] == GroupKey{} || (i == 2 && key.ns.empty())) continue;
        const auto found = groups_.find(places[i]);
        if (found == groups_.end()) continue;
        if (found->second->batch.empty()) touched.push_back(found->second.get());
        found->second->batch.push_back(event);
      }
    }
  }
  if (const auto all = groups_.find(GroupKey{}); all != groups_.end())
    Tell(*all->second, events, revision);
  for (Group* group : touched) {
    const std::vector<Event> batch = std::exchange(group->batch, {});
    Tell(*group, batch, revision);
  }
  DoneTelling();
}

void WatchHub::Progress(Revision revision) {
  ++telling_;
  std::vector<std::shared_ptr<Watcher>> behind;
  for (const auto& [key, group] : groups_) {
    for (const auto& watcher : group->watchers) {
      if (!watcher->ended && watcher->live && watcher->told < revision) behind.push_back(watcher);
    }
  }
  for (const auto& watcher : behind) {
    if (watcher->ended) continue;
    watcher->told = revision;
    watcher->sink({}, revision);
  }
  DoneTelling();
}

}  // namespace sextant::store
