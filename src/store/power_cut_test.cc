// The store over a disk that loses power, fails, fills up and is slow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unordered_set>

#include "store/connection.h"
#include "store/disk.h"
#include "store/faulty_vfs.h"
#include "store/testing.h"

namespace sextant::store {
namespace {

using ::testing::AllOf;
using testing::DataOf;
using testing::FaultyVfs;
using testing::FileLab;
using ::testing::HasSubstr;
using testing::MakeWrite;
using testing::SynchronousOff;
using testing::WriteImage;
using Cut = FaultyVfs::Cut;
using Op = Write::Op;
using State = std::map<std::string, std::pair<Revision, std::string>>;

// A scripted life of a store, and what it must be at each revision.
class History {
 public:
  History(const std::string& folder, FaultyVfs* disk)
      : path_(folder + "/state.db"), disk_(disk), states_(1) {}

  // Opens the store; every change until Close is noted, and marked on the disk when it is told.
  void Open() {
    lab_ = std::make_unique<FileLab>(FileLab::WithPath(path_));
    ASSERT_FALSE(lab_->error) << lab_->error->message;
  }
  void Close() { lab_.reset(); }

  // `n` changes ordered in one turn, so that they become one transaction or a few.
  void Change(size_t n, Random& random, size_t bytes) {
    std::promise<void> all;
    size_t left = n;
    lab_->core.Post([&] {
      for (size_t i = 0; i < n; ++i) {
        ChangeOne(random, bytes, [&] {
          if (--left == 0) all.set_value();
        });
      }
    });
    all.get_future().get();
  }

  // Copies the WAL into the file as the store's own thread does, at a moment of ours.
  void CopyWal() {
    auto connection = Connection::Open(path_);
    ASSERT_TRUE(connection.has_value());
    ASSERT_TRUE((*connection)->Run("PRAGMA synchronous=FULL"));
    ASSERT_TRUE((*connection)->CheckpointPassive().value());
    (*connection)->LeaveFilesAlone();
  }

  // Empty if what stands in `folder` is a state that a power cut may leave when everything up to
  // `told` was told to somebody.
  std::string Complaint(const std::string& folder, Revision told) const {
    FileLab lab(FileLab::WithPath(folder + "/state.db"));
    if (lab.error) return lab.error->message;
    return lab.OnCore([&]() -> std::string {
      const Revision revision = lab.store->visible();
      if (revision < told) return fmt::format("revision {} after {} was told", revision, told);
      if (revision >= states_.size()) return fmt::format("revision {} was never made", revision);
      State found;
      for (const auto& e : lab.store->Visible("configmaps")->Range("", "", "", 0))
        found[e->key.name] = {e->mod_revision, DataOf(*e)};
      if (found != states_[revision]) return fmt::format("not the state of {}", revision);
      return "";
    });
  }

 private:
  void ChangeOne(Random& random, size_t bytes, std::function<void()> told) {
    const std::string name = std::to_string(random.Below(5));
    const std::string data = std::to_string(states_.size()) + std::string(bytes, 'x');
    const bool there = states_.back().contains(name);
    const Op op = !there ? Op::kCreate : random.Below(4) == 0 ? Op::kDelete : Op::kUpdate;
    State next = states_.back();
    const Revision revision = states_.size();
    next[name] = {revision, data};
    if (op == Op::kDelete) next.erase(name);
    states_.push_back(std::move(next));
    lab_->store->Commit(MakeWrite(op, "a", name, data), [this, revision, told](Committed c) {
      EXPECT_EQ(c.error, CommitError::kNone);
      EXPECT_EQ(c.revision, revision);
      disk_->Mark(revision);
      told();
    });
  }

