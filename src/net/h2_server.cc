// The server's side of HTTP/2 on nghttp2.
#include <fmt/format.h>

#include <unordered_map>

#include "base/check.h"
#include "net/h2_common.h"
#include "net/session.h"

namespace sextant::net {
namespace {

constexpr uint32_t kStreamWindow = 256 << 10;  // as kube-apiserver's MaxUploadBufferPerStream
constexpr int32_t kConnectionWindow = 4 << 20;
// Bodies not yet complete on one connection; the stream that passes it is reset.
constexpr size_t kMaxPartialBodies = 32 << 20;
constexpr uint64_t kResetBurst =
    1000;  // CVE-2023-44487: resets by the peer, then this many a second
constexpr uint64_t kResetRate = 33;
constexpr size_t kHeaderOverhead = 32;  // RFC 9113 section 6.5.2

class H2ServerSession : public ServerSession {
 public:
  H2ServerSession(const Clock& clock, ServerSessionOptions options, Events& events);

  Status Feed(std::string_view bytes) override;
  void Take(std::string& out, size_t room) override { H2Take(session_.get(), out, room); }
  void Respond(StreamId id, ResponseHead head, std::shared_ptr<BodySource> body) override;
  void Resume(StreamId id) override { nghttp2_session_resume_data(session_.get(), Id(id)); }
  void Reset(StreamId id) override { ResetWith(Id(id), NGHTTP2_INTERNAL_ERROR); }
  void Shutdown() override;
  Status Sweep() override;
  bool finished() const override;
  bool Upgrade(StreamId, const Headers&, std::string&) override { return false; }

 private:
  struct Stream {
    Request request;
    size_t header_bytes = 0;
    bool malformed = false;
    bool headers_done = false;
    bool told = false;     // to events_
    bool refused = false;  // answered by us
    bool head = false;
    std::shared_ptr<BodySource> body;
    Duration mark{0};  // of the last sign of progress before the request was complete
  };

  static H2ServerSession& Self(void* user) { return *static_cast<H2ServerSession*>(user); }
  static int32_t Id(StreamId id) { return static_cast<int32_t>(id); }
  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* hd, void* user);
  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                    void* user);
  static int OnClose(nghttp2_session*, int32_t id, uint32_t, void* user);
  static int OnSent(nghttp2_session*, const nghttp2_frame* frame, void* user);

  Stream* Find(int32_t id) {
    const auto it = streams_.find(id);
    return it == streams_.end() ? nullptr : &it->second;
  }
  void AddHeader(Stream& stream, std::string_view name, std::string_view value);
  void OnHeadersDone(int32_t id, Stream& stream, bool end);
  void Tell(int32_t id, Stream& stream);
  void Refuse(int32_t id, Stream& stream, const Error& error);
  Error TooLarge() const {
    return RequestEntityTooLarge(fmt::format("limit is {}", options_.limits.max_body));
  }
  void ResetWith(int32_t id, uint32_t code) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, code);
  }

  const Clock& clock_;
  const ServerSessionOptions options_;
  Events& events_;
  H2SessionPtr session_;
  std::unordered_map<int32_t, Stream> streams_;
  size_t partial_bytes_ = 0;
  FloodGuard guard_;
  bool flooded_ = false;
  bool shutting_down_ = false;
  Duration idle_since_;
};

H2ServerSession::H2ServerSession(const Clock& clock, ServerSessionOptions options, Events& events)
    : clock_(clock),
      options_(std::move(options)),
      events_(events),
      guard_(clock.Monotonic()),
      idle_since_(clock.Monotonic()) {
  nghttp2_session_callbacks* callbacks = nullptr;
  CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  const H2CallbacksPtr own_callbacks(callbacks);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, &OnBeginFrame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, &OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, &OnSent);
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  const H2OptionPtr own_option(option);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst, kResetRate);
  nghttp2_option_set_no_closed_streams(option, 1);
  if (options_.any_authority) nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_session* session = nullptr;
  CHECK(nghttp2_session_server_new2(&session, callbacks, this, option) == 0);
  session_.reset(session);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.limits.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<uint32_t>(options_.limits.max_header_bytes)},
  };
  CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
  CHECK(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) ==
        0);
}

