#include "net/client_upgrade.h"

#include <algorithm>

#include "base/base64.h"
#include "base/random.h"
#include "net/stream_core.h"
#include "net/websocket_over.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxRefusedBody = 64 << 10;  // of an answer that refuses

// Keeps itself alive until it is done.
class Upgrader : public TransportOwner,
                 public Upgrade,
                 private ClientSession::Events,
                 public std::enable_shared_from_this<Upgrader> {
 public:
  Upgrader(IoThread& io, Executor& results, UpgradePlan plan, HttpClient::UpgradeDone done)
      : io_(io),
        poster_(io.poster()),
        results_(results),
        plan_(std::move(plan)),
        done_(std::move(done)),
        session_(NewH1ClientSession(plan_.max_header_bytes, *this)) {}

  void Begin() {
    plan_.head.headers.Set("connection", "Upgrade");
    plan_.head.headers.Set("upgrade", plan_.to);
    Connect(io_, std::move(plan_.connect), [self = shared_from_this()](Result<Connected> result) {
      self->OnConnected(std::move(result));
    });
  }
  void Cancel() override {
    cancelled_ = true;
    poster_->Post([self = shared_from_this()] { self->Finish(Fail(TransportError("cancelled"))); });
  }
  void GiveUp(Error error) override { Finish(Fail(std::move(error))); }

  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }
  void OnOpen() override {}
  void OnBytes(std::string_view bytes) override {
    if (const Status fed = session_->Feed(bytes); !fed) return Finish(Fail(fed.error()));
    if (status_ == 101) Accept();
  }
  void OnEnd() override { session_->End(TransportError("the server closed the connection")); }
  void Produce(std::string& out, size_t room) override { session_->Take(out, room); }
  void OnClosed(Status why) override {
    Finish(Fail(why ? TransportError("the connection was closed") : why.error()));
  }

 private:
  void OnConnected(Result<Connected> result) {
    if (!result || finished_) {
      if (result) {
        result->transport->SetOwner(nullptr);
        result->transport->Close({});
        return;
      }
      return Finish(Fail(result.error()));
    }
    self_ = shared_from_this();
    transport_ = std::move(result->transport);
    transport_->SetOwner(this);
    peer_ = {.address = result->to.address, .port = result->to.port};
    session_->Submit(plan_.head, nullptr);
    transport_->Flush();
    timer_ = io_.After(plan_.headers_timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->Finish(Fail(TransportError("the server did not answer in time")));
      }
    });
  }
  void OnHeaders(StreamId, int status, Headers headers) override {
    status_ = status;
    headers_ = std::move(headers);
  }
  void OnData(StreamId, std::string_view bytes) override {
    if (body_.size() < kMaxRefusedBody) body_.append(bytes);
  }
  void OnDone(StreamId, Status status, bool) override {
    if (status_ == 101) return;  // Accept follows
    if (!status) return Finish(Fail(status.error()));
    while (body_.ends_with('\n')) body_.pop_back();
    Finish(Fail(Error{.code = status_, .message = body_}));
  }
  void Accept() {
    if (!headers_.HasToken("upgrade", plan_.to)) {
      return Finish(Fail(TransportError("the server upgraded to another protocol")));
    }
    if (plan_.check) {
      if (const Status good = plan_.check(headers_); !good) return Finish(Fail(good.error()));
    }
    auto stream = StreamOver(std::exchange(transport_, nullptr), peer_, {}, session_->TakeRest());
    Finish(Upgraded{std::move(headers_), std::move(stream)});
  }
  void Finish(Result<Upgraded> result) {
    if (std::exchange(finished_, true)) return;
    io_.Cancel(timer_);
    const auto self = std::exchange(self_, nullptr);
    if (const auto transport = std::exchange(transport_, nullptr)) {
      transport->SetOwner(nullptr);
      transport->Close({});
    }
    results_.Post([keep = shared_from_this(), result = std::move(result)]() mutable {
      auto done = std::exchange(keep->done_, {});
      if (!keep->cancelled_) done(std::move(result));
    });
  }

  IoThread& io_;
  const std::shared_ptr<Executor> poster_;
  Executor& results_;
  UpgradePlan plan_;
  HttpClient::UpgradeDone done_;
  std::atomic<bool> cancelled_{false};
  // I/O thread only.
  std::unique_ptr<ClientSession> session_;
  std::shared_ptr<Upgrader> self_;
  std::shared_ptr<Transport> transport_;
  Peer peer_;
  int status_ = 0;
  Headers headers_;
  std::string body_;
  TimerId timer_ = 0;
  bool finished_ = false;
};

// Whether the answer is a handshake for `key` that chose one of `protocols`, or none.
Status CheckHandshake(const Headers& headers, const std::string& key,
                      const std::vector<std::string>& protocols) {
  if (headers.Get("sec-websocket-accept") != WebSocketAccept(key)) {
    return Fail(TransportError("the server's WebSocket handshake is wrong"));
  }
  const std::string_view protocol = headers.Get("sec-websocket-protocol");
  if (!protocol.empty() &&
      std::find(protocols.begin(), protocols.end(), protocol) == protocols.end()) {
    return Fail(TransportError("the server chose a protocol that was not offered"));
  }
  return {};
}

}  // namespace

std::shared_ptr<Upgrade> StartUpgrade(IoThread& io, Executor& results, UpgradePlan plan,
                                      HttpClient::UpgradeDone done) {
  auto upgrader = std::make_shared<Upgrader>(io, results, std::move(plan), std::move(done));
  io.Post([upgrader] { upgrader->Begin(); });
  return upgrader;
}

std::shared_ptr<Upgrade> StartWebSocket(IoThread& io, Executor& results, UpgradePlan plan,
                                        const std::vector<std::string>& protocols,
                                        HttpClient::WebSocketDone done) {
  uint8_t nonce[16];
  SecureBytes(nonce);
  const std::string key = Base64({reinterpret_cast<const char*>(nonce), sizeof nonce});
  plan.to = "websocket";
  Headers& headers = plan.head.headers;
  headers.Set("sec-websocket-version", "13");
  headers.Set("sec-websocket-key", key);
  for (const std::string& p : protocols) headers.Add("sec-websocket-protocol", p);
  plan.check = [key, protocols](const Headers& answer) {
    return CheckHandshake(answer, key, protocols);
  };
  return StartUpgrade(
      io, results, std::move(plan),
      [&io, done = std::move(done)](Result<Upgraded> upgraded) mutable {
        if (!upgraded) return done(Fail(std::move(upgraded).error()));
        done(WebSocketOver(io, std::move(upgraded->stream), WsDecoder::Role::kClient,
                           std::string(upgraded->headers.Get("sec-websocket-protocol"))));
      });
}

}  // namespace sextant::net
