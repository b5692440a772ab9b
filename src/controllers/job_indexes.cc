#include "controllers/job_indexes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace sextant::controllers {
namespace {

std::optional<int64_t> Number(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) {
    return {};
  }
  return value;
}

}  // namespace

IndexSet IndexSet::Parse(std::string_view text, int64_t limit) {
  IndexSet set;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = part.find('-');
    const auto first = Number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : Number(part.substr(dash + 1));
    if (!first || !last || *first > *last || *first >= limit) continue;
    set.AddRange(*first, std::min(*last, limit - 1));
  }
  return set;
}

void IndexSet::AddRange(int64_t first, int64_t last) {
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second >= first - 1) --at;
  while (at != ranges_.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = ranges_.erase(at);
  }
  ranges_[first] = last;
}

void IndexSet::AddAll(const IndexSet& other) {
  for (const auto& [first, last] : other.ranges_) AddRange(first, last);
}

bool IndexSet::Has(int64_t index) const {
  const auto at = ranges_.upper_bound(index);
  return at != ranges_.begin() && std::prev(at)->second >= index;
}

int64_t IndexSet::size() const {
  int64_t count = 0;
  for (const auto& [first, last] : ranges_) count += last - first + 1;
  return count;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const auto& [first, last] : ranges_) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}", first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? "," : "-", last);
  }
  return text;
}

int64_t IndexSet::Overlap(const IndexSet& other) const {
  int64_t count = 0;
  for (const auto& [first, last] : ranges_) {
    for (const auto& [other_first, other_last] : other.ranges_) {
      count += std::max<int64_t>(0, std::min(last, other_last) - std::max(first, other_first) + 1);
    }
  }
  return count;
}

std::vector<int64_t> IndexSet::Missing(int64_t count, int64_t limit) const {
  std::vector<int64_t> missing;
  int64_t next = 0;
  const auto fill = [&](int64_t end) {
    for (; next < std::min(end, limit) && static_cast<int64_t>(missing.size()) < count; ++next)
      missing.push_back(next);
  };
  for (const auto& [first, last] : ranges_) {
    fill(first);
    next = std::max(next, last + 1);
  }
  fill(limit);
  return missing;
}

}  // namespace sextant::controllers
