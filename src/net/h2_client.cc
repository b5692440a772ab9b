// The client's side of HTTP/2 on nghttp2.
#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "net/client.h"
#include "net/h2_common.h"
#include "net/session.h"

namespace sextant::net {
namespace {

constexpr uint32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 16 << 20;
// Until the server's SETTINGS say more (RFC 9113 section 6.5.2 recommends no less than 100).
constexpr uint32_t kAssumedMaxStreams = 100;
constexpr uint32_t kMaxStreams = 1000;
constexpr size_t kHeaderOverhead = 32;

class H2ClientSession : public ClientSession {
 public:
  H2ClientSession(size_t max_header_bytes, Events& events);

  Status Feed(std::string_view bytes) override;
  void End(const Error& why) override;
  void Take(std::string& out, size_t room) override { H2Take(session_.get(), out, room); }
  size_t capacity() const override;
  StreamId Submit(ClientHead head, Buffer body) override;
  void Cancel(StreamId id) override;
  void Consume(StreamId id, size_t bytes) override;
  size_t open_streams() const override { return streams_.size(); }
  bool closing() const override { return closing_; }
  void Ping() override { nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr); }

 private:
  struct Stream {
    int status = 0;
    Headers headers;
    size_t header_bytes = 0;
    bool told = false;  // OnHeaders was called
    size_t unconsumed = 0;
  };

  static H2ClientSession& Self(void* user) { return *static_cast<H2ClientSession*>(user); }
  static int32_t Id(StreamId id) { return static_cast<int32_t>(id); }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user);
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                    void* user);
  static int OnClose(nghttp2_session*, int32_t id, uint32_t code, void* user);

  Stream* Find(int32_t id) {
    const auto it = streams_.find(id);
    return it == streams_.end() ? nullptr : &it->second;
  }
  // Ends a stream: gives its window back and tells its owner.
  void Finish(int32_t id, Status status, bool unprocessed);

  const size_t max_header_bytes_;
  Events& events_;
  H2SessionPtr session_;
  std::unordered_map<int32_t, Stream> streams_;
  // nghttp2 reads from them until it has closed the stream, which may be after streams_ let go.
  std::unordered_map<int32_t, std::unique_ptr<WholeBody>> bodies_;
  // Bytes told by OnData of streams that have ended since and that are not consumed yet.
  std::unordered_map<int32_t, size_t> owed_;
  bool closing_ = false;
  bool settings_seen_ = false;
};

H2ClientSession::H2ClientSession(size_t max_header_bytes, Events& events)
    : max_header_bytes_(max_header_bytes), events_(events) {
  nghttp2_session_callbacks* callbacks = nullptr;
  CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  const H2CallbacksPtr own_callbacks(callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  const H2OptionPtr own_option(option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_session* session = nullptr;
  CHECK(nghttp2_session_client_new2(&session, callbacks, this, option) == 0);
  session_.reset(session);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(max_header_bytes)},
  };
  CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
  CHECK(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) ==
        0);
}

Status H2ClientSession::Feed(std::string_view bytes) {
  const ssize_t n = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (n < 0) {
    closing_ = true;
    return Fail(TransportError(
        fmt::format("bad HTTP/2 from the server: {}", nghttp2_strerror(static_cast<int>(n)))));
  }
  return {};
}

size_t H2ClientSession::capacity() const {
  if (closing_) return 0;
  const uint32_t limit =
      settings_seen_
          ? std::min(kMaxStreams, nghttp2_session_get_remote_settings(
                                      session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
          : kAssumedMaxStreams;
  return limit > streams_.size() ? limit - streams_.size() : 0;
}

StreamId H2ClientSession::Submit(ClientHead head, Buffer body) {
  H2HeaderList list;
  list.Add(":method", head.method);
  list.Add(":scheme", head.scheme);
  list.Add(":authority", head.authority);
  list.Add(":path", head.target);
  list.AddAll(head.headers);
  const size_t size = body ? body->size() : 0;
  const std::string length = std::to_string(size);
  if (size > 0) list.Add("content-length", length);
  auto source = size > 0 ? std::make_unique<WholeBody>(std::move(body)) : nullptr;
  nghttp2_data_provider provider = H2Provider(source.get());
  const int32_t id = nghttp2_submit_request(session_.get(), nullptr, list.data(), list.size(),
                                            source ? &provider : nullptr, nullptr);
  if (id < 0) {  // stream ids are used up
    closing_ = true;
    return 0;
  }
  streams_[id];
  if (source) bodies_[id] = std::move(source);
  return static_cast<StreamId>(id);
}

int H2ClientSession::OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                              size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                              void* user) {
  H2ClientSession& self = Self(user);
  Stream* stream = self.Find(frame->hd.stream_id);
  if (stream == nullptr) return 0;
  const std::string_view key = H2View(name, name_size);
  const std::string_view text = H2View(value, value_size);
  stream->header_bytes += name_size + value_size + kHeaderOverhead;
  if (stream->header_bytes > self.max_header_bytes_) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream
  }
  if (key == ":status") {
    std::from_chars(text.data(), text.data() + text.size(), stream->status);
  } else {
    stream->headers.Add(key, text);
  }
  return 0;
}

