#include "base/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/check.h"

namespace sextant {

uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t Random::Below(uint64_t bound) {
  CHECK(bound > 0);
  // Numbers under 2^64 mod bound are thrown away, so that every remainder is equally likely.
  const uint64_t least = (uint64_t{0} - bound) % bound;
  for (;;) {
    const uint64_t value = Next();
    if (value >= least) return value % bound;
  }
}

uint64_t RandomSeed() {
  std::array<uint8_t, 8> bytes;
  SecureBytes(bytes);
  uint64_t seed = 0;
  for (const uint8_t byte : bytes) seed = (seed << 8) | byte;
  return seed;
}

void SecureBytes(std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    // Nothing to go on with: a key must not come from anywhere else.
    CHECK(got > 0);
    out = out.subspan(static_cast<size_t>(got));
  }
}

std::string NameSuffix(Random& random, int length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (int i = 0; i < length; ++i) out += kAlphabet[random.Below(kAlphabet.size())];
  return out;
}

std::string NewUuid(Random& random) {
  const uint64_t high = (random.Next() & ~uint64_t{0xf000}) | 0x4000;  // version 4
  const uint64_t low = (random.Next() >> 2) | (uint64_t{1} << 63);     // variant 10
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

}  // namespace sextant
