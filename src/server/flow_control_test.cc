#include "server/flow_control.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sextant::server {
namespace {

class FlowControlTest : public testing::Test {
 protected:
  bool Post(const std::string& client, const std::string& what) {
    return flow_.Post(client, [this, what] { seen_.push_back(what); });
  }
  std::vector<std::string> Run() {
    loop_.RunReady();
    return std::exchange(seen_, {});
  }

  ManualLoop loop_;
  FlowControl flow_{loop_, {.waiting = 3, .watches = 2, .bytes = 100}};
  std::vector<std::string> seen_;
};

using Seen = std::vector<std::string>;

TEST_F(FlowControlTest, ClientsAreServedInTurn) {
  for (const char* what : {"a1", "a2", "a3"}) EXPECT_TRUE(Post("a", what));
  EXPECT_TRUE(Post("b", "b1"));
  EXPECT_TRUE(Post("c", "c1"));
  EXPECT_TRUE(Post("b", "b2"));
  EXPECT_EQ(Run(), (Seen{"a1", "b1", "c1", "a2", "b2", "a3"}));
}

TEST_F(FlowControlTest, OnlySoManyOfOneClientWait) {
  for (const char* what : {"a1", "a2", "a3"}) EXPECT_TRUE(Post("a", what));
  EXPECT_FALSE(Post("a", "a4"));
  EXPECT_TRUE(Post("b", "b1")) << "another's line is not full";
  EXPECT_EQ(Run(), (Seen{"a1", "b1", "a2", "a3"}));
  EXPECT_TRUE(Post("a", "a5"));
  EXPECT_EQ(Run(), Seen{"a5"});
}

TEST_F(FlowControlTest, WatchesAreGivenBack) {
  FlowControl::Share first = flow_.TakeWatch("a");
  const FlowControl::Share second = flow_.TakeWatch("a");
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(flow_.TakeWatch("a"));
  EXPECT_TRUE(flow_.TakeWatch("b"));
  first.reset();
  EXPECT_TRUE(flow_.TakeWatch("a"));
}

TEST_F(FlowControlTest, BytesOfAnswersAreBoundedTogether) {
  FlowControl::Share large = flow_.TakeBytes("a", 500);
  ASSERT_TRUE(large) << "an answer that is too large by itself goes alone";
  EXPECT_FALSE(flow_.TakeBytes("a", 1));
  large.reset();
  const FlowControl::Share part = flow_.TakeBytes("a", 60);
  EXPECT_FALSE(flow_.TakeBytes("a", 41));
  EXPECT_TRUE(flow_.TakeBytes("a", 40));
}

TEST_F(FlowControlTest, AShareMayOutliveTheFlow) {
  FlowControl::Share share;
  {
    FlowControl flow(loop_, {});
    share = flow.TakeWatch("a");
  }
  share.reset();
}

}  // namespace
}  // namespace sextant::server
