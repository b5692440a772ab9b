#include "api/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr int kNano = -9;
constexpr int kMaxDigits = 36;                 // significant digits kept; 10^36 < 2^127
constexpr int64_t kMaxExponent = 999'999'999;  // a multiple of three, as printed ones are
constexpr Int128 kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr Int128 kMaxInt128 = static_cast<Int128>((~static_cast<unsigned __int128>(0)) >> 1);

constexpr std::string_view kFormatWrong =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kSuffixWrong = "unable to parse quantity's suffix";

struct Suffix {
  std::string_view text;
  int base;
  int exponent;
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"", 10, 0},
                                               {"m", 10, -3},
                                               {"Ki", 2, 10},
                                               {"Mi", 2, 20},
                                               {"Gi", 2, 30},
                                               {"k", 10, 3},
                                               {"M", 10, 6},
                                               {"G", 10, 9},
                                               {"n", 10, -9},
                                               {"u", 10, -6},
                                               {"T", 10, 12},
                                               {"P", 10, 15},
                                               {"E", 10, 18},
                                               {"Ti", 2, 40},
                                               {"Pi", 2, 50},
                                               {"Ei", 2, 60}}};

struct Parts {
  bool negative = false;
  std::string_view num = "0";  // without leading zeros
  std::string_view denom;
  std::string_view suffix;
  int base = 10;
  int exponent = 0;
  Quantity::Format format = Quantity::Format::kDecimalSi;
};

size_t SkipDigits(std::string_view s, size_t at) {
  while (at < s.size() && IsDigit(s[at])) ++at;
  return at;
}

// Splits; nullptr if the text is well formed, else the error text.
const std::string_view* Split(std::string_view s, Parts& p) {
  if (s.empty()) return &kFormatWrong;
  size_t at = 0;
  if (s[0] == '-' || s[0] == '+') {
    p.negative = s[0] == '-';
    at = 1;
  }
  while (at < s.size() && s[at] == '0') ++at;
  size_t end = SkipDigits(s, at);
  if (end > at) p.num = s.substr(at, end - at);
  at = end;
  if (at < s.size() && s[at] == '.') {
    end = SkipDigits(s, at + 1);
    p.denom = s.substr(at + 1, end - at - 1);
    at = end;
  }
  size_t suffix = at;
  at = std::min(s.find_first_not_of("eEinumkKMGTP", at), s.size());
  if (at < s.size() && (s[at] == '-' || s[at] == '+')) ++at;
  if (SkipDigits(s, at) != s.size()) return &kFormatWrong;
  p.suffix = s.substr(suffix);
  for (const Suffix& known : kSuffixes) {
    if (known.text != p.suffix) continue;
    p.base = known.base;
    p.exponent = known.exponent;
    if (p.base == 2) p.format = Quantity::Format::kBinarySi;
    return nullptr;
  }
  if (p.suffix.size() < 2 || (p.suffix[0] != 'e' && p.suffix[0] != 'E')) return &kSuffixWrong;
  const char* first = p.suffix.data() + (p.suffix[1] == '+' ? 2 : 1);
  const char* last = p.suffix.data() + p.suffix.size();
  auto [ptr, ec] = std::from_chars(first, last, p.exponent);
  if (first == last || *first == '+' || ec != std::errc() || ptr != last) return &kSuffixWrong;
  p.format = Quantity::Format::kDecimalExponent;
  return nullptr;
}

Int128 Pow10(int n) {
  Int128 v = 1;
  for (int i = 0; i < n; ++i) v *= 10;
  return v;
}

// a / 10^n, rounded away from zero.
Int128 ShrinkUp(Int128 a, int n) {
  if (n <= 0) return a;
  if (n > 38) return a > 0 ? 1 : a < 0 ? -1 : 0;
  Int128 by = Pow10(n);
  Int128 q = a / by;
  if (a % by != 0) q += a > 0 ? 1 : -1;
  return q;
}

Int128 MultiplyClamped(Int128 a, Int128 b) {
  Int128 out;
  if (!__builtin_mul_overflow(a, b, &out)) return out;
  return (a > 0) == (b > 0) ? kMaxInt128 : -kMaxInt128;
}

Int128 AddClamped(Int128 a, Int128 b) {
  Int128 out;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return a > 0 ? kMaxInt128 : -kMaxInt128;
}

// a * 10^n for any n >= 0.
Int128 Grow(Int128 a, int n) {
  if (a == 0) return 0;
  for (; n > 0; --n) {
    if (a > kMaxInt128 / 10 || a < -kMaxInt128 / 10) return a > 0 ? kMaxInt128 : -kMaxInt128;
    a *= 10;
  }
  return a;
}

