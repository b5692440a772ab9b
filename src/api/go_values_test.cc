#include "api/go_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/json.h"

namespace sextant::api {
namespace {

// As fmt.Printf("%v") of Go 1.24 prints them.
TEST(GoValues, Floats) {
  struct Case {
    double v;
    std::string_view text;
  };
  const Case cases[] = {
      {0, "0"},
      {2, "2"},
      {-0.5, "-0.5"},
      {0.1, "0.1"},
      {0.30000000000000004, "0.30000000000000004"},
      {1e-4, "0.0001"},
      {1.5e-5, "1.5e-05"},
      {1e-310, "1e-310"},
      {100000, "100000"},
      {123456, "123456"},
      {999999, "999999"},
      {-1e6, "-1e+06"},
      {1234567, "1.234567e+06"},
      {12345678.25, "1.234567825e+07"},
      {9007199254740992, "9.007199254740992e+15"},
      {1e20, "1e+20"},
      {1e300, "1e+300"},
  };
  for (const Case& c : cases) EXPECT_EQ(GoFloat(c.v), c.text);
}

TEST(GoValues, Trees) {
  const auto tree = ParseJson(R"({"b":[1234567.5,1,"x",null,true],"a":{"c":0.1234567}})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(GoPrint(tree->root()), "map[a:map[c:0.1234567] b:[1.2345675e+06 1 x <nil> true]]");
}

TEST(GoValues, WholeNumbers) {
  EXPECT_EQ(GoInt64(-2.9), -2);
  EXPECT_EQ(GoInt64(1e300), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(GoInt64(-1e300), std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace sextant::api
