// Reads and writes the round-trip data of k8s.io/api, where that module is at hand:
//   SEXTANT_K8S_API=~/go/pkg/mod/k8s.io/api@v0.36.3 api_test --gtest_filter='Roundtrip*'
// Its files hold every field of every kind in JSON and protobuf as Kubernetes writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/json.h"
#include "api/protobuf.h"
#include "api/registry.h"

namespace sextant::api {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Calls `check(json, message, path)` for every file of a kind that we know.
template <typename Check>
void EachKind(Check check) {
  const char* api = std::getenv("SEXTANT_K8S_API");
  if (api == nullptr) GTEST_SKIP() << "SEXTANT_K8S_API is not set";
  int kinds = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(api) / "testdata" / "HEAD")) {
    if (entry.path().extension() != ".json") continue;
    std::string text = ReadFile(entry.path());
    auto meta = PeekTypeMeta(text);
    ASSERT_TRUE(meta) << entry.path();
    const Message* message =
        Registry::Builtin().FindKindMessage(GroupVersion::Of(meta->api_version), meta->kind);
    if (message == nullptr) continue;
    ++kinds;
    check(text, *message, entry.path());
  }
  EXPECT_GT(kinds, 100);
}

TEST(RoundtripTest, Json) {
  EachKind([](const std::string& text, const Message& message, const fs::path& path) {
    StrictReport strict;
    auto doc = DecodeJson(text, message, {.strict = &strict});
    ASSERT_TRUE(doc) << path << doc.error().message;
    EXPECT_TRUE(strict.errors.empty()) << path << strict.errors[0];
    EXPECT_EQ(ToJson(doc->root()), ToJson(ParseJson(text)->root())) << path;
  });
}

TEST(RoundtripTest, Protobuf) {
  EachKind([](const std::string& text, const Message& message, const fs::path& path) {
    fs::path pb = path;
    pb.replace_extension(".pb");
    if (message.json_only || !fs::exists(pb)) return;
    std::string want = ReadFile(pb);
    auto doc = DecodeJson(text, message);
    ASSERT_TRUE(doc) << path;
    std::string got;
    EncodeProtobuf(doc->root(), message, got);
    EXPECT_TRUE(got == want) << path << " " << got.size() << " " << want.size();
    auto envelope = OpenProtobuf(want);
    ASSERT_TRUE(envelope) << path;
    auto back = DecodeProtobuf(envelope->raw, message, envelope->meta);
    ASSERT_TRUE(back) << path << back.error().message;
    EXPECT_EQ(ToJson(back->root()), ToJson(doc->root())) << path;
  });
}

}  // namespace
}  // namespace sextant::api
