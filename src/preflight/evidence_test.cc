#include "preflight/evidence.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "preflight/checks.h"

namespace sextant::preflight {
namespace {

Check Make(CheckStatus status, Layer layer = Layer::kPlugin, bool required = true) {
  Check check;
  check.id = "x";
  check.layer = layer;
  check.required = required;
  check.status = status;
  return check;
}

struct RollUp {
  std::vector<Check> checks;
  Verdict verdict;
  int exit;
};

TEST(EvidenceTest, RollsUpTheWorst) {
  using enum CheckStatus;
  const std::vector<RollUp> cases = {
      {{}, Verdict::kError, 1},
      {{Make(kPassed)}, Verdict::kPassed, 0},
      {{Make(kPassed), Make(kSkipped)}, Verdict::kIncomplete, 4},
      {{Make(kPassed), Make(kUnsupported)}, Verdict::kIncomplete, 4},
      {{Make(kSkipped), Make(kSkipped)}, Verdict::kIncomplete, 4},
      {{Make(kSkipped, Layer::kPod, false)}, Verdict::kIncomplete, 4},
      {{Make(kPassed), Make(kUnsupported, Layer::kPod, false)}, Verdict::kPassed, 0},
      {{Make(kPassed), Make(kError)}, Verdict::kError, 1},
      {{Make(kFailed), Make(kError), Make(kSkipped)}, Verdict::kFailed, 3},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(VerdictOf(cases[i].checks), cases[i].verdict) << i;
    EXPECT_EQ(ExitCode(cases[i].verdict), cases[i].exit) << i;
  }
}

TEST(EvidenceTest, ALayerIsAsGoodAsItsWorstRequiredCheck) {
  using enum CheckStatus;
  const Layer layer = Layer::kPlugin;
  const std::vector<std::pair<std::vector<Check>, CheckStatus>> cases = {
      {{Make(kPassed), Make(kPassed)}, kPassed},
      {{Make(kPassed), Make(kSkipped)}, kSkipped},
      {{Make(kPassed), Make(kUnsupported)}, kUnsupported},
      {{Make(kPassed), Make(kUnsupported, layer, false)}, kPassed},
      {{Make(kPassed), Make(kFailed, layer, false)}, kFailed},
      {{Make(kSkipped), Make(kPassed, layer, false)}, kSkipped},
      {{Make(kUnsupported, layer, false)}, kUnsupported},
      {{Make(kPassed, Layer::kPod)}, kSkipped},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(LayerStatus(cases[i].first, layer), cases[i].second) << i;
  }
}

TEST(EvidenceTest, TheStopIsTheLowestLayer) {
  std::vector<Check> checks = {Make(CheckStatus::kFailed, Layer::kPod),
                               Make(CheckStatus::kError, Layer::kToolkit)};
  ASSERT_NE(StopOf(checks), nullptr);
  EXPECT_EQ(StopOf(checks)->layer, Layer::kToolkit);
  EXPECT_EQ(StopOf({Make(CheckStatus::kUnsupported)}), nullptr);
}

TEST(EvidenceTest, JsonSaysWhatWasNotShown) {
  Report report;
  report.mode = Mode::kSimulated;
  report.probed = true;
  report.allocated = {"GPU-a"};
  report.seen = {"GPU-b"};
  Check check = Make(CheckStatus::kPassed);
  check.id = "node.capacity";
  check.observations.push_back({"kube", "v1/nodes/a", std::string(2 * kMaxExcerpt, 'x')});
  report.checks = {check, Make(CheckStatus::kSkipped)};
  report.checks.back().reason = "not asked";
  const api::Object json = ReportJson(report);
  EXPECT_EQ(json["mode"].AsString(), "simulated");
  EXPECT_EQ(json["verdict"].AsString(), "incomplete");
  EXPECT_EQ(json["firstUnproven"].AsString(), "x");
  EXPECT_EQ(json["identity"]["equal"].AsString(), "false");
  const api::Value first = json["checks"].at(0);
  EXPECT_EQ(first["doesNotProve"].AsString(), "that one of them is free");
  EXPECT_EQ(first["observations"].at(0)["excerpt"].AsString().size(), kMaxExcerpt);
  EXPECT_EQ(json["checks"].at(1)["skipReason"].AsString(), "not asked");
}

// The ids and codes are the stable interface: docs/evidence.md lists every one.
TEST(EvidenceTest, TheDocumentListsTheChecks) {
  auto text = ReadFile(SEXTANT_SOURCE_DIR "/docs/evidence.md", 1 << 20);
  ASSERT_TRUE(text);
  std::set<std::string_view> ids;
  Layer before = Layer::kDriver;
  for (const CheckKind& kind : CheckKinds()) {
    EXPECT_TRUE(ids.insert(kind.id).second) << kind.id;
    EXPECT_GE(kind.layer, before) << kind.id << ": checks stand bottom up";
    before = kind.layer;
    std::string codes;
    for (char c : kind.codes) codes += c == ' ' ? std::string("`, `") : std::string(1, c);
    const std::string row =
        fmt::format("| `{}` | {} |{} {}", kind.id, LayerName(kind.layer),
                    kind.required ? " yes |" : " |", codes.empty() ? "" : "`" + codes + "`");
    EXPECT_NE(text->find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace sextant::preflight
