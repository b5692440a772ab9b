#include "store/faulty_vfs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "base/check.h"
#include "base/file.h"

namespace sextant::store::testing {

constexpr int64_t kSector = 512;
constexpr size_t kMaxFile = 256 << 20;

FaultyVfs* FaultyVfs::current = nullptr;

namespace {
std::atomic<bool> synchronous_off = false;
}  // namespace

// A file as SQLite holds it; the real one's memory follows behind.
struct FaultyFile {
  sqlite3_file base;
  sqlite3_io_methods methods;
  std::string* name;  // within the folder; empty: not ours

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  static FaultyFile& Of(sqlite3_file* file) { return *reinterpret_cast<FaultyFile*>(file); }

  static int Close(sqlite3_file* file) {
    FaultyFile& self = Of(file);
    delete self.name;
    return self.real()->pMethods ? self.real()->pMethods->xClose(self.real()) : SQLITE_OK;
  }
  static int Write(sqlite3_file* file, const void* data, int n, sqlite3_int64 offset) {
    FaultyFile& self = Of(file);
    const auto real = [&] { return self.real()->pMethods->xWrite(self.real(), data, n, offset); };
    if (self.name->empty()) return real();
    FaultyVfs::Call call{.op = FaultyVfs::Op::kWrite, .file = *self.name, .offset = offset};
    call.bytes.assign(static_cast<const char*>(data), static_cast<size_t>(n));
    return FaultyVfs::current->Make(std::move(call), real);
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    FaultyFile& self = Of(file);
    const auto real = [&] { return self.real()->pMethods->xTruncate(self.real(), size); };
    if (self.name->empty()) return real();
    return FaultyVfs::current->Make(
        {.op = FaultyVfs::Op::kTruncate, .file = *self.name, .offset = size}, real);
  }
  // Of a write-ahead log or a journal the first sync syncs the folder too (SQLite's os_unix.c).
  static int Sync(sqlite3_file* file, int flags) {
    FaultyFile& self = Of(file);
    const auto real = [&] { return self.real()->pMethods->xSync(self.real(), flags); };
    if (self.name->empty()) return real();
    FaultyVfs::Call call{.op = FaultyVfs::Op::kSync, .file = *self.name};
    call.folder = self.name->ends_with("-wal") || self.name->ends_with("-journal");
    return FaultyVfs::current->Make(std::move(call), real);
  }
  // A VFS that answers a pragma keeps SQLite from carrying it out.
  static int Control(sqlite3_file* file, int op, void* argument) {
    if (op == SQLITE_FCNTL_PRAGMA && synchronous_off) {
      const auto* words = static_cast<char**>(argument);
      if (std::string_view(words[1]) == "synchronous" && words[2] &&
          std::string_view(words[2]) != "OFF")
        return SQLITE_OK;
    }
    FaultyFile& self = Of(file);
    return self.real()->pMethods->xFileControl(self.real(), op, argument);
  }

  template <auto Method, typename... Args>
  static auto Pass(sqlite3_file* file, Args... args) {
    FaultyFile& self = Of(file);
    return (self.real()->pMethods->*Method)(self.real(), args...);
  }
};

FaultyVfs::FaultyVfs(std::string folder)
    : folder_(std::move(folder)), real_(sqlite3_vfs_find(nullptr)) {
  CHECK(current == nullptr);
  current = this;
  vfs_ = *real_;
  vfs_.zName = "faulty";
  vfs_.szOsFile = static_cast<int>(sizeof(FaultyFile)) + real_->szOsFile;
  vfs_.pNext = nullptr;
  vfs_.xOpen = &FaultyVfs::Open;
  vfs_.xDelete = &FaultyVfs::Delete;
  CHECK(sqlite3_vfs_register(&vfs_, 1) == SQLITE_OK);
}

FaultyVfs::~FaultyVfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(real_, 1);
  current = nullptr;
}

std::string FaultyVfs::NameOf(const char* path) const {
  const std::string_view whole = path ? path : "";
  if (whole.size() <= folder_.size() + 1 || !whole.starts_with(folder_)) return "";
  return std::string(whole.substr(folder_.size() + 1));
}