  const std::string path_;
  FaultyVfs* const disk_;
  std::vector<State> states_;  // by revision
  std::unique_ptr<FileLab> lab_;
};

// Two lives, small and large transactions, the WAL copied in the middle and begun anew.
void ShortHistory(History& history, Random& random) {
  history.Open();
  for (const size_t n : {1u, 1u, 3u}) history.Change(n, random, 10);
  history.Change(2, random, 6000);
  history.CopyWal();
  for (const size_t n : {1u, 4u}) history.Change(n, random, 1500);
  history.Close();
  history.Open();
  for (const size_t n : {2u, 1u}) history.Change(n, random, 3000);
  history.Close();
}

struct Verdict {
  size_t images = 0;
  std::vector<std::string> complaints;
};

// Every moment of the history, cut in several ways; equal images are looked at once.
Verdict CutEverywhere(const FaultyVfs& disk, const History& history, Random& random,
                      size_t from = 0, size_t to = SIZE_MAX) {
  Verdict verdict;
  const SynchronousOff fast;  // of the images nothing needs to last
  std::unordered_set<std::string> seen;
  for (size_t calls = from; calls <= std::min(to, disk.calls()); ++calls) {
    const Revision told = disk.MarkAt(calls);
    for (const Cut cut : {Cut::kNothingMore, Cut::kEverything, Cut::kWrites, Cut::kSectors}) {
      const FaultyVfs::Image image = disk.ImageAt(calls, cut, random);
      std::string all = std::to_string(told);
      for (const auto& [name, bytes] : image) all += '\0' + name + '\0' + bytes;
      if (!seen.insert(std::move(all)).second) continue;
      const TempDir folder = *TempDir::Make();
      WriteImage(image, folder.path());
      ++verdict.images;
      const std::string complaint = history.Complaint(folder.path(), told);
      if (!complaint.empty())
        verdict.complaints.push_back(
            fmt::format("cut {} at {}: {}", static_cast<int>(cut), calls, complaint));
    }
  }
  return verdict;
}

class PowerCutTest : public ::testing::Test {
 protected:
  void SetUp() override { fmt::print("SEXTANT_SEED={}\n", seed); }

  static uint64_t Seed() {
    const char* given = getenv("SEXTANT_SEED");
    return given ? std::strtoull(given, nullptr, 10) : RandomSeed();
  }

  const uint64_t seed = Seed();
  Random random{seed};
  TempDir dir = *TempDir::Make();
};

TEST_F(PowerCutTest, NothingToldIsLostAtAnyMoment) {
  FaultyVfs disk(dir.path());
  History history(dir.path(), &disk);
  ShortHistory(history, random);
  const Verdict verdict = CutEverywhere(disk, history, random);
  EXPECT_GT(verdict.images, 100u);
  EXPECT_THAT(verdict.complaints, ::testing::IsEmpty());
}

TEST_F(PowerCutTest, WithoutSyncingTheTestFails) {
  const SynchronousOff off;
  FaultyVfs disk(dir.path());
  History history(dir.path(), &disk);
  ShortHistory(history, random);
  for (const auto& call : disk.trace()) ASSERT_NE(call.op, FaultyVfs::Op::kSync);
  EXPECT_GT(CutEverywhere(disk, history, random).complaints.size(), 20u);
}

// The store's own copying thread at work: more than kCheckpointBytes several times over.
TEST_F(PowerCutTest, LongHistoryWithCopies) {
  FaultyVfs disk(dir.path());
  History history(dir.path(), &disk);
  history.Open();
  for (int i = 0; i < 12; ++i) history.Change(20, random, 200'000);
  history.Close();
  for (int i = 0; i < 16; ++i) {
    const size_t calls = random.Below(disk.calls());
    const TempDir folder = *TempDir::Make();
    WriteImage(disk.ImageAt(calls, i % 2 ? Cut::kSectors : Cut::kWrites, random), folder.path());
    EXPECT_EQ(history.Complaint(folder.path(), disk.MarkAt(calls)), "") << "at " << calls;
  }
}

// Many changes in each transaction: counter and objects are always of one moment, and each
// revision is told when it is on the disk.
TEST_F(PowerCutTest, Etcd13766HighLoad) {
  FaultyVfs disk(dir.path());
  History history(dir.path(), &disk);
  history.Open();
  for (int i = 0; i < 3; ++i) history.Change(200, random, 20);
  history.Close();
  EXPECT_THAT(CutEverywhere(disk, history, random).complaints, ::testing::IsEmpty());
}

// While the WAL is copied into the file, and just after: the state file is being rewritten.
TEST_F(PowerCutTest, Etcd14685CutsWhileTheFileIsRewritten) {
  FaultyVfs disk(dir.path());
  History history(dir.path(), &disk);
  history.Open();
  for (int i = 0; i < 4; ++i) history.Change(5, random, 4000);
  for (int i = 0; i < 3; ++i) {
    const size_t from = disk.calls();
    history.CopyWal();
    history.Change(3, random, 1000);
    EXPECT_GT(disk.calls(), from + 5);
    EXPECT_THAT(CutEverywhere(disk, history, random, from).complaints, ::testing::IsEmpty());
  }
  history.Close();
}

// Lab state that is no object (keys) has no revision, and yet is of the same moment as the objects:
// written between two of them it is never there without the first, nor missing with the second.
TEST_F(PowerCutTest, Etcd14571WhatIsNoObjectComesBackWithTheObjects) {
  FaultyVfs disk(dir.path());
  {
    FileLab lab(FileLab::WithPath(dir.path() + "/state.db"));
    ASSERT_FALSE(lab.error) << lab.error->message;
    for (int i = 1; i <= 6; ++i) {
      lab.Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), "x"));
      EXPECT_TRUE(lab.PutMeta("after", std::to_string(i)).has_value());
    }
  }
  const SynchronousOff fast;
  size_t seen = 0;
  for (size_t calls = 0; calls <= disk.calls(); ++calls) {
    const TempDir folder = *TempDir::Make();
    WriteImage(disk.ImageAt(calls, Cut::kSectors, random), folder.path());
    FileLab lab(FileLab::WithPath(folder.path() + "/state.db"));
    ASSERT_FALSE(lab.error) << lab.error->message;
    const auto [revision, after] = lab.OnCore(
        [&] { return std::pair(lab.store->visible(), lab.store->GetMeta("after").value_or("0")); });
    EXPECT_TRUE(after == std::to_string(revision) || after == std::to_string(revision - 1))
        << "revision " << revision << ", written after " << after;
    if (revision > 0) ++seen;
  }
  EXPECT_GT(seen, 20u);
}

