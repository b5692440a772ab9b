// Tables of fields from a custom resource's schema, for managed fields and server-side apply.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "api/schema.h"
#include "api/schema_node.h"

namespace sextant::api {

// Owns the tables that it makes; they refer to the schema's document.
class CustomTables {
 public:
  // The tables of a whole object.
  const Message* Make(const SchemaNode& root);
  // An object of which only apiVersion, kind and metadata are known.
  static const Message* Open();

 private:
  const Message* MakeMessage(const SchemaNode& node, bool whole);
  Field MakeField(std::string_view name, const SchemaNode& node);
  void SetElement(const SchemaNode* node, Field& field);

  std::deque<std::vector<Field>> fields_;
  std::deque<FieldIndex> indexes_;
  std::deque<Message> messages_;
  std::deque<std::string> texts_;
};

}  // namespace sextant::api
