#include "lab/state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"

namespace sextant::lab {
namespace {

class StateTest : public testing::Test {
 protected:
  StateTest() : home_(*TempDir::Make("state")) { setenv("SEXTANT_HOME", home_.path().c_str(), 1); }
  TempDir home_;
};

TEST_F(StateTest, KeepsARecord) {
  LabRecord record;
  record.config.name = "a";
  record.config.nodes = {{"a-control-plane", true, {}, "image"},
                         {"a-worker", false, {{"x", "y"}}, ""}};
  record.config.pools = {{"default", "l40s", 1, "dra"}, {.name = "b", .spec = R"({"model":"t4"})"}};
  record.config.port = 1234;
  record.config.runtime = RuntimeMode::kSimulated;
  record.config.feature_gates = {{"GangScheduling", true}};
  record.config.runtime_config = {{"resource.k8s.io/v1beta1", "true"}};
  record.context = "kind-a";
  auto state = LabState::Of("a");
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->exists());
  ASSERT_TRUE(state->Write(record));
  auto back = state->Read();
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(SerialiseRecord(*back), SerialiseRecord(record));
  EXPECT_EQ(back->config.nodes[1].labels.at("x"), "y");
  auto names = LabState::List();
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, std::vector<std::string>{"a"});
  ASSERT_TRUE(state->Remove());
  EXPECT_FALSE(state->exists());
}

TEST_F(StateTest, OneProcessALab) {
  auto state = LabState::Of("a");
  EXPECT_FALSE(state->Holder());
  ASSERT_TRUE(state->Lock());
  EXPECT_TRUE(state->running());
  EXPECT_EQ(state->Holder(), ::getpid());
  auto again = LabState::Of("a");
  auto second = again->Lock();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "the lab a is running already");
}

// A killed process keeps its lock until the kernel has taken its memory away. Here a grandchild
// holds it for a moment longer than the process that took it.
TEST_F(StateTest, AKilledHolderIsWaitedFor) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    auto state = LabState::Of("a");
    if (!state || !state->Lock()) ::_exit(1);
    const pid_t parent = ::getpid();
    if (::fork() == 0) {  // shares the lock
      while (::getppid() == parent) ::usleep(1'000);
      ::usleep(100'000);
      ::_exit(0);
    }
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  auto state = LabState::Of("a");
  EXPECT_TRUE(state->running()) << "it lives";
  ::kill(holder, SIGKILL);
  EXPECT_FALSE(state->running());
  EXPECT_TRUE(state->Lock());
  ::waitpid(holder, nullptr, 0);
}

TEST_F(StateTest, NamesAreKinds) {
  for (const char* good : {"gpu-lab", "a", "k3s", "a.b"}) EXPECT_TRUE(CheckLabName(good)) << good;
  for (const char* bad : {"", "A", "a/b", "..", "-a", "a b"})
    EXPECT_FALSE(CheckLabName(bad)) << bad;
  EXPECT_NE(CheckLabName("A").error().message.find("must match `^[a-z0-9.-]+$`"),
            std::string::npos);
  EXPECT_NE(CheckLabName("-a").error().message.find("begin with a letter or a digit"),
            std::string::npos);
}

TEST_F(StateTest, ADamagedRecordIsNamed) {
  auto state = LabState::Of("a");
  ASSERT_TRUE(MakeDirectories(state->directory(), 0700));
  ASSERT_TRUE(WriteFileAtomic(state->file("config.json"), "{", 0600));
  auto record = state->Read();
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().message.find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace sextant::lab
