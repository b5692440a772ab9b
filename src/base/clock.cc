#include "base/clock.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "base/quote.h"

namespace sextant {
namespace {

using std::chrono::days;
using std::chrono::seconds;

constexpr std::string_view kLayout = "2006-01-02T15:04:05Z07:00";
constexpr int kNanosPerSecond = 1'000'000'000;

bool IsDigit(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

int Digit(char c) { return c - '0'; }

// "2006-01-02T15:04:05" of the second in which `t` lies.
std::string FormatSeconds(Time t) {
  // By whole seconds: a day's begin in nanoseconds may lie before the first Time.
  const auto whole = std::chrono::floor<seconds>(t);
  const auto day = std::chrono::floor<days>(whole);
  const std::chrono::year_month_day date{day};
  const auto second = (whole - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     second / 3600, second / 60 % 60, second % 60);
}

// The nearest Time to `second` seconds and `nanos` nanoseconds after the epoch.
Time Clamped(int64_t second, int nanos) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / kNanosPerSecond;
  if (second >= kMax) return Time::max();
  if (second <= -kMax) return Time::min();
  return Time{seconds{second} + Duration{nanos}};
}

// Reads a time element by element, and says what Go's time.Parse says where it stops.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text), rest_(text) {}

  Result<Time> Read() {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    const bool ok = Year(&year) && Skip("-") && Number("01", &month, true) &&
                    InRange(month, 1, 12, "month") && Skip("-") && Number("02", &day, true) &&
                    Skip("T") && Number("15", &hour, false) && InRange(hour, 0, 23, "hour") &&
                    Skip(":") && Number("04", &minute, true) && InRange(minute, 0, 59, "minute") &&
                    Skip(":") && Number("05", &second, true) && InRange(second, 0, 59, "second");
    if (!ok) return Failed();
    const int nanos = Fraction();
    int offset_s = 0;
    if (!Zone(&offset_s)) return Failed();
    if (!rest_.empty()) return Fails(fmt::format(": extra text: {}", Quote(rest_)));
    const std::chrono::year_month_day date{std::chrono::year{year},
                                           std::chrono::month{static_cast<unsigned>(month)},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    if (!date.ok()) return Fails(": day out of range");
    const int64_t midnight =
        int64_t{std::chrono::sys_days{date}.time_since_epoch().count()} * 86400;
    return Clamped(midnight + hour * 3600 + minute * 60 + second - offset_s, nanos);
  }

 private:
  std::unexpected<Error> Fails(std::string_view why) const {
    return Fail(BadRequest(fmt::format("parsing time {}{}", Quote(text_), why)));
  }
  std::unexpected<Error> Failed() const { return Fails(why_); }

  bool CannotParse(std::string_view from, std::string_view element) {
    why_ =
        fmt::format(" as {}: cannot parse {} as {}", Quote(kLayout), Quote(from), Quote(element));
    return false;
  }

  bool InRange(int value, int least, int most, std::string_view what) {
    if (value >= least && value <= most) return true;
    why_ = fmt::format(": {} out of range", what);
    return false;
  }

  bool Skip(std::string_view literal) {
    if (!rest_.starts_with(literal)) return CannotParse(rest_, literal);
    rest_.remove_prefix(literal.size());
    return true;
  }

  bool Year(int* year) {
    for (size_t i = 0; i < 4; ++i) {
      if (!IsDigit(rest_, i)) return CannotParse(rest_, "2006");
      *year = *year * 10 + Digit(rest_[i]);
    }
    rest_.remove_prefix(4);
    return true;
  }

  // Two digits, or one if `fixed` is false.
  bool Number(std::string_view element, int* value, bool fixed) {
    if (!IsDigit(rest_, 0) || (fixed && !IsDigit(rest_, 1))) return CannotParse(rest_, element);
    const size_t size = IsDigit(rest_, 1) ? 2 : 1;
    for (size_t i = 0; i < size; ++i) *value = *value * 10 + Digit(rest_[i]);
    rest_.remove_prefix(size);
    return true;
  }

  // Nanoseconds; digits after the ninth are cut.
  int Fraction() {
    if (rest_.empty() || (rest_[0] != '.' && rest_[0] != ',') || !IsDigit(rest_, 1)) return 0;
    int nanos = 0;
    size_t at = 1;
    for (; IsDigit(rest_, at); ++at)
      if (at <= 9) nanos = nanos * 10 + Digit(rest_[at]);
    for (size_t digits = at - 1; digits < 9; ++digits) nanos *= 10;
    rest_.remove_prefix(at);
    return nanos;
  }

  bool Zone(int* offset_s) {
    if (rest_.starts_with("Z")) {
      rest_.remove_prefix(1);
      return true;
    }
    const bool shaped = rest_.size() >= 6 && (rest_[0] == '+' || rest_[0] == '-') &&
                        IsDigit(rest_, 1) && IsDigit(rest_, 2) && rest_[3] == ':' &&
                        IsDigit(rest_, 4) && IsDigit(rest_, 5);
    if (!shaped) return CannotParse(rest_, "Z07:00");
    const int hours = Digit(rest_[1]) * 10 + Digit(rest_[2]);
    const int minutes = Digit(rest_[4]) * 10 + Digit(rest_[5]);
    if (!InRange(hours, 0, 24, "time zone offset hour")) return false;
    if (!InRange(minutes, 0, 60, "time zone offset minute")) return false;
    *offset_s = (hours * 3600 + minutes * 60) * (rest_[0] == '-' ? -1 : 1);
    rest_.remove_prefix(6);
    return true;
  }

  const std::string_view text_;
  std::string_view rest_;
  std::string why_;
};

struct Unit {
  std::string_view name;
  uint64_t nanos;
};
constexpr std::array<Unit, 8> kUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"\xc2\xb5s", 1'000},  // U+00B5, the micro sign
    {"\xce\xbcs", 1'000},  // U+03BC, the Greek letter
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};
constexpr uint64_t kDurationLimit = uint64_t{1} << 63;  // of a negative one; positive: one less

std::optional<uint64_t> UnitNanos(std::string_view name) {
  for (const Unit& unit : kUnits)
    if (unit.name == name) return unit.nanos;
  return std::nullopt;
}

// Reads one "1.5h" after another, with Go's rules for overflow and rounding.
class DurationReader {
 public:
  explicit DurationReader(std::string_view text) : text_(text), rest_(text) {}

