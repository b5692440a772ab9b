// Isolation without namespaces: Landlock says which files, seccomp which calls.
// Source: linux/landlock.h (ABI 1 to 6), seccomp(2).
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubelet/init/init.h"

namespace sextant::kubelet {
namespace {

// linux/landlock.h of Debian 12 ends at ABI 2, so the facts stand here.
constexpr uint64_t kFsExecute = 1u << 0, kFsReadFile = 1u << 2, kFsReadDir = 1u << 3;
constexpr uint64_t kFsWriteFile = 1u << 1, kFsTruncate = 1u << 14, kFsIoctlDevice = 1u << 15;
constexpr uint64_t kFsAbi1 = (1u << 13) - 1, kFsRefer = 1u << 13;
constexpr uint64_t kNetAll = 3;    // bind and connect of TCP
constexpr uint64_t kScopeAll = 3;  // abstract unix sockets and signals of outsiders
struct RulesetAttr {
  uint64_t fs, net, scoped;
};
struct [[gnu::packed]] PathBeneathAttr {
  uint64_t access;
  int32_t parent;
};
constexpr int kRulePathBeneath = 1;

long CreateRuleset(const void* attr, size_t size, unsigned flags) {
  return syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

uint64_t AllFs(long abi) {
  uint64_t all = kFsAbi1;
  if (abi >= 2) all |= kFsRefer;
  if (abi >= 3) all |= kFsTruncate;
  if (abi >= 5) all |= kFsIoctlDevice;
  return all;
}

void Allow(int ruleset, const std::string& path, uint64_t access) {
  PathBeneathAttr rule{access, open(path.c_str(), O_PATH | O_CLOEXEC)};
  if (rule.parent < 0) return;  // what does not exist needs no leave
  struct stat info{};
  if (fstat(rule.parent, &info) == 0 && !S_ISDIR(info.st_mode))
    rule.access &= kFsExecute | kFsReadFile | kFsWriteFile | kFsTruncate | kFsIoctlDevice;
  if (syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0) != 0)
    DieErrno("landlock rule for " + path);
  close(rule.parent);
}

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
#error "sextant-init knows x86-64 and arm64"
#endif

class Filter {
 public:
  Filter() {
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0));
    Return(SECCOMP_RET_ERRNO | ENOSYS);
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
    Add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));  // x32
    Return(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  }
  void Refuse(long call, int error) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }
  // Refuses `call` if its first argument has one of these bits.
  void RefuseBits(long call, uint32_t bits, int error) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));
    Add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  }
  // Refuses `call` unless its first argument is `only`.
  void RefuseOther(long call, uint32_t only, int error) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, only, 1, 0));
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
    Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  }
  void Install() {
    Return(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) DieErrno("seccomp");
  }

 private:
  void Add(sock_filter instruction) { code_.push_back(instruction); }
  void Return(uint32_t what) { Add(BPF_STMT(BPF_RET | BPF_K, what)); }

  std::vector<sock_filter> code_;
};

// Kills every process below this one; being the subreaper, orphans come to us.
void KillAllBelow() {
  const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  for (;;) {
    char text[4096] = {};
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    for (char* at = text; *at != '\0';) {
      char* end = at;
      const long pid = strtol(at, &end, 10);
      if (end == at) break;
      if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
      at = end;
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}

}  // namespace

void InstallSeccomp(bool no_network) {
  constexpr uint32_t kNamespaces = 0x7e020080;  // CLONE_NEW* as clone and unshare take them
  Filter filter;
  // What a Pod's program has no use for and what has opened kernels before.
  for (long call : {SYS_mount,
                    SYS_umount2,
                    SYS_pivot_root,
                    SYS_chroot,
                    SYS_setns,
                    SYS_bpf,
                    SYS_perf_event_open,
                    SYS_keyctl,
                    SYS_add_key,
                    SYS_request_key,
                    SYS_kexec_load,
                    SYS_init_module,
                    SYS_finit_module,
                    SYS_delete_module,
                    SYS_userfaultfd,
                    SYS_open_by_handle_at,
                    SYS_move_mount,
                    SYS_open_tree,
                    SYS_fsopen,
                    SYS_fsconfig,
                    SYS_fsmount,
                    SYS_mount_setattr,
                    SYS_ptrace,
                    SYS_process_vm_readv,
                    SYS_process_vm_writev,
                    SYS_syslog,
                    SYS_swapon,
                    SYS_reboot,
                    SYS_acct,
                    SYS_quotactl,
                    SYS_io_uring_setup})
    filter.Refuse(call, EPERM);
  filter.RefuseBits(SYS_unshare, kNamespaces, EPERM);
  filter.RefuseBits(SYS_clone, kNamespaces & ~0x80u, EPERM);  // the low byte is a signal there
  filter.Refuse(SYS_clone3, ENOSYS);  // its flags lie in memory; libc then takes clone
  if (no_network) {
    filter.RefuseOther(SYS_socket, AF_UNIX, EACCES);
    filter.RefuseOther(SYS_socketpair, AF_UNIX, EACCES);
  }
  filter.Install();
}

void InstallLandlock(const LaunchSpec& spec) {
  const long abi = CreateRuleset(nullptr, 0, 1);
  if (abi < 1) DieErrno("landlock");
  const uint64_t all = AllFs(abi);
  const RulesetAttr attr{all, abi >= 4 ? kNetAll : 0, abi >= 6 ? kScopeAll : 0};
  const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const auto ruleset = static_cast<int>(CreateRuleset(&attr, size, 0));
  if (ruleset < 0) DieErrno("landlock");
  for (const std::string& path : spec.read_paths)
    Allow(ruleset, path, kFsExecute | kFsReadFile | kFsReadDir);
  for (const std::string& path : spec.write_paths) Allow(ruleset, path, all);
  for (const char* device :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"})
    Allow(ruleset, device, (kFsReadFile | kFsWriteFile | kFsTruncate | kFsIoctlDevice) & all);
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) DieErrno("landlock");
  close(ruleset);
}

// A monitor stays behind: it reports the program's process id, passes its end on, and leaves no
// process behind, when the program ends and when the lab does.
int Restrict() {
  const LaunchSpec spec = ReadSpec();
  DieWithParent(SIGTERM);
  unsetenv(kParentVariable);  // not the parent of the child
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child < 0) DieErrno("fork");
  if (child == 0) {
    DropIds(spec);
    RunProgram(spec);
  }
  signal(SIGTERM, [](int) {
    KillAllBelow();
    _exit(128 + SIGTERM);
  });
  const std::string info = "{\"child-pid\": " + std::to_string(child) + "}\n";
  if (write(kInfoFd, info.data(), info.size()) < 0) errno = 0;  // the lab is gone: SIGTERM follows
  close_range(kSpecFd, ~0u, 0);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) break;
  }
  KillAllBelow();
  return ExitCode(status);
}

}  // namespace sextant::kubelet
