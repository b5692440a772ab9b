// The queue alone, time given by hand.
#include "scheduler/queue.h"

#include <gtest/gtest.h>

namespace sextant::scheduler {
namespace {

using namespace std::chrono_literals;

// A plugin that refused, and is helped by events about nodes.
class NodeLover : public Plugin {
 public:
  std::string_view name() const override { return "NodeLover"; }
  bool MayHelp(const ClusterEvent& event, const std::shared_ptr<const PodInfo>&) const override {
    return event.node != nullptr;
  }
};

class Queue : public ::testing::Test {
 protected:
  void Add(const std::string& uid, int64_t priority = 0, bool ready = true, bool changed = true) {
    auto pod = std::make_shared<PodInfo>();
    pod->uid = uid;
    pod->priority = priority;
    queue.Add(std::move(pod), ready, changed, now);
  }
  std::string Pop() {
    const auto pod = queue.Pop(now);
    return pod ? pod->uid : "";
  }
  void Refuse(const std::string& uid) { queue.Unschedulable(uid, {&lover}, now); }
  void NodeEvent() { queue.OnEvent({.node = &node}, now); }

  NodeLover lover;
  NodeInfo node;
  SchedulingQueue queue;
  Duration now = 1000s;
};

TEST_F(Queue, ByPriorityThenArrival) {
  Add("a", 1);
  Add("b", 5);
  Add("c", 5);
  Add("d", 3);
  EXPECT_EQ(Pop() + Pop() + Pop() + Pop() + Pop(), "bcda");
}

TEST_F(Queue, WhoWasTriedGoesBehindThoseThatWait) {
  Add("a");
  Add("b");
  EXPECT_EQ(Pop(), "a");
  Refuse("a");
  now += 2s;
  NodeEvent();
  EXPECT_EQ(Pop() + Pop(), "ba");
}

// 1 s, 2 s, 4 s, 8 s, then 10 s.
TEST_F(Queue, ErrorsBackOff) {
  Add("a");
  for (const Duration wait : {1s, 2s, 4s, 8s, 10s, 10s}) {
    ASSERT_EQ(Pop(), "a");
    queue.Retry("a", now);
    EXPECT_EQ(queue.NextWake(), now + wait);
    NodeEvent();  // errors are healed by time alone
    now += wait - 1ns;
    EXPECT_EQ(Pop(), "");
    now += 1ns;
  }
}

TEST_F(Queue, RefusalsBackOffWhileOthersAreReady) {
  Add("a", 9);
  for (const Duration wait : {1s, 2s, 4s, 8s, 10s, 10s}) {
    ASSERT_EQ(Pop(), "a");
    Refuse("a");
    NodeEvent();
    EXPECT_EQ(queue.NextWake(), now + wait);
    Add("b");
    EXPECT_EQ(Pop(), "b");  // although "a" is more important
    queue.Remove("b");
    now += wait;
  }
}

// Counted from the try, not from the event.
TEST_F(Queue, WokenLateThereIsNoBackoffLeft) {
  Add("a", 9);
  ASSERT_EQ(Pop(), "a");
  Refuse("a");
  now += 1s;
  NodeEvent();
  Add("b");
  EXPECT_EQ(Pop(), "a");
}

TEST_F(Queue, BackoffIsCutShortWhenNothingElseIsReady) {
  Add("low", 1);
  Add("high", 2);
  EXPECT_EQ(Pop(), "high");
  Refuse("high");
  EXPECT_EQ(Pop(), "low");
  Refuse("low");
  EXPECT_EQ(Pop(), "");
  NodeEvent();
  EXPECT_EQ(Pop() + "," + Pop(), "high,low");
}

TEST_F(Queue, OnlyEventsThatHelpWake) {
  Add("a");
  EXPECT_EQ(Pop(), "a");
  Refuse("a");
  queue.OnEvent({.pod_before = std::make_shared<PodInfo>()}, now);
  EXPECT_EQ(Pop(), "");
  NodeEvent();
  EXPECT_EQ(Pop(), "a");
  queue.Unschedulable("a", {}, now);  // nobody in particular refused it
  queue.OnEvent({.pod_before = std::make_shared<PodInfo>()}, now);
  EXPECT_EQ(Pop(), "a");
}

TEST_F(Queue, FiveMinutesAtTheLatest) {
  Add("a");
  EXPECT_EQ(Pop(), "a");
  Refuse("a");
  EXPECT_EQ(queue.NextWake(), now + 300s);
  now += 299s;
  EXPECT_EQ(Pop(), "");
  now += 1s;
  EXPECT_EQ(Pop(), "a");
}

TEST_F(Queue, AnUpdateWakesOnlyWhenItMatters) {
  Add("a");
  EXPECT_EQ(Pop(), "a");
  Refuse("a");
  Add("a", 0, true, /*changed=*/false);
  EXPECT_EQ(Pop(), "");
  EXPECT_EQ(queue.NextWake(), now + 300s);
  Add("a");
  EXPECT_EQ(Pop(), "a");
}

TEST_F(Queue, GatedUntilReady) {
  Add("a", 0, /*ready=*/false);
  EXPECT_EQ(Pop(), "");
  EXPECT_EQ(queue.NextWake(), std::nullopt);
  Add("a");
  EXPECT_EQ(Pop(), "a");
}

TEST_F(Queue, WhatIsInFlightStaysThere) {
  Add("a");
  EXPECT_EQ(Pop(), "a");
  Add("a");
  NodeEvent();
  EXPECT_EQ(Pop(), "");
  queue.Remove("a");
  EXPECT_FALSE(queue.Has("a"));
  queue.Retry("a", now);  // gone: nothing to hand back
  EXPECT_EQ(queue.NextWake(), std::nullopt);
}

}  // namespace
}  // namespace sextant::scheduler
