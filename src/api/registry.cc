// The built-in registry: reads the generated rows once into the tables of schema.h.
#include "api/registry.h"

#include <deque>
#include <unordered_map>

#include "api/gen/rows.h"
#include "base/check.h"

namespace sextant::api {
namespace {

using gen::FieldRow;
using gen::MessageRow;

std::string_view Get(gen::Text text) {
  return {gen::kText + (text >> gen::kTextLengthBits), text & gen::kTextLengthMax};
}

std::string_view FormatOf(Type type) {
  switch (type) {
    case Type::kInt32:
      return "int32";
    case Type::kInt64:
      return "int64";
    case Type::kUint32:
      return "int64";
    case Type::kDouble:
      return "double";
    case Type::kBytes:
      return "byte";
    case Type::kTime:
    case Type::kMicroTime:
      return "date-time";
    case Type::kIntOrString:
      return "int-or-string";
    default:
      return "";
  }
}

// Names of one thing under a group and version.
struct Key {
  std::string_view group, version, name;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    const std::hash<std::string_view> h;
    return h(k.name) * 31 + h(k.version) * 7 + h(k.group);
  }
};

class BuiltinRegistry final : public Registry {
 public:
  BuiltinRegistry() {
    strings_.reserve(gen::kStrings.size());
    for (gen::Text t : gen::kStrings) strings_.push_back(Get(t));
    messages_.resize(gen::kMessages.size());
    size_t total = 0;
    for (const MessageRow& row : gen::kMessages) total += ExpandedCount(row);
    fields_.reserve(total);  // never grows: fields point to each other
    for (size_t i = 0; i < messages_.size(); ++i) ReadMessage(i);
    CHECK(fields_.size() == total);
    subresources_.reserve(gen::kSubresources.size());
    resources_.reserve(gen::kResources.size());
    for (const gen::ResourceRow& row : gen::kResources) ReadResource(row);
    for (const Resource& r : resources_) order_.push_back(&r);
  }

  std::span<const Resource* const> resources() const override { return order_; }

  const Resource* Find(GroupVersion gv, std::string_view plural) const override {
    return Look(by_plural_, {gv.group, gv.version, plural});
  }

  const Resource* FindKind(GroupVersion gv, std::string_view kind) const override {
    return Look(by_kind_, {gv.group, gv.version, kind});
  }

