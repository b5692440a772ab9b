#include "net/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <list>

#include "net/client_call.h"
#include "net/client_connection.h"
#include "net/client_upgrade.h"
#include "net/connector.h"
#include "net/run_on.h"
#include "net/tls_context.h"

namespace sextant::net {
namespace {

constexpr auto kSweepInterval = std::chrono::seconds(5);
constexpr int kMaxAttempts = 3;

}  // namespace

Error TransportError(std::string message) { return {.code = 0, .message = std::move(message)}; }

struct HttpClient::Impl : ClientConnection::Host, std::enable_shared_from_this<HttpClient::Impl> {
  Impl(IoThread& i, Executor& r, ClientOptions o)
      : io(i), poster(i.poster()), results(r), options(std::move(o)) {}

  // Constant after the constructor of HttpClient.
  IoThread& io;
  const std::shared_ptr<Executor> poster;
  Executor& results;
  const ClientOptions options;
  Url url;
  std::shared_ptr<const TlsClientContext> tls;
  std::optional<Error> broken;  // the options are no good: every call ends with this
  // I/O thread only.
  std::list<std::shared_ptr<ClientConnection>> connections;
  std::deque<std::shared_ptr<CallState>> waiting;
  std::vector<std::weak_ptr<Upgrade>> upgrades;
  int connecting = 0;
  bool http1_seen = false;
  bool closed = false;
  TimerId sweep_timer = 0;

  Status Prepare();
  ConnectPlan Plan(bool http2) const;
  ClientHead Head(const std::string& method, const std::string& target, Headers headers) const;
  std::shared_ptr<Call> Launch(std::shared_ptr<CallState> call);
  void Begin(const std::shared_ptr<CallState>& call);
  void Pump();
  void OpenIfNeeded();
  void OnConnected(Result<Connected> result);
  void Submit(const std::shared_ptr<CallState>& call, ClientConnection& connection);
  void GiveUp(const std::shared_ptr<CallState>& call, Error error);
  void Settle(CallState& call);
  template <typename Done>
  std::shared_ptr<Call> Refuse(Done done);
  UpgradePlan PlanUpgrade(const std::string& method, const std::string& target,
                          Headers headers) const;
  std::shared_ptr<Call> Keep(std::shared_ptr<Upgrade> upgrade);
  void ArmSweep();
  void CloseAll();

