#include "base/nearest.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

TEST(NearestTest, CountsChanges) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("ab", "ba"), 1);
}

TEST(NearestTest, FindsTheNearestOrNothing) {
  const std::vector<std::string> words = {"GangScheduling", "GenericWorkload",
                                          "DRAListTypeAttributes"};
  EXPECT_EQ(Nearest("gangSchedulin", words), "GangScheduling");
  EXPECT_EQ(Nearest("GenericWorkloads", words), "GenericWorkload");
  EXPECT_EQ(Nearest("Completely", words), "");
}

}  // namespace
}  // namespace sextant
