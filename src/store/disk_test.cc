// The store on a file: what survives, what is refused at opening, what a full disk and kill -9 do.

#include "store/disk.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

#include "store/testing.h"

extern char** environ;

namespace sextant::store {
namespace {

using ::testing::AllOf;
using testing::DataOf;
using testing::FileLab;
using ::testing::HasSubstr;
using testing::MakeWrite;
using Op = Write::Op;

class DiskTest : public ::testing::Test {
 protected:
  Options AtPath() const { return FileLab::WithPath(path); }

  // Runs SQL in the file as another program would.
  void Sql(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(db);
  }

  std::string OpenError() {
    FileLab lab(AtPath());
    return lab.error ? lab.error->message : "opened";
  }

  TempDir dir = *TempDir::Make();
  std::string path = dir.path() + "/state.db";
};

TEST_F(DiskTest, EverythingSurvivesARestart) {
  {
    FileLab lab(AtPath());
    ASSERT_FALSE(lab.error) << lab.error->message;
    lab.Commit(MakeWrite(Op::kCreate, "a", "web", "one"));
    lab.Commit(MakeWrite(Op::kCreate, "a", "db", "two"));
    lab.Commit(MakeWrite(Op::kUpdate, "a", "web", "three"));
    lab.Commit(MakeWrite(Op::kDelete, "a", "db", ""));
    EXPECT_TRUE(lab.PutMeta("id", "f00").has_value());
    EXPECT_TRUE(lab.PutMeta("id", "f01").has_value());
  }
  FileLab lab(AtPath());
  ASSERT_FALSE(lab.error) << lab.error->message;
  lab.OnCore([&] {
    EXPECT_EQ(lab.store->visible(), 4u) << "etcd 17780: a deletion's revision is not forgotten";
    EXPECT_EQ(lab.store->Visible("configmaps")->Count("", "", ""), 1u);
    const auto web = lab.store->Get({"configmaps", "a", "web"});
    EXPECT_EQ(DataOf(*web), "three");
    EXPECT_EQ(web->create_revision, 1u);
    EXPECT_EQ(web->mod_revision, 3u);
    EXPECT_EQ(web->object.resource_version(), "3");
    EXPECT_EQ(lab.store->GetMeta("id").value(), "f01");
    EXPECT_EQ(lab.store->OldestWatchable("configmaps"), 4u);
    EXPECT_EQ(lab.store->AddWatch({.resource = "configmaps", .after = 3}, {}).error().code, 410);
  });
  EXPECT_EQ(lab.Commit(MakeWrite(Op::kCreate, "a", "db", "new")).revision, 5u);
}

// The counter is not what the objects show: of those that were deleted nothing is left.
TEST_F(DiskTest, Etcd17780TheRevisionDoesNotFallBackWhenAllIsDeleted) {
  {
    FileLab lab(AtPath());
    for (const char* name : {"web", "db"}) lab.Commit(MakeWrite(Op::kCreate, "a", name, "one"));
    for (const char* name : {"web", "db"}) lab.Commit(MakeWrite(Op::kDelete, "a", name, ""));
  }
  for (int restart = 0; restart < 2; ++restart) {
    FileLab lab(AtPath());
    ASSERT_FALSE(lab.error) << lab.error->message;
    EXPECT_EQ(lab.OnCore([&] { return lab.store->visible(); }), 4u);
  }
  FileLab lab(AtPath());
  EXPECT_EQ(lab.Commit(MakeWrite(Op::kCreate, "a", "web", "two")).revision, 5u);
}

TEST_F(DiskTest, FileIsForItsUserOnlyAndReadableAsSql) {
  FileLab lab(AtPath());
  lab.Commit(MakeWrite(Op::kCreate, "a", "web", "one"));
  struct stat info;
  for (const char* suffix : {"", "-wal", ".lock"}) {
    ASSERT_EQ(stat((path + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  std::string seen;
  sqlite3_exec(
      db, "SELECT resource || ns || name || json_extract(object, '$.data.text') FROM objects",
      [](void* out, int, char** columns, char**) {
        *static_cast<std::string*>(out) += columns[0];
        return 0;
      },
      &seen, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(seen, "configmapsawebone");
}

TEST_F(DiskTest, SecondProcessIsKeptAway) {
  FileLab lab(AtPath());
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("in use by another process"),
                                 HasSubstr(std::to_string(getpid())), HasSubstr(path)));
  lab.Close();
  EXPECT_EQ(OpenError(), "opened");
}

TEST_F(DiskTest, NewerFormatIsRefused) {
  EXPECT_EQ(OpenError(), "opened");
  Sql("PRAGMA user_version=7");
  EXPECT_THAT(OpenError(),
              AllOf(HasSubstr("newer version"), HasSubstr("format 7"), HasSubstr(path)));
}

TEST_F(DiskTest, ForeignDatabaseIsRefusedUntouched) {
  Sql("CREATE TABLE songs (title TEXT)");
  EXPECT_THAT(OpenError(), HasSubstr("database of another program"));
  Sql("INSERT INTO songs VALUES ('still there')");
}

TEST_F(DiskTest, DamageIsNamed) {
  std::ofstream(path) << std::string(8192, 'x');
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("is damaged"), HasSubstr(path)));
}

TEST_F(DiskTest, DamagedRowsAreNamed) {
  {
    FileLab lab(AtPath());
    lab.Commit(MakeWrite(Op::kCreate, "a", "web", "one"));
    lab.Commit(MakeWrite(Op::kCreate, "a", "db", "one"));
  }
  Sql("UPDATE objects SET object = '{\"half' WHERE name = 'web'");
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("is damaged"), HasSubstr("configmaps a/web")));
  Sql("UPDATE objects SET object = '{\"metadata\":{}}', modified = 99 WHERE name = 'web'");
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("is damaged"), HasSubstr("revision 99 of 2")));
  Sql("UPDATE objects SET modified = 1, name = 'db' WHERE name = 'web'");
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("is damaged"), HasSubstr("twice")));
}

