#include "api/cron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "base/ascii.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

using namespace std::chrono;

constexpr uint64_t kStar = uint64_t{1} << 63;
constexpr int kYears = 5;
constexpr Time kLastStart = Time::max() - days((kYears + 1) * 366 + 1);  // later sums overflow
constexpr const char* kZoneFolder = "/usr/share/zoneinfo";

struct Bounds {
  uint64_t low;
  uint64_t high;
  std::span<const std::string_view> names;  // from `low` up
};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kDays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr Bounds kFields[] = {
    {0, 59, {}}, {0, 23, {}}, {1, 31, {}}, {1, 12, kMonths}, {0, 6, kDays}};
enum Place { kMinute, kHour, kDay, kMonth, kWeekday };

constexpr std::pair<std::string_view, std::string_view> kDescriptors[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"}};

std::unexpected<Error> Bad(std::string_view why) { return Fail(BadRequest(why)); }

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> SplitFull(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts = Split(text, separators);
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

// As Go's strconv.Atoi reads it.
Result<uint64_t> ParseNumber(std::string_view text) {
  const bool plus = text.starts_with('+');
  const std::string_view digits = plus ? text.substr(1) : text;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool too_large = error == std::errc::result_out_of_range;
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || (plus && digits.starts_with('-'))) {
    return Bad(fmt::format("failed to parse int from {}: strconv.Atoi: parsing {}: {}", text,
                           Quote(text), too_large ? "value out of range" : "invalid syntax"));
  }
  if (value < 0) return Bad(fmt::format("negative number ({}) not allowed: {}", value, text));
  return static_cast<uint64_t>(value);
}

Result<uint64_t> ParseNumberOrName(std::string_view text, const Bounds& bounds) {
  const auto found = std::ranges::find(bounds.names, AsciiLower(text));
  if (found == bounds.names.end()) return ParseNumber(text);
  return bounds.low + static_cast<uint64_t>(found - bounds.names.begin());
}

// One part of a list: "*", "3", "1-5", "*/10", "2-30/4".
Result<uint64_t> ParsePart(std::string_view part, const Bounds& bounds) {
  const auto range_and_step = Split(part, "/");
  const auto ends = Split(range_and_step[0], "-");
  uint64_t first = bounds.low;
  uint64_t last = bounds.high;
  uint64_t step = 1;
  uint64_t bits = 0;
  if (ends[0] == "*" || ends[0] == "?") {
    bits = kStar;
  } else {
    ASSIGN_OR_RETURN(first, ParseNumberOrName(ends[0], bounds));
    last = first;
    if (ends.size() > 2) return Bad(fmt::format("too many hyphens: {}", part));
    if (ends.size() == 2) {
      ASSIGN_OR_RETURN(last, ParseNumberOrName(ends[1], bounds));
    }
  }
  if (range_and_step.size() > 2) return Bad(fmt::format("too many slashes: {}", part));
  if (range_and_step.size() == 2) {
    ASSIGN_OR_RETURN(step, ParseNumber(range_and_step[1]));
    if (ends.size() == 1) last = bounds.high;
    if (step > 1) bits = 0;
  }
  if (first < bounds.low) {
    return Bad(
        fmt::format("beginning of range ({}) below minimum ({}): {}", first, bounds.low, part));
  }
  if (last > bounds.high) {
    return Bad(fmt::format("end of range ({}) above maximum ({}): {}", last, bounds.high, part));
  }
  if (first > last) {
    return Bad(
        fmt::format("beginning of range ({}) beyond end of range ({}): {}", first, last, part));
  }
  if (step == 0) return Bad(fmt::format("step of range should be a positive number: {}", part));
  for (uint64_t i = first; i <= last; i += step) bits |= uint64_t{1} << i;
  return bits;
}

bool Has(uint64_t bits, unsigned value) { return (bits >> value & 1) != 0; }

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  CronSchedule schedule;
  if (text.empty()) return Bad("empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return Bad("invalid schedule format: runtime error: slice bounds out of range [:-1]");
    }
    const size_t equals = text.find('=');
    schedule.zone_ = text.substr(equals + 1, space - equals - 1);
    if (const std::string error = TimeZoneError(schedule.zone_); !error.empty()) {
      return Bad(fmt::format("provided bad location {}: {}", schedule.zone_, error));
    }
    constexpr std::string_view kSpaces = " \t\r\n\v\f";
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces, space), text.size()));
    text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  }
  constexpr std::string_view kEvery = "@every ";
  if (text.starts_with(kEvery)) {
    const auto every = ParseDuration(text.substr(kEvery.size()));
    if (!every) {
      return Bad(fmt::format("failed to parse duration {}: {}", text, every.error().message));
    }
    schedule.every_ = std::max<Duration>(seconds(1), floor<seconds>(*every));
    return schedule;
  }
  if (text.starts_with('@')) {
    const auto* known =
        std::ranges::find(kDescriptors, text, [](const auto& d) { return d.first; });
    if (known == std::end(kDescriptors)) {
      return Bad(fmt::format("unrecognized descriptor: {}", text));
    }
    text = known->second;
  }
  const auto fields = SplitFull(text, " \t\r\n\v\f");
  if (fields.size() != schedule.fields_.size()) {
    return Bad(fmt::format("expected exactly {} fields, found {}: [{}]", schedule.fields_.size(),
                           fields.size(), fmt::join(fields, " ")));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const std::string_view part : SplitFull(fields[i], ",")) {
      ASSIGN_OR_RETURN(const uint64_t bits, ParsePart(part, kFields[i]));
      schedule.fields_[i] |= bits;
    }
  }
  return schedule;
}

