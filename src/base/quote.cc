#include "base/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/utf8.h"

namespace sextant {
namespace {

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
    const size_t length = Utf8Length(text);
    const size_t size = std::max<size_t>(1, length);
    const uint32_t rune = Utf8Rune(text.substr(0, size));
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (const char letter = ShortEscape(rune)) {
      out += '\\';
      out += letter;
    } else if (IsPrintable(rune)) {
      out += text.substr(0, size);
    } else if (rune < 0x80) {
      out += fmt::format("\\x{:02x}", rune);
    } else if (rune < 0x10000) {
      out += fmt::format("\\u{:04x}", rune);
    } else {
      out += fmt::format("\\U{:08x}", rune);
    }
    text.remove_prefix(size);
  }
  return out + '"';
}

}  // namespace sextant
