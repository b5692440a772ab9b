#include "api/field_walk.h"

#include <algorithm>
#include <map>
#include <optional>

#include "api/json.h"

namespace sextant::api {
namespace {

enum class Atom : uint8_t { kLeaf, kMap, kList };

// What kind of thing stands at a place, given the values seen there.
Atom AtomOf(const Slot& slot, Value v) {
  if (slot.shape == Shape::kList) {
    bool granular =
        slot.field->list_type == ListType::kSet || slot.field->list_type == ListType::kMap;
    return granular ? Atom::kList : Atom::kLeaf;
  }
  if (slot.shape == Shape::kMap) return slot.field->map_atomic ? Atom::kLeaf : Atom::kMap;
  if (slot.IsMessage()) {
    bool atomic = slot.message->atomic || (slot.field != nullptr && slot.field->map_atomic);
    return atomic ? Atom::kLeaf : Atom::kMap;
  }
  bool free = slot.Unknown() || slot.field->type == Type::kAny ||
              slot.field->type == Type::kRawExtension || slot.field->type == Type::kFieldsV1;
  return free && v.IsMap() ? Atom::kMap : Atom::kLeaf;
}

Slot ChildSlot(const Slot& slot, std::string_view key) {
  if (slot.shape == Shape::kMap) return slot.Element();
  const Field* f = slot.message != nullptr ? slot.message->FindField(key) : nullptr;
  return f != nullptr ? Slot::Of(*f, slot) : Slot{.custom = slot.custom};
}

bool KnownField(const Slot& slot, std::string_view key) {
  return slot.shape == Shape::kSingle && slot.message != nullptr &&
         slot.message->FindField(key) != nullptr;
}

// The default of a key of an item, as a parsed value. Tables are few and small.
Object DefaultOf(const Field& list, std::string_view key) {
  const Field* f = list.message != nullptr ? list.message->FindField(key) : nullptr;
  if (f == nullptr || f->default_json.empty()) return {};
  auto doc = ParseJson(f->default_json);
  return doc ? *doc : Object();
}

// The element that names an item of a keyed list or of a set; nullopt if it cannot be named.
std::optional<PathElement> ItemElement(const Slot& list, Value item) {
  if (list.field->list_type == ListType::kSet) {
    bool scalar = item.kind() >= Kind::kBool && item.kind() <= Kind::kString;
    if (!scalar) return std::nullopt;
    return PathElement::SetItem(item);
  }
  std::vector<PathScalar> keys;
  for (std::string_view key : list.field->list_map_keys) {
    if (Value v = item[key]; !v.IsAbsent()) {
      keys.push_back(PathScalar::Of(key, v));
    } else if (Object otherwise = DefaultOf(*list.field, key)) {
      keys.push_back(PathScalar::Of(key, otherwise.root()));
    }
  }
  if (keys.empty()) return std::nullopt;
  return PathElement::Key(std::move(keys));
}

struct ElementLess {
  bool operator()(const PathElement& a, const PathElement& b) const { return a.Compare(b) < 0; }
};
using ItemsByElement = std::map<PathElement, std::vector<Value>, ElementLess>;

// Items by name; `order` has each name once, as it first comes.
ItemsByElement IndexItems(const Slot& slot, Value list, std::vector<PathElement>* order) {
  ItemsByElement index;
  for (Value item : list.items()) {
    auto element = ItemElement(slot, item);
    if (!element) continue;
    std::vector<Value>& values = index[*element];
    if (values.empty() && order != nullptr) order->push_back(*element);
    values.push_back(item);
  }
  return index;
}

bool Hollow(Value v) { return v.empty() && (!v || v.IsMap() || v.IsList()); }

class Comparer {
 public:
  explicit Comparer(FieldComparison& out) : out_(out) {}

  void Compare(Value a, Value b, const Slot& slot) {
    Value shape = a && !a.IsNull() ? a : b;
    Atom atom = AtomOf(slot, shape);
    bool wrong_kind = (atom == Atom::kMap && !Fits(a, b, Kind::kMap)) ||
                      (atom == Atom::kList && !Fits(a, b, Kind::kList));
    if (atom == Atom::kLeaf || wrong_kind || (Hollow(a) && Hollow(b))) return Leaf(a, b);
    if (atom == Atom::kMap) {
      Maps(a, b, slot);
    } else {
      Lists(a, b, slot);
    }
    if (a.IsAbsent()) out_.added.Insert(path_);
    if (b.IsAbsent()) out_.removed.Insert(path_);
  }