// ---- a disk that fails ----

class FaultyDiskTest : public PowerCutTest {
 protected:
  struct Outcome {
    std::vector<Revision> told;
    std::vector<std::string> fatal;
    std::vector<Revision> heard;
  };

  // Commits one by one, `n` times whatever happens, with a watcher.
  Outcome CommitMany(size_t n, size_t bytes) {
    Outcome out;
    FileLab lab(FileLab::WithPath(path));
    EXPECT_FALSE(lab.error) << lab.error->message;
    std::unique_ptr<Watch> watch;
    lab.OnCore([&] {
      lab.store->OnFatal([&](Error error) { out.fatal.push_back(error.message); });
      watch = *lab.store->AddWatch({.resource = "configmaps"}, [&](auto events, Revision) {
        for (const Event& e : events) out.heard.push_back(e.revision);
      });
    });
    for (size_t i = 0; i < n; ++i) {
      const Committed c =
          lab.Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), std::string(bytes, 'x')));
      if (c.error == CommitError::kNone) out.told.push_back(c.revision);
    }
    lab.OnCore([&] { watch.reset(); });
    return out;
  }

  // What the disk holds for sure, opened again.
  std::vector<Revision> Kept(const FaultyVfs& disk) {
    const TempDir folder = *TempDir::Make();
    WriteImage(disk.ImageAt(disk.calls(), Cut::kNothingMore, random), folder.path());
    FileLab lab(FileLab::WithPath(folder.path() + path.substr(dir.path().size())));
    EXPECT_FALSE(lab.error) << lab.error->message;
    std::vector<Revision> kept;
    for (const auto& e : lab.store->Visible("configmaps")->Range("", "", "", 0))
      kept.push_back(e->mod_revision);
    std::sort(kept.begin(), kept.end());
    return kept;
  }

  std::string path = dir.path() + "/state.db";
};

TEST_F(FaultyDiskTest, AFailedSyncStopsServing) {
  FaultyVfs disk(dir.path());
  for (const size_t nth : {1u, 2u, 7u}) {
    path = fmt::format("{}/{}.db", dir.path(), nth);
    FileLab(FileLab::WithPath(path)).Close();  // made: the syncs below are those of commits
    size_t syncs = 0, failed_at = 0;
    disk.SetFault([&](const FaultyVfs::Call& call) {
      if (call.op != FaultyVfs::Op::kSync || ++syncs != nth) return SQLITE_OK;
      failed_at = disk.calls();
      return SQLITE_IOERR_FSYNC;
    });
    const Outcome out = CommitMany(10, 10);
    disk.SetFault({});
    ASSERT_GT(failed_at, 0u);
    EXPECT_LT(out.told.size(), 10u);
    EXPECT_EQ(out.heard, out.told) << "watchers hear what was told, no more";
    ASSERT_EQ(out.fatal.size(), 1u);
    EXPECT_THAT(out.fatal[0], AllOf(HasSubstr(path), HasSubstr("cannot be written safely"),
                                    HasSubstr("start again"), HasSubstr("1034")));
    const auto trace = disk.trace();
    for (size_t i = failed_at + 1; i < trace.size(); ++i)
      EXPECT_NE(trace[i].op, FaultyVfs::Op::kWrite) << "after the failure, to " << trace[i].file;
    EXPECT_EQ(Kept(disk), out.told);
  }
}

TEST_F(FaultyDiskTest, AFullDiskStopsServing) {
  FaultyVfs disk(dir.path());
  int64_t room = 300'000;
  disk.SetFault([&](const FaultyVfs::Call& call) {
    if (call.op == FaultyVfs::Op::kWrite) room -= static_cast<int64_t>(call.bytes.size());
    return call.op == FaultyVfs::Op::kWrite && room < 0 ? SQLITE_FULL : SQLITE_OK;
  });
  const Outcome out = CommitMany(200, 4000);
  EXPECT_GT(out.told.size(), 10u);
  EXPECT_LT(out.told.size(), 100u);
  EXPECT_EQ(out.heard, out.told);
  ASSERT_EQ(out.fatal.size(), 1u);
  EXPECT_THAT(out.fatal[0], AllOf(HasSubstr(path), HasSubstr("is full"), HasSubstr("make room")));
  EXPECT_EQ(Kept(disk), out.told);
}

