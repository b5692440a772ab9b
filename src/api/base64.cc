#include "api/base64.h"

#include <array>
#include <cstdint>

namespace sextant::api {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> out{};
  out.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    out[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return out;
}();

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t v = 0;
    for (size_t k = 0; k < 3; ++k) {
      v = v << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kAlphabet[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

bool DecodeBase64(std::string_view text, std::string& bytes) {
  uint32_t bits = 0;
  size_t count = 0;
  size_t padding = 0;
  bytes.reserve(bytes.size() + text.size() / 4 * 3);
  for (char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    int8_t v = kValues[static_cast<uint8_t>(c)];
    if (v < 0 || padding != 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(v);
    if (++count % 4 != 0) continue;
    for (int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift);
    bits = 0;
  }
  size_t rest = count % 4;
  if (rest == 1 || padding != (rest == 0 ? 0 : 4 - rest)) return false;
  if (rest == 2) bytes += static_cast<char>(bits >> 4);
  if (rest == 3) {
    bytes += static_cast<char>(bits >> 10);
    bytes += static_cast<char>(bits >> 2);
  }
  return true;
}

}  // namespace sextant::api
