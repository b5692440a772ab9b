#include "store/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <unordered_map>

#include "api/json.h"
#include "api/schema.h"
#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "store/connection.h"

namespace sextant::store {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kApplicationId = 0x53787431;  // "Sxt1", what file(1) can tell it by

// wal_autocheckpoint=0: Disk decides when. The size limit shortens a WAL that once grew large.
constexpr const char* kSettings =
    "PRAGMA synchronous=FULL;"
    "PRAGMA wal_autocheckpoint=0;"
    "PRAGMA journal_size_limit=67108864;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA trusted_schema=OFF;";

constexpr const char* kSchema =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE objects (created INTEGER PRIMARY KEY, modified INTEGER NOT NULL,"
    " resource TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL, object TEXT NOT NULL);"
    "CREATE TABLE revision (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL);"
    "INSERT INTO revision VALUES (1, 0);"
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "PRAGMA application_id=1400402993;"
    "PRAGMA user_version=1;"
    "COMMIT;";
static_assert(kApplicationId == 1400402993 && kFormat == 1);

Error Corrupt(const std::string& path, std::string_view why) {
  return UsageError(fmt::format(
      "the state file {} is damaged ({}): restore it from a copy, or remove it and its -wal file "
      "to start empty",
      path, why));
}

// Takes the lock that keeps a second process away; the file beside the state stays for good.
Result<int> Lock(const std::string& path) {
  const std::string name = path + ".lock";
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Fail(UsageError(
        fmt::format("the state file {} cannot be written: {}: {}", path, name, strerror(errno))));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[16] = {};
    const ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    close(fd);
    return Fail(UsageError(
        fmt::format("the state file {} is in use by another process (pid {}): stop that one first",
                    path, n > 0 ? std::string_view(pid, static_cast<size_t>(n)) : "unknown")));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const int error = errno;
    close(fd);
    return Fail(UsageError(
        fmt::format("the state file {} cannot be written: {}: {}", path, name, strerror(error))));
  }
  return fd;
}

// SQLite would make the file readable for all; objects hold secrets.
Status MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const bool read_only = errno == EACCES || errno == EROFS || errno == EPERM;
    return Fail(UsageError(
        fmt::format("the state file {} {}: {}", path,
                    read_only ? "is read-only; give this user write access to it and its folder"
                              : "cannot be opened",
                    strerror(errno))));
  }
  close(fd);
  return {};
}

Status CheckFormat(const std::string& path, Connection& db) {
  Result<int64_t> format = db.Number("PRAGMA user_version");
  if (!format)
    return Fail(db.LastIsCorruption() ? Corrupt(path, "no SQLite database") : format.error());
  ASSIGN_OR_RETURN(const int64_t tables, db.Number("SELECT count(*) FROM sqlite_master"));
  if (*format == 0 && tables == 0) {
    RETURN_IF_ERROR(db.Run("PRAGMA page_size=4096; PRAGMA journal_mode=WAL;"));
    return db.Run(kSchema);
  }
  ASSIGN_OR_RETURN(const int64_t application, db.Number("PRAGMA application_id"));
  if (application != kApplicationId) {
    return Fail(UsageError(
        fmt::format("{} is a database of another program, not a state file of sextant", path)));
  }
  if (*format > kFormat) {
    return Fail(UsageError(fmt::format(
        "the state file {} was made by a newer version of sextant (format {}, this one knows {}): "
        "use that version, or another state directory",
        path, *format, kFormat)));
  }
  return db.Run("PRAGMA journal_mode=WAL;");
}

// Reads objects of one file. Those of one resource are mostly of one kind, so the message of the
// last one is tried first: that saves a pass over the tree.
class ObjectReader {
 public:
  explicit ObjectReader(const api::Registry* registry) : registry_(registry) {}

  Result<api::Object> Read(std::string_view resource, std::string_view text) {
    Known& known = known_[std::string(resource)];
    if (known.message) {
      Result<api::Object> object = api::DecodeJson(text, *known.message);
      if (object && object->api_version() == known.api_version && object->kind() == known.kind)
        return Checked(std::move(object));
    }
    ASSIGN_OR_RETURN(api::Object object, api::ParseJson(text));
    const api::Message* message = registry_ ? MessageOf(object) : nullptr;
    if (!message) return Checked(std::move(object));
    known = {message, std::string(object.api_version()), std::string(object.kind())};
    return Checked(api::DecodeTree(object.root(), *message));
  }