// The WAL is sound, but it can never be copied: rather stop than let it grow without end.
TEST_F(FaultyDiskTest, ACopyThatFailsStopsServing) {
  FaultyVfs disk(dir.path());
  FileLab(FileLab::WithPath(path)).Close();
  disk.SetFault([](const FaultyVfs::Call& call) {
    return call.op == FaultyVfs::Op::kWrite && call.file == "state.db" ? SQLITE_IOERR_WRITE
                                                                       : SQLITE_OK;
  });
  const Outcome out = CommitMany(300, 200'000);
  EXPECT_GT(out.told.size(), 50u);
  EXPECT_LT(out.told.size(), 300u);
  ASSERT_EQ(out.fatal.size(), 1u);
  EXPECT_THAT(out.fatal[0], AllOf(HasSubstr("checkpoint"), HasSubstr(path)));
  EXPECT_LE(disk.LargestSize("state.db-wal"), static_cast<int64_t>(Disk::kMaxWalBytes));
  const std::vector<Revision> kept = Kept(disk);
  for (const Revision told : out.told) EXPECT_THAT(kept, ::testing::Contains(told));
}

// ---- a disk that is slow ----

// Everybody writes as fast as they may: memory stays bounded, and all that was taken is written.
TEST_F(FaultyDiskTest, ASlowDiskRefusesInsteadOfHoarding) {
  FaultyVfs disk(dir.path());
  disk.SetFault([](const FaultyVfs::Call& call) {
    if (call.op == FaultyVfs::Op::kSync) usleep(30'000);
    return SQLITE_OK;
  });
  Options options = FileLab::WithPath(path);
  options.max_inflight_bytes = 8 << 20;
  FileLab lab(options);
  ASSERT_FALSE(lab.error) << lab.error->message;
  const std::string data(100'000, 'x');
  size_t ordered = 0, taken = 0, answers = 0;
  std::promise<void> all;
  lab.OnCore([&] {
    for (int i = 0; i < 500; ++i) {
      lab.store->Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), data), [&](Committed c) {
        EXPECT_TRUE(c.error == CommitError::kNone || c.error == CommitError::kFull);
        if (c.error == CommitError::kNone) ++taken;
        if (++answers == 500) all.set_value();
      });
      if (lab.store->Latest({"configmaps", "a", std::to_string(i)})) ++ordered;
    }
  });
  all.get_future().get();
  EXPECT_LE(ordered, options.max_inflight_bytes / data.size() + 1) << "nothing was written yet";
  EXPECT_EQ(taken, ordered);
  EXPECT_GE(taken, 70u);
  EXPECT_EQ(lab.Commit(MakeWrite(Op::kCreate, "a", "later", data)).error, CommitError::kNone)
      << "there is room again";
  lab.Close();
  disk.SetFault({});
  EXPECT_EQ(Kept(disk).size(), taken + 1);
}

// A checkpoint thread that cannot keep up: the writer waits for it, the WAL stays below its bound.
TEST_F(FaultyDiskTest, ASlowCopyHoldsTheWriterBack) {
  FaultyVfs disk(dir.path());
  disk.SetFault([](const FaultyVfs::Call& call) {
    if (call.op == FaultyVfs::Op::kWrite && call.file == "state.db") usleep(300);
    return SQLITE_OK;
  });
  Options options = FileLab::WithPath(path);
  options.max_inflight_bytes = 1 << 30;
  FileLab lab(options);
  ASSERT_FALSE(lab.error) << lab.error->message;
  const std::string data(200'000, 'x');
  std::promise<void> all;
  int left = 600;  // 120 MB
  lab.core.Post([&] {
    for (int i = 0; i < 600; ++i) {
      lab.store->Commit(
          MakeWrite(i < 40 ? Op::kCreate : Op::kUpdate, "a", std::to_string(i % 40), data),
          [&](Committed c) {
            EXPECT_EQ(c.error, CommitError::kNone);
            if (--left == 0) all.set_value();
          });
    }
  });
  all.get_future().get();
  EXPECT_GT(disk.LargestSize("state.db-wal"), 1 << 20);
  EXPECT_LE(disk.LargestSize("state.db-wal"), static_cast<int64_t>(Disk::kMaxWalBytes));
}

}  // namespace
}  // namespace sextant::store
