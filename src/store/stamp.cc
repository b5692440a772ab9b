#include "store/stamp.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace sextant::store {
namespace {

using api::Kind;
using api::Member;
using api::Node;

constexpr std::string_view kField = "resourceVersion";

bool ComesBeforeResourceVersion(std::string_view name) {
  return name == "name" || name == "generateName" || name == "namespace" || name == "selfLink" ||
         name == "uid";
}

Node MapOf(const Node& like, const std::vector<Member>& members) {
  Node node = like;
  node.size = static_cast<uint32_t>(members.size());
  node.members = members.data();
  return node;
}

}  // namespace

api::Object Stamp(const api::Object& object, Revision revision) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, revision).ptr;
  Node text;
  text.kind = Kind::kString;
  text.size = static_cast<uint32_t>(end - digits);
  text.text = digits;

  const Node& root = *object.root().node();
  CHECK(root.kind == Kind::kMap);
  std::vector<Member> top(root.members, root.members + root.size);
  const auto metadata =
      std::find_if(top.begin(), top.end(), [](const Member& m) { return m.name() == "metadata"; });
  CHECK(metadata != top.end() && metadata->value.kind == Kind::kMap);

  const Node& meta = metadata->value;
  std::vector<Member> fields;
  fields.reserve(meta.size + 1);
  fields.assign(meta.members, meta.members + meta.size);
  auto at = std::find_if(fields.begin(), fields.end(),
                         [](const Member& m) { return m.name() == kField; });
  if (at == fields.end()) {
    at = std::find_if_not(fields.begin(), fields.end(),
                          [](const Member& m) { return ComesBeforeResourceVersion(m.name()); });
    Member made{};
    made.key = kField.data();
    made.key_size = kField.size();
    made.fixed = true;
    at = fields.insert(at, made);
  }
  at->value = text;
  metadata->value = MapOf(meta, fields);
  return api::FinishCompact(MapOf(root, top), object.document()->canonical_for());
}

}  // namespace sextant::store
