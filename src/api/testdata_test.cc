// Compares the tables with the round-trip data of k8s.io/api, where that module is at hand:
//   SEXTANT_K8S_API=~/go/pkg/mod/k8s.io/api@v0.36.3 api_test --gtest_filter='Testdata*'
// Its files hold every field of every kind, in Go's order.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "api/registry.h"

namespace sextant::api {
namespace {

namespace dom = simdjson::dom;

class Comparer {
 public:
  void Object(const Message& m, dom::object object, const std::string& path) {
    size_t next = 0;
    size_t seen = 0;
    for (auto [key, value] : object) {
      const Field* f = m.FindField(key);
      if (f == nullptr) {
        ADD_FAILURE() << path << "." << key << " is in no table";
        continue;
      }
      const auto at = static_cast<size_t>(f - m.fields.data());
      EXPECT_GE(at, next) << path << "." << key << " stands out of order";
      next = at + 1;
      ++seen;
      Values(*f, value, path + "." + std::string(key));
    }
    size_t all = 0;
    for (const Field& f : m.fields) {
      all += !f.inlined;
      if (f.presence == Presence::kAlways && !f.inlined) {
        EXPECT_TRUE(object[f.name].error() == simdjson::SUCCESS) << path << "." << f.name;
      }
    }
    if (seen != all) incomplete.insert(std::string(m.name));
    complete += seen == all;
  }

  std::set<std::string> incomplete;
  int complete = 0;

 private:
  void Values(const Field& f, dom::element value, const std::string& path) {
    if (value.is_null()) {
      EXPECT_TRUE(f.presence == Presence::kAlways) << path;
      return;
    }
    if (f.shape == Shape::kList) {
      ASSERT_TRUE(value.is_array()) << path;
      for (dom::element item : value.get_array()) One(f, item, path);
    } else if (f.shape == Shape::kMap) {
      ASSERT_TRUE(value.is_object()) << path;
      for (auto member : value.get_object()) One(f, member.value, path);
    } else {
      One(f, value, path);
    }
  }

  void One(const Field& f, dom::element value, const std::string& path) {
    switch (f.type) {
      case Type::kBool:
        EXPECT_TRUE(value.is_bool()) << path;
        break;
      case Type::kInt32:
      case Type::kInt64:
      case Type::kUint32:
        EXPECT_TRUE(value.is_int64()) << path;
        break;
      case Type::kDouble:
        EXPECT_TRUE(value.is_number()) << path;
        break;
      case Type::kIntOrString:
        EXPECT_TRUE(value.is_int64() || value.is_string()) << path;
        break;
      case Type::kStringList:
        EXPECT_TRUE(value.is_array()) << path;
        break;
      case Type::kRawExtension:
      case Type::kFieldsV1:
        EXPECT_TRUE(value.is_object()) << path;
        break;
      case Type::kAny:
        break;
      case Type::kMessage:
        Object(*f.message, value.get_object(), path);
        break;
      case Type::kTime:
        EXPECT_TRUE(value.is_string() || value.is_null()) << path;
        break;
      default:
        EXPECT_TRUE(value.is_string()) << path;
        break;
    }
  }
};

TEST(TestdataTest, TablesAgreeWithKubernetes) {
  const char* root = std::getenv("SEXTANT_K8S_API");
  if (root == nullptr) GTEST_SKIP() << "SEXTANT_K8S_API is not set";
  int files = 0;
  Comparer comparer;
  dom::parser parser;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(root) + "/testdata/HEAD")) {
    // "core.v1.Pod.json", "rbac.authorization.k8s.io.v1.Role.json"
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || name.find(".after_") != name.npos) continue;
    const size_t dot = name.rfind('.');
    const size_t group_end = name.rfind('.', dot - 1);
    std::string group = name.substr(0, group_end);
    if (group == "core") group.clear();
    const Message* m = Registry::Builtin().FindKindMessage(
        {group, std::string_view(name).substr(group_end + 1, dot - group_end - 1)},
        std::string_view(name).substr(dot + 1));
    if (m == nullptr) continue;
    ++files;
    comparer.Object(*m, parser.load(entry.path().string()).get_object(), name);
  }
  EXPECT_GT(files, 100);
  std::printf("%d kinds, %d whole objects, %zu messages never whole\n", files, comparer.complete,
              comparer.incomplete.size());
  for (const auto& name : comparer.incomplete) std::printf("  %s\n", name.c_str());
}

}  // namespace
}  // namespace sextant::api
