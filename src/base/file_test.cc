#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace sextant {
namespace {

namespace fs = std::filesystem;

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(FileTest, WritesWholeFilesWithTheirMode) {
  const Result<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir);
  const std::string path = dir->path() + "/config";
  ASSERT_TRUE(WriteFileAtomic(path, "one", 0600));
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(ReadFile(path, 100), "one");
  ASSERT_TRUE(WriteFileAtomic(path, std::string(200'000, 'x'), 0666));
  EXPECT_EQ(ModeOf(path), 0666u);  // whatever the umask says
  EXPECT_EQ(ReadFile(path, 200'000)->size(), 200'000u);
  // Nothing else is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(dir->path()), fs::directory_iterator{}), 1);
}

TEST(FileTest, WritesThroughALink) {
  const Result<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir);
  const std::string target = dir->path() + "/target";
  const std::string link = dir->path() + "/link";
  ASSERT_TRUE(WriteFileAtomic(target, "old", 0600));
  ASSERT_EQ(symlink("target", link.c_str()), 0);
  ASSERT_TRUE(WriteFileAtomic(link, "new", 0600));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadFile(target, 100), "new");
}

TEST(FileTest, RefusesWhatIsTooLong) {
  const Result<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir);
  const std::string path = dir->path() + "/f";
  ASSERT_TRUE(WriteFileAtomic(path, "12345", 0600));
  EXPECT_EQ(ReadFile(path, 5), "12345");
  EXPECT_TRUE(ReadFile(path, 4).error().Is("RequestEntityTooLarge"));
  EXPECT_TRUE(ReadFile("/dev/zero", 1'000'000).error().Is("RequestEntityTooLarge"));
}

TEST(FileTest, ErrorsNamePathAndCause) {
  const Result<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir);
  const std::string missing = dir->path() + "/no";
  const Error error = ReadFile(missing, 1).error();
  EXPECT_TRUE(error.Is("NotFound"));
  EXPECT_EQ(error.message, "open " + missing + ": no such file or directory");
  EXPECT_FALSE(WriteFileAtomic(missing + "/f", "x", 0600));
  EXPECT_FALSE(ReadFile(dir->path(), 1));
  // The old content stays when the new one cannot be put in place.
  EXPECT_FALSE(WriteFileAtomic(dir->path(), "x", 0600));
}

TEST(FileTest, MakesDirectoriesWithTheirParents) {
  const Result<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir);
  const std::string deep = dir->path() + "/a/b/c";
  ASSERT_TRUE(MakeDirectories(deep, 0700));
  EXPECT_EQ(ModeOf(deep), 0700u);
  EXPECT_TRUE(MakeDirectories(deep, 0700));
  ASSERT_TRUE(WriteFileAtomic(dir->path() + "/f", "", 0600));
  EXPECT_FALSE(MakeDirectories(dir->path() + "/f", 0700));
  EXPECT_FALSE(MakeDirectories("", 0700));
}

TEST(TempDirTest, GoesWithItsOwner) {
  std::string path;
  {
    Result<TempDir> dir = TempDir::Make("owner");
    ASSERT_TRUE(dir);
    path = dir->path();
    EXPECT_NE(path.find("/owner-"), std::string::npos);
    EXPECT_EQ(ModeOf(path), 0700u);
    ASSERT_TRUE(MakeDirectories(path + "/a", 0700));
    const TempDir moved = *std::move(dir);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace sextant
