#include "controllers/cron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <vector>

namespace sextant::controllers {
namespace {

using namespace std::chrono;

constexpr int kMaxDays = 5 * 366;

struct FieldRule {
  int min;
  int max;
  std::span<const std::string_view> names;  // the first stands for `first_name`
  int first_name;
};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kDays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr FieldRule kRules[] = {
    {0, 59, {}, 0}, {0, 23, {}, 0}, {1, 31, {}, 0}, {1, 12, kMonths, 1}, {0, 6, kDays, 0}};

constexpr std::pair<std::string_view, std::string_view> kDescriptors[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"}};

std::vector<std::string_view> Split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<int> Number(std::string_view text, const FieldRule& rule) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (size_t i = 0; i < rule.names.size(); ++i)
    if (rule.names[i] == lower) return rule.first_name + static_cast<int>(i);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// One part of a list: "*", "3", "1-5", "*/10", "2-30/4". Sets `star` for a plain star.
Result<uint64_t> ParsePart(std::string_view part, const FieldRule& rule, bool& star) {
  const auto bad = [&](std::string_view why) {
    return Fail(BadRequest(fmt::format("{}: {}", why, part)));
  };
  const auto range_and_step = Split(part, '/');
  if (range_and_step.size() > 2) return bad("too many slashes");
  const auto ends = Split(range_and_step[0], '-');
  if (ends.size() > 2) return bad("too many hyphens");
  const bool any = ends[0] == "*" || ends[0] == "?";
  int first = rule.min;
  int last = rule.max;
  if (!any) {
    const auto from = Number(ends[0], rule);
    const auto to = ends.size() == 2 ? Number(ends[1], rule) : from;
    if (!from || !to) return bad("failed to parse int from");
    first = *from;
    last = ends.size() == 1 && range_and_step.size() == 2 ? rule.max : *to;
  } else if (ends.size() == 2) {
    return bad("a star has no end");
  }
  int step = 1;
  if (range_and_step.size() == 2) {
    const auto given = Number(range_and_step[1], {0, 0, {}, 0});
    if (!given || *given <= 0) return bad("step of range should be a positive number");
    step = *given;
  }
  if (first < rule.min || last > rule.max || first > last) return bad("range out of bounds");
  star = star || (any && step == 1);
  uint64_t bits = 0;
  for (int i = first; i <= last; i += step) bits |= uint64_t{1} << i;
  return bits;
}

bool Has(uint64_t bits, unsigned value) { return (bits >> value & 1) != 0; }

}  // namespace

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  CronSchedule schedule;
  constexpr std::string_view kEvery = "@every ";
  if (text.starts_with(kEvery)) {
    ASSIGN_OR_RETURN(const Duration every, ParseDuration(text.substr(kEvery.size())));
    schedule.every_ = std::max<Duration>(seconds(1), floor<seconds>(every));
    return schedule;
  }
  for (const auto& [name, fields] : kDescriptors)
    if (text == name) text = fields;
  std::vector<std::string_view> fields = Split(text, ' ');
  std::erase_if(fields, [](std::string_view field) { return field.empty(); });
  if (fields.size() != schedule.fields_.size()) {
    return Fail(BadRequest(fmt::format("expected exactly 5 fields, found {}: [{}]", fields.size(),
                                       fmt::join(fields, " "))));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    bool star = false;
    for (const std::string_view part : Split(fields[i], ',')) {
      ASSIGN_OR_RETURN(const uint64_t bits, ParsePart(part, kRules[i], star));
      schedule.fields_[i] |= bits;
    }
    if (i == 2) schedule.any_day_ = star;
    if (i == 4) schedule.any_weekday_ = star;
  }
  return schedule;
}

bool CronSchedule::DayMatches(sys_days day) const {
  const year_month_day date(day);
  if (!Has(fields_[3], static_cast<unsigned>(date.month()))) return false;
  const bool by_day = Has(fields_[2], static_cast<unsigned>(date.day()));
  const bool by_weekday = Has(fields_[4], weekday(day).c_encoding());
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Time> CronSchedule::Next(Time t) const {
  if (every_ > Duration{0}) return Time(floor<seconds>(t)) + every_;
  const Time first = Time(floor<minutes>(t)) + minutes(1);
  const sys_days today = floor<days>(first);
  for (int i = 0; i < kMaxDays; ++i) {
    const sys_days day = today + days(i);
    if (!DayMatches(day)) continue;
    const int64_t from = i == 0 ? duration_cast<minutes>(first - Time(day)).count() : 0;
    for (int64_t minute = from; minute < 24 * 60; ++minute) {
      if (Has(fields_[1], static_cast<unsigned>(minute / 60)) &&
          Has(fields_[0], static_cast<unsigned>(minute % 60))) {
        return Time(day) + minutes(minute);
      }
    }
  }
  return {};
}

}  // namespace sextant::controllers
