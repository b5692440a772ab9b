#include "api/rules_kit.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>

#include "api/json.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxAnnotationBytes = size_t{256} << 10;
constexpr size_t kMaxConditionReason = 1024;
constexpr size_t kMaxConditionMessage = size_t{32} << 10;

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

bool Empty(Value v) { return !v || ((v.IsMap() || v.IsList()) && v.empty()); }

}  // namespace

void At::Print(std::string& out) const {
  if (parent_) parent_->Print(out);
  if (!name_.empty()) {
    if (!out.empty()) out += '.';
    out += name_;
  }
  if (index_ >= 0) {
    out += '[';
    out += std::to_string(index_);
    out += ']';
  } else if (index_ == kKeyIndex) {
    out += '[';
    out += key_;
    out += ']';
  }
}

std::string At::ToString() const {
  std::string out;
  Print(out);
  return out;
}

bool Given(Mut message, std::string_view name) {
  return message.Has(name) && message[name].kind() != Kind::kNull;
}

void ApplyDefaults(Mut message, std::span<const Default> defaults) {
  using How = Default::How;
  for (const Default& d : defaults) {
    const bool given = Given(message, d.name);
    switch (d.how) {
      case How::kText:
        if (!given) message.Set(d.name, d.text);
        break;
      case How::kFilled:
        if (!given || message[d.name].AsString().empty()) message.Set(d.name, d.text);
        break;
      case How::kInt:
        if (!given) message.Set(d.name, d.number);
        break;
      case How::kBool:
        if (!given) message.Set(d.name, d.number != 0);
        break;
      case How::kMap:
        if (!given) message[d.name].SetMap();
        ApplyDefaults(message[d.name], d.below);
        break;
      case How::kIn:
        if (given) ApplyDefaults(message[d.name], d.below);
        break;
      case How::kEach:
        if (!given) break;
        for (size_t i = 0, n = message[d.name].size(); i < n; ++i) {
          ApplyDefaults(message[d.name].at(i), d.below);
        }
        break;
    }
  }
}

void SetOrErase(Mut message, std::string_view name, Value value) {
  if (value) {
    message.Set(name, value);
  } else {
    message.Erase(name);
  }
}

void Complain(const Complaints& complaints, std::string_view value, const At& at,
              FieldErrors& errors) {
  for (const std::string& why : complaints) errors.InvalidText(at, value, why);
}

void NonNegative(Value message, std::string_view name, const At& at, FieldErrors& errors) {
  const Value v = message[name];
  if (v.AsInt() < 0) errors.Invalid(at / name, v, std::string(kNotNegative));
}

void RequiredText(Value message, std::string_view name, const At& at, FieldErrors& errors) {
  if (message[name].AsString().empty()) errors.Required(at / name, "");
}

void NotSupported(std::string path, std::string_view value, Words words, FieldErrors& errors) {
  errors.NotSupported(std::move(path), value, std::vector<std::string>(words.begin(), words.end()));
}

void OneOf(Value message, std::string_view name, Words words, const At& at, FieldErrors& errors,
           bool absent_ok) {
  const Value v = message[name];
  if (!v && absent_ok) return;
  if (std::ranges::find(words, v.AsString()) != words.end()) return;
  NotSupported(at / name, v.AsString(), words, errors);
}

bool Same(Value a, Value b) { return (Empty(a) && Empty(b)) || Equal(a, b); }

void Immutable(Value next, Value old, const At& at, FieldErrors& errors) {
  if (!Same(next, old)) errors.Invalid(at, next, std::string(kImmutable));
}

void ImmutableMessage(Value next, Value old, std::string_view message, const At& at,
                      FieldErrors& errors) {
  if (Same(next, old)) return;
  errors.InvalidRaw(at, InternalJson(next, message), std::string(kImmutable));
}

void ValidateLabels(Value labels, const At& at, FieldErrors& errors) {
  for (auto [key, value] : labels.members()) {
    Complain(IsQualifiedName(key), key, at, errors);
    Complain(IsLabelValue(value.AsString()), value.AsString(), at, errors);
  }
}

void ValidateAnnotations(Value annotations, const At& at, FieldErrors& errors) {
  size_t bytes = 0;
  for (auto [key, value] : annotations.members()) {
    Complain(IsQualifiedName(AsciiLower(key)), key, at, errors);
    bytes += key.size() + value.AsString().size();
  }
  if (bytes > kMaxAnnotationBytes) errors.TooLong(at, kMaxAnnotationBytes);
}

bool ValidateLabelSelector(Value selector, const At& at, FieldErrors& errors,
                           bool invalid_values_ok) {
  const size_t before = errors.causes().size();
  ValidateLabels(selector["matchLabels"], at / "matchLabels", errors);
  size_t i = 0;
  for (Value expr : selector["matchExpressions"].items()) {
    const At here = at.Item("matchExpressions", i++);
    const std::string_view op = expr["operator"].AsString();
    const Value values = expr["values"];
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.Required(here / "values", "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.Forbidden(here / "values",
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      }
    } else {
      errors.InvalidText(here / "operator", op, "not a valid selector operator");
    }
    Complain(IsQualifiedName(expr["key"].AsString()), expr["key"].AsString(), here / "key", errors);
    if (invalid_values_ok) continue;
    size_t j = 0;
    for (Value v : values.items()) {
      Complain(IsLabelValue(v.AsString()), v.AsString(), here.Item("values", j++), errors);
    }
  }
  return errors.causes().size() == before;
}

