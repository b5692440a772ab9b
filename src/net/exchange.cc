#include "net/exchange.h"

namespace sextant::net {

class Exchange::Writer final : public ResponseWriter {
 public:
  Writer(std::shared_ptr<Exchange> exchange, std::shared_ptr<std::atomic<int>> live)
      : x_(std::move(exchange)), live_(std::move(live)) {
    ++*live_;
  }
  ~Writer() override;

  using ResponseWriter::SendResponse;
  void SendResponse(int status, Headers headers, Buffer body) override;
  void StartStream(int status, Headers headers) override;
  bool Write(Buffer piece) override;
  void Finish() override;
  void Abort() override;
  size_t buffered_bytes() const override;
  bool closed() const override;
  void OnClosed(Task task) override;
  void OnWritable(Task task) override;
  void UpgradeWebSocket(std::string protocol, WebSocketDone done) override;
  void Hijack(Headers headers, StreamDone done) override;

 private:
  void Upgrade(Wish wish);

  const std::shared_ptr<Exchange> x_;
  const std::shared_ptr<std::atomic<int>> live_;
};

std::shared_ptr<ResponseWriter> Exchange::NewWriter(std::shared_ptr<Exchange> exchange,
                                                    std::shared_ptr<std::atomic<int>> live) {
  return std::make_shared<Writer>(std::move(exchange), std::move(live));
}

void Exchange::Notify() {
  if (notified_ || closed_) return;
  notified_ = true;
  io_->Post([self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->notified_ = false;
    }
    if (const auto host = self->host_.lock()) host->OnExchangeReady(*self);
  });
}

void Exchange::Run(std::vector<Task>& tasks) {
  for (Task& task : tasks) io_->Post(std::move(task));
  tasks.clear();
}

Exchange::Wish Exchange::TakeWish() {
  const std::lock_guard lock(mutex_);
  return std::exchange(wish_, {});
}

BodySource::Piece Exchange::Read(char* to, size_t max) {
  const std::lock_guard lock(mutex_);
  if (wish_.abort) return {.broken = true};
  const size_t n = pieces_.Read(to, max);
  if (!on_writable_.empty() && pieces_.bytes() <= max_buffer_ / 2) Run(on_writable_);
  return {.size = n, .end = end_ && pieces_.empty()};
}

void Exchange::Close() {
  WebSocketDone web_socket;
  StreamDone stream;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    pieces_.Clear();
    web_socket = std::move(wish_.web_socket);
    stream = std::move(wish_.stream);
    wish_ = {};
    Run(on_writable_);
    Run(on_closed_);
  }
  if (web_socket) web_socket(nullptr);
  if (stream) stream(nullptr);
}

Exchange::Writer::~Writer() {
  --*live_;
  bool begun = true;
  bool finished = true;
  {
    const std::lock_guard lock(x_->mutex_);
    begun = x_->phase_ != Phase::kOpen || x_->closed_;
    finished = x_->phase_ == Phase::kFinished;
  }
  if (!begun) {
    SendResponse(500, {{"content-type", "text/plain; charset=utf-8"}},
                 MakeBuffer("500 Internal Server Error: the request was not answered\n"));
  } else if (!finished) {
    Abort();
  }
}

void Exchange::Writer::SendResponse(int status, Headers headers, Buffer body) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->phase_ != Phase::kOpen) return;
  x_->phase_ = Phase::kFinished;
  if (x_->closed_) return;
  x_->wish_.head = ResponseHead{
      .status = status, .headers = std::move(headers), .length = body ? body->size() : 0};
  x_->pieces_.Push(std::move(body));
  x_->end_ = true;
  x_->Notify();
}

void Exchange::Writer::StartStream(int status, Headers headers) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->phase_ != Phase::kOpen) return;
  x_->phase_ = Phase::kStreaming;
  if (x_->closed_) return;
  x_->wish_.head = ResponseHead{.status = status, .headers = std::move(headers), .length = {}};
  x_->wish_.streaming = true;
  x_->Notify();
}

bool Exchange::Writer::Write(Buffer piece) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->closed_ || x_->phase_ != Phase::kStreaming) return false;
  const size_t held = x_->pieces_.bytes();
  if (held > 0 && piece && held + piece->size() > x_->max_buffer_) return false;
  x_->pieces_.Push(std::move(piece));
  x_->Notify();
  return true;
}

void Exchange::Writer::Finish() {
  const std::lock_guard lock(x_->mutex_);
  if (x_->phase_ != Phase::kStreaming) return;
  x_->phase_ = Phase::kFinished;
  x_->end_ = true;
  x_->Notify();
}

void Exchange::Writer::Abort() {
  const std::lock_guard lock(x_->mutex_);
  x_->phase_ = Phase::kFinished;
  x_->wish_.abort = true;
  x_->Notify();
}

size_t Exchange::Writer::buffered_bytes() const {
  const std::lock_guard lock(x_->mutex_);
  return x_->pieces_.bytes();
}

bool Exchange::Writer::closed() const {
  const std::lock_guard lock(x_->mutex_);
  return x_->closed_;
}

void Exchange::Writer::OnClosed(Task task) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->closed_) {
    x_->io_->Post(std::move(task));
  } else {
    x_->on_closed_.push_back(std::move(task));
  }
}

void Exchange::Writer::OnWritable(Task task) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->closed_ || x_->pieces_.bytes() <= x_->max_buffer_ / 2) {
    x_->io_->Post(std::move(task));
  } else {
    x_->on_writable_.push_back(std::move(task));
  }
}

void Exchange::Writer::UpgradeWebSocket(std::string protocol, WebSocketDone done) {
  Upgrade({.upgrade = true, .protocol = std::move(protocol), .web_socket = std::move(done)});
}

void Exchange::Writer::Hijack(Headers headers, StreamDone done) {
  Upgrade({.upgrade = true, .upgrade_headers = std::move(headers), .stream = std::move(done)});
}

void Exchange::Writer::Upgrade(Wish wish) {
  const std::lock_guard lock(x_->mutex_);
  if (x_->closed_ || x_->phase_ != Phase::kOpen) {
    x_->io_->Post([wish = std::move(wish)]() mutable {
      if (wish.web_socket) wish.web_socket(nullptr);
      if (wish.stream) wish.stream(nullptr);
    });
    return;
  }
  x_->phase_ = Phase::kFinished;
  x_->wish_ = std::move(wish);
  x_->Notify();
}

}  // namespace sextant::net
