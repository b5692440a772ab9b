// The store: every object of a lab, its revisions, and what happened to it.
//
// Current objects live in memory; SQLite (WAL, synchronous=FULL, one group commit a batch, on a
// thread of its own) makes them durable. A commit is *ordered* on the core thread at once and
// *visible* (its completion runs, watchers hear of it) only when it is on disk (DESIGN, laws 2, 3).
// History for watches lives in memory, bounded by count and bytes per resource.
//
//   store.Commit({.key = {"pods", "default", "web"}, .expect = rev, .object = pod},
//                [](Result<Committed> r) { ... });
//
// Threads: writes and watches belong to the core loop; what is *visible* (visible(), Visible(),
// Get()), failed() and Snapshots may be read from any thread without waiting for the core loop; the
// rest not. Errors: Conflict, AlreadyExists and NotFound are told by CommitError, since texts
// belong to the server; a disk error stops the store (see OnFatal).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/executor.h"
#include "base/status.h"

namespace sextant::api {
class Registry;
}

namespace sextant::store {

using Revision = uint64_t;  // one counter for the whole lab, as etcd's; first commit makes 1

// Where an object stands. `resource` is the storage name "pods" or "deployments.apps" (plural with
// group, without version); `ns` is empty for cluster-scoped ones.
struct Key {
  std::string resource;
  std::string ns;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

// One stored object. metadata.resourceVersion in `object` equals `mod_revision`.
struct Entry {
  Key key;
  api::Object object;
  Revision create_revision = 0;
  Revision mod_revision = 0;
};

enum class EventType : uint8_t { kAdded, kModified, kDeleted };

struct Event {
  EventType type = EventType::kAdded;
  Revision revision = 0;
  std::shared_ptr<const Entry> entry;     // after the change; for kDeleted the last state, with
                                          // resourceVersion set to the revision of the deletion
  std::shared_ptr<const Entry> previous;  // before it; null for kAdded
};

// An immutable picture of one resource at one revision, sorted by (ns, name). Threads: any; hold it
// as long as needed.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual Revision revision() const = 0;
  // Entries with `ns` ("" for all), whose (ns, name) is greater than `after`; at most `limit`
  // (0: no limit).
  virtual std::vector<std::shared_ptr<const Entry>> Range(std::string_view ns,
                                                          std::string_view after_ns,
                                                          std::string_view after_name,
                                                          size_t limit) const = 0;
  virtual std::shared_ptr<const Entry> Get(std::string_view ns, std::string_view name) const = 0;
  // How many Range would give without a limit.
  virtual size_t Count(std::string_view ns, std::string_view after_ns,
                       std::string_view after_name) const = 0;
};

enum class CommitError : uint8_t {
  kNone,
  kExists,    // create, and there is one
  kNotFound,  // update or delete, and there is none
  kConflict,  // the current mod_revision is not `expect`
  kTooLarge,  // over kMaxObjectBytes as JSON
  kFull,      // too much in flight to the disk: back off (429)
  kStopped,   // the store failed or is shutting down
};

constexpr size_t kMaxObjectBytes = 1'572'864;  // 1.5 MiB, as etcd's default request limit

struct Write {
  enum class Op : uint8_t { kCreate, kUpdate, kDelete } op = Op::kCreate;
  Key key;
  Revision expect = 0;  // update, delete: current mod_revision wanted; 0: any
  api::Object object;   // create, update: resourceVersion is put in by the store;
                        // delete: the last state to tell watchers (empty: the stored one)
};

struct Committed {
  CommitError error = CommitError::kNone;
  std::shared_ptr<const Entry> entry;  // on success what was stored (deleted: the last state); on
                                       // kConflict or kExists what stands there
  Revision revision = 0;
};

struct WatchOptions {
  std::string resource;
  std::string ns;      // "" for all
  std::string name;    // "" for all
  Revision after = 0;  // events with revision > after
};

// For a reader that wants to see a revision of the future, in the words of the API server's watch
// cache (apiserver pkg/storage/errors.go).
Error TooLargeRevision(Revision wanted, Revision current);

class Watch {
 public:
  virtual ~Watch() = default;  // ends it; no event is told afterwards
};

// How a watcher hears: on the core loop, in revision order, without gaps. Events of one batch come
// together. `revision` is the store's visible revision after the batch, also told without events
// now and then (for bookmarks) when `events` is empty.
using WatchSink = std::function<void(std::span<const Event> events, Revision revision)>;

struct Options {
  std::string path;  // of the SQLite file; "" keeps everything in memory (--ephemeral)
  size_t history_events = 20'000;   // per resource
  size_t history_bytes = 64 << 20;  // per resource
  // Ordered and not yet durable: at more, commits are refused (kFull), so that a slow disk costs
  // time and no memory.
  size_t max_inflight_commits = 20'000;
  size_t max_inflight_bytes = 128 << 20;
  // Objects of the kinds that it knows are read from the file by their schema; null: as they stand.
  // Must outlive Open only.
  const api::Registry* registry = nullptr;
};

class Store {
 public:
  // Opens or makes the file and reads everything. Errors name the file and the remedy: in use by
  // another process, made by a newer version, corrupt, read-only.
  static Result<std::unique_ptr<Store>> Open(const Options& options, Loop& core);

  virtual ~Store() = default;

  // Orders the write now (later reads of Latest see it; compare-and-swap is decided now) and calls
  // `done` on the core loop once it is durable, never inline.
  virtual void Commit(Write write, std::function<void(Committed)> done) = 0;
  // Writes to different objects that go together: all are ordered, one after the other, or none.
  // `done` tells of the first one, or why there are none. At least one.
  virtual void CommitAll(std::vector<Write> writes, std::function<void(Committed)> done) = 0;

  // What is durable, that is what readers and watchers may be told. Any thread.
  virtual Revision visible() const = 0;
  // The disk has refused: nothing is committed any more. Any thread.
  virtual bool failed() const = 0;
  virtual std::shared_ptr<const Snapshot> Visible(std::string_view resource) const = 0;
  virtual std::shared_ptr<const Entry> Get(const Key& key) const = 0;  // visible state
  // What is ordered, visible or not: for read-modify-write on the core loop.
  virtual std::shared_ptr<const Entry> Latest(const Key& key) const = 0;

  // Fails with kExpired (410) when `after` is older than the history kept, and for a revision of
  // the future.
  virtual Result<std::unique_ptr<Watch>> AddWatch(const WatchOptions& options, WatchSink sink) = 0;
  // The oldest revision after which a watch of `resource` can start.
  virtual Revision OldestWatchable(std::string_view resource) const = 0;

  // Lab state that is no API object (keys, the cluster's id): small, durable, by name.
  virtual Result<std::string> GetMeta(std::string_view name) const = 0;  // NotFound if absent
  virtual void PutMeta(std::string name, std::string value, std::function<void(Status)> done) = 0;

  // Called once, on the core loop, when the disk refuses: nothing more is committed.
  virtual void OnFatal(std::function<void(Error)> callback) = 0;
  // Waits until everything ordered is durable, then closes. Not from the core loop.
  virtual void Close() = 0;
};

}  // namespace sextant::store
