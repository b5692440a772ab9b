// One connected socket, with or without TLS, as bytes in and bytes out. Internal to net; I/O thread
// only.
//
// Output is pulled: whenever there is room Transport asks its owner to Produce more, so that an
// owner needs no queue of encoded bytes of its own. The owner keeps the Transport by shared_ptr;
// the Transport keeps its owner alive only while it calls it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/io.h"
#include "net/openssl.h"

namespace sextant::net {

class TransportOwner {
 public:
  virtual ~TransportOwner() = default;
  virtual std::shared_ptr<void> KeepAlive() = 0;
  // Connected, and the TLS handshake is done.
  virtual void OnOpen() = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  // The peer will send no more.
  virtual void OnEnd() = 0;
  // Append what is to be sent, about `room` bytes; nothing if there is nothing.
  virtual void Produce(std::string& out, size_t room) = 0;
  // Last of all, once: the socket is closed. An Error if that was not our own doing.
  virtual void OnClosed(Status why) = 0;
};

class Transport : public FdHandler, public std::enable_shared_from_this<Transport> {
 public:
  // Owns `fd` (non-blocking). `connecting`: connect(2) is still under way.
  Transport(IoThread& io, int fd, SslPtr ssl, bool connecting);
  ~Transport() override;

  void Start(TransportOwner* owner);
  // Gives the connection to another owner; nothing is lost in between.
  void SetOwner(TransportOwner* owner) { owner_ = owner; }
  // Produces and sends in this turn of the loop; calls are merged.
  void Flush();
  void SetReading(bool on);
  // After all that Produce gives: half close (FIN, close_notify).
  void EndWrites();
  // After all that Produce gives: OnClosed, then lingers for a moment so that the peer can read
  // what was sent although it has not stopped sending.
  void CloseWhenSent();
  void Close(Status why);

  bool open() const { return state_ == State::kOpen; }
  bool closed() const { return state_ == State::kClosed; }
  bool read_ended() const { return read_ended_; }
  SSL* ssl() const { return ssl_.get(); }
  IoThread& io() const { return io_; }
  // Bytes produced that the socket has not taken yet, and when it last took any.
  size_t unsent() const { return out_.size() - sent_; }
  Duration last_write() const { return last_write_; }
  Duration last_read() const { return last_read_; }

  void OnReady(bool readable, bool writable) override;
  void OnStop() override;

 private:
  enum class State { kConnecting, kHandshake, kOpen, kLingering, kClosed };
  struct IoResult {
    ssize_t size = 0;  // > 0: done; 0: the peer has ended; -1: would block; -2: failed
    std::string why;
  };

  void Advance(bool readable);
  void FinishConnect();
  void Handshake();
  void ReadSome();
  void WriteSome();
  void AfterSent();
  void Linger();
  void Interest();
  IoResult Receive(char* to, size_t max);
  IoResult Transmit(const char* from, size_t size);
  IoResult TlsResult(int rc);

  IoThread& io_;
  int fd_;
  SslPtr ssl_;
  TransportOwner* owner_ = nullptr;
  State state_;
  std::string out_;
  size_t sent_ = 0;  // of out_
  bool reading_ = true;
  bool watched_ = false;
  bool read_ended_ = false;
  bool blocked_on_write_ = false;
  bool flush_posted_ = false;
  bool read_posted_ = false;
  bool end_writes_ = false;
  bool writes_ended_ = false;
  bool close_when_sent_ = false;
  Duration last_write_{0};
  Duration last_read_{0};
};

}  // namespace sextant::net