int FaultyVfs::Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  FaultyVfs& self = *current;
  FaultyFile& out = FaultyFile::Of(file);
  out = {};
  out.name = new std::string(self.NameOf(name));
  Call call{.op = Op::kOpen, .file = *out.name};
  if (!out.name->empty()) call.bytes = ReadFile(name, kMaxFile).value_or("");
  const auto open = [&] {
    return self.real_->xOpen(self.real_, name, out.real(), flags, out_flags);
  };
  const int rc = out.name->empty() ? open() : self.Make(std::move(call), open);
  if (rc != SQLITE_OK) {
    delete out.name;
    return rc;
  }
  using M = sqlite3_io_methods;
  out.methods = {
      .iVersion = 2,  // without memory-mapped pages, which would pass us by
      .xClose = &FaultyFile::Close,
      .xRead = &FaultyFile::Pass<&M::xRead, void*, int, sqlite3_int64>,
      .xWrite = &FaultyFile::Write,
      .xTruncate = &FaultyFile::Truncate,
      .xSync = &FaultyFile::Sync,
      .xFileSize = &FaultyFile::Pass<&M::xFileSize, sqlite3_int64*>,
      .xLock = &FaultyFile::Pass<&M::xLock, int>,
      .xUnlock = &FaultyFile::Pass<&M::xUnlock, int>,
      .xCheckReservedLock = &FaultyFile::Pass<&M::xCheckReservedLock, int*>,
      .xFileControl = &FaultyFile::Control,
      .xSectorSize = &FaultyFile::Pass<&M::xSectorSize>,
      .xDeviceCharacteristics = &FaultyFile::Pass<&M::xDeviceCharacteristics>,
      .xShmMap = &FaultyFile::Pass<&M::xShmMap, int, int, int, void volatile**>,
      .xShmLock = &FaultyFile::Pass<&M::xShmLock, int, int, int>,
      .xShmBarrier = &FaultyFile::Pass<&M::xShmBarrier>,
      .xShmUnmap = &FaultyFile::Pass<&M::xShmUnmap, int>,
      .xFetch = nullptr,
      .xUnfetch = nullptr,
  };
  out.base.pMethods = &out.methods;
  return SQLITE_OK;
}

int FaultyVfs::Delete(sqlite3_vfs*, const char* name, int sync_folder) {
  FaultyVfs& self = *current;
  const auto real = [&] { return self.real_->xDelete(self.real_, name, sync_folder); };
  const std::string file = self.NameOf(name);
  if (file.empty()) return real();
  return self.Make({.op = Op::kDelete, .file = file, .folder = sync_folder != 0}, real);
}

int FaultyVfs::Make(Call call, const std::function<int()>& real) {
  Fault fault;
  {
    std::lock_guard lock(mutex_);
    fault = fault_;
  }
  int rc = fault ? fault(call) : SQLITE_OK;
  std::lock_guard lock(mutex_);
  if (rc == SQLITE_OK) rc = real();
  call.failed = rc != SQLITE_OK;
  if (call.op == Op::kWrite) {
    int64_t& size = largest_[call.file];
    size = std::max(size, call.offset + static_cast<int64_t>(call.bytes.size()));
  }
  trace_.push_back(std::move(call));
  return rc;
}

