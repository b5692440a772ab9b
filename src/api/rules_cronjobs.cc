// CronJobs. Source: pkg/apis/batch/validation/validation.go.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "api/cron_schedule.h"
#include "api/rules_kinds.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxName = 52;
constexpr size_t kMaxZonePart = 14;

void ValidateTimeZone(Value zone, const At& at, FieldErrors& errors) {
  if (!zone) return;
  const std::string_view name = zone.AsString();
  const auto bad = [&](std::string why) { errors.InvalidText(at, name, std::move(why)); };
  if (name.empty()) return bad("timeZone must be nil or non-empty string");
  const auto valid = [](auto part) {
    const std::string_view text(part.begin(), part.end());
    return !text.empty() && text.size() <= kMaxZonePart && text != "." && text != ".." &&
           !text.starts_with('-') && std::ranges::all_of(text, [](char c) {
             return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_' || c == '+';
           });
  };
  if (!std::ranges::all_of(name | std::views::split('/'), valid)) {
    return bad(fmt::format("unknown time zone {}", name));
  }
  if (EqualsIgnoreCase(name, "Local")) {
    bad("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  if (std::string error = TimeZoneError(name); !error.empty()) bad(std::move(error));
}

void ValidateSchedule(Value spec, Value old, const At& at, FieldErrors& errors) {
  const std::string_view schedule = spec["schedule"].AsString();
  const At here = at / "schedule";
  if (schedule.empty()) return errors.Required(here, "");
  if (const auto parsed = CronSchedule::Parse(schedule); !parsed) {
    errors.InvalidText(here, schedule, parsed.error().message);
  }
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
