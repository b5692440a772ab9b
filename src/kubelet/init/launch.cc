#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubelet/init/init.h"

namespace sextant::kubelet {
namespace {

constexpr int kNice = 10;                  // below the lab's own threads
constexpr const char* kOomScore = "1000";  // the first that the kernel kills
constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void Limit(int resource, unsigned long value) {
  if (value == 0) return;
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlim_t want = value > now.rlim_max ? now.rlim_max : value;
  const rlimit limit{want, want};
  if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) DieErrno("resource limit");
}

// No capability can come back: the bounding set is what exec as root of a namespace gives.
void DropCapabilities() {
  for (int cap = 0; cap <= 63; ++cap)
    if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) DieErrno("no new privileges");
}

void MakeDirectories(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    mkdir(path.substr(0, at).c_str(), 0755);
    if (at != std::string::npos) ++at;
  }
}

std::string SearchPath(const LaunchSpec& spec) {
  for (const std::string& entry : spec.env)
    if (entry.rfind("PATH=", 0) == 0) return entry.substr(5);
  return kDefaultPath;
}

// Where the program is, as runc looks for it, with runc's texts.
std::string FindProgram(const LaunchSpec& spec) {
  const std::string& name = spec.argv[0];
  if (name.find('/') != std::string::npos) {
    struct stat info{};
    if (stat(name.c_str(), &info) != 0) DieErrno("exec: \"" + name + "\": stat " + name);
    if (S_ISDIR(info.st_mode)) Die("exec: \"" + name + "\": is a directory");
    if (access(name.c_str(), X_OK) != 0) DieErrno("exec: \"" + name + "\"");
    return name;
  }
  const std::string path = SearchPath(spec);
  for (size_t at = 0; at <= path.size();) {
    size_t end = path.find(':', at);
    if (end == std::string::npos) end = path.size();
    const std::string candidate = path.substr(at, end - at) + "/" + name;
    struct stat info{};
    if (end > at && stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(candidate.c_str(), X_OK) == 0)
      return candidate;
    at = end + 1;
  }
  Die("exec: \"" + name + "\": executable file not found in $PATH");
}

void SetIds(long uid, long gid) {
  const auto u = static_cast<uid_t>(uid);
  const auto g = static_cast<gid_t>(gid);
  if (setresgid(g, g, g) != 0 || setresuid(u, u, u) != 0) DieErrno("give up root");
}

// Inside the container's user namespace, as nobody in it yet.
void BecomeContainerUser(const LaunchSpec& spec) { SetIds(spec.uid, spec.gid); }

// In a namespace of its own the number of processes is counted apart from all others. Made by the
// user that the lab has, also where that is root: the owner may signal what is in it, and so the
// death of bwrap's monitor, which has no capability, reaches the program.
void OwnUserNamespace(const LaunchSpec& spec) {
  const bool root = spec.drop_uid >= 0;
  const long outside_uid = root ? spec.drop_uid : geteuid();
  const long outside_gid = root ? spec.drop_gid : getegid();
  if (root && setgroups(0, nullptr) != 0) DieErrno("give up root's groups");
  // Another id than one's own is mapped from outside: by a child that stays there.
  int made[2];
  if (pipe2(made, O_CLOEXEC) != 0) DieErrno("pipe");
  const pid_t mapper = root ? fork() : 0;
  if (mapper < 0) DieErrno("fork");
  if (root && mapper == 0) {
    char go = 0;
    close(made[1]);
    if (read(made[0], &go, 1) != 1) _exit(1);
    const std::string proc = "/proc/" + std::to_string(getppid());
    MapIds(proc, spec.uid, outside_uid, spec.gid, outside_gid, false);
    _exit(0);
  }
  if (unshare(CLONE_NEWUSER) != 0) DieErrno("new user namespace for the container");
  if (!root) {
    if (prctl(PR_SET_DUMPABLE, 1) != 0) DieErrno("dumpable");
    MapIds("/proc/self", spec.uid, outside_uid, spec.gid, outside_gid, true);
  } else {
    int status = 0;
    if (write(made[1], "g", 1) != 1) DieErrno("pipe");
    while (waitpid(mapper, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) Die("the container's user could not be mapped");
    BecomeContainerUser(spec);
  }
  close(made[0]);
  close(made[1]);
}

// As runc does it: only a terminal of the container's own devpts has a name there. The lab takes
// the master before it believes that the program runs.
void OpenConsole() {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) DieErrno("open a terminal");
  int locked = 0;
  if (ioctl(master, TIOCSPTLCK, &locked) != 0) DieErrno("unlock the terminal");
  const int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) DieErrno("open the terminal");
  if (!SendAnswer(kConsoleFd, 0, "", &master, 1)) DieErrno("give the terminal to the lab");
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (dup2(slave, fd) < 0) DieErrno("the terminal as a standard stream");
  close(slave);
  close(master);
  close(kConsoleFd);
}

