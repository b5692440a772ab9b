#include "lab/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "api/json.h"
#include "base/executor.h"
#include "base/file.h"
#include "store/store.h"

namespace sextant::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    setenv("SEXTANT_HOME", home_.path().c_str(), 1);
    state_ = *LabState::Of("a");
    LabRecord record;
    record.config.name = "a";
    record.config.nodes = {{"a-control-plane", true, {}, ""}};
    record.config.pools = {{"default", "l40s", 4, "plugin"}};
    EXPECT_TRUE(state_->Write(record));
    WriteCheckpoint("one");
  }

  void WriteCheckpoint(const std::string& text) {
    const std::string path = state_->file("nodes/a-control-plane/kubelet_internal_checkpoint");
    ASSERT_TRUE(MakeDirectories(std::filesystem::path(path).parent_path(), 0700));
    ASSERT_TRUE(WriteFileAtomic(path, text, 0600));
  }

  // Runs `work` on the lab's store, as a lab that runs would.
  void InStore(const std::function<void(store::Store&, EventLoop&)>& work) {
    RealClock clock;
    EventLoop core("core", clock);
    auto store = store::Store::Open({.path = state_->file("lab.db")}, core);
    ASSERT_TRUE(store) << store.error().message;
    work(**store, core);
    (*store)->Close();
    core.Stop();
  }

  static void Put(store::Store& store, EventLoop& core, const std::string& name) {
    std::promise<void> done;
    core.Post([&] {
      store::Write write;
      write.key = {"configmaps", "x", name};
      write.object = *api::ParseJson(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{}})");
      store.Commit(std::move(write), [&](store::Committed) { done.set_value(); });
    });
    done.get_future().get();
  }

  std::set<std::string> Names() {
    std::set<std::string> names;
    InStore([&](store::Store& store, EventLoop&) {
      for (const auto& e : store.Visible("configmaps")->Range("", "", "", 0))
        names.insert(e->key.name);
    });
    return names;
  }

  std::string RestoreError(const std::string& file) {
    auto restored = RestoreSnapshot(file);
    return restored ? "restored" : restored.error().message;
  }

  TempDir home_ = *TempDir::Make("snapshot");
  std::string file_ = home_.path() + "/snapshot.db";
  std::optional<LabState> state_;
};

TEST_F(SnapshotTest, ComesBackAsItWas) {
  InStore([&](store::Store& store, EventLoop& core) {
    Put(store, core, "early");
    auto saved = SaveSnapshot(*state_, file_);  // the store is open and goes on
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(*saved, 1u);
    Put(store, core, "late");
  });
  WriteCheckpoint("two");
  EXPECT_EQ(Names(), (std::set<std::string>{"early", "late"}));
  struct stat info;
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "it holds the lab's keys";

  auto restored = RestoreSnapshot(file_);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->name(), "a");
  EXPECT_EQ(Names(), (std::set<std::string>{"early"}));
  EXPECT_EQ(*ReadFile(state_->file("nodes/a-control-plane/kubelet_internal_checkpoint"), 100),
            "one");
  EXPECT_EQ(state_->Read()->config.pools[0].model, "l40s");
  ASSERT_TRUE(state_->Remove());
  ASSERT_TRUE(RestoreSnapshot(file_)) << "also where nothing was";
  EXPECT_EQ(Names(), (std::set<std::string>{"early"}));
  EXPECT_EQ(*LabState::List(), std::vector<std::string>{"a"});
}

// Two snapshots in a short time.
TEST_F(SnapshotTest, Etcd18055SeveralAtOnceUnderWrites) {
  InStore([&](store::Store& store, EventLoop& core) {
    std::vector<std::future<Result<store::Revision>>> saves;
    for (int i = 0; i < 4; ++i)
      saves.push_back(std::async(std::launch::async, [&, i] {
        return SaveSnapshot(*state_, fmt::format("{}{}", file_, i % 2));
      }));
    for (int i = 0; i < 50; ++i) Put(store, core, std::to_string(i));
    for (auto& save : saves) {
      const auto revision = save.get();
      EXPECT_TRUE(revision) << revision.error().message;
    }
  });
  for (const char* which : {"0", "1"}) {
    ASSERT_TRUE(RestoreSnapshot(file_ + which));
    store::Revision revision = 0;
    InStore([&](store::Store& store, EventLoop&) { revision = store.visible(); });
    EXPECT_EQ(Names().size(), revision) << "one moment, not parts of two";
  }
}

TEST_F(SnapshotTest, RefusesOverARunningLab) {
  InStore([&](store::Store& store, EventLoop& core) { Put(store, core, "x"); });
  ASSERT_TRUE(SaveSnapshot(*state_, file_));
  auto running = LabState::Of("a");
  ASSERT_TRUE(running->Lock());
  EXPECT_THAT(RestoreError(file_), AllOf(HasSubstr("is running"), HasSubstr("sextant stop")));
  EXPECT_EQ(Names(), (std::set<std::string>{"x"}));
}

// A lock that cannot be had for another reason is told as that.
TEST_F(SnapshotTest, TellsWhyThereIsNoLock) {
  InStore([&](store::Store& store, EventLoop& core) { Put(store, core, "x"); });
  ASSERT_TRUE(SaveSnapshot(*state_, file_));
  ASSERT_TRUE(MakeDirectories(state_->file("lock"), 0700));  // no file
  EXPECT_THAT(RestoreError(file_), AllOf(HasSubstr("/lock"), Not(HasSubstr("is running"))));
  EXPECT_EQ(Names(), (std::set<std::string>{"x"}));
}

// A file that was cut off, or is something else, is refused; what stood there stays.
TEST_F(SnapshotTest, RefusesWhatIsNoSnapshot) {
  InStore([&](store::Store& store, EventLoop& core) {
    for (int i = 0; i < 40; ++i) Put(store, core, std::to_string(i));
  });
  ASSERT_TRUE(SaveSnapshot(*state_, file_));
  const std::string whole = *ReadFile(file_, 16 << 20);
  for (size_t size = 0; size < whole.size(); size += 2048) {
    ASSERT_TRUE(WriteFileAtomic(file_, whole.substr(0, size), 0600));
    EXPECT_THAT(RestoreError(file_), AllOf(HasSubstr("is no snapshot of a lab"), HasSubstr(file_)))
        << size << " of " << whole.size();
  }
  ASSERT_TRUE(WriteFileAtomic(file_, "text", 0600));
  EXPECT_THAT(RestoreError(file_), HasSubstr("is no snapshot of a lab"));
  EXPECT_THAT(RestoreError(home_.path() + "/none"), HasSubstr("no such file"));
  EXPECT_EQ(Names().size(), 40u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(home_.path() + "/labs"), {}), 1)
      << "nothing half done is left";
}

TEST_F(SnapshotTest, AnEphemeralLabHasNone) {
  LabRecord record = *state_->Read();
  record.ephemeral = true;
  ASSERT_TRUE(state_->Write(record));
  EXPECT_THAT(SaveSnapshot(*state_, file_).error().message, HasSubstr("ephemeral"));
}

TEST_F(SnapshotTest, AFolderThatIsNotThereIsNamed) {
  InStore([&](store::Store& store, EventLoop& core) { Put(store, core, "x"); });
  const auto saved = SaveSnapshot(*state_, home_.path() + "/none/s.db");
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("/none/s.db cannot be written"));
}

}  // namespace
}  // namespace sextant::lab
