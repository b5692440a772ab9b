// docs/fidelity.md: how many recorded steps are answered as the real server answered them, and why
// the others are not.
#pragma once

#include <map>
#include <span>
#include <string>

#include "case_file.h"

namespace sextant::recorded {

// Of one case file, or of all.
struct CaseCount {
  std::string name;
  size_t steps = 0;
  size_t reads = 0;    // GET, HEAD, and events read from a watch
  size_t refused = 0;  // answered with 400 or more
  size_t equal = 0;
};

CaseCount CountOf(const CaseFile& file);  // equal: 0
CaseCount Sum(std::span<const CaseCount> counts);

// `differences`: by "file: step", why.
std::string FidelityPage(std::span<const CaseCount> counts,
                         const std::map<std::string, std::string>& differences);

}  // namespace sextant::recorded
