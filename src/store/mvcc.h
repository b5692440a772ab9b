// MvccStore: the store of store.h.
//
// A commit goes through three places, all in the order of its revision:
//
//   Commit()          latest tree, pending_            ordered
//   Disk thread       one transaction                  durable
//   Publish()         shown_, history, watchers, completion   visible
//
// Without a file the second place is empty: everything still completes in a later turn of the loop,
// and by the loop alone, so that virtual time stays deterministic.
//
// What is visible is one immutable value behind one atomic pointer, so that readers on any thread
// get a revision and the objects of just that revision without waiting for the core loop.
//
// A refused write also waits in pending_ until what refused it is durable: nobody hears of a
// revision that a crash could take back.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/disk.h"
#include "store/store.h"
#include "store/tree.h"
#include "store/watch_hub.h"

namespace sextant::store {

class MvccStore : public Store {
 public:
  static constexpr size_t kPublishSlice = 256;  // commits made visible in one turn of the loop
  static constexpr Duration kProgressInterval = std::chrono::seconds(5);

  MvccStore(const Options& options, Loop& core);
  ~MvccStore() override;
  Status OpenFile();

  void Commit(Write write, std::function<void(Committed)> done) override;
  void CommitAll(std::vector<Write> writes, std::function<void(Committed)> done) override;
  Revision visible() const override { return shown()->revision; }
  bool failed() const override { return failed_; }
  std::shared_ptr<const Snapshot> Visible(std::string_view resource) const override;
  std::shared_ptr<const Entry> Get(const Key& key) const override;
  std::shared_ptr<const Entry> Latest(const Key& key) const override;
  Result<std::unique_ptr<Watch>> AddWatch(const WatchOptions& options, WatchSink sink) override;
  Revision OldestWatchable(std::string_view resource) const override;
  Result<std::string> GetMeta(std::string_view name) const override;
  void PutMeta(std::string name, std::string value, std::function<void(Status)> done) override;
  void OnFatal(std::function<void(Error)> callback) override;
  void Close() override;

 private:
  struct Resource {
    Resource(Loop& core, Revision start, size_t slot_)
        : slot(slot_), oldest(start), hub(std::make_shared<WatchHub>(core)) {}
    const size_t slot;  // in Shown::trees
    Tree latest;
    std::deque<Event> history;
    size_t history_bytes = 0;
    Revision oldest;           // every event after it is in `history`
    std::vector<Event> batch;  // while publishing
    std::shared_ptr<WatchHub> hub;
  };
  using Slots = std::map<std::string, size_t, std::less<>>;  // by resource
  // Everything that is visible. Copied for each batch: a counter for each resource.
  struct Shown {
    Revision revision = 0;
    std::shared_ptr<const Slots> slots = std::make_shared<const Slots>();
    std::vector<Tree> trees;

    Tree TreeOf(std::string_view resource) const;
  };
  // Something that becomes visible, or a refusal that may be told, when `sequence` is durable.
  struct Pending {
    size_t bytes() const { return resource ? event.entry->object.bytes() : 0; }

    uint64_t sequence = 0;
    Resource* resource = nullptr;  // of a write
    Event event;                   // of a write
    Tree tree;                     // of a write: the resource after it
    Committed refused;             // neither write nor meta
    std::function<void(Committed)> done;
    std::string meta_name;
    std::string meta_value;
    std::function<void(Status)> meta_done;
  };

  Resource& ResourceOf(std::string_view name);
  const Resource* FindResource(std::string_view name) const;
  std::shared_ptr<const Shown> shown() const { return shown_.load(); }
  void Show(Revision revision, std::span<const std::pair<size_t, Tree>> changed);
  CommitError Check(const Write& write, const Entry* current, size_t together) const;
  void Take(Write write, std::function<void(Committed)> done);
  std::shared_ptr<const Entry> MakeEntry(Write* write, const Entry* current);
  bool Order(Pending* pending, DiskOp op);
  void Refuse(CommitError error, std::shared_ptr<const Entry> current,
              std::function<void(Committed)> done);
  void SchedulePublish();
  void Publish();
  void Remember(Resource& resource, const Event& event);
  void Complete(Pending& pending);
  void Stop(Error error);
  void ArmProgress();
  // Wraps a task for the core loop so that it is dropped when the store is gone.
  Task Guarded(Task task) const;

  const Options options_;
  Loop& core_;
  std::map<std::string, std::unique_ptr<Resource>, std::less<>> resources_;
  std::map<std::string, std::string, std::less<>> meta_;
  std::deque<Pending> pending_;
  size_t inflight_ = 0;        // writes and metas in pending_
  size_t inflight_bytes_ = 0;  // of their objects
  Revision start_ = 0;         // when opened: nothing before it is in any history
  Revision ordered_ = 0;
  std::atomic<std::shared_ptr<const Shown>> shown_;  // written on the core loop, read anywhere
  uint64_t sequence_ = 0;                            // of the last op ordered
  uint64_t durable_ = 0;                             // of the last op on disk
  bool publish_scheduled_ = false;
  TimerId progress_timer_ = 0;
  std::optional<Error> fatal_;
  std::atomic<bool> failed_ = false;  // fatal_ is set; read anywhere
  std::function<void(Error)> on_fatal_;
  bool closed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the core loop
  std::unique_ptr<Disk> disk_;
};

}  // namespace sextant::store
