// LogWriter and LogReader against each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/executor.h"
#include "base/file.h"
#include "kubelet/log_reader.h"
#include "kubelet/log_writer.h"

namespace sextant::kubelet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class Log : public testing::Test {
 protected:
  Log() : directory_(*TempDir::Make()), path_(directory_.path() + "/0.log") {}

  LogWriter Open(LogLimits limits = {}) { return *LogWriter::Open(path_, limits, loop_); }
  std::string Raw() { return *ReadFile(path_, 64 << 20); }

  // All that there is, without following.
  std::string Read(LogOptions options = {}) {
    auto reader = LogReader::Open(path_, options, loop_, loop_, [] { return false; });
    std::string text;
    bool ended = false;
    while (!ended) {
      bool called = false;
      reader->Next([&](Result<std::optional<std::string>> chunk) {
        called = true;
        ASSERT_TRUE(chunk);
        if (*chunk)
          text += **chunk;
        else
          ended = true;
      });
      loop_.RunReady();
      if (!called) loop_.Advance(1s);
      if (!called) break;
    }
    EXPECT_TRUE(ended);
    return text;
  }

  ManualLoop loop_;  // both the worker and the clock
  TempDir directory_;
  const std::string path_;
};

TEST_F(Log, IsCri) {
  LogWriter writer = Open();
  writer.Write(LogStream::kStdout, "one\ntw");
  loop_.Advance(1500ms);
  writer.Write(LogStream::kStderr, "err\n");
  writer.Write(LogStream::kStdout, "o\n\nlast");
  writer.Finish();
  EXPECT_EQ(Raw(),
            "2026-01-01T00:00:00.000000000Z stdout F one\n"
            "2026-01-01T00:00:01.500000000Z stderr F err\n"
            "2026-01-01T00:00:01.500000000Z stdout F two\n"
            "2026-01-01T00:00:01.500000000Z stdout F \n"
            "2026-01-01T00:00:01.500000000Z stdout F last\n");
}

TEST_F(Log, LongLinesComeInPieces) {
  LogWriter writer = Open();
  const std::string line(kLogLineMax * 2 + 5, 'x');
  writer.Write(LogStream::kStdout, line + "\nnext\n");
  writer.Finish();
  const std::string raw = Raw();
  EXPECT_EQ(std::ranges::count(raw, '\n'), 4);
  EXPECT_EQ(raw.find(" P "), std::string_view("2026-01-01T00:00:00.000000000Z stdout").size());
  EXPECT_EQ(Read(), line + "\nnext\n");
  const std::string stamped = Read({.timestamps = true});
  EXPECT_EQ(stamped,
            "2026-01-01T00:00:00.000000000Z " + line + "\n2026-01-01T00:00:00.000000000Z next\n");
}

TEST_F(Log, Options) {
  LogWriter writer = Open();
  for (int i = 0; i < 10; ++i) {
    writer.Write(i % 2 ? LogStream::kStderr : LogStream::kStdout, fmt::format("line {}\n", i));
    loop_.Advance(1s);
  }
  struct Case {
    LogOptions options;
    std::string text;
  };
  const Time start{std::chrono::seconds{1'767'225'600}};
  for (const Case& c : {
           Case{{.tail_lines = 2}, "line 8\nline 9\n"},
           Case{{.tail_lines = 0}, ""},
           Case{{.tail_lines = 100, .limit_bytes = 10}, "line 0\nlin"},
           Case{{.since_seconds = 3}, "line 7\nline 8\nline 9\n"},
           Case{{.since_time = start + 8s}, "line 8\nline 9\n"},
           Case{{.tail_lines = 5, .since_seconds = 2}, "line 8\nline 9\n"},
           Case{{.tail_lines = 4, .stream = "Stderr"}, "line 7\nline 9\n"},
           Case{{.timestamps = true, .tail_lines = 1}, "2026-01-01T00:00:09.000000000Z line 9\n"},
       })
    EXPECT_EQ(Read(c.options), c.text);
}

TEST_F(Log, RotatesAndIsReadAcrossFiles) {
  LogWriter writer = Open({.max_file_bytes = 4096, .max_files = 3});
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string line = fmt::format("number {:05}\n", i);
    writer.Write(LogStream::kStdout, line);
    all += line;
  }
  EXPECT_TRUE(fs::exists(path_ + ".2"));
  EXPECT_FALSE(fs::exists(path_ + ".3"));
  EXPECT_LE(fs::file_size(path_), 4096u);
  const std::string kept = Read();
  EXPECT_TRUE(all.ends_with(kept));
  EXPECT_GT(kept.size(), 100 * 13u);
  EXPECT_EQ(Read({.tail_lines = 120}), all.substr(180 * 13));
}

TEST_F(Log, FollowsThroughRotationToTheEnd) {
  LogWriter writer = Open({.max_file_bytes = 2048, .max_files = 4});
  bool running = true, ended = false;
  auto reader = LogReader::Open(path_, {.follow = true}, loop_, loop_, [&] { return running; });
  std::string text, all;
  std::function<void()> next = [&] {
    reader->Next([&](Result<std::optional<std::string>> chunk) {
      if (!*chunk) {
        ended = true;
        return;
      }
      text += **chunk;
      next();
    });
  };
  next();
  for (int i = 0; i < 200; ++i) {
    const std::string line = fmt::format("number {:05}\n", i);
    writer.Write(LogStream::kStdout, line);
    all += line;
    if (i % 10 == 0) loop_.Advance(100ms);
  }
  EXPECT_FALSE(ended);
  writer.Write(LogStream::kStdout, "the end");
  writer.Finish();
  running = false;
  loop_.Advance(1s);
  EXPECT_TRUE(ended);
  EXPECT_EQ(text, all + "the end\n");
}

TEST_F(Log, FollowWaitsForAFileToCome) {
  bool running = true;
  auto reader = LogReader::Open(path_, {.follow = true}, loop_, loop_, [&] { return running; });
  std::string text;
  reader->Next([&](Result<std::optional<std::string>> chunk) { text = **chunk; });
  loop_.Advance(10s);
  EXPECT_EQ(text, "");
  LogWriter writer = Open();
  writer.Write(LogStream::kStdout, "hello\n");
  loop_.Advance(1s);
  EXPECT_EQ(text, "hello\n");
}

TEST_F(Log, ADroppedReaderCallsNobody) {
  auto reader = LogReader::Open(path_, {.follow = true}, loop_, loop_, [] { return true; });
  reader->Next([&](auto) { FAIL(); });
  loop_.Advance(1s);
  reader.reset();
  Open().Write(LogStream::kStdout, "text\n");
  loop_.Advance(1s);
}

TEST_F(Log, ForeignFilesDoNoHarm) {
  std::ofstream(path_) << "not a record\n\n"
                       << std::string(100000, 'y')
                       << "\n2026-01-01T00:00:00.000000000Z stdout F good\n2026 stdout";
  EXPECT_EQ(Read(), "good\n");
  fs::remove(path_);
  EXPECT_EQ(Read(), "");
}

}  // namespace
}  // namespace sextant::kubelet
