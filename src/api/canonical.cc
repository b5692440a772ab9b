#include "api/canonical.h"

#include <algorithm>
#include <cstring>

#include "api/quantity.h"
#include "api/time_value.h"

namespace sextant::api {
namespace {

Node Null() {
  Node n;
  n.kind = Kind::kNull;
  return n;
}

Node EmptyMap() {
  Node n;
  n.kind = Kind::kMap;
  n.members = nullptr;
  return n;
}

bool IsEmpty(const Node& n) {
  return (n.kind == Kind::kList || n.kind == Kind::kMap || n.kind == Kind::kString) && n.size == 0;
}

bool IsZero(const Node& n) {
  switch (n.kind) {
    case Kind::kBool:
      return !n.boolean;
    case Kind::kInt:
      return n.integer == 0;
    case Kind::kDouble:
      return n.number == 0;
    default:
      return n.kind == Kind::kAbsent || n.kind == Kind::kNull || IsEmpty(n);
  }
}

bool IsListKind(const Message& m) {
  const Field* meta = nullptr;
  for (const Field& f : m.fields) {
    if (f.name == "metadata") meta = &f;
  }
  return meta != nullptr && meta->message != nullptr && meta->message->name.ends_with(".ListMeta");
}

Member NamedBy(const Field& f, bool custom, const Node& value) {
  Member m;
  m.key = f.name.data();
  m.key_size = static_cast<uint32_t>(f.name.size());
  m.fixed = !custom;
  m.value = value;
  return m;
}

}  // namespace

int IndexOfField(const Message& message, std::string_view name, int hint) {
  // Members usually come in order, most of the fields between them left out.
  constexpr int kLook = 3;
  int n = static_cast<int>(message.fields.size());
  for (int i = hint; i < std::min(hint + kLook, n); ++i) {
    const Field& f = message.fields[static_cast<size_t>(i)];
    if (f.name == name && !f.inlined) return i;
  }
  const Field* f = message.FindField(name);
  return f == nullptr ? -1 : static_cast<int>(f - message.fields.data());
}

Node Canonicalizer::View(std::string_view text) {
  Node n;
  n.kind = Kind::kString;
  n.size = static_cast<uint32_t>(text.size());
  n.text = text.data();
  return n;
}

Node Canonicalizer::Text(std::string_view text) { return View(arena_.Copy(text)); }

Node Canonicalizer::List(std::span<const Node> items) {
  Node n;
  n.kind = Kind::kList;
  n.size = static_cast<uint32_t>(items.size());
  Node* to = static_cast<Node*>(arena_.Allocate(items.size_bytes()));
  std::copy(items.begin(), items.end(), to);
  n.items = to;
  return n;
}

Node Canonicalizer::Map(std::span<const Member> members) {
  Node n = EmptyMap();
  n.size = static_cast<uint32_t>(members.size());
  n.sorted = KeysAscend(members);
  Member* to = static_cast<Member*>(arena_.Allocate(members.size_bytes()));
  std::copy(members.begin(), members.end(), to);
  n.members = to;
  return n;
}

Node Canonicalizer::SortedMap(std::span<const Member> members) {
  if (KeysAscend(members)) return Map(members);
  std::vector<const Member*> order;
  order.reserve(members.size());
  for (const Member& m : members) order.push_back(&m);
  std::ranges::sort(order, [](const Member* a, const Member* b) {
    int by_name = a->name().compare(b->name());
    return by_name != 0 ? by_name < 0 : a < b;
  });
  std::vector<Member> out;
  out.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    bool last = i + 1 == order.size() || order[i]->name() != order[i + 1]->name();
    if (last) out.push_back(*order[i]);
  }
  return Map(out);
}

