#include "store/mvcc.h"

#include "api/json.h"
#include "base/check.h"
#include "store/stamp.h"

namespace sextant::store {
namespace {

// JSON of a document is at most so many times its memory: every byte may become \u00XX.
constexpr size_t kWorstJsonGrowth = 6;

class TreeSnapshot : public Snapshot {
 public:
  TreeSnapshot(Tree tree, Revision revision) : tree_(std::move(tree)), revision_(revision) {}

  Revision revision() const override { return revision_; }

  std::vector<std::shared_ptr<const Entry>> Range(std::string_view ns, std::string_view after_ns,
                                                  std::string_view after_name,
                                                  size_t limit) const override {
    const auto [first, last] = Positions(ns, after_ns, after_name);
    return tree_.Slice(first, limit == 0 ? last : std::min(last, first + limit));
  }

  std::shared_ptr<const Entry> Get(std::string_view ns, std::string_view name) const override {
    return tree_.Find(ns, name);
  }

  size_t Count(std::string_view ns, std::string_view after_ns,
               std::string_view after_name) const override {
    const auto [first, last] = Positions(ns, after_ns, after_name);
    return last - first;
  }

 private:
  // [first, last), first at most last.
  std::pair<size_t, size_t> Positions(std::string_view ns, std::string_view after_ns,
                                      std::string_view after_name) const {
    size_t first = tree_.Rank(after_ns, after_name, Tree::Side::kAfter);
    size_t last = tree_.size();
    if (!ns.empty()) {
      first = std::max(first, tree_.Rank(ns, "", Tree::Side::kBefore));
      last = tree_.Rank(ns, "", Tree::Side::kAfterNamespace);
    }
    return {std::min(first, last), last};
  }

