#include "base/check.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

TEST(CheckDeathTest, NamesPlaceAndText) {
  EXPECT_DEATH(CHECK(1 + 1 == 3), "check_test.cc:[0-9]+: CHECK failed: 1 \\+ 1 == 3");
  CHECK(true);
}

}  // namespace
}  // namespace sextant