  void OnCapacity() override { Pump(); }
  void OnCallFailed(std::shared_ptr<CallState> call, Error error, bool retry) override;
  void OnCallAnswered(CallState& call) override { io.Cancel(std::exchange(call.headers_timer, 0)); }
  void OnCallDone(CallState& call) override { Settle(call); }
  void OnClosed(ClientConnection* connection) override;
};

Status HttpClient::Impl::Prepare() {
  ASSIGN_OR_RETURN(url, ParseUrl(options.base_url));
  while (url.scheme != "unix" && url.path.ends_with('/')) url.path.pop_back();
  if (url.tls()) {
    ASSIGN_OR_RETURN(tls, TlsClientContext::Make(options.tls));
  }
  if (!options.connect_to.empty()) {
    RETURN_IF_ERROR(ParseUrl("http://" + options.connect_to));
  }
  return {};
}

ConnectPlan HttpClient::Impl::Plan(bool http2) const {
  ConnectPlan plan{.host = url.host, .port = url.port, .timeout = options.connect_timeout};
  if (url.scheme == "unix") {
    plan.to.push_back({.path = url.path});
  } else if (!options.connect_to.empty()) {
    const Url to = *ParseUrl("http://" + options.connect_to);
    plan.host = to.host;
    plan.port = to.port;
  }
  if (tls) plan.tls = [ctx = tls, host = url.host, http2] { return ctx->NewSession(host, http2); };
  return plan;
}

ClientHead HttpClient::Impl::Head(const std::string& method, const std::string& target,
                                  Headers headers) const {
  ClientHead head{.method = method, .target = target, .headers = std::move(headers)};
  head.scheme = url.tls() ? "https" : "http";
  if (url.scheme == "unix") {
    head.authority = "localhost";
  } else {
    head.target = url.path + target;
    const bool plain_port = url.port == (url.tls() ? 443 : 80);
    head.authority = plain_port ? url.host : url.HostPort();
  }
  return head;
}

std::shared_ptr<Call> HttpClient::Impl::Launch(std::shared_ptr<CallState> call) {
  call->on_cancel = [weak = weak_from_this(), to = poster](std::shared_ptr<CallState> c) {
    to->Post([weak, c = std::move(c)] {
      if (const auto self = weak.lock()) self->GiveUp(c, TransportError("cancelled"));
    });
  };
  call->on_consumed = [call = call.get(), to = poster](size_t bytes) {
    to->Post([call = call->shared_from_this(), bytes] {
      if (const auto c = call->connection.lock()) c->Consume(call->stream, bytes);
    });
  };
  poster->Post([self = shared_from_this(), call] { self->Begin(call); });
  return call;
}

void HttpClient::Impl::Begin(const std::shared_ptr<CallState>& call) {
  if (broken) return call->Finish(Fail(*broken));
  if (closed) return call->Finish(Fail(TransportError("the client is closed")));
  if (call->cancelled()) return call->Finish(Fail(TransportError("cancelled")));
  if (call->request.timeout > Duration::zero()) {
    call->timeout_timer = io.After(call->request.timeout, [self = shared_from_this(), call] {
      self->GiveUp(call, TransportError("the request timed out"));
    });
  }
  waiting.push_back(call);
  Pump();
}

void HttpClient::Impl::Pump() {
  // Submitting may close a connection and so change the list: look anew each time.
  while (!waiting.empty()) {
    const auto free = std::find_if(connections.begin(), connections.end(),
                                   [](const auto& c) { return c->capacity() > 0; });
    if (free == connections.end()) return OpenIfNeeded();
    const auto connection = *free;
    const auto call = std::move(waiting.front());
    waiting.pop_front();
    Submit(call, *connection);
  }
}

void HttpClient::Impl::OpenIfNeeded() {
  const size_t total = connections.size() + static_cast<size_t>(connecting);
  // What the server speaks is not known before the first connection; with HTTP/2 one more will do.
  const size_t wanted =
      http1_seen ? std::min(waiting.size(), static_cast<size_t>(connecting) + 1) : 1;
  if (closed || static_cast<size_t>(connecting) >= wanted) return;
  if (total >= static_cast<size_t>(options.max_connections)) return;
  ++connecting;
  Connect(io, Plan(options.http2), [self = shared_from_this()](Result<Connected> result) {
    self->OnConnected(std::move(result));
  });
}

void HttpClient::Impl::OnConnected(Result<Connected> result) {
  --connecting;
  if (closed) {
    if (result) {
      result->transport->SetOwner(nullptr);
      result->transport->Close({});
    }
    return;
  }
  if (!result) {
    // Nobody else can serve those who wait, unless other connections live.
    do {
      if (waiting.empty()) break;
      const auto call = std::move(waiting.front());
      waiting.pop_front();
      Settle(*call);
      call->Finish(Fail(result.error()));
    } while (connections.empty());
    return Pump();
  }
  bool http2 = false;
  if (SSL* ssl = result->transport->ssl(); ssl != nullptr) {
    const unsigned char* alpn = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &alpn, &size);
    http2 = size == 2;
  }
  http1_seen |= !http2;
  auto connection = std::make_shared<ClientConnection>(
      shared_from_this(), std::move(result->transport), http2, options.max_header_bytes);
  connection->Start();
  connections.push_back(std::move(connection));
  if (sweep_timer == 0) ArmSweep();
  Pump();
}

void HttpClient::Impl::Submit(const std::shared_ptr<CallState>& call,
                              ClientConnection& connection) {
  ++call->attempts;
  if (options.headers_timeout > Duration::zero()) {
    call->headers_timer = io.After(options.headers_timeout, [self = shared_from_this(), call] {
      self->GiveUp(call, TransportError("the server did not answer in time"));
    });
  }
  connection.Submit(call, Head(call->request.method, call->request.target, call->request.headers));
}

void HttpClient::Impl::Settle(CallState& call) {
  io.Cancel(std::exchange(call.headers_timer, 0));
  io.Cancel(std::exchange(call.timeout_timer, 0));
}

void HttpClient::Impl::GiveUp(const std::shared_ptr<CallState>& call, Error error) {
  std::erase(waiting, call);
  Settle(*call);
  if (const auto connection = call->connection.lock(); connection && !call->finished()) {
    connection->Cancel(call->stream);
  }
  call->Finish(Fail(std::move(error)));
}

