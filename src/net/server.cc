#include "net/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <unordered_map>

#include "base/check.h"
#include "net/run_on.h"
#include "net/server_connection.h"
#include "net/socket.h"
#include "net/tls_context.h"

namespace sextant::net {
namespace {

constexpr auto kSweepInterval = std::chrono::seconds(1);
constexpr int kMaxAcceptsPerTurn = 64;
// Out of descriptors: wait before the next accept, which would only fail again.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

// What all threads of one server share.
struct Shared {
  ServerOptions options;
  Handler handler;
  std::shared_ptr<const TlsServerContext> tls;  // null: none
  std::atomic<int> connections{0};
  std::atomic<uint64_t> connections_total{0};
};

// The connections of one I/O thread.
class Shard : public ConnectionHost, public std::enable_shared_from_this<Shard> {
 public:
  Shard(IoThread& io, std::shared_ptr<Shared> shared) : io_(io), shared_(std::move(shared)) {}

  void Start() { ArmSweep(); }

  void Add(int fd, Peer peer) {
    const auto& tls = shared_->tls;
    auto transport = std::make_shared<Transport>(io_, fd, tls ? tls->NewSession() : nullptr, false);
    auto connection =
        std::make_shared<ServerConnection>(shared_from_this(), transport, std::move(peer));
    connections_.emplace(connection.get(), connection);
    connection->Start();
  }

  void Shutdown() {
    for (const auto& c : Snapshot()) c->Shutdown();
  }
  void CloseAll() {
    io_.Cancel(sweep_timer_);
    for (const auto& c : Snapshot()) c->Close({});
    for (const auto& weak : std::exchange(upgraded_, {})) {
      if (const auto transport = weak.lock()) transport->Close({});
    }
  }
  bool empty() const { return connections_.empty(); }

  const ServerOptions& options() const override { return shared_->options; }
  const Handler& handler() const override { return shared_->handler; }
  void OnConnectionClosed(TransportOwner* connection) override {
    if (connections_.erase(connection) > 0) --shared_->connections;
  }
  void OnUpgraded(const std::shared_ptr<Transport>& transport) override {
    std::erase_if(upgraded_, [](const auto& weak) { return weak.expired(); });
    upgraded_.push_back(transport);
  }

 private:
  std::vector<std::shared_ptr<ServerConnection>> Snapshot() const {
    std::vector<std::shared_ptr<ServerConnection>> out;
    out.reserve(connections_.size());
    for (const auto& [key, connection] : connections_) out.push_back(connection);
    return out;
  }
  void ArmSweep() {
    sweep_timer_ = io_.After(kSweepInterval, [self = shared_from_this()] {
      for (const auto& c : self->Snapshot()) c->Sweep();
      self->ArmSweep();
    });
  }

  IoThread& io_;
  const std::shared_ptr<Shared> shared_;
  std::unordered_map<TransportOwner*, std::shared_ptr<ServerConnection>> connections_;
  std::vector<std::weak_ptr<Transport>> upgraded_;
  TimerId sweep_timer_ = 0;
};

// Accepts on the first thread and hands connections round.
class Acceptor : public FdHandler, public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::vector<IoThread*> threads, std::vector<std::shared_ptr<Shard>> shards,
           std::shared_ptr<Shared> shared, int fd)
      : threads_(std::move(threads)),
        shards_(std::move(shards)),
        shared_(std::move(shared)),
        fd_(fd) {}
  ~Acceptor() override { Drop(); }

  void Start() {
    watched_ = true;
    threads_[0]->Watch(fd_, true, false, this);
  }

  void Drop() {
    if (fd_ < 0) return;
    if (std::exchange(watched_, false)) threads_[0]->Unwatch(fd_);
    close(fd_);
    fd_ = -1;
  }

