// The rules of the house (docs/ and DESIGN: rooms and laws), checked on every source file. Each
// rule prints all that breaks it, with place and reason.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "source_text.h"

namespace sextant::tidy {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileLines = 800;
constexpr size_t kMaxFunctionLines = 70;
constexpr size_t kMaxTestLines = 150;  // a test's table is data
constexpr size_t kMaxColumns = 100;
constexpr size_t kMaxFileBytes = 16 << 20;

// The rooms in the order of the house: a room includes only itself and rooms above it.
constexpr std::string_view kRooms[] = {
    "base",      "net",      "api",    "cel",   "client",    "store",       "server",
    "host",      "gpu",      "plugin", "agent", "scheduler", "controllers", "kubelet",
    "preflight", "operator", "lab",    "web",   "bench",     "cli"};

// These know the cluster only as client::Client.
const std::set<std::string_view> kClientsOnly = {"scheduler", "controllers", "agent",
                                                 "kubelet",   "preflight",   "operator"};

// A simulated machine has its cards in it, though the room gpu is below the room host.
constexpr std::pair<std::string_view, std::string_view> kNamedUses[] = {
    {"src/host/machine.h", "gpu/inventory.h"},
};

// Where the server may name a kind: tables, and words that are no dispatch by kind.
struct NamedKind {
  std::string_view path;  // prefix
  std::string_view kind;  // empty: any
};
constexpr NamedKind kNamedKinds[] = {
    {"src/server/table", ""},                         // tables.cc: kubectl's columns by resource
    {"src/server/rbac.cc", "ClusterRole"},            // roleRef.kind
    {"src/server/rbac.cc", "ServiceAccount"},         // subjects.kind
    {"src/server/admission", ""},                     // plugins: each for its own resources
    {"src/server/runtime_class.cc", "RuntimeClass"},  // the admission plugin's name
    {"src/server/subresource_", ""},                  // the hooks that the resource table points to
};

bool MayNameKind(std::string_view path, std::string_view kind) {
  return std::any_of(std::begin(kNamedKinds), std::end(kNamedKinds), [&](const NamedKind& named) {
    return path.starts_with(named.path) && (named.kind.empty() || named.kind == kind);
  });
}

struct Banned {
  std::string_view word;
  std::string_view why;
  std::vector<std::string_view> allowed;  // path prefixes
  bool in_tests = false;                  // whether tests and benchmarks may not use it either
};

const std::vector<Banned>& BannedWords() {
  static const std::vector<Banned> words = {
      {"std::thread",
       "take an Executor (base/executor.h)",
       {"src/base/", "src/net/io.cc", "src/kubelet/fd_loop."}},
      {"std::jthread", "take an Executor (base/executor.h)", {}},
      {"std::async", "take an Executor (base/executor.h)", {}},
      {"system_clock::now", "time comes from base::Clock", {"src/base/clock.cc"}},
      {"steady_clock::now", "time comes from base::Clock", {"src/base/clock.cc"}},
      {"gettimeofday", "time comes from base::Clock", {"src/gpu/nvidia_smi_main.cc"}, true},
      {"rand(", "chance comes from base::Random", {}, true},
      {"srand(", "chance comes from base::Random", {}, true},
      {"random_device", "chance comes from base::Random", {}, true},
      {"mt19937", "chance comes from base::Random", {}, true},
      {"getrandom(", "chance comes from base::Random", {"src/base/random.cc"}, true},
      {"std::regex", "slow, and its recursion follows its input", {}, true},
      {"using namespace std;", "names stay where they are from", {}, true},
      {"assert(", "use CHECK or DCHECK (base/check.h)", {}, true},
  };
  return words;
}

struct File {
  std::string path;  // from the root of the repository
  std::string room;  // empty outside of src/
  SourceText text;

