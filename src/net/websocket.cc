#include "net/websocket.h"

#include <mutex>

#include "base/check.h"
#include "base/random.h"
#include "net/websocket_over.h"

namespace sextant::net {
namespace {

// How long the peer may take to answer our Close.
constexpr auto kCloseTimeout = std::chrono::seconds(5);
// As client-go's remotecommand: every 5 s, and given up after a silence of 60 s (kPingGrace).
constexpr auto kUpstreamPing = std::chrono::seconds(5);

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(IoThread& io, std::shared_ptr<ByteStream> stream, WsDecoder::Role role, std::string protocol)
      : io_(io),
        poster_(io.poster()),
        stream_(std::move(stream)),
        role_(role),
        protocol_(std::move(protocol)),
        decoder_(role, kMaxWebSocketMessage) {}

  // Any thread.
  void Start(WebSocket::Handlers handlers) {
    poster_->Post([self = shared_from_this(), h = std::move(handlers)]() mutable {
      self->Begin(std::move(h));
    });
  }
  bool Send(bool binary, std::string_view message) {
    const std::lock_guard lock(mutex_);
    return !close_sent_ && SendFrame(binary ? WsOp::kBinary : WsOp::kText, message);
  }
  void Close(WsClose code, std::string_view reason) {
    {
      const std::lock_guard lock(mutex_);
      if (close_sent_) return;
      SendFrame(WsOp::kClose, EncodeClose(code, reason));
      close_sent_ = true;
    }
    poster_->Post([self = shared_from_this()] {
      self->io_.After(kCloseTimeout, [self] { self->stream_->Close(); });
    });
  }
  // The last wish counts. On the I/O thread a pause holds at once.
  void SetReading(bool on) {
    pause_wanted_ = !on;
    if (!on && io_.OnLoop()) return ApplyPause();
    poster_->Post([self = shared_from_this()] { self->ApplyPause(); });
  }
  ByteStream& stream() { return *stream_; }
  const std::string& protocol() const { return protocol_; }

 private:
  bool SendFrame(WsOp op, std::string_view payload) {
    std::optional<uint32_t> mask;
    if (role_ == WsDecoder::Role::kClient) {
      uint8_t bytes[4];
      SecureBytes(bytes);
      mask.emplace();
      std::memcpy(&*mask, bytes, 4);
    }
    return stream_->Send(EncodeFrame(op, payload, mask));
  }

  void Begin(WebSocket::Handlers handlers) {
    CHECK(!begun_);
    begun_ = true;
    handlers_ = std::move(handlers);
    ByteStream::Handlers h;
    h.on_data = [self = shared_from_this()](std::string_view bytes) {
      self->silent_intervals_ = 0;
      self->decoder_.Feed(bytes);
      self->Deliver();
    };
    h.on_end = [self = shared_from_this()] { self->stream_->Close(); };
    h.on_close = [self = shared_from_this()](const Status&) { self->OnStreamClosed(); };
    stream_->Start(std::move(h));
    if (handlers_.ping_interval > Duration::zero()) ArmPing();
  }

  void ApplyPause() {
    paused_ = pause_wanted_;
    if (paused_) return stream_->Pause();
    stream_->Resume();
    Deliver();
  }

