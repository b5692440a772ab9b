// Cron schedules: five fields (minute, hour, day of month, month, day of week) or @hourly, @daily,
// @midnight, @weekly, @monthly, @yearly, @annually, @every DURATION. Times are UTC.
//
// Fields: *, ?, numbers, names (jan, mon), ranges a-b, steps /n, lists. Where neither day field is
// a star, one of them matching is enough.
// Source: github.com/robfig/cron v3 (parser.go, spec.go), which Kubernetes uses. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace sextant::controllers {

class CronSchedule {
 public:
  static Result<CronSchedule> Parse(std::string_view text);
  // The first time after `t`; nullopt if there is none within five years.
  std::optional<Time> Next(Time t) const;

 private:
  bool DayMatches(std::chrono::sys_days day) const;

  Duration every_{0};
  std::array<uint64_t, 5> fields_{};  // a bit for each value
  bool any_day_ = false;              // of month: a star
  bool any_weekday_ = false;
};

}  // namespace sextant::controllers