  bool IsTest() const {
    for (const char* end : {"_test.cc", "_test.h", "_bench.cc", "/testing.h"})
      if (path.ends_with(end)) return true;
    return path.starts_with("tests/");
  }
  bool IsHeader() const { return path.ends_with(".h"); }
};

std::string RoomOf(const std::string& path) {
  if (!path.starts_with("src/")) return "";
  const size_t slash = path.find('/', 4);
  return slash == std::string::npos ? "" : path.substr(4, slash - 4);
}

std::vector<File> ReadAll() {
  const std::string root = SEXTANT_SOURCE_DIR;
  std::vector<File> files;
  for (const char* folder : {"/src", "/tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root + folder)) {
      const std::string extension = entry.path().extension();
      if (!entry.is_regular_file() || (extension != ".cc" && extension != ".h")) continue;
      File file;
      file.path = entry.path().string().substr(root.size() + 1);
      file.room = RoomOf(file.path);
      file.text = ReadSource(ReadFile(entry.path(), kMaxFileBytes).value());
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

const std::vector<File>& Files() {
  static const std::vector<File> files = ReadAll();
  return files;
}

void Breaks(const File& file, size_t line, std::string_view what) {
  ADD_FAILURE_AT(file.path.c_str(), static_cast<int>(line)) << what;
}

size_t RoomIndex(std::string_view room) {
  return static_cast<size_t>(std::find(std::begin(kRooms), std::end(kRooms), room) -
                             std::begin(kRooms));
}

// The path of an #include "path" line; empty if it is none.
std::string QuotedInclude(const std::string& line) {
  constexpr std::string_view kBegin = "#include \"";
  if (!line.starts_with(kBegin)) return "";
  return line.substr(kBegin.size(), line.rfind('"') - kBegin.size());
}

TEST(TidyTest, SeesTheSources) { EXPECT_GT(Files().size(), 10u); }

TEST(TidyTest, FilesAreShort) {
  for (const File& file : Files())
    if (file.text.lines.size() > kMaxFileLines + 1)
      Breaks(file, kMaxFileLines, fmt::format("longer than {} lines", kMaxFileLines));
}

TEST(TidyTest, FunctionsAreShort) {
  for (const File& file : Files()) {
    const size_t limit = file.IsTest() ? kMaxTestLines : kMaxFunctionLines;
    for (const Function& function : Functions(file.text))
      if (function.lines > limit)
        Breaks(file, function.line, fmt::format("a function of {} lines", function.lines));
  }
}

TEST(TidyTest, LinesAreShort) {
  for (const File& file : Files()) {
    for (size_t n = 0; n < file.text.lines.size(); ++n) {
      const std::string& line = file.text.lines[n];
      // Nothing can break a long word (a path, a URL, a raw string) in two.
      const bool data = file.text.in_raw_string[n] || line.find("R\"") != std::string::npos;
      if (!data && Columns(line) > kMaxColumns && line.find("://") == std::string::npos)
        Breaks(file, n + 1, fmt::format("{} columns", Columns(line)));
    }
  }
}

TEST(TidyTest, HeadersAreReadOnce) {
  for (const File& file : Files()) {
    const auto& code = file.text.code;
    if (file.IsHeader() && std::find(code.begin(), code.end(), "#pragma once") == code.end())
      Breaks(file, 1, "no #pragma once");
  }
}

// A header that comes first in its own .cc stands on its own.
TEST(TidyTest, SourcesIncludeTheirHeaderFirst) {
  std::set<std::string> paths;
  for (const File& file : Files()) paths.insert(file.path);
  for (const File& file : Files()) {
    if (file.room.empty() || file.IsHeader()) continue;
    const std::string header = file.path.substr(0, file.path.size() - 3) + ".h";
    if (!paths.contains(header)) continue;
    const auto& lines = file.text.lines;
    const auto first = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("#include");
    });
    if (first == lines.end() || "src/" + QuotedInclude(*first) != header)
      Breaks(file, 1, "the first include is not " + header);
  }
}

TEST(TidyTest, RoomsUseOnlyRoomsAboveThem) {
  for (const File& file : Files()) {
    if (file.room.empty()) continue;
    const size_t own = RoomIndex(file.room);
    if (own == std::size(kRooms)) {
      Breaks(file, 1, "no such room in the house: " + file.room);
      continue;
    }
    for (size_t n = 0; n < file.text.lines.size(); ++n) {
      const std::string include = QuotedInclude(file.text.lines[n]);
      const std::string room = include.substr(0, include.find('/'));
      const size_t other = RoomIndex(room);
      if (other == std::size(kRooms)) continue;
      const bool named = std::any_of(
          std::begin(kNamedUses), std::end(kNamedUses),
          [&](const auto& use) { return use.first == file.path && use.second == include; });
      if (other > own && !named)
        Breaks(file, n + 1, fmt::format("{} is below {}", room, file.room));
      // Tests may build a server to talk to.
      if (kClientsOnly.contains(file.room) && !file.IsTest() &&
          (room == "server" || room == "store"))
        Breaks(file, n + 1, fmt::format("{} knows the cluster only as a Client", file.room));
    }
  }
}

TEST(TidyTest, NothingIsLeftForLater) {
  // In two parts, so that this file does not break its own rule.
  const std::string words[] = {std::string("TO") + "DO", std::string("FIX") + "ME",
                               std::string("XX") + "X"};
  for (const File& file : Files())
    for (size_t n = 0; n < file.text.lines.size(); ++n)
      for (const std::string& word : words)
        if (HasWord(file.text.lines[n], word)) Breaks(file, n + 1, word);
}

TEST(TidyTest, BannedWordsAreNotUsed) {
  for (const File& file : Files()) {
    for (const Banned& banned : BannedWords()) {
      if (file.IsTest() && !banned.in_tests) continue;
      const bool allowed =
          std::any_of(banned.allowed.begin(), banned.allowed.end(),
                      [&](std::string_view prefix) { return file.path.starts_with(prefix); });
      if (allowed) continue;
      for (size_t n = 0; n < file.text.code.size(); ++n)
        if (HasWord(file.text.code[n], banned.word))
          Breaks(file, n + 1, fmt::format("{}: {}", banned.word, banned.why));
    }
    for (size_t n = 0; n < file.text.lines.size(); ++n)
      if (file.text.code[n].starts_with("#include <iostream>"))
        Breaks(file, n + 1, "<iostream> costs every program its static constructors");
  }
}

// The kinds of the API: messages that have a list of themselves. Those of meta/v1 are words of the
// protocol.
std::set<std::string> Kinds() {
  std::set<std::string> messages, kinds;
  for (const auto& entry : fs::recursive_directory_iterator(SEXTANT_SOURCE_DIR "/src")) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".proto") || name.starts_with("meta_")) continue;
    for (const std::string& line : ReadSource(*ReadFile(entry.path(), kMaxFileBytes)).code) {
      constexpr std::string_view kBegin = "message ";
      if (line.starts_with(kBegin))
        messages.insert(
            line.substr(kBegin.size(), line.find_first_of(" {", kBegin.size()) - kBegin.size()));
    }
  }
  for (const std::string& message : messages)
    if (messages.contains(message + "List")) kinds.insert(message);
  return kinds;
}

