#include "base/check.h"
#include "base/fuzz.h"
#include "base/utf8.h"
#include "net/ws_codec.h"

namespace sextant::net {
namespace {

std::string Read(WsDecoder::Role role, std::string_view input, size_t piece) {
  WsDecoder decoder(role, 4096);
  std::string log;
  while (!input.empty()) {
    decoder.Feed(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
    for (;;) {
      const auto next = decoder.Next();
      if (!next) return log + fmt::format("failure {}", static_cast<int>(next.error().code));
      if (!*next) break;
      const WsDecoder::Message& message = **next;
      CHECK(message.payload.size() <= 4096);
      if (message.op == WsOp::kText) CHECK(IsUtf8(message.payload));
      log += fmt::format("{} {} {} {}|", static_cast<int>(message.op), message.payload,
                         static_cast<int>(message.code), message.reason);
    }
  }
  return log;
}

}  // namespace

FUZZ_TARGET(websocket) {
  for (const auto role : {WsDecoder::Role::kServer, WsDecoder::Role::kClient}) {
    const std::string whole = Read(role, input, SIZE_MAX);
    CHECK(Read(role, input, 1) == whole);
    CHECK(Read(role, input, 5) == whole);
  }
  // What one side encodes the other reads.
  const std::string_view payload = input.substr(0, 4096);
  WsDecoder decoder(WsDecoder::Role::kServer, 4096);
  decoder.Feed(EncodeFrame(WsOp::kBinary, payload, 0x12345678));
  const auto message = decoder.Next();
  CHECK(message && *message && (*message)->payload == payload);
}

}  // namespace sextant::net
