#include "preflight/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "api/json.h"
#include "base/file.h"
#include "base/version.h"

namespace sextant::preflight {
namespace {

constexpr size_t kMaxId = 128;
constexpr size_t kMaxExecutables = 64;
constexpr std::string_view kSmi = "nvidia-smi";
// What stands in our programs (the help text of gpu/smi.cc), and in a script that calls them.
constexpr std::array<std::string_view, 2> kSmiMarks = {"Simulated by Sextant",
                                                       "sextant nvidia-smi"};

// What became of one required program.
struct Program {
  std::string name;
  bool available = false;
  std::string why_not;
  std::string observed;
};

Program LookFor(const std::string& name, const std::string& path) {
  const std::string file = FindOnPath(name, path);
  if (file.empty()) return {name, false, "the program is not on PATH", "not found"};
  if (name == kSmi && IsSimulatedSmi(file)) {
    return {name, false, "the program on PATH is Sextant's: it shows simulated cards", "simulated"};
  }
  return {name, true, "", "available"};
}

Status CheckOptions(const RecorderOptions& options) {
  const std::string& id = options.experiment_id;
  if (id.empty()) {
    return Fail(UsageError("--experiment-id is missing: it names the record that is written"));
  }
  const bool good = id.size() <= kMaxId && id.front() != '.' &&
                    std::all_of(id.begin(), id.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '.' || c == '_' || c == '-';
                    });
  if (!good) {
    return Fail(UsageError(
        fmt::format("--experiment-id '{}': must be letters, digits, '.', '_' and '-'", id)));
  }
  if (options.track.empty()) return Fail(UsageError("--track is missing"));
  if (options.kind.empty()) return Fail(UsageError("--kind is missing"));
  if (options.reason.empty()) {
    return Fail(UsageError("--reason is missing: say why nothing was executed"));
  }
  if (options.required.size() > kMaxExecutables) {
    return Fail(UsageError(fmt::format("--require-executable: at most {}", kMaxExecutables)));
  }
  for (const std::string& name : options.required) {
    if (name.empty() || name.find('/') != std::string::npos) {
      return Fail(UsageError(
          fmt::format("--require-executable '{}': must be a program's name, not a path", name)));
    }
  }
  return {};
}

api::Object Evidence(const RecorderOptions& options, const std::vector<Program>& programs,
                     Time started, Time ended) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("schema", "sextant.evidence/v1");
  root.Set("experimentId", options.experiment_id);
  root.Set("track", options.track);
  root.Set("kind", options.kind);
  root.Set("mode", "none");
  root.Set("status", "skipped");
  root.Set("reason", options.reason);
  root.Set("startedAt", FormatMicroTime(started));
  root.Set("endedAt", FormatMicroTime(ended));
  for (const std::string& word : options.command) root["command"].Append().SetString(word);
  root["tool"].Set("name", "sextant");
  root["tool"].Set("version", version::kSextant);
  api::Mut checks = root["checks"];
  checks.SetList();
  for (const Program& program : programs) {
    api::Mut check = checks.Append();
    check.Set("check", "tool." + program.name);
    check.Set("required", true);
    check.Set("status", program.available ? "passed" : "unsupported");
    if (!program.available) check.Set("unsupportedReason", program.why_not);
    check.Set("observed", program.observed);
  }
  api::Mut workload = checks.Append();
  workload.Set("check", "cluster.workload");
  workload.Set("required", true);
  workload.Set("status", "skipped");
  workload.Set("skipReason", options.reason);
  return std::move(edit).Finish();
}

}  // namespace

std::string FindOnPath(const std::string& name, const std::string& path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find(':', begin);
    if (end == std::string::npos) end = path.size();
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    std::string file = fmt::format("{}/{}", folder, name);
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
    begin = end + 1;
  }
  return {};
}

bool IsSimulatedSmi(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info{};
  void* bytes = MAP_FAILED;
  size_t size = 0;
  if (::fstat(fd, &info) == 0 && info.st_size > 0) {
    size = static_cast<size_t>(info.st_size);
    bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  ::close(fd);
  if (bytes == MAP_FAILED) return false;
  const bool ours = std::any_of(kSmiMarks.begin(), kSmiMarks.end(), [&](std::string_view mark) {
    return ::memmem(bytes, size, mark.data(), mark.size()) != nullptr;
  });
  ::munmap(bytes, size);
  return ours;
}

Result<Recording> Record(const RecorderOptions& options, const Clock& clock) {
  RETURN_IF_ERROR(CheckOptions(options));
  const Time started = clock.Now();
  std::vector<Program> programs;
  programs.reserve(options.required.size());
  for (const std::string& name : options.required) {
    programs.push_back(LookFor(name, options.path));
  }
  Recording recording;
  recording.file = fmt::format("{}/{}.json", options.directory, options.experiment_id);
  if (::access(recording.file.c_str(), F_OK) == 0) {
    return Fail(UsageError(fmt::format(
        "{} exists already: a record is never overwritten; take another --experiment-id",
        recording.file)));
  }
  RETURN_IF_ERROR(MakeDirectories(options.directory, 0755));
  const api::Object evidence = Evidence(options, programs, started, clock.Now());
  RETURN_IF_ERROR(WriteFileAtomic(
      recording.file, api::ToJson(evidence.root(), {.indent = 2, .newline = true}), 0644));
  recording.text =
      fmt::format("required executables: {}\navailable executables: {}\n", options.required.size(),
                  std::count_if(programs.begin(), programs.end(),
                                [](const Program& program) { return program.available; }));
  for (const Program& program : programs) {
    recording.text +=
        fmt::format("{}: {}\n", program.name, program.available ? "available" : "unsupported");
  }
  recording.text += "status: skipped (no cluster workload was executed)\n";
  return recording;
}

}  // namespace sextant::preflight
