// resource.Quantity: an exact decimal number with a suffix ("500m", "16Gi", "12e6").
//
//   Quantity q = *Quantity::Parse("1.5Gi");
//   q.Value();      // 1610612736
//   q.ToString();   // "1536Mi"
//
// The rules are apimachinery's (pkg/api/resource): precision down to nano, more is rounded up (away
// from zero); binary quantities are capped at 2^63-1. Numbers of more than 36 significant digits,
// which no resource has, are rounded up here, in Kubernetes not.
// Errors: 400 with apimachinery's text. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sextant::api {

__extension__ typedef __int128 Int128;

class Quantity {
 public:
  enum class Format : uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

  Quantity() = default;
  explicit Quantity(int64_t value, Format format = Format::kDecimalSi)
      : mantissa_(value), format_(format) {}
  static Result<Quantity> Parse(std::string_view text);
  // 0 for text that is not a quantity: for values that were checked when they came in.
  static Quantity ParseOrZero(std::string_view text);

  std::string ToString() const;  // canonical form
  int64_t Value() const;         // whole units, rounded up, clamped to 64 bits
  int64_t MilliValue() const;    // thousandths, likewise
  double AsDouble() const;
  Format format() const { return format_; }

  int Sign() const { return mantissa_ > 0 ? 1 : mantissa_ < 0 ? -1 : 0; }
  bool IsZero() const { return mantissa_ == 0; }
  // Takes the other's format when this is zero. Clamped at the limits of 128 bits.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  Quantity operator-() const;
  Quantity operator*(int64_t factor) const;
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  int Compare(const Quantity& other) const;  // <0, 0, >0; the format does not count
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.Compare(b) == 0; }
  friend auto operator<=>(const Quantity& a, const Quantity& b) { return a.Compare(b) <=> 0; }

 private:
  // Value is mantissa * 10^exponent; exponent >= -9.
  Int128 mantissa_ = 0;
  int32_t exponent_ = 0;
  Format format_ = Format::kDecimalSi;
};

// The text that Kubernetes shows for a quantity that was given as `text`: often the same text (then
// the result is `text` itself), else the canonical form, stored in `buffer`.
Result<std::string_view> CanonicalQuantity(std::string_view text, std::string& buffer);

}  // namespace sextant::api