  void OnReady(bool, bool) override {
    for (int i = 0; i < kMaxAcceptsPerTurn && fd_ >= 0; ++i) {
      const int fd = AcceptFrom(fd_);
      if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) Pause();
        return;
      }
      Admit(fd);
    }
  }
  void OnStop() override { Drop(); }

 private:
  void Admit(int fd) {
    if (shared_->connections.load() >= shared_->options.limits.max_connections) {
      close(fd);
      return;
    }
    ++shared_->connections;
    ++shared_->connections_total;
    const size_t i = next_++ % threads_.size();
    const Endpoint other = PeerOf(fd);
    Peer peer{.address = other.address, .port = other.port};
    if (i == 0) return shards_[0]->Add(fd, std::move(peer));
    threads_[i]->Post([shard = shards_[i], fd, peer = std::move(peer)]() mutable {
      shard->Add(fd, std::move(peer));
    });
  }

  void Pause() {
    threads_[0]->Change(fd_, false, false);
    threads_[0]->After(kAcceptPause, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->fd_ >= 0) self->threads_[0]->Change(self->fd_, true, false);
    });
  }

  const std::vector<IoThread*> threads_;
  const std::vector<std::shared_ptr<Shard>> shards_;
  const std::shared_ptr<Shared> shared_;
  int fd_;
  bool watched_ = false;
  size_t next_ = 0;
};

class ServerImpl : public Server {
 public:
  ServerImpl(std::vector<IoThread*> threads, std::shared_ptr<Shared> shared, int fd)
      : threads_(std::move(threads)), shared_(std::move(shared)) {
    for (IoThread* io : threads_) shards_.push_back(std::make_shared<Shard>(*io, shared_));
    acceptor_ = std::make_shared<Acceptor>(threads_, shards_, shared_, fd);
    for (size_t i = 0; i < threads_.size(); ++i) {
      threads_[i]->Post([shard = shards_[i]] { shard->Start(); });
    }
    threads_[0]->Post([acceptor = acceptor_] { acceptor->Start(); });
  }
  ~ServerImpl() override { Stop(Duration::zero()); }

  const Endpoint& endpoint() const override { return shared_->options.listen; }

  void Stop(Duration grace) override;

  ServerStats stats() const override {
    return {.connections = shared_->connections, .connections_total = shared_->connections_total};
  }

 private:
  const std::vector<IoThread*> threads_;
  const std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Shard>> shards_;
  std::shared_ptr<Acceptor> acceptor_;
  bool stopped_ = false;
};

void ServerImpl::Stop(Duration grace) {
  if (std::exchange(stopped_, true)) return;
  for (const IoThread* io : threads_) CHECK(!io->OnLoop());
  RunOnAll({threads_[0]}, [&](size_t) { return [acceptor = acceptor_] { acceptor->Drop(); }; });
  const Endpoint& at = shared_->options.listen;
  if (at.is_unix() && at.path.front() != '@') unlink(at.path.c_str());
  if (grace > Duration::zero()) {
    RunOnAll(threads_, [&](size_t i) { return [shard = shards_[i]] { shard->Shutdown(); }; });
    const Clock& clock = threads_[0]->clock();
    const Duration deadline = clock.Monotonic() + grace;
    while (shared_->connections.load() > 0 && clock.Monotonic() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  RunOnAll(threads_, [&](size_t i) { return [shard = shards_[i]] { shard->CloseAll(); }; });
}

}  // namespace

ErrorAnswer PlainError(const Error& error) {
  return {{{"content-type", "text/plain; charset=utf-8"}},
          fmt::format("{} {}: {}", error.code, StatusText(error.code), error.message)};
}

Result<std::unique_ptr<Server>> Server::Start(std::vector<IoThread*> threads, ServerOptions options,
                                              Handler handler) {
  CHECK(!threads.empty() && handler);
  auto shared = std::make_shared<Shared>();
  if (options.tls) {
    ASSIGN_OR_RETURN(shared->tls, TlsServerContext::Make(*options.tls));
    options.tls.reset();  // keys are not kept twice
  }
  ASSIGN_OR_RETURN(const int fd, ListenOn(options.listen));
  shared->options = std::move(options);
  shared->handler = std::move(handler);
  return std::make_unique<ServerImpl>(std::move(threads), std::move(shared), fd);
}

}  // namespace sextant::net
