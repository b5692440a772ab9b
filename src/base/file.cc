#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/random.h"

namespace sextant {
namespace {

// Closes at the end of the scope; Close() tells whether that worked.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  bool Close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || close(fd) == 0;
  }

 private:
  int fd_;
};

std::string LowerFirst(std::string text) {
  if (!text.empty()) text[0] = AsciiLower(text[0]);
  return text;
}

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t wrote = write(fd, data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    data.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string BaseOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where a symbolic link at `path` points; `path` itself if it is none.
std::string FollowLink(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

Status WriteNew(const std::string& path, std::string_view data, mode_t mode) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd.get() < 0) return Fail(FileError("open", path, errno));
  // Once more: the umask may have taken bits away.
  if (fchmod(fd.get(), mode) != 0) return Fail(FileError("chmod", path, errno));
  if (!WriteAll(fd.get(), data)) return Fail(FileError("write", path, errno));
  if (fsync(fd.get()) != 0) return Fail(FileError("fsync", path, errno));
  if (!fd.Close()) return Fail(FileError("close", path, errno));
  return {};
}

Status SyncDirectory(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return Fail(FileError("open", path, errno));
  // EINVAL: a file system that has no such thing as an unsynced folder.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return Fail(FileError("fsync", path, errno));
  return {};
}

}  // namespace

Error FileError(std::string_view what, std::string_view path, int error_number) {
  Error error;
  error.message = fmt::format("{} {}: {}", what, path,
                              LowerFirst(std::generic_category().message(error_number)));
  switch (error_number) {
    case ENOENT:
      error.code = 404;
      error.reason = "NotFound";
      break;
    case EACCES:
    case EPERM:
      error.code = 403;
      error.reason = "Forbidden";
      break;
    default:
      error.code = 500;
      error.reason = "InternalError";
  }
  return error;
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return Fail(FileError("open", path, errno));
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(FileError("read", path, errno));
    if (got == 0) return text;
    if (static_cast<size_t>(got) > max_bytes - text.size())
      return Fail(RequestEntityTooLarge(fmt::format("{}: limit is {} bytes", path, max_bytes)));
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

Status WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode) {
  const std::string target = FollowLink(path);
  const std::string directory = DirectoryOf(target);
  const std::string temporary =
      fmt::format("{}/.{}.{:016x}.tmp", directory, BaseOf(target), RandomSeed());
  if (Status written = WriteNew(temporary, data, mode); !written) {
    unlink(temporary.c_str());
    return written;
  }
  Status renamed = RenameDurably(temporary, target);
  if (!renamed) unlink(temporary.c_str());
  return renamed;
}

Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return Fail(FileError("rename", to, errno));
  return SyncDirectory(DirectoryOf(to));
}

Status MakeDirectories(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return {};
  if (errno == ENOENT && DirectoryOf(path) != path) {
    RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path), 0777));
    if (mkdir(path.c_str(), mode) == 0) return {};
  }
  const int why = errno;
  struct stat info{};
  if (why == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return Fail(FileError("mkdir", path, why));
}

Result<TempDir> TempDir::Make(std::string_view prefix) {
  const char* const base = std::getenv("TMPDIR");
  std::string path =
      fmt::format("{}/{}-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp", prefix);
  if (mkdtemp(path.data()) == nullptr) return Fail(FileError("mkdtemp", path, errno));
  return TempDir(std::move(path));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TempDir::~TempDir() { Remove(); }

void TempDir::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;  // nobody is left to tell
  std::filesystem::remove_all(path_, ignored);
  path_.clear();
}

}  // namespace sextant
