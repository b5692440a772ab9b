#include "api/default_class.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/json.h"

namespace sextant::api {
namespace {

Object Class(std::string_view name, std::string_view made, std::string_view annotation) {
  auto object = ParseJson(fmt::format(
      R"({{"metadata":{{"name":"{}","creationTimestamp":"{}","annotations":{{"{}":"true"}}}}}})",
      name, made, annotation));
  EXPECT_TRUE(object);
  return *object;
}

constexpr auto& kMarks = kDefaultStorageMarks;

TEST(DefaultClassTest, TheNewestThatIsMarked) {
  EXPECT_FALSE(DefaultClass({}, kMarks));
  EXPECT_FALSE(DefaultClass({Class("a", "2026-01-01T00:00:00Z", "other")}, kMarks));
  const std::vector<Object> classes = {
      Class("b", "2026-01-02T00:00:00Z", kMarks[0]), Class("a", "2026-01-02T00:00:00Z", kMarks[1]),
      Class("c", "2026-01-01T00:00:00Z", kMarks[0]), Class("d", "2026-01-03T00:00:00Z", "other")};
  EXPECT_EQ(DefaultClass(classes, kMarks).name(), "a");
}

}  // namespace
}  // namespace sextant::api
