#include "api/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/canonical.h"
#include "api/go_values.h"
#include "api/json.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

// Merge patch, bottom-up in one arena.
class Merger {
 public:
  explicit Merger(Arena& arena) : build_(arena) {}

  Node Merge(Value current, Value patch) {
    if (!current.IsMap()) return Prune(patch);
    if (!patch.IsMap()) return *patch.node();
    std::vector<Member> out;
    MemberIndex live(current), changes(patch);
    for (MemberView m : current.members()) {
      Value change = changes.Find(m.key);
      if (change.IsNull()) continue;
      // A null that stands there already counts as nothing.
      Node value = change.IsAbsent()  ? *m.value.node()
                   : m.value.IsNull() ? Prune(change)
                                      : Merge(m.value, change);
      out.push_back(Named(m.key, value));
    }
    for (MemberView m : patch.members()) {
      bool added = !m.value.IsNull() && live.Find(m.key).IsAbsent();
      if (added) out.push_back(Named(m.key, Prune(m.value)));
    }
    return build_.Map(out);
  }

 private:
  static Member Named(std::string_view key, const Node& value) {
    Member m;
    m.key = key.data();
    m.key_size = static_cast<uint32_t>(key.size());
    m.value = value;
    return m;
  }

  // Without members that are null; null items of lists stay.
  Node Prune(Value v) {
    if (v.IsMap()) {
      std::vector<Member> out;
      for (MemberView m : v.members()) {
        if (!m.value.IsNull()) out.push_back(Named(m.key, Prune(m.value)));
      }
      return build_.Map(out);
    }
    if (v.IsList()) {
      std::vector<Node> out;
      for (Value item : v.items()) out.push_back(Prune(item));
      return build_.List(out);
    }
    return *v.node();
  }

  Canonicalizer build_;
};

bool Checks(const PatchRequest& r) {
  return r.field_validation == "Warn" || r.field_validation == "Strict";
}

// The object as the API server shows it: its members come sorted out of a patch.
std::string Shown(Value tree) {
  if (!tree.IsMap()) return ToJson(tree);
  Arena arena;
  const Node sorted = Canonicalizer(arena).SortedMap({tree.node()->members, tree.size()});
  return ToJson(Value(&sorted));
}

// The members that an operation may have.
void CheckOperations(Value operations, StrictReport& strict) {
  size_t i = 0;
  for (Value op : operations.items()) {
    for (MemberView m : op.members()) {
      bool known = m.key == "op" || m.key == "path" || m.key == "from" || m.key == "value";
      if (!known) strict.Add("unknown field", fmt::format("[{}].{}", i, m.key));
    }
    ++i;
  }
}

std::string_view GoKind(Value v) {
  switch (v.kind()) {
    case Kind::kMap:
      return "object";
    case Kind::kList:
      return "array";
    case Kind::kString:
      return "string";
    case Kind::kBool:
      return "bool";
    default:
      return "number";
  }
}

// The patch as a tree, with what is wrong in its form. `strict` gets what strict validation minds.
Result<Object> ReadPatch(const PatchRequest& r, StrictReport& strict) {
  bool json = r.type == PatchType::kJson;
  bool strategic = r.type == PatchType::kStrategic;
  auto patch = ParseJson(r.patch, {.strict = &strict});
  std::string_view prefix = Checks(r) && !strategic ? "error decoding patch: " : "";
  if (!patch) {
    if (r.type == PatchType::kMerge && !Checks(r)) return Fail(BadRequest("Invalid JSON Patch"));
    Error error = patch.error();
    error.message = std::string(prefix) + error.message;
    return Fail(std::move(error));
  }
  Value root = patch->root();
  bool fits = json ? root.IsList() : root.IsMap();
  if (!fits && !root.IsNull()) {
    if (r.type == PatchType::kMerge && !Checks(r)) return Fail(BadRequest("Invalid JSON Patch"));
    std::string_view type = !json       ? "map[string]interface {}"
                            : Checks(r) ? "[]handlers.jsonPatchOp"
                                        : "jsonpatch.Patch";
    return Fail(BadRequest(fmt::format("{}json: cannot unmarshal {} into Go value of type {}",
                                       prefix, GoKind(root), type)));
  }
  if (root.IsNull() && r.type == PatchType::kMerge) {
    return Fail(BadRequest("Invalid JSON Patch"));
  }
  if (json) {
    CheckOperations(root, strict);
    for (std::string& e : strict.errors) e = "json patch " + e;
  }
  return patch;
}

