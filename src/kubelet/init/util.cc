#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubelet/init/init.h"

namespace sextant::kubelet {
namespace {

constexpr size_t kMaxSpec = 16u << 20;
constexpr int kCannotRun = 126;  // the shell's code for a program that cannot be run

// "key=value" into its field. False: not a record of ours.
bool SetField(LaunchSpec& spec, const std::string& key, const std::string& value) {
  const struct {
    const char* key;
    std::vector<std::string>* list;
  } lists[] = {{"argv", &spec.argv},
               {"env", &spec.env},
               {"own", &spec.own_paths},
               {"read", &spec.read_paths},
               {"write", &spec.write_paths}};
  for (const auto& entry : lists) {
    if (key != entry.key) continue;
    entry.list->push_back(value);
    return true;
  }
  const struct {
    const char* key;
    long* number;
  } numbers[] = {{"uid", &spec.uid},
                 {"gid", &spec.gid},
                 {"drop_uid", &spec.drop_uid},
                 {"drop_gid", &spec.drop_gid}};
  for (const auto& entry : numbers) {
    if (key != entry.key) continue;
    *entry.number = strtol(value.c_str(), nullptr, 10);
    return true;
  }
  const struct {
    const char* key;
    unsigned long* number;
  } limits[] = {{"data", &spec.data},
                {"nproc", &spec.nproc},
                {"nofile", &spec.nofile},
                {"fsize", &spec.fsize}};
  for (const auto& entry : limits) {
    if (key != entry.key) continue;
    *entry.number = strtoul(value.c_str(), nullptr, 10);
    return true;
  }
  const struct {
    const char* key;
    bool* flag;
  } flags[] = {
      {"tty", &spec.tty}, {"console", &spec.console}, {"hold", &spec.hold}, {"nonet", &spec.nonet}};
  for (const auto& entry : flags) {
    if (key != entry.key) continue;
    *entry.flag = value == "1";
    return true;
  }
  if (key != "cwd") return false;
  spec.cwd = value;
  return true;
}

}  // namespace

bool SendAnswer(int socket, int error, const std::string& text, const int* fds, int count) {
  SocketAnswer answer{error};
  iovec parts[2] = {{&answer, sizeof answer}, {const_cast<char*>(text.data()), text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxAttached)] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(count));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(count));
    memcpy(CMSG_DATA(header), fds, sizeof(int) * static_cast<size_t>(count));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

void Die(const std::string& what) {
  if (write(kStatusFd, what.data(), what.size()) < 0) _exit(kCannotRun);
  _exit(kCannotRun);
}

void DieErrno(const std::string& what) { Die(what + ": " + strerror(errno)); }

LaunchSpec ReadSpec() {
  std::string text;
  char buffer[65536];
  // pread: the memory file's offset is shared with the lab and with earlier readers.
  for (ssize_t n;
       (n = pread(kSpecFd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) != 0;) {
    if (n < 0) DieErrno("read the launch records");
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxSpec) Die("launch records too long");
  }
  LaunchSpec spec;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == std::string::npos) end = text.size();
    const std::string record = text.substr(at, end - at);
    const size_t equals = record.find('=');
    if (equals == std::string::npos ||
        !SetField(spec, record.substr(0, equals), record.substr(equals + 1)))
      Die("launch records: unknown record " + record.substr(0, 40));
    at = end + 1;
  }
  return spec;
}

void WriteProc(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) DieErrno("open " + path);
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    DieErrno("write " + path);
  close(fd);
}

void DieWithParent(int signal) {
  if (prctl(PR_SET_PDEATHSIG, signal) != 0) DieErrno("die with the parent");
  const char* parent = getenv(kParentVariable);
  if (parent && strtol(parent, nullptr, 10) != getppid()) _exit(kCannotRun);
}

void MapIds(const std::string& proc, long inside_uid, long outside_uid, long inside_gid,
            long outside_gid, bool deny_groups) {
  if (deny_groups) WriteProc(proc + "/setgroups", "deny");
  WriteProc(proc + "/uid_map",
            std::to_string(inside_uid) + " " + std::to_string(outside_uid) + " 1\n");
  WriteProc(proc + "/gid_map",
            std::to_string(inside_gid) + " " + std::to_string(outside_gid) + " 1\n");
}

void Enter(int fd, int type) {
  if (fcntl(fd, F_GETFD) < 0) return;
  if (setns(fd, type) != 0) DieErrno("enter a namespace of the Pod");
  close(fd);
}

int ExitCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace sextant::kubelet

int main(int argc, char** argv) {
  using namespace sextant::kubelet;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "pause") return Pause(argc - 2, argv + 2);
  if (mode == "enter") return EnterAndRun(argc - 2, argv + 2);
  if (mode == "launch") return Launch();
  if (mode == "exec") return Exec();
  if (mode == "restrict") return Restrict();
  const char text[] = "sextant-init is started by sextant, not by hand\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return 2;
  return 2;
}
