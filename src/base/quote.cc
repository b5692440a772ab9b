#include "base/quote.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace sextant {
namespace {

struct Rune {
  uint32_t value = 0;
  size_t size = 0;  // 0: the byte begins no valid UTF-8 sequence
};

Rune DecodeRune(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t size = 0;
  uint32_t value = 0;
  uint32_t least = 0;
  if ((first & 0xe0) == 0xc0) {
    size = 2, value = first & 0x1fU, least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    size = 3, value = first & 0x0fU, least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    size = 4, value = first & 0x07U, least = 0x10000;
  } else {
    return {};
  }
  if (text.size() < size) return {};
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < least || value > 0x10ffff || surrogate) return {};
  return {value, size};
}

bool IsPrintable(uint32_t rune) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kUnprintable[] = {
      {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},     {0x1680, 0x1680},    {0x180e, 0x180e},
      {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},    {0xe000, 0xf8ff},
      {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff},
  };
  for (const Range& range : kUnprintable)
    if (rune >= range.first && rune <= range.last) return false;
  return true;
}

// The escapes with a letter of their own; 0 for all others.
char ShortEscape(uint32_t rune) {
  switch (rune) {
    case '\a':
      return 'a';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '\v':
      return 'v';
    case '"':
      return '"';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = DecodeRune(text);
    const size_t size = rune.size == 0 ? 1 : rune.size;
    if (rune.size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (const char letter = ShortEscape(rune.value)) {
      out += '\\';
      out += letter;
    } else if (IsPrintable(rune.value)) {
      out += text.substr(0, size);
    } else if (rune.value < 0x80) {
      out += fmt::format("\\x{:02x}", rune.value);
    } else if (rune.value < 0x10000) {
      out += fmt::format("\\u{:04x}", rune.value);
    } else {
      out += fmt::format("\\U{:08x}", rune.value);
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

}  // namespace sextant
