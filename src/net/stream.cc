#include "net/stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include "base/check.h"
#include "net/connector.h"
#include "net/piece_queue.h"
#include "net/socket.h"
#include "net/stream_core.h"

namespace sextant::net {
namespace {

// The I/O side. Keeps itself alive until the transport is closed.
class Core : public TransportOwner, public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<Transport> transport, Peer peer, std::string in)
      : io_(transport->io().poster()),
        transport_(std::move(transport)),
        peer_(std::move(peer)),
        in_(std::move(in)) {}

  void Attach(std::string out) {
    self_ = shared_from_this();
    out_.Push(MakeBuffer(std::move(out)));
    transport_->SetReading(false);
    transport_->SetOwner(this);
    read_ended_ = transport_->read_ended();
    transport_->Flush();
  }

  // Any thread.
  void Start(ByteStream::Handlers handlers) {
    io_->Post([self = shared_from_this(), h = std::move(handlers)]() mutable {
      self->Begin(std::move(h));
    });
  }
  bool Send(Buffer bytes) {
    const std::lock_guard lock(mutex_);
    if (closed_ || ending_) return false;
    if (out_.bytes() > kMaxStreamBuffer) return false;
    out_.Push(std::move(bytes));
    Wake();
    return true;
  }
  void End(bool close) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    ending_ = true;
    close_when_sent_ |= close;
    Wake();
  }
  size_t buffered_bytes() {
    const std::lock_guard lock(mutex_);
    return out_.bytes();
  }
  void OnWritable(Task task) {
    const std::lock_guard lock(mutex_);
    if (closed_ || out_.bytes() <= kMaxStreamBuffer / 2) {
      io_->Post(std::move(task));
    } else {
      on_writable_.push_back(std::move(task));
    }
  }
  // The last wish counts. On the I/O thread a pause holds at once: nothing more comes by surprise.
  void SetReading(bool on) {
    pause_wanted_ = !on;
    if (!on && transport_->io().OnLoop()) return ApplyPause();
    io_->Post([self = shared_from_this()] { self->ApplyPause(); });
  }
  const Peer& peer() const { return peer_; }

  // TransportOwner, I/O thread.
  std::shared_ptr<void> KeepAlive() override { return shared_from_this(); }
  void OnOpen() override {}
  void OnBytes(std::string_view bytes) override {
    if (paused_) {
      in_.append(bytes);  // the rest of what TLS had read
    } else if (handlers_.on_data) {
      handlers_.on_data(bytes);
    }
  }
  void OnEnd() override {
    read_ended_ = true;
    DeliverEnd();
  }
  void Produce(std::string& out, size_t room) override {
    const std::lock_guard lock(mutex_);
    const size_t n = std::min(room, out_.bytes());
    out.resize(n);
    out_.Read(out.data(), n);
    if (!on_writable_.empty() && out_.bytes() <= kMaxStreamBuffer / 2) {
      for (Task& task : std::exchange(on_writable_, {})) io_->Post(std::move(task));
    }
  }
  void OnClosed(Status why) override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      out_.Clear();
      for (Task& task : std::exchange(on_writable_, {})) io_->Post(std::move(task));
    }
    const auto self = std::exchange(self_, nullptr);
    why_ = std::move(why);
    closed_told_ = true;
    if (begun_) TellClosed();
  }

 private:
  void Begin(ByteStream::Handlers handlers) {
    CHECK(!begun_);
    begun_ = true;
    handlers_ = std::move(handlers);
    Deliver();
    if (closed_told_) return TellClosed();
    transport_->SetReading(!paused_);
  }
  void ApplyPause() {
    paused_ = pause_wanted_;
    if (!paused_) Deliver();
    transport_->SetReading(begun_ && !paused_);
  }
  void Deliver() {
    if (begun_ && !paused_ && !in_.empty()) {
      const std::string bytes = std::exchange(in_, {});
      if (handlers_.on_data) handlers_.on_data(bytes);
    }
    DeliverEnd();
  }
  void DeliverEnd() {
    if (!read_ended_ || !begun_ || paused_ || !in_.empty()) return;
    if (auto on_end = std::exchange(handlers_.on_end, {})) on_end();
  }
  void TellClosed() {
    // The handlers often own this stream's other users: let go of all of them.
    ByteStream::Handlers handlers = std::exchange(handlers_, {});
    if (handlers.on_close) handlers.on_close(std::move(why_));
  }
  void Wake() {  // mutex_ held
    if (std::exchange(wake_posted_, true)) return;
    io_->Post([self = shared_from_this()] {
      bool end = false;
      bool close = false;
      {
        const std::lock_guard lock(self->mutex_);
        self->wake_posted_ = false;
        end = self->ending_;
        close = self->close_when_sent_;
      }
      if (self->closed_told_) return;
      if (close) return self->transport_->CloseWhenSent();
      if (end) return self->transport_->EndWrites();
      self->transport_->Flush();
    });
  }

  const std::shared_ptr<Executor> io_;
  const std::shared_ptr<Transport> transport_;
  const Peer peer_;
  std::atomic<bool> pause_wanted_{false};
  // I/O thread only.
  std::shared_ptr<Core> self_;
  ByteStream::Handlers handlers_;
  std::string in_;
  bool begun_ = false;
  bool paused_ = false;
  bool read_ended_ = false;
  bool closed_told_ = false;
  Status why_;
  std::mutex mutex_;
  // Guarded by mutex_.
  PieceQueue out_;
  bool closed_ = false;
  bool ending_ = false;
  bool close_when_sent_ = false;
  bool wake_posted_ = false;
  std::vector<Task> on_writable_;
};

