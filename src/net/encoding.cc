// Digests and text encodings of net/tls.h.
#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

constexpr std::string_view kStandard =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Digest(const EVP_MD* kind, std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  CHECK(EVP_Digest(data.data(), data.size(), out.data(), &size, kind, nullptr) == 1);
  return std::string(reinterpret_cast<const char*>(out.data()), size);
}

std::string Encode(std::string_view bytes, std::string_view alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      if (k <= have) {
        out += alphabet[group >> (18 - 6 * k) & 63];
      } else if (pad) {
        out += '=';
      }
    }
  }
  return out;
}

// One form for each value: bits left over in the last symbol must be zero.
Result<std::string> Decode(std::string_view text, std::string_view alphabet, bool must_pad) {
  const auto bad = [] { return Fail(BadRequest("illegal base64 data")); };
  std::array<int8_t, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i) {
    value[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;  // symbols in the present group of four
  int pads = 0;
  for (char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      if (count < 2 || count + ++pads > 4) return bad();
      continue;
    }
    const int8_t v = value[static_cast<unsigned char>(c)];
    if (v < 0 || pads > 0) return bad();
    bits = bits << 6 | static_cast<uint32_t>(v);
    if (++count == 4) {
      out += static_cast<char>(bits >> 16 & 255);
      out += static_cast<char>(bits >> 8 & 255);
      out += static_cast<char>(bits & 255);
      bits = 0;
      count = 0;
    }
  }
  if (count == 1 || ((must_pad || pads > 0) && count != 0 && count + pads != 4)) return bad();
  if (count == 2) {
    if (bits & 15) return bad();
    out += static_cast<char>(bits >> 4 & 255);
  } else if (count == 3) {
    if (bits & 3) return bad();
    out += static_cast<char>(bits >> 10 & 255);
    out += static_cast<char>(bits >> 2 & 255);
  }
  return out;
}

}  // namespace

std::string Sha256(std::string_view data) { return Digest(EVP_sha256(), data); }
std::string Sha1(std::string_view data) { return Digest(EVP_sha1(), data); }

std::string Hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) {
    out += kHex[static_cast<unsigned char>(c) >> 4];
    out += kHex[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string Base64(std::string_view bytes) { return Encode(bytes, kStandard, true); }
std::string Base64Url(std::string_view bytes) { return Encode(bytes, kUrl, false); }

Result<std::string> Base64Decode(std::string_view text) { return Decode(text, kStandard, true); }
Result<std::string> Base64UrlDecode(std::string_view text) { return Decode(text, kUrl, false); }

}  // namespace sextant::net