 private:
  struct Known {
    const api::Message* message = nullptr;
    std::string api_version;
    std::string kind;
  };

  static Result<api::Object> Checked(Result<api::Object> object) {
    if (object && !(*object)["metadata"].IsMap())
      return Fail(BadRequest("no object with metadata"));
    return object;
  }

  // The message of an object's own apiVersion and kind, null if unknown.
  const api::Message* MessageOf(const api::Object& object) const {
    const api::Resource* resource =
        registry_->FindKind(api::GroupVersion::Of(object.api_version()), object.kind());
    return resource ? resource->message : nullptr;
  }

  const api::Registry* registry_;
  std::unordered_map<std::string, Known> known_;
};

Result<std::shared_ptr<const Entry>> ReadEntry(const std::string& path, const Statement& row,
                                               ObjectReader& reader) {
  auto entry = std::make_shared<Entry>();
  entry->create_revision = static_cast<Revision>(row.Int(0));
  entry->mod_revision = static_cast<Revision>(row.Int(1));
  entry->key = {std::string(row.Text(2)), std::string(row.Text(3)), std::string(row.Text(4))};
  Result<api::Object> object = reader.Read(entry->key.resource, row.Text(5));
  if (!object) {
    return Fail(Corrupt(path, fmt::format("{} {}/{}: {}", entry->key.resource, entry->key.ns,
                                          entry->key.name, object.error().message)));
  }
  entry->object = *std::move(object);
  return entry;
}

Status ReadAll(const std::string& path, Connection& db, const api::Registry* registry,
               DiskState* state) {
  const auto damaged = [&](Error error) {
    return Fail(db.LastIsCorruption() ? Corrupt(path, error.message) : std::move(error));
  };
  Result<int64_t> revision = db.Number("SELECT revision FROM revision");
  if (!revision) return damaged(std::move(revision).error());
  state->revision = static_cast<Revision>(*revision);

  Result<Statement> rows =
      db.Prepare("SELECT created, modified, resource, ns, name, object FROM objects");
  if (!rows) return damaged(std::move(rows).error());
  ObjectReader reader(registry);
  for (;;) {
    Result<bool> row = rows->Step();
    if (!row) return damaged(std::move(row).error());
    if (!*row) break;
    ASSIGN_OR_RETURN(auto entry, ReadEntry(path, *rows, reader));
    if (entry->mod_revision > state->revision || entry->create_revision > entry->mod_revision ||
        entry->create_revision == 0) {
      return Fail(Corrupt(
          path, fmt::format("{} {}/{} has revision {} of {}", entry->key.resource, entry->key.ns,
                            entry->key.name, entry->mod_revision, state->revision)));
    }
    state->entries.push_back(std::move(entry));
  }

  Result<Statement> meta = db.Prepare("SELECT name, value FROM meta");
  if (!meta) return damaged(std::move(meta).error());
  for (;;) {
    Result<bool> row = meta->Step();
    if (!row) return damaged(std::move(row).error());
    if (!*row) return {};
    state->meta.emplace(meta->Text(0), meta->Text(1));
  }
}

}  // namespace

struct DiskStatements {
  Statement begin, commit, rollback, put, erase, meta, counter;

  static Result<std::unique_ptr<DiskStatements>> Make(Connection& db) {
    auto sql = std::make_unique<DiskStatements>();
    ASSIGN_OR_RETURN(sql->begin, db.Prepare("BEGIN IMMEDIATE"));
    ASSIGN_OR_RETURN(sql->commit, db.Prepare("COMMIT"));
    ASSIGN_OR_RETURN(sql->rollback, db.Prepare("ROLLBACK"));
    ASSIGN_OR_RETURN(sql->put,
                     db.Prepare("INSERT INTO objects VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
                                "ON CONFLICT (created) DO UPDATE SET "
                                "modified = excluded.modified, object = excluded.object"));
    ASSIGN_OR_RETURN(sql->erase, db.Prepare("DELETE FROM objects WHERE created = ?1"));
    ASSIGN_OR_RETURN(sql->meta, db.Prepare("REPLACE INTO meta VALUES (?1, ?2)"));
    ASSIGN_OR_RETURN(sql->counter, db.Prepare("UPDATE revision SET revision = ?1"));
    return sql;
  }
};

