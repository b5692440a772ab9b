#include "net/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "net/client.h"

namespace sextant::net {
namespace {

constexpr int kBacklog = 1024;
// A peer that is gone without a word is noticed after two and a half minutes, as in Go.
constexpr int kKeepAliveSeconds = 15;
constexpr int kKeepAliveProbes = 9;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Address> UnixAddress(const std::string& path) {
  Address out;
  auto* un = reinterpret_cast<sockaddr_un*>(&out.storage);
  if (path.size() >= sizeof un->sun_path) {
    return Fail(
        UsageError(fmt::format("the socket path {} is {} bytes long; at most {} are allowed", path,
                               path.size(), sizeof un->sun_path - 1)));
  }
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path, path.data(), path.size());
  size_t size = offsetof(sockaddr_un, sun_path) + path.size();
  if (path.front() == '@') {
    un->sun_path[0] = '\0';  // the abstract namespace
  } else {
    ++size;
  }
  out.size = static_cast<socklen_t>(size);
  return out;
}

Result<Address> ToAddress(const Endpoint& at) {
  if (at.is_unix()) return UnixAddress(at.path);
  Address out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET, at.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(at.port);
    out.size = sizeof *v4;
  } else if (inet_pton(AF_INET6, at.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(at.port);
    out.size = sizeof *v6;
  } else {
    return Fail(UsageError(fmt::format("\"{}\" is not an IP address", at.address)));
  }
  return out;
}

Endpoint FromAddress(const Address& a) {
  Endpoint out;
  char text[INET6_ADDRSTRLEN] = {};
  if (a.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&a.storage);
    out.address = inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    out.port = ntohs(v4->sin_port);
  } else if (a.storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&a.storage);
    out.address = inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    out.port = ntohs(v6->sin6_port);
  }
  return out;
}

void SetTcpOptions(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof kKeepAliveSeconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof kKeepAliveProbes);
}

// A socket file that nobody listens on any more.
bool IsStale(Address address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool refused = connect(fd, address.get(), address.size) != 0 && errno == ECONNREFUSED;
  close(fd);
  return refused;
}

Error ListenError(const Endpoint& at, int error) {
  if (error == EADDRINUSE && !at.is_unix()) {
    return UsageError(fmt::format(
        "cannot listen on {}: the address is in use; choose another port, or stop the program that "
        "has it (\"ss -ltnp 'sport = :{}'\" names it)",
        at.ToString(), at.port));
  }
  if (error == EADDRINUSE) {
    return UsageError(fmt::format(
        "cannot listen on {}: another process listens there; stop it first", at.ToString()));
  }
  if (error == EADDRNOTAVAIL) {
    return UsageError(
        fmt::format("cannot listen on {}: this machine does not have that address", at.ToString()));
  }
  return UsageError(fmt::format("cannot listen on {}: {}", at.ToString(), std::strerror(error)));
}

}  // namespace

Result<int> BeginConnect(const Endpoint& to) {
  ASSIGN_OR_RETURN(Address address, ToAddress(to));
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Fail(TransportError(fmt::format("socket: {}", std::strerror(errno))));
  if (!to.is_unix()) SetTcpOptions(fd);
  if (connect(fd, address.get(), address.size) == 0 || errno == EINPROGRESS) return fd;
  // A unix socket whose backlog is full answers EAGAIN; that is as good as refused.
  const int error = errno;
  close(fd);
  return Fail(
      TransportError(fmt::format("connect to {}: {}", to.ToString(), std::strerror(error))));
}

Result<int> ListenOn(Endpoint& at) {
  ASSIGN_OR_RETURN(Address address, ToAddress(at));
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Fail(ListenError(at, errno));
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  const bool file = at.is_unix() && at.path.front() != '@';
  if (file && IsStale(address)) unlink(at.path.c_str());
  if (file) fchmod(fd, S_IRUSR | S_IWUSR);  // Linux: the mode that bind gives the file
  if (bind(fd, address.get(), address.size) != 0 || listen(fd, kBacklog) != 0) {
    const int error = errno;
    close(fd);
    return Fail(ListenError(at, error));
  }
  if (!at.is_unix()) {
    address.size = sizeof address.storage;
    getsockname(fd, address.get(), &address.size);
    at.port = FromAddress(address).port;
  }
  return fd;
}

int AcceptFrom(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) SetTcpOptions(fd);
  return fd;
}

Endpoint PeerOf(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (getpeername(fd, address.get(), &address.size) != 0) return {};
  return FromAddress(address);
}

}  // namespace sextant::net