Status H2ServerSession::Feed(std::string_view bytes) {
  const ssize_t n = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (flooded_) {
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
    return Fail(Error{.code = 429, .message = "too many HTTP/2 control frames"});
  }
  if (n < 0) {
    if (n == NGHTTP2_ERR_FLOODED) {
      nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return Fail(Error{.code = 400, .message = nghttp2_strerror(static_cast<int>(n))});
  }
  return {};
}

int H2ServerSession::OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* hd, void* user) {
  H2ServerSession& self = Self(user);
  const bool useful = hd->type == NGHTTP2_HEADERS || (hd->type == NGHTTP2_DATA && hd->length > 0);
  if (useful || self.guard_.Allow(self.clock_.Monotonic())) return 0;
  self.flooded_ = true;
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int H2ServerSession::OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  H2ServerSession& self = Self(user);
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (self.shutting_down_) {
    // Our GOAWAY says that streams from here on are not handled: clients ask again elsewhere.
    self.ResetWith(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
  } else {
    self.streams_[frame->hd.stream_id].mark = self.clock_.Monotonic();
  }
  return 0;
}

int H2ServerSession::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                              size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                              void* user) {
  H2ServerSession& self = Self(user);
  Stream* stream = self.Find(frame->hd.stream_id);
  if (stream == nullptr || stream->headers_done) return 0;  // trailers are dropped
  self.AddHeader(*stream, H2View(name, name_size), H2View(value, value_size));
  return 0;
}

void H2ServerSession::AddHeader(Stream& stream, std::string_view name, std::string_view value) {
  stream.header_bytes += name.size() + value.size() + kHeaderOverhead;
  if (stream.header_bytes > options_.limits.max_header_bytes) return;
  // nghttp2 has checked these rules already, except on unix sockets.
  if (!IsFieldValue(value)) stream.malformed = true;
  if (name == ":method") {
    stream.request.method = std::string(value);
  } else if (name == ":path") {
    stream.request.SetTarget(std::string(value));
  } else if (name == ":authority") {
    stream.request.authority = std::string(value);
  } else if (name.starts_with(':')) {
    return;  // :scheme
  } else if (name == "cookie" && stream.request.headers.Has("cookie")) {
    // RFC 9113 section 8.2.3: crumbs are put together again.
    stream.request.headers.Set("cookie",
                               fmt::format("{}; {}", stream.request.headers.Get("cookie"), value));
  } else if (!IsToken(name)) {
    stream.malformed = true;
  } else {
    stream.request.headers.Add(name, value);
  }
}

int H2ServerSession::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  H2ServerSession& self = Self(user);
  const int32_t id = frame->hd.stream_id;
  Stream* stream = self.Find(id);
  if (stream == nullptr) return 0;
  const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (frame->hd.type == NGHTTP2_HEADERS && !stream->headers_done) {
    self.OnHeadersDone(id, *stream, end);
  } else if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && end) {
    self.Tell(id, *stream);
  }
  return 0;
}

void H2ServerSession::OnHeadersDone(int32_t id, Stream& stream, bool end) {
  stream.headers_done = true;
  stream.mark = clock_.Monotonic();
  Request& r = stream.request;
  r.http_major = 2;
  stream.head = r.method == "HEAD";
  const size_t max_body = options_.limits.max_body;
  if (stream.header_bytes > options_.limits.max_header_bytes) {
    return Refuse(id, stream, {.code = 431, .message = "the request header is too large"});
  }
  if (stream.malformed || !IsToken(r.method) || r.target.empty() ||
      (r.target.front() != '/' && r.target != "*")) {
    return Refuse(id, stream, {.code = 400, .message = "malformed request"});
  }
  if (r.headers.Has("host")) {
    if (r.authority.empty()) r.authority = std::string(r.headers.Get("host"));
  } else {
    r.headers.Add("host", r.authority);
  }
  const std::string_view length = r.headers.Get("content-length");
  if (length.size() > 19 ||
      (!length.empty() && std::stoull("0" + std::string(length)) > max_body)) {
    return Refuse(id, stream, TooLarge());
  }
  if (end) return Tell(id, stream);
  if (r.headers.HasToken("expect", "100-continue")) {
    H2HeaderList list;
    list.Add(":status", "100");
    nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, id, nullptr, list.data(), list.size(),
                           nullptr);
  }
}

