#include "kubelet/toolbox.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace sextant::kubelet {
namespace {

namespace fs = std::filesystem;

TEST(CleanPath, Cleans) {
  for (const auto& [path, clean] :
       std::vector<std::pair<std::string, std::string>>{{"/", "/"},
                                                        {"/a//b/./c/", "/a/b/c"},
                                                        {"a/b", ""},
                                                        {"", ""},
                                                        {"/a/../b", ""},
                                                        {"/..", ""},
                                                        {"/a/..b", "/a/..b"}})
    EXPECT_EQ(CleanPath(path), clean) << path;
}

TEST(EnvValue, TheLastCounts) {
  EXPECT_EQ(EnvValue({"A=1", "AB=2", "A=3"}, "A", "x"), "3");
  EXPECT_EQ(EnvValue({"AB=2", "A"}, "A", "x"), "x");
  EXPECT_EQ(EnvValue({"A="}, "A", "x"), "");
}

class ToolboxTest : public testing::Test {
 protected:
  ToolboxTest() : directory_(*TempDir::Make()) {}
  // Skips the test where a program is not installed, and there only.
  void SetUp() override {
    const Result<Toolbox> toolbox = Build();
    if (toolbox) return;
    if (toolbox.error().message.contains("install the package"))
      GTEST_SKIP() << toolbox.error().message;
    FAIL() << toolbox.error().message;
  }
  Result<Toolbox> Build() { return Toolbox::Build({.directory = directory_.path() + "/t"}); }
  TempDir directory_;
};

TEST_F(ToolboxTest, IsBuiltOnce) {
  const Result<Toolbox> first = Build();
  ASSERT_TRUE(first) << first.error().message;
  for (const char* program : {"sh", "ls", "cat", "sleep", "busybox", "bash", "nvidia-smi"})
    EXPECT_TRUE(first->Has(program)) << program;
  const auto time = fs::last_write_time(first->bin() + "/busybox");
  ASSERT_TRUE(Build());
  EXPECT_EQ(fs::last_write_time(first->bin() + "/busybox"), time);
  std::ofstream(directory_.path() + "/t/toolbox/stamp") << "of another version";
  ASSERT_TRUE(Build());
  EXPECT_NE(fs::last_write_time(first->bin() + "/busybox"), time);
}

TEST_F(ToolboxTest, ResolvesWhatRuns) {
  const Result<Toolbox> toolbox = Build();
  ASSERT_TRUE(toolbox) << toolbox.error().message;
  const std::string volume = directory_.path() + "/volume";
  fs::create_directories(volume);
  std::ofstream(volume + "/run.sh") << "#!/bin/sh\n";
  chmod((volume + "/run.sh").c_str(), 0755);
  std::ofstream(volume + "/data") << "x";
  struct Case {
    std::vector<std::string> argv;
    std::string path;  // empty: simulated
    std::vector<std::string> env;
  };
  for (const Case& c : {
           Case{{"sh"}, "/usr/sbin/sh"},
           Case{{"/bin/bash"}, "/bin/bash"},
           Case{{"/usr/bin/nvidia-smi"}, "/usr/bin/nvidia-smi"},
           Case{{"/usr/local/bin/sh"}, ""},
           Case{{"sh"}, "", {"PATH=/opt"}},
           Case{{"python3"}, ""},
           Case{{"/v/run.sh"}, "/v/run.sh"},
           Case{{"run.sh"}, "/v/run.sh", {"PATH=/bin:/v"}},
           Case{{"./run.sh"}, "/v/run.sh"},
           Case{{"/v/data"}, ""},
           Case{{"/bin/../../etc/passwd"}, ""},
           Case{{}, ""},
       }) {
    ContainerSpec spec{.image = "some/image", .argv = c.argv, .env = c.env, .working_dir = "/v"};
    spec.mounts = {{.container_path = "/v", .host_path = volume}};
    const Toolbox::Program program = toolbox->Resolve(spec);
    EXPECT_EQ(program.path, c.path) << (c.argv.empty() ? "" : c.argv[0]);
    EXPECT_EQ(program.runs, !c.path.empty());
    EXPECT_EQ(program.why.empty(), program.runs);
  }
}

}  // namespace
}  // namespace sextant::kubelet
