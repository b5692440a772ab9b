#include "base/nearest.h"

#include <algorithm>

#include "base/ascii.h"

namespace sextant {
namespace {

constexpr size_t kMaxWord = 256;

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMaxWord);
  b = b.substr(0, kMaxWord);
  const size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int& cell = table[i * width + j];
      if (i == 0 || j == 0) {
        cell = static_cast<int>(i + j);
        continue;
      }
      const int replace = table[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      cell = std::min({table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell = std::min(cell, table[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return table.back();
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  const std::string wanted = AsciiLower(word);
  const int limit = std::max<int>(1, static_cast<int>(word.size()) / 3);
  std::string best;
  int best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(wanted, AsciiLower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace sextant
