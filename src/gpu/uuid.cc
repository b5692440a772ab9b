#include "gpu/uuid.h"

#include <openssl/sha.h>

#include <array>
#include <cstdint>

namespace sextant::gpu {
namespace {

using Digest = std::array<unsigned char, SHA_DIGEST_LENGTH>;

// Sextant's own name space (RFC 4122, 4.3): any fixed UUID.
constexpr std::string_view kNameSpace =
    "\x7a\x0c\x3e\x51\x9d\x42\x4f\x8b\xa6\x1f\x5e\xd2\xc0\x93\x68\x17";

Digest Sha1(std::string_view text) {
  Digest out;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

}  // namespace

std::string NameUuid(std::initializer_list<std::string_view> names) {
  std::string text(kNameSpace);
  for (const std::string_view name : names) {
    text += std::to_string(name.size());
    text += ':';
    text += name;
  }
  Digest digest = Sha1(text);
  digest[6] = static_cast<unsigned char>((digest[6] & 0x0F) | 0x50);
  digest[8] = static_cast<unsigned char>((digest[8] & 0x3F) | 0x80);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    out.push_back(kHex[digest[i] >> 4]);
    out.push_back(kHex[digest[i] & 15]);
  }
  return out;
}

std::string CardUuid(std::string_view cluster, std::string_view node, int index) {
  return "GPU-" + NameUuid({"card", cluster, node, std::to_string(index)});
}

std::string MigUuid(std::string_view card_uuid, std::string_view profile, int start) {
  return "MIG-" + NameUuid({"mig", card_uuid, profile, std::to_string(start)});
}

std::string SerialOf(std::string_view card_uuid) {
  const Digest digest = Sha1(card_uuid);
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) number = number << 8 | digest[i];
  constexpr uint64_t kTwelveDigits = 1'000'000'000'000;
  std::string digits = std::to_string(number % kTwelveDigits);
  return "1" + std::string(12 - digits.size(), '0') + digits;
}

}  // namespace sextant::gpu
