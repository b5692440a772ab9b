// HTTP/1.1 messages from bytes (RFC 9112), for both sides; sans-IO. Internal to net.
//
// Strict where leniency lets two readers see different messages (request smuggling): CRLF only, no
// folded headers, no blank before ':', never both Content-Length and Transfer-Encoding, one
// Content-Length, chunked the only coding, one Host.
//
//   H1Parser parser(H1Parser::Side::kRequests, limits, handler);
//   Result<size_t> used = parser.Feed(bytes);   // stops after a whole message
//   if (parser.complete()) { ...; parser.Reset(); }
//
// An Error's code is the HTTP status to answer with (400, 413, 431, 501, 505).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace sextant::net {

struct H1Head {
  std::string method;  // requests
  std::string target;
  int status = 0;  // responses
  int minor = 1;   // HTTP/1.minor
  Headers headers;
  bool keep_alive = true;  // what version and Connection say
};

class H1Parser {
 public:
  enum class Side { kRequests, kResponses };

  struct Limits {
    size_t max_header_bytes = 64 << 10;
    uint64_t max_body = UINT64_MAX;
  };

  class Events {
   public:
    virtual ~Events() = default;
    // A response without a body whatever its headers say (to HEAD, or 101): return false.
    virtual bool OnHead(H1Head& head) = 0;
    virtual void OnBody(std::string_view bytes) = 0;
  };

  H1Parser(Side side, Limits limits, Events& events)
      : side_(side), limits_(limits), events_(events) {}

  // Takes bytes up to the end of the present message; returns how many. After an Error only Reset.
  Result<size_t> Feed(std::string_view bytes);
  // The peer will send nothing more: completes a response that lasts until then.
  Status End();
  bool complete() const { return state_ == State::kComplete; }
  // Nothing of a message has been seen.
  bool untouched() const { return state_ == State::kHead && head_.empty(); }
  bool in_head() const { return state_ == State::kHead; }
  void Reset();

 private:
  enum class State {
    kHead,
    kFixed,
    kUntilEnd,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kComplete,
    kFailed
  };

  Result<size_t> FeedHead(std::string_view bytes);
  Result<size_t> FeedLine(std::string_view bytes);  // chunk sizes and trailers
  Status OnLine();
  Status ParseHead();
  Status ParseRequestLine(std::string_view line, H1Head& head);
  Status ParseStatusLine(std::string_view line, H1Head& head);
  Status ParseHeaderLines(std::string_view lines, Headers& headers);
  Status DecideBody(const H1Head& head);
  Status ParseChunkSize(std::string_view line);
  Status Count(uint64_t more);

  const Side side_;
  const Limits limits_;
  Events& events_;
  State state_ = State::kHead;
  std::string head_;   // bytes of the head, then of one chunk line
  uint64_t left_ = 0;  // of a fixed body or a chunk
  uint64_t body_size_ = 0;
  size_t trailer_bytes_ = 0;
};

// True for the characters of an HTTP token (RFC 9110 section 5.6.2).
bool IsTokenChar(char c);
bool IsToken(std::string_view text);
// No control characters but tab.
bool IsFieldValue(std::string_view text);

}  // namespace sextant::net
