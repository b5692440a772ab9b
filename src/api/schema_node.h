// The OpenAPI schema of a custom resource, compiled: what structural schemas can say, node by node.
//
//   ASSIGN_OR_RETURN(auto root, CompileSchema(version["schema"]["openAPIV3Schema"]));
//   const SchemaNode* spec = root->Property("spec");
//
// It drives pruning and defaults (schema_values.h), validation (schema_validate.h) and the tables
// of fields (custom_tables.h). Texts and defaults point into the document that it was compiled
// from: whoever keeps the node keeps that document.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema at v0.36.3. Immutable once made; any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/status.h"

namespace re2 {
class RE2;
}

namespace sextant::api {

// Bounds of one schema. Real ones have some ten thousand nodes (Prometheus) and twenty levels.
inline constexpr size_t kMaxSchemaNodes = 50'000;
inline constexpr size_t kMaxSchemaDepth = 60;
inline constexpr size_t kMaxSchemaProperties = 10'000;  // of one node
// Memory of all patterns of one schema, in RE2's instructions.
inline constexpr size_t kMaxPatternSize = 1'000'000;

struct SchemaNode {
  struct Named {
    std::string_view name;
    std::unique_ptr<SchemaNode> node;
  };

  ~SchemaNode();
  SchemaNode();

  // Structure.
  std::string_view type;  // "" where there is none
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded = false;  // has apiVersion, kind and metadata of its own
  bool int_or_string = false;
  std::string_view list_type;  // "" is atomic
  std::string_view map_type;   // "" is granular
  std::vector<std::string_view> list_map_keys;
  Value default_value;            // absent: none
  std::vector<Named> properties;  // by name
  std::unique_ptr<SchemaNode> items;
  bool has_additional = false;             // additionalProperties is a schema or true
  bool forbids_additional = false;         // additionalProperties: false
  std::unique_ptr<SchemaNode> additional;  // its schema, if it is one

  // Values.
  std::string_view format;
  std::string_view pattern;
  std::unique_ptr<re2::RE2> expression;  // of `pattern`; null where it does not compile
  std::optional<double> maximum, minimum, multiple_of;
  bool exclusive_maximum = false;
  bool exclusive_minimum = false;
  std::optional<int64_t> max_length, min_length, max_items, min_items;
  std::optional<int64_t> max_properties, min_properties;
  std::vector<Value> enum_values;
  std::vector<std::string_view> required;
  std::vector<std::unique_ptr<SchemaNode>> all_of, any_of, one_of;
  std::unique_ptr<SchemaNode> not_;

  const SchemaNode* Property(std::string_view name) const;
};

// Errors: 400, which bound above the schema is past.
Result<std::shared_ptr<const SchemaNode>> CompileSchema(Value schema);

// "error parsing regexp: missing closing ): `(`", as Go says it; "" for patterns that compile.
std::string PatternError(std::string_view pattern);

}  // namespace sextant::api
