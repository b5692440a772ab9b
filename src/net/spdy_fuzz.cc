#include <fmt/format.h>

#include "base/check.h"
#include "base/fuzz.h"
#include "net/spdy_codec.h"

namespace sextant::net {
namespace {

std::string Describe(const SpdyFrame& frame) {
  std::string log =
      fmt::format("\n{} {} {} {}", static_cast<int>(frame.type), frame.id, frame.fin, frame.status);
  for (const Header& header : frame.headers)
    log += fmt::format("|{}={}", header.name, header.value);
  return log;
}

// What was read, whichever pieces it came in: pieces of a data frame are one again.
std::string Read(std::string_view input, size_t piece) {
  SpdyDecoder decoder;
  std::string log;
  bool in_data = false;
  while (!input.empty()) {
    decoder.Feed(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
    for (;;) {
      const auto next = decoder.Next();
      if (!next) return log + "\nbroken";
      if (!*next) break;
      const SpdyFrame& frame = **next;
      if (frame.type != SpdyType::kData) {
        in_data = false;
        log += Describe(frame);
        continue;
      }
      if (!in_data) log += fmt::format("\ndata {} ", frame.id);
      log += frame.data;
      if (frame.fin) log += " fin";
      in_data = !frame.fin;
    }
  }
  return log;
}

}  // namespace

FUZZ_TARGET(spdy) {
  const std::string whole = Read(input, SIZE_MAX);
  CHECK(Read(input, 7) == whole);
  // What one side encodes the other reads.
  const std::string text(input.substr(0, 1024));
  SpdyEncoder encoder;
  SpdyDecoder decoder;
  decoder.Feed(encoder.SynStream(1, {{"streamtype", text}}, false) +
               SpdyEncoder::Data(1, text, true));
  const auto head = decoder.Next();
  CHECK(head && *head && (*head)->type == SpdyType::kSynStream);
  const auto data = decoder.Next();
  CHECK(data && *data && (*data)->fin && (*data)->data == text);
}

}  // namespace sextant::net
