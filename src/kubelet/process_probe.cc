#include "kubelet/process_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/ascii.h"
#include "base/quote.h"
#include "kubelet/grpc_health.h"
#include "kubelet/process_exchange.h"

namespace sextant::kubelet {
namespace {

constexpr std::string_view kUserAgent = "kube-probe/1.36";
constexpr Duration kDialTimeout = std::chrono::seconds(10);

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

std::string HostPort(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port);
}

// What HTTP and gRPC probes have in common: one exchange, within a time. Owns itself through the
// callbacks until it is done.
class Probing : public std::enable_shared_from_this<Probing> {
 public:
  Probing(ProcessCore& core, std::string address, uint16_t port, Duration timeout,
          ProbeCallback done)
      : core_(core),
        address_(std::move(address)),
        port_(port),
        timeout_(timeout),
        authority_(HostPort(address_, port)),
        done_(std::move(done)) {}
  virtual ~Probing() = default;

  void Start(ProcessSandbox& sandbox) {
    timer_ = core_.loop->After(timeout_, [self = shared_from_this()] { self->OnTimeout(); });
    DialAddress(core_, sandbox, address_, port_, timeout_,
                [self = shared_from_this()](Result<Fd> fd) { self->OnConnected(std::move(fd)); });
  }

 protected:
  virtual ExchangePlan Plan() const = 0;
  virtual void OnRefused(const std::string& why) = 0;  // nothing listens
  virtual void OnTimeout() = 0;
  virtual void OnAnswer(ExchangeAnswer answer) = 0;

  const std::string& authority() const { return authority_; }
  const std::string& address() const { return address_; }
  Duration timeout() const { return timeout_; }
  bool heard() const { return exchange_ && exchange_->heard(); }
  void End(bool success, std::string output) {
    core_.loop->Cancel(std::exchange(timer_, 0));
    if (auto done = std::exchange(done_, nullptr)) done({success, std::move(output)});
    // Not from inside a callback of the exchange.
    core_.loop->Post([keep = std::exchange(exchange_, nullptr)] {});
  }

 private:
  void OnConnected(Result<Fd> fd) {
    if (!done_) return;
    if (!fd) return OnRefused(fd.error().message);
    exchange_ = StartExchange(*core_.loop, *std::move(fd), Plan(),
                              [self = shared_from_this()](ExchangeAnswer answer) {
                                if (self->done_) self->OnAnswer(std::move(answer));
                              });
  }

  ProcessCore& core_;
  const std::string address_;
  const uint16_t port_;
  const Duration timeout_;
  const std::string authority_;
  ProbeCallback done_;
  std::shared_ptr<Exchange> exchange_;
  TimerId timer_ = 0;
};

class HttpProbing : public Probing {
 public:
  HttpProbing(ProcessCore& core, HttpProbe probe, std::string address, ProbeCallback done)
      : Probing(core, std::move(address), probe.port, probe.timeout, std::move(done)),
        probe_(std::move(probe)),
        tls_(EqualsIgnoreCase(probe_.scheme, "HTTPS")) {
    if (!probe_.path.starts_with('/')) path_ = "/";
    path_ += probe_.path;
    url_ = fmt::format("{}://{}{}", tls_ ? "https" : "http", authority(), path_);
  }

 private:
  ExchangePlan Plan() const override {
    ExchangePlan plan{.body = nullptr, .host = address(), .tls = tls_, .max_body = kProbeBodyMax};
    plan.head = {.method = "GET",
                 .target = path_,
                 .scheme = tls_ ? "https" : "http",
                 .authority = authority(),
                 .headers = {}};
    net::Headers& headers = plan.head.headers;
    for (const auto& [name, value] : probe_.headers) {
      if (EqualsIgnoreCase(name, "host")) plan.head.authority = value;
      headers.Add(name, value);
    }
    if (!headers.Has("user-agent")) headers.Add("user-agent", kUserAgent);
    if (!headers.Has("accept")) headers.Add("accept", "*/*");
    headers.Set("connection", "close");
    return plan;
  }
  void OnRefused(const std::string& why) override {
    End(false, fmt::format("Get \"{}\": {}", url_, why));
  }
  void OnTimeout() override {
    End(false, fmt::format("Get \"{}\": context deadline exceeded (Client.Timeout exceeded while "
                           "awaiting headers)",
                           url_));
  }
  void OnAnswer(ExchangeAnswer answer) override {
    if (answer.status == 0) return OnRefused(answer.error);
    if (answer.status >= 200 && answer.status < 400) return End(true, std::move(answer.body));
    End(false, fmt::format("HTTP probe failed with statuscode: {}", answer.status));
  }

  const HttpProbe probe_;
  const bool tls_;
  std::string path_, url_;
};

// grpc.health.v1.Health/Check, with the texts of pkg/probe/grpc.
class GrpcProbing : public Probing {
 public:
  GrpcProbing(ProcessCore& core, GrpcProbe probe, std::string address, ProbeCallback done)
      : Probing(core, std::move(address), probe.port, probe.timeout, std::move(done)),
        service_(std::move(probe.service)) {}

 private:
  ExchangePlan Plan() const override {
    ExchangePlan plan{.host = address(), .http2 = true, .max_body = kProbeBodyMax};
    plan.head = {
        .method = "POST",
        .target = "/grpc.health.v1.Health/Check",
        .scheme = "http",
        .authority = authority(),
        .headers = {
            {"content-type", "application/grpc"}, {"te", "trailers"}, {"user-agent", kUserAgent}}};
    plan.body = net::MakeBuffer(GrpcMessage(HealthRequest(service_)));
    return plan;
  }
  // Like grpc.WithBlock: who cannot be reached has until the time is over.
  void OnRefused(const std::string&) override {}
  void OnTimeout() override {
    const std::string within = FormatDuration(timeout());
    if (heard() && !other_) {
      return End(false, fmt::format("timeout: health rpc did not complete within {}", within));
    }
    End(false, fmt::format("timeout: failed to connect service {} within {}: context deadline "
                           "exceeded",
                           Quote(authority()), within));
  }
  void OnAnswer(ExchangeAnswer answer) override {
    if (answer.status == 0) {  // no gRPC server: as if nothing listened
      other_ = true;
      return;
    }
    const GrpcStatus status = StatusOf(answer);
    if (status.code == kGrpcUnimplemented) {
      return End(false,
                 "error: this server does not implement the grpc health protocol "
                 "(grpc.health.v1.Health): " +
                     status.message);
    }
    if (status.code != 0) {
      return End(false,
                 fmt::format("error: health rpc probe failed: rpc error: code = {} desc = {}",
                             GrpcCodeName(status.code), status.message));
    }
    const std::string health = HealthOf(answer.body);
    if (health == "SERVING") return End(true, "service healthy");
    End(false, fmt::format("service unhealthy (responded with {})", Quote(health)));
  }

  const std::string service_;
  bool other_ = false;
};

}  // namespace

void RunHttpProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, HttpProbe probe,
                  ProbeCallback done) {
  std::string address = ProbeAddress(*sandbox, probe.host);
  std::make_shared<HttpProbing>(core, std::move(probe), std::move(address), std::move(done))
      ->Start(*sandbox);
}

void RunGrpcProbe(ProcessCore& core, std::shared_ptr<ProcessSandbox> sandbox, GrpcProbe probe,
                  ProbeCallback done) {
  std::string address = ProbeAddress(*sandbox, "");
  std::make_shared<GrpcProbing>(core, std::move(probe), std::move(address), std::move(done))
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
