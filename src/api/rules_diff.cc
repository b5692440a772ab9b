#include "api/rules_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace sextant::api {
namespace {

constexpr size_t kContext = 3;
// Lines that make up more than 1 % of a text this long are not looked for (they only extend
// matches).
constexpr size_t kPopularFrom = 200;

using Lines = std::vector<std::string_view>;

Lines Split(std::string_view text) {
  Lines lines;
  while (true) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

struct Match {
  size_t a, b, size;
};

// What is done with a[a1, a2) and b[b1, b2): 'e'qual or anything else.
struct Op {
  bool equal;
  size_t a1, a2, b1, b2;
};

class Matcher {
 public:
  Matcher(const Lines& a, const Lines& b) : a_(a), b_(b) {
    for (size_t i = 0; i < b.size(); ++i) places_[b[i]].push_back(i);
    if (b.size() < kPopularFrom) return;
    const size_t most = b.size() / 100 + 1;
    std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > most; });
  }

  std::vector<Op> Ops() {
    std::vector<Match> matches;
    Collect(0, a_.size(), 0, b_.size(), matches);
    matches.push_back({a_.size(), b_.size(), 0});
    std::vector<Op> ops;
    size_t i = 0;
    size_t j = 0;
    for (const Match& m : matches) {
      if (i < m.a || j < m.b) ops.push_back({false, i, m.a, j, m.b});
      i = m.a + m.size;
      j = m.b + m.size;
      if (m.size == 0) continue;
      if (!ops.empty() && ops.back().equal) {  // adjacent matches are one
        ops.back().a2 = i;
        ops.back().b2 = j;
      } else {
        ops.push_back({true, m.a, i, m.b, j});
      }
    }
    return ops;
  }

 private:
  Match Longest(size_t a_low, size_t a_high, size_t b_low, size_t b_high) const {
    Match best{a_low, b_low, 0};
    std::unordered_map<size_t, size_t> lengths;
    for (size_t i = a_low; i < a_high; ++i) {
      std::unordered_map<size_t, size_t> next;
      const auto places = places_.find(a_[i]);
      if (places != places_.end()) {
        for (size_t j : places->second) {
          if (j < b_low) continue;
          if (j >= b_high) break;
          const auto before = j == 0 ? lengths.end() : lengths.find(j - 1);
          const size_t k = 1 + (before == lengths.end() ? 0 : before->second);
          next[j] = k;
          if (k > best.size) best = {i + 1 - k, j + 1 - k, k};
        }
      }
      lengths = std::move(next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1]) {
      --best.a;
      --best.b;
      ++best.size;
    }
    while (best.a + best.size < a_high && best.b + best.size < b_high &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  void Collect(size_t a_low, size_t a_high, size_t b_low, size_t b_high,
               std::vector<Match>& out) const {
    const Match m = Longest(a_low, a_high, b_low, b_high);
    if (m.size == 0) return;
    if (a_low < m.a && b_low < m.b) Collect(a_low, m.a, b_low, m.b, out);
    out.push_back(m);
    if (m.a + m.size < a_high && m.b + m.size < b_high) {
      Collect(m.a + m.size, a_high, m.b + m.size, b_high, out);
    }
  }

  const Lines& a_;
  const Lines& b_;
  std::unordered_map<std::string_view, std::vector<size_t>> places_;
};

// Changes with their context; long equal stretches part them.
std::vector<std::vector<Op>> Group(std::vector<Op> ops) {
  if (ops.empty()) return {};
  const auto less = [](size_t n, size_t by) { return n > by ? n - by : 0; };
  if (ops.front().equal) {
    Op& c = ops.front();
    c.a1 = std::max(c.a1, less(c.a2, kContext));
    c.b1 = std::max(c.b1, less(c.b2, kContext));
  }
  if (ops.back().equal) {
    Op& c = ops.back();
    c.a2 = std::min(c.a2, c.a1 + kContext);
    c.b2 = std::min(c.b2, c.b1 + kContext);
  }
  std::vector<std::vector<Op>> groups;
  std::vector<Op> group;
  for (Op op : ops) {
    if (op.equal && op.a2 - op.a1 > 2 * kContext) {
      group.push_back({true, op.a1, std::min(op.a2, op.a1 + kContext), op.b1,
                       std::min(op.b2, op.b1 + kContext)});
      groups.push_back(std::move(group));
      group.clear();
      op.a1 = std::max(op.a1, less(op.a2, kContext));
      op.b1 = std::max(op.b1, less(op.b2, kContext));
    }
    group.push_back(op);
  }
  if (!group.empty() && !(group.size() == 1 && group[0].equal)) groups.push_back(std::move(group));
  return groups;
}

std::string Range(size_t start, size_t stop) {
  const size_t length = stop - start;
  if (length == 1) return fmt::format("{}", start + 1);
  return fmt::format("{},{}", length == 0 ? start : start + 1, length);
}

}  // namespace

std::string UnifiedDiff(std::string_view from, std::string_view to) {
  const Lines a = Split(from);
  const Lines b = Split(to);
  std::string out;
  const auto print = [&](char mark, const Lines& lines, size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      out += mark;
      out += lines[i];
      out += '\n';
    }
  };
  for (const std::vector<Op>& group : Group(Matcher(a, b).Ops())) {
    out += fmt::format("@@ -{} +{} @@\n", Range(group.front().a1, group.back().a2),
                       Range(group.front().b1, group.back().b2));
    for (const Op& op : group) {
      if (op.equal) {
        print(' ', a, op.a1, op.a2);
      } else {
        print('-', a, op.a1, op.a2);
        print('+', b, op.b1, op.b2);
      }
    }
  }
  return out;
}

}  // namespace sextant::api
