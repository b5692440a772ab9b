// Small files: read whole with a limit, written whole or not at all.
//
//   ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxConfigBytes));
//   RETURN_IF_ERROR(WriteFileAtomic(path, text, 0600));
//
// Paths are bytes as the system takes them. Errors: NotFound, Forbidden or InternalError with a
// text as Go prints it ("open /x: no such file or directory"). Threads: any; they block, so never
// on the core thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant {

// The error for a failed system call: `what` is the operation as Go names it ("open", "rename").
Error FileError(std::string_view what, std::string_view path, int error_number);

// The whole file; RequestEntityTooLarge if it is longer than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

// After success the file holds `data` with exactly `mode`, also after a crash of the machine; after
// an error or a crash before, it holds what it held. Replaces a symbolic link's target, not the
// link. Other names beside it may be left by a crash: ".<name>.<random>.tmp".
Status WriteFileAtomic(const std::string& path, std::string_view data, mode_t mode);

// Gives the file or folder another name, in place of what has it, on the disk as well.
Status RenameDurably(const std::string& from, const std::string& to);

// mkdir -p: parents get 0777 less the umask, the last folder `mode`. Fine if it is there already.
Status MakeDirectories(const std::string& path, mode_t mode);

// A new folder (0700) under $TMPDIR or /tmp, removed with all that is in it by the destructor.
class TempDir {
 public:
  static Result<TempDir> Make(std::string_view prefix = "sextant");
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  void Remove();

  std::string path_;  // empty: moved from
};

}  // namespace sextant