void ValidateConditions(Value conditions, const At& at, FieldErrors& errors) {
  std::set<std::string_view> seen;
  size_t i = 0;
  for (Value c : conditions.items()) {
    const At here = at.Item("", i++);
    const std::string_view type = c["type"].AsString();
    if (!seen.insert(type).second) errors.Duplicate(here / "type", type);
    Complain(IsQualifiedName(type), type, here / "type", errors);
    OneOf(c, "status", {"False", "True", "Unknown"}, here, errors, false);
    if (c["observedGeneration"].AsInt() < 0) {
      errors.Invalid(here / "observedGeneration", c["observedGeneration"],
                     "must be greater than or equal to zero");
    }
    if (!c["lastTransitionTime"]) errors.Required(here / "lastTransitionTime", "must be set");
    const std::string_view reason = c["reason"].AsString();
    if (reason.empty()) {
      errors.Required(here / "reason", "must be set");
    } else {
      if (reason.size() > kMaxConditionReason) errors.TooLong(here / "reason", kMaxConditionReason);
      const auto word = [](char ch, bool first) {
        return IsLetter(ch) || (!first && (IsDigit(ch) || ch == '_' || ch == ',' || ch == ':'));
      };
      const bool shape = word(reason.front(), true) && reason.back() != ',' &&
                         reason.back() != ':' &&
                         std::ranges::all_of(reason, [&](char ch) { return word(ch, false); });
      if (!shape) {
        errors.InvalidText(here / "reason", reason,
                           "a condition reason must start with alphabetic character, optionally "
                           "followed by a string of alphanumeric characters or '_,:', and must end "
                           "with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
                           "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used "
                           "for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
      }
    }
    if (c["message"].AsString().size() > kMaxConditionMessage) {
      errors.TooLong(here / "message", kMaxConditionMessage);
    }
  }
}

bool IsPercentText(Value v) { return v.IsString() && IsPercent(v.AsString()).empty(); }

int64_t PercentOf(Value v) {
  if (!IsPercentText(v)) return 0;
  int64_t n = 0;
  for (char c : v.AsString()) {
    if (c == '%' || n > 1'000'000'000) break;
    n = n * 10 + (c - '0');
  }
  return n;
}

void ValidateIntOrPercent(Value v, const At& at, FieldErrors& errors) {
  if (v.IsString()) {
    Complain(IsPercent(v.AsString()), v.AsString(), at, errors);
  } else if (v.AsInt() < 0) {
    errors.Invalid(at, v, std::string(kNotNegative));
  }
}

void ValidateAtMost100Percent(Value v, const At& at, FieldErrors& errors) {
  if (PercentOf(v) > 100) {
    errors.Invalid(at, v, "must not be greater than 100%");
  }
}

namespace {

struct Ip {
  bool valid = false;
  bool v6 = false;
  bool leading_zero = false;
  bool mapped = false;  // IPv4 in IPv6
  bool loopback = false;
  std::array<unsigned char, 16> bytes{};
};

Ip ParseIp(std::string_view text) {
  Ip ip;
  if (text.find('\0') != std::string_view::npos) return ip;  // inet_pton would stop there
  std::string plain;
  if (text.find(':') == std::string_view::npos) {
    // inet_pton refuses leading zeros, which Go's older parser takes.
    for (size_t i = 0; i < text.size(); ++i) {
      const bool starts = i == 0 || text[i - 1] == '.';
      size_t end = i;
      while (starts && end + 1 < text.size() && text[end] == '0' && text[end + 1] != '.') ++end;
      if (end > i) ip.leading_zero = true;
      i = end;
      plain += text[i];
    }
    in_addr v4;
    ip.valid = inet_pton(AF_INET, plain.c_str(), &v4) == 1;
    if (ip.valid) std::memcpy(ip.bytes.data(), &v4, sizeof(v4));
    ip.loopback = ip.valid && ip.bytes[0] == 127;
    return ip;
  }
  plain = text;
  in6_addr v6;
  ip.v6 = true;
  ip.valid = inet_pton(AF_INET6, plain.c_str(), &v6) == 1;
  if (ip.valid) std::memcpy(ip.bytes.data(), &v6, sizeof(v6));
  ip.mapped = ip.valid && IN6_IS_ADDR_V4MAPPED(&v6);
  ip.loopback = ip.valid && IN6_IS_ADDR_LOOPBACK(&v6);
  return ip;
}

Complaints IpComplaints(std::string_view text) {
  const Ip ip = ParseIp(text);
  if (!ip.valid) return {"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"};
  Complaints out;
  if (ip.leading_zero) out.emplace_back("must not have leading 0s");
  if (ip.mapped) out.emplace_back("must not be an IPv4-mapped IPv6 address");
  return out;
}

struct Cidr {
  Ip ip;
  std::string_view length;
  size_t bits = 0;
  bool valid = false;

  size_t most() const { return ip.v6 ? 128 : 32; }
};

bool Bit(const Ip& ip, size_t i) { return (ip.bytes[i / 8] & (0x80U >> (i % 8))) != 0; }

Cidr ParseCidr(std::string_view text) {
  Cidr c;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return c;
  c.ip = ParseIp(text.substr(0, slash));
  c.length = text.substr(slash + 1);
  const char* end = c.length.data() + c.length.size();
  const auto [last, error] = std::from_chars(c.length.data(), end, c.bits);
  const bool number = error == std::errc() && last == end;
  c.valid = c.ip.valid && number && c.bits <= c.most();
  return c;
}

// As Go's net.IP prints it.
std::string Printed(const Ip& ip) {
  if (!ip.v6) {
    return fmt::format("{}.{}.{}.{}", ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]);
  }
  constexpr size_t kGroups = 8;
  const auto group = [&ip](size_t i) { return ip.bytes[2 * i] << 8 | ip.bytes[2 * i + 1]; };
  size_t gap = kGroups;  // the longest run of zeros, of two groups at least
  size_t length = 1;
  for (size_t i = 0; i < kGroups;) {
    size_t end = i;
    while (end < kGroups && group(end) == 0) ++end;
    if (end - i > length) {
      gap = i;
      length = end - i;
    }
    i = end + 1;
  }
  std::string out;
  for (size_t i = 0; i < kGroups; ++i) {
    if (i == gap) {
      out += "::";
      i += length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    out += fmt::format("{:x}", group(i));
  }
  return out;
}

Complaints CidrComplaints(std::string_view text) {
  const Cidr c = ParseCidr(text);
  if (!c.valid) return {"must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"};
  Complaints out;
  if (c.ip.leading_zero || (c.length.size() > 1 && c.length[0] == '0')) {
    out.emplace_back("must not have leading 0s in IP or prefix length");
  }
  if (c.ip.mapped) out.emplace_back("must not have an IPv4-mapped IPv6 address");
  for (size_t i = c.bits; i < c.most(); ++i) {
    if (!Bit(c.ip, i)) continue;
    out.emplace_back("must not have bits set beyond the prefix length");
    break;
  }
  return out;
}

Complaints WrittenAs(std::string_view wanted, std::string_view text) {
  if (text == wanted) return {};
  return {fmt::format("must be in canonical form (\"{}\")", wanted)};
}

}  // namespace

void ValidateIp(std::string_view text, const At& at, FieldErrors& errors) {
  Complain(IpComplaints(text), text, at, errors);
}

void ValidateCidr(std::string_view text, const At& at, FieldErrors& errors) {
  Complain(CidrComplaints(text), text, at, errors);
}

Complaints IsCanonicalIp(std::string_view text) {
  Complaints broken = IpComplaints(text);
  return broken.empty() ? WrittenAs(Printed(ParseIp(text)), text) : broken;
}

Complaints IsCanonicalCidr(std::string_view text) {
  Complaints broken = CidrComplaints(text);
  if (!broken.empty()) return broken;
  const Cidr c = ParseCidr(text);
  return WrittenAs(fmt::format("{}/{}", Printed(c.ip), c.bits), text);
}

bool IsIp(std::string_view text) { return ParseIp(text).valid; }
bool IsCidr(std::string_view text) { return ParseCidr(text).valid; }

bool IsStrictSubnet(std::string_view inner, std::string_view outer) {
  const Cidr small = ParseCidr(inner);
  const Cidr large = ParseCidr(outer);
  if (!small.valid || !large.valid) return true;
  if (small.ip.v6 != large.ip.v6 || small.bits <= large.bits) return false;
  for (size_t i = 0; i < large.bits; ++i) {
    if (Bit(small.ip, i) != Bit(large.ip, i)) return false;
  }
  return true;
}

bool IsIpV6(std::string_view text) {
  const Ip ip = ParseIp(text);
  return ip.valid && ip.v6 && !ip.mapped;
}

bool IsLoopbackIp(std::string_view text) { return ParseIp(text).loopback; }

bool IsBlank(std::string_view text) { return Trimmed(text).empty(); }
bool HasLineBreak(std::string_view text) {
  return Trimmed(text).find_first_of("\r\n") != std::string_view::npos;
}

void ValidateNoBacksteps(std::string_view path, const At& at, FieldErrors& errors) {
  for (std::string_view rest = path; true;) {
    const size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") {
      errors.InvalidText(at, path, "must not contain '..'");
      return;
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

void ValidateDescendingPath(std::string_view path, const At& at, FieldErrors& errors) {
  if (path.starts_with('/')) errors.InvalidText(at, path, "must be a relative path");
  ValidateNoBacksteps(path, at, errors);
}

void ValidateNonReservedPath(std::string_view path, const At& at, FieldErrors& errors) {
  ValidateDescendingPath(path, at, errors);
  if (path.starts_with("..") && !path.starts_with("../")) {
    errors.InvalidText(at, path, "must not start with '..'");
  }
}

}  // namespace sextant::api
