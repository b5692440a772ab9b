// One request being answered: what ResponseWriter's callers say, from any thread, until the
// connection takes it on the I/O thread. Internal to net.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "net/http.h"
#include "net/io.h"
#include "net/piece_queue.h"
#include "net/session.h"

namespace sextant::net {

class Exchange;

class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;
  // There is something to take; on the I/O thread.
  virtual void OnExchangeReady(Exchange& exchange) = 0;
};

class Exchange : public BodySource, public std::enable_shared_from_this<Exchange> {
 public:
  using WebSocketDone = std::move_only_function<void(std::shared_ptr<WebSocket>)>;
  using StreamDone = std::move_only_function<void(std::shared_ptr<ByteStream>)>;

  // What the handler wants and the connection has not yet done.
  struct Wish {
    std::optional<ResponseHead> head;  // begin the answer
    bool streaming = false;
    bool abort = false;
    // 101, then one of the two.
    bool upgrade = false;
    Headers upgrade_headers;
    std::string protocol;
    WebSocketDone web_socket;
    StreamDone stream;
  };

  Exchange(std::shared_ptr<Executor> io, std::weak_ptr<ExchangeHost> host, StreamId id,
           size_t max_buffer)
      : io_(std::move(io)), host_(std::move(host)), id_(id), max_buffer_(max_buffer) {}

  // The handler's end; `live` counts those not yet dropped.
  static std::shared_ptr<ResponseWriter> NewWriter(std::shared_ptr<Exchange> exchange,
                                                   std::shared_ptr<std::atomic<int>> live);

  // I/O thread.
  StreamId id() const { return id_; }
  Wish TakeWish();
  Piece Read(char* to, size_t max) override;
  void Close();  // nothing more can be sent

 private:
  class Writer;
  enum class Phase { kOpen, kStreaming, kFinished };

  // All with mutex_ held.
  void Notify();
  void Run(std::vector<Task>& tasks);

  const std::shared_ptr<Executor> io_;
  const std::weak_ptr<ExchangeHost> host_;
  const StreamId id_;
  const size_t max_buffer_;
  std::mutex mutex_;
  // All below guarded by mutex_.
  Phase phase_ = Phase::kOpen;
  bool closed_ = false;
  bool notified_ = false;
  Wish wish_;
  PieceQueue pieces_;
  bool end_ = false;  // nothing follows what is in pieces_
  std::vector<Task> on_closed_;
  std::vector<Task> on_writable_;
};

}  // namespace sextant::net
