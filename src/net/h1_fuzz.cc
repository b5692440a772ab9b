#include "base/check.h"
#include "base/fuzz.h"
#include "net/h1_parser.h"

namespace sextant::net {
namespace {

// What a reader made of some bytes, as text.
class Seen : public H1Parser::Events {
 public:
  bool OnHead(H1Head& head) override {
    log += fmt::format("{} {} {} {} {}\n", head.method, head.target, head.status, head.minor,
                       head.keep_alive);
    for (const auto& [name, value] : head.headers) log += fmt::format("{}: {}\n", name, value);
    return head.status != 101;
  }
  void OnBody(std::string_view bytes) override { log += bytes; }

  std::string log;
};

// Reads messages one after another, in pieces of `piece` bytes.
std::string Read(H1Parser::Side side, std::string_view input, size_t piece) {
  Seen seen;
  H1Parser parser(side, {.max_header_bytes = 1024, .max_body = 4096}, seen);
  while (!input.empty()) {
    const Result<size_t> used = parser.Feed(input.substr(0, piece));
    if (!used) return seen.log + fmt::format("error {}", used.error().code);
    CHECK(*used <= input.size());
    CHECK(*used > 0 || parser.complete());
    input.remove_prefix(*used);
    if (!parser.complete()) continue;
    seen.log += "|";
    parser.Reset();
  }
  if (!parser.End()) seen.log += "cut off";
  return seen.log;
}

}  // namespace

// However the bytes are cut, the messages are the same (else two readers could be told apart).
FUZZ_TARGET(http1) {
  for (const auto side : {H1Parser::Side::kRequests, H1Parser::Side::kResponses}) {
    const std::string whole = Read(side, input, SIZE_MAX);
    CHECK(Read(side, input, 1) == whole);
    CHECK(Read(side, input, 7) == whole);
  }
}

}  // namespace sextant::net
