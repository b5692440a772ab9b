// The client's side of HTTP/1.1: one request at a time.
#include <fmt/format.h>

#include "base/check.h"
#include "net/client.h"
#include "net/h1_parser.h"
#include "net/session.h"

namespace sextant::net {
namespace {

class H1ClientSession : public ClientSession, private H1Parser::Events {
 public:
  H1ClientSession(size_t max_header_bytes, ClientSession::Events& events)
      : events_(events),
        parser_(H1Parser::Side::kResponses, {.max_header_bytes = max_header_bytes}, *this) {}

  Status Feed(std::string_view bytes) override;
  void End(const Error& why) override;
  void Take(std::string& out, size_t room) override;
  size_t capacity() const override { return busy_ || closing_ ? 0 : 1; }
  StreamId Submit(ClientHead head, Buffer body) override;
  void Cancel(StreamId id) override;
  void Consume(StreamId, size_t) override {}  // the socket's own back pressure serves
  size_t open_streams() const override { return busy_ ? 1 : 0; }
  bool closing() const override { return closing_; }
  std::string TakeRest() override { return std::exchange(rest_, {}); }

 private:
  bool OnHead(H1Head& head) override;
  void OnBody(std::string_view bytes) override {
    if (busy_) events_.OnData(id_, bytes);
  }
  void Finish(Status status);

  ClientSession::Events& events_;
  H1Parser parser_;
  StreamId id_ = 0;
  bool busy_ = false;
  bool closing_ = false;
  bool upgraded_ = false;
  bool head_request_ = false;
  bool interim_ = false;   // the present head is a 1xx
  bool answered_ = false;  // a byte of the answer has come
  std::string out_;
  Buffer body_;
  size_t body_at_ = 0;
  std::string rest_;
};

StreamId H1ClientSession::Submit(ClientHead head, Buffer body) {
  CHECK(capacity() > 0);
  busy_ = true;
  answered_ = false;
  head_request_ = head.method == "HEAD";
  out_ += head.method + " " + head.target + " HTTP/1.1\r\nhost: " + head.authority + "\r\n";
  for (const Header& h : head.headers) {
    if (h.name == "host" || h.name == "content-length" || h.name == "transfer-encoding") continue;
    if (!IsToken(h.name) || !IsFieldValue(h.value)) continue;
    out_ += h.name + ": " + h.value + "\r\n";
  }
  const size_t size = body ? body->size() : 0;
  if (size > 0 || head.method == "POST" || head.method == "PUT" || head.method == "PATCH") {
    fmt::format_to(std::back_inserter(out_), "content-length: {}\r\n", size);
  }
  out_ += "\r\n";
  body_ = std::move(body);
  body_at_ = 0;
  return ++id_;
}

void H1ClientSession::Take(std::string& out, size_t room) {
  out += out_;
  std::string().swap(out_);
  if (!body_) return;
  const size_t n = std::min(room, body_->size() - body_at_);
  out.append(*body_, body_at_, n);
  body_at_ += n;
  if (body_at_ == body_->size()) body_.reset();
}

Status H1ClientSession::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (upgraded_) {
      rest_.append(bytes);
      return {};
    }
    if (!busy_) {
      closing_ = true;
      return Fail(TransportError("the server sent bytes that nobody asked for"));
    }
    answered_ = true;
    Result<size_t> used = parser_.Feed(bytes);
    if (!used) {
      closing_ = true;
      Error error = TransportError("bad answer: " + used.error().message);
      Finish(Fail(error));
      return Fail(std::move(error));
    }
    bytes.remove_prefix(*used);
    if (!parser_.complete()) continue;
    parser_.Reset();
    if (std::exchange(interim_, false)) continue;
    Finish({});
  }
  return {};
}

bool H1ClientSession::OnHead(H1Head& head) {
  interim_ = head.status < 200 && head.status != 101;
  if (interim_) return false;
  if (head.status == 101) upgraded_ = closing_ = true;
  if (!head.keep_alive) closing_ = true;
  // A body that lasts until the end of the connection, or one still being sent, rules out reuse.
  if (body_) closing_ = true;
  if (busy_) events_.OnHeaders(id_, head.status, std::move(head.headers));
  return !head_request_ && !upgraded_;
}

void H1ClientSession::End(const Error& why) {
  closing_ = true;
  if (!busy_) return;
  if (parser_.End() && parser_.complete()) return Finish({});
  Finish(Fail(why));
}

void H1ClientSession::Finish(Status status) {
  if (!std::exchange(busy_, false)) return;
  body_.reset();
  events_.OnDone(id_, std::move(status), !answered_);
}

void H1ClientSession::Cancel(StreamId id) {
  if (!busy_ || id != id_) return;
  busy_ = false;
  closing_ = true;  // the rest of the answer is in the way
  body_.reset();
}

}  // namespace

std::unique_ptr<ClientSession> NewH1ClientSession(size_t max_header_bytes,
                                                  ClientSession::Events& events) {
  return std::make_unique<H1ClientSession>(max_header_bytes, events);
}

}  // namespace sextant::net
