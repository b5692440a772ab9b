#include "kubelet/process_exchange.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

#include "base/quote.h"
#include "net/client.h"
#include "net/openssl.h"
#include "net/tls_context.h"

namespace sextant::kubelet {
namespace {

constexpr size_t kHeaderMax = 64 << 10;
constexpr size_t kBlock = 16 << 10;
constexpr size_t kFirstMax = 128;

// Over memory: what is to be sent and what came are moved by hand.
net::SslPtr NewTls(const std::string& host) {
  // As pkg/probe/http does: nothing is verified. Of all probes, on any thread.
  static const auto context = net::TlsClientContext::Make({.insecure_skip_verify = true});
  if (!context) return nullptr;
  net::SslPtr ssl = (*context)->NewSession(host, false);
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl.get());
  return ssl;
}

class ExchangeImpl : public Exchange,
                     private net::ClientSession::Events,
                     public std::enable_shared_from_this<ExchangeImpl> {
 public:
  ExchangeImpl(FdLoop& loop, Fd socket, ExchangePlan plan, std::function<void(ExchangeAnswer)> done)
      : loop_(loop), socket_(std::move(socket)), plan_(std::move(plan)), done_(std::move(done)) {}
  ~ExchangeImpl() override { loop_.Unwatch(watch_); }

  void Start() {
    session_ = plan_.http2 ? net::NewH2ClientSession(kHeaderMax, *this)
                           : net::NewH1ClientSession(kHeaderMax, *this);
    session_->Submit(plan_.head, plan_.body);
    if (plan_.tls) ssl_ = NewTls(plan_.host);
    watch_ = loop_.Watch(socket_.get(), EPOLLIN | EPOLLOUT, [weak = weak_from_this()](uint32_t) {
      if (const auto self = weak.lock()) self->Progress();
    });
  }
  bool heard() const override { return answer_.heard; }

 private:
  void OnHeaders(net::StreamId, int status, net::Headers headers) override {
    answer_.status = status;
    answer_.headers = std::move(headers);
  }
  void OnTrailers(net::StreamId, net::Headers trailers) override {
    answer_.trailers = std::move(trailers);
  }
  void OnData(net::StreamId, std::string_view bytes) override {
    answer_.body += bytes.substr(0, plan_.max_body - answer_.body.size());
    enough_ |= answer_.body.size() == plan_.max_body;
  }
  void OnDone(net::StreamId, Status status, bool) override {
    if (!status && answer_.error.empty()) answer_.error = status.error().message;
    enough_ = true;
  }

  void Progress() {
    const auto self = shared_from_this();
    do {
      if (!Send()) return Finish();
    } while (Receive() && !enough_);
    if (enough_) return Finish();
    loop_.Modify(watch_, EPOLLIN | (out_.empty() ? 0U : EPOLLOUT));
  }

  // False: the connection is broken.
  bool Send() {
    session_->Take(plain_, kBlock);
    if (!ssl_) {
      out_ += std::exchange(plain_, {});
    } else if (!Encrypt()) {
      return false;
    }
    while (!out_.empty()) {
      const ssize_t n = send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (n < 0) return Broken(strerror(errno));
      out_.erase(0, static_cast<size_t>(n));
    }
    return true;
  }

  bool Encrypt() {
    if (!plain_.empty()) {
      ERR_clear_error();
      const int n = SSL_write(ssl_.get(), plain_.data(), static_cast<int>(plain_.size()));
      if (n > 0) plain_.erase(0, static_cast<size_t>(n));
      if (n <= 0 && !Waits(n)) return BrokenTls();
    }
    std::array<char, kBlock> block;
    for (int n; (n = BIO_read(SSL_get_wbio(ssl_.get()), block.data(), kBlock)) > 0;) {
      out_.append(block.data(), static_cast<size_t>(n));
    }
    return true;
  }
  bool Waits(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  // True if something came, and more may.
  bool Receive() {
    std::array<char, kBlock> block;
    const ssize_t n = recv(socket_.get(), block.data(), block.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < 0) return !(enough_ = !Broken(strerror(errno)));
    if (n == 0) {
      if (answer_.status == 0)
        Broken(!answer_.heard ? "EOF" : NotHttp() ? Malformed() : "unexpected EOF");
      session_->End(net::TransportError("unexpected EOF"));
      enough_ = true;
      return false;
    }
    const std::string_view bytes(block.data(), static_cast<size_t>(n));
    if (first_.size() < kFirstMax) first_ += bytes.substr(0, kFirstMax - first_.size());
    answer_.heard = true;
    enough_ |= ssl_ ? !Decrypt(bytes) : !Feed(bytes);
    return true;
  }

  bool Decrypt(std::string_view bytes) {
    BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    std::array<char, kBlock> block;
    while (true) {
      ERR_clear_error();
      const int n = SSL_read(ssl_.get(), block.data(), kBlock);
      if (n <= 0) return Waits(n) || SSL_get_shutdown(ssl_.get()) != 0 || BrokenTls();
      if (!Feed({block.data(), static_cast<size_t>(n)})) return false;
    }
  }

  bool Feed(std::string_view bytes) {
    // nghttp2 would say goodbye to who does not begin with SETTINGS, and wait.
    constexpr size_t kFrameHead = 9, kType = 3;
    constexpr char kSettings = 4;
    if (plan_.http2 && first_.size() >= kFrameHead && first_[kType] != kSettings) {
      return Broken("no HTTP/2");
    }
    if (session_->Feed(bytes)) return true;
    answer_.error = Malformed();  // in place of the session's words
    return false;
  }
  bool NotHttp() const {
    return !ssl_ && !first_.starts_with("HTTP/") && first_.find('\n') != std::string::npos;
  }
  std::string Malformed() const {
    std::string text = "net/http: HTTP/1.x transport connection broken: malformed HTTP response";
    if (NotHttp()) text += " " + Quote(first_.substr(0, first_.find_first_of("\r\n")));
    return text;
  }

  bool Broken(std::string why) {
    if (answer_.error.empty()) answer_.error = std::move(why);
    return false;
  }
  bool BrokenTls() {
    if (first_.starts_with("HTTP/"))
      return Broken("http: server gave HTTP response to HTTPS client");
    return Broken("tls: " + net::TlsFailure(ssl_.get()));
  }

  void Finish() {
    loop_.Unwatch(std::exchange(watch_, 0));
    socket_.Reset();
    if (!answer_.error.empty()) answer_.status = 0;
    if (auto done = std::exchange(done_, nullptr)) done(std::move(answer_));
  }

  FdLoop& loop_;
  Fd socket_;
  const ExchangePlan plan_;
  std::function<void(ExchangeAnswer)> done_;
  std::unique_ptr<net::ClientSession> session_;
  net::SslPtr ssl_;
  std::string plain_;  // of the session, not encrypted yet
  std::string out_;    // for the socket
  ExchangeAnswer answer_;
  FdLoop::WatchId watch_ = 0;
  std::string first_;  // bytes that came
  bool enough_ = false;
};

}  // namespace

std::shared_ptr<Exchange> StartExchange(FdLoop& loop, Fd socket, ExchangePlan plan,
                                        std::function<void(ExchangeAnswer)> done) {
  auto exchange =
      std::make_shared<ExchangeImpl>(loop, std::move(socket), std::move(plan), std::move(done));
  exchange->Start();
  return exchange;
}

}  // namespace sextant::kubelet
