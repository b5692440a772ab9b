// The two ends of an HTTP connection as state machines without sockets (sans-IO): bytes go in by
// Feed and come out by Take; requests and answers are events and calls. HTTP/1.1 and HTTP/2 look
// the same from here, so that server.cc and client.cc know neither. Internal to net.
//
// One thread. Event handlers may call any method of the session but Feed, Take and Sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http.h"
#include "net/server.h"

namespace sextant::net {

using StreamId = uint32_t;

// The bytes of a body that is being sent, asked for piece by piece.
class BodySource {
 public:
  struct Piece {
    size_t size = 0;
    bool end = false;     // this was the last
    bool broken = false;  // break the stream off
  };
  virtual ~BodySource() = default;
  // Copies up to `max` bytes to `to`. Nothing and no end: nothing yet, the owner calls Resume
  // later.
  virtual Piece Read(char* to, size_t max) = 0;
};

struct ResponseHead {
  int status = 200;
  Headers headers;
  std::optional<uint64_t> length;  // of the body, if it is known
};

struct ServerSessionOptions {
  ServerLimits limits;
  ErrorRenderer render_error = PlainError;
  // Unix sockets: clients send anything as :authority there.
  bool any_authority = false;
};

class ServerSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnRequest(StreamId id, Request request) = 0;
    // Of a stream told by OnRequest: its answer has been taken in full, or it is gone.
    virtual void OnStreamClosed(StreamId id) = 0;
  };

  virtual ~ServerSession() = default;
  // An Error ends the connection: close it after what Take still gives.
  virtual Status Feed(std::string_view bytes) = 0;
  // Appends to `out` until it holds about `room` bytes more, or until there is nothing.
  virtual void Take(std::string& out, size_t room) = 0;
  virtual void Respond(StreamId id, ResponseHead head, std::shared_ptr<BodySource> body) = 0;
  virtual void Resume(StreamId id) = 0;
  virtual void Reset(StreamId id) = 0;
  // Takes no further requests; the open ones may end.
  virtual void Shutdown() = 0;
  // To be called about once a second: enforces the time limits. An Error ends the connection.
  virtual Status Sweep() = 0;
  virtual bool wants_read() const { return true; }
  // Nothing further will come out or is worth reading: close.
  virtual bool finished() const = 0;
  // HTTP/1.1 only: answers 101 on stream `id`. After that Take gives the head, and `rest` holds
  // what the client has sent after its request. False if the session cannot do that.
  virtual bool Upgrade(StreamId id, const Headers& headers, std::string& rest) = 0;
};

struct ClientHead {
  std::string method;
  std::string target;
  std::string scheme;     // "https"
  std::string authority;  // "host:6443"
  Headers headers;
};

class ClientSession {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnHeaders(StreamId id, int status, Headers headers) = 0;
    virtual void OnData(StreamId id, std::string_view bytes) = 0;
    // HTTP/2: what comes after the body.
    virtual void OnTrailers(StreamId id, Headers trailers) { (void)id, (void)trailers; }
    // Last of a stream. With an Error the answer is incomplete; `unprocessed`: the server has
    // surely not acted on the request.
    virtual void OnDone(StreamId id, Status status, bool unprocessed) = 0;
  };

  virtual ~ClientSession() = default;
  virtual Status Feed(std::string_view bytes) = 0;
  // The server will send nothing more. Streams still open end with an Error.
  virtual void End(const Error& why) = 0;
  virtual void Take(std::string& out, size_t room) = 0;
  // How many more requests may be submitted now.
  virtual size_t capacity() const = 0;
  virtual StreamId Submit(ClientHead head, Buffer body) = 0;
  // No further event of this stream.
  virtual void Cancel(StreamId id) = 0;
  // Bytes of OnData have been used up: lets the server send as many more.
  virtual void Consume(StreamId id, size_t bytes) = 0;
  virtual size_t open_streams() const = 0;
  // No further requests can be submitted, ever.
  virtual bool closing() const = 0;
  // Asks for a sign of life; whatever comes in is one.
  virtual void Ping() {}
  // After an answer of 101: what the server has sent after it.
  virtual std::string TakeRest() { return {}; }
};

std::unique_ptr<ServerSession> NewH1ServerSession(const Clock& clock, ServerSessionOptions options,
                                                  ServerSession::Events& events);
std::unique_ptr<ServerSession> NewH2ServerSession(const Clock& clock, ServerSessionOptions options,
                                                  ServerSession::Events& events);
std::unique_ptr<ClientSession> NewH1ClientSession(size_t max_header_bytes,
                                                  ClientSession::Events& events);
std::unique_ptr<ClientSession> NewH2ClientSession(size_t max_header_bytes,
                                                  ClientSession::Events& events);

// The client's first bytes on an HTTP/2 connection (RFC 9113 section 3.4).
inline constexpr std::string_view kH2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A body that is all there.
class WholeBody : public BodySource {
 public:
  explicit WholeBody(Buffer bytes) : bytes_(std::move(bytes)) {}
  Piece Read(char* to, size_t max) override;
  bool all_read() const { return at_ == (bytes_ ? bytes_->size() : 0); }

 private:
  Buffer bytes_;
  size_t at_ = 0;
};

}  // namespace sextant::net
