#include "preflight/recorder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "api/json.h"
#include "base/file.h"
#include "base/version.h"

namespace sextant::preflight {
namespace {

constexpr size_t kMaxId = 128;
constexpr size_t kMaxExecutables = 64;

Status CheckOptions(const RecorderOptions& options) {
  const std::string& id = options.experiment_id;
  const bool good = !id.empty() && id.size() <= kMaxId && id.front() != '.' &&
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

api::Object Evidence(const RecorderOptions& options, const std::vector<bool>& available,
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
  for (size_t i = 0; i < options.required.size(); ++i) {
    api::Mut check = checks.Append();
    check.Set("check", "tool." + options.required[i]);
    check.Set("required", true);
    check.Set("status", available[i] ? "passed" : "unsupported");
    if (!available[i]) check.Set("unsupportedReason", "the program is not on PATH");
    check.Set("observed", available[i] ? "available" : "not found");
  }
  api::Mut workload = checks.Append();
  workload.Set("check", "cluster.workload");
  workload.Set("required", true);
  workload.Set("status", "skipped");
  workload.Set("skipReason", options.reason);
  return std::move(edit).Finish();
}

}  // namespace

bool OnPath(const std::string& name, const std::string& path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find(':', begin);
    if (end == std::string::npos) end = path.size();
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    const std::string file = folder + "/" + name;
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

Result<Recording> Record(const RecorderOptions& options, const Clock& clock) {
  RETURN_IF_ERROR(CheckOptions(options));
  const Time started = clock.Now();
  std::vector<bool> available;
  for (const std::string& name : options.required) available.push_back(OnPath(name, options.path));
  Recording recording;
  recording.file = fmt::format("{}/{}.json", options.directory, options.experiment_id);
  if (::access(recording.file.c_str(), F_OK) == 0) {
    return Fail(UsageError(fmt::format(
        "{} exists already: a record is never overwritten; take another --experiment-id",
        recording.file)));
  }
  RETURN_IF_ERROR(MakeDirectories(options.directory, 0755));
  const api::Object evidence = Evidence(options, available, started, clock.Now());
  RETURN_IF_ERROR(WriteFileAtomic(
      recording.file, api::ToJson(evidence.root(), {.indent = 2, .newline = true}), 0644));
  recording.text =
      fmt::format("required executables: {}\navailable executables: {}\n", options.required.size(),
                  std::count(available.begin(), available.end(), true));
  for (size_t i = 0; i < options.required.size(); ++i) {
    recording.text +=
        fmt::format("{}: {}\n", options.required[i], available[i] ? "available" : "unsupported");
  }
  recording.text += "status: skipped (no cluster workload was executed)\n";
  return recording;
}

}  // namespace sextant::preflight
