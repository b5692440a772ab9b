// Disk: the SQLite file under the store, written by a thread of its own.
//
// What is appended is written in order, everything queued as one transaction (group commit). A file
// belongs to one process at a time. It can be read with any SQLite tool while the lab runs:
//
//   SELECT resource, ns, name, json_extract(object, '$.status.phase') FROM objects;
//
// The form of the file (format 1; PRAGMA user_version):
//   objects   one row an object, its row id is the revision that made it
//   revision  one row: the lab's counter, also moved by deletions
//   meta      lab state by name
//
// The WAL is copied into the file beside the writer when it passes kCheckpointBytes, and the writer
// waits for that when it passes kWaitForCopyBytes, so that it stays below kMaxWalBytes (unless a
// foreign reader holds a transaction open: SQLite then cannot start the WAL anew).
//
// Threads: Append from any thread; callbacks run on the disk's thread. Errors: of Open, for a
// person to read; a failed write, sync or copy ends all writing and leaves the files as they are,
// since after a failed fsync nobody knows what is on the disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"
#include "store/store.h"

namespace sextant::store {

struct DiskOp {
  enum class Kind : uint8_t { kPut, kErase, kMeta } kind = Kind::kPut;
  uint64_t sequence = 0;               // grows by one with every op
  Revision revision = 0;               // put, erase: of this change
  std::shared_ptr<const Entry> entry;  // put, erase
  std::string name;                    // meta
  std::string value;                   // meta
};

struct DiskState {
  Revision revision = 0;
  std::vector<std::shared_ptr<const Entry>> entries;  // in no order
  std::map<std::string, std::string, std::less<>> meta;
};

class Connection;
struct DiskStatements;

class Disk {
 public:
  static constexpr size_t kCheckpointBytes = 16 << 20;
  static constexpr size_t kMaxWalBytes = 64 << 20;
  static constexpr size_t kMaxBatchOps = 1024;
  static constexpr size_t kMaxBatchBytes = 8 << 20;
  // Room for a batch of objects that grow when they are written as JSON.
  static constexpr size_t kWaitForCopyBytes = kMaxWalBytes - 3 * kMaxBatchBytes;

  struct Callbacks {
    std::function<void(uint64_t sequence)> durable;  // everything up to it is on the disk
    std::function<void(Error)> failed;               // once; nothing is written any more
  };

  // Opens or makes the file, takes its lock and reads everything into `state`; objects of kinds
  // that `registry` (may be null) knows are decoded by their schema.
  static Result<std::unique_ptr<Disk>> Open(const std::string& path, const Clock& clock,
                                            const api::Registry* registry, Callbacks callbacks,
                                            DiskState* state);
  ~Disk();

  // False after Close or a failure.
  bool Append(DiskOp op);
  // Waits until everything appended is written (or writing has failed), then closes the file.
  void Close();

  size_t wal_bytes() const { return wal_bytes_.load(); }

 private:
  enum class Checkpoint : int { kNone, kRunning, kCopied };

  Disk(std::string path, const Clock& clock, Callbacks callbacks);
  Result<std::unique_ptr<Connection>> Prepare();
  void Drain();
  bool WriteSlices(std::vector<DiskOp>* ops);
  Status WriteBatch(const DiskOp* first, size_t n);
  Status WriteOps(const DiskOp* first, size_t n);
  Status KeepWalSmall();
  void CopyWalAside();
  Status CopyWal(Connection& db, bool* all);
  Error WriteFailure(const Error& why, const Connection& db) const;

  const std::string path_;
  const Clock& clock_;
  const Callbacks callbacks_;
  int lock_fd_ = -1;

  std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<DiskOp> inbox_;  // guarded by mutex_
  bool draining_ = false;      // guarded by mutex_
  bool closed_ = false;        // guarded by mutex_

  std::atomic<size_t> wal_bytes_ = 0;
  std::atomic<Checkpoint> checkpoint_ = Checkpoint::kNone;
  size_t next_checkpoint_bytes_ = kCheckpointBytes;  // disk thread
  bool warned_of_reader_ = false;                    // disk thread
  Status copied_;  // of the checkpoint thread, read after checkpoint_ says kCopied

  std::unique_ptr<Connection> writer_;        // disk thread
  std::unique_ptr<DiskStatements> sql_;       // disk thread; dies before writer_
  std::unique_ptr<Connection> checkpointer_;  // checkpoint thread
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<EventLoop> checkpoint_loop_;
};

}  // namespace sextant::store