 private:
  static bool Fits(Value a, Value b, Kind kind) {
    return (!a || a.kind() == kind) && (!b || b.kind() == kind);
  }

  void Leaf(Value a, Value b) {
    if (a.IsAbsent()) {
      out_.added.Insert(path_);
    } else if (b.IsAbsent()) {
      out_.removed.Insert(path_);
    } else if (!Equal(a, b)) {
      out_.modified.Insert(path_);
    }
  }

  void Member(std::string_view key, Value a, Value b, const Slot& slot) {
    // Most of an object stays as it is, and who owns what is nobody's field.
    if (!a.IsAbsent() && !b.IsAbsent() && Equal(a, b)) return;
    if (key == "managedFields" && path_.size() == 1 && path_[0].text == "f:metadata") return;
    path_.push_back(PathElement::Field(key));
    Compare(a, b, ChildSlot(slot, key));
    path_.pop_back();
  }

  void Maps(Value a, Value b, const Slot& slot) {
    MemberIndex in_a(a), in_b(b);
    for (MemberView m : a.members()) Member(m.key, m.value, in_b.Find(m.key), slot);
    for (MemberView m : b.members()) {
      if (in_a.Find(m.key).IsAbsent()) Member(m.key, Value(), m.value, slot);
    }
  }

  void Item(const PathElement& element, Value a, Value b, const Slot& slot) {
    path_.push_back(element);
    Compare(a, b, slot.Element());
    path_.pop_back();
  }

  void Lists(Value a, Value b, const Slot& slot) {
    std::vector<PathElement> order;
    ItemsByElement in_a = IndexItems(slot, a, &order);
    ItemsByElement in_b = IndexItems(slot, b, nullptr);
    for (const auto& [element, values] : in_b) {
      if (!in_a.contains(element)) order.push_back(element);
    }
    for (const PathElement& element : order) {
      const std::vector<Value>& x = in_a[element];
      const std::vector<Value>& y = in_b[element];
      if (x.size() <= 1 && y.size() <= 1) {
        Item(element, x.empty() ? Value() : x[0], y.empty() ? Value() : y[0], slot);
      } else {
        Duplicates(element, x, y, slot);
      }
    }
  }

  // Items of one name count as one field.
  void Duplicates(const PathElement& element, const std::vector<Value>& x,
                  const std::vector<Value>& y, const Slot& slot) {
    if (x.size() >= 2 && y.size() >= 2) {
      path_.push_back(element);
      if (!std::ranges::equal(x, y, Equal)) out_.modified.Insert(path_);
      path_.pop_back();
      return;
    }
    bool removed = x.size() >= 2;
    const std::vector<Value>& single = removed ? y : x;
    if (!single.empty()) {
      Item(element, removed ? Value() : single[0], removed ? single[0] : Value(), slot);
    }
    path_.push_back(element);
    (removed ? out_.removed : out_.added).Insert(path_);
    path_.pop_back();
  }

  FieldComparison& out_;
  FieldPath path_;
};

class Collector {
 public:
  explicit Collector(FieldSet& out) : out_(out) {}

  void Collect(Value v, const Slot& slot) {
    Atom atom = AtomOf(slot, v);
    if (atom == Atom::kMap && v.IsMap()) return Map(v, slot);
    if (atom == Atom::kList && v.IsList()) return List(v, slot);
    if (atom == Atom::kLeaf) out_.Insert(path_);
  }

 private:
  void Map(Value v, const Slot& slot) {
    for (MemberView m : v.members()) {
      path_.push_back(PathElement::Field(m.key));
      Collect(m.value, ChildSlot(slot, m.key));
      bool hollow = m.value.IsNull() || (m.value.IsMap() && m.value.empty());
      if (hollow || !KnownField(slot, m.key)) out_.Insert(path_);
      path_.pop_back();
    }
  }

  void List(Value v, const Slot& slot) {
    for (const auto& [element, values] : IndexItems(slot, v, nullptr)) {
      path_.push_back(element);
      if (values.size() == 1) Collect(values[0], slot.Element());
      out_.Insert(path_);
      path_.pop_back();
    }
  }

