// The server's side of HTTP/1.1: one request at a time; pipelined ones wait.
#include <fmt/format.h>

#include "base/check.h"
#include "net/h1_parser.h"
#include "net/session.h"

namespace sextant::net {
namespace {

// Pipelined bytes kept while a request is being answered; then reading stops.
constexpr size_t kMaxPipelined = 64 << 10;
constexpr size_t kPieceSize = 16 << 10;

class H1ServerSession : public ServerSession, private H1Parser::Events {
 public:
  H1ServerSession(const Clock& clock, ServerSessionOptions options, ServerSession::Events& events)
      : clock_(clock),
        options_(std::move(options)),
        events_(events),
        parser_(H1Parser::Side::kRequests,
                {.max_header_bytes = options_.limits.max_header_bytes,
                 .max_body = options_.limits.max_body},
                *this),
        mark_(clock.Monotonic()) {}

  Status Feed(std::string_view bytes) override;
  void Take(std::string& out, size_t room) override;
  void Respond(StreamId id, ResponseHead head, std::shared_ptr<BodySource> body) override;
  void Resume(StreamId) override {}  // Take asks the body anyway
  void Reset(StreamId id) override;
  void Shutdown() override;
  Status Sweep() override;
  bool wants_read() const override { return in_.size() < kMaxPipelined; }
  bool finished() const override { return closing_ && !busy_ && out_.empty(); }
  bool Upgrade(StreamId id, const Headers& headers, std::string& rest) override;

 private:
  bool OnHead(H1Head& head) override;
  void OnBody(std::string_view bytes) override { request_.body.append(bytes); }

  void Process();
  void Refuse(const Error& error);
  void WriteHead(const ResponseHead& head);
  bool TakeBody(std::string& out, size_t room);  // false: nothing more for now
  void EndResponse();

