#include "store/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/random.h"
#include "store/connection.h"
#include "store/disk.h"

namespace sextant::store {
namespace {

constexpr size_t kPageBytes = 4096;

// Removes what was begun and not finished.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : path_(std::move(path)) {}
  ~Unfinished() {
    std::error_code ignored;
    for (const char* suffix : {"", "-journal", "-wal", "-shm", ".lock"})
      std::filesystem::remove(path_ + suffix, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// To the disk, and under its own name.
Status Keep(const std::string& made, const std::string& name) {
  const int fd = open(made.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fail(FileError("open", made, errno));
  const bool synced = fchmod(fd, 0600) == 0 && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!synced) return Fail(FileError("write", made, error));
  return RenameDurably(made, name);
}

Result<Revision> AddExtras(const std::string& path, const Extras& extras) {
  ASSIGN_OR_RETURN(auto db, Connection::Open(path));
  RETURN_IF_ERROR(db->Run("BEGIN; CREATE TABLE snapshot (name TEXT PRIMARY KEY, value TEXT)"));
  ASSIGN_OR_RETURN(Statement add, db->Prepare("INSERT INTO snapshot VALUES (?1, ?2)"));
  for (const auto& [name, value] : extras) RETURN_IF_ERROR(add.Bind(1, name).Bind(2, value).Run());
  RETURN_IF_ERROR(db->Run("COMMIT"));
  ASSIGN_OR_RETURN(const int64_t revision, db->Number("SELECT revision FROM revision"));
  return static_cast<Revision>(revision);
}

Result<Extras> TakeExtras(Connection& db) {
  Extras extras;
  {
    ASSIGN_OR_RETURN(Statement rows, db.Prepare("SELECT name, value FROM snapshot"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) break;
      extras.emplace(rows.Text(0), rows.Text(1));
    }
  }
  RETURN_IF_ERROR(db.Run("DROP TABLE snapshot"));
  return extras;
}

// Opens it as a lab would, and forgets what was read.
Status ReadOnce(const std::string& path, const api::Registry* registry) {
  const RealClock clock;
  DiskState state;
  const Disk::Callbacks nothing{[](uint64_t) {}, [](Error) {}};
  ASSIGN_OR_RETURN(const auto disk, Disk::Open(path, clock, registry, nothing, &state));
  disk->Close();
  return {};
}

Error NoCopy(const std::string& path, const Error& why) {
  return UsageError(fmt::format("{} is no snapshot of a lab: {}", path, why.message));
}

}  // namespace

Result<Revision> CopyState(const std::string& from, const std::string& to, const Extras& extras) {
  const Unfinished copy(fmt::format("{}.{:x}.tmp", to, RandomSeed()));
  {
    ASSIGN_OR_RETURN(const auto db, Connection::Open(from));
    ASSIGN_OR_RETURN(Statement vacuum, db->Prepare("VACUUM INTO ?1"));
    if (Status copied = vacuum.Bind(1, copy.path()).Run(); !copied) {
      return Fail(UsageError(
          fmt::format("the snapshot {} cannot be written: {}", to, copied.error().message)));
    }
  }
  ASSIGN_OR_RETURN(const Revision revision, AddExtras(copy.path(), extras));
  RETURN_IF_ERROR(Keep(copy.path(), to));
  return revision;
}

Result<Extras> UnpackCopy(const std::string& from, const std::string& to,
                          const api::Registry* registry) {
  const Unfinished copy(to + ".tmp");
  std::error_code error;
  std::filesystem::copy_file(from, copy.path(), error);
  if (error) return Fail(FileError("open", from, error.value()));
  std::filesystem::permissions(copy.path(), std::filesystem::perms(0600), error);
  // SQLite takes the missing end of the last page for zeros.
  if (std::filesystem::file_size(copy.path(), error) % kPageBytes != 0)
    return Fail(NoCopy(from, UsageError("its end is missing")));
  Extras extras;
  {
    ASSIGN_OR_RETURN(const auto db, Connection::Open(copy.path()));
    Result<Extras> taken = TakeExtras(*db);
    if (!taken) return Fail(NoCopy(from, taken.error()));
    extras = *std::move(taken);
  }
  if (Status read = ReadOnce(copy.path(), registry); !read) return Fail(NoCopy(from, read.error()));
  RETURN_IF_ERROR(Keep(copy.path(), to));
  return extras;
}

}  // namespace sextant::store
