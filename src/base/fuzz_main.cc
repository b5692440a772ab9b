// What libFuzzer calls: the target that SEXTANT_FUZZ_TARGET names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/fuzz.h"

namespace {

const sextant::fuzz::Target& Chosen() {
  const char* name = std::getenv("SEXTANT_FUZZ_TARGET");
  for (const sextant::fuzz::Target& target : sextant::fuzz::Targets())
    if (name && std::string_view(name) == target.name) return target;
  std::fprintf(stderr, "SEXTANT_FUZZ_TARGET must be one of:");
  for (const sextant::fuzz::Target& target : sextant::fuzz::Targets())
    std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sextant::fuzz::Target& target = Chosen();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
