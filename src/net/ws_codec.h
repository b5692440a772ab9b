// WebSocket frames (RFC 6455 section 5) from bytes and to bytes; sans-IO. Internal to net. No
// extensions are ever agreed on, so reserved bits are an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/websocket.h"

namespace sextant::net {

enum class WsOp : uint8_t {
  kContinue = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

// One frame with FIN set. A client must mask: `mask` is then four random bytes.
std::string EncodeFrame(WsOp op, std::string_view payload, std::optional<uint32_t> mask);
// The payload of a Close frame.
std::string EncodeClose(WsClose code, std::string_view reason);

class WsDecoder {
 public:
  enum class Role { kServer, kClient };

  // One whole message, or one control frame.
  struct Message {
    WsOp op = WsOp::kBinary;
    std::string payload;
    // For kClose.
    WsClose code = WsClose::kNoStatus;
    std::string reason;
  };
  struct Failure {
    WsClose code;
    std::string reason;
  };

  WsDecoder(Role role, size_t max_message) : role_(role), max_message_(max_message) {}

  void Feed(std::string_view bytes) { in_.append(bytes); }
  // The next message; nothing if more bytes are needed. After a failure: close the connection.
  std::expected<std::optional<Message>, Failure> Next();

 private:
  struct Frame {
    WsOp op;
    bool fin;
    uint64_t size;
    size_t header;  // bytes
    bool masked;
    uint32_t key;  // as it lies in memory
  };
  std::expected<std::optional<Frame>, Failure> Header() const;
  std::expected<std::optional<Message>, Failure> Take(const Frame& frame);
  std::expected<std::optional<Message>, Failure> Control(WsOp op, std::string payload) const;

  const Role role_;
  const size_t max_message_;
  std::string in_;
  size_t at_ = 0;
  std::optional<WsOp> partial_op_;  // a fragmented message is under way
  std::string partial_;
};

// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);

}  // namespace sextant::net
