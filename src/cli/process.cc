#include "cli/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "api/json.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "client/kubeconfig.h"

extern char** environ;

namespace sextant::cli {
namespace {

constexpr Duration kServeLimit = std::chrono::seconds(30);
constexpr Duration kStopLimit = std::chrono::seconds(15);
constexpr useconds_t kLookUs = 5'000;
constexpr size_t kMaxLine = 1 << 20;

struct Child {
  pid_t pid = -1;
  int report = -1;  // what it tells, line by line
};

Result<Child> Spawn(const lab::LabState& state, Duration wait) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Fail(FileError("pipe", "", errno));
  const std::string log = state.file("lab.log");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kReportFd);
  // Out of the way of both numbers.
  const int lock = ::fcntl(state.lock_fd(), F_DUPFD_CLOEXEC, kLockFd + 1);
  if (lock >= 0) posix_spawn_file_actions_adddup2(&actions, lock, kLockFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<std::string> arguments = {"sextant", "__lab", "--name", state.name()};
  if (wait > Duration{0}) {
    arguments.push_back("--wait");
    arguments.push_back(FormatDuration(wait));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Child child;
  child.report = ends[0];
  const int error =
      ::posix_spawn(&child.pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  if (lock >= 0) ::close(lock);
  if (error != 0) {
    ::close(ends[0]);
    return Fail(FileError("start", "/proc/self/exe", error));
  }
  return child;
}

// The next line that the lab's process tells; an Error when it ended or took too long.
Result<api::Object> NextReport(const Child& child, std::string& buffer, Duration limit,
                               const std::string& log) {
  const RealClock clock;
  const Duration end = clock.Monotonic() + limit;
  while (true) {
    const size_t newline = buffer.find('\n');
    if (newline != std::string::npos) {
      const std::string line = buffer.substr(0, newline);
      buffer.erase(0, newline + 1);
      return api::ParseJson(line);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - clock.Monotonic());
    if (left.count() <= 0 || buffer.size() > kMaxLine) {
      return Fail(Timeout(fmt::format("the lab did not come up in time; its log is {}", log), 0));
    }
    pollfd waiting{child.report, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[4096];
    const ssize_t n = ::read(child.report, bytes, sizeof bytes);
    if (n > 0) buffer.append(bytes, static_cast<size_t>(n));
    if (n == 0) {
      return Fail(InternalError(fmt::format("the lab's process ended; its log is {}", log)));
    }
  }
}

// It may be anywhere in its start.
void End(pid_t pid) {
  const RealClock clock;
  const Duration end = clock.Monotonic() + kStopLimit;
  ::kill(pid, SIGTERM);
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (clock.Monotonic() > end) ::kill(pid, SIGKILL);
    ::usleep(kLookUs);
  }
}

Status FromReport(const api::Object& report) {
  if (!report["error"]) return {};
  Error error;
  error.code = 500;
  error.reason = "LabError";
  error.message = report["error"].AsString();
  return Fail(std::move(error));
}

Status MergeKubeconfig(const lab::LabRecord& record, const api::Object& report) {
  client::ContextEntry entry;
  entry.name = record.context;
  entry.server = report["server"].AsString();
  entry.ca_pem = report["ca"].AsString();
  entry.client_cert_pem = report["certificate"].AsString();
  entry.client_key_pem = report["key"].AsString();
  auto file = client::MergeContext(entry, {.path = record.kubeconfig});
  if (!file) return Fail(std::move(file).error());
  return {};
}

void TellKind(const lab::LabRecord& record) {
  fmt::print(stderr,
             "Set kubectl context to \"{}\"\nYou can now use your cluster with:\n\n"
             "kubectl cluster-info --context {}\n",
             record.context, record.context);
}

void TellSextant(const lab::LabRecord& record) {
  const std::string& name = record.config.name;
  fmt::print(stderr,
             "The lab {} runs (simulated GPUs). kubectl context: {}\n"
             "  kubectl --context {} get nodes\n"
             "  sextant preflight --context {} --probe\n"
             "  sextant down --name {}\n",
             name, record.context, record.context, record.context, name);
}

}  // namespace

int Launch(lab::LabState state, const lab::LabRecord& record, const LaunchOptions& options) {
  if (options.as_kind) {
    fmt::print(stderr, "Creating cluster \"{}\" ...\n", record.config.name);
  }
  auto child = Spawn(state, options.wait);
  if (!child) {
    if (options.created) (void)state.Remove();
    return Report(child.error());
  }
  std::string buffer;
  const std::string log = state.file("lab.log");
  Status status;
  auto serving = NextReport(*child, buffer, kServeLimit, log);
  if (serving) {
    status = FromReport(*serving);
  } else {
    status = Fail(serving.error());
  }
  if (status) status = MergeKubeconfig(record, *serving);
  std::string not_ready;  // the lab stays all the same
  if (status && options.wait > Duration{0}) {
    auto ready = NextReport(*child, buffer, options.wait + kServeLimit, log);
    if (!ready) {
      status = Fail(ready.error());
    } else {
      not_ready = ready->root()["error"].AsString();
    }
  }
  ::close(child->report);
  if (!status) {
    End(child->pid);
    if (options.created) (void)state.Remove();
    return Report(status.error());
  }
  options.as_kind ? TellKind(record) : TellSextant(record);
  if (not_ready.empty()) return 0;
  fmt::print(stderr, "{}: {}\n", options.as_kind ? "WARNING" : "error", not_ready);
  return options.as_kind ? 0 : 1;
}

Status StopProcess(const lab::LabState& state) {
  const RealClock clock;
  const Duration end = clock.Monotonic() + kStopLimit;
  pid_t told = 0;
  while (const std::optional<pid_t> holder = state.Holder()) {
    const bool late = clock.Monotonic() > end;
    if (*holder > 1 && (late || *holder != told)) {
      told = *holder;
      if (::kill(told, late ? SIGKILL : SIGTERM) != 0 && errno != ESRCH) {
        return Fail(FileError("stop", fmt::format("process {}", told), errno));
      }
    }
    if (late && *holder <= 1) {
      return Fail(InternalError(fmt::format(
          "{} is locked, and names no process that could be ended", state.file("lock"))));
    }
    if (late) break;
    ::usleep(kLookUs);
  }
  return {};
}

Result<lab::LabState> FindLab(const std::string& name) {
  if (!name.empty()) {
    ASSIGN_OR_RETURN(lab::LabState state, lab::LabState::Of(name));
    if (state.exists()) return state;
    ASSIGN_OR_RETURN(const std::vector<std::string> names, lab::LabState::List());
    return Fail(UsageError(
        fmt::format("there is no lab {}{}", name,
                    names.empty() ? "; `sextant up` makes one"
                                  : fmt::format("; there are: {}", fmt::join(names, ", ")))));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, lab::LabState::List());
  if (names.empty()) return Fail(UsageError("there is no lab; `sextant up` makes one"));
  if (names.size() == 1) return lab::LabState::Of(names[0]);
  if (std::find(names.begin(), names.end(), "gpu-lab") != names.end()) {
    return lab::LabState::Of("gpu-lab");
  }
  return Fail(
      UsageError(fmt::format("which lab? say --name; there are: {}", fmt::join(names, ", "))));
}

}  // namespace sextant::cli
