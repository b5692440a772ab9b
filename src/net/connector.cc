#include "net/connector.h"

#include <fmt/format.h>

#include "net/client.h"
#include "net/socket.h"

namespace sextant::net {
namespace {

// Keeps itself alive until it is done.
class Connector : public TransportOwner, public std::enable_shared_from_this<Connector> {
 public:
  using Done = std::move_only_function<void(Result<Connected>)>;
  Connector(IoThread& io, ConnectPlan plan, Done done)
      : io_(io), plan_(std::move(plan)), done_(std::move(done)) {}

  void Begin() {
    self_ = shared_from_this();
    timer_ = io_.After(plan_.timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->OnTimeout();
    });
    if (!plan_.to.empty()) return TryNext();
    io_.Resolve(plan_.host, plan_.port,
                [self = shared_from_this()](Result<std::vector<Endpoint>> found) {
                  if (!found) return self->Finish(Fail(found.error()));
                  self->plan_.to = std::move(*found);
                  self->TryNext();
                });
  }

  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }
  void OnOpen() override {
    Finish(Connected{.transport = std::exchange(transport_, nullptr), .to = at_});
  }
  void OnBytes(std::string_view) override {}
  void OnEnd() override {}
  void Produce(std::string&, size_t) override {}
  void OnClosed(Status why) override {
    transport_ = nullptr;
    error_ = TransportError(
        fmt::format("connect to {}: {}", at_.ToString(), why ? "closed" : why.error().message));
    TryNext();
  }

 private:
  void TryNext() {
    while (done_ && next_ < plan_.to.size()) {
      at_ = plan_.to[next_++];
      const Result<int> fd = BeginConnect(at_);
      if (!fd) {
        error_ = fd.error();
        continue;
      }
      transport_ = std::make_shared<Transport>(io_, *fd, plan_.tls ? plan_.tls() : nullptr, true);
      transport_->Start(this);
      return;
    }
    Finish(Fail(error_));
  }
  void OnTimeout() {
    next_ = plan_.to.size();
    error_ = TransportError(
        fmt::format("connect to {}: timed out", at_.port == 0 ? plan_.host : at_.ToString()));
    const Error error = error_;
    if (const auto transport = std::exchange(transport_, nullptr)) {
      transport->SetOwner(nullptr);
      transport->Close({});
    }
    Finish(Fail(error));
  }
  void Finish(Result<Connected> result) {
    io_.Cancel(timer_);
    const auto self = std::exchange(self_, nullptr);
    if (auto done = std::exchange(done_, {})) done(std::move(result));
  }

  IoThread& io_;
  ConnectPlan plan_;
  Done done_;
  std::shared_ptr<Connector> self_;
  std::shared_ptr<Transport> transport_;
  Endpoint at_;
  size_t next_ = 0;
  Error error_ = TransportError("no address to connect to");
  TimerId timer_ = 0;
};

}  // namespace

void Connect(IoThread& io, ConnectPlan plan,
             std::move_only_function<void(Result<Connected>)> done) {
  io.Post([&io, plan = std::move(plan), done = std::move(done)]() mutable {
    std::make_shared<Connector>(io, std::move(plan), std::move(done))->Begin();
  });
}

}  // namespace sextant::net
