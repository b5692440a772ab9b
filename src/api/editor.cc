// Mut and Editor of document.h.
#include <algorithm>
#include <deque>

#include "api/canonical.h"
#include "api/document.h"
#include "base/check.h"

namespace sextant::api {

struct MutMember {
  std::string_view key;
  bool fixed = false;          // as Member::fixed
  const Node* base = nullptr;  // the untouched value, when there is no node
  MutNode* node = nullptr;
};

// A place in the tree being edited. Three states: untouched (`base` says what is here, children are
// not made), a scalar (base points to `own`), or expanded (base is null; members or items count).
struct MutNode {
  MutNode* parent = nullptr;
  Kind kind = Kind::kAbsent;
  bool clean = false;  // base stands here in canonical form
  bool item = false;   // of the parent's list (else a member of its map)
  const Node* base = nullptr;
  Node own;
  std::vector<MutMember> members;
  std::vector<MutNode*> items;
};

class Mut::Core {
 public:
  MutNode* Make(MutNode* parent, const Node* base, bool clean) {
    MutNode* n = &nodes_.emplace_back();
    n->parent = parent;
    n->base = base;
    n->clean = clean && base != nullptr;
    if (base != nullptr) n->kind = base->kind;
    return n;
  }

  void Expand(MutNode* n) {
    if (n->base == nullptr) return;
    const Node* base = n->base;
    if (n->kind == Kind::kMap) {
      n->members.reserve(base->size + 2);
      for (uint32_t i = 0; i < base->size; ++i) {
        const Member& m = base->members[i];
        n->members.push_back({m.name(), m.fixed, &m.value, nullptr});
      }
    } else if (n->kind == Kind::kList) {
      n->items.reserve(base->size + 1);
      for (uint32_t i = 0; i < base->size; ++i) {
        n->items.push_back(Make(n, base->items + i, n->clean));
        n->items.back()->item = true;
      }
    } else {
      return;
    }
    n->base = nullptr;
  }

  MutNode* Child(MutNode* n, std::string_view key) {
    Expand(n);
    for (MutMember& m : n->members) {
      if (m.key != key) continue;
      if (m.node == nullptr) m.node = Make(n, m.base, n->clean);
      return m.node;
    }
    MutMember& m = n->members.emplace_back();
    m.key = texts_.Copy(key);
    return m.node = Make(n, nullptr, false);
  }

  // Makes maps of everything above `n`, so that n is part of the tree.
  void Root(MutNode* n) {
    for (MutNode* p = n->parent; p != nullptr; n = p, p = p->parent) {
      if (p->kind == (n->item ? Kind::kList : Kind::kMap)) return;
      Reset(p, Kind::kMap, false);
    }
  }

  // Turns `n` into an empty value of `kind`; keeps children that were asked for but absent.
  void Reset(MutNode* n, Kind kind, bool drop_members = true) {
    if (drop_members) n->members.clear();
    n->items.clear();
    n->base = nullptr;
    n->clean = false;
    n->kind = kind;
  }

  void SetNode(MutNode* n, const Node& value) {
    Reset(n, value.kind);
    n->own = value;
    n->base = &n->own;
    Root(n);
  }

  std::string_view Copy(std::string_view text) { return texts_.Copy(text); }
  void Keep(Object source) { kept_.push_back(std::move(source)); }

  MutNode* root = nullptr;
  const Message* clean_for = nullptr;

 private:
  std::deque<MutNode> nodes_;
  Arena texts_;
  std::vector<Object> kept_;
};

namespace {

bool Exists(const MutMember& m) {
  return m.node != nullptr ? m.node->kind != Kind::kAbsent : m.base->kind != Kind::kAbsent;
}

Value Untouched(const MutNode* n) { return Value(n != nullptr ? n->base : nullptr); }

// Makes a plain tree of what was edited.
class Builder {
 public:
  Builder(Arena& arena, bool typed) : canon_(arena), typed_(typed) {}

