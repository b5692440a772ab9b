#include "base/executor.h"

#include <gtest/gtest.h>

#include <future>

namespace sextant {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Runs `task` on `loop` and waits for it.
void RunOn(Executor& executor, Task task) {
  std::promise<void> done;
  executor.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

TEST(EventLoopTest, RunsTasksInTheirOrderOnItsThread) {
  const RealClock clock;
  EventLoop loop("test", clock);
  EXPECT_FALSE(loop.OnLoop());
  std::vector<int> order;
  bool on_loop = true;
  for (int i = 0; i < 1000; ++i) {
    loop.Post([&, i] {
      order.push_back(i);
      on_loop = on_loop && loop.OnLoop();
    });
  }
  RunOn(loop, [] {});
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(on_loop);
}

TEST(EventLoopTest, KeepsTheOrderOfEveryThread) {
  const RealClock clock;
  EventLoop loop("test", clock);
  std::vector<std::pair<int, int>> order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) loop.Post([&, t, i] { order.emplace_back(t, i); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  RunOn(loop, [] {});
  ASSERT_EQ(order.size(), 2000u);
  std::map<int, int> next;
  for (const auto& [t, i] : order) EXPECT_EQ(next[t]++, i);
}

// A clock that stands still until it is set.
class SetClock : public Clock {
 public:
  Time Now() const override { return Time{now_.load()}; }
  Duration Monotonic() const override { return now_; }
  void Set(Duration now) { now_ = now; }

 private:
  std::atomic<Duration> now_{Duration{0}};
};

TEST(EventLoopTest, RunsTimersByDeadlineThenByAge) {
  SetClock clock;
  EventLoop loop("test", clock);
  std::vector<int> order;
  std::promise<void> done;
  loop.After(milliseconds{3}, [&] { done.set_value(); });
  loop.After(milliseconds{2}, [&] { order.push_back(2); });
  loop.After(milliseconds{1}, [&] { order.push_back(0); });
  loop.After(milliseconds{1}, [&] { order.push_back(1); });
  RunOn(loop, [&] { EXPECT_TRUE(order.empty()); });
  clock.Set(milliseconds{3});
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(EventLoopTest, CancelsOnlyWhatHasNotRun) {
  const RealClock clock;
  EventLoop loop("test", clock);
  const TimerId far = loop.After(hours{1}, [] { ADD_FAILURE() << "cancelled, but ran"; });
  EXPECT_TRUE(loop.Cancel(far));
  EXPECT_FALSE(loop.Cancel(far));
  EXPECT_FALSE(loop.Cancel(0));
  const TimerId never = loop.After(Duration::max(), [] {});
  EXPECT_TRUE(loop.Cancel(never));
  // Both are due at once; the first one cancels the second.
  RunOn(loop, [&] {
    auto second = std::make_shared<TimerId>(0);
    loop.After(Duration{0}, [&loop, second] { EXPECT_TRUE(loop.Cancel(*second)); });
    *second = loop.After(Duration{0}, [] { ADD_FAILURE() << "cancelled, but ran"; });
  });
  std::promise<void> done;
  const TimerId ran = loop.After(Duration{0}, [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(loop.Cancel(ran));
}

// A task whose destructor posts: it must not meet a held lock.
struct PostsWhenDropped {
  Executor* executor;
  std::shared_ptr<std::atomic<int>> dropped;
  ~PostsWhenDropped() {
    ++*dropped;
    executor->Post([] { ADD_FAILURE() << "ran after Stop"; });
  }
};

TEST(EventLoopTest, StopDropsWhatHasNotBegun) {
  const RealClock clock;
  auto dropped = std::make_shared<std::atomic<int>>(0);
  EventLoop loop("test", clock);
  std::promise<void> running, go;
  loop.Post([&] {
    running.set_value();
    go.get_future().wait();
  });
  running.get_future().wait();
  auto held = std::make_shared<PostsWhenDropped>(&loop, dropped);
  loop.Post([held] { ADD_FAILURE() << "ran after Stop"; });
  loop.After(hours{1}, [held] {});
  held = nullptr;
  std::thread stopper([&] { loop.Stop(); });
  // After is refused from the moment on which Stop takes hold.
  while (loop.After(hours{1}, [] {}) != 0) std::this_thread::yield();
  go.set_value();
  stopper.join();
  EXPECT_EQ(*dropped, 1);
  loop.Stop();
}

TEST(ThreadPoolTest, RunsTasksSideBySide) {
  ThreadPool pool("test", 3);
  // Each waits for the others: done only if three threads really run.
  std::atomic<int> arrived = 0;
  std::vector<std::future<void>> futures;
  for (int i = 0; i < 3; ++i) {
    auto done = std::make_shared<std::promise<void>>();
    futures.push_back(done->get_future());
    pool.Post([&arrived, done] {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
      done->set_value();
    });
  }
  for (auto& future : futures) future.wait();
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPoolTest, StopDropsWhatHasNotBegun) {
  ThreadPool pool("test", 1);
  std::promise<void> running, go;
  pool.Post([&] {
    running.set_value();
    go.get_future().wait();
  });
  running.get_future().wait();
  auto dropped = std::make_shared<std::atomic<int>>(0);
  auto held = std::make_shared<PostsWhenDropped>(&pool, dropped);
  pool.Post([held] { ADD_FAILURE() << "ran after Stop"; });
  held = nullptr;
  std::thread stopper([&] { pool.Stop(); });
  while (*dropped == 0) std::this_thread::yield();
  go.set_value();
  stopper.join();
  pool.Post([] { ADD_FAILURE() << "ran after Stop"; });
}

TEST(ManualLoopTest, MovesTimeOnlyWhenTold) {
  ManualLoop loop;
  std::vector<std::string> seen;
  loop.After(hours{2}, [&] { seen.push_back("2h " + FormatTime(loop.Now())); });
  loop.After(hours{1}, [&] {
    seen.push_back("1h " + FormatTime(loop.Now()));
    loop.Post([&] { seen.push_back("posted " + FormatTime(loop.Now())); });
    loop.After(milliseconds{0}, [&] { seen.push_back("at once"); });
  });
  const TimerId cancelled = loop.After(hours{1}, [&] { seen.push_back("cancelled"); });
  EXPECT_EQ(loop.RunReady(), 0);
  EXPECT_TRUE(loop.Cancel(cancelled));
  EXPECT_FALSE(loop.Cancel(cancelled));
  EXPECT_EQ(loop.Advance(hours{3}), 4);
  EXPECT_EQ(seen,
            (std::vector<std::string>{"1h 2026-01-01T01:00:00Z", "posted 2026-01-01T01:00:00Z",
                                      "at once", "2h 2026-01-01T02:00:00Z"}));
  EXPECT_EQ(loop.Monotonic(), Duration{hours{3}});
}

}  // namespace
}  // namespace sextant
