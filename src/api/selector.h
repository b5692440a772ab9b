// Label and field selectors: parse, print, match; errors in Kubernetes' own words.
//
//   LabelSelector s = *LabelSelector::Parse("app in (a,b),!canary,gpu!=none");
//   s.Matches(pod["metadata"]["labels"]);
//   FieldSelector f = *FieldSelector::Parse("spec.nodeName=worker");
//   RETURN_IF_ERROR(f.Bind(*pods));
//   f.Matches(pod.root());
//
// Source: apimachinery pkg/labels, pkg/fields. Plain data; matching from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/schema.h"
#include "base/status.h"

namespace sextant::api {

enum class SelectorOp : uint8_t {
  kIn,
  kNotIn,
  kEquals,
  kDoubleEquals,
  kNotEquals,
  kExists,
  kDoesNotExist,
  kGreaterThan,
  kLessThan,
};

struct LabelRequirement {
  std::string key;
  SelectorOp op = SelectorOp::kExists;
  std::vector<std::string> values;

  bool Matches(Value labels) const;
  std::string ToString() const;
};

class LabelSelector {
 public:
  LabelSelector() = default;  // selects everything
  static LabelSelector Nothing();
  // The text of ?labelSelector= and of kubectl -l.
  static Result<LabelSelector> Parse(std::string_view text);
  // A metav1.LabelSelector {matchLabels, matchExpressions}; absent or null selects nothing.
  static Result<LabelSelector> From(Value selector);
  // A plain map of labels, all of which must be there; absent selects everything.
  static LabelSelector FromMap(Value labels);

  bool Matches(Value labels) const;  // metadata.labels, may be absent
  bool Empty() const { return !nothing_ && requirements_.empty(); }
  bool IsNothing() const { return nothing_; }
  std::string ToString() const;
  const std::vector<LabelRequirement>& requirements() const { return requirements_; }

 private:
  std::vector<LabelRequirement> requirements_;  // by key
  bool nothing_ = false;
};

struct FieldRequirement {
  std::string field;
  std::string value;
  bool equal = true;
};

class FieldSelector {
 public:
  static Result<FieldSelector> Parse(std::string_view text);

  // Refuses what the resource cannot be selected by, and looks up what an absent field counts as.
  Status Bind(const Resource& resource);
  bool Matches(Value object) const;
  bool Empty() const { return requirements_.empty(); }
  std::string ToString() const;
  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  // The value that `field` must have, "" if none is demanded (to look one object up by name).
  std::string_view Exact(std::string_view field) const;

 private:
  struct Bound {
    std::string path;
    std::string other_path;  // read when the first gives nothing
    std::string absent;      // what an absent field counts as
  };
  std::vector<FieldRequirement> requirements_;
  std::vector<Bound> bound_;  // one for each, once Bind was called
};

}  // namespace sextant::api
