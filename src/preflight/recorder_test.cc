#include "preflight/recorder.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "base/file.h"

namespace sextant::preflight {
namespace {

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : dir_(*TempDir::Make("recorder")) {
    options_.track = "kubernetes";
    options_.kind = "kubernetes-gpu-preflight";
    options_.experiment_id = "kubernetes-day02-preflight-20260916-001";
    options_.required = {"kubectl", "nvidia-smi"};
    options_.reason = "No GPU Kubernetes context was accessed; no workload was executed.";
    options_.directory = dir_.path() + "/evidence";
    options_.path = dir_.path() + "/bin";
    (void)MakeDirectories(options_.path, 0755);
  }
  void Install(const std::string& name, mode_t mode = 0755) {
    ASSERT_TRUE(WriteFileAtomic(options_.path + "/" + name, "#!/bin/sh\n", mode));
  }

  TempDir dir_;
  RealClock clock_;
  RecorderOptions options_;
};

TEST_F(RecorderTest, OneOfTwoWordForWord) {
  Install("kubectl");
  auto recording = Record(options_, clock_);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->text,
            "required executables: 2\navailable executables: 1\nkubectl: available\n"
            "nvidia-smi: unsupported\nstatus: skipped (no cluster workload was executed)\n");
  auto text = ReadFile(recording->file, 1 << 20);
  ASSERT_TRUE(text);
  auto evidence = api::ParseJson(*text);
  ASSERT_TRUE(evidence);
  EXPECT_EQ((*evidence)["mode"].AsString(), "none");
  EXPECT_EQ((*evidence)["status"].AsString(), "skipped");
  ASSERT_EQ((*evidence)["checks"].size(), 3u);
  EXPECT_EQ((*evidence)["checks"].at(1)["status"].AsString(), "unsupported");
}

TEST_F(RecorderTest, BothAndNone) {
  auto none = Record(options_, clock_);
  ASSERT_TRUE(none);
  EXPECT_NE(none->text.find("available executables: 0\n"), std::string::npos);
  Install("kubectl");
  Install("nvidia-smi");
  options_.experiment_id = "second";
  auto both = Record(options_, clock_);
  ASSERT_TRUE(both);
  EXPECT_NE(both->text.find("available executables: 2\n"), std::string::npos);
  EXPECT_NE(both->text.find("status: skipped"), std::string::npos) << "never passed";
}

TEST_F(RecorderTest, AFileThatCannotRunDoesNotCount) {
  Install("kubectl", 0644);
  EXPECT_EQ(FindOnPath("kubectl", options_.path), "");
}

// PATH's first one is what would run: the lab's own there is not the driver's program, behind it or
// elsewhere it does no harm.
TEST_F(RecorderTest, ASimulatedSmiIsNotTheOneAskedFor) {
  const std::string later = dir_.path() + "/later";
  ASSERT_TRUE(MakeDirectories(later, 0755));
  ASSERT_TRUE(WriteFileAtomic(later + "/nvidia-smi", "#!/bin/sh\n", 0755));
  const std::string first = options_.path;
  struct Case {
    const char* text;  // of the first nvidia-smi on PATH
    bool counts;
  };
  const Case cases[] = {{"ELF\n nvidia-smi\nSimulated by Sextant: it shows", false},
                        {"#!/bin/sh\nexec sextant nvidia-smi --node a \"$@\"\n", false},
                        {"ELF\n NVIDIA System Management Interface", true}};
  int number = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    ASSERT_TRUE(WriteFileAtomic(first + "/nvidia-smi", one.text, 0755));
    options_.required = {"nvidia-smi"};
    options_.path = first + ":" + later;
    options_.experiment_id = fmt::format("simulated-{}", ++number);
    auto recording = Record(options_, clock_);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_NE(
        recording->text.find(one.counts ? "available executables: 1\nnvidia-smi: available"
                                        : "available executables: 0\nnvidia-smi: unsupported"),
        std::string::npos)
        << recording->text;
    auto text = ReadFile(recording->file, 1 << 20);
    ASSERT_TRUE(text);
    auto evidence = api::ParseJson(*text);
    ASSERT_TRUE(evidence);
    EXPECT_EQ((*evidence)["checks"].at(0)["observed"].AsString(),
              one.counts ? "available" : "simulated");
    options_.path = later + ":" + first;
    options_.experiment_id += "-later";
    recording = Record(options_, clock_);
    ASSERT_TRUE(recording);
    EXPECT_NE(recording->text.find("nvidia-smi: available"), std::string::npos);
  }
}

TEST_F(RecorderTest, SaysWhatIsMissing) {
  const std::pair<std::string RecorderOptions::*, std::string_view> fields[] = {
      {&RecorderOptions::experiment_id, "--experiment-id is missing"},
      {&RecorderOptions::track, "--track is missing"},
      {&RecorderOptions::kind, "--kind is missing"},
      {&RecorderOptions::reason, "--reason is missing"}};
  for (const auto& [field, says] : fields) {
    RecorderOptions without = options_;
    (without.*field).clear();
    auto refused = Record(without, clock_);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(says), std::string::npos) << refused.error().message;
  }
}

TEST_F(RecorderTest, NeverOverwrites) {
  ASSERT_TRUE(Record(options_, clock_));
  auto again = Record(options_, clock_);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("exists already"), std::string::npos);
}

TEST_F(RecorderTest, RefusesWhatIsNoName) {
  for (const char* id : {"", "../x", "a/b", ".hidden", "a b"}) {
    options_.experiment_id = id;
    EXPECT_FALSE(Record(options_, clock_)) << id;
  }
  options_.experiment_id = "good";
  options_.reason = "";
  EXPECT_FALSE(Record(options_, clock_));
}

}  // namespace
}  // namespace sextant::preflight
