// Time, the only source of it (DESIGN, law 4). Real in a lab that serves sockets, virtual where a
// ManualLoop runs (executor.h). Threads: every method may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant {

using Duration = std::chrono::nanoseconds;
// Wall time since the Unix epoch.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;            // wall time
  virtual Duration Monotonic() const = 0;  // since an arbitrary start; never goes back
};

class RealClock : public Clock {
 public:
  Time Now() const override;
  Duration Monotonic() const override;
};

// "2026-11-30T09:47:59Z" (metav1.Time) and "2026-11-30T09:47:59.000000Z" (metav1.MicroTime).
std::string FormatTime(Time t);
std::string FormatMicroTime(Time t);
// RFC 3339 with offset and fraction, as Go's time.Parse(time.RFC3339) reads it, with its error
// texts. What 64 bits of nanoseconds cannot hold (before 1677, after 2262) becomes the nearest
// Time.
Result<Time> ParseTime(std::string_view text);
// Go's time.ParseDuration: "1h30m", "300ms", "-1.5s", "0"; with its error texts.
Result<Duration> ParseDuration(std::string_view text);
// Go's Duration.String(): "1m30s", "1.5s", "0s".
std::string FormatDuration(Duration d);

}  // namespace sextant
