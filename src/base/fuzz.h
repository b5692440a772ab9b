// Fuzz targets: functions that take any bytes and must neither crash, hang nor break what they
// CHECK.
//
//   FUZZ_TARGET(json) {
//     const Result<Object> tree = ParseJson(input);
//     ...
//   }
//
// They stand in x_fuzz.cc beside the code. The room's test program runs them over the inputs in
// testdata/fuzz/<target>, `./dev fuzz` builds them with libFuzzer (base/fuzz_main.cc).
#pragma once

#include <string_view>
#include <vector>

namespace sextant::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};

inline std::vector<Target>& Targets() {
  static std::vector<Target> targets;
  return targets;
}

struct Registered {
  Registered(const char* name, void (*run)(std::string_view)) { Targets().push_back({name, run}); }
};

// Takes an input apart: what steers a target stands first, the rest is text.
class Bytes {
 public:
  explicit Bytes(std::string_view input) : left_(input) {}
  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  std::string_view Take(size_t n) {
    const std::string_view taken = left_.substr(0, n);
    left_.remove_prefix(taken.size());
    return taken;
  }
  // Up to the next line that is "---"; the rest if there is none.
  std::string_view Part() {
    const size_t end = left_.find("\n---\n");
    const std::string_view part = left_.substr(0, end);
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 5);
    return part;
  }
  std::string_view Rest() { return Take(left_.size()); }

 private:
  std::string_view left_;
};

}  // namespace sextant::fuzz

#define FUZZ_TARGET(name)                                                          \
  static void Fuzz_##name(std::string_view input);                                 \
  static const ::sextant::fuzz::Registered registered_##name(#name, &Fuzz_##name); \
  static void Fuzz_##name(std::string_view input)
