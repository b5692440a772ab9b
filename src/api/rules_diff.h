// A unified diff of two texts, three lines of context and no file names, as Python's difflib and
// its Go translation make it (which Kubernetes prints when a Pod's update is refused).
//
//   UnifiedDiff("a\nb", "a\nc") == "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
//
// Pure function. Costs O(n*m) at worst: for texts of one object.
#pragma once

#include <string>
#include <string_view>

namespace sextant::api {

std::string UnifiedDiff(std::string_view from, std::string_view to);

}  // namespace sextant::api
