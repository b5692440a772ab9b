#include "api/schema_values.h"

#include <algorithm>
#include <optional>

#include "api/canonical.h"
#include "api/rules_kit.h"

namespace sextant::api {
const Message& ObjectMeta() {
  static const Message& message =
      *Registry::Builtin().FindMessage("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  return message;
}

namespace {

constexpr size_t kMaxUnknown = 100;  // told of one object

bool IsMetaField(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

class Shaper {
 public:
  Shaper(Arena& arena, bool defaults, std::vector<std::string>* unknown)
      : build_(arena), defaults_(defaults), unknown_(unknown) {}

  bool changed() const { return changed_; }

  // `schema` null: nothing is known of the value; `keep`: nor need be.
  Node Shape(Value v, const SchemaNode* schema, bool keep, bool root, const At& at) {
    if (schema != nullptr && schema->preserve_unknown) keep = true;
    if (v.IsMap()) {
      if (schema == nullptr && keep) return *v.node();
      return ShapeMap(v, schema, keep, root, at);
    }
    if (v.IsList()) return ShapeList(v, schema, keep, at);
    return *v.node();
  }

 private:
  Node ShapeMap(Value v, const SchemaNode* schema, bool keep, bool root, const At& at) {
    std::vector<Member> out;
    out.reserve(v.size());
    const bool has_meta = root || (schema != nullptr && schema->embedded);
    for (auto [key, value] : v.members()) {
      const At here = at / key;
      const bool meta = has_meta && IsMetaField(key);
      const SchemaNode* property = schema != nullptr ? schema->Property(key) : nullptr;
      if (meta) {
        out.push_back(Named(key, Meta(key, value, property, root, here)));
        continue;
      }
      const bool known = property != nullptr || (schema != nullptr && schema->has_additional);
      if (!known && !keep) {
        Forget(here);
        continue;
      }
      const SchemaNode* child = property;
      if (child == nullptr && schema != nullptr) child = schema->additional.get();
      if (auto shaped = MemberValue(value, child, keep && !known, here)) {
        out.push_back(Named(key, *shaped));
      }
    }
    if (defaults_ && schema != nullptr) AddDefaults(v, *schema, at, out);
    return build_.SortedMap(out);
  }

  // Nothing: a null that may not be.
  std::optional<Node> MemberValue(Value value, const SchemaNode* schema, bool keep, const At& at) {
    if (value.IsNull() && schema != nullptr && !schema->nullable && defaults_) {
      changed_ = true;
      if (!schema->default_value) return std::nullopt;
      return Shape(schema->default_value, schema, true, false, at);
    }
    return Shape(value, schema, keep, false, at);
  }

  // Metadata of an embedded object is read as such; that of the object itself has been.
  Node Meta(std::string_view key, Value value, const SchemaNode* property, bool root,
            const At& at) {
    if (key == "metadata" && value.IsMap() && !root) {
      const Slot slot{.message = &ObjectMeta(), .sorted = true};
      const Node node = build_.Canonical(*value.node(), slot);
      if (!Equal(Value(&node), value)) changed_ = true;
      return node;
    }
    if (property == nullptr || !defaults_) return *value.node();
    return Shape(value, property, true, false, at);
  }

  void AddDefaults(Value v, const SchemaNode& schema, const At& at, std::vector<Member>& out) {
    for (const SchemaNode::Named& property : schema.properties) {
      if (!property.node->default_value || v.Has(property.name)) continue;
      const At here = at / property.name;
      changed_ = true;
      out.push_back(Named(property.name, Shape(property.node->default_value, property.node.get(),
                                               true, false, here)));
    }
  }

  Node ShapeList(Value v, const SchemaNode* schema, bool keep, const At& at) {
    if (schema == nullptr && keep) return *v.node();
    const SchemaNode* items = schema != nullptr ? schema->items.get() : nullptr;
    std::vector<Node> out;
    out.reserve(v.size());
    size_t i = 0;
    for (Value item : v.items()) {
      const At here = at.Item("", i++);
      const bool lost = item.IsNull() && items != nullptr && !items->nullable;
      if (lost && defaults_ && items->default_value) {
        changed_ = true;
        out.push_back(Shape(items->default_value, items, true, false, here));
      } else {
        out.push_back(Shape(item, items, keep && items == nullptr, false, here));
      }
    }
    return build_.List(out);
  }

  void Forget(const At& at) {
    changed_ = true;
    if (unknown_ == nullptr || unknown_->size() >= kMaxUnknown) return;
    unknown_->push_back(at.ToString());
  }

  static Member Named(std::string_view key, const Node& value) {
    Member m;
    m.key = key.data();
    m.key_size = static_cast<uint32_t>(key.size());
    m.value = value;
    return m;
  }

  Canonicalizer build_;
  const bool defaults_;
  std::vector<std::string>* unknown_;
  bool changed_ = false;
};

}  // namespace

Object ShapeByRoot(const Object& object, const SchemaNode& schema,
                   std::vector<std::string>* unknown) {
  Arena arena;
  Shaper shaper(arena, true, unknown);
  const Node root = shaper.Shape(object.root(), &schema, false, true, At());
  if (unknown != nullptr) std::ranges::sort(*unknown);
  return shaper.changed() ? FinishCompact(root, nullptr) : object;
}

Object PrunedCopy(Value value, const SchemaNode& schema) {
  Arena arena;
  const Node root = Shaper(arena, false, nullptr).Shape(value, &schema, false, false, At());
  return FinishCompact(root, nullptr);
}

}  // namespace sextant::api
