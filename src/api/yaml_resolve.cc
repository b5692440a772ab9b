// ResolveYaml of yaml.h: the scalar rules of go.yaml.in/yaml/v2.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "api/yaml.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                       "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};

template <size_t N>
bool In(std::string_view s, const std::string_view (&list)[N]) {
  return std::ranges::find(list, s) != std::end(list);
}

YamlScalar Float(double v) { return {.kind = YamlKind::kFloat, .number = v}; }

std::optional<double> Special(std::string_view s) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (s == ".nan" || s == ".NaN" || s == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  bool negative = s.starts_with('-');
  if (negative || s.starts_with('+')) s.remove_prefix(1);
  if (s == ".inf" || s == ".Inf" || s == ".INF") return negative ? -kInf : kInf;
  return std::nullopt;
}

// Four digits, a dash and what Go's formats allow behind: a time, which stays text.
bool LooksLikeTime(std::string_view s) {
  size_t digits = 0;
  while (digits < s.size() && IsDigit(s[digits])) ++digits;
  return digits == 4 && s.size() > 4 && s[4] == '-';
}

// Go's ParseInt with base 0: 0x, 0o, 0b, or a leading zero for octal.
std::optional<YamlScalar> Integer(std::string_view s) {
  bool negative = s.starts_with('-');
  if (negative || s.starts_with('+')) s.remove_prefix(1);
  int base = 10;
  if (s.size() > 1 && s[0] == '0') {
    char c = s[1];
    bool marked = true;
    if (c == 'x' || c == 'X') {
      base = 16;
    } else if (c == 'b' || c == 'B') {
      base = 2;
    } else if (c == 'o' || c == 'O') {
      base = 8;
    } else {
      base = 8;
      marked = false;
    }
    s.remove_prefix(marked ? 2 : 1);
  }
  uint64_t v = 0;
  auto [ptr, ec] = std::from_chars(s.data(), s.data() + s.size(), v, base);
  if (ec != std::errc() || ptr != s.data() + s.size()) return std::nullopt;
  constexpr uint64_t kMost = uint64_t{1} << 63;
  if (negative && v <= kMost) {
    return YamlScalar{.kind = YamlKind::kInt, .integer = static_cast<int64_t>(~v + 1)};
  }
  if (negative) return std::nullopt;
  if (v < kMost) return YamlScalar{.kind = YamlKind::kInt, .integer = static_cast<int64_t>(v)};
  return Float(static_cast<double>(v));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool FloatShape(std::string_view s) {
  size_t at = s.starts_with('-') || s.starts_with('+') ? 1 : 0;
  size_t whole = at;
  while (at < s.size() && IsDigit(s[at])) ++at;
  bool digits = at > whole;
  if (at < s.size() && s[at] == '.') {
    size_t fraction = ++at;
    while (at < s.size() && IsDigit(s[at])) ++at;
    digits = digits || at > fraction;
  }
  if (!digits) return false;
  if (at < s.size() && (s[at] == 'e' || s[at] == 'E')) {
    ++at;
    if (at < s.size() && (s[at] == '-' || s[at] == '+')) ++at;
    size_t exponent = at;
    while (at < s.size() && IsDigit(s[at])) ++at;
    if (at == exponent) return false;
  }
  return at == s.size();
}

}  // namespace

YamlScalar ResolveYaml(std::string_view s) {
  if (In(s, kNull)) return {.kind = YamlKind::kNull};
  if (In(s, kTrue)) return {.kind = YamlKind::kBool, .boolean = true};
  if (In(s, kFalse)) return {.kind = YamlKind::kBool, .boolean = false};
  if (auto v = Special(s)) return Float(*v);
  bool numeric = IsDigit(s[0]) || s[0] == '-' || s[0] == '+' || s[0] == '.';
  constexpr size_t kLongest = 512;  // no number that means something is longer
  if (!numeric || s.size() > kLongest || LooksLikeTime(s)) return {};
  std::string plain;
  std::ranges::copy_if(s, std::back_inserter(plain), [](char c) { return c != '_'; });
  if (s[0] == '.') plain = s;
  if (s[0] != '.') {
    if (auto v = Integer(plain)) return *v;
  }
  if (!FloatShape(plain)) return {};
  double v = std::strtod(plain.c_str(), nullptr);
  if (v > std::numeric_limits<double>::max() || v < std::numeric_limits<double>::lowest()) {
    return {};  // out of range: Go leaves it text
  }
  return Float(v);
}

}  // namespace sextant::api
