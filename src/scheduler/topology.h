// Counts by topology value: what the plugins that look at other Pods' places compute for a cycle.
// Plain values; copies are independent.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/document.h"

namespace sextant::scheduler {

// Counts of (label key, label value) pairs of nodes. Pairs whose count is zero are not there.
class TopologyCounts {
 public:
  void Add(std::string_view key, api::Value node_labels, int64_t by) {
    const api::Value value = node_labels[key];
    if (value.IsAbsent() || by == 0) return;
    auto& values = counts_[std::string(key)];
    const auto at = values.try_emplace(std::string(value.AsString()), 0).first;
    if ((at->second += by) != 0) return;
    values.erase(at);
    if (values.empty()) counts_.erase(std::string(key));
  }
  int64_t Of(std::string_view key, api::Value node_labels) const {
    const auto values = counts_.find(key);
    return values == counts_.end() ? 0 : Of(values->second, node_labels[key].AsString());
  }
  // The sum over all keys that the node has.
  int64_t Sum(api::Value node_labels) const {
    int64_t sum = 0;
    for (const auto& [key, values] : counts_)
      if (node_labels.Has(key)) sum += Of(values, node_labels[key].AsString());
    return sum;
  }
  bool AnyPositive(api::Value node_labels) const {
    for (const auto& [key, values] : counts_)
      if (node_labels.Has(key) && Of(values, node_labels[key].AsString()) > 0) return true;
    return false;
  }
  bool empty() const { return counts_.empty(); }

 private:
  using Values = std::map<std::string, int64_t, std::less<>>;
  static int64_t Of(const Values& values, std::string_view value) {
    const auto at = values.find(value);
    return at == values.end() ? 0 : at->second;
  }
  std::map<std::string, Values, std::less<>> counts_;  // by key, then by value
};

}  // namespace sextant::scheduler
