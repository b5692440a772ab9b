// The recorded answers of the real kube-apiserver 1.36.3, asked of ours.
//
// Steps whose answer still differs stand in tests/api/differences.txt ("file: step", and why on the
// next line). A step that differs and is not listed fails the test; so does a listed one that has
// become equal or is no step any more, so that the list only shrinks. SEXTANT_RECORDED_REPORT=FILE
// writes every difference; SEXTANT_RECORDED_ONLY=NAME asks the steps of one file. docs/fidelity.md
// is what the test saw: SEXTANT_FIDELITY=write writes it, else it has to be up to date.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "fidelity.h"
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

// Each with its reason.
std::map<std::string, std::string> KnownDifferences() {
  std::map<std::string, std::string> known;
  std::istringstream in(Text(kCases + "/differences.txt"));
  std::string* reason = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      reason = &known[line];
    } else if (reason != nullptr) {
      *reason = line.substr(line.find_first_not_of(' '));
    }
  }
  for (const auto& [id, why] : known) EXPECT_FALSE(why.empty()) << id << " has no reason";
  return known;
}

void CheckFidelityPage(const std::string& page) {
  const std::string path = SEXTANT_SOURCE_DIR "/docs/fidelity.md";
  const char* asked = std::getenv("SEXTANT_FIDELITY");
  if (asked && std::string_view(asked) == "write") {
    std::ofstream(path) << page;
  } else {
    EXPECT_TRUE(Text(path) == page) << "docs/fidelity.md is not up to date: run recorded_test with "
                                       "SEXTANT_FIDELITY=write";
  }
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
  const std::map<std::string, std::string> known = KnownDifferences();
  std::map<std::string, std::string> stale = known;
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
  std::vector<CaseCount> counts;
  for (const std::string& name : names) {
    InProcessServer server;
    const CaseFile file = ParseCaseFile(name, Text(kCases + "/" + name + ".case"));
    ASSERT_EQ(file.error, "") << name;
    CaseCount& count = counts.emplace_back(CountOf(file));
    for (const StepResult& result : Replay(server, file, kCases + "/facts")) {
      const std::string id = name + ": " + result.step;
      const bool differs = !result.difference.empty();
      if (!differs) ++count.equal;
      if (differs && report) report << id << "\n    " << result.difference << "\n";
      if (differs) {
        EXPECT_TRUE(known.contains(id)) << id << "\n    " << result.difference;
      } else {
        EXPECT_FALSE(known.contains(id)) << id << " is equal now: take it off differences.txt";
      }
      stale.erase(id);
    }
  }
  for (const auto& [id, why] : stale) {
    if (!only || id.starts_with(names.front() + ": ")) {
      ADD_FAILURE() << id << " is no step of a case: take it off differences.txt";
    }
  }
  const CaseCount all = Sum(counts);
  std::printf("recorded: %zu of %zu steps equal\n", all.equal, all.steps);
  if (!only) CheckFidelityPage(FidelityPage(counts, known));
}

}  // namespace
}  // namespace sextant::recorded