Disk::Disk(std::string path, const Clock& clock, Callbacks callbacks)
    : path_(std::move(path)), clock_(clock), callbacks_(std::move(callbacks)) {}

Result<std::unique_ptr<Disk>> Disk::Open(const std::string& path, const Clock& clock,
                                         const api::Registry* registry, Callbacks callbacks,
                                         DiskState* state) {
  std::unique_ptr<Disk> disk(new Disk(path, clock, std::move(callbacks)));
  ASSIGN_OR_RETURN(disk->lock_fd_, Lock(path));
  RETURN_IF_ERROR(MakeFile(path));
  ASSIGN_OR_RETURN(disk->writer_, disk->Prepare());
  RETURN_IF_ERROR(CheckFormat(path, *disk->writer_));
  RETURN_IF_ERROR(ReadAll(path, *disk->writer_, registry, state));
  ASSIGN_OR_RETURN(disk->sql_, DiskStatements::Make(*disk->writer_));
  disk->loop_ = std::make_unique<EventLoop>("store", clock);
  return disk;
}

Result<std::unique_ptr<Connection>> Disk::Prepare() {
  Result<std::unique_ptr<Connection>> opened = Connection::Open(path_);
  if (!opened) return opened;
  Connection& db = **opened;
  if (db.read_only()) {
    return Fail(UsageError(fmt::format(
        "the state file {} is read-only; give this user write access to it and its folder",
        path_)));
  }
  if (Status status = db.Run(kSettings); !status) {
    return Fail(db.LastIsCorruption() ? Corrupt(path_, "no SQLite database")
                                      : WriteFailure(status.error(), db));
  }
  return opened;
}

Disk::~Disk() { Close(); }

bool Disk::Append(DiskOp op) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  inbox_.push_back(std::move(op));
  if (!draining_) {
    draining_ = true;
    loop_->Post([this] { Drain(); });
  }
  return true;
}

void Disk::Close() {
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    idle_.wait(lock, [this] { return !draining_; });
  }
  if (loop_) loop_->Stop();
  if (checkpoint_loop_) {
    // A task that has not begun would be dropped and never say that it has ended: join only.
    checkpoint_loop_->Stop();
  }
  checkpointer_.reset();
  sql_.reset();
  writer_.reset();  // the last connection: copies the WAL into the file and removes it
  if (lock_fd_ >= 0) close(std::exchange(lock_fd_, -1));
}

void Disk::Drain() {
  for (;;) {
    std::vector<DiskOp> ops;
    {
      std::lock_guard lock(mutex_);
      ops.swap(inbox_);
      if (ops.empty()) {
        draining_ = false;
        idle_.notify_all();
        return;
      }
    }
    if (WriteSlices(&ops)) continue;
    std::lock_guard lock(mutex_);
    closed_ = true;
    inbox_.clear();
    draining_ = false;
    idle_.notify_all();
    return;
  }
}

// Writes `ops` in transactions of bounded size. False: the disk refuses.
bool Disk::WriteSlices(std::vector<DiskOp>* ops) {
  for (size_t first = 0; first < ops->size();) {
    size_t n = 0;
    for (size_t bytes = 0; first + n < ops->size() && n < kMaxBatchOps && bytes < kMaxBatchBytes;) {
      const DiskOp& op = (*ops)[first + n++];
      bytes += op.value.size() + (op.entry ? op.entry->object.bytes() : 0);
    }
    Status status = WriteBatch(&(*ops)[first], n);
    if (status) {
      callbacks_.durable((*ops)[first + n - 1].sequence);
      first += n;
      status = KeepWalSmall();
    }
    if (!status) {
      writer_->LeaveFilesAlone();
      callbacks_.failed(std::move(status).error());
      return false;
    }
  }
  return true;
}

// What the user reads when the lab stops.
Error Disk::WriteFailure(const Error& why, const Connection& db) const {
  Error error = why;
  error.message =
      db.LastIsFullDisk()
          ? fmt::format(
                "the disk that holds the state file {} is full: make room and start again; "
                "everything acknowledged so far is kept ({})",
                path_, why.message)
          : fmt::format(
                "the state file {} cannot be written safely: check its disk and start "
                "again; everything acknowledged so far is kept ({})",
                path_, why.message);
  return error;
}

