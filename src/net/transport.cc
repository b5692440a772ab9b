#include "net/transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "net/client.h"
#include "net/tls_context.h"

namespace sextant::net {
namespace {

constexpr size_t kReadSize = 64 << 10;
// Reads and writes of one turn, so that one busy connection does not keep others waiting.
constexpr int kMaxReadsPerTurn = 16;
constexpr size_t kMaxWritePerTurn = 1 << 20;
constexpr size_t kProduceSize = 64 << 10;
constexpr size_t kMaxTlsWrite = 16 << 10;  // one TLS record
constexpr size_t kKeptOutCapacity = 4 << 10;
constexpr auto kLingerTime = std::chrono::seconds(1);

// A BIO over a socket like OpenSSL's own, but one that never raises SIGPIPE.
int BioWrite(BIO* bio, const char* data, int size) {
  const ssize_t n =
      send(*static_cast<int*>(BIO_get_data(bio)), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int BioRead(BIO* bio, char* data, int size) {
  const ssize_t n = recv(*static_cast<int*>(BIO_get_data(bio)), data, static_cast<size_t>(size), 0);
  BIO_clear_retry_flags(bio);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long BioCtrl(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_EOF:
      return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    case BIO_CTRL_FLUSH:
    case BIO_CTRL_DUP:
      return 1;
    default:
      return 0;
  }
}

// `fd` must outlive the BIO.
BIO* NewSocketBio(int* fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    CHECK(m != nullptr);
    BIO_meth_set_write(m, &BioWrite);
    BIO_meth_set_read(m, &BioRead);
    BIO_meth_set_ctrl(m, &BioCtrl);
    return m;
  }();
  BIO* bio = BIO_new(method);
  CHECK(bio != nullptr);
  BIO_set_data(bio, fd);
  BIO_set_init(bio, 1);
  return bio;
}

std::string ErrnoText(int error) { return std::strerror(error); }

}  // namespace

Transport::Transport(IoThread& io, int fd, SslPtr ssl, bool connecting)
    : io_(io),
      fd_(fd),
      ssl_(std::move(ssl)),
      state_(connecting ? State::kConnecting : State::kHandshake) {
  if (ssl_) {
    BIO* bio = NewSocketBio(&fd_);
    SSL_set_bio(ssl_.get(), bio, bio);
  }
}

Transport::~Transport() {
  if (fd_ < 0) return;
  if (watched_) io_.Unwatch(fd_);
  close(fd_);
}

void Transport::Start(TransportOwner* owner) {
  owner_ = owner;
  last_read_ = last_write_ = io_.clock().Monotonic();
  watched_ = true;
  io_.Watch(fd_, state_ != State::kConnecting, state_ == State::kConnecting, this);
  // A plain, connected socket is open at once; OnOpen still comes from the loop.
  if (state_ != State::kConnecting) {
    io_.Post([self = shared_from_this()] { self->OnReady(false, false); });
  }
}

void Transport::OnStop() { Close(Fail(TransportError("the I/O thread is stopping"))); }

void Transport::OnReady(bool readable, bool writable) {
  static_cast<void>(writable);
  const auto self = shared_from_this();
  const auto keep = owner_ == nullptr ? nullptr : owner_->KeepAlive();
  Advance(readable);
}

void Transport::Advance(bool readable) {
  blocked_on_write_ = false;
  if (state_ == State::kConnecting) FinishConnect();
  if (state_ == State::kHandshake) Handshake();
  if (state_ == State::kLingering) {
    std::array<char, 4096> rest;
    ssize_t n = 0;
    for (int i = 0; i < kMaxReadsPerTurn && n >= 0; ++i) {
      n = recv(fd_, rest.data(), rest.size(), 0);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return Close({});
    }
    return;
  }
  if (state_ == State::kOpen && readable) ReadSome();
  if (state_ == State::kOpen) WriteSome();
  Interest();
}

void Transport::FinishConnect() {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return Close(Fail(TransportError(ErrnoText(error))));
  state_ = State::kHandshake;
}

void Transport::Handshake() {
  if (ssl_) {
    ERR_clear_error();
    const int rc = SSL_do_handshake(ssl_.get());
    if (rc != 1) {
      IoResult r = TlsResult(rc);
      if (r.size == -1) return;
      if (r.size == 0) r.why = "the peer closed the connection during the TLS handshake";
      return Close(Fail(TransportError("TLS: " + r.why)));
    }
  }
  state_ = State::kOpen;
  owner_->OnOpen();
  // TLS may have read on: what it holds raises no event.
  if (state_ == State::kOpen && ssl_) ReadSome();
}

Transport::IoResult Transport::TlsResult(int rc) {
  const int saved_errno = errno;
  switch (SSL_get_error(ssl_.get(), rc)) {
    case SSL_ERROR_WANT_READ:
      return {-1, {}};
    case SSL_ERROR_WANT_WRITE:
      blocked_on_write_ = true;
      return {-1, {}};
    case SSL_ERROR_ZERO_RETURN:
      return {0, {}};
    case SSL_ERROR_SYSCALL:
      if (ERR_peek_error() == 0)
        return {-2, ErrnoText(saved_errno == 0 ? ECONNRESET : saved_errno)};
      [[fallthrough]];
    default:
      return {-2, TlsFailure(ssl_.get())};
  }
}

Transport::IoResult Transport::Receive(char* to, size_t max) {
  if (ssl_) {
    ERR_clear_error();
    const int rc = SSL_read(ssl_.get(), to, static_cast<int>(max));
    return rc > 0 ? IoResult{rc, {}} : TlsResult(rc);
  }
  const ssize_t n = recv(fd_, to, max, 0);
  if (n >= 0) return {n, {}};
  if (errno == EAGAIN || errno == EINTR) return {-1, {}};
  return {-2, ErrnoText(errno)};
}

Transport::IoResult Transport::Transmit(const char* from, size_t size) {
  if (ssl_) {
    ERR_clear_error();
    const int rc = SSL_write(ssl_.get(), from, static_cast<int>(std::min(size, kMaxTlsWrite)));
    return rc > 0 ? IoResult{rc, {}} : TlsResult(rc);
  }
  const ssize_t n = send(fd_, from, size, MSG_NOSIGNAL);
  if (n >= 0) return {n, {}};
  if (errno == EAGAIN || errno == EINTR) {
    blocked_on_write_ = true;
    return {-1, {}};
  }
  return {-2, ErrnoText(errno)};
}

void Transport::ReadSome() {
  // One buffer for all connections of the thread: what is read is used at once.
  thread_local std::array<char, kReadSize> buffer;
  for (int i = 0; reading_ && !read_ended_ && state_ == State::kOpen; ++i) {
    if (i == kMaxReadsPerTurn) {
      // TLS may hold bytes that raise no further event.
      if (ssl_ && !read_posted_) {
        read_posted_ = true;
        io_.Post([self = shared_from_this()] {
          self->read_posted_ = false;
          self->OnReady(true, false);
        });
      }
      return;
    }
    IoResult r = Receive(buffer.data(), buffer.size());
    if (r.size == -1) return;
    if (r.size == -2) return Close(Fail(TransportError(std::move(r.why))));
    last_read_ = io_.clock().Monotonic();
    const auto keep = owner_->KeepAlive();  // it may have changed since the turn began
    if (r.size == 0) {
      read_ended_ = true;
      owner_->OnEnd();
      if (writes_ended_) Close({});
      return;
    }
    const auto size = static_cast<size_t>(r.size);
    owner_->OnBytes({buffer.data(), size});
    // A short read from a plain socket has emptied it; the level trigger covers the rest.
    if (!ssl_ && size < buffer.size()) return;
  }
}

void Transport::Flush() {
  if (flush_posted_ || state_ == State::kClosed || state_ == State::kLingering) return;
  flush_posted_ = true;
  io_.Post([self = shared_from_this()] {
    self->flush_posted_ = false;
    if (self->state_ != State::kOpen) return;
    const auto keep = self->owner_->KeepAlive();
    if (!self->blocked_on_write_) self->WriteSome();
    self->Interest();
  });
}

void Transport::WriteSome() {
  size_t total = 0;
  while (state_ == State::kOpen && !writes_ended_) {
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
      last_write_ = io_.clock().Monotonic();  // nothing waits
      owner_->Produce(out_, kProduceSize);
      if (state_ != State::kOpen) return;
      if (out_.empty()) return AfterSent();
    }
    if (total >= kMaxWritePerTurn) {
      blocked_on_write_ = true;  // go on in the next turn
      return;
    }
    IoResult r = Transmit(out_.data() + sent_, out_.size() - sent_);
    if (r.size == -1) return;
    if (r.size <= -2 || r.size == 0) return Close(Fail(TransportError(std::move(r.why))));
    last_write_ = io_.clock().Monotonic();
    sent_ += static_cast<size_t>(r.size);
    total += static_cast<size_t>(r.size);
  }
}

void Transport::AfterSent() {
  if (out_.capacity() > kKeptOutCapacity) std::string().swap(out_);
  if (close_when_sent_) return Linger();
  if (end_writes_ && !writes_ended_) {
    writes_ended_ = true;
    if (ssl_) SSL_shutdown(ssl_.get());
    shutdown(fd_, SHUT_WR);
    if (read_ended_) Close({});
  }
}

void Transport::Linger() {
  if (ssl_) SSL_shutdown(ssl_.get());
  shutdown(fd_, SHUT_WR);
  state_ = State::kLingering;
  ssl_.reset();
  TransportOwner* owner = std::exchange(owner_, nullptr);
  if (read_ended_) {
    Close({});
  } else {
    // From here on the timer owns the transport.
    io_.After(kLingerTime, [self = shared_from_this()] { self->Close({}); });
    Interest();
  }
  owner->OnClosed({});
}

void Transport::Interest() {
  switch (state_) {
    case State::kClosed:
      return;
    case State::kConnecting:
      return io_.Change(fd_, false, true);
    case State::kHandshake:
      return io_.Change(fd_, !blocked_on_write_, blocked_on_write_);
    case State::kOpen:
      return io_.Change(fd_, reading_ && !read_ended_, blocked_on_write_);
    case State::kLingering:
      return io_.Change(fd_, true, false);
  }
}

void Transport::SetReading(bool on) {
  if (reading_ == on) return;
  reading_ = on;
  if (state_ != State::kOpen) return;
  Interest();
  if (on && ssl_) {  // it may hold bytes
    io_.Post([self = shared_from_this()] { self->OnReady(true, false); });
  }
}

void Transport::EndWrites() {
  end_writes_ = true;
  Flush();
}

void Transport::CloseWhenSent() {
  close_when_sent_ = true;
  if (state_ == State::kConnecting || state_ == State::kHandshake) return Close({});
  Flush();
}

void Transport::Close(Status why) {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  if (std::exchange(watched_, false)) io_.Unwatch(fd_);
  close(fd_);
  fd_ = -1;
  ssl_.reset();
  std::string().swap(out_);
  sent_ = 0;
  if (TransportOwner* owner = std::exchange(owner_, nullptr); owner != nullptr) {
    const auto keep = owner->KeepAlive();
    owner->OnClosed(std::move(why));
  }
}

}  // namespace sextant::net