TEST_F(DiskTest, DamagedPagesAreNamed) {
  {
    FileLab lab(AtPath());
    for (int i = 0; i < 50; ++i)
      lab.Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), std::string(2000, 'x')));
  }
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (off_t page = 4096 * 2; page < info.st_size; page += 4096) {
    file.seekp(page);
    file << std::string(64, '\xee');
  }
  file.close();
  EXPECT_THAT(OpenError(), HasSubstr("is damaged"));
}

// A file that was cut off is told, never taken for less than it was.
TEST_F(DiskTest, Etcd20271ATruncatedFileIsRefused) {
  {
    FileLab lab(AtPath());
    for (int i = 0; i < 50; ++i)
      lab.Commit(MakeWrite(Op::kCreate, "a", std::to_string(i), std::string(2000, 'x')));
  }
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  for (off_t size = info.st_size - 1000; size > 0; size -= 5000) {
    ASSERT_EQ(truncate(path.c_str(), size), 0);
    EXPECT_THAT(OpenError(), HasSubstr("is damaged")) << size << " of " << info.st_size;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_size, size) << "looking at it does not change it";
  }
}

TEST_F(DiskTest, ReadOnlyIsNamed) {
  EXPECT_EQ(OpenError(), "opened");
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(dir.path().c_str(), 0555), 0);
  const bool root = geteuid() == 0;
  if (root) ASSERT_EQ(seteuid(65534), 0);
  const std::string error = OpenError();
  if (root) ASSERT_EQ(seteuid(0), 0);
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  EXPECT_THAT(error, AllOf(HasSubstr("cannot be written"), HasSubstr("ermission denied")));
}

TEST_F(DiskTest, MissingFolderIsNamed) {
  path = dir.path() + "/none/state.db";
  EXPECT_THAT(OpenError(), AllOf(HasSubstr(path), HasSubstr("o such file")));
}

