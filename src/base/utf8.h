// UTF-8: what Go's unicode/utf8 takes for it (no surrogates, no overlong forms, at most U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sextant {

// Length of the sequence at the begin of `s`; 0 if none begins there.
constexpr size_t Utf8Length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint32_t a = byte(0), b = byte(1);
  if (a < 0x80) return s.empty() ? 0 : 1;
  if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0;
  if ((a & 0xf0) == 0xe0) {
    const bool ok = tail(1) && tail(2) && !(a == 0xe0 && b < 0xa0) && !(a == 0xed && b > 0x9f);
    return ok ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const bool ok =
        tail(1) && tail(2) && tail(3) && !(a == 0xf0 && b < 0x90) && !(a == 0xf4 && b > 0x8f);
    return ok ? 4 : 0;
  }
  return 0;
}

// The character of one whole sequence.
constexpr uint32_t Utf8Rune(std::string_view sequence) {
  uint32_t rune = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() > 1) rune &= 0xffu >> (sequence.size() + 1);
  for (size_t i = 1; i < sequence.size(); ++i) {
    rune = rune << 6 | (static_cast<uint8_t>(sequence[i]) & 0x3fu);
  }
  return rune;
}

constexpr bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8Length(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

// Writes a character, up to four bytes; returns what is behind it.
constexpr char* PutUtf8(char* to, uint32_t rune) {
  const auto put = [&](uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (rune < 0x80) {
    put(rune);
    return to;
  }
  if (rune < 0x800) {
    put(0xc0 | rune >> 6);
  } else if (rune < 0x10000) {
    put(0xe0 | rune >> 12);
    put(0x80 | (rune >> 6 & 0x3f));
  } else {
    put(0xf0 | rune >> 18);
    put(0x80 | (rune >> 12 & 0x3f));
    put(0x80 | (rune >> 6 & 0x3f));
  }
  put(0x80 | (rune & 0x3f));
  return to;
}

}  // namespace sextant