Node Canonicalizer::Scalar(const Node& node, const Field& field) {
  std::string_view text = Value(&node).AsString();
  bool is_text = node.kind == Kind::kString;
  switch (field.type) {
    case Type::kQuantity: {
      std::string number;
      if (node.kind == Kind::kInt) text = number = std::to_string(node.integer);
      if (!is_text && number.empty()) return node;
      std::string out;
      auto form = CanonicalQuantity(text, out);
      if (!form) return node;
      return form->data() == text.data() && is_text ? node : Text(*form);
    }
    case Type::kTime:
    case Type::kMicroTime: {
      if (!is_text) return node;
      TimeKind kind = field.type == Type::kTime ? TimeKind::kSeconds : TimeKind::kMicro;
      std::string out;
      auto form = CanonicalTime(text, kind, out);
      if (!form) return node;
      if (form->empty()) return Null();
      return form->data() == text.data() ? node : Text(*form);
    }
    case Type::kDuration: {
      if (!is_text) return node;
      std::string out;
      auto form = CanonicalDuration(text, out);
      if (!form) return node;
      return form->data() == text.data() ? node : Text(*form);
    }
    default:
      return node;
  }
}

Node Canonicalizer::Zero(const Field& field, bool custom) {
  Node n;
  if (field.shape != Shape::kSingle || field.pointer) return Null();
  switch (field.type) {
    case Type::kBool:
      n.kind = Kind::kBool;
      n.boolean = false;
      return n;
    case Type::kInt32:
    case Type::kInt64:
    case Type::kUint32:
    case Type::kDouble:
    case Type::kIntOrString:
      n.kind = Kind::kInt;
      return n;
    case Type::kString:
      n = View("");
      n.fixed = true;
      return n;
    case Type::kQuantity:
      n = View("0");
      n.fixed = true;
      return n;
    case Type::kDuration:
      n = View("0s");
      n.fixed = true;
      return n;
    case Type::kMessage:
      return Assemble({}, Slot::Of(field, Slot{.custom = custom}));
    case Type::kBytes:
    case Type::kStringList:
    case Type::kTime:
    case Type::kMicroTime:
    case Type::kRawExtension:
    case Type::kFieldsV1:
    case Type::kAny:
      return Null();
  }
  return n;
}

Node Canonicalizer::Element(Node node, const Slot& slot) {
  if (node.kind != Kind::kNull || slot.custom || slot.field == nullptr) return node;
  Field element = *slot.field;
  element.shape = Shape::kSingle;
  element.pointer = false;
  if (element.type == Type::kBytes) element.type = Type::kString;
  return Zero(element, slot.custom);
}

// Whether the field shows, and as what.
bool Canonicalizer::Keep(const Field& field, const Message& parent, bool custom, Node& value) {
  if (custom) return value.kind != Kind::kAbsent;
  Presence presence = EffectivePresence(field);
  bool nothing = value.kind == Kind::kNull || value.kind == Kind::kAbsent;
  if (nothing) {
    if (presence != Presence::kAlways) return false;
    value = Zero(field, custom);
    return true;
  }
  if (presence == Presence::kOmitEmpty) return !IsZero(value);
  if (presence == Presence::kAlways && field.shape != Shape::kSingle && IsEmpty(value) &&
      !(field.name == "items" && IsListKind(parent))) {
    value = Null();
  }
  return true;
}

// The positions of the fields that show even when they were not given.
std::span<const uint16_t> AlwaysOf(const Message& message, std::vector<uint16_t>& made) {
  if (message.index != nullptr) return message.index->Always();
  for (size_t i = 0; i < message.fields.size(); ++i) {
    const Field& f = message.fields[i];
    bool always = !f.inlined && EffectivePresence(f) == Presence::kAlways;
    if (always) made.push_back(static_cast<uint16_t>(i));
  }
  return made;
}

