#include "api/protobuf.h"
#include "api/registry.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

// Two bytes choose the message, the rest is the object. What was decoded and encoded is a fixed
// point.
FUZZ_TARGET(protobuf) {
  fuzz::Bytes bytes(input);
  const std::span<const Message> messages = BuiltinMessages();
  const size_t which = static_cast<size_t>(bytes.Byte()) * 256 + bytes.Byte();
  const Message& message = messages[which % messages.size()];
  const TypeMeta meta{"v1", "Anything"};
  const Result<Object> object = DecodeProtobuf(bytes.Rest(), message, meta);
  if (!object) return;
  std::string raw;
  EncodeProtobufRaw(object->root(), message, raw);
  const Result<Object> again = DecodeProtobuf(raw, message, meta);
  CHECK(again.has_value());
  CHECK(Equal(object->root(), again->root()));
  std::string twice;
  EncodeProtobufRaw(again->root(), message, twice);
  CHECK(raw == twice);
}

FUZZ_TARGET(protobuf_envelope) {
  if (const Result<ProtobufEnvelope> envelope = OpenProtobuf(input)) {
    CHECK(envelope->raw.empty() ||
          (envelope->raw.data() >= input.data() &&
           envelope->raw.data() + envelope->raw.size() <= input.data() + input.size()));
  }
  if (const Result<WatchFrame> frame = OpenWatchFrame(input)) {
    std::string out;
    AppendWatchFrame(frame->type, frame->body, out);
    const Result<WatchFrame> again = OpenWatchFrame(std::string_view(out).substr(4));
    CHECK(again.has_value());
    CHECK(again->type == frame->type);
    CHECK(again->body == frame->body);
  }
}

}  // namespace sextant::api
