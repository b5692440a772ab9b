// WatchHub: the watchers of one resource, and who hears of which event.
//
// Watchers stand in groups by what they asked for (everything, one namespace, one name), so that an
// event costs its listeners only, not every watcher that waits for another object.
//
// A watcher that began in the past first gets its backlog, in slices over several turns of the
// loop; what happens meanwhile is put behind it. So everyone hears every event once, in order, and
// a told revision never runs ahead of the events (etcd issues 15220, 15271, 17247, 17529).
//
// Threads: the core loop. Sinks may add and end watches, their own too.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "store/store.h"

namespace sextant::store {

class WatchHub : public std::enable_shared_from_this<WatchHub> {
 public:
  static constexpr size_t kBacklogSlice = 256;  // events told in one turn

  explicit WatchHub(Loop& core) : core_(core) {}

  // `backlog`: what happened after the wanted revision and up to `visible`, already filtered.
  std::unique_ptr<Watch> Add(const WatchOptions& options, WatchSink sink,
                             std::vector<Event> backlog, Revision visible);
  // Tells the listeners of `events`, which end at `revision`.
  void Publish(std::span<const Event> events, Revision revision);
  // Tells those who have heard of less that nothing for them happened up to `revision`.
  void Progress(Revision revision);
  size_t watchers() const { return watchers_; }

  static bool Matches(const Event& event, std::string_view ns, std::string_view name) {
    const Key& key = event.entry->key;
    return (ns.empty() || key.ns == ns) && (name.empty() || key.name == name);
  }

 private:
  struct Group;
  struct Watcher {
    WatchSink sink;
    Group* group = nullptr;
    std::deque<std::pair<Event, Revision>> backlog;
    Revision told = 0;
    bool live = false;  // the backlog has been told
    bool ended = false;
  };
  struct Group {
    std::vector<std::shared_ptr<Watcher>> watchers;
    size_t ended = 0;
    std::vector<Event> batch;  // while publishing
  };
  class Handle;
  using GroupKey = std::pair<std::string, std::string>;

  void End(const std::shared_ptr<Watcher>& watcher);
  void Tell(Group& group, std::span<const Event> events, Revision revision);
  void TellBacklog(const std::shared_ptr<Watcher>& watcher);
  void PostBacklog(const std::shared_ptr<Watcher>& watcher);
  void DoneTelling();
  void Sweep();

  Loop& core_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  std::vector<std::shared_ptr<Watcher>> closing_;  // ended inside a sink, which may be their own
  size_t watchers_ = 0;
  size_t ended_ = 0;
  int telling_ = 0;
};

}  // namespace sextant::store
