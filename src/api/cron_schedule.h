// Cron schedules: five fields (minute, hour, day of month, month, day of week) or @hourly, @daily,
// @midnight, @weekly, @monthly, @yearly, @annually, @every DURATION; a time zone may stand before
// them ("TZ=Europe/Berlin 0 6 * * *", also CRON_TZ=).
//
// Fields: *, ?, numbers, names (jan, mon), ranges a-b, steps /n, lists. Where neither day field is
// a star, one of them matching is enough.
// Grammar, meaning and the words of errors: github.com/robfig/cron v3 (ParseStandard, spec.go), as
// Kubernetes calls it (pkg/util/parsers). Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace sextant::api {

class CronSchedule {
 public:
  // The Error's message is what robfig/cron says.
  static Result<CronSchedule> Parse(std::string_view text);

  // The first time after `t`, by UTC; nullopt if there is none by the end of the fifth year.
  std::optional<Time> Next(Time t) const;

  // The time zone that stands in the schedule; empty: none.
  const std::string& zone() const { return zone_; }

 private:
  bool DayMatches(std::chrono::sys_days day) const;

  Duration every_{0};
  std::array<uint64_t, 5> fields_{};  // a bit for each value; the top one: a star
  std::string zone_;
};

// What Go's time.LoadLocation says of a time zone's name; empty if it is known. Zones are those of
// the system; where it has none, every name passes.
std::string TimeZoneError(std::string_view name);

}  // namespace sextant::api
