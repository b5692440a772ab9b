#include "api/time_value.h"

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace sextant::api {
namespace {

constexpr std::string_view kSecondsLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";
constexpr size_t kDateTimeSize = 19;  // "2006-01-02T15:04:05"
constexpr int64_t kDay = 86400;

// `n` digits at `at`, -1 if they are not digits.
int Digits(std::string_view s, size_t at, size_t n) {
  int v = 0;
  for (size_t i = at; i < at + n; ++i) {
    if (i >= s.size() || s[i] < '0' || s[i] > '9') return -1;
    v = v * 10 + (s[i] - '0');
  }
  return v;
}

// Offset in seconds of "Z" or "+01:00"; nullopt for other text.
std::optional<int> Zone(std::string_view s) {
  if (s == "Z") return 0;
  if (s.size() != 6 || (s[0] != '+' && s[0] != '-') || s[3] != ':') return std::nullopt;
  int hours = Digits(s, 1, 2);
  int minutes = Digits(s, 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  return (hours * 3600 + minutes * 60) * (s[0] == '-' ? -1 : 1);
}

// Strict RFC 3339 of any year; nullopt for what needs a closer look.
std::optional<Instant> ParseStrict(std::string_view s, size_t& fraction_digits) {
  if (s.size() <= kDateTimeSize) return std::nullopt;
  if (s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':') {
    return std::nullopt;
  }
  int year = Digits(s, 0, 4), month = Digits(s, 5, 2), day = Digits(s, 8, 2);
  int hour = Digits(s, 11, 2), minute = Digits(s, 14, 2), second = Digits(s, 17, 2);
  if (year < 0 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year{year},
                                   std::chrono::month{static_cast<unsigned>(month)},
                                   std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  Instant t;
  s.remove_prefix(kDateTimeSize);
  if (s.size() >= 2 && s[0] == '.' && Digits(s, 1, 1) >= 0) {
    size_t at = 1;
    int32_t unit = 100'000'000;
    for (; Digits(s, at, 1) >= 0; ++at, unit /= 10) t.nanos += (s[at] - '0') * unit;
    fraction_digits = at - 1;
    s.remove_prefix(at);
  }
  auto zone = Zone(s);
  if (!zone) return std::nullopt;
  t.seconds = std::chrono::sys_days{date}.time_since_epoch().count() * kDay + hour * 3600 +
              minute * 60 + second - *zone;
  return t;
}

void PutDigits(char* at, int64_t v, int n) {
  for (int i = n - 1; i >= 0; --i, v /= 10) at[i] = static_cast<char>('0' + v % 10);
}

}  // namespace

Result<Instant> ParseInstant(std::string_view text, TimeKind kind) {
  size_t fraction = 0;
  auto strict = ParseStrict(text, fraction);
  constexpr size_t kMicroDigits = 6;
  if (strict && (kind == TimeKind::kSeconds || fraction == kMicroDigits)) return *strict;
  auto loose = ParseTime(text);
  if (!loose) {
    Error error = loose.error();
    if (size_t at = error.message.find(kSecondsLayout);
        kind == TimeKind::kMicro && at != std::string::npos) {
      error.message.replace(at, kSecondsLayout.size(), kMicroLayout);
    }
    return Fail(std::move(error));
  }
  if (kind == TimeKind::kMicro) {
    std::string_view rest = text.substr(std::min(kDateTimeSize, text.size()));
    bool shorter = fraction < kMicroDigits;
    std::string_view bad = shorter ? rest : rest.substr(kMicroDigits + 1);
    return Fail(BadRequest("parsing time \"" + std::string(text) + "\" as \"" +
                           std::string(kMicroLayout) + "\": cannot parse \"" + std::string(bad) +
                           "\" as \"" + (shorter ? ".000000" : "Z07:00") + "\""));
  }
  int64_t ns = loose->time_since_epoch().count();
  constexpr int64_t kSecond = 1'000'000'000;
  Instant t{ns / kSecond, static_cast<int32_t>(ns % kSecond)};
  if (t.nanos < 0) {
    t.nanos += static_cast<int32_t>(kSecond);
    --t.seconds;
  }
  return t;
}

std::string FormatInstant(Instant t, TimeKind kind) {
  int64_t days = t.seconds / kDay;
  int64_t second = t.seconds % kDay;
  if (second < 0) {
    second += kDay;
    --days;
  }
  // Beyond what four digits of year can show there is nothing to print.
  constexpr int64_t kFirst = -719528, kLast = 2932896;  // 0000-01-01, 9999-12-31
  days = std::clamp(days, kFirst, kLast);
  std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(days)}}};
  char out[] = "0000-00-00T00:00:00.000000Z";
  PutDigits(out, static_cast<int>(date.year()), 4);
  PutDigits(out + 5, static_cast<unsigned>(date.month()), 2);
  PutDigits(out + 8, static_cast<unsigned>(date.day()), 2);
  PutDigits(out + 11, second / 3600, 2);
  PutDigits(out + 14, second / 60 % 60, 2);
  PutDigits(out + 17, second % 60, 2);
  if (kind == TimeKind::kSeconds) return std::string(out, kDateTimeSize) + "Z";
  PutDigits(out + kDateTimeSize + 1, t.nanos / 1000, 6);
  return out;
}

Result<std::string_view> CanonicalTime(std::string_view text, TimeKind kind, std::string& buffer) {
  ASSIGN_OR_RETURN(Instant t, ParseInstant(text, kind));
  if (t == kZeroInstant) return std::string_view();
  buffer = FormatInstant(t, kind);
  return buffer == text ? text : std::string_view(buffer);
}

Result<std::string_view> CanonicalDuration(std::string_view text, std::string& buffer) {
  ASSIGN_OR_RETURN(Duration d, ParseDuration(text));
  buffer = FormatDuration(d);
  return buffer == text ? text : std::string_view(buffer);
}

}  // namespace sextant::api