// Brings entries of known fields into the order of the fields, unknown ones behind them; of several
// with one field the last stays. `made` is used if they are not in order already.
std::span<const Entry> InOrder(std::span<const Entry> entries, std::vector<Entry>& made) {
  auto rank = [](const Entry& e) { return static_cast<unsigned>(e.field); };  // -1 comes last
  bool sorted = true;
  for (size_t i = 1; i < entries.size() && sorted; ++i) {
    sorted = rank(entries[i - 1]) < rank(entries[i]) || entries[i].field < 0;
  }
  if (sorted) return entries;
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& e : entries) order.push_back(&e);
  std::ranges::sort(order, [&](const Entry* a, const Entry* b) {
    return rank(*a) != rank(*b) ? rank(*a) < rank(*b) : a < b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    bool overridden =
        i + 1 < order.size() && order[i]->field >= 0 && order[i + 1]->field == order[i]->field;
    if (!overridden) made.push_back(*order[i]);
  }
  return made;
}

Node Canonicalizer::Assemble(std::span<const Entry> given, const Slot& slot) {
  const Message& message = *slot.message;
  std::vector<Entry> ordered;
  std::span<const Entry> entries = InOrder(given, ordered);
  std::vector<uint16_t> made;
  std::span<const uint16_t> always;
  if (!slot.custom) always = AlwaysOf(message, made);
  auto* out =
      static_cast<Member*>(arena_.Allocate((entries.size() + always.size()) * sizeof(Member)));
  Member* at = out;
  size_t next = 0;  // in `always`
  auto zeros_before = [&](int field) {
    for (; next < always.size() && always[next] < field; ++next) {
      const Field& f = message.fields[always[next]];
      *at++ = NamedBy(f, slot.custom, Zero(f, slot.custom));
    }
  };
  for (const Entry& e : entries) {
    if (e.field < 0) continue;
    zeros_before(e.field);
    if (next < always.size() && always[next] == e.field) ++next;
    const Field& f = message.fields[static_cast<size_t>(e.field)];
    Node value = e.member.value;
    if (Keep(f, message, slot.custom, value)) *at++ = NamedBy(f, slot.custom, value);
  }
  zeros_before(static_cast<int>(message.fields.size()));
  if (message.preserve_unknown) {
    for (const Entry& e : entries) {
      if (e.field < 0) *at++ = e.member;
    }
  }
  Node node = EmptyMap();
  if (slot.custom || slot.sorted) return SortedMap({out, at});
  node.members = out;
  node.size = static_cast<uint32_t>(at - out);
  return node;
}

Node Canonicalizer::Canonical(const Node& node, const Slot& slot) {
  if (node.kind == Kind::kList) {
    bool typed = slot.shape == Shape::kList;
    if (!typed && !slot.custom && !slot.Unknown()) return node;
    Slot element = typed ? slot.Element() : Slot{.custom = slot.custom};
    std::vector<Node> items;
    items.reserve(node.size);
    for (uint32_t i = 0; i < node.size; ++i) {
      items.push_back(Element(Canonical(node.items[i], element), element));
    }
    return List(items);
  }
  if (node.kind != Kind::kMap) {
    bool typed = slot.field != nullptr && slot.shape == Shape::kSingle && slot.message == nullptr;
    return typed ? Scalar(node, *slot.field) : node;
  }
  if (slot.IsMessage()) {
    std::vector<Entry> entries;
    entries.reserve(node.size);
    int hint = 0;
    for (uint32_t i = 0; i < node.size; ++i) {
      const Member& m = node.members[i];
      int index = IndexOfField(*slot.message, m.name(), hint);
      if (index >= 0) hint = index + 1;
      Slot child{.custom = slot.custom};
      if (index >= 0) {
        child = Slot::Of(slot.message->fields[static_cast<size_t>(index)], slot);
      }
      Entry& e = entries.emplace_back(index, m);
      e.member.value = Canonical(m.value, child);
    }
    return Assemble(entries, slot);
  }
  bool typed = slot.shape == Shape::kMap;
  // What stands free (RawExtension, FieldsV1) keeps its order, as Go keeps its bytes.
  if (!typed && !slot.custom) return node;
  Slot element = typed ? slot.Element() : Slot{.custom = slot.custom};
  std::vector<Member> members(node.members, node.members + node.size);
  for (Member& m : members) m.value = Element(Canonical(m.value, element), element);
  return SortedMap(members);
}

}  // namespace sextant::api
