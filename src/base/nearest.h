// The nearest words: for "did you mean". Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other.
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, letter case aside; empty when none is near (more than a third of
// the word would have to change).
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace sextant
