// Sets of field paths: what one manager owns of an object (metadata.managedFields' fieldsV1).
//
//   FieldSet set = FieldSet::FromJson(entry["fieldsV1"]);
//   {"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}
//
// A tree; every element may be a member itself ("." when it has children too). Elements: f: a field
// or map key, k: an item of a list by its keys, v: an item of a set, i: an item by index.
// Source: sigs.k8s.io/structured-merge-diff/v6 fieldpath. Plain data.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/schema.h"

namespace sextant::api {

// One key of an item, or the value of an item of a set.
struct PathScalar {
  std::string name;  // "" for a set's value
  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;

  static PathScalar Of(std::string_view name, Value v);
  int Compare(const PathScalar& other) const;
  std::string ToString() const;  // as in messages: "a", 80
};

struct PathElement {
  enum class Type : uint8_t { kField, kKey, kValue, kIndex };  // in this order in a set

  Type type = Type::kField;
  std::string text;                 // as in JSON: f:spec, k:{"name":"a"}
  std::vector<PathScalar> scalars;  // kKey (by name), kValue, kIndex

  static PathElement Field(std::string_view name);
  static PathElement Key(std::vector<PathScalar> keys);
  static PathElement SetItem(Value v);
  std::string_view name() const { return std::string_view(text).substr(2); }  // kField
  int Compare(const PathElement& other) const;
  std::string ToString() const;  // .spec, [name="a"], [="x"]
};

using FieldPath = std::vector<PathElement>;
std::string PathToString(const FieldPath& path);  // .spec.containers[name="a"].image

class FieldSet {
 public:
  // Elements of a kind that we do not know are dropped.
  static FieldSet FromJson(Value fields);
  // A document with the set's JSON form.
  Object ToJson() const;
  // Whether a set in its JSON form has a member in common with this one.
  bool Meets(Value fields) const;

  bool empty() const { return entries_.empty(); }
  void Insert(std::span<const PathElement> path);
  bool Has(const PathElement& element) const;               // as a member
  const FieldSet* Below(const PathElement& element) const;  // nullptr if there is nothing
  FieldSet Union(const FieldSet& other) const;
  FieldSet Intersection(const FieldSet& other) const;
  FieldSet Difference(const FieldSet& other) const;
  // Takes everything below the other's members out as well.
  FieldSet RecursiveDifference(const FieldSet& other) const;
  // Fields of messages that have children become members themselves.
  FieldSet WithNamedFields(const Message* message) const;
  void ForEach(const std::function<void(const FieldPath&)>& visit) const;
  bool operator==(const FieldSet& other) const;

 private:
  struct Entry;
  enum class Combine : uint8_t { kUnion, kIntersection, kDifference, kRecursive };

  static FieldSet Merge(const FieldSet& a, const FieldSet& b, Combine how);
  Entry& At(const PathElement& element);
  const Entry* Find(const PathElement& element) const;
  void Visit(FieldPath& path, const std::function<void(const FieldPath&)>& visit) const;
  Node Build(class Canonicalizer& build) const;

  std::vector<Entry> entries_;  // ascending
};

struct FieldSet::Entry {
  PathElement element;
  bool member = false;
  FieldSet children;
};

}  // namespace sextant::api