// Blocks until killed, reaping what exec'd programs leave behind.
[[noreturn]] void Hold() {
  close_range(kSpecFd, ~0u, 0);
  signal(SIGTERM, [](int) { _exit(0); });
  for (;;) {
    if (waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGCHLD);
      sigprocmask(SIG_BLOCK, &set, nullptr);
      timespec nap{1, 0};
      sigtimedwait(&set, nullptr, &nap);
    }
  }
}

}  // namespace

void GiveAway(const LaunchSpec& spec) {
  for (const std::string& path : spec.own_paths)
    if (lchown(path.c_str(), static_cast<uid_t>(spec.drop_uid),
               static_cast<gid_t>(spec.drop_gid)) != 0)
      DieErrno("give " + path + " to the container");
}

void DropIds(const LaunchSpec& spec) {
  if (spec.drop_uid < 0) return;
  if (setgroups(0, nullptr) != 0) DieErrno("give up root's groups");
  SetIds(spec.drop_uid, spec.drop_gid);
}

void RunProgram(const LaunchSpec& spec) {
  DieWithParent(SIGKILL);
  if (spec.console) OpenConsole();
  if (spec.console || spec.tty) {
    setsid();
    if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) DieErrno("controlling terminal");
  }
  setpriority(PRIO_PROCESS, 0, kNice);
  const sched_param param{};
  sched_setscheduler(0, SCHED_BATCH, &param);
  const int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (oom >= 0 && write(oom, kOomScore, strlen(kOomScore)) < 0) errno = 0;  // help, not a need
  if (oom >= 0) close(oom);
  umask(022);
  if (chdir(spec.cwd.c_str()) != 0) {
    MakeDirectories(spec.cwd);
    if (chdir(spec.cwd.c_str()) != 0)
      DieErrno("chdir to cwd (\"" + spec.cwd + "\") set in config.json failed");
  }
  std::string program;
  if (!spec.hold) {
    if (spec.argv.empty()) Die("no command");
    program = FindProgram(spec);
  }
  Limit(RLIMIT_DATA, spec.data);
  Limit(RLIMIT_NOFILE, spec.nofile);
  Limit(RLIMIT_FSIZE, spec.fsize);
  Limit(RLIMIT_NPROC, spec.nproc);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  DropCapabilities();
  if (!spec.read_paths.empty()) InstallLandlock(spec);
  InstallSeccomp(spec.nonet);
  // From here on only exec itself can fail.
  if (write(kStatusFd, &kReady, 1) != 1) DieErrno("tell the lab");
  if (spec.hold) Hold();

  std::vector<char*> argv, env;
  for (const std::string& word : spec.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : spec.env) env.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);
  close(kSpecFd);
  fcntl(kStatusFd, F_SETFD, FD_CLOEXEC);
  close_range(kStatusFd + 1, ~0u, 0);
  execve(program.c_str(), argv.data(), env.data());
  DieErrno("exec " + program);
}

int EnterAndRun(int argc, char** argv) {
  if (argc < 1) return 2;
  DieWithParent(SIGKILL);
  Enter(kUserNsFd, CLONE_NEWUSER);
  Enter(kNetNsFd, CLONE_NEWNET);
  Enter(kIpcNsFd, CLONE_NEWIPC);
  Enter(kUtsNsFd, CLONE_NEWUTS);
  DieWithParent(SIGKILL);
  unsetenv(kParentVariable);  // not the parent of what comes
  execv(argv[0], argv);
  DieErrno(std::string("exec ") + argv[0]);
}

int Launch() {
  const LaunchSpec spec = ReadSpec();
  GiveAway(spec);
  OwnUserNamespace(spec);
  RunProgram(spec);
}

int Exec() {
  const LaunchSpec spec = ReadSpec();
  DieWithParent(SIGKILL);
  Enter(kUserNsFd, CLONE_NEWUSER);
  Enter(kNetNsFd, CLONE_NEWNET);
  Enter(kIpcNsFd, CLONE_NEWIPC);
  Enter(kUtsNsFd, CLONE_NEWUTS);
  Enter(kPidNsFd, CLONE_NEWPID);
  Enter(kMountNsFd, CLONE_NEWNS);
  DieWithParent(SIGKILL);
  unsetenv(kParentVariable);   // not the parent of the child
  const pid_t child = fork();  // the process namespace holds for children only
  if (child < 0) DieErrno("fork");
  if (child == 0) {
    if (spec.drop_uid >= 0 && setgroups(0, nullptr) != 0) DieErrno("give up root's groups");
    Enter(kInnerUserNsFd, CLONE_NEWUSER);
    if (spec.drop_uid >= 0) BecomeContainerUser(spec);
    RunProgram(spec);
  }
  close_range(kSpecFd, ~0u, 0);
  // The terminal or the pipes are the child's alone: their end is its end.
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return ExitCode(status);
}

}  // namespace sextant::kubelet
