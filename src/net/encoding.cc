// Digests and hexadecimal text of net/tls.h.
#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

std::string Digest(const EVP_MD* kind, std::string_view data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  CHECK(EVP_Digest(data.data(), data.size(), out.data(), &size, kind, nullptr) == 1);
  return std::string(reinterpret_cast<const char*>(out.data()), size);
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

}  // namespace sextant::net