void FaultyVfs::SetFault(Fault fault) {
  std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

void FaultyVfs::Mark(uint64_t mark) {
  std::lock_guard lock(mutex_);
  trace_.push_back({.op = Op::kMark, .mark = mark});
}

size_t FaultyVfs::calls() const {
  std::lock_guard lock(mutex_);
  return trace_.size();
}

std::vector<FaultyVfs::Call> FaultyVfs::trace() const {
  std::lock_guard lock(mutex_);
  return trace_;
}

int64_t FaultyVfs::LargestSize(std::string_view file) const {
  std::lock_guard lock(mutex_);
  const auto found = largest_.find(file);
  return found == largest_.end() ? 0 : found->second;
}

uint64_t FaultyVfs::MarkAt(size_t calls) const {
  std::lock_guard lock(mutex_);
  uint64_t mark = 0;
  for (size_t i = 0; i < calls; ++i) mark = std::max(mark, trace_[i].mark);
  return mark;
}

// ---- what a power cut leaves ----

namespace {

using Call = FaultyVfs::Call;
using Op = FaultyVfs::Op;

// One file while the trace is walked.
struct Traced {
  std::string synced;
  std::vector<const Call*> pending;  // writes and truncations since
  bool there = true;                 // by the last opening or deletion
  bool there_for_sure = false;       // ... and the folder was synced since
};

void ApplyRange(std::string* file, const Call& write, int64_t from, int64_t to) {
  if (file->size() < static_cast<size_t>(to)) file->resize(static_cast<size_t>(to), '\0');
  file->replace(static_cast<size_t>(from), static_cast<size_t>(to - from), write.bytes,
                static_cast<size_t>(from - write.offset), static_cast<size_t>(to - from));
}

void Apply(std::string* file, const Call& call) {
  if (call.op == Op::kTruncate) {
    file->resize(static_cast<size_t>(call.offset));
  } else {
    ApplyRange(file, call, call.offset, call.offset + static_cast<int64_t>(call.bytes.size()));
  }
}

// Each sector holds what some first part of the pending writes left in it.
std::string CutSectors(const Traced& traced, Random& random) {
  std::string file = traced.synced;
  const size_t n = traced.pending.size();
  std::map<int64_t, size_t> kept;  // by sector; -1: the size
  const auto kept_of = [&](int64_t sector) {
    const auto [at, fresh] = kept.try_emplace(sector, 0);
    if (fresh) {
      const uint64_t luck = random.Below(3);
      at->second = luck == 0 ? 0 : luck == 1 ? n : static_cast<size_t>(random.Below(n + 1));
    }
    return at->second;
  };
  for (size_t i = 0; i < n; ++i) {
    const Call& call = *traced.pending[i];
    if (call.op == Op::kTruncate) {
      if (i < kept_of(-1)) Apply(&file, call);
      continue;
    }
    const int64_t end = call.offset + static_cast<int64_t>(call.bytes.size());
    for (int64_t from = call.offset; from < end;) {
      const int64_t to = std::min(end, (from / kSector + 1) * kSector);
      if (i < kept_of(from / kSector)) ApplyRange(&file, call, from, to);
      from = to;
    }
  }
  return file;
}

std::string CutFile(const Traced& traced, FaultyVfs::Cut cut, Random& random) {
  if (cut == FaultyVfs::Cut::kSectors) return CutSectors(traced, random);
  std::string file = traced.synced;
  for (const Call* call : traced.pending) {
    const bool kept = cut == FaultyVfs::Cut::kEverything ||
                      (cut == FaultyVfs::Cut::kWrites && random.Below(2) == 0);
    if (kept) Apply(&file, *call);
  }
  return file;
}

void Follow(std::map<std::string, Traced>* files, const Call& call) {
  if (call.op == Op::kMark) return;
  Traced& file = (*files)[call.file];
  switch (call.op) {
    case Op::kOpen:
      if (call.failed) break;
      if (file.there && (!file.pending.empty() || !file.synced.empty())) break;  // known
      file = {.synced = call.bytes, .there_for_sure = !call.bytes.empty()};
      break;
    case Op::kWrite:
    case Op::kTruncate:
      if (!call.failed) file.pending.push_back(&call);
      break;
    case Op::kSync:
      // After a failed sync the kernel takes the pages for clean: they never reach the disk.
      if (!call.failed)
        for (const Call* each : file.pending) Apply(&file.synced, *each);
      file.pending.clear();
      if (call.folder && !call.failed)
        for (auto& [name, each] : *files) each.there_for_sure = true;
      break;
    case Op::kDelete:
      if (call.failed) break;
      file.there = false;
      file.there_for_sure = call.folder;
      break;
    case Op::kMark:
      break;
  }
}

}  // namespace

FaultyVfs::Image FaultyVfs::ImageAt(size_t calls, Cut cut, Random& random) const {
  std::lock_guard lock(mutex_);
  std::map<std::string, Traced> files;
  for (size_t i = 0; i < calls; ++i) Follow(&files, trace_[i]);
  Image image;
  for (const auto& [name, file] : files) {
    bool there = file.there;
    if (!file.there_for_sure && cut != Cut::kEverything)
      there = cut == Cut::kNothingMore ? !file.there : random.Below(2) == 0;
    if (there) image[name] = CutFile(file, cut, random);
  }
  return image;
}

void WriteImage(const FaultyVfs::Image& image, const std::string& folder) {
  for (const auto& [name, bytes] : image)
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
}

// ---- synchronous=OFF ----

namespace {

int TurnSynchronousOff(sqlite3* db, const char**, const void*) {
  return sqlite3_exec(db, "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
}

using Extension = void (*)();

}  // namespace

SynchronousOff::SynchronousOff() {
  synchronous_off = true;
  sqlite3_auto_extension(reinterpret_cast<Extension>(&TurnSynchronousOff));
}

SynchronousOff::~SynchronousOff() {
  sqlite3_cancel_auto_extension(reinterpret_cast<Extension>(&TurnSynchronousOff));
  synchronous_off = false;
}

// ---- the disk itself ----

namespace {

class FaultyVfsTest : public ::testing::Test {
 protected:
  // "old" is on the disk for sure; then two writes over 1,024 bytes, and what the test adds.
  void Write(const std::function<void(sqlite3_file*)>& more) {
    std::ofstream(dir.path() + "/f")
        << "SQLite asks for the mode of the file that a WAL belongs to";
    sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
    std::vector<char> memory(static_cast<size_t>(vfs->szOsFile));
    auto* file = reinterpret_cast<sqlite3_file*>(memory.data());
    int flags = 0;
    const std::string path = dir.path() + "/f-wal";  // the file keeps the pointer
    ASSERT_EQ(vfs->xOpen(vfs, path.c_str(), file,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL, &flags),
              SQLITE_OK);
    const std::string old(1024, 'o'), first(1024, '1'), second(1024, '2');
    file->pMethods->xWrite(file, old.data(), 1024, 0);
    file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    file->pMethods->xWrite(file, first.data(), 1024, 0);
    file->pMethods->xWrite(file, second.data(), 1024, 0);
    more(file);
    file->pMethods->xClose(file);
  }
  std::string After(FaultyVfs::Cut cut) { return disk.ImageAt(disk.calls(), cut, random)["f-wal"]; }

  TempDir dir = *TempDir::Make();
  FaultyVfs disk{dir.path()};
  Random random{1};
};

TEST_F(FaultyVfsTest, WhatWasNotSyncedIsDroppedReorderedAndTorn) {
  Write([](sqlite3_file*) {});
  EXPECT_EQ(After(FaultyVfs::Cut::kNothingMore), std::string(1024, 'o'));
  EXPECT_EQ(After(FaultyVfs::Cut::kEverything), std::string(1024, '2'));
  std::map<std::string, int> whole, sectors;
  for (int i = 0; i < 200; ++i) {
    ++whole[{After(FaultyVfs::Cut::kWrites)[0]}];
    const std::string torn = After(FaultyVfs::Cut::kSectors);
    ++sectors[{torn[0], torn[512]}];
    EXPECT_EQ(torn[0], torn[511]) << "within a sector nothing is torn";
  }
  EXPECT_EQ(whole.size(), 3u) << "the second write without the first is among them";
  EXPECT_EQ(sectors.size(), 9u) << "any state of one sector goes with any of the other";
}

TEST_F(FaultyVfsTest, WhatWasSyncedStays) {
  Write([](sqlite3_file* file) { file->pMethods->xSync(file, SQLITE_SYNC_NORMAL); });
  for (auto cut : {FaultyVfs::Cut::kNothingMore, FaultyVfs::Cut::kWrites, FaultyVfs::Cut::kSectors})
    EXPECT_EQ(After(cut), std::string(1024, '2'));
}

TEST_F(FaultyVfsTest, AFailedSyncLosesWhatWasPending) {
  Write([&](sqlite3_file* file) {
    disk.SetFault([](const FaultyVfs::Call&) { return SQLITE_IOERR_FSYNC; });
    EXPECT_EQ(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_IOERR_FSYNC);
    disk.SetFault({});
    EXPECT_EQ(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
  });
  EXPECT_EQ(After(FaultyVfs::Cut::kEverything), std::string(1024, 'o'));
}

TEST_F(FaultyVfsTest, ANewFileMayVanishWithItsFolderUnsynced) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  Write([](sqlite3_file*) {});
  vfs->xDelete(vfs, (dir.path() + "/f-wal").c_str(), 0);
  EXPECT_EQ(disk.ImageAt(disk.calls(), FaultyVfs::Cut::kNothingMore, random).size(), 1u)
      << "its deletion has not reached the disk";
  EXPECT_EQ(disk.ImageAt(disk.calls(), FaultyVfs::Cut::kEverything, random).size(), 0u);
  EXPECT_EQ(disk.ImageAt(1, FaultyVfs::Cut::kNothingMore, random).size(), 0u);
}

}  // namespace
}  // namespace sextant::store::testing