  const Clock& clock_;
  const ServerSessionOptions options_;
  ServerSession::Events& events_;
  H1Parser parser_;
  std::string in_;   // not parsed yet
  std::string out_;  // heads and errors, sent before the body
  Request request_;  // being read
  StreamId id_ = 0;  // of the present request, told or not
  bool head_request_ = false;
  int minor_ = 1;
  bool keep_alive_ = true;
  bool expects_continue_ = false;
  bool busy_ = false;       // a request is with the handler
  bool answering_ = false;  // its answer has begun
  bool chunked_ = false;
  bool bodyless_ = false;
  std::shared_ptr<BodySource> body_;
  bool closing_ = false;
  Duration mark_;  // start of the present head or wait, or last byte of the present body
};

Status H1ServerSession::Feed(std::string_view bytes) {
  if (closing_ && !busy_) return {};  // refused: what still comes is of no interest
  if (!busy_ && (parser_.untouched() || !parser_.in_head())) mark_ = clock_.Monotonic();
  in_.append(bytes);
  Process();
  return {};
}

void H1ServerSession::Process() {
  size_t used = 0;
  while (!busy_ && !closing_ && used < in_.size()) {
    Result<size_t> step = parser_.Feed(std::string_view(in_).substr(used));
    if (!step) {
      Refuse(step.error());
      break;
    }
    used += *step;
    if (expects_continue_) {
      if (!parser_.complete()) {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      }
      expects_continue_ = false;
    }
    if (!parser_.complete()) continue;
    parser_.Reset();
    busy_ = true;
    answering_ = false;
    events_.OnRequest(++id_, std::exchange(request_, {}));
  }
  in_.erase(0, used);
  if (in_.empty() && in_.capacity() > kPieceSize) std::string().swap(in_);
}

bool H1ServerSession::OnHead(H1Head& head) {
  request_.method = std::move(head.method);
  request_.authority = std::string(head.headers.Get("host"));
  request_.headers = std::move(head.headers);
  request_.SetTarget(std::move(head.target));
  minor_ = head.minor;
  keep_alive_ = head.keep_alive;
  head_request_ = request_.method == "HEAD";
  expects_continue_ = minor_ == 1 && request_.headers.HasToken("expect", "100-continue");
  return true;
}

// Answers a bad message and ends the connection, since where the next one begins is unknown.
void H1ServerSession::Refuse(const Error& error) {
  const ErrorAnswer answer = options_.render_error(error);
  keep_alive_ = false;
  closing_ = true;
  WriteHead({.status = error.code, .headers = answer.headers, .length = answer.body.size()});
  out_ += answer.body;
  in_.clear();
}

void H1ServerSession::WriteHead(const ResponseHead& head) {
  bodyless_ = head_request_ || head.status < 200 || head.status == 204 || head.status == 304;
  chunked_ = false;
  fmt::format_to(std::back_inserter(out_), "HTTP/1.1 {} {}\r\n", head.status,
                 StatusText(head.status));
  for (const Header& h : head.headers) {
    if (h.name == "content-length" || h.name == "transfer-encoding" || h.name == "connection") {
      continue;
    }
    if (!IsToken(h.name) || !IsFieldValue(h.value)) continue;  // would split the response
    out_ += h.name;
    out_ += ": ";
    out_ += h.value;
    out_ += "\r\n";
  }
  if (head.status >= 200 && head.status != 204) {
    if (head.length) {
      fmt::format_to(std::back_inserter(out_), "content-length: {}\r\n", *head.length);
    } else if (minor_ == 1) {
      out_ += "transfer-encoding: chunked\r\n";
      chunked_ = !bodyless_;
    } else {
      keep_alive_ = false;  // the body lasts until the connection ends
    }
  }
  if (!keep_alive_) {
    out_ += "connection: close\r\n";
  } else if (minor_ == 0) {
    out_ += "connection: keep-alive\r\n";
  }
  out_ += "\r\n";
}

void H1ServerSession::Respond(StreamId id, ResponseHead head, std::shared_ptr<BodySource> body) {
  if (!busy_ || id != id_ || answering_) return;
  answering_ = true;
  if (closing_) keep_alive_ = false;
  WriteHead(head);
  if (!keep_alive_) closing_ = true;
  body_ = std::move(body);
}

void H1ServerSession::Take(std::string& out, size_t room) {
  const size_t limit = out.size() + room;
  while (out.size() < limit) {
    if (!out_.empty()) {
      out += out_;
      std::string().swap(out_);
      continue;
    }
    if (!answering_ || !TakeBody(out, limit - out.size())) return;
  }
}

bool H1ServerSession::TakeBody(std::string& out, size_t room) {
  if (bodyless_ || !body_) {
    EndResponse();
    return true;
  }
  const size_t max = std::min(std::max<size_t>(room, 1024), kPieceSize);
  char piece[kPieceSize];
  const BodySource::Piece got = body_->Read(piece, max);
  if (got.broken) {
    // The client sees a missing last chunk or a short body.
    out_.clear();
    closing_ = true;
    busy_ = answering_ = false;
    body_.reset();
    events_.OnStreamClosed(id_);
    return false;
  }
  if (got.size > 0) {
    if (chunked_) fmt::format_to(std::back_inserter(out), "{:x}\r\n", got.size);
    out.append(piece, got.size);
    if (chunked_) out += "\r\n";
  }
  if (!got.end) return got.size > 0;
  if (chunked_) out += "0\r\n\r\n";
  EndResponse();
  return true;
}

void H1ServerSession::EndResponse() {
  busy_ = answering_ = false;
  body_.reset();
  mark_ = clock_.Monotonic();
  events_.OnStreamClosed(id_);
  Process();
}

void H1ServerSession::Reset(StreamId id) {
  if (!busy_ || id != id_) return;
  closing_ = true;
  busy_ = answering_ = false;
  body_.reset();
  out_.clear();
  events_.OnStreamClosed(id);
}

void H1ServerSession::Shutdown() { closing_ = true; }

Status H1ServerSession::Sweep() {
  if (busy_ || closing_) return {};
  const Duration waited = clock_.Monotonic() - mark_;
  if (parser_.untouched()) {
    if (waited < options_.limits.idle_timeout) return {};
    closing_ = true;
    return {};
  }
  if (waited < options_.limits.header_timeout) return {};
  Refuse(Error{.code = 408, .message = "the request did not arrive in time"});
  return {};
}

bool H1ServerSession::Upgrade(StreamId id, const Headers& headers, std::string& rest) {
  if (!busy_ || id != id_ || answering_ || minor_ != 1) return false;
  out_ += "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n";
  for (const Header& h : headers) {
    if (!IsToken(h.name) || !IsFieldValue(h.value) || h.name == "connection") continue;
    out_ += h.name + ": " + h.value + "\r\n";
  }
  out_ += "\r\n";
  busy_ = false;
  closing_ = true;
  rest = std::exchange(in_, {});
  return true;
}

}  // namespace

std::unique_ptr<ServerSession> NewH1ServerSession(const Clock& clock, ServerSessionOptions options,
                                                  ServerSession::Events& events) {
  return std::make_unique<H1ServerSession>(clock, std::move(options), events);
}

}  // namespace sextant::net