int64_t Clamp64(Int128 v) {
  constexpr Int128 kMin = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(std::clamp(v, kMin, kMaxInt64));
}

std::string Digits(Int128 v) {
  if (v == 0) return "0";
  bool negative = v < 0;
  std::string out;
  for (; v != 0; v /= 10) {
    int d = static_cast<int>(v % 10);
    out += static_cast<char>('0' + (d < 0 ? -d : d));
  }
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

// The significant digits of num.denom as a number, rounded up where there are too many; `places`
// becomes the count of decimal places of the result (negative: trailing zeros left out).
Int128 Mantissa(const Parts& p, int max_places, int& places) {
  Int128 m = 0;
  int digits = 0;
  places = 0;
  bool rest = false;
  auto take = [&](char c, bool fraction) {
    bool full = digits >= kMaxDigits || (fraction && places >= max_places);
    if (full) {
      rest = rest || c != '0';
      if (!fraction) --places;
      return;
    }
    m = m * 10 + (c - '0');
    if (m != 0) ++digits;
    if (fraction) ++places;
  };
  for (char c : p.num) take(c, false);
  for (char c : p.denom) take(c, true);
  return rest ? m + 1 : m;
}

// Whether Kubernetes keeps the given text instead of printing the number anew: its parser's fast
// path remembers the text when it looks canonical.
bool KeepsText(const Parts& p) {
  int digits = static_cast<int>(p.num.size() + p.denom.size());
  constexpr int kFastDigits = 18;
  if (digits > kFastDigits) return false;
  int64_t value = 0;
  for (char c : p.num) value = value * 10 + (c - '0');
  for (char c : p.denom) value = value * 10 + (c - '0');
  if (p.format == Quantity::Format::kBinarySi) {
    if (!p.denom.empty()) return false;
    int precision = 15 - static_cast<int>(p.num.size()) - p.exponent * 3 / 10 - 1;
    int64_t product;
    if (precision < 0 || __builtin_mul_overflow(value, int64_t{1} << p.exponent, &product)) {
      return false;
    }
    return (value & 7) != 0;
  }
  int64_t scale = int64_t{p.exponent} - static_cast<int64_t>(p.denom.size());
  if (scale < kNano || scale % 3 != 0 || p.num[0] == '0') return false;
  std::string_view last = p.denom.size() >= 3 ? p.denom : p.num;
  if (p.denom.size() >= 3) return !last.ends_with("000");
  std::string all = std::string(p.num) + std::string(p.denom);
  return !all.ends_with("000");
}

Error Wrong(std::string_view why) { return BadRequest(why); }

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  Parts p;
  if (const std::string_view* why = Split(text, p)) return Fail(Wrong(*why));
  Quantity q;
  q.format_ = p.format;
  int places = 0;
  if (p.base == 2) {
    constexpr int kBinaryPlaces = 19;
    Int128 m = Mantissa(p, kBinaryPlaces, places);
    Int128 whole = places >= 0 ? m / Pow10(places) : kMaxInt128;
    if (whole > (kMaxInt64 >> p.exponent)) {
      m = kMaxInt64;
      places = 0;
    } else {
      m <<= p.exponent;
    }
    q.mantissa_ = m;
    q.exponent_ = -places;
  } else {
    q.mantissa_ = Mantissa(p, std::numeric_limits<int>::max(), places);
    int64_t exponent = int64_t{p.exponent} - places;
    // What is past the limit stands at it with its shortest mantissa, so that its text is read
    // again as the same.
    if (exponent > kMaxExponent)
      for (; q.mantissa_ != 0 && q.mantissa_ % 10 == 0; ++exponent) q.mantissa_ /= 10;
    q.exponent_ = static_cast<int32_t>(std::clamp<int64_t>(exponent, -kMaxExponent, kMaxExponent));
  }
  if (q.exponent_ < kNano) {
    q.mantissa_ = ShrinkUp(q.mantissa_, kNano - q.exponent_);
    q.exponent_ = kNano;
  }
  if (p.base == 2) {
    if (q.Compare(Quantity(std::numeric_limits<int64_t>::max())) > 0) {
      q.mantissa_ = kMaxInt64;
      q.exponent_ = 0;
    }
    if (!q.IsZero() && q.Compare(Quantity(1)) < 0) q.format_ = Format::kDecimalSi;
  }
  if (q.mantissa_ == 0) q.exponent_ = 0;
  if (p.negative) q.mantissa_ = -q.mantissa_;
  return q;
}

