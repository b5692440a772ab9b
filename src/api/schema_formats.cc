#include "api/schema_formats.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "api/names.h"
#include "api/regex.h"
#include "api/rules_kit.h"
#include "api/time_value.h"
#include "base/ascii.h"
#include "base/clock.h"

namespace sextant::api {
namespace {

using Check = bool (*)(std::string_view);

// A pattern that is compiled when it is first needed and lives as long as the program.
template <const char* kPattern>
bool Matches(std::string_view text) {
  static const auto* const expression = new re2::RE2(kPattern);
  return re2::RE2::FullMatch(Re2Text(text), *expression);
}

constexpr char kHex24[] = "[0-9a-fA-F]{24}";
constexpr char kUuid[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUuid3[] = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}";
constexpr char kUuid4[] =
    "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kUuid5[] =
    "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}";
constexpr char kMac[] =
    "(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?:(?::[0-9a-fA-F]{2}){2}|(?::[0-9a-fA-F]{2}){14})?)|"
    "(?:[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}(?:(?:-[0-9a-fA-F]{2}){2}|(?:-[0-9a-fA-F]{2}){14})?)|"
    "(?:[0-9a-fA-F]{4}(?:\\.[0-9a-fA-F]{4}){2}(?:\\.[0-9a-fA-F]{4}|(?:\\.[0-9a-fA-F]{4}){7})?)";
constexpr char kHexColor[] = "#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})";
constexpr char kRgbColor[] =
    "rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25"
    "[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*\\)";
constexpr char kBase64[] =
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})";
constexpr char kSsn[] = "\\d{3}[- ]\\d{2}[- ]\\d{4}";
constexpr char kHostname[] =
    "([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-"
    "Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63})";
constexpr char kCard[] =
    "(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0["
    "0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\\d{3})\\d{11})";
constexpr char kEmail[] = "(?:[^<>]*<[^\\s@<>]+@[^\\s@<>]+>)|(?:[^\\s@<>]+@[^\\s@<>]+)";
constexpr char kTimeOfDay[] =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})";
constexpr char kScheme[] = "[a-zA-Z][a-zA-Z0-9+.-]*:.*";

std::string Only(std::string_view text, std::string_view drop) {
  std::string out;
  for (char c : text)
    if (drop.find(c) == std::string_view::npos) out += c;
  return out;
}

bool IsHostname(std::string_view text) {
  constexpr size_t kMax = 255;
  constexpr size_t kMaxLabel = 63;
  if (text.size() > kMax || !Matches<kHostname>(text)) return false;
  size_t label = 0;
  for (char c : text) {
    label = c == '.' ? 0 : label + 1;
    if (label > kMaxLabel) return false;
  }
  return true;
}

// As govalidator tells them apart: an IPv4 address in an IPv6 one is both.
bool IsV4(std::string_view text) { return text.find('.') != std::string_view::npos && IsIp(text); }
bool IsV6(std::string_view text) { return text.find(':') != std::string_view::npos && IsIp(text); }

// An absolute URI or an absolute path.
bool IsUri(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return text == "*" || text[0] == '/' || Matches<kScheme>(text);
}

bool IsIsbn10(std::string_view text) {
  const std::string s = Only(text, " \t\r\n-");
  if (s.size() != 10) return false;
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    const char c = s[static_cast<size_t>(i)];
    const bool cross = i == 9 && c == 'X';
    if (!cross && !IsDigit(c)) return false;
    sum += (i + 1) * (cross ? 10 : c - '0');
  }
  return sum % 11 == 0;
}

bool IsIsbn13(std::string_view text) {
  const std::string s = Only(text, " \t\r\n-");
  if (s.size() != 13) return false;
  int sum = 0;
  for (size_t i = 0; i < 13; ++i) {
    if (!IsDigit(s[i])) return false;
    sum += (i % 2 == 0 ? 1 : 3) * (s[i] - '0');
  }
  return sum % 10 == 0;
}

bool IsIsbn(std::string_view text) { return IsIsbn10(text) || IsIsbn13(text); }