  const Message* FindMessage(std::string_view name) const override {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

  const Message* FindKindMessage(GroupVersion gv, std::string_view kind) const override {
    if (const Message* m = Look(kind_messages_, {gv.group, gv.version, kind})) return m;
    // Every group version has the request options; version v1 has Status and discovery besides.
    for (std::string_view shared : kEverywhere) {
      if (kind == shared) return Look(kind_messages_, {kMetaGroup, "v1", kind});
    }
    return gv.group.empty() && gv.version == "v1" ? Look(kind_messages_, {kMetaGroup, "v1", kind})
                                                  : nullptr;
  }

  std::span<const Message> messages() const { return messages_; }

 private:
  static constexpr std::string_view kMetaGroup = "meta.k8s.io";
  // metav1.AddToGroupVersion.
  static constexpr std::string_view kEverywhere[] = {
      "WatchEvent",    "ListOptions",   "GetOptions",  "DeleteOptions",
      "CreateOptions", "UpdateOptions", "PatchOptions"};

  template <typename T>
  static const T* Look(const std::unordered_map<Key, const T*, KeyHash>& map, const Key& key) {
    auto it = map.find(key);
    return it == map.end() ? nullptr : it->second;
  }

  static std::span<const FieldRow> Rows(const MessageRow& row) {
    return gen::kFields.subspan(row.first_field, row.field_count);
  }

  static size_t ExpandedCount(const MessageRow& row) {
    size_t n = row.field_count;
    for (const FieldRow& f : Rows(row)) {
      if ((f.flags & gen::kInlineFlag) != 0) n += ExpandedCount(gen::kMessages[f.message]);
    }
    return n;
  }

  std::span<const std::string_view> Get(gen::Strings run) const {
    return std::span(strings_).subspan(run.first, run.count);
  }
  static std::string_view Get(gen::Text text) { return api::Get(text); }

  Field ReadField(const FieldRow& row, const Field* via) const {
    Field f;
    f.name = Get(row.name);
    f.go_name = Get(row.go_name);
    f.go_type = Get(row.go_type);
    f.number = row.number;
    f.type = static_cast<Type>(row.type);
    f.shape = static_cast<Shape>(row.shape);
    f.presence = static_cast<Presence>(row.presence);
    f.pointer = (row.flags & gen::kPointerFlag) != 0;
    f.inlined = (row.flags & gen::kInlineFlag) != 0;
    f.via = via;
    f.message = row.message == gen::kNoMessage ? nullptr : &messages_[row.message];
    f.required = (row.flags & gen::kRequiredFlag) != 0;
    f.immutable = (row.flags & gen::kImmutableFlag) != 0;
    f.default_json = Get(row.default_json);
    f.list_type = static_cast<ListType>(row.list_type);
    f.list_map_keys = Get(row.list_map_keys);
    f.map_atomic = (row.flags & gen::kMapAtomicFlag) != 0;
    f.map_granular = (row.flags & gen::kMapGranularFlag) != 0;
    f.patch_merge_key = Get(row.merge_key);
    f.patch_merge = (row.flags & gen::kPatchMergeFlag) != 0;
    f.patch_replace = (row.flags & gen::kPatchReplaceFlag) != 0;
    f.patch_retain_keys = (row.flags & gen::kPatchRetainKeysFlag) != 0;
    f.enum_values = Get(row.enum_values);
    f.format = FormatOf(f.type);
    f.description = Get(row.description);
    return f;
  }

  void AddFields(const MessageRow& row, const Field* via) {
    for (const FieldRow& f : Rows(row)) {
      fields_.push_back(ReadField(f, via));
      if ((f.flags & gen::kInlineFlag) != 0) {
        AddFields(gen::kMessages[f.message], &fields_.back());
      }
    }
  }

  void ReadMessage(size_t i) {
    const MessageRow& row = gen::kMessages[i];
    Message& m = messages_[i];
    const size_t first = fields_.size();
    AddFields(row, nullptr);
    m.name = Get(row.name);
    m.go_name = Get(row.go_name);
    m.fields = std::span(fields_).subspan(first);
    m.description = Get(row.description);
    m.unions = Get(row.unions);
    m.atomic = (row.flags & gen::kAtomicFlag) != 0;
    m.top = (row.flags & gen::kTopFlag) != 0;
    m.json_only = (row.flags & gen::kJsonOnlyFlag) != 0;
    m.index = &indexes_.emplace_back(m.fields);
    by_name_.emplace(m.name, &m);
    if (m.top) kind_messages_.emplace(Key{Get(row.group), Get(row.version), Get(row.kind)}, &m);
  }

  void ReadResource(const gen::ResourceRow& row) {
    Resource r;
    r.group_version = {Get(row.group), Get(row.version)};
    r.plural = Get(row.plural);
    r.singular = Get(row.singular);
    r.kind = Get(row.kind);
    r.list_kind = Get(row.list_kind);
    r.short_names = Get(row.short_names);
    r.categories = Get(row.categories);
    r.verbs = Get(row.verbs);
    r.namespaced = row.namespaced;
    r.virtual_review = row.review;
    r.message = &messages_[row.message];
    r.selectable_fields = Get(row.selectable);
    r.storage_version_hash = Get(row.hash);
    r.storage_name = Get(row.storage);
    const size_t first = subresources_.size();
    for (const auto& s : gen::kSubresources.subspan(row.first_subresource, row.subresource_count)) {
      subresources_.push_back({Get(s.name),
                               {Get(s.group), Get(s.version), Get(s.kind)},
                               &messages_[s.message],
                               Get(s.verbs)});
    }
    r.subresources = std::span(subresources_).subspan(first);
    const Resource& kept = resources_.emplace_back(r);
    by_plural_.emplace(Key{r.group_version.group, r.group_version.version, r.plural}, &kept);
    by_kind_.emplace(Key{r.group_version.group, r.group_version.version, r.kind}, &kept);
  }

  std::vector<std::string_view> strings_;
  std::vector<Field> fields_;
  std::vector<Message> messages_;
  std::deque<FieldIndex> indexes_;
  std::vector<Subresource> subresources_;
  std::vector<Resource> resources_;
  std::vector<const Resource*> order_;
  std::unordered_map<std::string_view, const Message*> by_name_;
  std::unordered_map<Key, const Message*, KeyHash> kind_messages_;
  std::unordered_map<Key, const Resource*, KeyHash> by_plural_, by_kind_;
};

const BuiltinRegistry& Tables() {
  static const auto* const tables = new BuiltinRegistry();  // lives as long as the program
  return *tables;
}

}  // namespace

const Registry& Registry::Builtin() { return Tables(); }

std::span<const Message> BuiltinMessages() { return Tables().messages(); }

}  // namespace sextant::api