  Node Build(const MutNode& n, const Slot& slot) {
    if (n.base != nullptr) return FromBase(*n.base, n.clean, slot);
    if (n.kind == Kind::kList) {
      Slot element = slot.shape == Shape::kList ? slot.Element() : Slot{.custom = slot.custom};
      std::vector<Node> items;
      items.reserve(n.items.size());
      for (const MutNode* item : n.items) {
        if (item->kind == Kind::kAbsent) continue;
        Node built = Build(*item, element);
        items.push_back(typed_ ? canon_.Element(built, element) : built);
      }
      return canon_.List(items);
    }
    if (n.kind != Kind::kMap) return Node();
    return typed_ && slot.IsMessage() ? BuildMessage(n, slot) : BuildMap(n, slot);
  }

 private:
  Node FromBase(const Node& base, bool clean, const Slot& slot) {
    return clean || !typed_ ? base : canon_.Canonical(base, slot);
  }

  Node Child(const MutNode& parent, const MutMember& m, const Slot& slot) {
    return m.node != nullptr ? Build(*m.node, slot) : FromBase(*m.base, parent.clean, slot);
  }

  static Member Named(const MutMember& m) {
    Member out;
    out.key = m.key.data();
    out.key_size = static_cast<uint32_t>(m.key.size());
    out.fixed = m.fixed;
    return out;
  }

  Node BuildMessage(const MutNode& n, const Slot& slot) {
    std::vector<Entry> entries;
    entries.reserve(n.members.size());
    int hint = 0;
    for (const MutMember& m : n.members) {
      if (!Exists(m)) continue;
      Entry& e = entries.emplace_back();
      e.field = IndexOfField(*slot.message, m.key, hint);
      if (e.field >= 0) hint = e.field + 1;
      Slot child{.custom = slot.custom};
      if (e.field >= 0) {
        child = Slot::Of(slot.message->fields[static_cast<size_t>(e.field)], slot);
      }
      e.member = Named(m);
      e.member.value = Child(n, m, child);
    }
    return canon_.Assemble(entries, slot);
  }

  Node BuildMap(const MutNode& n, const Slot& slot) {
    bool map = slot.shape == Shape::kMap;
    Slot element = map ? slot.Element() : Slot{.custom = slot.custom};
    std::vector<Member> members;
    members.reserve(n.members.size());
    for (const MutMember& m : n.members) {
      if (!Exists(m)) continue;
      Member& out = members.emplace_back(Named(m));
      out.value = Child(n, m, element);
      if (typed_) out.value = canon_.Element(out.value, element);
    }
    return typed_ && (map || slot.custom) ? canon_.SortedMap(members) : canon_.Map(members);
  }

