#include "api/custom_tables.h"

#include <algorithm>
#include <array>

#include "api/json.h"
#include "api/schema_values.h"

namespace sextant::api {
namespace {

std::vector<Field> MetaFields() {
  return {{.name = "apiVersion"},
          {.name = "kind"},
          {.name = "metadata", .type = Type::kMessage, .message = &ObjectMeta()}};
}

bool IsObject(const SchemaNode& node) {
  return node.type == "object" || (node.type.empty() && !node.properties.empty());
}

// An object that is a map: any key, one kind of value.
bool IsMap(const SchemaNode& node) { return node.has_additional && node.properties.empty(); }

// Nothing is known of what is below.
bool IsFree(const SchemaNode& node) {
  return node.preserve_unknown && node.properties.empty() && !node.embedded;
}

Type ScalarType(const SchemaNode& node) {
  if (node.int_or_string) return Type::kAny;
  if (node.type == "string") return Type::kString;
  if (node.type == "integer") return Type::kInt64;
  if (node.type == "boolean") return Type::kBool;
  if (node.type == "number") return Type::kDouble;
  return Type::kAny;
}

ListType ListTypeOf(std::string_view name) {
  if (name == "set") return ListType::kSet;
  if (name == "map") return ListType::kMap;
  return ListType::kAtomic;
}

}  // namespace

const Message* CustomTables::Open() {
  static const auto* const fields = new std::vector<Field>(MetaFields());
  static const auto* const index = new FieldIndex(*fields);
  static const auto* const message = new Message{.name = "custom",
                                                 .go_name = "unstructured.Unstructured",
                                                 .fields = *fields,
                                                 .preserve_unknown = true,
                                                 .json_only = true,
                                                 .index = index,
                                                 .custom = true};
  return message;
}

const Message* CustomTables::Make(const SchemaNode& root) { return MakeMessage(root, true); }

const Message* CustomTables::MakeMessage(const SchemaNode& node, bool whole) {
  std::vector<Field> fields;
  if (whole || node.embedded) fields = MetaFields();
  for (const SchemaNode::Named& property : node.properties) {
    const bool known = std::ranges::any_of(
        fields, [&](const Field& field) { return field.name == property.name; });
    if (!known) fields.push_back(MakeField(property.name, *property.node));
  }
  const std::vector<Field>& kept = fields_.emplace_back(std::move(fields));
  const FieldIndex& index = indexes_.emplace_back(kept);
  return &messages_.emplace_back(
      Message{.name = "custom",
              .go_name = "unstructured.Unstructured",
              .fields = kept,
              .atomic = node.map_type == "atomic",
              .preserve_unknown = node.preserve_unknown || node.has_additional,
              .json_only = true,
              .index = &index,
              .custom = true});
}

Field CustomTables::MakeField(std::string_view name, const SchemaNode& node) {
  Field field{.name = name};
  field.map_atomic = node.map_type == "atomic";
  if (node.default_value) {
    field.default_json = texts_.emplace_back(ToJson(node.default_value));
  }
  if (node.type == "array") {
    field.shape = Shape::kList;
    field.list_type = ListTypeOf(node.list_type);
    field.list_map_keys = node.list_map_keys;
    SetElement(node.items.get(), field);
  } else if (IsObject(node) && IsMap(node)) {
    field.shape = Shape::kMap;
    SetElement(node.additional.get(), field);
  } else {
    SetElement(&node, field);
  }
  return field;
}

// What one value of the field is; lists of lists and maps of lists are not taken apart.
void CustomTables::SetElement(const SchemaNode* node, Field& field) {
  field.type = Type::kAny;
  if (node == nullptr || IsFree(*node)) return;
  const bool nested = node->type == "array" || IsMap(*node);
  if (nested) return;
  if (IsObject(*node) || node->embedded) {
    field.type = Type::kMessage;
    field.message = MakeMessage(*node, false);
  } else {
    field.type = ScalarType(*node);
  }
}

}  // namespace sextant::api
