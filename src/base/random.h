// Chance, the only source of it (DESIGN, law 4). A seeded Random gives the same numbers on every
// run; secrets (keys, tokens, nonces) always come from SecureBytes. Threads: a Random belongs to
// one thread; SecureBytes may be called from any.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sextant {

// SplitMix64: small, fast, passes BigCrush, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint64_t Below(uint64_t bound);  // uniform in [0, bound); bound > 0

 private:
  uint64_t state_;
};

// A seed from the operating system.
uint64_t RandomSeed();
// Fills from getrandom(2).
void SecureBytes(std::span<uint8_t> out);
// `length` characters of the alphabet that Kubernetes uses for generated names
// (apimachinery pkg/util/rand: no vowels, no look-alikes).
std::string NameSuffix(Random& random, int length = 5);
// A version 4 UUID in lower case.
std::string NewUuid(Random& random);

}  // namespace sextant
