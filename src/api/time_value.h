// metav1.Time, MicroTime and Duration as documents hold them: text in the form that Kubernetes
// prints.
//
//   std::string buffer;
//   auto text = CanonicalTime("2026-01-02T03:04:05+01:00", TimeKind::kSeconds, buffer);
//   // "2026-01-02T02:04:05Z"
//
// Errors: 400 with the text of Go's time package. All years from 1 to 9999 hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant::api {

// A point of UTC as protobuf's Timestamp has it.
struct Instant {
  int64_t seconds = 0;  // since 1970
  int32_t nanos = 0;    // 0 .. 999999999
  bool operator==(const Instant&) const = default;
};
// Go's zero time: January 1, year 1.
inline constexpr Instant kZeroInstant = {-62135596800, 0};

enum class TimeKind : uint8_t { kSeconds, kMicro };

Result<Instant> ParseInstant(std::string_view text, TimeKind kind);
std::string FormatInstant(Instant t, TimeKind kind);

// The canonical text: `text` itself if it is that, else stored in `buffer`; "" for Go's zero time.
Result<std::string_view> CanonicalTime(std::string_view text, TimeKind kind, std::string& buffer);
Result<std::string_view> CanonicalDuration(std::string_view text, std::string& buffer);

}  // namespace sextant::api
