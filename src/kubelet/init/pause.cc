// The holder of a Pod's namespaces. It runs nothing of the Pod and reads nothing from it; it gives
// sockets that belong to the Pod's network, which the lab then connects or binds itself.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kubelet/init/init.h"

namespace sextant::kubelet {
namespace {

[[noreturn]] void Fail(const char* what) {
  const int error = errno;
  SendAnswer(kControlFd, error ? error : EIO, std::string(what) + ": " + strerror(error), nullptr,
             0);
  _exit(1);
}

void WriteOrFail(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) Fail(path);
  close(fd);
}

// Adds one address to the loopback device, by rtnetlink.
void AddAddress(const char* text) {
  struct {
    nlmsghdr header;
    ifaddrmsg message;
    char attributes[64];
  } request{};
  in6_addr address{};
  const bool v6 = strchr(text, ':') != nullptr;
  if (inet_pton(v6 ? AF_INET6 : AF_INET, text, &address) != 1) {
    errno = EINVAL;
    Fail("address of the Pod");
  }
  const unsigned short length = v6 ? 16 : 4;
  request.header.nlmsg_type = RTM_NEWADDR;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
  request.message.ifa_family = v6 ? AF_INET6 : AF_INET;
  request.message.ifa_prefixlen = v6 ? 128 : 32;
  request.message.ifa_flags = IFA_F_NODAD & 0xff;
  request.message.ifa_index = if_nametoindex("lo");
  unsigned int size = NLMSG_LENGTH(sizeof(ifaddrmsg));
  for (unsigned short type : {IFA_LOCAL, IFA_ADDRESS}) {
    auto* attribute =
        reinterpret_cast<rtattr*>(reinterpret_cast<char*>(&request) + NLMSG_ALIGN(size));
    attribute->rta_type = type;
    attribute->rta_len = static_cast<unsigned short>(RTA_LENGTH(length));
    memcpy(RTA_DATA(attribute), &address, length);
    size = NLMSG_ALIGN(size) + RTA_ALIGN(attribute->rta_len);
  }
  request.header.nlmsg_len = size;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0 || send(fd, &request, size, 0) < 0) Fail("address of the Pod");
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[512];
  } answer{};
  if (recv(fd, &answer, sizeof answer, 0) < 0) Fail("address of the Pod");
  if (answer.error.error != 0 && answer.error.error != -EEXIST) {
    errno = -answer.error.error;
    Fail("address of the Pod");
  }
  close(fd);
}

void LoopbackUp() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  memcpy(request.ifr_name, "lo", 3);
  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0) Fail("loopback device");
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) Fail("loopback device");
  close(fd);
}

void Serve() {
  for (;;) {
    SocketRequest request{};
    const ssize_t n = recv(kControlFd, &request, sizeof request, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof request)) _exit(0);  // the lab let go of the Pod
    const int fd = socket(request.domain, request.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int error = fd < 0 ? errno : 0;
    if (!SendAnswer(kControlFd, error, "", &fd, fd < 0 ? 0 : 1)) _exit(0);
    if (fd >= 0) close(fd);
  }
}

}  // namespace

// pause HOSTNAME DROP_UID DROP_GID [ADDRESS…]; DROP_UID is -1 where the lab is not root.
int Pause(int argc, char** argv) {
  if (argc < 3) return 2;
  DieWithParent(SIGKILL);
  const long drop_uid = strtol(argv[1], nullptr, 10);
  const long drop_gid = strtol(argv[2], nullptr, 10);
  const bool rootless = drop_uid < 0;
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const int others = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  if (rootless) {
    if (unshare(CLONE_NEWUSER) != 0) Fail("new user namespace");
    WriteOrFail("/proc/self/setgroups", "deny");
    WriteOrFail("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1\n");
    WriteOrFail("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1\n");
  }
  if (unshare(others) != 0) Fail("new network, IPC and UTS namespaces");
  if (sethostname(argv[0], strlen(argv[0])) != 0) Fail("hostname");
  LoopbackUp();
  for (int i = 3; i < argc; ++i) AddAddress(argv[i]);
  // Container root may listen on port 80 in the Pod's own network.
  WriteOrFail("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");

  const char* paths[] = {"/proc/self/ns/net", "/proc/self/ns/ipc", "/proc/self/ns/uts",
                         "/proc/self/ns/user"};
  int fds[kMaxAttached];
  const int count = rootless ? 4 : 3;
  for (int i = 0; i < count; ++i) {
    fds[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
    if (fds[i] < 0) Fail(paths[i]);
  }
  if (!rootless && (setgroups(0, nullptr) != 0 ||
                    setresgid(static_cast<gid_t>(drop_gid), static_cast<gid_t>(drop_gid),
                              static_cast<gid_t>(drop_gid)) != 0 ||
                    setresuid(static_cast<uid_t>(drop_uid), static_cast<uid_t>(drop_uid),
                              static_cast<uid_t>(drop_uid)) != 0))
    Fail("give up root");
  DieWithParent(SIGKILL);  // cleared by the change of user
  setpriority(PRIO_PROCESS, 0, 10);
  if (!SendAnswer(kControlFd, 0, "", fds, count)) return 1;
  for (int i = 0; i < count; ++i) close(fds[i]);
  Serve();
  return 0;
}

}  // namespace sextant::kubelet
