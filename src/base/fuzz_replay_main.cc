// In each room's test program: the fuzz targets over the inputs that are kept of them.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/fuzz.h"

namespace sextant::fuzz {
namespace {

constexpr size_t kMaxInput = 1 << 20;

// src/<room>/testdata/fuzz/<target>, in whichever room.
std::string FolderOf(const char* target) {
  for (const auto& room : std::filesystem::directory_iterator(SEXTANT_SOURCE_DIR "/src")) {
    const std::string folder = room.path().string() + "/testdata/fuzz/" + target;
    if (std::filesystem::is_directory(folder)) return folder;
  }
  return "";
}

class FuzzReplay : public testing::TestWithParam<Target> {};

TEST_P(FuzzReplay, KeptInputs) {
  const std::string folder = FolderOf(GetParam().name);
  ASSERT_NE(folder, "") << "keep some inputs in testdata/fuzz/" << GetParam().name;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(file.path().string());
    const Result<std::string> input = ReadFile(file.path().string(), kMaxInput);
    ASSERT_TRUE(input) << input.error().message;
    GetParam().run(*input);
  }
  GetParam().run("");
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplay, testing::ValuesIn(Targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sextant::fuzz
