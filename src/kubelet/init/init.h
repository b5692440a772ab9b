// sextant-init: the small static program between the lab and a Pod's programs. The lab embeds it
// and writes it into its state directory (kubelet/toolbox.h).
//
//   sextant-init pause            makes and holds a Pod's namespaces, hands out sockets in them
//   sextant-init enter CMD…       enters the Pod's namespaces, then executes CMD (bwrap)
//   sextant-init launch           inside the sandbox: limits, user, then the container's program
//   sextant-init exec             enters a running container, then as launch
//   sextant-init restrict         without namespaces: Landlock, seccomp, limits, then the program
//
// Single-threaded, no heap state of note, no input but the lab's records (launch_spec.h). It stops
// at the first failure and says why on kStatusFd.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kubelet/init/launch_spec.h"

namespace sextant::kubelet {

struct LaunchSpec {
  std::vector<std::string> argv, env, own_paths, read_paths, write_paths;
  std::string cwd = "/";
  long uid = 0, gid = 0;
  long drop_uid = -1, drop_gid = -1;
  bool tty = false, console = false, hold = false, nonet = false;
  unsigned long data = 0, nproc = 0, nofile = 0, fsize = 0;
};

// util.cc
[[noreturn]] void Die(const std::string& what);       // message on kStatusFd, exit 126
[[noreturn]] void DieErrno(const std::string& what);  // with the text of errno
LaunchSpec ReadSpec();                                // from kSpecFd
void WriteProc(const std::string& path, const std::string& text);
void DieWithParent(int signal);  // and at once if the parent is gone already
// One user and one group of a namespace, seen through `proc` ("/proc/self").
void MapIds(const std::string& proc, long inside_uid, long outside_uid, long inside_gid,
            long outside_gid, bool deny_groups);
// A SocketAnswer with a text and up to kMaxAttached descriptors behind it.
inline constexpr int kMaxAttached = 4;
bool SendAnswer(int socket, int error, const std::string& text, const int* fds, int count);
void Enter(int fd, int type);   // setns if fd is open
int ExitCode(int wait_status);  // 128 + signal for a signal

// restrict.cc
void InstallSeccomp(bool no_network);
void InstallLandlock(const LaunchSpec& spec);

// launch.cc: everything from the resource limits to exec.
[[noreturn]] void RunProgram(const LaunchSpec& spec);
void DropIds(const LaunchSpec& spec);

int Pause(int argc, char** argv);
int EnterAndRun(int argc, char** argv);
int Launch();
int Exec();
int Restrict();

}  // namespace sextant::kubelet