// The kernel refuses to let any file grow past the limit, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(DiskTest, FullDiskStopsServingOnce) {
  std::map<std::string, std::string> acknowledged;
  Revision last = 0;
  {
    FileLab lab(AtPath());
    std::atomic<int> fatal = 0;
    std::promise<std::string> message;
    lab.OnCore([&] {
      lab.store->OnFatal([&](Error error) {
        if (fatal++ == 0) message.set_value(error.message);
      });
    });
    {
      const FileSizeLimit limit(1 << 20);
      for (int i = 0; i < 2000; ++i) {
        const std::string name = std::to_string(i);
        const Committed c = lab.Commit(MakeWrite(Op::kCreate, "a", name, std::string(4000, 'x')));
        if (c.error == CommitError::kStopped) break;
        ASSERT_EQ(c.error, CommitError::kNone);
        acknowledged[name] = std::string(4000, 'x');
        last = c.revision;
      }
      EXPECT_THAT(message.get_future().get(), HasSubstr(path));
      EXPECT_GT(acknowledged.size(), 20u);
      EXPECT_LT(acknowledged.size(), 2000u);
    }
    EXPECT_EQ(lab.Commit(MakeWrite(Op::kCreate, "a", "later", "x")).error, CommitError::kStopped)
        << "room again is no reason to go on: nobody knows what the disk holds";
    EXPECT_FALSE(lab.PutMeta("k", "v").has_value());
    EXPECT_TRUE(lab.store->failed());
    lab.OnCore([&] {
      EXPECT_EQ(lab.store->visible(), last);
      EXPECT_EQ(lab.store->Visible("configmaps")->Count("", "", ""), acknowledged.size());
      EXPECT_EQ(lab.store->Latest({"configmaps", "a", "later"}), nullptr);
      EXPECT_EQ(lab.store->Latest({"configmaps", "a", std::to_string(acknowledged.size())}),
                nullptr)
          << "what was refused is taken back";
    });
    EXPECT_EQ(fatal.load(), 1);
  }
  FileLab lab(AtPath());
  ASSERT_FALSE(lab.error) << lab.error->message;
  EXPECT_FALSE(lab.store->failed());
  lab.OnCore([&] {
    EXPECT_GE(lab.store->visible(), last);
    for (const auto& [name, data] : acknowledged)
      EXPECT_EQ(DataOf(*lab.store->Get({"configmaps", "a", name})), data);
  });
}

