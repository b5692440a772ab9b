// What a custom resource's schema makes of a value on its way in: fields that it does not know go
// (pruning), nulls go where none may be, defaults come.
//
//   std::vector<std::string> unknown;
//   Object shaped = ShapeByRoot(object, schema, &unknown);   // unknown: "spec.colour"
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting} at v0.36.3. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "api/document.h"
#include "api/schema_node.h"

namespace sextant::api {

// A whole object: apiVersion, kind and metadata stay whatever the schema says of them. The paths of
// what was pruned are put into `unknown`, sorted. The same object comes back where nothing changes.
Object ShapeByRoot(const Object& object, const SchemaNode& schema,
                   std::vector<std::string>* unknown);

// Without the fields that `schema` does not know: what a default is compared with.
Object PrunedCopy(Value value, const SchemaNode& schema);

const Message& ObjectMeta();  // metadata of every object, also of those within others

}  // namespace sextant::api
