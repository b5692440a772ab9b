// What both ends of HTTP/2 share: owners for nghttp2's objects, header lists, bodies. Internal to
// net, for h2_*.cc only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/h1_parser.h"
#include "net/http.h"
#include "net/session.h"

namespace sextant::net {

struct H2Free {
  void operator()(nghttp2_session* s) const { nghttp2_session_del(s); }
  void operator()(nghttp2_session_callbacks* c) const { nghttp2_session_callbacks_del(c); }
  void operator()(nghttp2_option* o) const { nghttp2_option_del(o); }
};
using H2SessionPtr = std::unique_ptr<nghttp2_session, H2Free>;
using H2CallbacksPtr = std::unique_ptr<nghttp2_session_callbacks, H2Free>;
using H2OptionPtr = std::unique_ptr<nghttp2_option, H2Free>;

inline std::string_view H2View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The name-value list of one HEADERS frame. Holds views: what it was filled from must outlive it.
class H2HeaderList {
 public:
  void Add(std::string_view name, std::string_view value) {
    list_.push_back({const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(name.data())),
                     const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(value.data())),
                     name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  // All that HTTP/2 allows (RFC 9113 section 8.2.2); values that would break the frame are left
  // out.
  void AddAll(const Headers& headers);
  const nghttp2_nv* data() const { return list_.data(); }
  size_t size() const { return list_.size(); }

 private:
  std::vector<nghttp2_nv> list_;
};

// A data provider that reads from `source`, which must outlive the stream.
nghttp2_data_provider H2Provider(BodySource* source);

// Appends what the session has to send, up to about `room` bytes.
void H2Take(nghttp2_session* session, std::string& out, size_t room);

// Frames that cost the peer nothing and us work (PING, SETTINGS, PRIORITY, RST_STREAM,
// WINDOW_UPDATE, empty DATA) are paid for from a bucket that fills with time and with DATA that we
// send, since reading those makes an honest peer send WINDOW_UPDATEs.
class FloodGuard {
 public:
  explicit FloodGuard(Duration now) : last_(now) {}
  bool Allow(Duration now);  // false: too many
  void OnDataSent() { tokens_ = std::min(kBurst, tokens_ + kPerDataFrame); }

  static constexpr double kBurst = 2000;

 private:
  static constexpr double kPerSecond = 100;
  static constexpr double kPerDataFrame = 4;
  double tokens_ = kBurst;
  Duration last_;
};

}  // namespace sextant::net