  FieldSet& out_;
  FieldPath path_;
};

api::Member Named(std::string_view key, const Node& value) {
  api::Member m;
  m.key = key.data();
  m.key_size = static_cast<uint32_t>(key.size());
  m.value = value;
  return m;
}

class Merger {
 public:
  explicit Merger(Arena& arena) : build_(arena) {}

  Node Merge(Value a, Value b, const Slot& slot) {
    if (b.IsAbsent()) return *a.node();
    if (a.IsAbsent()) return *b.node();
    Atom atom = AtomOf(slot, a ? a : b);
    bool maps = atom == Atom::kMap && a.IsMap() && b.IsMap();
    bool lists = atom == Atom::kList && a.IsList() && b.IsList();
    // An empty or null value over one with content gives nothing.
    if ((atom == Atom::kMap && a.IsMap() && Hollow(b)) ||
        (atom == Atom::kList && a.IsList() && Hollow(b))) {
      return a.empty() ? *b.node() : *a.node();
    }
    if (maps) return Maps(a, b, slot);
    if (lists) return Lists(a, b, slot);
    return *b.node();
  }

 private:
  Node Maps(Value a, Value b, const Slot& slot) {
    std::vector<api::Member> out;
    MemberIndex in_a(a), in_b(b);
    for (MemberView m : a.members()) {
      out.push_back(Named(m.key, Merge(m.value, in_b.Find(m.key), ChildSlot(slot, m.key))));
    }
    for (MemberView m : b.members()) {
      if (in_a.Find(m.key).IsAbsent()) out.push_back(Named(m.key, *m.value.node()));
    }
    return build_.Map(out);
  }

  // Live items stand where they stood, in the order of `b` where both have them.
  Node Lists(Value a, Value b, const Slot& slot) {
    std::vector<PathElement> order_a, order_b;
    std::vector<Value> items_a;
    ItemsByElement in_a = IndexItems(slot, a, nullptr);
    ItemsByElement in_b = IndexItems(slot, b, &order_b);
    for (Value item : a.items()) {
      auto element = ItemElement(slot, item);
      if (!element) continue;
      order_a.push_back(*element);
      items_a.push_back(item);
    }
    auto live = [&](const PathElement& e) {
      auto found = in_a.find(e);
      return found != in_a.end() && found->second.size() == 1 ? found->second[0] : Value();
    };
    std::vector<PathElement> shared;
    for (const PathElement& e : order_b) {
      if (in_a.contains(e)) shared.push_back(e);
    }
    std::vector<Node> out;
    std::map<PathElement, bool, ElementLess> merged;
    size_t i = 0, j = 0, next = 0;
    while (i < order_a.size() || j < order_b.size()) {
      bool has_a = i < order_a.size(), has_b = j < order_b.size();
      if (has_a && !in_b.contains(order_a[i])) {
        out.push_back(*items_a[i++].node());
        continue;
      }
      bool same = has_a && has_b && order_a[i].Compare(order_b[j]) == 0;
      bool other_shared =
          has_a && has_b && !same && next < shared.size() && shared[next].Compare(order_a[i]) != 0;
      if (other_shared || (has_a && !same && merged.contains(order_a[i]))) {
        ++i;  // it comes where `b` has it
        continue;
      }
      if (!has_b) {
        ++i;
        continue;
      }
      const PathElement& e = order_b[j];
      merged[e] = true;
      out.push_back(Merge(live(e), in_b[e][0], slot.Element()));
      if (next < shared.size() && shared[next].Compare(e) == 0) ++next;
      if (same) ++i;
      ++j;
    }
    return build_.List(out);
  }

  Canonicalizer build_;
};

class Remover {
 public:
  explicit Remover(Arena& arena) : build_(arena) {}

  // nullopt: nothing is left.
  std::optional<Node> Remove(Value v, const FieldSet& remove, const Slot& slot) {
    Atom atom = AtomOf(slot, v);
    if (atom == Atom::kMap && v.IsMap()) return Map(v, remove, slot);
    if (atom == Atom::kList && v.IsList()) return List(v, remove, slot);
    bool container = v.IsMap() || v.IsList();
    if (container || atom != Atom::kLeaf) return std::nullopt;
    return *v.node();
  }

