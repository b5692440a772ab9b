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

constexpr std::string_view kMark = "storageclass.kubernetes.io/is-default-class";
constexpr std::string_view kBeta = "storageclass.beta.kubernetes.io/is-default-class";

TEST(DefaultClassTest, TheNewestThatIsMarked) {
  EXPECT_FALSE(DefaultStorageClass({}));
  EXPECT_FALSE(DefaultStorageClass({Class("a", "2026-01-01T00:00:00Z", "other")}));
  const std::vector<Object> classes = {
      Class("b", "2026-01-02T00:00:00Z", kMark), Class("a", "2026-01-02T00:00:00Z", kBeta),
      Class("c", "2026-01-01T00:00:00Z", kMark), Class("d", "2026-01-03T00:00:00Z", "other")};
  EXPECT_EQ(DefaultStorageClass(classes).name(), "a");
}

}  // namespace
}  // namespace sextant::api
