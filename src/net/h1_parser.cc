#include "net/h1_parser.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "base/ascii.h"

namespace sextant::net {
namespace {

constexpr size_t kMaxChunkLine = 256;
constexpr size_t kMaxHeaders = 500;

std::unexpected<Error> Bad(std::string_view why, int code = 400) {
  return Fail(Error{.code = code, .message = std::string(why)});
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsTarget(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') return false;
  }
  return true;
}

// "HTTP/1.0" or "HTTP/1.1"; -1 for another 1.x or nonsense, -2 for another version.
int MinorVersion(std::string_view text) {
  if (text == "HTTP/1.1") return 1;
  if (text == "HTTP/1.0") return 0;
  return text.starts_with("HTTP/") && text.size() == 8 ? -2 : -1;
}

bool IsDecimal(std::string_view text, uint64_t& value) {
  if (text.empty()) return false;
  for (char c : text) {
    if (c < '0' || c > '9') return false;  // from_chars would take no sign, but be plain
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool IsTokenChar(char c) {
  return IsAlphanumeric(c) || (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

bool IsToken(std::string_view text) {
  for (char c : text) {
    if (!IsTokenChar(c)) return false;
  }
  return !text.empty();
}

bool IsFieldValue(std::string_view text) {
  for (char c : text) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f') return false;
  }
  return true;
}

void H1Parser::Reset() {
  state_ = State::kHead;
  head_.clear();
  left_ = body_size_ = 0;
  trailer_bytes_ = 0;
}

Result<size_t> H1Parser::Feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && state_ != State::kComplete) {
    const std::string_view rest = bytes.substr(used);
    Result<size_t> step = size_t{0};
    switch (state_) {
      case State::kHead:
        step = FeedHead(rest);
        break;
      case State::kFixed:
      case State::kChunkData:
        step = static_cast<size_t>(std::min<uint64_t>(left_, rest.size()));
        left_ -= *step;
        events_.OnBody(rest.substr(0, *step));
        if (left_ == 0) state_ = state_ == State::kFixed ? State::kComplete : State::kChunkEnd;
        break;
      case State::kUntilEnd:
        step = rest.size();
        if (Status s = Count(rest.size()); !s) {
          step = Fail(s.error());
        } else {
          events_.OnBody(rest);
        }
        break;
      case State::kChunkSize:
      case State::kChunkEnd:
      case State::kTrailer:
        step = FeedLine(rest);
        break;
      case State::kComplete:
      case State::kFailed:
        return Bad("bytes after a bad message");
    }
    if (!step) {
      state_ = State::kFailed;
      return step;
    }
    used += *step;
  }
  return used;
}

Status H1Parser::End() {
  if (state_ == State::kUntilEnd) {
    state_ = State::kComplete;
    return {};
  }
  if (state_ == State::kComplete || untouched()) return {};
  return Bad("the connection ended within a message");
}

Result<size_t> H1Parser::FeedHead(std::string_view bytes) {
  // One empty line before a request is passed over (RFC 9112 section 2.2), however it is cut.
  if (side_ == Side::kRequests) {
    if (head_.empty() && bytes.starts_with("\r\n")) return size_t{2};
    if (head_ == "\r" && bytes.starts_with("\n")) {
      head_.clear();
      return size_t{1};
    }
  }
  const size_t old = head_.size();
  const size_t room = limits_.max_header_bytes + 4 - std::min(old, limits_.max_header_bytes + 4);
  const size_t take = std::min(room, bytes.size());
  head_.append(bytes.substr(0, take));
  const size_t end = head_.find("\r\n\r\n", old < 3 ? 0 : old - 3);
  if (end == std::string::npos) {
    if (take < bytes.size() || head_.size() > limits_.max_header_bytes) {
      return Bad("the request header is too large", 431);
    }
    return take;
  }
  const size_t used = end + 4 - old;
  head_.resize(end + 2);  // each line with its CRLF
  RETURN_IF_ERROR(ParseHead());
  head_.clear();
  return used;
}

Status H1Parser::ParseHead() {
  const std::string_view all = head_;
  const size_t line_end = all.find("\r\n");
  H1Head head;
  RETURN_IF_ERROR(side_ == Side::kRequests ? ParseRequestLine(all.substr(0, line_end), head)
                                           : ParseStatusLine(all.substr(0, line_end), head));
  RETURN_IF_ERROR(ParseHeaderLines(all.substr(line_end + 2), head.headers));
  head.keep_alive = head.minor == 1 ? !head.headers.HasToken("connection", "close")
                                    : head.headers.HasToken("connection", "keep-alive");
  if (side_ == Side::kRequests) {
    const size_t hosts = head.headers.GetAll("host").size();
    if (hosts > 1) return Bad("too many Host headers");
    if (hosts == 0 && head.minor == 1) return Bad("missing required Host header");
  }
  // The body's form must be sound before the message counts for anything.
  RETURN_IF_ERROR(DecideBody(head));
  const State body_state = state_;
  if (!events_.OnHead(head)) {
    state_ = State::kComplete;
  } else {
    state_ = body_state;
  }
  return {};
}

Status H1Parser::ParseRequestLine(std::string_view line, H1Head& head) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Bad("malformed request line");
  head.method = std::string(line.substr(0, first));
  std::string_view target = line.substr(first + 1, last - first - 1);
  head.minor = MinorVersion(line.substr(last + 1));
  if (head.minor == -2) return Bad("unsupported protocol version", 505);
  if (head.minor < 0 || !IsToken(head.method) || !IsTarget(target)) {
    return Bad("malformed request line");
  }
  if (head.method == "CONNECT") return Bad("CONNECT is not supported", 501);
  if (target.front() != '/') {
    // The absolute form that proxies are sent; its authority is checked like any other header's.
    const size_t scheme = target.find("://");
    const size_t path =
        scheme == std::string_view::npos ? std::string_view::npos : target.find('/', scheme + 3);
    if (target == "*" && head.method == "OPTIONS") {
    } else if (path == std::string_view::npos) {
      return Bad("malformed request target");
    } else {
      target = target.substr(path);
    }
  }
  head.target = std::string(target);
  return {};
}

Status H1Parser::ParseStatusLine(std::string_view line, H1Head& head) {
  uint64_t status = 0;
  if (line.size() < 12 || line[8] != ' ' || !IsDecimal(line.substr(9, 3), status) ||
      (line.size() > 12 && line[12] != ' ') || status < 100) {
    return Bad("malformed status line");
  }
  head.minor = MinorVersion(line.substr(0, 8));
  if (head.minor < 0) return Bad("unsupported protocol version in the response");
  head.status = static_cast<int>(status);
  return {};
}

Status H1Parser::ParseHeaderLines(std::string_view lines, Headers& headers) {
  while (!lines.empty()) {
    const size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Bad("malformed header");  // also folded lines and blanks before ':'
    }
    const std::string_view value = Trim(line.substr(colon + 1));
    if (!IsFieldValue(value)) return Bad("malformed header value");
    headers.Add(line.substr(0, colon), value);
    if (headers.size() > kMaxHeaders) return Bad("too many headers", 431);
  }
  return {};
}

Status H1Parser::DecideBody(const H1Head& head) {
  const auto lengths = head.headers.GetAll("content-length");
  const auto codings = head.headers.GetAll("transfer-encoding");
  const bool no_body =
      side_ == Side::kResponses && (head.status < 200 || head.status == 204 || head.status == 304);
  if (!codings.empty()) {
    if (!lengths.empty()) return Bad("both Content-Length and Transfer-Encoding");
    if (head.minor == 0) return Bad("Transfer-Encoding in HTTP/1.0");
    if (codings.size() > 1 || !EqualsIgnoreCase(codings[0], "chunked")) {
      return Bad("unsupported transfer encoding", 501);
    }
    state_ = no_body ? State::kComplete : State::kChunkSize;
    return {};
  }
  if (lengths.size() > 1) return Bad("too many Content-Length headers");
  if (lengths.size() == 1) {
    if (!IsDecimal(lengths[0], left_)) return Bad("bad Content-Length");
    if (no_body) left_ = 0;
    state_ = left_ == 0 ? State::kComplete : State::kFixed;
    return left_ == 0 ? Status() : Count(left_);
  }
  state_ = side_ == Side::kResponses && !no_body ? State::kUntilEnd : State::kComplete;
  return {};
}

Status H1Parser::Count(uint64_t more) {
  if (more > limits_.max_body - std::min(body_size_, limits_.max_body)) {
    return Fail(RequestEntityTooLarge(fmt::format("limit is {}", limits_.max_body)));
  }
  body_size_ += more;
  return {};
}

Result<size_t> H1Parser::FeedLine(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t take = end == std::string_view::npos ? bytes.size() : end + 1;
  head_.append(bytes.substr(0, take));
  const size_t limit = state_ == State::kTrailer ? limits_.max_header_bytes : kMaxChunkLine;
  if (head_.size() > limit) return Bad("a chunk header is too large");
  if (end == std::string_view::npos) return take;
  if (!head_.ends_with("\r\n") || head_.find('\r') != head_.size() - 2) {
    return Bad("malformed line in a chunked body");
  }
  head_.resize(head_.size() - 2);
  RETURN_IF_ERROR(OnLine());
  head_.clear();
  return take;
}

Status H1Parser::OnLine() {
  if (state_ == State::kChunkEnd) {
    if (!head_.empty()) return Bad("malformed chunk");
    state_ = State::kChunkSize;
    return {};
  }
  if (state_ == State::kChunkSize) return ParseChunkSize(head_);
  if (head_.empty()) {
    state_ = State::kComplete;
    return {};
  }
  // Trailers are read and dropped.
  trailer_bytes_ += head_.size();
  if (trailer_bytes_ > limits_.max_header_bytes) return Bad("the trailer is too large", 431);
  Headers dropped;
  head_ += "\r\n";
  return ParseHeaderLines(head_, dropped);
}

Status H1Parser::ParseChunkSize(std::string_view line) {
  // Chunk extensions mean nothing here; they are passed over.
  const std::string_view digits = Trim(line.substr(0, line.find(';')));
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  if (digits.empty() || digits.size() > 15 || error != std::errc{} ||
      end != digits.data() + digits.size() || !IsFieldValue(line)) {
    return Bad("bad chunk size");
  }
  if (line.front() == ' ' || line.front() == '\t' || digits.front() == '-') {
    return Bad("bad chunk size");
  }
  RETURN_IF_ERROR(Count(size));
  left_ = size;
  state_ = size == 0 ? State::kTrailer : State::kChunkData;
  return {};
}

}  // namespace sextant::net