class Handle : public ByteStream {
 public:
  explicit Handle(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Handle() override { core_->End(true); }
  using ByteStream::Send;
  void Start(Handlers handlers) override { core_->Start(std::move(handlers)); }
  bool Send(Buffer bytes) override { return core_->Send(std::move(bytes)); }
  void End() override { core_->End(false); }
  void Close() override { core_->End(true); }
  size_t buffered_bytes() const override { return core_->buffered_bytes(); }
  void OnWritable(Task task) override { core_->OnWritable(std::move(task)); }
  void Pause() override { core_->SetReading(false); }
  void Resume() override { core_->SetReading(true); }
  const Peer& peer() const override { return core_->peer(); }

 private:
  const std::shared_ptr<Core> core_;
};

class Listener : public StreamListener {
 public:
  // On the I/O thread from Watch to Drop.
  struct Socket : FdHandler, std::enable_shared_from_this<Socket> {
    Socket(IoThread& i, int f, Accepted a) : io(i), fd(f), accepted(std::move(a)) {}
    ~Socket() override { Drop(); }
    void OnReady(bool, bool) override {
      const auto self = shared_from_this();
      for (int i = 0; i < 64 && fd >= 0; ++i) {
        const int connection = AcceptFrom(fd);
        if (connection < 0) return;
        accepted(AdoptSocket(io, connection));
      }
    }
    void OnStop() override { Drop(); }
    void Drop() {
      if (fd < 0) return;
      if (watched) io.Unwatch(fd);
      close(fd);
      fd = -1;
    }
    IoThread& io;
    int fd;
    bool watched = false;
    Accepted accepted;
  };

  Listener(IoThread& io, int fd, Endpoint at, Accepted accepted)
      : io_(io.poster()),
        at_(std::move(at)),
        socket_(std::make_shared<Socket>(io, fd, std::move(accepted))) {
    io_->Post([socket = socket_] {
      socket->watched = true;
      socket->io.Watch(socket->fd, true, false, socket.get());
    });
  }
  ~Listener() override {
    if (at_.is_unix() && at_.path.front() != '@') unlink(at_.path.c_str());
    io_->Post([socket = std::move(socket_)] { socket->Drop(); });
  }
  const Endpoint& endpoint() const override { return at_; }

 private:
  const std::shared_ptr<Executor> io_;
  const Endpoint at_;
  std::shared_ptr<Socket> socket_;
};

// One direction of a splice: bytes of `from` to `to`.
ByteStream::Handlers Pass(const std::shared_ptr<ByteStream>& from,
                          const std::shared_ptr<ByteStream>& to) {
  ByteStream::Handlers h;
  h.on_data = [from, to](std::string_view bytes) {
    if (!to->Send(std::string(bytes))) return from->Close();
    if (to->buffered_bytes() > kMaxStreamBuffer / 2) {
      from->Pause();
      to->OnWritable([from] { from->Resume(); });
    }
  };
  h.on_end = [to] { to->End(); };
  h.on_close = [to](const Status&) { to->Close(); };
  return h;
}

}  // namespace

std::shared_ptr<ByteStream> StreamOver(std::shared_ptr<Transport> transport, Peer peer,
                                       std::string out, std::string in) {
  auto core = std::make_shared<Core>(std::move(transport), std::move(peer), std::move(in));
  core->Attach(std::move(out));
  return std::make_shared<Handle>(std::move(core));
}

void Dial(IoThread& io, Endpoint to, Duration timeout, DialDone done) {
  Connect(io, {.to = {std::move(to)}, .timeout = timeout},
          [done = std::move(done)](Result<Connected> result) mutable {
            if (!result) return done(Fail(result.error()));
            done(StreamOver(std::move(result->transport),
                            {.address = result->to.address, .port = result->to.port}, {}, {}));
          });
}

std::shared_ptr<ByteStream> AdoptSocket(IoThread& io, int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  const Endpoint other = PeerOf(fd);
  auto transport = std::make_shared<Transport>(io, fd, nullptr, false);
  auto core = std::make_shared<Core>(transport, Peer{.address = other.address, .port = other.port},
                                     std::string());
  auto handle = std::make_shared<Handle>(core);
  io.Post([core, transport] {
    transport->Start(core.get());
    core->Attach({});
  });
  return handle;
}

void Splice(const std::shared_ptr<ByteStream>& a, const std::shared_ptr<ByteStream>& b) {
  a->Start(Pass(a, b));
  b->Start(Pass(b, a));
}

Result<std::unique_ptr<StreamListener>> StreamListener::Start(IoThread& io, const Endpoint& at,
                                                              Accepted accepted) {
  Endpoint bound = at;
  ASSIGN_OR_RETURN(const int fd, ListenOn(bound));
  return std::make_unique<Listener>(io, fd, std::move(bound), std::move(accepted));
}

}  // namespace sextant::net
