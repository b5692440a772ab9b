#include "kubelet/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace sextant::kubelet {
namespace {

constexpr int kAboveTargets = 100;  // sources are first moved here, clear of all targets

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// posix_spawn's two objects, destroyed in any case.
struct Actions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

}  // namespace

Error ErrnoError(std::string_view what) {
  const int error = errno;
  return InternalError(fmt::format("{}: {}", what, strerror(error)));
}

Result<Fd> OpenPid(pid_t pid) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.ok()) return Fail(ErrnoError("pidfd_open"));
  return fd;
}

bool Signal(const Fd& pidfd, int signal) {
  return pidfd.ok() && syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

int Reap(const Process& process) {
  int status = 0;
  while (waitpid(process.pid, &status, 0) < 0)
    if (errno != EINTR) return 0;
  return status;
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Result<Process> Spawn(SpawnRequest request) {
  Actions actions;
  std::vector<Fd> moved;
  int last = 2;
  bool standard[3] = {};
  for (const auto& [fd, target] : request.fds) {
    Fd& source = moved.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, kAboveTargets));
    if (!source.ok()) return Fail(ErrnoError("a descriptor for a child"));
    posix_spawn_file_actions_adddup2(&actions.files, source.get(), target);
    last = std::max(last, target);
    if (target <= 2) standard[target] = true;
  }
  for (int i = 0; i <= 2; ++i)
    if (!standard[i])
      posix_spawn_file_actions_addopen(&actions.files, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions.files, last + 1);

  std::vector<char*> argv = Pointers(request.argv);
  std::vector<char*> env = Pointers(request.env);
  Process process;
  const int error = posix_spawn(&process.pid, request.program.c_str(), &actions.files,
                                &actions.attributes, argv.data(), env.data());
  if (error != 0) {
    errno = error;
    return Fail(ErrnoError("start " + request.program));
  }
  Result<Fd> pidfd = OpenPid(process.pid);
  if (!pidfd) {
    kill(process.pid, SIGKILL);
    Reap(process);
    return Fail(std::move(pidfd).error());
  }
  process.pidfd = *std::move(pidfd);
  return process;
}

Result<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Fail(ErrnoError("pipe"));
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

Fd Duplicate(const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

Result<Fd> MemoryFile(const char* name, std::string_view content) {
  Fd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd.ok()) return Fail(ErrnoError("memfd_create"));
  for (std::string_view rest = content; !rest.empty();) {
    const ssize_t n = write(fd.get(), rest.data(), rest.size());
    if (n < 0) return Fail(ErrnoError("write a memory file"));
    rest.remove_prefix(static_cast<size_t>(n));
  }
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return Fail(ErrnoError("seek in a memory file"));
  return fd;
}

void SetNonBlocking(const Fd& fd) {
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

Result<std::string> Capture(SpawnRequest request, size_t max, int* exit_code) {
  ASSIGN_OR_RETURN(Pipe output, MakePipe());
  request.Give(std::move(output.write), STDOUT_FILENO);
  ASSIGN_OR_RETURN(const Process process, Spawn(std::move(request)));
  std::string text;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = read(output.read.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (text.size() < max) text.append(buffer.data(), static_cast<size_t>(n));
  }
  const int status = Reap(process);
  if (exit_code) *exit_code = ExitCodeOf(status);
  return text;
}

}  // namespace sextant::kubelet
