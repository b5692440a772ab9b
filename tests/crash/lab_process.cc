#include "lab_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/json.h"
#include "base/file.h"

extern char** environ;

namespace sextant::crash {
namespace {

constexpr int kReportFd = 3;
constexpr size_t kMaxReport = 1 << 20;
constexpr size_t kMaxLog = 64 << 20;
constexpr size_t kShownLog = 4000;

std::string LogOf(const Place& place) { return place.directory + "/lab.log"; }

std::string EndOfLog(const Place& place) {
  std::string text = ReadFile(LogOf(place), kMaxLog).value_or("");
  if (text.size() > kShownLog) text.erase(0, text.size() - kShownLog);
  return text;
}

// A child with its output in the log; `report` (-1: none) becomes its descriptor 3.
Result<pid_t> Start(const Place& place, std::vector<std::string> arguments, int report) {
  arguments.insert(arguments.begin(), "sextant");
  std::vector<std::string> environment = {
      "SEXTANT_HOME=" + place.directory + "/home",
      "KUBECONFIG=" + place.directory + "/kubeconfig",
      "XDG_RUNTIME_DIR=" + place.directory + "/run",
  };
  for (char** each = environ; *each; ++each) environment.emplace_back(*each);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, LogOf(place).c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (report >= 0) posix_spawn_file_actions_adddup2(&actions, report, kReportFd);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, place.program.c_str(), &actions, nullptr,
                                pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Fail(FileError("start", place.program, error));
  return pid;
}

}  // namespace

Status RunCommand(const Place& place, std::vector<std::string> arguments) {
  const std::string what = arguments.front();
  ASSIGN_OR_RETURN(const pid_t pid, Start(place, std::move(arguments), -1));
  int status = 0;
  waitpid(pid, &status, 0);
  if (status == 0) return {};
  return Fail(InternalError(fmt::format("sextant {} failed:\n{}", what, EndOfLog(place))));
}

Result<LabProcess> LabProcess::Spawn(const Place& place) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(FileError("pipe", "", errno));
  Result<pid_t> pid = Start(place, {"__lab", "--name", place.lab}, ends[1]);
  close(ends[1]);
  if (!pid) {
    close(ends[0]);
    return Fail(std::move(pid).error());
  }
  return LabProcess(place, *pid, ends[0]);
}

LabProcess::LabProcess(LabProcess&& other) noexcept
    : place_(other.place_),
      pid_(std::exchange(other.pid_, -1)),
      report_(std::exchange(other.report_, -1)) {}

LabProcess::~LabProcess() {
  if (pid_ > 0) (void)Kill();
}

Result<client::RemoteOptions> LabProcess::Access(Duration limit) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  std::string line;
  while (!line.ends_with('\n') && line.size() < kMaxReport) {
    pollfd waiting{report_, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(ms)) <= 0)
      return Fail(InternalError("the lab does not serve:\n" + EndOfLog(*place_)));
    char bytes[4096];
    const ssize_t n = read(report_, bytes, sizeof bytes);
    if (n <= 0) return Fail(InternalError("the lab ended by itself:\n" + EndOfLog(*place_)));
    line.append(bytes, static_cast<size_t>(n));
  }
  ASSIGN_OR_RETURN(const api::Object report, api::ParseJson(line));
  if (report["error"]) return Fail(InternalError(std::string(report["error"].AsString())));
  client::RemoteOptions options;
  options.server = report["server"].AsString();
  options.tls = {.ca_pem = std::string(report["ca"].AsString()),
                 .cert_pem = std::string(report["certificate"].AsString()),
                 .key_pem = std::string(report["key"].AsString())};
  return options;
}

Status LabProcess::Kill() {
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  close(std::exchange(report_, -1));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {};
  return Fail(InternalError("the lab ended by itself:\n" + EndOfLog(*place_)));
}

}  // namespace sextant::crash