Quantity Quantity::ParseOrZero(std::string_view text) {
  auto q = Parse(text);
  return q ? *q : Quantity();
}

std::string Quantity::ToString() const {
  if (mantissa_ == 0) return "0";
  if (format_ == Format::kBinarySi && Compare(Quantity(1024)) >= 0) {
    Int128 whole = exponent_ >= 0 ? Grow(mantissa_, exponent_) : mantissa_;
    int places = exponent_ >= 0 ? 0 : -exponent_;
    if (whole % Pow10(places) == 0) {
      whole /= Pow10(places);
      int exponent = 0;
      for (; whole % 1024 == 0 && exponent < 60; exponent += 10) whole /= 1024;
      for (const Suffix& s : kSuffixes) {
        if (exponent == 0) return Digits(whole);
        if (s.base == 2 && s.exponent == exponent) return Digits(whole) + std::string(s.text);
      }
    }
  } else if (format_ == Format::kBinarySi && Compare(Quantity(-1024)) <= 0) {
    return "-" + (-*this).ToString();
  }
  Int128 m = mantissa_;
  int64_t exponent = exponent_;
  while (m % 10 == 0) {
    m /= 10;
    ++exponent;
  }
  int64_t spare = ((exponent % 3) + 3) % 3;
  m = Grow(m, static_cast<int>(spare));
  exponent -= spare;
  if (format_ == Format::kDecimalExponent) {
    return exponent == 0 ? Digits(m) : Digits(m) + "e" + std::to_string(exponent);
  }
  for (; exponent > 18; --exponent) m = Grow(m, 1);
  for (const Suffix& s : kSuffixes) {
    if (s.base == 10 && s.exponent == exponent) return Digits(m) + std::string(s.text);
  }
  return Digits(m);
}

int64_t Quantity::Value() const {
  return Clamp64(exponent_ >= 0 ? Grow(mantissa_, exponent_) : ShrinkUp(mantissa_, -exponent_));
}

int64_t Quantity::MilliValue() const {
  int e = exponent_ + 3;
  return Clamp64(e >= 0 ? Grow(mantissa_, e) : ShrinkUp(mantissa_, -e));
}

double Quantity::AsDouble() const {
  double m = static_cast<double>(mantissa_);
  return exponent_ < 0 ? m / std::pow(10.0, -exponent_) : m * std::pow(10.0, exponent_);
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (other.mantissa_ == 0) {
    if (mantissa_ == 0) format_ = other.format_;
    return *this;
  }
  if (mantissa_ == 0) return *this = other;
  if (exponent_ > other.exponent_) {
    mantissa_ = Grow(mantissa_, exponent_ - other.exponent_);
    exponent_ = other.exponent_;
    mantissa_ = AddClamped(mantissa_, other.mantissa_);
  } else {
    mantissa_ = AddClamped(mantissa_, Grow(other.mantissa_, other.exponent_ - exponent_));
  }
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) { return *this += -other; }

Quantity Quantity::operator-() const {
  Quantity q = *this;
  q.mantissa_ = -q.mantissa_;
  return q;
}

Quantity Quantity::operator*(int64_t factor) const {
  Quantity q = *this;
  q.mantissa_ = MultiplyClamped(q.mantissa_, factor);
  return q;
}

int Quantity::Compare(const Quantity& other) const {
  if (Sign() != other.Sign()) return Sign() < other.Sign() ? -1 : 1;
  Int128 a = mantissa_;
  Int128 b = other.mantissa_;
  if (exponent_ != other.exponent_) {
    // Bring to one exponent; what does not fit any more is larger in magnitude.
    bool grow_a = exponent_ > other.exponent_;
    Int128& grown = grow_a ? a : b;
    for (int n = grow_a ? exponent_ - other.exponent_ : other.exponent_ - exponent_; n > 0; --n) {
      if (grown == 0) break;
      if (grown > kMaxInt128 / 10 || grown < -kMaxInt128 / 10) {
        bool larger = grow_a == (Sign() > 0);
        return larger ? 1 : -1;
      }
      grown *= 10;
    }
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

Result<std::string_view> CanonicalQuantity(std::string_view text, std::string& buffer) {
  if (text == "0") return text;
  Parts p;
  if (const std::string_view* why = Split(text, p)) return Fail(Wrong(*why));
  if (KeepsText(p)) return text;
  auto q = Quantity::Parse(text);
  if (!q) return Fail(q.error());
  buffer = q->ToString();
  if (buffer == text) return text;
  return std::string_view(buffer);
}

}  // namespace sextant::api