bool CronSchedule::DayMatches(sys_days day) const {
  const year_month_day date(day);
  if (!Has(fields_[kMonth], static_cast<unsigned>(date.month()))) return false;
  const bool by_day = Has(fields_[kDay], static_cast<unsigned>(date.day()));
  const bool by_weekday = Has(fields_[kWeekday], weekday(day).c_encoding());
  const bool star = ((fields_[kDay] | fields_[kWeekday]) & kStar) != 0;
  return star ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Time> CronSchedule::Next(Time t) const {
  if (t > kLastStart - every_) return {};
  if (every_ > Duration{0}) return Time(floor<seconds>(t)) + every_;
  const Time first = Time(floor<minutes>(t)) + minutes(1);
  const sys_days today = floor<days>(first);
  const sys_days end = sys_days((year_month_day(today).year() + years(kYears + 1)) / January / 1);
  for (sys_days day = today; day < end; day += days(1)) {
    if (!DayMatches(day)) continue;
    const int64_t from = day == today ? duration_cast<minutes>(first - Time(day)).count() : 0;
    for (int64_t minute = from; minute < 24 * 60; ++minute) {
      if (Has(fields_[kHour], static_cast<unsigned>(minute / 60)) &&
          Has(fields_[kMinute], static_cast<unsigned>(minute % 60))) {
        return Time(day) + minutes(minute);
      }
    }
  }
  return {};
}

std::string TimeZoneError(std::string_view name) {
  if (name.empty() || name == "UTC" || name == "Local") return {};
  if (name.contains("..") || name[0] == '/' || name[0] == '\\') {
    return "time: invalid location name";
  }
  std::error_code error;
  if (!std::filesystem::is_directory(kZoneFolder, error)) return {};
  const std::filesystem::path path = std::filesystem::path(kZoneFolder) / std::string(name);
  char magic[4] = {};
  std::ifstream file(path, std::ios::binary);
  if (std::filesystem::is_regular_file(path, error) && file.read(magic, sizeof magic) &&
      std::string_view(magic, sizeof magic) == "TZif") {
    return {};
  }
  return fmt::format("unknown time zone {}", name);
}

}  // namespace sextant::api
