// Objects seen as sets of fields: what of an object there is, what differs between two, and what
// merging and taking away makes of it, by the list and map types that the schema gives.
//
// Lists without a list type and atomic ones, atomic maps and structs are one field as a whole.
// Source: sigs.k8s.io/structured-merge-diff/v6 typed. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/canonical.h"
#include "api/document.h"
#include "api/field_set.h"
#include "api/schema.h"

namespace sextant::api {

struct FieldComparison {
  FieldSet added;
  FieldSet modified;
  FieldSet removed;
  bool Same() const { return added.empty() && modified.empty() && removed.empty(); }
};

FieldComparison CompareFields(Value before, Value after, const Message& message);
FieldSet FieldsOf(Value object, const Message& message);

// `config` laid over `live`: fields it gives win, lists by key and sets are united, in the order of
// `config` where it gives one. The tree lives as long as the arena and both inputs.
Node MergeFields(Value live, Value config, const Message& message, Arena& arena);
// Without the fields of `remove`.
Node RemoveFields(Value object, const FieldSet& remove, const Message& message, Arena& arena);

// What is wrong with an object that is to be applied: fields that the schema does not know, items
// of keyed lists without a key or twice. Lines as Kubernetes prints them.
std::vector<std::string> CheckTyped(Value object, const Message& message);

}  // namespace sextant::api
