#include "base/alive.h"

#include <gtest/gtest.h>

#include <optional>

namespace sextant {
namespace {

TEST(Alive, WhatIsGuardedRunsNoLongerThanIt) {
  std::optional<Alive> alive(std::in_place);
  int sum = 0;
  auto add = alive->Guard([&](int by) { sum += by; });
  add(1);
  EXPECT_EQ(sum, 1);
  alive->End();
  add(1);
  EXPECT_EQ(sum, 1);
  auto again = alive->Guard([&](int by) { sum += by; });
  again(2);
  EXPECT_EQ(sum, 3);
  alive.reset();
  again(2);
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace sextant