bool IsCard(std::string_view text) {
  std::string digits;
  for (char c : text)
    if (IsDigit(c)) digits += c;
  if (!Matches<kCard>(digits)) return false;
  int sum = 0;
  bool twice = false;
  for (auto c = digits.rbegin(); c != digits.rend(); ++c, twice = !twice) {
    const int n = (*c - '0') * (twice ? 2 : 1);
    sum += n >= 10 ? n - 9 : n;
  }
  return sum % 10 == 0;
}

bool IsDate(std::string_view text) {
  return text.size() == 10 &&
         ParseInstant(std::string(text) + "T00:00:00Z", TimeKind::kSeconds).has_value();
}

bool IsDateTime(std::string_view text) {
  const std::string lower = AsciiLower(text);
  const size_t t = lower.find('t');
  return t != std::string::npos && IsDate(text.substr(0, t)) &&
         Matches<kTimeOfDay>(std::string_view(lower).substr(t + 1));
}

// Besides Go's durations: a number and a unit anywhere in the text, "2 days" say.
bool IsDuration(std::string_view text) {
  if (ParseDuration(text)) return true;
  constexpr std::array kUnits = {"ns", "us", "\xc2\xb5s", "ms", "s", "m",
                                 "h",  "hr", "d",         "w",  "wk"};
  constexpr std::array kWords = {"nano", "micro", "milli", "sec", "min", "hour", "day", "week"};
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsDigit(text[i])) continue;
    while (i < text.size() && IsDigit(text[i])) ++i;
    while (i < text.size() && IsSpace(text[i])) ++i;
    std::string unit;
    while (i < text.size() && (IsLetter(text[i]) || static_cast<uint8_t>(text[i]) >= 0x80)) {
      unit += AsciiLower(text[i++]);
    }
    for (std::string_view known : kUnits)
      if (unit == known) return true;
    for (std::string_view word : kWords)
      if (unit.starts_with(word)) return true;
  }
  return false;
}

bool IsShortName(std::string_view text) { return IsDns1123Label(text).empty(); }
bool IsLongName(std::string_view text) { return IsDns1123Subdomain(text).empty(); }
bool Anything(std::string_view) { return true; }

struct Row {
  std::string_view name;  // without dashes, as they are compared
  Check check;
};
constexpr std::array<Row, 26> kFormats = {{
    {"bsonobjectid", Matches<kHex24>},
    {"uri", IsUri},
    {"email", Matches<kEmail>},
    {"hostname", IsHostname},
    {"ipv4", IsV4},
    {"ipv6", IsV6},
    {"cidr", IsCidr},
    {"mac", Matches<kMac>},
    {"uuid", Matches<kUuid>},
    {"uuid3", Matches<kUuid3>},
    {"uuid4", Matches<kUuid4>},
    {"uuid5", Matches<kUuid5>},
    {"isbn", IsIsbn},
    {"isbn10", IsIsbn10},
    {"isbn13", IsIsbn13},
    {"creditcard", IsCard},
    {"ssn", Matches<kSsn>},
    {"hexcolor", Matches<kHexColor>},
    {"rgbcolor", Matches<kRgbColor>},
    {"byte", Matches<kBase64>},
    {"password", Anything},
    {"date", IsDate},
    {"duration", IsDuration},
    {"datetime", IsDateTime},
    {"k8sshortname", IsShortName},
    {"k8slongname", IsLongName},
}};

Check Find(std::string_view format) {
  const std::string name = Only(format, "-");
  for (const Row& row : kFormats)
    if (row.check != nullptr && row.name == name) return row.check;
  return nullptr;
}

}  // namespace

bool IsKnownFormat(std::string_view format, std::string_view type) {
  if (type.empty() || type == "string") return Find(format) != nullptr;
  if (type == "integer") return format == "int32" || format == "int64";
  if (type == "number") return format == "float" || format == "double";
  return false;
}

bool HasFormat(std::string_view text, std::string_view format) {
  const Check check = Find(format);
  return check == nullptr || check(text);
}

}  // namespace sextant::api
