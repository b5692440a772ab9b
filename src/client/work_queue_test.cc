#include "client/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using Queue = WorkQueue<std::string>;

class WorkQueueTest : public ::testing::Test {
 protected:
  void Make(int parallel = 1) {
    queue = std::make_unique<Queue>(loop, WorkQueueOptions{.parallel = parallel},
                                    [this](const std::string& key, Queue::Done done) {
                                      begun.push_back(key);
                                      open[key] = std::move(done);
                                    });
  }
  void Finish(const std::string& key, bool ok = true) {
    auto done = std::move(open.at(key));
    open.erase(key);
    done(ok ? Status{} : Fail(InternalError("no")));
    loop.RunReady();
  }

  ManualLoop loop;
  std::vector<std::string> begun;
  std::map<std::string, Queue::Done> open;
  std::unique_ptr<Queue> queue;
};

TEST_F(WorkQueueTest, WaitingKeysAreNotDoubled) {
  Make();
  for (const char* key : {"a", "b", "a", "b"}) queue->Add(key);
  EXPECT_TRUE(begun.empty()) << "never inline";
  loop.RunReady();
  EXPECT_THAT(begun, ElementsAre("a"));
  Finish("a");
  Finish("b");
  EXPECT_THAT(begun, ElementsAre("a", "b"));
  EXPECT_TRUE(queue->idle());
}

TEST_F(WorkQueueTest, LongWorkRestsAsLongAndShortWorkNotAtAll) {
  Make();
  queue->Add("a");
  loop.RunReady();
  loop.Advance(300ms);
  queue->Add("a");
  Finish("a");
  EXPECT_EQ(begun.size(), 1u);
  EXPECT_FALSE(queue->idle());
  queue->Add("a");
  queue->Add("b");
  loop.Advance(299ms);
  EXPECT_THAT(begun, ElementsAre("a", "b")) << "others need not wait";
  Finish("b");
  loop.Advance(1ms);
  EXPECT_THAT(begun, ElementsAre("a", "b", "a"));
  queue->Add("a");
  Finish("a");
  EXPECT_THAT(begun, ElementsAre("a", "b", "a", "a"));
  loop.Advance(1h);
  Finish("a");
  loop.Advance(1s);
  EXPECT_TRUE(queue->idle());
  queue->Add("a");
  loop.RunReady();
  EXPECT_EQ(begun.size(), 5u);
}

TEST_F(WorkQueueTest, KeyAddedWhileWorkedOnComesAgainNotTwiceAtOnce) {
  Make(2);
  queue->Add("a");
  loop.RunReady();
  queue->Add("a");
  queue->Add("a");
  queue->Add("b");
  loop.RunReady();
  EXPECT_THAT(begun, ElementsAre("a", "b"));
  Finish("a");
  EXPECT_THAT(begun, ElementsAre("a", "b", "a"));
  Finish("a");
  EXPECT_EQ(begun.size(), 3u);
}

TEST_F(WorkQueueTest, FailuresComeBackLaterAndLater) {
  Make();
  queue->Add("a");
  loop.RunReady();
  Duration delay = 5ms;
  for (int i = 1; i <= 5; ++i) {
    Finish("a", false);
    EXPECT_EQ(queue->failures("a"), i);
    loop.Advance(delay - 1ns);
    EXPECT_FALSE(open.contains("a"));
    loop.Advance(1ns);
    EXPECT_TRUE(open.contains("a"));
    delay *= 2;
  }
  Finish("a");
  EXPECT_EQ(queue->failures("a"), 0) << "one success and the count begins anew";
  queue->Add("a");
  loop.RunReady();
  for (int i = 0; i < 60; ++i) {
    Finish("a", false);
    loop.Advance(1000s);
    ASSERT_TRUE(open.contains("a")) << "never later than 1000 s";
  }
}

TEST_F(WorkQueueTest, EarliestTimeCounts) {
  Make();
  queue->AddAfter("a", 10s);
  queue->AddAfter("a", 3s);
  queue->AddAfter("a", 20s);
  loop.Advance(3s);
  EXPECT_THAT(begun, ElementsAre("a"));
  Finish("a");
  loop.Advance(60s);
  EXPECT_EQ(begun.size(), 1u);
}

TEST_F(WorkQueueTest, NothingAfterTheEnd) {
  Make();
  queue->Add("a");
  loop.RunReady();
  queue->Add("b");
  queue->AddAfter("c", 1s);
  queue.reset();
  Finish("a", false);
  loop.Advance(10s);
  EXPECT_THAT(begun, ElementsAre("a"));
}

}  // namespace
}  // namespace sextant::client
