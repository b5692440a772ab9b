// ApplyStrategicPatch of patch.h: apimachinery's util/strategicpatch for a live object.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "api/canonical.h"
#include "api/go_values.h"
#include "api/json.h"
#include "api/patch.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList";
constexpr std::string_view kOrderPrefix = "$setElementOrder";

constexpr std::string_view kBadPrimitiveList = "invalid patch format of primitive list";
constexpr std::string_view kBadRetainKeys = "invalid patch format of retainKeys";
constexpr std::string_view kBadOrder = "invalid patch format of setElementOrder list";

// Errors that Kubernetes has no better code for.
Error Internal(std::string message) { return Error{.code = 500, .message = std::move(message)}; }

Value At(const Node& n) { return Value(&n); }

Error NoMergeKey(const Node& map, std::string_view key) {
  return Internal(
      fmt::format("map: {} does not contain declared merge key: {}", GoPrint(At(map)), key));
}

std::string_view GoTypeOf(Kind kind) {
  switch (kind) {
    case Kind::kMap:
      return "map[string]interface {}";
    case Kind::kList:
      return "[]interface {}";
    case Kind::kString:
      return "string";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int64";
    case Kind::kDouble:
      return "float64";
    default:
      return "%!s(<nil>)";
  }
}

Error BadType(Kind want, const Node& have) {
  return Internal(
      fmt::format("expected a {}, but received a {}", GoTypeOf(want), GoTypeOf(have.kind)));
}

using Items = std::vector<Node>;

// The members of a map that is being changed; finds quickly however many there are.
class Members {
 public:
  Members() = default;
  explicit Members(const Node& map) : list_(map.members, map.members + map.size) {
    for (size_t i = 0; i < list_.size(); ++i) at_.emplace(list_[i].name(), i);
  }
  Node* Find(std::string_view key) {
    auto found = at_.find(key);
    return found == at_.end() ? nullptr : &list_[found->second].value;
  }
  void Put(std::string_view key, const Node& value) {
    auto [found, fresh] = at_.try_emplace(key, list_.size());
    if (!fresh) {
      list_[found->second].value = value;
      return;
    }
    Member& m = list_.emplace_back();
    m.key = key.data();
    m.key_size = static_cast<uint32_t>(key.size());
    m.value = value;
  }
  void Drop(std::string_view key) {
    auto found = at_.find(key);
    if (found == at_.end()) return;
    list_[found->second].value.kind = Kind::kAbsent;  // left out by Kept
    at_.erase(found);
  }
  template <typename Predicate>
  void DropIf(Predicate p) {
    for (Member& m : list_) {
      if (m.value.kind != Kind::kAbsent && p(m)) Drop(m.name());
    }
  }
  std::vector<Member> Kept() const {
    std::vector<Member> out;
    for (const Member& m : list_) {
      if (m.value.kind != Kind::kAbsent) out.push_back(m);
    }
    return out;
  }

 private:
  std::vector<Member> list_;
  std::unordered_map<std::string_view, size_t> at_;
};

Items ItemsOf(const Node& n) { return {n.items, n.items + n.size}; }

// What the schema says about one member.
struct Meta {
  const Message* message = nullptr;  // of the member, or of its items
  std::string_view merge_key;
  bool merge = false;
  bool replace = false;
};

class Patcher {
 public:
  explicit Patcher(Arena& arena) : build_(arena) {}

  // `message` is nullptr for maps with free keys.
  Result<Node> MergeMap(const Node& original, const Node& patch, const Message* message) {
    if (Value directive = At(patch)[kDirective]; !directive.IsAbsent()) {
      return WholeMap(directive, patch);
    }
    Members out = original.kind == Kind::kMap ? Members(original) : Members();
    Members changes(patch);
    RETURN_IF_ERROR(RetainKeys(out, changes));
    RETURN_IF_ERROR(ElementOrders(out, changes, message));
    for (const Member& change : changes.Kept()) {
      RETURN_IF_ERROR(MergeMember(out, change, message));
    }
    return build_.Map(out.Kept());
  }

 private:
  Result<Node> WholeMap(Value directive, const Node& patch) {
    if (directive.AsString() == "delete") return build_.Map({});
    if (directive.AsString() != "replace") {
      return Fail(Internal(fmt::format("unknown patch type: {} in map: {}", GoPrint(directive),
                                       GoPrint(At(patch)))));
    }
    Members rest(patch);
    rest.Drop(kDirective);
    return build_.Map(rest.Kept());
  }