  Result<Duration> Read() {
    bool negative = false;
    if (!rest_.empty() && (rest_[0] == '-' || rest_[0] == '+')) {
      negative = rest_[0] == '-';
      rest_.remove_prefix(1);
    }
    if (rest_ == "0") return Duration{0};
    if (rest_.empty()) return Fails("invalid duration");
    uint64_t total = 0;
    while (!rest_.empty()) {
      ASSIGN_OR_RETURN(const uint64_t part, Part());
      total += part;
      if (total > kDurationLimit) return Fails("invalid duration");
    }
    if (negative) return Duration{static_cast<int64_t>(~total + 1)};
    if (total == kDurationLimit) return Fails("invalid duration");
    return Duration{static_cast<int64_t>(total)};
  }

 private:
  std::unexpected<Error> Fails(std::string_view why) const {
    return Fail(BadRequest(fmt::format("time: {} {}", why, Quote(text_))));
  }

  Result<uint64_t> Part() {
    uint64_t whole = 0;
    size_t digits = 0;
    for (; IsDigit(rest_, digits); ++digits) {
      if (whole > kDurationLimit / 10) return Fails("invalid duration");
      whole = whole * 10 + static_cast<uint64_t>(Digit(rest_[digits]));
      if (whole > kDurationLimit) return Fails("invalid duration");
    }
    rest_.remove_prefix(digits);
    double fraction = 0, scale = 1;
    digits += Fraction(&fraction, &scale);
    if (digits == 0) return Fails("invalid duration");

    size_t size = 0;
    while (size < rest_.size() && rest_[size] != '.' && !IsDigit(rest_, size)) ++size;
    if (size == 0) return Fails("missing unit in duration");
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    const std::optional<uint64_t> unit = UnitNanos(name);
    if (!unit) return Fails(fmt::format("unknown unit {} in duration", Quote(name)));
    if (whole > kDurationLimit / *unit) return Fails("invalid duration");
    whole *= *unit;
    whole += static_cast<uint64_t>(fraction * (static_cast<double>(*unit) / scale));
    if (whole > kDurationLimit) return Fails("invalid duration");
    return whole;
  }

  // The digits after a point; those too many for 63 bits are cut. Returns how many were read.
  size_t Fraction(double* fraction, double* scale) {
    if (rest_.empty() || rest_[0] != '.') return 0;
    uint64_t value = 0;
    size_t at = 1;
    bool full = false;
    for (; IsDigit(rest_, at); ++at) {
      full = full || value > (kDurationLimit - 1) / 10;
      if (full) continue;
      value = value * 10 + static_cast<uint64_t>(Digit(rest_[at]));
      *scale *= 10;
    }
    rest_.remove_prefix(at);
    *fraction = static_cast<double>(value);
    return at - 1;
  }

  const std::string_view text_;
  std::string_view rest_;
};

// `value` / `scale` with the zeros at the end of its fraction cut: 1500/1000 is "1.5".
std::string Decimal(uint64_t value, uint64_t scale) {
  std::string out = fmt::format("{}", value / scale);
  uint64_t rest = value % scale;
  if (rest == 0) return out;
  out += '.';
  while (rest != 0) {
    scale /= 10;
    out += static_cast<char>('0' + rest / scale);
    rest %= scale;
  }
  return out;
}

}  // namespace

Time RealClock::Now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

Duration RealClock::Monotonic() const {
  return std::chrono::steady_clock::now().time_since_epoch();
}

std::string FormatTime(Time t) { return FormatSeconds(t) + "Z"; }

std::string FormatMicroTime(Time t) {
  int64_t nanos = t.time_since_epoch().count() % kNanosPerSecond;
  if (nanos < 0) nanos += kNanosPerSecond;
  return fmt::format("{}.{:06}Z", FormatSeconds(t), nanos / 1000);
}

Result<Time> ParseTime(std::string_view text) { return TimeReader(text).Read(); }

Result<Duration> ParseDuration(std::string_view text) { return DurationReader(text).Read(); }

std::string FormatDuration(Duration d) {
  const bool negative = d.count() < 0;
  uint64_t nanos = static_cast<uint64_t>(d.count());
  if (negative) nanos = ~nanos + 1;
  const std::string sign = negative ? "-" : "";
  if (nanos == 0) return "0s";
  if (nanos < 1'000) return fmt::format("{}{}ns", sign, nanos);
  if (nanos < 1'000'000) return fmt::format("{}{}\xc2\xb5s", sign, Decimal(nanos, 1'000));
  if (nanos < kNanosPerSecond) return fmt::format("{}{}ms", sign, Decimal(nanos, 1'000'000));
  constexpr uint64_t kMinute = uint64_t{60} * kNanosPerSecond;
  const std::string rest = Decimal(nanos % kMinute, kNanosPerSecond);
  const uint64_t minutes = nanos / kMinute;
  if (minutes == 0) return fmt::format("{}{}s", sign, rest);
  if (minutes < 60) return fmt::format("{}{}m{}s", sign, minutes, rest);
  return fmt::format("{}{}h{}m{}s", sign, minutes / 60, minutes % 60, rest);
}

}  // namespace sextant
