#include "net/ws_codec.h"

#include <cstring>

#include "base/base64.h"
#include "base/utf8.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxControl = 125;
constexpr size_t kKeptCapacity = 16 << 10;

void Mask(char* data, size_t size, uint32_t key) {
  char bytes[4];
  std::memcpy(bytes, &key, 4);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(data[i] ^ bytes[i & 3]);
}

bool IsControl(WsOp op) { return op >= WsOp::kClose; }

bool IsCloseCode(uint16_t code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

std::unexpected<WsDecoder::Failure> Bad(const char* reason,
                                        WsClose code = WsClose::kProtocolError) {
  return std::unexpected(WsDecoder::Failure{code, reason});
}

}  // namespace

std::string EncodeFrame(WsOp op, std::string_view payload, std::optional<uint32_t> mask) {
  std::string out;
  out.reserve(payload.size() + 14);
  const char mask_bit = mask ? static_cast<char>(0x80) : '\0';
  const size_t size = payload.size();
  out += static_cast<char>(0x80 | static_cast<uint8_t>(op));
  const auto put = [&](int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
      out += static_cast<char>(static_cast<uint64_t>(size) >> shift & 255);
    }
  };
  if (size < 126) {
    out += static_cast<char>(mask_bit | static_cast<char>(size));
  } else if (size <= 0xffff) {
    out += static_cast<char>(mask_bit | 126);
    put(2);
  } else {
    out += static_cast<char>(mask_bit | 127);
    put(8);
  }
  if (mask) {
    char key[4];
    std::memcpy(key, &*mask, 4);
    out.append(key, 4);
  }
  const size_t start = out.size();
  out += payload;
  if (mask) Mask(out.data() + start, size, *mask);
  return out;
}

std::string EncodeClose(WsClose code, std::string_view reason) {
  if (code == WsClose::kNoStatus || code == WsClose::kAbnormal) return {};
  const auto number = static_cast<uint16_t>(code);
  std::string out{static_cast<char>(number >> 8), static_cast<char>(number & 255)};
  reason = reason.substr(0, kMaxControl - 2);
  while (!reason.empty() && !IsUtf8(reason)) reason.remove_suffix(1);  // cut within a character
  out += reason;
  return out;
}

std::expected<std::optional<WsDecoder::Frame>, WsDecoder::Failure> WsDecoder::Header() const {
  const std::string_view in = std::string_view(in_).substr(at_);
  if (in.size() < 2) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(in[i]); };
  Frame f{};
  f.fin = (byte(0) & 0x80) != 0;
  if ((byte(0) & 0x70) != 0) return Bad("a reserved bit is set");
  const uint8_t op = byte(0) & 15;
  if (op > 10 || (op > 2 && op < 8)) return Bad("unknown opcode");
  f.op = static_cast<WsOp>(op);
  f.masked = (byte(1) & 0x80) != 0;
  if (f.masked != (role_ == Role::kServer)) return Bad("wrong masking");
  f.size = byte(1) & 127;
  const size_t extra = f.size == 126 ? 2 : f.size == 127 ? 8 : 0;
  f.header = 2 + extra + (f.masked ? 4 : 0);
  if (IsControl(f.op) && (extra != 0 || !f.fin)) return Bad("bad control frame");
  if (in.size() < f.header) return std::nullopt;
  if (extra != 0) {
    f.size = 0;
    for (size_t i = 0; i < extra; ++i) f.size = f.size << 8 | byte(2 + i);
    if (f.size < (extra == 2 ? 126u : 65536u) || f.size >> 63 != 0) return Bad("bad length");
  }
  if (f.size > max_message_ - std::min(max_message_, partial_.size())) {
    return Bad("the message is too large", WsClose::kTooBig);
  }
  if (f.masked) std::memcpy(&f.key, in.data() + 2 + extra, 4);
  return f;
}

std::expected<std::optional<WsDecoder::Message>, WsDecoder::Failure> WsDecoder::Next() {
  while (true) {
    const auto header = Header();
    if (!header) return std::unexpected(header.error());
    if (!*header || in_.size() - at_ < (*header)->header + (*header)->size) {
      in_.erase(0, at_);
      at_ = 0;
      if (in_.empty() && in_.capacity() > kKeptCapacity) std::string().swap(in_);
      return std::nullopt;
    }
    auto message = Take(**header);
    if (!message || *message) return message;
  }
}

std::expected<std::optional<WsDecoder::Message>, WsDecoder::Failure> WsDecoder::Take(
    const Frame& frame) {
  std::string payload = in_.substr(at_ + frame.header, static_cast<size_t>(frame.size));
  at_ += frame.header + static_cast<size_t>(frame.size);
  if (frame.masked) Mask(payload.data(), payload.size(), frame.key);
  if (IsControl(frame.op)) return Control(frame.op, std::move(payload));
  if (frame.op == WsOp::kContinue) {
    if (!partial_op_) return Bad("a continuation of nothing");
    partial_ += payload;
  } else {
    if (partial_op_) return Bad("a message within a message");
    partial_op_ = frame.op;
    partial_ = std::move(payload);
  }
  if (!frame.fin) return std::nullopt;
  Message out{.op = *partial_op_, .payload = std::exchange(partial_, {})};
  partial_op_.reset();
  if (out.op == WsOp::kText && !IsUtf8(out.payload)) {
    return Bad("text that is not UTF-8", WsClose::kBadText);
  }
  return out;
}

std::expected<std::optional<WsDecoder::Message>, WsDecoder::Failure> WsDecoder::Control(
    WsOp op, std::string payload) const {
  Message out{.op = op, .payload = std::move(payload)};
  if (op != WsOp::kClose || out.payload.empty()) return out;
  if (out.payload.size() == 1) return Bad("bad close frame");
  const auto code = static_cast<uint16_t>(static_cast<uint8_t>(out.payload[0]) << 8 |
                                          static_cast<uint8_t>(out.payload[1]));
  out.reason = out.payload.substr(2);
  if (!IsCloseCode(code)) return Bad("bad close code");
  if (!IsUtf8(out.reason)) return Bad("a close reason that is not UTF-8", WsClose::kBadText);
  out.code = static_cast<WsClose>(code);
  return out;
}

std::string WebSocketAccept(std::string_view key) {
  return Base64(Sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

}  // namespace sextant::net