  static Status RetainKeys(Members& out, Members& changes) {
    const Node* directive = changes.Find(kRetainKeys);
    if (directive == nullptr) return {};
    if (directive->kind != Kind::kList) return Fail(BadRequest(kBadRetainKeys));
    std::unordered_set<std::string_view> keys;
    for (Value key : At(*directive).items()) keys.insert(key.AsString());
    changes.Drop(kRetainKeys);
    auto retained = [&](std::string_view key) { return keys.contains(key); };
    for (const Member& m : changes.Kept()) {
      bool exempt = m.value.kind == Kind::kNull || m.name().starts_with(kDeletePrefix) ||
                    m.name().starts_with(kOrderPrefix);
      if (!exempt && !retained(m.name())) return Fail(BadRequest(kBadRetainKeys));
    }
    out.DropIf([&](const Member& m) { return !retained(m.name()); });
    return {};
  }

  static Result<std::string_view> BehindSlash(std::string_view key, std::string_view prefix,
                                              std::string_view why) {
    size_t slash = key.find('/');
    if (slash == std::string_view::npos || key.substr(0, slash) != prefix) {
      return Fail(BadRequest(why));
    }
    return key.substr(slash + 1);
  }

  Status ElementOrders(Members& out, Members& changes, const Message* message) {
    for (const Member& m : changes.Kept()) {
      if (!m.name().starts_with(kOrderPrefix)) continue;
      changes.Drop(m.name());
      RETURN_IF_ERROR(ElementOrder(m, out, changes, message));
    }
    return {};
  }

  Status ElementOrder(const Member& directive, Members& out, Members& changes,
                      const Message* message) {
    if (directive.value.kind != Kind::kList) return Fail(BadType(Kind::kList, directive.value));
    Items order = ItemsOf(directive.value);
    ASSIGN_OR_RETURN(std::string_view key, BehindSlash(directive.name(), kOrderPrefix, kBadOrder));
    const Node* original = out.Find(key);
    const Node* patch = changes.Find(key);
    for (const Node* list : {original, patch}) {
      if (list != nullptr && list->kind != Kind::kList) return Fail(BadType(Kind::kList, *list));
    }
    ASSIGN_OR_RETURN(Meta meta, Lookup(message, key));
    Items live = original != nullptr ? ItemsOf(*original) : Items();
    Items patched = patch != nullptr ? ItemsOf(*patch) : Items();
    RETURN_IF_ERROR(CheckOrder(patched, order, meta.merge_key));
    Items merged;
    if (original != nullptr && patch != nullptr) {
      ASSIGN_OR_RETURN(Node both, MergeList(*original, *patch, meta, false));
      merged = ItemsOf(both);
    } else if (original != nullptr) {
      merged = live;
    } else if (patch != nullptr) {
      merged = ItemsOf(*WithoutDirectives(*patch));
    } else {
      return {};
    }
    ASSIGN_OR_RETURN(Kind kind, ElementKind(live, patched));
    ASSIGN_OR_RETURN(Items sorted, Ordered(merged, order, live, meta.merge_key, kind));
    out.Put(key, build_.List(sorted));
    changes.Drop(key);
    return {};
  }