 private:
  std::optional<Node> Map(Value v, const FieldSet& remove, const Slot& slot) {
    std::vector<api::Member> out;
    for (MemberView m : v.members()) {
      PathElement element = PathElement::Field(m.key);
      if (remove.Has(element)) continue;
      const FieldSet* below = remove.Below(element);
      if (below == nullptr) {
        out.push_back(Named(m.key, *m.value.node()));
        continue;
      }
      Node null;
      null.kind = Kind::kNull;
      out.push_back(Named(m.key, Remove(m.value, *below, ChildSlot(slot, m.key)).value_or(null)));
    }
    if (out.empty()) return std::nullopt;
    return build_.Map(out);
  }

  std::optional<Node> List(Value v, const FieldSet& remove, const Slot& slot) {
    std::vector<Node> out;
    for (Value item : v.items()) {
      auto element = ItemElement(slot, item);
      if (element && remove.Has(*element)) continue;
      const FieldSet* below = element ? remove.Below(*element) : nullptr;
      Node null;
      null.kind = Kind::kNull;
      out.push_back(below == nullptr ? *item.node()
                                     : Remove(item, *below, slot.Element()).value_or(null));
    }
    if (out.empty()) return std::nullopt;
    return build_.List(out);
  }

  Canonicalizer build_;
};

class Checker {
 public:
  explicit Checker(std::vector<std::string>& errors) : errors_(errors) {}

  void Check(Value v, const Slot& slot, const std::string& path) {
    Atom atom = AtomOf(slot, v);
    if (slot.IsMessage() && v.IsMap()) {
      for (MemberView m : v.members()) {
        std::string at = path + "." + std::string(m.key);
        if (!KnownField(slot, m.key)) {
          if (!slot.message->preserve_unknown)
            errors_.push_back(at + ": field not declared in schema");
          continue;
        }
        Check(m.value, ChildSlot(slot, m.key), at);
      }
    } else if (slot.shape == Shape::kMap && v.IsMap()) {
      for (MemberView m : v.members()) {
        Check(m.value, slot.Element(), path + "." + std::string(m.key));
      }
    } else if (slot.shape == Shape::kList && v.IsList()) {
      CheckList(v, slot, path, atom == Atom::kList);
    }
  }

 private:
  void CheckList(Value v, const Slot& slot, const std::string& path, bool named) {
    std::map<PathElement, bool, ElementLess> seen;
    size_t i = 0;
    for (Value item : v.items()) {
      std::string at = path + "[" + std::to_string(i) + "]";
      if (named) {
        auto element = ItemElement(slot, item);
        if (!element) {
          errors_.push_back(path + ": element " + std::to_string(i) + ": " + Nameless(slot));
        } else if (!seen.emplace(*element, true).second) {
          errors_.push_back(path + ": duplicate entries for key " + element->ToString());
        } else {
          at = path + element->ToString();
        }
      }
      Check(item, slot.Element(), at);
      ++i;
    }
  }

  static std::string Nameless(const Slot& slot) {
    if (slot.field->list_type == ListType::kSet) {
      return "associative list without keys has an element that's a map type";
    }
    std::string keys;
    for (std::string_view key : slot.field->list_map_keys) {
      keys += (keys.empty() ? "\"" : " \"") + std::string(key) + "\"";
    }
    return "associative list with keys has an element that omits all key fields [" + keys +
           "] (and doesn't have default values for any key fields)";
  }

  std::vector<std::string>& errors_;
};

}  // namespace

FieldComparison CompareFields(Value before, Value after, const Message& message) {
  FieldComparison out;
  Comparer(out).Compare(before, after, Slot::Root(message));
  return out;
}

FieldSet FieldsOf(Value object, const Message& message) {
  FieldSet out;
  Collector(out).Collect(object, Slot::Root(message));
  return out;
}

Node MergeFields(Value live, Value config, const Message& message, Arena& arena) {
  return Merger(arena).Merge(live, config, Slot::Root(message));
}

Node RemoveFields(Value object, const FieldSet& remove, const Message& message, Arena& arena) {
  auto left = Remover(arena).Remove(object, remove, Slot::Root(message));
  return left ? *left : Canonicalizer(arena).Map({});
}

std::vector<std::string> CheckTyped(Value object, const Message& message) {
  std::vector<std::string> errors;
  Checker(errors).Check(object, Slot::Root(message), "");
  return errors;
}

}  // namespace sextant::api