  void ArmPing() {
    ping_timer_ = io_.After(handlers_.ping_interval, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || self->ended_) return;
      if (++self->silent_intervals_ > kPingGrace) return self->stream_->Close();
      {
        const std::lock_guard lock(self->mutex_);
        if (!self->close_sent_) self->SendFrame(WsOp::kPing, {});
      }
      self->ArmPing();
    });
  }

  void Deliver() {
    while (!paused_ && !ended_ && begun_) {
      auto next = decoder_.Next();
      if (!next) {
        const WsDecoder::Failure failure = std::move(next).error();
        close_code_ = failure.code;
        close_reason_ = failure.reason;
        ended_ = true;
        SendClose(failure.code, failure.reason);
        return stream_->Close();
      }
      if (!*next) return;
      OnMessage(std::move(**next));
    }
  }

  void OnMessage(WsDecoder::Message message) {
    switch (message.op) {
      case WsOp::kPing: {
        const std::lock_guard lock(mutex_);
        if (!close_sent_) SendFrame(WsOp::kPong, message.payload);
        return;
      }
      case WsOp::kPong:
        return;
      case WsOp::kClose:
        close_code_ = message.code;
        close_reason_ = std::move(message.reason);
        ended_ = true;
        SendClose(message.code, {});
        return stream_->Close();
      default:
        if (handlers_.on_message) {
          handlers_.on_message(message.op == WsOp::kBinary, std::move(message.payload));
        }
    }
  }

  void SendClose(WsClose code, std::string_view reason) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(close_sent_, true)) return;
    SendFrame(WsOp::kClose, EncodeClose(code, reason));
  }

  void OnStreamClosed() {
    ended_ = true;
    io_.Cancel(ping_timer_);
    WebSocket::Handlers handlers = std::exchange(handlers_, {});
    if (handlers.on_close) handlers.on_close(close_code_, std::move(close_reason_));
  }

  IoThread& io_;
  const std::shared_ptr<Executor> poster_;
  const std::shared_ptr<ByteStream> stream_;
  const WsDecoder::Role role_;
  const std::string protocol_;
  std::atomic<bool> pause_wanted_{false};
  // I/O thread only.
  WsDecoder decoder_;
  WebSocket::Handlers handlers_;
  bool begun_ = false;
  bool paused_ = false;
  bool ended_ = false;  // nothing of what still comes counts
  int silent_intervals_ = 0;
  TimerId ping_timer_ = 0;
  WsClose close_code_ = WsClose::kAbnormal;
  std::string close_reason_;
  std::mutex mutex_;         // also keeps frames in order with close_sent_
  bool close_sent_ = false;  // guarded by mutex_
};

class Handle : public WebSocket {
 public:
  explicit Handle(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Handle() override { core_->stream().Close(); }
  void Start(Handlers handlers) override { core_->Start(std::move(handlers)); }
  bool Send(bool binary, std::string_view message) override { return core_->Send(binary, message); }
  void Close(WsClose code, std::string_view reason) override { core_->Close(code, reason); }
  size_t buffered_bytes() const override { return core_->stream().buffered_bytes(); }
  void OnWritable(Task task) override { core_->stream().OnWritable(std::move(task)); }
  void Pause() override { core_->SetReading(false); }
  void Resume() override { core_->SetReading(true); }
  const std::string& protocol() const override { return core_->protocol(); }

 private:
  const std::shared_ptr<Core> core_;
};

// Runs `task` when it has been called twice.
struct Both {
  explicit Both(Task t) : task(std::move(t)) {}
  void Call() {
    if (++calls == 2 && task) task();
  }
  std::atomic<int> calls{0};
  Task task;
};

WebSocket::Handlers Pass(const std::shared_ptr<WebSocket>& from,
                         const std::shared_ptr<WebSocket>& to, const std::shared_ptr<Both>& both) {
  WebSocket::Handlers h;
  h.on_message = [from, to](bool binary, const std::string& message) {
    if (!to->Send(binary, message)) return from->Close(WsClose::kGoingAway);
    if (to->buffered_bytes() > kMaxStreamBuffer / 2) {
      from->Pause();
      to->OnWritable([from] { from->Resume(); });
    }
  };
  h.on_close = [to, both](WsClose code, const std::string& reason) {
    to->Close(code == WsClose::kAbnormal ? WsClose::kGoingAway : code, reason);
    both->Call();
  };
  return h;
}

}  // namespace

std::shared_ptr<WebSocket> WebSocketOver(IoThread& io, std::shared_ptr<ByteStream> stream,
                                         WsDecoder::Role role, std::string protocol) {
  return std::make_shared<Handle>(
      std::make_shared<Core>(io, std::move(stream), role, std::move(protocol)));
}

void Proxy(const std::shared_ptr<WebSocket>& down, const std::shared_ptr<WebSocket>& up,
           Task done) {
  const auto both = std::make_shared<Both>(std::move(done));
  down->Start(Pass(down, up, both));
  WebSocket::Handlers handlers = Pass(up, down, both);
  handlers.ping_interval = kUpstreamPing;
  up->Start(std::move(handlers));
}

}  // namespace sextant::net
