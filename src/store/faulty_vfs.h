// FaultyVfs: a disk for tests between SQLite and the real one (a SQLite VFS).
//
// It notes every write, truncation, sync and deletion below one folder, in order, so that the files
// can be built as a power cut at any moment would have left them; and it fails, fills or slows down
// as the test says.
//
//   FaultyVfs disk(dir);
//   disk.SetFault([](const FaultyVfs::Call& call) {
//     return call.op == FaultyVfs::Op::kSync ? SQLITE_IOERR_FSYNC : SQLITE_OK;
//   });
//   ...                                 // the store at work below dir; disk.Mark(7): "7 was told"
//   disk.CutPower(disk.calls(), FaultyVfs::Cut::kSectors, random, elsewhere);
//
// What a cut leaves of a file: all that was synced; of the rest each sector of 512 bytes holds any
// of the states that it went through since, whatever its neighbours hold. A file whose folder was
// not synced since it was made or deleted may be there or not.
//
// It is SQLite's default VFS while it lives, one at a time. Threads: any.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace sextant::store::testing {

class FaultyVfs {
 public:
  enum class Op : uint8_t { kOpen, kWrite, kTruncate, kSync, kDelete, kMark };
  struct Call {
    Op op = Op::kOpen;
    std::string file;    // name within the folder
    int64_t offset = 0;  // of a write; of a truncation the new size
    std::string bytes;   // of a write; of an opening what the file held
    bool failed = false;
    bool folder = false;  // a sync, a deletion: the folder is synced too
    uint64_t mark = 0;
  };
  // Asked before each call is made, on SQLite's threads: SQLITE_OK or the code to fail with.
  using Fault = std::function<int(const Call&)>;

  enum class Cut : uint8_t { kNothingMore, kEverything, kWrites, kSectors };
  using Image = std::map<std::string, std::string>;

  explicit FaultyVfs(std::string folder);
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;

  void SetFault(Fault fault);
  // Notes that everything up to `mark` was told to somebody.
  void Mark(uint64_t mark);
  size_t calls() const;
  std::vector<Call> trace() const;
  // The largest size that a file with this name had.
  int64_t LargestSize(std::string_view file) const;

  // The files after a power cut when the first `calls` calls had been made.
  Image ImageAt(size_t calls, Cut cut, Random& random) const;
  // The greatest mark among the first `calls` calls.
  uint64_t MarkAt(size_t calls) const;

 private:
  friend struct FaultyFile;
  static FaultyVfs* current;

  static int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags);
  static int Delete(sqlite3_vfs*, const char* name, int sync_folder);
  // The name within the folder; empty for files elsewhere.
  std::string NameOf(const char* path) const;
  // Notes the call, makes it unless it is to fail, and says what came of it.
  int Make(Call call, const std::function<int()>& real);

  const std::string folder_;
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_{};
  mutable std::mutex mutex_;
  Fault fault_;                                          // guarded by mutex_
  std::vector<Call> trace_;                              // guarded by mutex_
  std::map<std::string, int64_t, std::less<>> largest_;  // guarded by mutex_
};

// Writes an image into a folder.
void WriteImage(const FaultyVfs::Image& image, const std::string& folder);

// While it lives every connection runs with synchronous=OFF, whatever it asks for.
class SynchronousOff {
 public:
  SynchronousOff();
  ~SynchronousOff();
};

}  // namespace sextant::store::testing