  // The items of the patch must stand in the order that the directive gives.
  static Status CheckOrder(const Items& patch, const Items& order, std::string_view merge_key) {
    if (patch.empty() || order.empty()) return {};
    Items kept;
    for (const Node& item : patch) {
      if (!merge_key.empty()) {
        if (item.kind != Kind::kMap) return Fail(BadType(Kind::kMap, item));
        if (At(item)[kDirective].AsString() == "delete") continue;
      }
      kept.push_back(item);
    }
    size_t at = 0, in_order = 0;
    while (at < kept.size() && in_order < order.size()) {
      if (At(kept[at]).Has(kDirective)) {
        ++at;
        continue;
      }
      ASSIGN_OR_RETURN(bool same, SameKey(kept[at], order[in_order], merge_key));
      if (same) ++at;
      ++in_order;
    }
    if (at == kept.size()) return {};
    auto shown = [](const Items& items) {
      std::string text;
      for (const Node& n : items) text += (text.empty() ? "" : " ") + GoPrint(At(n));
      return "[" + text + "]";
    };
    return Fail(Internal(
        fmt::format("The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    shown(patch), shown(order))));
  }

  static Result<bool> SameKey(const Node& a, const Node& b, std::string_view merge_key) {
    if (merge_key.empty()) return Same(At(a), At(b));
    for (const Node* n : {&a, &b}) {
      if (n->kind != Kind::kMap) return Fail(BadType(Kind::kMap, *n));
      if (!At(*n).Has(merge_key)) return Fail(NoMergeKey(*n, merge_key));
    }
    return Same(At(a)[merge_key], At(b)[merge_key]);
  }

  // Equal as Go's interface values are: type and value.
  static bool Same(Value a, Value b) { return a.kind() == b.kind() && Equal(a, b); }

  Status MergeMember(Members& out, const Member& change, const Message* message) {
    std::string_view key = change.name();
    const Node& patch = change.value;
    bool deletes = key.starts_with(kDeletePrefix);
    if (deletes) {
      ASSIGN_OR_RETURN(key, BehindSlash(key, kDeletePrefix, kBadPrimitiveList));
    }
    if (patch.kind == Kind::kNull) {
      out.Drop(key);
      return {};
    }
    Node* original = out.Find(key);
    bool scalar = patch.kind != Kind::kMap && patch.kind != Kind::kList;
    if (original == nullptr || original->kind != patch.kind || scalar) {
      if (deletes && (original == nullptr || original->kind != patch.kind)) return {};
      std::optional<Node> value = WithoutDirectives(WithoutNulls(patch));
      if (value) {
        out.Put(key, *value);
      } else {
        out.Drop(key);
      }
      return {};
    }
    ASSIGN_OR_RETURN(Meta meta, Lookup(message, key));
    if (patch.kind == Kind::kMap) {
      if (meta.replace) {
        *original = patch;
        return {};
      }
      ASSIGN_OR_RETURN(*original, MergeMap(*original, patch, meta.message));
      return {};
    }
    if (!meta.merge && !deletes) {
      *original = patch;
      return {};
    }
    ASSIGN_OR_RETURN(*original, MergeList(*original, patch, meta, deletes));
    return {};
  }

  Result<Meta> Lookup(const Message* message, std::string_view key) const {
    if (message == nullptr) {
      return Fail(
          Internal("merging an object in json but data type is not struct, instead is: map"));
    }
    const Field* f = message->FindField(key);
    if (f == nullptr) {
      size_t dot = message->go_name.rfind('.');
      return Fail(
          Internal(fmt::format("unable to find api field in struct {} for the json field {}",
                               message->go_name.substr(dot + 1), Quote(key))));
    }
    Meta meta;
    bool map = f->shape == Shape::kMap;
    meta.message = f->type == Type::kMessage && !map ? f->message : nullptr;
    meta.merge_key = f->patch_merge_key;
    meta.merge = f->patch_merge;
    meta.replace = f->patch_replace;
    return meta;
  }

  // The kind that all elements have.
  static Result<Kind> ElementKind(const Items& a, const Items& b) {
    Kind kind = Kind::kAbsent;
    for (const Items* items : {&a, &b}) {
      for (const Node& n : *items) {
        if (n.kind == Kind::kList) {
          return Fail(Error{.code = 422,
                            .reason = "Invalid",
                            .message = "the server rejected our request due to an error in our "
                                       "request"});
        }
        if (kind != Kind::kAbsent && kind != n.kind) {
          return Fail(Internal("list element types are not identical"));
        }
        kind = n.kind;
      }
    }
    if (kind == Kind::kAbsent) return Fail(Internal("no elements in any of the given slices"));
    return kind;
  }

  Result<Node> MergeList(const Node& original, const Node& patch, const Meta& meta, bool deletes) {
    if (original.size == 0 && patch.size == 0) return original;
    Items live = ItemsOf(original);
    Items changes = ItemsOf(patch);
    ASSIGN_OR_RETURN(Kind kind, ElementKind(live, changes));
    Items merged;
    if (kind != Kind::kMap) {
      auto in = [](const Items& items, const Node& n) {
        return std::ranges::any_of(items, [&](const Node& i) { return Same(At(i), At(n)); });
      };
      if (deletes) {
        std::erase_if(live, [&](const Node& n) { return in(changes, n); });
        return build_.List(live);
      }
      for (const Items* items : {&live, &changes}) {
        for (const Node& n : *items) {
          if (!in(merged, n)) merged.push_back(n);
        }
      }
    } else {
      if (meta.merge_key.empty()) {
        return Fail(Internal(fmt::format("cannot merge lists without merge key for {}",
                                         meta.message ? meta.message->go_name : "")));
      }
      RETURN_IF_ERROR(ListDirectives(live, changes, meta.merge_key));
      ASSIGN_OR_RETURN(merged, MergeMaps(live, changes, meta));
    }
    ASSIGN_OR_RETURN(Items sorted, Ordered(merged, changes, live, meta.merge_key, kind));
    return build_.List(sorted);
  }

  // Items with $patch: delete takes its match out of `live`, replace puts the patch in its place.
  static Status ListDirectives(Items& live, Items& changes, std::string_view merge_key) {
    Items plain;
    bool replace = false;
    for (const Node& item : changes) {
      Value directive = At(item)[kDirective];
      if (directive.IsAbsent()) {
        plain.push_back(item);
      } else if (directive.AsString() == "delete") {
        Value key = At(item)[merge_key];
        if (key.IsAbsent()) return Fail(NoMergeKey(item, merge_key));
        std::erase_if(live, [&](const Node& n) { return Same(At(n)[merge_key], key); });
      } else if (directive.AsString() == "replace") {
        replace = true;
      } else if (directive.AsString() == "merge") {
        return Fail(Internal("merging lists cannot yet be specified in the patch"));
      } else {
        return Fail(Internal(fmt::format("unknown patch type: {} in map: {}", GoPrint(directive),
                                         GoPrint(At(item)))));
      }
    }
    if (replace) live = std::exchange(plain, {});
    changes = std::move(plain);
    return {};
  }

  Result<Items> MergeMaps(const Items& live, const Items& changes, const Meta& meta) {
    Items out = live;
    for (const Node& item : changes) {
      Value key = At(item)[meta.merge_key];
      if (key.IsAbsent()) return Fail(NoMergeKey(item, meta.merge_key));
      auto found = std::ranges::find_if(
          out, [&](const Node& n) { return Same(At(n)[meta.merge_key], key); });
      if (found == out.end()) {
        out.push_back(item);
      } else {
        ASSIGN_OR_RETURN(*found, MergeMap(*found, item, meta.message));
      }
    }
    return out;
  }

  static int IndexIn(const Items& list, const Node& item, std::string_view merge_key, Kind kind) {
    auto value = [&](const Node& n) { return kind == Kind::kMap ? At(n)[merge_key] : At(n); };
    for (size_t i = 0; i < list.size(); ++i) {
      if (Same(value(list[i]), value(item))) return static_cast<int>(i);
    }
    return -1;
  }

  static Items SortedBy(const Items& items, const Items& order, std::string_view merge_key,
                        Kind kind) {
    std::vector<std::pair<int, size_t>> rank;
    for (size_t i = 0; i < items.size(); ++i) {
      rank.emplace_back(IndexIn(order, items[i], merge_key, kind), i);
    }
    std::ranges::sort(rank);
    Items out;
    for (const auto& [at, i] : rank) out.push_back(items[i]);
    return out;
  }

  // Puts what `order` names into its order and the rest, which only the server knows, between it as
  // it stood in `live`.
  static Result<Items> Ordered(const Items& merged, const Items& order, const Items& live,
                               std::string_view merge_key, Kind kind) {
    Items named, rest;
    for (const Node& n : merged) {
      if (kind == Kind::kMap && !At(n).Has(merge_key)) return Fail(NoMergeKey(n, merge_key));
      (IndexIn(order, n, merge_key, kind) >= 0 ? named : rest).push_back(n);
    }
    named = SortedBy(named, order, merge_key, kind);
    rest = SortedBy(rest, live, merge_key, kind);
    Items out;
    size_t i = 0, j = 0;
    while (i < rest.size() || j < named.size()) {
      bool take_rest = j == named.size();
      if (i < rest.size() && j < named.size()) {
        int a = IndexIn(live, rest[i], merge_key, kind);
        int b = IndexIn(live, named[j], merge_key, kind);
        take_rest = a >= 0 && b >= 0 && a < b;
      }
      out.push_back(take_rest ? rest[i++] : named[j++]);
    }
    return out;
  }

  // Without anything that says $patch; nullopt if the value itself does.
  std::optional<Node> WithoutDirectives(const Node& n) {
    if (n.kind == Kind::kMap) {
      if (At(n).Has(kDirective)) return std::nullopt;
      std::vector<Member> out;
      for (uint32_t i = 0; i < n.size; ++i) {
        Member m = n.members[i];
        auto value = WithoutDirectives(m.value);
        if (!value) continue;
        m.value = *value;
        out.push_back(m);
      }
      return build_.Map(out);
    }
    if (n.kind == Kind::kList) {
      Items out;
      for (const Node& item : ItemsOf(n)) {
        if (auto value = WithoutDirectives(item)) out.push_back(*value);
      }
      return build_.List(out);
    }
    return n;
  }

  Node WithoutNulls(const Node& n) {
    if (n.kind == Kind::kMap) {
      std::vector<Member> out;
      for (uint32_t i = 0; i < n.size; ++i) {
        Member m = n.members[i];
        if (m.value.kind == Kind::kNull) continue;
        m.value = WithoutNulls(m.value);
        out.push_back(m);
      }
      return build_.Map(out);
    }
    if (n.kind == Kind::kList) {
      Items out;
      for (const Node& item : ItemsOf(n)) out.push_back(WithoutNulls(item));
      return build_.List(out);
    }
    return n;
  }

  Canonicalizer build_;
};

}  // namespace

Result<Object> ApplyStrategicPatch(Value current, Value patch, const Message& message) {
  Arena arena;
  Node none;
  const Node& original = current.IsAbsent() ? none : *current.node();
  Node change = patch.IsMap() ? *patch.node() : Canonicalizer(arena).Map({});
  ASSIGN_OR_RETURN(Node merged, Patcher(arena).MergeMap(original, change, &message));
  return FinishCompact(merged, nullptr);
}

}  // namespace sextant::api