int H2ClientSession::OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  H2ClientSession& self = Self(user);
  if (frame->hd.type == NGHTTP2_SETTINGS) self.settings_seen_ = true;
  if (frame->hd.type == NGHTTP2_GOAWAY) self.closing_ = true;
  const int32_t id = frame->hd.stream_id;
  Stream* stream = self.Find(id);
  if (stream == nullptr) return 0;
  if (frame->hd.type == NGHTTP2_HEADERS && stream->told) {
    self.events_.OnTrailers(static_cast<StreamId>(id), std::exchange(stream->headers, {}));
  } else if (frame->hd.type == NGHTTP2_HEADERS) {
    if (stream->status < 200) {  // an interim answer
      stream->headers = {};
      return 0;
    }
    stream->told = true;
    self.events_.OnHeaders(static_cast<StreamId>(id), stream->status,
                           std::exchange(stream->headers, {}));
  }
  const bool data_or_headers = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (data_or_headers && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    // The answer may be complete before our body is sent; then the rest of it is not wanted.
    const auto body = self.bodies_.find(id);
    if (body != self.bodies_.end() && !body->second->all_read()) {
      nghttp2_submit_rst_stream(self.session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
    }
    self.Finish(id, {}, false);
  }
  return 0;
}

int H2ClientSession::OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size,
                            void* user) {
  H2ClientSession& self = Self(user);
  Stream* stream = self.Find(id);
  if (stream == nullptr) {
    nghttp2_session_consume_connection(self.session_.get(), size);
    return 0;
  }
  stream->unconsumed += size;
  self.events_.OnData(static_cast<StreamId>(id), H2View(data, size));
  return 0;
}

int H2ClientSession::OnClose(nghttp2_session*, int32_t id, uint32_t code, void* user) {
  H2ClientSession& self = Self(user);
  self.bodies_.erase(id);
  if (self.Find(id) == nullptr) return 0;
  self.Finish(id,
              Fail(TransportError(
                  fmt::format("the server reset the stream ({})", nghttp2_http2_strerror(code)))),
              code == NGHTTP2_REFUSED_STREAM);
  return 0;
}

void H2ClientSession::Finish(int32_t id, Status status, bool unprocessed) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return;
  if (it->second.unconsumed > 0) owed_[id] = it->second.unconsumed;
  streams_.erase(it);
  events_.OnDone(static_cast<StreamId>(id), std::move(status), unprocessed);
}

void H2ClientSession::Cancel(StreamId id) {
  const auto it = streams_.find(Id(id));
  if (it == streams_.end()) return;
  if (it->second.unconsumed > 0) owed_[Id(id)] = it->second.unconsumed;
  streams_.erase(it);
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, Id(id), NGHTTP2_CANCEL);
}

void H2ClientSession::Consume(StreamId id, size_t bytes) {
  if (Stream* stream = Find(Id(id)); stream != nullptr) {
    stream->unconsumed -= std::min(bytes, stream->unconsumed);
    nghttp2_session_consume(session_.get(), Id(id), bytes);
    return;
  }
  const auto owed = owed_.find(Id(id));
  if (owed == owed_.end()) return;
  bytes = std::min(bytes, owed->second);
  owed->second -= bytes;
  if (owed->second == 0) owed_.erase(owed);
  nghttp2_session_consume_connection(session_.get(), bytes);
}

void H2ClientSession::End(const Error& why) {
  closing_ = true;
  while (!streams_.empty()) Finish(streams_.begin()->first, Fail(why), false);
}

}  // namespace

std::unique_ptr<ClientSession> NewH2ClientSession(size_t max_header_bytes,
                                                  ClientSession::Events& events) {
  return std::make_unique<H2ClientSession>(max_header_bytes, events);
}

}  // namespace sextant::net
