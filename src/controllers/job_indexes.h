// Sets of completion indexes of Indexed Jobs, in the compressed form of status.completedIndexes:
// "0,2-5,7".
// Source: k8s.io/kubernetes pkg/controller/job/indexed_job_utils.go. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::controllers {

class IndexSet {
 public:
  // Parts that are no intervals, and indexes from `limit` on, are left out.
  static IndexSet Parse(std::string_view text, int64_t limit);

  void Add(int64_t index) { AddRange(index, index); }
  void AddAll(const IndexSet& other);
  bool Has(int64_t index) const;
  int64_t size() const;
  std::string ToString() const;
  // How many are in both.
  int64_t Overlap(const IndexSet& other) const;
  // The lowest `count` indexes below `limit` that are not in it.
  std::vector<int64_t> Missing(int64_t count, int64_t limit) const;
  bool operator==(const IndexSet&) const = default;

 private:
  void AddRange(int64_t first, int64_t last);

  std::map<int64_t, int64_t> ranges_;  // first to last; neither touching nor overlapping
};

}  // namespace sextant::controllers
