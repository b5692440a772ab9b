// Starts a child by posix_spawn: no fork in a process with threads. The child gets the descriptors
// it is given, a session of its own (so that Ctrl-C in the lab's terminal is the lab's alone), no
// signal mask, and none of the lab's environment.
//
//   SpawnRequest request{.program = "/usr/bin/bwrap", .argv = {"bwrap", "--args", "7"}};
//   request.Give(std::move(args_file), 7);
//   ASSIGN_OR_RETURN(Process process, Spawn(std::move(request)));
//
// Threads: any; but the child dies with the calling thread if it asks to (fd_loop.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kubelet/fd.h"

namespace sextant::kubelet {

struct SpawnRequest {
  std::string program;  // a path
  std::vector<std::string> argv;
  std::vector<std::string> env;
  // Descriptors of the child. Those of 0, 1 and 2 that are not given are /dev/null.
  std::vector<std::pair<Fd, int>> fds;

  void Give(Fd fd, int as) { fds.emplace_back(std::move(fd), as); }
};

struct Process {
  pid_t pid = -1;
  Fd pidfd;  // readable when the process has ended; then Reap
};

Result<Process> Spawn(SpawnRequest request);
// waitpid's status of an ended process; 0 if it was reaped before.
int Reap(const Process& process);
// As a shell tells it: 128 + the signal for a program that a signal ended.
int ExitCodeOf(int wait_status);
// False if it has ended.
bool Signal(const Fd& pidfd, int signal);
Result<Fd> OpenPid(pid_t pid);

struct Pipe {
  Fd read;
  Fd write;
};
// Close-on-exec at both ends.
Result<Pipe> MakePipe();
// A second descriptor for the same open file.
Fd Duplicate(const Fd& fd);
// A file in memory, to be read from its start.
Result<Fd> MemoryFile(const char* name, std::string_view content);
void SetNonBlocking(const Fd& fd);
// An Error with errno's text.
Error ErrnoError(std::string_view what);

// Runs a program to its end and gives its standard output, at most `max` bytes. Blocks.
Result<std::string> Capture(SpawnRequest request, size_t max, int* exit_code);

}  // namespace sextant::kubelet
