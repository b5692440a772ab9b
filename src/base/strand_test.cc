#include "base/strand.h"

#include <gtest/gtest.h>

#include <latch>
#include <utility>
#include <vector>

namespace sextant {
namespace {

TEST(StrandTest, KeepsOrderOnAPool) {
  ThreadPool pool("strand-test", 4);
  Strand strand(pool);
  std::vector<int> seen;  // only touched by tasks of the strand
  std::latch done(1);
  for (int i = 0; i < 1000; ++i) strand.Post([&seen, i] { seen.push_back(i); });
  strand.Post([&done] { done.count_down(); });
  done.wait();
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(StrandTest, RunsWhatWasPostedBeforeItIsDropped) {
  ThreadPool pool("strand-test", 1);
  std::latch done(1);
  {
    Strand(pool).Post([&done] { done.count_down(); });
  }
  done.wait();
}

// A task that holds its strand (as a connection's does) is no leak when the pool goes first.
TEST(StrandTest, WhatIsQueuedGoesWithThePool) {
  struct IdlePool : Executor {
    void Post(Task task) override { tasks.push_back(std::move(task)); }
    std::vector<Task> tasks;
  } pool;
  auto strand = std::make_shared<Strand>(pool);
  for (int i = 0; i < 3; ++i) strand->Post([strand] {});
  const std::weak_ptr<Strand> seen = std::exchange(strand, nullptr);
  EXPECT_FALSE(seen.expired());
  pool.tasks.clear();
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace sextant
