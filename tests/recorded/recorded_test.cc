// The recorded answers of the real kube-apiserver 1.36.3, asked of ours.
//
// Steps whose answer still differs stand in tests/api/differences.txt ("file: step"). A step that
// differs and is not listed fails the test; so does a listed one that has become equal or is no
// step any more, so that the list only shrinks. SEXTANT_RECORDED_REPORT=FILE writes every
// difference with its reason; SEXTANT_RECORDED_ONLY=NAME asks the steps of one file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "normaliser.h"
#include "replay.h"

namespace sextant::recorded {
namespace {

constexpr size_t kMaxFile = 64 << 20;
const std::string kCases = SEXTANT_SOURCE_DIR "/tests/api";

std::string Text(const std::string& path) {
  auto text = ReadFile(path, kMaxFile);
  EXPECT_TRUE(text) << path;
  return text ? *text : "";
}

std::set<std::string> KnownDifferences() {
  std::set<std::string> known;
  std::istringstream in(Text(kCases + "/differences.txt"));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') known.insert(line);
  }
  return known;
}

TEST(NormaliserTest, DoesAsTheRecordersDoes) {
  const Json cases = Json::parse(Text(kCases + "/normaliser.json"));
  ASSERT_GT(cases.size(), 5u);
  for (const Json& one : cases) {
    Normaliser normaliser;
    for (const Json& step : one["steps"]) {
      NormaliseOptions options;
      options.path = step.value("path", "");
      options.server = step.value("server", "127.0.0.1:6443");
      options.keep_managed_fields = step.value("keepManagedFields", false);
      if (step.contains("items")) options.items = step["items"].get<std::vector<std::string>>();
      const Json got = normaliser.Body(step["in"], options);
      EXPECT_EQ(got, step["out"]) << one["name"] << "\n" << got.dump(1);
    }
  }
}

TEST(RecordedTest, AnswersLikeTheRealOne) {
  const std::set<std::string> known = KnownDifferences();
  std::set<std::string> stale = known;
  std::ofstream report;
  if (const char* path = std::getenv("SEXTANT_RECORDED_REPORT")) report.open(path);
  const char* only = std::getenv("SEXTANT_RECORDED_ONLY");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCases)) {
    if (entry.path().extension() == ".case") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 20u);
  if (only) {
    ASSERT_TRUE(std::ranges::binary_search(names, only))
        << "SEXTANT_RECORDED_ONLY: no " << only << ".case";
    names = {only};
  }
  size_t total = 0;
  size_t equal = 0;
  for (const std::string& name : names) {
    InProcessServer server;
    const CaseFile file = ParseCaseFile(name, Text(kCases + "/" + name + ".case"));
    ASSERT_EQ(file.error, "") << name;
    for (const StepResult& result : Replay(server, file, kCases + "/facts")) {
      ++total;
      const std::string id = name + ": " + result.step;
      const bool differs = !result.difference.empty();
      if (!differs) ++equal;
      if (differs && report) report << id << "\n    " << result.difference << "\n";
      if (differs) {
        EXPECT_TRUE(known.contains(id)) << id << "\n    " << result.difference;
      } else {
        EXPECT_FALSE(known.contains(id)) << id << " is equal now: take it off differences.txt";
      }
      stale.erase(id);
    }
  }
  for (const std::string& id : stale) {
    if (!only || id.starts_with(names.front() + ": ")) {
      ADD_FAILURE() << id << " is no step of a case: take it off differences.txt";
    }
  }
  std::printf("recorded: %zu of %zu steps equal\n", equal, total);
}

}  // namespace
}  // namespace sextant::recorded