Status Disk::WriteBatch(const DiskOp* first, size_t n) {
  const auto write = [&]() -> Status {
    RETURN_IF_ERROR(sql_->begin.Run());
    RETURN_IF_ERROR(WriteOps(first, n));
    return sql_->commit.Run();
  };
  if (Status status = write(); !status) {
    Error failure = WriteFailure(status.error(), *writer_);
    // Fails too when SQLite has rolled back by itself; the first error is the one to tell.
    if (Status rolled_back = sql_->rollback.Run(); !rolled_back)
      log::Debug("store", "rollback: {}", rolled_back.error().message);
    return Fail(std::move(failure));
  }
  wal_bytes_ = writer_->wal_bytes();
  return {};
}

Status Disk::WriteOps(const DiskOp* first, size_t n) {
  // Only the last state of an object within the transaction needs to be written.
  std::unordered_map<Revision, const DiskOp*> last;
  Revision revision = 0;
  for (const DiskOp* op = first; op != first + n; ++op) {
    if (op->kind == DiskOp::Kind::kMeta) continue;
    last[op->entry->create_revision] = op;
    revision = op->revision;
  }
  std::string text;
  for (const DiskOp* op = first; op != first + n; ++op) {
    if (op->kind == DiskOp::Kind::kMeta) {
      RETURN_IF_ERROR(sql_->meta.Bind(1, op->name).Bind(2, op->value).Run());
      continue;
    }
    const Entry& entry = *op->entry;
    if (last[entry.create_revision] != op) continue;
    const auto created = static_cast<int64_t>(entry.create_revision);
    if (op->kind == DiskOp::Kind::kErase) {
      RETURN_IF_ERROR(sql_->erase.Bind(1, created).Run());
      continue;
    }
    text.clear();
    api::WriteJson(entry.object.root(), text, {.escape_html = false});
    Statement& put = sql_->put;
    put.Bind(1, created).Bind(2, static_cast<int64_t>(entry.mod_revision));
    put.Bind(3, entry.key.resource).Bind(4, entry.key.ns).Bind(5, entry.key.name).Bind(6, text);
    RETURN_IF_ERROR(put.Run());
  }
  if (revision == 0) return {};
  return sql_->counter.Bind(1, static_cast<int64_t>(revision)).Run();
}

// The checkpoint thread copies most of the WAL while we go on writing; we copy the few pages that
// came meanwhile, and the next write starts the WAL anew.
Status Disk::KeepWalSmall() {
  const size_t bytes = writer_->wal_bytes();
  if (bytes < next_checkpoint_bytes_ && checkpoint_ != Checkpoint::kCopied) return {};
  if (checkpoint_ == Checkpoint::kNone && bytes < kWaitForCopyBytes) {
    if (!checkpoint_loop_) checkpoint_loop_ = std::make_unique<EventLoop>("store-copy", clock_);
    checkpoint_ = Checkpoint::kRunning;
    checkpoint_loop_->Post([this] { CopyWalAside(); });
    return {};
  }
  if (checkpoint_ == Checkpoint::kRunning) {
    if (bytes < kWaitForCopyBytes) return {};
    checkpoint_.wait(Checkpoint::kRunning);
  }
  checkpoint_ = Checkpoint::kNone;
  RETURN_IF_ERROR(copied_);
  bool all = false;
  RETURN_IF_ERROR(CopyWal(*writer_, &all));
  if (all) {
    next_checkpoint_bytes_ = kCheckpointBytes;
    return {};
  }
  next_checkpoint_bytes_ = bytes + kCheckpointBytes;
  if (bytes > kMaxWalBytes && !std::exchange(warned_of_reader_, true)) {
    log::Warning("store",
                 "{}-wal grows to {} MiB: another program reads the state file in one long "
                 "transaction",
                 path_, bytes >> 20);
  }
  return {};
}

// `all`: nothing is left to copy.
Status Disk::CopyWal(Connection& db, bool* all) {
  const Result<bool> copied = db.CheckpointPassive();
  if (!copied) return Fail(WriteFailure(copied.error(), db));
  *all = *copied;
  return {};
}

void Disk::CopyWalAside() {
  bool all = false;
  if (!checkpointer_) {
    Result<std::unique_ptr<Connection>> opened = Prepare();
    if (opened) {
      checkpointer_ = *std::move(opened);
    } else {
      copied_ = Fail(std::move(opened).error());
    }
  }
  if (checkpointer_) copied_ = CopyWal(*checkpointer_, &all);
  checkpoint_ = Checkpoint::kCopied;
  checkpoint_.notify_all();
}

}  // namespace sextant::store
