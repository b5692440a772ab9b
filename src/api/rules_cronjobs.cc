// CronJobs. Source: pkg/apis/batch/validation/validation.go; the schedule's grammar and words are
// those of robfig/cron v3, ParseStandard. Time zones are looked up where the system keeps them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "api/rules_kinds.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxName = 52;
constexpr size_t kMaxZonePart = 14;
constexpr const char* kZoneFolder = "/usr/share/zoneinfo";

struct Bounds {
  int64_t low;
  int64_t high;
  std::initializer_list<std::string_view> names;  // from `low` up
};
const Bounds kFields[] = {
    {0, 59, {}},
    {0, 23, {}},
    {1, 31, {}},
    {1, 12, {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
    {0, 6, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}};

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separators,
                                      bool skip_empty) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of(separators);
    const std::string_view part = text.substr(0, end);
    if (!skip_empty || !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The number, or why it is none.
struct Number {
  int64_t value = 0;
  std::string error;
};

Number ParseNumber(std::string_view text, const Bounds* names) {
  if (names != nullptr) {
    std::string lower(text);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    int64_t n = names->low;
    for (std::string_view name : names->names) {
      if (name == lower) return {n, {}};
      ++n;
    }
  }
  Number number;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number.value);
  if (error == std::errc::result_out_of_range) {
    number.error = fmt::format(
        "failed to parse int from {}: strconv.Atoi: parsing {}: value out of "
        "range",
        text, Quote(text));
  } else if (error != std::errc() || end != digits.data() + digits.size()) {
    number.error = fmt::format(
        "failed to parse int from {}: strconv.Atoi: parsing {}: invalid "
        "syntax",
        text, Quote(text));
  } else if (number.value < 0) {
    number.error = fmt::format("negative number ({}) not allowed: {}", number.value, text);
  }
  return number;
}

// "5", "1-5", "*/2", "mon-fri".
std::string RangeError(std::string_view expr, const Bounds& bounds) {
  const auto steps = SplitAt(expr, "/", false);
  const auto ends = SplitAt(steps[0], "-", false);
  int64_t start = bounds.low;
  int64_t end = bounds.high;
  if (ends[0] != "*" && ends[0] != "?") {
    Number n = ParseNumber(ends[0], &bounds);
    if (!n.error.empty()) return n.error;
    start = end = n.value;
    if (ends.size() > 2) return fmt::format("too many hyphens: {}", expr);
    if (ends.size() == 2) {
      n = ParseNumber(ends[1], &bounds);
      if (!n.error.empty()) return n.error;
      end = n.value;
    }
  }
  int64_t step = 1;
  if (steps.size() > 2) return fmt::format("too many slashes: {}", expr);
  if (steps.size() == 2) {
    const Number n = ParseNumber(steps[1], nullptr);
    if (!n.error.empty()) return n.error;
    step = n.value;
    if (ends.size() == 1) end = bounds.high;
  }
  if (start < bounds.low) {
    return fmt::format("beginning of range ({}) below minimum ({}): {}", start, bounds.low, expr);
  }
  if (end > bounds.high) {
    return fmt::format("end of range ({}) above maximum ({}): {}", end, bounds.high, expr);
  }
  if (start > end) {
    return fmt::format("beginning of range ({}) beyond end of range ({}): {}", start, end, expr);
  }
  if (step == 0) return fmt::format("step of range should be a positive number: {}", expr);
  return {};
}

// How time.LoadLocation sees it.
bool ZoneKnown(std::string_view name) {
  if (name == "UTC" || name.empty() || name == "Local") return true;
  std::error_code error;
  if (!std::filesystem::is_directory(kZoneFolder, error)) return true;  // cannot tell
  return std::filesystem::is_regular_file(std::filesystem::path(kZoneFolder) / std::string(name),
                                          error);
}

std::string DescriptorError(std::string_view text) {
  for (std::string_view known :
       {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
    if (text == known) return {};
  }
  if (text.starts_with("@every ")) return {};
  return fmt::format("unrecognized descriptor: {}", text);
}

std::string ScheduleError(std::string_view text) {
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return "invalid schedule format: runtime error: slice bounds out of range [:-1]";
    }
    const size_t equals = text.find('=');
    const std::string_view zone = text.substr(equals + 1, space - equals - 1);
    if (!ZoneKnown(zone)) {
      return fmt::format("provided bad location {}: unknown time zone {}", zone, zone);
    }
    text.remove_prefix(space);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (text.starts_with('@')) return DescriptorError(text);
  const auto fields = SplitAt(text, " \t\r\n", true);
  if (fields.size() != std::size(kFields)) {
    return fmt::format("expected exactly {} fields, found {}: [{}]", std::size(kFields),
                       fields.size(), fmt::join(fields, " "));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (std::string_view expr : SplitAt(fields[i], ",", true)) {
      std::string error = RangeError(expr, kFields[i]);
      if (!error.empty()) return error;
    }
  }
  return {};
}

void ValidateTimeZone(Value zone, const At& at, FieldErrors& errors) {
  if (!zone) return;
  const std::string_view name = zone.AsString();
  const auto bad = [&](std::string why) { errors.InvalidText(at, name, std::move(why)); };
  if (name.empty()) return bad("timeZone must be nil or non-empty string");
  const std::string unknown = fmt::format("unknown time zone {}", name);
  for (std::string_view part : SplitAt(name, "/", false)) {
    const bool characters = std::ranges::all_of(part, [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             c == '.' || c == '-' || c == '_' || c == '+';
    });
    if (part == "." || part == ".." || part.starts_with('-') || part.empty() ||
        part.size() > kMaxZonePart || !characters) {
      return bad(unknown);
    }
  }
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower == "local") {
    bad("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  if (!ZoneKnown(name)) bad(unknown);
}

void ValidateSchedule(Value spec, Value old, const At& at, FieldErrors& errors) {
  const std::string_view schedule = spec["schedule"].AsString();
  const At here = at / "schedule";
  if (schedule.empty()) return errors.Required(here, "");
  const std::string error = ScheduleError(schedule);
  if (!error.empty()) errors.InvalidText(here, schedule, error);
  const bool zoned = schedule.find("TZ") != std::string_view::npos;
  const bool allowed = old["schedule"].AsString().find("TZ") != std::string_view::npos;
  if (zoned && allowed && spec["timeZone"]) {
    errors.InvalidText(here, schedule,
                       "cannot use both timeZone field and TZ or CRON_TZ in schedule");
  } else if (zoned && !allowed) {
    errors.InvalidText(here, schedule,
                       "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  }
}

void ValidateCronSpec(Value spec, Value old, const At& at, FieldErrors& errors) {
  ValidateSchedule(spec, old, at, errors);
  NonNegative(spec, "startingDeadlineSeconds", at, errors);
  if (!old || !Same(old["timeZone"], spec["timeZone"])) {
    ValidateTimeZone(spec["timeZone"], at / "timeZone", errors);
  }
  if (spec["concurrencyPolicy"].AsString().empty()) {
    errors.Required(at / "concurrencyPolicy", "");
  } else {
    OneOf(spec, "concurrencyPolicy", {"Allow", "Forbid", "Replace"}, at, errors);
  }
  const Value job = spec["jobTemplate"]["spec"];
  const At job_at = at / "jobTemplate.spec";
  ValidateJobSpecAlone(job, job_at, errors);
  if (job["selector"]) {
    errors.Invalid(job_at / "selector", job["selector"], "`selector` will be auto-generated");
  }
  if (job["manualSelector"].AsBool()) {
    errors.NotSupportedRaw(job_at / "manualSelector", "true", {"nil", "false"});
  }
  NonNegative(spec, "successfulJobsHistoryLimit", at, errors);
  NonNegative(spec, "failedJobsHistoryLimit", at, errors);
}

}  // namespace

void ValidateCronJobCreate(Value o, FieldErrors& errors) {
  const At at("spec");
  ValidateCronSpec(o["spec"], Value(), at, errors);
  const std::string_view name = o["metadata"]["name"].AsString();
  if (name.size() > kMaxName) {
    errors.InvalidText("metadata.name", name, "must be no more than 52 characters");
  }
}

void ValidateCronJobUpdate(Value o, Value old, FieldErrors& errors) {
  const At at("spec");
  ValidateCronSpec(o["spec"], old["spec"], at, errors);
}

}  // namespace sextant::api
