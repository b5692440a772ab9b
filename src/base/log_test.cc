#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sextant {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { log::SetLevel(log::Level::kInfo); }
};

TEST_F(LogTest, IsOneLineAMessage) {
  testing::internal::CaptureStderr();
  log::Info("store", "opened path={} rows={}", "a\nI1130 forged\x1b[0m", 3);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, MatchesRegex("I[0-9]{4} [0-9:]{8}\\.[0-9]{6} store: opened "
                                 "path=a\\\\nI1130 forged\\\\x1b\\[0m rows=3\n"));
}

TEST_F(LogTest, LevelsAreKept) {
  testing::internal::CaptureStderr();
  log::Debug("r", "quiet");
  log::SetLevel(log::Level::kDebug);
  log::Debug("r", "loud");
  log::SetLevel(log::Level::kWarning);
  log::Info("r", "hushed");
  log::Warning("r", "careful");
  log::Error("r", "wrong");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("r: loud"));
  EXPECT_THAT(text, HasSubstr("\nW"));
  EXPECT_THAT(text, HasSubstr("\nE"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, Not(HasSubstr("hushed")));
}

}  // namespace
}  // namespace sextant
