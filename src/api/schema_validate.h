// Values against a custom resource's schema, with the words of Kubernetes' OpenAPI validation.
//
//   FieldErrors errors;
//   ValidateBySchema(object.root(), {}, schema, "", errors);
//
// Source: k8s.io/kube-openapi pkg/validation/validate, k8s.io/apiextensions-apiserver
// pkg/apiserver/validation, pkg/apiserver/schema/{listtype,objectmeta} at v0.36.3. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/document.h"
#include "api/rules.h"
#include "api/schema_node.h"

namespace sextant::api {

// `old`, where there is one, is what the value was: parts that did not change are not blamed.
// `path` is where the value lies ("status", "spec.versions[0].schema...default").
void ValidateBySchema(Value value, Value old, const SchemaNode& schema, std::string_view path,
                      FieldErrors& errors);

// x-kubernetes-list-type: sets have no item twice, maps no key.
void ValidateListTypes(Value object, const SchemaNode& schema, FieldErrors& errors);

// x-kubernetes-embedded-resource: apiVersion, kind and metadata as of any object.
std::string EmbeddedTypeError(Value object, const SchemaNode& schema);  // "" if it can be read
void ValidateEmbedded(Value object, const SchemaNode& schema, FieldErrors& errors);

}  // namespace sextant::api