TEST(TidyTest, TheServerKnowsKindsFromTablesOnly) {
  const std::set<std::string> kinds = Kinds();
  for (const File& file : Files()) {
    if (file.room != "server" || file.IsTest()) continue;
    for (const std::string& literal : file.text.literals)
      if (kinds.contains(literal) && !MayNameKind(file.path, literal))
        Breaks(file, 1, "a kind by name: " + literal);
  }
}

TEST(TidyTest, EveryRoomSaysWhatItIsFor) {
  for (const auto& entry : fs::directory_iterator(SEXTANT_SOURCE_DIR "/src"))
    if (entry.is_directory())
      EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path() << " has no README.md";
}

// --- the reader itself ---

TEST(SourceTextTest, TellsCodeFromTheRest) {
  const SourceText text = ReadSource(
      "int a = 1'000;  // it's \"one\"\n"
      "/* two\n"
      "three */ char b = '\"'; f(\"x\\\"y\");\n"
      "auto c = R\"q(raw \"\n"
      "more)q\"; d\n");
  ASSERT_EQ(text.code.size(), 6u);
  EXPECT_EQ(text.code[0].substr(0, 14), "int a = 1'000;");
  EXPECT_EQ(text.code[0].find('o'), std::string::npos);
  EXPECT_EQ(text.code[1].find_first_not_of(' '), std::string::npos);
  EXPECT_EQ(text.code[2], "         char b = ' '; f(\"    \");");
  EXPECT_EQ(text.code[4], "       ; d");
  EXPECT_EQ(text.literals, (std::vector<std::string>{"x\\\"y", "raw \"\nmore"}));
  EXPECT_EQ(text.in_raw_string, (std::vector<bool>{false, false, false, false, true, false}));
}

TEST(SourceTextTest, MeasuresFunctions) {
  const SourceText text = ReadSource(
      "namespace a {\n"
      "struct S {\n"
      "  S() : a_(1), b_{2} {\n"
      "  }\n"
      "  int f() const { return 1; }\n"
      "};\n"
      "bool operator==(int a) { return true; }\n"
      "const int t[] = {\n"
      "  g({1}),\n"
      "};\n"
      "static int h(int x = 3)\n"
      "{\n"
      "  if (x) {\n"
      "    return [] { return 1; }();\n"
      "  }\n"
      "}\n"
      "}  // namespace a\n");
  std::map<size_t, size_t> lengths;
  for (const Function& function : Functions(text)) lengths[function.line] = function.lines;
  EXPECT_EQ(lengths[3], 2u);
  EXPECT_EQ(lengths[5], 1u);
  EXPECT_EQ(lengths[7], 1u);
  EXPECT_EQ(lengths[12], 5u);
  EXPECT_EQ(lengths.size(), 4u);
}

TEST(SourceTextTest, FindsWholeWords) {
  EXPECT_TRUE(HasWord("x = rand();", "rand("));
  EXPECT_FALSE(HasWord("x = strand();", "rand("));
  EXPECT_FALSE(HasWord("std::thread::id", "std::thread::i"));
  EXPECT_TRUE(HasWord("strand() + rand()", "rand("));
  EXPECT_FALSE(HasWord("static_assert(true)", "assert("));
  EXPECT_EQ(Columns("\xc3\xa9x"), 2u);
}

}  // namespace
}  // namespace sextant::tidy
