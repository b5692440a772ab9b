#include "net/io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "net/test_util.h"

namespace sextant::net {
namespace {

class IoTest : public ::testing::Test {
 protected:
  // Runs `task` on the thread and waits for it.
  void On(Task task) {
    Awaited<bool> done;
    io_->Post([&, set = done.Setter()] {
      task();
      set(true);
    });
    done.Get();
  }
  RealClock clock_;
  std::unique_ptr<IoThread> io_ = std::make_unique<IoThread>("io", clock_);
};

TEST_F(IoTest, TasksOfOneThreadKeepTheirOrder) {
  std::vector<int> order;
  Awaited<bool> done;
  for (int i = 0; i < 1000; ++i) {
    io_->Post([&, i, set = done.Setter()] {
      EXPECT_TRUE(io_->OnLoop());
      order.push_back(i);
      if (i == 999) set(true);
    });
  }
  ASSERT_TRUE(done.Get());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_FALSE(io_->OnLoop());
}

TEST_F(IoTest, TimersRunInTheOrderOfTheirTimes) {
  std::vector<int> order;
  Awaited<bool> done;
  On([&] {
    io_->After(std::chrono::milliseconds(20), [&, set = done.Setter()] {
      order.push_back(3);
      set(true);
    });
    io_->After(std::chrono::milliseconds(1), [&] { order.push_back(1); });
    const TimerId gone = io_->After(std::chrono::milliseconds(2), [&] { order.push_back(-1); });
    io_->After(std::chrono::milliseconds(10), [&] { order.push_back(2); });
    EXPECT_TRUE(io_->Cancel(gone));
    EXPECT_FALSE(io_->Cancel(gone));
    EXPECT_FALSE(io_->Cancel(0));
  });
  ASSERT_TRUE(done.Get());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(IoTest, PosterOutlivesTheThread) {
  const auto poster = io_->poster();
  auto held = std::make_shared<int>(1);
  io_->After(std::chrono::hours(1), [held] {});
  io_.reset();
  EXPECT_EQ(held.use_count(), 1);  // what had not begun was let go
  poster->Post([held] { ADD_FAILURE() << "ran after the end"; });
  EXPECT_EQ(held.use_count(), 1);
}

struct Reader : FdHandler {
  void OnReady(bool readable, bool) override {
    ++calls;
    if (readable) {
      char byte = 0;
      last = read(fd, &byte, 1);
    }
    if (after) after();
  }
  void OnStop() override {
    stopped = true;
    io->Unwatch(fd);
  }
  IoThread* io = nullptr;
  int fd = -1;
  int calls = 0;
  ssize_t last = -2;
  bool stopped = false;
  Task after;
};

TEST_F(IoTest, WatchesDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Reader reader;
  reader.io = io_.get();
  reader.fd = ends[0];
  Awaited<int> read_once;
  reader.after = [&, set = read_once.Setter()] { set(reader.calls); };
  On([&] { io_->Watch(ends[0], true, false, &reader); });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(read_once.Get(), 1);
  EXPECT_EQ(reader.last, 1);
  // Without interest a hang-up is not reported, let alone over and over.
  On([&] { io_->Change(ends[0], false, false); });
  close(ends[1]);
  On([&] { EXPECT_EQ(reader.calls, 1); });
  Awaited<int> ended;
  On([&] {
    reader.after = [&, set = ended.Setter()] {
      io_->Change(ends[0], false, false);
      set(reader.calls);
    };
    io_->Change(ends[0], true, false);
  });
  EXPECT_EQ(ended.Get(), 2);
  EXPECT_EQ(reader.last, 0);
  io_->Stop();
  EXPECT_TRUE(reader.stopped);
  close(ends[0]);
}

TEST_F(IoTest, ResolvesNumbersAtOnceAndNamesElsewhere) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    Awaited<Result<std::vector<Endpoint>>> found;
    io_->Resolve(host, 80, found.Setter());
    const auto r = found.Get();
    ASSERT_TRUE(r);
    EXPECT_EQ((*r)[0].address, host);
    EXPECT_EQ((*r)[0].port, 80);
  }
  Awaited<Result<std::vector<Endpoint>>> local;
  io_->Resolve("localhost", 1, local.Setter());
  EXPECT_TRUE(local.Get());
  Awaited<Result<std::vector<Endpoint>>> none;
  io_->Resolve("no such host", 1, none.Setter());
  const auto r = none.Get();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, 0);
}

TEST(Endpoint, Text) {
  EXPECT_EQ((Endpoint{.address = "::1", .port = 6443}).ToString(), "[::1]:6443");
  EXPECT_EQ((Endpoint{.address = "10.0.0.1", .port = 1}).ToString(), "10.0.0.1:1");
  EXPECT_EQ((Endpoint{.path = "/x"}).ToString(), "unix:/x");
}

}  // namespace
}  // namespace sextant::net
