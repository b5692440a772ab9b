#include "lab/state.h"

#include <gtest/gtest.h>

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
  record.config.pools = {{"default", "l40s", 1, "dra"}};
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
  ASSERT_TRUE(state->Lock());
  EXPECT_TRUE(state->running());
  auto again = LabState::Of("a");
  auto second = again->Lock();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "the lab a is running already");
}

TEST_F(StateTest, NamesAreKinds) {
  for (const char* good : {"gpu-lab", "a", "k3s", "a.b"}) EXPECT_TRUE(CheckLabName(good)) << good;
  for (const char* bad : {"", "A", "a/b", "..", "-a", "a b"})
    EXPECT_FALSE(CheckLabName(bad)) << bad;
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
