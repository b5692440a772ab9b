#include "kubelet/runtime_simulated.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace sextant::kubelet {
namespace {

using namespace std::chrono_literals;

class Simulated : public testing::Test {
 protected:
  Simulated() {
    runtime_.CreateSandbox({.uid = "pod"}, [](Status status) { EXPECT_TRUE(status); });
    loop_.RunReady();
  }
  void Start(ContainerSpec spec) {
    spec.sandbox_uid = "pod";
    runtime_.StartContainer(std::move(spec),
                            [this](const ContainerEvent& event) { events_.push_back(event); });
    loop_.RunReady();
  }

  ManualLoop loop_;
  SimulatedRuntime runtime_{loop_};
  std::vector<ContainerEvent> events_;
};

TEST_F(Simulated, RunsForAsLongAsItIsTold) {
  Start({.id = "c", .run_for = 90s, .simulated_exit_code = 3});
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].kind, ContainerEvent::Kind::kStarted);
  EXPECT_TRUE(events_[0].simulated);
  loop_.Advance(89s);
  EXPECT_EQ(events_.size(), 1u);
  loop_.Advance(1s);
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].exit_code, 3);
  EXPECT_EQ(events_[1].reason, "Error");
  EXPECT_EQ(events_[1].finished_at - events_[1].started_at, 90s);
}

TEST_F(Simulated, RunsUntilStopped) {
  Start({.id = "c"});
  loop_.Advance(24h);
  EXPECT_EQ(events_.size(), 1u);
  runtime_.StopContainer("c", SIGTERM, 30s);
  runtime_.StopContainer("c", SIGTERM, 30s);
  loop_.RunReady();
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].exit_code, 128 + SIGTERM);
}

TEST_F(Simulated, ProbesFollowTheContainer) {
  std::vector<bool> seen;
  const auto probe = [&] {
    runtime_.Probe(HttpProbe{.container_id = "c"},
                   [&](ProbeResult result) { seen.push_back(result.success); });
    loop_.RunReady();
  };
  probe();
  Start({.id = "c"});
  probe();
  runtime_.StopContainer("c", SIGTERM, 0s);
  probe();
  EXPECT_EQ(seen, (std::vector<bool>{false, true, false}));
}

TEST_F(Simulated, RemoveSandboxEndsItsContainers) {
  Start({.id = "a"});
  Start({.id = "b"});
  runtime_.RemoveSandbox("pod", [](Status status) { EXPECT_TRUE(status); });
  loop_.RunReady();
  ASSERT_EQ(events_.size(), 4u);
  EXPECT_EQ(events_[3].exit_code, 137);
  Start({.id = "c"});
  EXPECT_EQ(events_.back().reason, "StartError");
}

TEST_F(Simulated, SessionsEnd) {
  Start({.id = "c"});
  std::vector<Result<int>> ends;
  const auto on_exit = [&](Result<int> end) { ends.push_back(std::move(end)); };
  auto exec = runtime_.Exec({.container_id = "c", .argv = {"ls"}}, {.on_exit = on_exit});
  loop_.RunReady();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_FALSE(ends[0]);
  auto attach = runtime_.Attach({.container_id = "c"}, {.on_exit = on_exit});
  loop_.RunReady();
  EXPECT_EQ(ends.size(), 1u);
  runtime_.StopContainer("c", SIGKILL, 0s);
  loop_.RunReady();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].value_or(-1), 137);
}

}  // namespace
}  // namespace sextant::kubelet
