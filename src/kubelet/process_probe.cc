#include "kubelet/process_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <charconv>

namespace sextant::kubelet {
namespace {

constexpr std::string_view kUserAgent = "kube-probe/1.36";
constexpr Duration kDialTimeout = std::chrono::seconds(10);
constexpr size_t kProbeHeadMax = 64 * 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;                  // "10.244.0.5:80", "[::1]:80"
  std::string_view network = "tcp";  // Go's word in messages: "tcp4" where only that will do
};

std::optional<Address> MakeAddress(const std::string& ip, uint16_t port) {
  Address address;
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port)};
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  if (inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
    address.text = fmt::format("{}:{}", ip, port);
  } else if (inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) == 1) {
    memcpy(&address.storage, &v6, sizeof v6);
    address.size = sizeof v6;
    address.text = fmt::format("[{}]:{}", ip, port);
  } else {
    return std::nullopt;
  }
  return address;
}

std::string DialError(const Address& address, int error) {
  std::string text = strerror(error);  // Go prints errno's text in lower case
  if (!text.empty()) text[0] = static_cast<char>(tolower(text[0]));
  return fmt::format("dial {} {}: connect: {}", address.network, address.text, text);
}

// One attempt to connect: owns itself through the callbacks until it is done.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  Connecting(ProcessCore& core, Address address, std::function<void(Result<Fd>)> done)
      : core_(core), address_(std::move(address)), done_(std::move(done)) {}

  void Start(ProcessSandbox& sandbox, Duration timeout) {
    timer_ = core_.loop->After(timeout, [self = shared_from_this()] {
      self->End(Fail(Timeout(
          fmt::format("dial {} {}: i/o timeout", self->address_.network, self->address_.text), 0)));
    });
    sandbox.NewSocket(
        address_.storage.ss_family, SOCK_STREAM,
        [self = shared_from_this()](Result<Fd> fd) { self->OnSocket(std::move(fd)); });
  }

 private:
  void OnSocket(Result<Fd> fd) {
    if (!done_) return;
    if (!fd) return End(std::move(fd));
    fd_ = *std::move(fd);
    const auto* address = reinterpret_cast<const sockaddr*>(&address_.storage);
    if (connect(fd_.get(), address, address_.size) == 0) return End(std::move(fd_));
    if (errno != EINPROGRESS) return Failed(errno);
    watch_ = core_.loop->Watch(fd_.get(), EPOLLOUT, [self = shared_from_this()](uint32_t) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(self->fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return self->Failed(error);
      self->core_.loop->Unwatch(std::exchange(self->watch_, 0));
      self->End(std::move(self->fd_));
    });
  }
  void Failed(int error) { End(Fail(ServiceUnavailable(DialError(address_, error)))); }
  void End(Result<Fd> result) {
    core_.loop->Unwatch(std::exchange(watch_, 0));
    core_.loop->Cancel(std::exchange(timer_, 0));
    if (auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  ProcessCore& core_;
  const Address address_;
  std::function<void(Result<Fd>)> done_;
  Fd fd_;
  FdLoop::WatchId watch_ = 0;
  TimerId timer_ = 0;
};

void DialAddress(ProcessCore& core, ProcessSandbox& sandbox, const std::string& ip, uint16_t port,
                 Duration timeout, std::function<void(Result<Fd>)> done) {
  std::optional<Address> address = MakeAddress(ip, port);
  if (!address)
    return done(Fail(ServiceUnavailable(
        fmt::format("dial tcp: lookup {}: only the Pod itself can be reached", ip))));
  std::make_shared<Connecting>(core, *std::move(address), std::move(done))->Start(sandbox, timeout);
}

// The Pod's own address, as the kubelet probes it.
std::string ProbeAddress(const ProcessSandbox& sandbox, const std::string& host) {
  if (!host.empty()) return host == "localhost" ? "127.0.0.1" : host;
  return sandbox.spec().ips.empty() ? "127.0.0.1" : sandbox.spec().ips[0];
}

class HttpProbing : public std::enable_shared_from_this<HttpProbing> {
 public:
  HttpProbing(ProcessCore& core, HttpProbe probe, std::string address, ProbeCallback done)
      : core_(core),
        probe_(std::move(probe)),
        address_(std::move(address)),
        done_(std::move(done)) {
    const bool v6 = address_.find(':') != std::string::npos;
    authority_ = fmt::format("{}{}{}:{}", v6 ? "[" : "", address_, v6 ? "]" : "", probe_.port);
    if (!probe_.path.starts_with('/')) path_ = "/";
    path_ += probe_.path;
    url_ = fmt::format("http://{}{}", authority_, path_);
  }

  void Start(ProcessSandbox& sandbox) {
    timer_ = core_.loop->After(probe_.timeout, [self = shared_from_this()] {
      self->End(false, fmt::format("Get \"{}\": context deadline exceeded (Client.Timeout exceeded "
                                   "while awaiting headers)",
                                   self->url_));
    });
    DialAddress(core_, sandbox, address_, probe_.port, probe_.timeout,
                [self = shared_from_this()](Result<Fd> fd) { self->OnConnected(std::move(fd)); });
  }

 private:
  void OnConnected(Result<Fd> fd) {
    if (!done_) return;
    if (!fd) return End(false, fmt::format("Get \"{}\": {}", url_, fd.error().message));
    fd_ = *std::move(fd);
    bool host = false, agent = false, accept = false;
    request_ = fmt::format("GET {} HTTP/1.1\r\n", path_);
    for (const auto& [name, value] : probe_.headers) {
      if ((name + value).find_first_of("\r\n") != std::string::npos) continue;
      host |= strcasecmp(name.c_str(), "Host") == 0;
      agent |= strcasecmp(name.c_str(), "User-Agent") == 0;
      accept |= strcasecmp(name.c_str(), "Accept") == 0;
      request_ += fmt::format("{}: {}\r\n", name, value);
    }
    if (!host) request_ += fmt::format("Host: {}\r\n", authority_);
    if (!agent) request_ += fmt::format("User-Agent: {}\r\n", kUserAgent);
    if (!accept) request_ += "Accept: */*\r\n";
    request_ += "Connection: close\r\n\r\n";
    watch_ = core_.loop->Watch(fd_.get(), EPOLLOUT | EPOLLIN,
                               [self = shared_from_this()](uint32_t) { self->Progress(); });
  }

  void Progress() {
    while (!request_.empty()) {
      const ssize_t n = send(fd_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) return End(false, fmt::format("Get \"{}\": {}", url_, strerror(errno)));
      request_.erase(0, static_cast<size_t>(n));
    }
    core_.loop->Modify(watch_, EPOLLIN);
    std::array<char, 16384> block;
    for (;;) {
      const ssize_t n = recv(fd_.get(), block.data(), block.size(), 0);
      if (n < 0 && errno == EAGAIN) return;
      if (n > 0) answer_.append(block.data(), static_cast<size_t>(n));
      const size_t head = answer_.find("\r\n\r\n");
      if (n <= 0 || answer_.size() > kProbeHeadMax ||
          (head != std::string::npos && answer_.size() - head > kProbeBodyMax))
        return Judge(head);
    }
  }

  void Judge(size_t head) {
    int code = 0;
    if (answer_.starts_with("HTTP/1.") && answer_.size() > 12)
      std::from_chars(answer_.data() + 9, answer_.data() + 12, code);
    if (code < 100 || head == std::string::npos)
      return End(false, answer_.empty()
                            ? fmt::format("Get \"{}\": EOF", url_)
                            : fmt::format("Get \"{}\": net/http: HTTP/1.x transport connection "
                                          "broken: malformed HTTP response",
                                          url_));
    if (code >= 200 && code < 400) return End(true, answer_.substr(head + 4, kProbeBodyMax));
    End(false, fmt::format("HTTP probe failed with statuscode: {}", code));
  }

  void End(bool success, std::string output) {
    core_.loop->Unwatch(std::exchange(watch_, 0));
    core_.loop->Cancel(std::exchange(timer_, 0));
    fd_.Reset();
    if (auto done = std::exchange(done_, nullptr)) done({success, std::move(output)});
  }

  ProcessCore& core_;
  const HttpProbe probe_;
  const std::string address_;
  ProbeCallback done_;
  std::string authority_, path_, url_, request_, answer_;
  Fd fd_;
  FdLoop::WatchId watch_ = 0;
  TimerId timer_ = 0;
};

}  // namespace

void RunHttpProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, HttpProbe probe,
                  ProbeCallback done) {
  if (strcasecmp(probe.scheme.c_str(), "HTTPS") == 0)
    return done({false, "HTTPS probes are not supported by this runtime"});
  std::string address = ProbeAddress(*sandbox, probe.host);
  std::make_shared<HttpProbing>(core, std::move(probe), std::move(address), std::move(done))
      ->Start(*sandbox);
}

void RunTcpProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, TcpProbe probe,
                 ProbeCallback done) {
  DialAddress(core, *sandbox, ProbeAddress(*sandbox, probe.host), probe.port, probe.timeout,
              [done = std::move(done)](Result<Fd> fd) {
                done({fd.has_value(), fd ? "" : fd.error().message});
              });
}

// containerd's words (internal/cri/server/sandbox_portforward_linux.go).
void DialLocalhost(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, uint16_t port,
                   std::function<void(Result<Fd>)> done) {
  Address v4 = *MakeAddress("127.0.0.1", port);
  v4.network = "tcp4";
  auto dial = [&core, sandbox](Address to, std::function<void(Result<Fd>)> then) {
    std::make_shared<Connecting>(core, std::move(to), std::move(then))
        ->Start(*sandbox, kDialTimeout);
  };
  dial(v4, [dial, sandbox, port, done = std::move(done)](Result<Fd> fd) mutable {
    if (fd) return done(std::move(fd));
    Address v6 = *MakeAddress("::1", port);
    v6.network = "tcp6";
    dial(v6, [first = fd.error().message, sandbox, port, done](Result<Fd> second) {
      if (second) return done(std::move(second));
      done(Fail(ServiceUnavailable(fmt::format(
          "failed to connect to localhost:{} inside namespace \"{}\", IPv4: {} IPv6 {} ", port,
          sandbox->spec().uid, first, second.error().message))));
    });
  });
}

}  // namespace sextant::kubelet
