#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace sextant {
namespace {

struct Alphabet {
  std::string_view symbols;
  std::array<int8_t, 256> values;  // -1: no symbol

  constexpr explicit Alphabet(std::string_view text) : symbols(text), values() {
    values.fill(-1);
    for (size_t i = 0; i < text.size(); ++i) {
      values[static_cast<uint8_t>(text[i])] = static_cast<int8_t>(i);
    }
  }
};
constexpr Alphabet kStandard("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
constexpr Alphabet kUrl("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");

std::string Encode(std::string_view bytes, const Alphabet& alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      if (k <= have) {
        out += alphabet.symbols[group >> (18 - 6 * k) & 63];
      } else if (pad) {
        out += '=';
      }
    }
  }
  return out;
}

struct Rules {
  bool padded;      // padding must stand where it is due
  bool zero_spare;  // the last symbol's spare bits are zero
};

Result<std::string> Decode(std::string_view text, const Alphabet& alphabet, Rules rules) {
  const auto bad = [] { return Fail(BadRequest("illegal base64 data")); };
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;  // symbols in the present group of four
  int pads = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      if (count < 2 || count + ++pads > 4) return bad();
      continue;
    }
    const int8_t value = alphabet.values[static_cast<uint8_t>(c)];
    if (value < 0 || pads > 0) return bad();
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++count < 4) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift);
    bits = 0;
    count = 0;
  }
  const bool pads_matter = rules.padded || pads > 0;
  if (count == 1 || (pads_matter && count != 0 && count + pads != 4)) return bad();
  const int spare = count == 2 ? 4 : count == 3 ? 2 : 0;
  if (rules.zero_spare && (bits & ((1u << spare) - 1)) != 0) return bad();
  if (count == 3) out += static_cast<char>(bits >> 10);
  if (count != 0) out += static_cast<char>(bits >> spare);
  return out;
}

}  // namespace

std::string Base64(std::string_view bytes) { return Encode(bytes, kStandard, true); }
std::string Base64Url(std::string_view bytes) { return Encode(bytes, kUrl, false); }

Result<std::string> Base64Decode(std::string_view text) {
  return Decode(text, kStandard, {.padded = true, .zero_spare = false});
}

Result<std::string> Base64UrlDecode(std::string_view text) {
  return Decode(text, kUrl, {.padded = false, .zero_spare = true});
}

}  // namespace sextant
