#include "net/h2_common.h"

namespace sextant::net {
namespace {

bool IsConnectionHeader(std::string_view name) {
  return name == "connection" || name == "keep-alive" || name == "proxy-connection" ||
         name == "transfer-encoding" || name == "upgrade" || name == "host" ||
         name == "content-length";  // the last two are set by us
}

ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* to, size_t max, uint32_t* flags,
                 nghttp2_data_source* source, void*) {
  auto* body = static_cast<BodySource*>(source->ptr);
  const BodySource::Piece piece = body->Read(reinterpret_cast<char*>(to), max);
  if (piece.broken) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (piece.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (piece.size == 0 && !piece.end) return NGHTTP2_ERR_DEFERRED;
  return static_cast<ssize_t>(piece.size);
}

}  // namespace

void H2HeaderList::AddAll(const Headers& headers) {
  for (const Header& h : headers) {
    if (IsConnectionHeader(h.name) || !IsToken(h.name) || !IsFieldValue(h.value)) continue;
    Add(h.name, h.value);
  }
}

nghttp2_data_provider H2Provider(BodySource* source) {
  nghttp2_data_provider provider{};
  provider.source.ptr = source;
  provider.read_callback = &ReadBody;
  return provider;
}

void H2Take(nghttp2_session* session, std::string& out, size_t room) {
  const size_t limit = out.size() + room;
  while (out.size() < limit) {
    const uint8_t* data = nullptr;
    const ssize_t n = nghttp2_session_mem_send(session, &data);
    if (n <= 0) return;
    out.append(H2View(data, static_cast<size_t>(n)));
  }
}

bool FloodGuard::Allow(Duration now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  tokens_ = std::min(kBurst, tokens_ + seconds * kPerSecond);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace sextant::net
