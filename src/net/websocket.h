// A WebSocket (RFC 6455), server or client side: whole messages in and out. Pings from the peer are
// answered here; with Handlers::ping_interval set we ping too, and a peer that is silent for
// kPingGrace intervals is taken for dead.
//
// Threads: every method from any thread; handlers run on the I/O thread, in order. Dropping the
// last reference closes the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"
#include "net/stream.h"

namespace sextant::net {

inline constexpr size_t kMaxWebSocketMessage = 16 << 20;
inline constexpr int kPingGrace = 12;

// RFC 6455 section 7.4.1.
enum class WsClose : uint16_t {
  kNormal = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kUnsupported = 1003,
  kNoStatus = 1005,  // never sent: the peer's Close had no code
  kAbnormal = 1006,  // never sent: the connection broke without a Close
  kBadText = 1007,
  kPolicy = 1008,
  kTooBig = 1009,
  kInternalError = 1011,
};

class WebSocket {
 public:
  struct Handlers {
    std::move_only_function<void(bool binary, std::string message)> on_message;
    // Last of all, once: the peer's code and reason, or kAbnormal.
    std::move_only_function<void(WsClose code, std::string reason)> on_close;
    Duration ping_interval{0};  // 0: no pings of our own
  };

  virtual ~WebSocket() = default;
  virtual void Start(Handlers handlers) = 0;  // once; nothing is read before
  // False, and nothing is taken, if it is closed or holds more than kMaxStreamBuffer.
  virtual bool Send(bool binary, std::string_view message) = 0;
  // Sends a Close after what is queued; the connection ends when the peer has answered.
  virtual void Close(WsClose code, std::string_view reason = {}) = 0;
  virtual size_t buffered_bytes() const = 0;
  virtual void OnWritable(Task task) = 0;
  virtual void Pause() = 0;  // back pressure: stops and resumes on_message; see ByteStream
  virtual void Resume() = 0;
  virtual const std::string& protocol() const = 0;  // the one agreed on; may be empty
};

// Passes messages both ways, with back pressure, until either side closes; passes the close on.
// Starts both. `up`, to which we are the client, is pinged: nobody else would notice that it is
// gone (a client pings us). `done`, if set, runs when both are closed.
void Proxy(const std::shared_ptr<WebSocket>& down, const std::shared_ptr<WebSocket>& up,
           Task done = {});

// The bytes of a stream carried in binary messages, as Kubernetes tunnels SPDY. It has no half
// close: End is Close.
std::shared_ptr<ByteStream> TunnelOver(std::shared_ptr<WebSocket> socket);

}  // namespace sextant::net