void HttpClient::Impl::OnCallFailed(std::shared_ptr<CallState> call, Error error, bool retry) {
  if (retry && !closed && !call->answered() && !call->cancelled() &&
      call->attempts < kMaxAttempts) {
    io.Cancel(std::exchange(call->headers_timer, 0));
    call->connection.reset();
    waiting.push_front(std::move(call));
    // Not from within the connection that has just failed.
    poster->Post([self = shared_from_this()] { self->Pump(); });
    return;
  }
  Settle(*call);
  call->Finish(Fail(std::move(error)));
}

void HttpClient::Impl::OnClosed(ClientConnection* connection) {
  std::erase_if(connections, [&](const auto& c) { return c.get() == connection; });
  poster->Post([self = shared_from_this()] { self->Pump(); });
}

void HttpClient::Impl::ArmSweep() {
  sweep_timer = io.After(kSweepInterval, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed) return;
    const auto all = self->connections;
    for (const auto& c : all) c->Sweep();
    self->sweep_timer = 0;
    if (!self->connections.empty()) self->ArmSweep();
  });
}

void HttpClient::Impl::CloseAll() {
  closed = true;
  io.Cancel(sweep_timer);
  const Error why = TransportError("the client is closed");
  for (const auto& call : std::exchange(waiting, {})) {
    Settle(*call);
    call->Finish(Fail(why));
  }
  const auto all = connections;
  for (const auto& c : all) c->Close(Fail(why));
  for (const auto& weak : upgrades) {
    if (const auto upgrade = weak.lock()) upgrade->GiveUp(why);
  }
}

HttpClient::HttpClient(IoThread& io, Executor& results, ClientOptions options)
    : impl_(std::make_shared<Impl>(io, results, std::move(options))) {
  if (Status ready = impl_->Prepare(); !ready) impl_->broken = ready.error();
}

HttpClient::~HttpClient() {
  if (impl_->io.OnLoop()) {
    impl_->CloseAll();
  } else {
    RunOnAll({&impl_->io}, [&](size_t) { return [impl = impl_] { impl->CloseAll(); }; });
  }
}

std::shared_ptr<Call> HttpClient::Do(ClientRequest request, Done done) {
  auto call = std::make_shared<CallState>(std::move(request), impl_->results);
  call->whole = true;
  call->max_body = impl_->options.max_body;
  call->done = std::move(done);
  return impl_->Launch(std::move(call));
}

std::shared_ptr<Call> HttpClient::Stream(ClientRequest request, StreamCallbacks callbacks) {
  auto call = std::make_shared<CallState>(std::move(request), impl_->results);
  call->callbacks = std::move(callbacks);
  return impl_->Launch(std::move(call));
}

// A call that ends at once: the client's options are no good.
template <typename Done>
std::shared_ptr<Call> HttpClient::Impl::Refuse(Done done) {
  results.Post(
      [error = *broken, done = std::move(done)]() mutable { done(Fail(std::move(error))); });
  return std::make_shared<CallState>(ClientRequest{}, results);
}

UpgradePlan HttpClient::Impl::PlanUpgrade(const std::string& method, const std::string& target,
                                          Headers headers) const {
  return {.connect = Plan(false),
          .head = Head(method, target, std::move(headers)),
          .headers_timeout = options.headers_timeout,
          .max_header_bytes = options.max_header_bytes};
}

std::shared_ptr<Call> HttpClient::Impl::Keep(std::shared_ptr<Upgrade> upgrade) {
  poster->Post([self = shared_from_this(), weak = std::weak_ptr(upgrade)] {
    std::erase_if(self->upgrades, [](const auto& w) { return w.expired(); });
    self->upgrades.push_back(weak);
  });
  return upgrade;
}

std::shared_ptr<Call> HttpClient::OpenWebSocket(WebSocketRequest request, WebSocketDone done) {
  if (impl_->broken) return impl_->Refuse(std::move(done));
  UpgradePlan plan = impl_->PlanUpgrade("GET", request.target, std::move(request.headers));
  return impl_->Keep(StartWebSocket(impl_->io, impl_->results, std::move(plan), request.protocols,
                                    std::move(done)));
}

std::shared_ptr<Call> HttpClient::OpenUpgrade(UpgradeRequest request, UpgradeDone done) {
  if (impl_->broken) return impl_->Refuse(std::move(done));
  UpgradePlan plan = impl_->PlanUpgrade(request.method, request.target, std::move(request.headers));
  plan.to = std::move(request.to);
  return impl_->Keep(StartUpgrade(impl_->io, impl_->results, std::move(plan), std::move(done)));
}

}  // namespace sextant::net