// A patch may have made another kind of the object: that is read as what it says it is, and then
// cannot become what it was.
Status CheckKind(Value tree, const Object& current, const Registry& registry) {
  const std::string_view kind = tree["kind"].AsString();
  const std::string_view api_version = tree["apiVersion"].AsString();
  const auto of = [](std::string_view version, std::string_view name) {
    const GroupVersion gv = GroupVersion::Of(version);
    return GroupVersionKind{gv.group, gv.version, name};
  };
  const GroupVersionKind want = of(current.api_version(), current.kind());
  const GroupVersionKind have = of(api_version.empty() ? current.api_version() : api_version,
                                   kind.empty() ? current.kind() : kind);
  if (have == want) return {};
  const Message* message = registry.FindKindMessage(have.group_version(), have.kind);
  if (message == nullptr) return Fail(BadRequest(NoKindRegistered(have)));
  RETURN_IF_ERROR(DecodeTree(tree, *message));
  return Fail(BadRequest(UnknownConversion(have, want)));
}

}  // namespace

Object ApplyMergePatch(Value current, Value patch) {
  Arena arena;
  Node merged = Merger(arena).Merge(current, patch);
  return FinishCompact(merged, nullptr);
}

Error WrongPatch(std::string_view shown, std::string_view why) {
  return Invalid("", "", "",
                 {{.reason = "FieldValueInvalid",
                   .message = fmt::format("Invalid value: {}: {}", Quote(shown), why),
                   .field = "patch"}});
}

Result<Object> ApplyPatch(const Object& current, const Message& message,
                          const PatchRequest& request, std::vector<std::string>* warnings) {
  StrictReport strict;
  ASSIGN_OR_RETURN(Object patch, ReadPatch(request, strict));
  Object tree;
  if (request.type == PatchType::kJson) {
    ASSIGN_OR_RETURN(tree, ApplyJsonPatch(current, patch));
  } else if (request.type == PatchType::kMerge) {
    tree = ApplyMergePatch(current.root(), patch.root());
  } else {
    ASSIGN_OR_RETURN(tree, ApplyStrategicPatch(current.root(), patch.root(), message));
  }
  auto shown = [&] {
    return request.type == PatchType::kStrategic ? GoPrint(patch.root()) : Shown(tree.root());
  };
  const Registry& registry = request.registry ? *request.registry : Registry::Builtin();
  auto same = CheckKind(tree.root(), current, registry);
  if (!same) return Fail(WrongPatch(shown(), same.error().message));
  StrictReport unknown;
  auto decoded =
      DecodeTree(tree.root(), message,
                 {.strict = &unknown, .unstructured = request.type == PatchType::kStrategic});
  if (!decoded) return Fail(WrongPatch(shown(), decoded.error().message));
  // A patch may take its type away; it is the object's all the same.
  const TypeMeta type{std::string(current.api_version()), std::string(current.kind())};
  decoded = WithTypeMeta(*std::move(decoded), type, message);
  if (!Checks(request)) return decoded;
  // The merged object is read with its members in order.
  if (request.type != PatchType::kStrategic) std::ranges::sort(unknown.errors);
  for (std::string& e : unknown.errors) strict.errors.push_back(std::move(e));
  if (strict.errors.empty()) return decoded;
  if (request.field_validation == "Strict") {
    return Fail(WrongPatch(
        shown(), fmt::format("strict decoding error: {}", fmt::join(strict.errors, ", "))));
  }
  if (warnings != nullptr) {
    for (std::string& e : strict.errors) warnings->push_back(std::move(e));
  }
  return decoded;
}

}  // namespace sextant::api