  Canonicalizer canon_;
  bool typed_;
};

}  // namespace

Kind Mut::kind() const { return node_ != nullptr ? node_->kind : Kind::kAbsent; }

std::string_view Mut::AsString(std::string_view otherwise) const {
  return Untouched(node_).AsString(otherwise);
}

int64_t Mut::AsInt(int64_t otherwise) const { return Untouched(node_).AsInt(otherwise); }

bool Mut::AsBool(bool otherwise) const { return Untouched(node_).AsBool(otherwise); }

Mut Mut::operator[](std::string_view key) const {
  CHECK(node_ != nullptr);
  return {core_, core_->Child(node_, key)};
}

Mut Mut::Path(std::string_view dotted) const {
  Mut at = *this;
  while (true) {
    size_t dot = dotted.find('.');
    at = at[dotted.substr(0, dot)];
    if (dot == std::string_view::npos) return at;
    dotted.remove_prefix(dot + 1);
  }
}

bool Mut::Has(std::string_view key) const {
  if (kind() != Kind::kMap) return false;
  if (node_->base != nullptr) return Untouched(node_).Has(key);
  return std::ranges::any_of(node_->members,
                             [&](const MutMember& m) { return m.key == key && Exists(m); });
}

size_t Mut::size() const {
  if (kind() != Kind::kMap && kind() != Kind::kList) return 0;
  if (node_->base != nullptr) return Untouched(node_).size();
  if (kind() == Kind::kList) return node_->items.size();
  return static_cast<size_t>(std::ranges::count_if(node_->members, Exists));
}

Mut Mut::at(size_t i) const {
  CHECK(kind() == Kind::kList && i < size());
  core_->Expand(node_);
  return {core_, node_->items[i]};
}

Mut Mut::Append() const { return Insert(kind() == Kind::kList ? size() : 0); }

Mut Mut::Insert(size_t i) const {
  SetList();
  CHECK(i <= node_->items.size());
  MutNode* item = core_->Make(node_, nullptr, false);
  item->item = true;
  node_->items.insert(node_->items.begin() + static_cast<std::ptrdiff_t>(i), item);
  return {core_, item};
}

std::vector<std::string> Mut::Keys() const {
  std::vector<std::string> keys;
  if (kind() != Kind::kMap) return keys;
  if (node_->base != nullptr) {
    for (MemberView m : Untouched(node_).members()) keys.emplace_back(m.key);
    return keys;
  }
  for (const MutMember& m : node_->members) {
    if (Exists(m)) keys.emplace_back(m.key);
  }
  return keys;
}

Value Mut::Snapshot() const {
  if (node_ == nullptr || node_->kind == Kind::kAbsent) return {};
  if (node_->base != nullptr) return Value(node_->base);
  Arena scratch;
  Node built = Builder(scratch, false).Build(*node_, Slot());
  Object copy = FinishCompact(built, nullptr);
  core_->Keep(copy);
  return copy.root();
}

void Mut::SetNull() const {
  Node n;
  n.kind = Kind::kNull;
  core_->SetNode(node_, n);
}

void Mut::SetBool(bool v) const {
  Node n;
  n.kind = Kind::kBool;
  n.boolean = v;
  core_->SetNode(node_, n);
}

void Mut::SetInt(int64_t v) const {
  Node n;
  n.kind = Kind::kInt;
  n.integer = v;
  core_->SetNode(node_, n);
}

void Mut::SetDouble(double v) const {
  Node n;
  n.kind = Kind::kDouble;
  n.number = v;
  core_->SetNode(node_, n);
}

void Mut::SetString(std::string_view v) const {
  CHECK(v.size() <= UINT32_MAX);
  core_->SetNode(node_, Canonicalizer::View(core_->Copy(v)));
}

void Mut::SetMap() const {
  if (kind() == Kind::kMap) return;
  core_->Reset(node_, Kind::kMap);
  core_->Root(node_);
}

void Mut::SetList() const {
  if (kind() == Kind::kList) {
    core_->Expand(node_);
    return;
  }
  core_->Reset(node_, Kind::kList);
  core_->Root(node_);
}

void Mut::Set(Value v) const {
  if (!v.IsAbsent()) return core_->SetNode(node_, *v.node());
  core_->Reset(node_, Kind::kAbsent);
}

void Mut::Set(const Object& v) const {
  core_->Keep(v);
  Set(v.root());
}

void Mut::Erase(std::string_view key) const {
  if (!Has(key)) return;
  core_->Expand(node_);
  std::erase_if(node_->members, [&](const MutMember& m) { return m.key == key; });
}

void Mut::EraseAt(size_t i) const {
  CHECK(kind() == Kind::kList && i < size());
  core_->Expand(node_);
  node_->items.erase(node_->items.begin() + static_cast<std::ptrdiff_t>(i));
}

Editor::Editor() : Editor(Object()) {}

Editor::Editor(Object base) : core_(std::make_unique<Mut::Core>()) {
  if (base) core_->clean_for = base.document()->canonical_for();
  core_->root = core_->Make(nullptr, base.root().node(), core_->clean_for != nullptr);
  if (base) core_->Keep(std::move(base));
}

Editor::Editor(Editor&&) noexcept = default;
Editor::~Editor() = default;

Mut Editor::Root() const { return {core_.get(), core_->root}; }

void Editor::Keep(Object source) { core_->Keep(std::move(source)); }

Object Editor::Finish(const Message* schema) && {
  std::unique_ptr<Mut::Core> core = std::move(core_);
  Arena scratch;
  if (schema == nullptr || schema == core->clean_for) {
    Node root = Builder(scratch, schema != nullptr)
                    .Build(*core->root, schema != nullptr ? Slot::Root(*schema) : Slot());
    return FinishCompact(root, schema);
  }
  // Nothing is known to be canonical for this message.
  Node plain = Builder(scratch, false).Build(*core->root, Slot());
  Node root = Canonicalizer(scratch).Canonical(plain, Slot::Root(*schema));
  return FinishCompact(root, schema->custom ? nullptr : schema);
}

}  // namespace sextant::api
