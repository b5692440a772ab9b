// Letters as ASCII has them, whatever the locale: what <cctype> would ask the locale for.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsLowerOrDigit(char c) { return IsLower(c) || IsDigit(c); }
constexpr bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr char AsciiUpper(char c) { return IsLower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
constexpr bool IsLetter(char c) { return IsLower(AsciiLower(c)); }
constexpr bool IsAlphanumeric(char c) { return IsDigit(c) || IsLetter(c); }
// -1 for what is no hexadecimal digit.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = AsciiLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string AsciiLower(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

}  // namespace sextant