  const Tree tree_;
  const Revision revision_;
};

}  // namespace

Error TooLargeRevision(Revision wanted, Revision current) {
  Error error =
      Timeout(fmt::format("Too large resource version: {}, current: {}", wanted, current), 1);
  error.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return error;
}

Result<std::unique_ptr<Store>> Store::Open(const Options& options, Loop& core) {
  auto store = std::make_unique<MvccStore>(options, core);
  RETURN_IF_ERROR(store->OpenFile());
  return store;
}

MvccStore::MvccStore(const Options& options, Loop& core)
    : options_(options), core_(core), shown_(std::make_shared<const Shown>()) {}

MvccStore::~MvccStore() {
  if (disk_) disk_->Close();
  core_.Cancel(progress_timer_);
  *alive_ = false;
}

Status MvccStore::OpenFile() {
  if (options_.path.empty() || options_.path == ":memory:") return {};
  // The disk's thread talks to the core loop only; what it says too late is dropped there.
  Disk::Callbacks callbacks;
  callbacks.durable = [this, alive = alive_](uint64_t sequence) {
    core_.Post([this, alive, sequence] {
      if (!*alive) return;
      durable_ = sequence;
      SchedulePublish();
    });
  };
  callbacks.failed = [this, alive = alive_](Error error) {
    core_.Post([this, alive, error = std::move(error)] {
      if (*alive) Stop(error);
    });
  };
  DiskState state;
  ASSIGN_OR_RETURN(disk_, Disk::Open(options_.path, core_.clock(), options_.registry,
                                     std::move(callbacks), &state));
  start_ = ordered_ = state.revision;
  meta_ = std::move(state.meta);
  for (auto& entry : state.entries) {
    Resource& resource = ResourceOf(entry->key.resource);
    const size_t before = resource.latest.size();
    resource.latest = resource.latest.Put(std::move(entry));
    if (resource.latest.size() == before)
      return Fail(UsageError(fmt::format(
          "the state file {} is damaged: an object stands in it twice", options_.path)));
  }
  std::vector<std::pair<size_t, Tree>> read;
  for (const auto& [name, resource] : resources_)
    read.emplace_back(resource->slot, resource->latest);
  Show(start_, read);
  return {};
}

MvccStore::Resource& MvccStore::ResourceOf(std::string_view name) {
  if (const auto found = resources_.find(name); found != resources_.end()) return *found->second;
  auto made = std::make_unique<Resource>(core_, start_, resources_.size());
  return *resources_.emplace(std::string(name), std::move(made)).first->second;
}

const MvccStore::Resource* MvccStore::FindResource(std::string_view name) const {
  const auto found = resources_.find(name);
  return found == resources_.end() ? nullptr : found->second.get();
}

// ---- writing ----

// One of so many writes `together`.
CommitError MvccStore::Check(const Write& write, const Entry* current, size_t together) const {
  if (fatal_ || closed_) return CommitError::kStopped;
  if (inflight_ + together > options_.max_inflight_commits ||
      inflight_bytes_ >= options_.max_inflight_bytes)
    return CommitError::kFull;
  if (write.op == Write::Op::kCreate) {
    if (current) return CommitError::kExists;
  } else {
    if (!current) return CommitError::kNotFound;
    if (write.expect != 0 && write.expect != current->mod_revision) return CommitError::kConflict;
  }
  // Writing JSON here to measure it is worth it only where the limit is near.
  if (write.object && write.object.bytes() * kWorstJsonGrowth > kMaxObjectBytes) {
    std::string text;
    api::WriteJson(write.object.root(), text);
    if (text.size() > kMaxObjectBytes) return CommitError::kTooLarge;
  }
  return CommitError::kNone;
}

std::shared_ptr<const Entry> MvccStore::MakeEntry(Write* write, const Entry* current) {
  auto entry = std::make_shared<Entry>();
  const bool stored_one = write->op == Write::Op::kDelete && !write->object;
  entry->object = Stamp(stored_one ? current->object : write->object, ordered_);
  entry->key = std::move(write->key);
  entry->create_revision = current ? current->create_revision : ordered_;
  entry->mod_revision = ordered_;
  return entry;
}

void MvccStore::Commit(Write write, std::function<void(Committed)> done) {
  std::vector<Write> one;
  one.push_back(std::move(write));
  CommitAll(std::move(one), std::move(done));
}

void MvccStore::CommitAll(std::vector<Write> writes, std::function<void(Committed)> done) {
  DCHECK(core_.OnLoop());
  CHECK(!writes.empty());
  for (const Write& write : writes) {
    CHECK(!write.key.resource.empty() && !write.key.name.empty());
    CHECK(write.object || write.op == Write::Op::kDelete);
    std::shared_ptr<const Entry> current =
        ResourceOf(write.key.resource).latest.Find(write.key.ns, write.key.name);
    const CommitError error = Check(write, current.get(), writes.size());
    if (error != CommitError::kNone) return Refuse(error, std::move(current), std::move(done));
  }
  for (Write& write : writes) {
    Take(std::move(write), std::exchange(done, [](const Committed&) {}));
  }
}

// Orders a write that has been checked.
void MvccStore::Take(Write write, std::function<void(Committed)> done) {
  Resource& resource = ResourceOf(write.key.resource);
  std::shared_ptr<const Entry> current = resource.latest.Find(write.key.ns, write.key.name);
  const Write::Op op = write.op;
  ++ordered_;
  Pending pending;
  pending.done = std::move(done);
  pending.resource = &resource;
  pending.event.revision = ordered_;
  pending.event.type = op == Write::Op::kCreate   ? EventType::kAdded
                       : op == Write::Op::kUpdate ? EventType::kModified
                                                  : EventType::kDeleted;
  pending.event.entry = MakeEntry(&write, current.get());
  pending.event.previous = std::move(current);
  const Key& key = pending.event.entry->key;
  pending.tree = op == Write::Op::kDelete ? resource.latest.Erase(key.ns, key.name)
                                          : resource.latest.Put(pending.event.entry);

  DiskOp disk_op;
  disk_op.kind = op == Write::Op::kDelete ? DiskOp::Kind::kErase : DiskOp::Kind::kPut;
  disk_op.revision = ordered_;
  disk_op.entry = pending.event.entry;
  Tree after = pending.tree;
  if (Order(&pending, std::move(disk_op))) {
    resource.latest = std::move(after);
  } else {
    --ordered_;
    Refuse(CommitError::kStopped, nullptr, std::move(pending.done));
  }
}

// Takes a write or meta and puts it behind all others. False, and not taken: the disk is closed.
bool MvccStore::Order(Pending* pending, DiskOp op) {
  op.sequence = pending->sequence = ++sequence_;
  if (disk_) {
    if (!disk_->Append(std::move(op))) {
      --sequence_;
      return false;
    }
  } else {
    durable_ = sequence_;
    SchedulePublish();
  }
  ++inflight_;
  inflight_bytes_ += pending->bytes();
  pending_.push_back(std::move(*pending));
  return true;
}

void MvccStore::Refuse(CommitError error, std::shared_ptr<const Entry> current,
                       std::function<void(Committed)> done) {
  Pending pending;
  pending.sequence = sequence_;
  pending.refused.error = error;
  pending.refused.revision = ordered_;
  if (error == CommitError::kExists || error == CommitError::kConflict)
    pending.refused.entry = std::move(current);
  pending.done = std::move(done);
  // Being full or stopped says nothing of any object, and must not wait nor make the queue longer.
  if (error == CommitError::kFull || error == CommitError::kStopped || pending_.empty()) {
    core_.Post(Guarded([pending = std::move(pending)] { pending.done(pending.refused); }));
    return;
  }
  pending_.push_back(std::move(pending));
}

void MvccStore::PutMeta(std::string name, std::string value, std::function<void(Status)> done) {
  DCHECK(core_.OnLoop());
  DiskOp op;
  op.kind = DiskOp::Kind::kMeta;
  op.name = name;
  op.value = value;
  Pending pending;
  pending.meta_name = std::move(name);
  pending.meta_value = std::move(value);
  pending.meta_done = std::move(done);
  if (!fatal_ && !closed_ && Order(&pending, std::move(op))) return;
  core_.Post(Guarded([refused = std::move(pending.meta_done)] {
    refused(Fail(ServiceUnavailable("the store is stopped")));
  }));
}

// ---- becoming visible ----

Task MvccStore::Guarded(Task task) const {
  return [alive = alive_, task = std::move(task)]() mutable {
    if (*alive) task();
  };
}

void MvccStore::SchedulePublish() {
  if (publish_scheduled_) return;
  publish_scheduled_ = true;
  core_.Post(Guarded([this] { Publish(); }));
}

Tree MvccStore::Shown::TreeOf(std::string_view resource) const {
  const auto slot = slots->find(resource);
  return slot == slots->end() ? Tree() : trees[slot->second];
}

// Makes `revision` the visible one, with `changed` in the slots of their resources.
void MvccStore::Show(Revision revision, std::span<const std::pair<size_t, Tree>> changed) {
  auto next = std::make_shared<Shown>(*shown());
  next->revision = revision;
  if (next->slots->size() != resources_.size()) {
    Slots slots;
    for (const auto& [name, resource] : resources_) slots.emplace(name, resource->slot);
    next->slots = std::make_shared<const Slots>(std::move(slots));
    next->trees.resize(resources_.size());
  }
  for (const auto& [slot, tree] : changed) next->trees[slot] = tree;
  shown_.store(std::move(next));
}

void MvccStore::Publish() {
  publish_scheduled_ = false;
  std::vector<Pending> slice;
  std::vector<Resource*> touched;
  std::vector<std::pair<size_t, Tree>> changed;
  Revision revision = visible();
  while (!pending_.empty() && pending_.front().sequence <= durable_ &&
         slice.size() < kPublishSlice) {
    Pending& next = slice.emplace_back(std::move(pending_.front()));
    pending_.pop_front();
    if (next.resource) {
      changed.emplace_back(next.resource->slot, std::move(next.tree));
      revision = next.event.revision;
      if (next.resource->batch.empty()) touched.push_back(next.resource);
      next.resource->batch.push_back(next.event);
      Remember(*next.resource, next.event);
      inflight_bytes_ -= next.bytes();
      --inflight_;
    } else if (!next.meta_name.empty()) {
      meta_[next.meta_name] = next.meta_value;
      --inflight_;
    }
  }
  if (!pending_.empty() && pending_.front().sequence <= durable_) SchedulePublish();
  if (!changed.empty()) Show(revision, changed);
  // Everything is in its place: sinks and completions may call us.
  for (Resource* resource : touched) {
    const std::vector<Event> batch = std::exchange(resource->batch, {});
    resource->hub->Publish(batch, revision);
  }
  for (Pending& each : slice) Complete(each);
}

void MvccStore::Complete(Pending& pending) {
  if (!pending.meta_name.empty()) {
    pending.meta_done({});
  } else if (pending.resource) {
    pending.done({CommitError::kNone, std::move(pending.event.entry), pending.event.revision});
  } else {
    pending.done(std::move(pending.refused));
  }
}

void MvccStore::Remember(Resource& resource, const Event& event) {
  resource.history.push_back(event);
  resource.history_bytes += event.entry->object.bytes();
  while (resource.history.size() > options_.history_events ||
         (resource.history_bytes > options_.history_bytes && resource.history.size() > 1)) {
    const Event& forgotten = resource.history.front();
    resource.oldest = forgotten.revision;
    resource.history_bytes -= forgotten.entry->object.bytes();
    resource.history.pop_front();
  }
}

void MvccStore::Stop(Error error) {
  if (fatal_) return;
  fatal_ = error;
  failed_ = true;
  std::deque<Pending> lost;
  while (!pending_.empty() && pending_.back().sequence > durable_) {
    lost.push_front(std::move(pending_.back()));
    pending_.pop_back();
  }
  // What was ordered and never became durable is taken back: readers of Latest must not act on it.
  const auto now = shown();
  for (const auto& [name, resource] : resources_) resource->latest = now->TreeOf(name);
  for (const Pending& kept : pending_)
    if (kept.resource) kept.resource->latest = kept.tree;
  for (Pending& each : lost) {
    if (!each.meta_name.empty()) {
      each.meta_done(Fail(error));
    } else {
      each.done({CommitError::kStopped, nullptr, now->revision});
    }
  }
  if (on_fatal_) std::exchange(on_fatal_, nullptr)(std::move(error));
}

void MvccStore::OnFatal(std::function<void(Error)> callback) {
  if (!fatal_) {
    on_fatal_ = std::move(callback);
    return;
  }
  core_.Post(Guarded([callback = std::move(callback), error = *fatal_] { callback(error); }));
}

void MvccStore::Close() {
  if (disk_) disk_->Close();
  core_.Post(Guarded([this] { closed_ = true; }));
}

// ---- reading and watching ----

std::shared_ptr<const Snapshot> MvccStore::Visible(std::string_view resource) const {
  const auto now = shown();
  return std::make_shared<TreeSnapshot>(now->TreeOf(resource), now->revision);
}

std::shared_ptr<const Entry> MvccStore::Get(const Key& key) const {
  return shown()->TreeOf(key.resource).Find(key.ns, key.name);
}

std::shared_ptr<const Entry> MvccStore::Latest(const Key& key) const {
  const Resource* found = FindResource(key.resource);
  return found ? found->latest.Find(key.ns, key.name) : nullptr;
}

Revision MvccStore::OldestWatchable(std::string_view resource) const {
  const Resource* found = FindResource(resource);
  return found ? found->oldest : start_;
}

Result<std::unique_ptr<Watch>> MvccStore::AddWatch(const WatchOptions& options, WatchSink sink) {
  DCHECK(core_.OnLoop());
  const Revision now = visible();
  if (options.after > now) return Fail(TooLargeRevision(options.after, now));
  Resource& resource = ResourceOf(options.resource);
  if (options.after < resource.oldest) {
    return Fail(
        Expired(fmt::format("too old resource version: {} ({})", options.after, resource.oldest)));
  }
  const auto first =
      std::partition_point(resource.history.begin(), resource.history.end(),
                           [&](const Event& event) { return event.revision <= options.after; });
  std::vector<Event> backlog;
  for (auto event = first; event != resource.history.end(); ++event) {
    if (WatchHub::Matches(*event, options.ns, options.name)) backlog.push_back(*event);
  }
  ArmProgress();
  return resource.hub->Add(options, std::move(sink), std::move(backlog), now);
}

// One timer while anybody watches: watchers to whom nothing happens still learn the revision.
void MvccStore::ArmProgress() {
  if (progress_timer_ != 0) return;
  progress_timer_ = core_.After(kProgressInterval, Guarded([this] {
                                  progress_timer_ = 0;
                                  size_t watchers = 0;
                                  const Revision now = visible();
                                  for (const auto& [name, resource] : resources_) {
                                    resource->hub->Progress(now);
                                    watchers += resource->hub->watchers();
                                  }
                                  if (watchers > 0) ArmProgress();
                                }));
}

Result<std::string> MvccStore::GetMeta(std::string_view name) const {
  const auto found = meta_.find(name);
  if (found == meta_.end()) return Fail(NotFound({"", "meta"}, name));
  return found->second;
}

}  // namespace sextant::store
