#include "api/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/ascii.h"

namespace sextant::api {
namespace {

template <typename Predicate>
bool All(std::string_view s, Predicate p) {
  return std::ranges::all_of(s, p);
}

// Not empty, `inner` throughout, `outer` at both ends.
template <typename Outer, typename Inner>
bool Framed(std::string_view s, Outer outer, Inner inner) {
  return !s.empty() && outer(s.front()) && outer(s.back()) && All(s, inner);
}

bool DnsLabel(std::string_view s) {
  return Framed(s, IsLowerOrDigit, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool DnsLabelCaseless(std::string_view s) {
  return Framed(s, IsAlphanumeric, [](char c) { return IsAlphanumeric(c) || c == '-'; });
}

bool DnsLabelWithUnderscore(std::string_view s) {
  if (s.starts_with('_')) s.remove_prefix(1);
  return Framed(s, IsLowerOrDigit,
                [](char c) { return IsLowerOrDigit(c) || c == '-' || c == '_'; });
}

template <typename Label>
bool Dotted(std::string_view s, Label label) {
  while (true) {
    size_t dot = s.find('.');
    if (!label(s.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    s.remove_prefix(dot + 1);
  }
}

bool LabelText(std::string_view s) {
  return Framed(s, IsAlphanumeric,
                [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string Shape(std::string_view what, std::string_view regex,
                  std::initializer_list<std::string_view> examples = {}) {
  if (examples.size() == 0)
    return fmt::format("{} (regex used for validation is '{}')", what, regex);
  return fmt::format("{} (e.g. '{}', regex used for validation is '{}')", what,
                     fmt::join(examples, "',  or '"), regex);
}

std::string TooLong(size_t n, std::string_view unit) {
  return fmt::format("must be no more than {} {}", n, unit);
}

constexpr std::string_view kLabelRegex = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainRegex =
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
constexpr std::string_view kSubdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character";
constexpr std::string_view kKeyRegex = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kKey =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

// Apimachinery has two sets of these; one counts "characters", the other "bytes".
Complaints Subdomain(std::string_view text, std::string_view unit) {
  Complaints out;
  if (text.size() > kDns1123SubdomainMax) out.push_back(TooLong(kDns1123SubdomainMax, unit));
  if (!Dotted(text, DnsLabel)) out.push_back(Shape(kSubdomain, kSubdomainRegex, {"example.com"}));
  return out;
}

void DirectoryPrefix(std::string_view text, Complaints& out) {
  if (text == "." || text == "..") {
    out.push_back(fmt::format("must not be '{}'", text));
  } else if (text.starts_with("..")) {
    out.push_back("must not start with '..'");
  }
}

std::string MaskTrailingDash(std::string_view name, bool prefix) {
  std::string out(name);
  // Kubernetes drops one character too many.
  if (prefix && out.size() > 1 && out.ends_with('-')) out.replace(out.size() - 2, 2, "a");
  return out;
}

}  // namespace

std::string MaxLengthComplaint(size_t characters) { return TooLong(characters, "characters"); }

std::string RangeComplaint(int64_t low, int64_t high) {
  return fmt::format("must be between {} and {}, inclusive", low, high);
}

Complaints IsDns1123Label(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123LabelMax) out.push_back(MaxLengthComplaint(kDns1123LabelMax));
  if (DnsLabel(text)) return out;
  if (Dotted(text, DnsLabel)) {
    out.push_back("must not contain dots");
  } else {
    out.push_back(
        Shape("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
              "'-', and must start and end with an alphanumeric character",
              kLabelRegex, {"my-name", "123-abc"}));
  }
  return out;
}

Complaints IsDns1123Subdomain(std::string_view text) { return Subdomain(text, "characters"); }

Complaints IsDns1123SubdomainWithUnderscore(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123SubdomainMax) out.push_back(MaxLengthComplaint(kDns1123SubdomainMax));
  if (!Dotted(text, DnsLabelWithUnderscore)) {
    out.push_back(Shape(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
        "'_', '-' or '.', and must start and end with an alphanumeric character",
        "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*", {"example.com"}));
  }
  return out;
}

Complaints IsDns1123SubdomainCaseless(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123SubdomainMax) out.push_back(TooLong(kDns1123SubdomainMax, "bytes"));
  if (!Dotted(text, DnsLabelCaseless)) {
    out.push_back(
        Shape("an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must "
              "start and end with an alphanumeric character",
              kSubdomainRegex, {"Example.com"}));
  }
  return out;
}

Complaints IsWildcardDns1123Subdomain(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123SubdomainMax) out.push_back(MaxLengthComplaint(kDns1123SubdomainMax));
  if (!text.starts_with("*.") || !Dotted(text.substr(2), DnsLabel)) {
    out.push_back(
        Shape("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
              "DNS subdomain, which must consist of lower case alphanumeric characters, "
              "'-' or '.' and end with an alphanumeric character",
              "\\*\\." + std::string(kSubdomainRegex), {"*.example.com"}));
  }
  return out;
}

Complaints IsDns1035Label(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123LabelMax) out.push_back(MaxLengthComplaint(kDns1123LabelMax));
  if (!DnsLabel(text) || !IsLower(text.front())) {
    out.push_back(
        Shape("a DNS-1035 label must consist of lower case alphanumeric characters or "
              "'-', start with an alphabetic character, and end with an alphanumeric "
              "character",
              "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"}));
  }
  return out;
}

Complaints IsMixedCaseLabel(std::string_view text) {
  const Complaints why = IsDns1035Label(AsciiLower(text));
  if (why.empty()) return {};
  return {fmt::format("may have mixed case, but should otherwise match: {}", fmt::join(why, ","))};
}

Complaints IsGroupVersion(std::string_view text) {
  if (std::ranges::count(text, '/') <= 1) return {};
  return {fmt::format("unexpected GroupVersion string: {}", text)};
}

Complaints IsQualifiedName(std::string_view text) {
  Complaints out;
  constexpr size_t kNameMax = 63;
  size_t slash = text.find('/');
  std::string_view name = text;
  std::string shape = Shape(kKey, kKeyRegex, {"MyName", "my.name", "123-abc"});
  if (slash != std::string_view::npos) {
    std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return {"a valid label key " + shape +
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    if (prefix.empty()) {
      out.push_back("prefix part must be non-empty");
    } else {
      for (const std::string& c : Subdomain(prefix, "bytes")) out.push_back("prefix part " + c);
    }
  }
  if (name.empty()) {
    out.push_back("name part must be non-empty");
  } else if (name.size() > kNameMax) {
    out.push_back("name part " + TooLong(kNameMax, "bytes"));
  }
  if (!LabelText(name)) out.push_back("name part " + shape);
  return out;
}

Complaints IsLabelValue(std::string_view text) {
  Complaints out;
  if (text.size() > kLabelValueMax) out.push_back(TooLong(kLabelValueMax, "bytes"));
  if (!text.empty() && !LabelText(text)) {
    out.push_back(
        Shape("a valid label must be an empty string or consist of alphanumeric "
              "characters, '-', '_' or '.', and must start and end with an alphanumeric "
              "character",
              "(" + std::string(kKeyRegex) + ")?", {"MyValue", "my_value", "12345"}));
  }
  return out;
}

Complaints IsCIdentifier(std::string_view text) {
  bool ok = !text.empty() && !IsDigit(text.front()) &&
            All(text, [](char c) { return IsAlphanumeric(c) || c == '_'; });
  if (ok) return {};
  return {
      Shape("a valid C identifier must start with alphabetic character or '_', followed by a "
            "string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*", {"my_name", "MY_NAME", "MyName"})};
}

Complaints IsPathSegmentName(std::string_view text) {
  if (text == "." || text == "..") return {fmt::format("may not be '{}'", text)};
  Complaints out;
  for (char c : {'/', '%'}) {
    if (text.find(c) != std::string_view::npos)
      out.push_back(fmt::format("may not contain '{}'", c));
  }
  return out;
}

Complaints IsInRange(int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return {RangeComplaint(low, high)};
}

Complaints IsPortNumber(int64_t port) { return IsInRange(port, 1, 65535); }

Complaints IsUserId(int64_t id) { return IsInRange(id, 0, std::numeric_limits<int32_t>::max()); }

Complaints IsGroupId(int64_t id) { return IsUserId(id); }

Complaints IsPortName(std::string_view text) {
  constexpr size_t kMax = 15;
  Complaints out;
  if (text.size() > kMax) out.push_back(MaxLengthComplaint(kMax));
  if (text.empty() || !All(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; })) {
    out.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(text, IsLower)) out.push_back("must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos) {
    out.push_back("must not contain consecutive hyphens");
  }
  if (text.starts_with('-') || text.ends_with('-')) {
    out.push_back("must not begin or end with a hyphen");
  }
  return out;
}

Complaints IsPercent(std::string_view text) {
  bool ok = text.size() > 1 && text.ends_with('%') && All(text.substr(0, text.size() - 1), IsDigit);
  if (ok) return {};
  return {Shape("a valid percent string must be a numeric string followed by an ending '%'",
                "[0-9]+%", {"1%", "93%"})};
}

Complaints IsHttpHeaderName(std::string_view text) {
  if (!text.empty() && All(text, [](char c) { return IsAlphanumeric(c) || c == '-'; })) return {};
  return {Shape("a valid HTTP header must consist of alphanumeric characters or '-'",
                "[-A-Za-z0-9]+", {"X-Header-Name"})};
}

Complaints IsRelaxedEnvVarName(std::string_view text) {
  if (text.empty()) return {"environment variable name must be non-empty"};
  if (All(text, [](char c) { return c >= ' ' && c <= '~' && c != '='; })) return {};
  return {
      "a valid environment variable name must consist only of printable ASCII characters other "
      "than '='"};
}

Complaints IsConfigMapKey(std::string_view text) {
  Complaints out;
  if (text.size() > kDns1123SubdomainMax) out.push_back(MaxLengthComplaint(kDns1123SubdomainMax));
  bool ok = !text.empty() &&
            All(text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
  if (!ok) {
    out.push_back(
        Shape("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
              "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"}));
  }
  DirectoryPrefix(text, out);
  return out;
}

Complaints NameIsDnsSubdomain(std::string_view name, bool prefix) {
  return IsDns1123Subdomain(MaskTrailingDash(name, prefix));
}

Complaints NameIsDnsLabel(std::string_view name, bool prefix) {
  return IsDns1123Label(MaskTrailingDash(name, prefix));
}

}  // namespace sextant::api