TEST_F(DiskTest, WalStaysBounded) {
  Options options = AtPath();
  options.max_inflight_bytes = 1 << 30;
  FileLab lab(options);
  const std::string data(200'000, 'x');
  std::promise<void> all;
  int left = 1000;  // 200 MB
  lab.core.Post([&] {
    for (int i = 0; i < 1000; ++i) {
      lab.store->Commit(
          MakeWrite(i < 20 ? Op::kCreate : Op::kUpdate, "a", std::to_string(i % 20), data),
          [&](Committed c) {
            EXPECT_EQ(c.error, CommitError::kNone);
            if (--left == 0) all.set_value();
          });
    }
  });
  all.get_future().get();
  struct stat info;
  ASSERT_EQ(stat((path + "-wal").c_str(), &info), 0);
  EXPECT_LE(static_cast<size_t>(info.st_size), Disk::kMaxWalBytes);
}

// ---- kill -9 ----

// Not a test by itself: run by the next one in a process of its own, until that kills it. Writes a
// line "revision name data" for every acknowledged change.
TEST(CrashChild, DISABLED_Writes) {
  FileLab lab(FileLab::WithPath(getenv("SEXTANT_CRASH_PATH")));
  ASSERT_FALSE(lab.error) << lab.error->message;
  std::atomic<uint64_t> next = lab.OnCore([&] { return lab.store->visible(); });
  for (;;) {
    std::promise<void> round;
    std::atomic<int> left = 40;
    lab.core.Post([&] {
      for (int i = 0; i < 40; ++i) {
        const std::string name = std::to_string(i);
        const std::string data = std::to_string(++next);
        const bool there = lab.store->Latest({"configmaps", "a", name}) != nullptr;
        const Op op = !there ? Op::kCreate : next % 5 == 0 ? Op::kDelete : Op::kUpdate;
        lab.store->Commit(MakeWrite(op, "a", name, data), [&, op, name, data](Committed c) {
          if (c.error != CommitError::kNone) abort();
          const std::string line =
              fmt::format("{} {} {}\n", c.revision, name, op == Op::kDelete ? "-" : data);
          if (write(STDOUT_FILENO, line.data(), line.size()) < 0) abort();
          if (--left == 0) round.set_value();
        });
      }
    });
    round.get_future().get();
  }
}

class Child {
 public:
  explicit Child(const std::string& path) {
    int pipe_fds[2];
    EXPECT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    std::vector<std::string> env{"SEXTANT_CRASH_PATH=" + path};
    for (char** e = environ; *e; ++e) env.push_back(*e);
    std::vector<char*> envp;
    for (std::string& e : env) envp.push_back(e.data());
    envp.push_back(nullptr);
    std::string args[] = {"store_test", "--gtest_filter=CrashChild.DISABLED_Writes",
                          "--gtest_also_run_disabled_tests"};
    char* argv[] = {args[0].data(), args[1].data(), args[2].data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv, envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    out_ = fdopen(pipe_fds[0], "r");
  }
  ~Child() { fclose(out_); }

  pid_t pid() const { return pid_; }
  // The next acknowledgements; fewer if the child ends before.
  std::vector<std::string> Lines(size_t n) {
    std::vector<std::string> acknowledged;
    char line[256];
    while (acknowledged.size() < n && fgets(line, sizeof line, out_)) {
      if (!isdigit(line[0])) continue;  // what GoogleTest prints
      if (!strchr(line, '\n')) break;
      acknowledged.push_back(line);
    }
    return acknowledged;
  }
  // Kills the child after `lines` acknowledgements, and reads what it still said before.
  std::vector<std::string> Run(size_t lines) {
    std::vector<std::string> acknowledged = Lines(lines);
    kill(pid_, SIGKILL);
    for (std::string& line : Lines(SIZE_MAX)) acknowledged.push_back(std::move(line));
    waitpid(pid_, nullptr, 0);
    return acknowledged;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

TEST_F(DiskTest, Etcd14370NothingAcknowledgedIsLostByKill) {
  std::map<std::string, std::pair<Revision, std::string>> expected;
  Revision last = 0;
  for (const size_t lines : {1u, 77u, 400u, 1500u}) {
    for (const std::string& line : Child(path).Run(lines)) {
      Revision revision = 0;
      char name[32], data[32];
      ASSERT_EQ(sscanf(line.c_str(), "%lu %31s %31s", &revision, name, data), 3) << line;
      EXPECT_EQ(revision, last + 1) << "acknowledged in order, without gaps";
      last = revision;
      expected[name] = {revision, data};
    }
    FileLab lab(AtPath());
    ASSERT_FALSE(lab.error) << lab.error->message;
    lab.OnCore([&] {
      // What was durable and not yet told may be there too, but never less than what was told.
      EXPECT_GE(lab.store->visible(), last);
      for (const auto& [name, told] : expected) {
        const auto entry = lab.store->Get({"configmaps", "a", name});
        if (entry && entry->mod_revision > last) continue;
        if (told.second == "-") {
          EXPECT_EQ(entry, nullptr) << name;
        } else if (entry || lab.store->visible() == last) {
          ASSERT_NE(entry, nullptr) << name;
          EXPECT_EQ(entry->mod_revision, told.first);
          EXPECT_EQ(DataOf(*entry), told.second);
        }
      }
      last = lab.store->visible();
      expected.clear();
      for (const auto& entry : lab.store->Visible("configmaps")->Range("", "", "", 0))
        expected[entry->key.name] = {entry->mod_revision, DataOf(*entry)};
    });
  }
  EXPECT_GT(last, 1900u);
}

// A process that was paused still owns its state: nobody overtakes it, so that what it reads when
// it goes on is no older than what anybody was told.
TEST_F(DiskTest, Etcd20418APausedProcessKeepsItsState) {
  Child child(path);
  ASSERT_EQ(child.Lines(1).size(), 1u);
  kill(child.pid(), SIGSTOP);
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("in use by another process"),
                                 HasSubstr(std::to_string(child.pid()))));
  kill(child.pid(), SIGCONT);
  EXPECT_GE(child.Run(500).size(), 500u);
  EXPECT_EQ(OpenError(), "opened");
}

}  // namespace
}  // namespace sextant::store