int H2ServerSession::OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                            void* user) {
  H2ServerSession& self = Self(user);
  Stream* stream = self.Find(id);
  if (stream == nullptr || stream->refused || stream->told) return 0;
  stream->mark = self.clock_.Monotonic();
  const size_t max_body = self.options_.limits.max_body;
  if (stream->request.body.size() + size > max_body) {
    self.partial_bytes_ -= stream->request.body.size();
    std::string().swap(stream->request.body);
    self.Refuse(id, *stream, self.TooLarge());
    return 0;
  }
  if (self.partial_bytes_ + size > kMaxPartialBodies) {
    self.ResetWith(id, NGHTTP2_ENHANCE_YOUR_CALM);
    return 0;
  }
  self.partial_bytes_ += size;
  stream->request.body.append(H2View(data, size));
  return 0;
}

void H2ServerSession::Tell(int32_t id, Stream& stream) {
  if (stream.refused || stream.told) return;
  stream.told = true;
  partial_bytes_ -= stream.request.body.size();
  events_.OnRequest(static_cast<StreamId>(id), std::exchange(stream.request, {}));
}

void H2ServerSession::Refuse(int32_t id, Stream& stream, const Error& error) {
  if (stream.refused) return;
  ErrorAnswer answer = options_.render_error(error);
  const uint64_t length = answer.body.size();
  Respond(static_cast<StreamId>(id),
          {.status = error.code, .headers = std::move(answer.headers), .length = length},
          std::make_shared<WholeBody>(MakeBuffer(std::move(answer.body))));
  stream.refused = true;
}

void H2ServerSession::Respond(StreamId id, ResponseHead head, std::shared_ptr<BodySource> body) {
  Stream* stream = Find(Id(id));
  if (stream == nullptr || stream->body || stream->refused) return;
  const std::string status = std::to_string(head.status);
  const std::string length = head.length ? std::to_string(*head.length) : std::string();
  const bool bodyless = stream->head || head.status == 204 || head.status == 304 || !body ||
                        (head.length && *head.length == 0);
  H2HeaderList list;
  list.Add(":status", status);
  list.AddAll(head.headers);
  if (head.length && head.status != 204) list.Add("content-length", length);
  stream->body = body ? std::move(body) : std::make_shared<WholeBody>(nullptr);
  const nghttp2_data_provider provider = H2Provider(stream->body.get());
  if (nghttp2_submit_response(session_.get(), Id(id), list.data(), list.size(),
                              bodyless ? nullptr : &provider) != 0) {
    ResetWith(Id(id), NGHTTP2_INTERNAL_ERROR);
  }
}

int H2ServerSession::OnSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  H2ServerSession& self = Self(user);
  if (frame->hd.type == NGHTTP2_DATA) self.guard_.OnDataSent();
  Stream* stream = self.Find(frame->hd.stream_id);
  // What the client still sends of a refused request is not wanted (RFC 9113 section 8.1).
  if (stream != nullptr && stream->refused && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
      (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
    self.ResetWith(frame->hd.stream_id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

int H2ServerSession::OnClose(nghttp2_session*, int32_t id, uint32_t, void* user) {
  H2ServerSession& self = Self(user);
  const auto it = self.streams_.find(id);
  if (it == self.streams_.end()) return 0;
  const bool told = it->second.told;
  if (!told) self.partial_bytes_ -= it->second.request.body.size();
  self.streams_.erase(it);
  if (self.streams_.empty()) self.idle_since_ = self.clock_.Monotonic();
  if (told) self.events_.OnStreamClosed(static_cast<StreamId>(id));
  return 0;
}

void H2ServerSession::Shutdown() {
  if (std::exchange(shutting_down_, true)) return;
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

Status H2ServerSession::Sweep() {
  const Duration now = clock_.Monotonic();
  if (streams_.empty()) {
    if (now - idle_since_ >= options_.limits.idle_timeout) Shutdown();
    return {};
  }
  for (auto& [id, stream] : streams_) {
    if (!stream.told && now - stream.mark >= options_.limits.header_timeout) {
      // Within a header block nothing else can follow on this connection.
      if (!stream.headers_done) {
        return Fail(Error{.code = 408, .message = "the request did not arrive in time"});
      }
      stream.mark = now;
      ResetWith(id, NGHTTP2_CANCEL);
    }
  }
  return {};
}

bool H2ServerSession::finished() const {
  if (nghttp2_session_want_write(session_.get()) != 0) return false;
  return (shutting_down_ && streams_.empty()) || nghttp2_session_want_read(session_.get()) == 0;
}

}  // namespace

std::unique_ptr<ServerSession> NewH2ServerSession(const Clock& clock, ServerSessionOptions options,
                                                  ServerSession::Events& events) {
  return std::make_unique<H2ServerSession>(clock, std::move(options), events);
}

}  // namespace sextant::net
