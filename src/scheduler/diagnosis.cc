#include "scheduler/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::scheduler {

std::string FitError(const Diagnosis& diagnosis, size_t node_count) {
  if (node_count == 0) return "no nodes available to schedule pods";
  std::string text = fmt::format("0/{} nodes are available:", node_count);
  if (!diagnosis.pre_filter.ok()) {
    text += fmt::format(" {}.", fmt::join(diagnosis.pre_filter.reasons, ", "));
  } else {
    std::map<std::string, int> counts;
    for (const auto& [node, verdict] : diagnosis.nodes) {
      for (const std::string& reason : verdict.reasons) ++counts[reason];
    }
    std::vector<std::string> parts;
    for (const auto& [reason, count] : counts) parts.push_back(fmt::format("{} {}", count, reason));
    // As strings: "10 x" stands before "2 y".
    std::sort(parts.begin(), parts.end());
    if (!parts.empty()) text += fmt::format(" {}.", fmt::join(parts, ", "));
  }
  if (!diagnosis.post_filter.empty()) text += " " + diagnosis.post_filter;
  return text;
}

}  // namespace sextant::scheduler
