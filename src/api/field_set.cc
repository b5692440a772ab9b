#include "api/field_set.h"

#include <algorithm>
#include <charconv>

#include "api/canonical.h"
#include "api/json.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

int Sign(bool less, bool more) { return less ? -1 : more ? 1 : 0; }

// The order of kinds in a set: numbers, texts, booleans, the rest.
int Rank(Kind kind) {
  switch (kind) {
    case Kind::kInt:
    case Kind::kDouble:
      return 0;
    case Kind::kString:
      return 1;
    case Kind::kBool:
      return 2;
    default:
      return 3;
  }
}

double AsNumber(const PathScalar& s) {
  return s.kind == Kind::kInt ? static_cast<double>(s.integer) : s.number;
}

void AppendJson(const PathScalar& s, std::string& out) {
  switch (s.kind) {
    case Kind::kString:
      return WriteJsonString(s.text, out);
    case Kind::kBool:
      out += s.boolean ? "true" : "false";
      return;
    case Kind::kInt:
      out += std::to_string(s.integer);
      return;
    case Kind::kDouble: {
      Node n;
      n.kind = Kind::kDouble;
      n.number = s.number;
      return WriteJson(Value(&n), out);
    }
    default:
      out += "null";
  }
}

// The element that a key of fieldsV1 stands for; false if we do not know it.
bool ParseElement(std::string_view text, PathElement& out) {
  if (text.size() < 2 || text[1] != ':') return false;
  out.text = text;
  std::string_view content = text.substr(2);
  switch (text[0]) {
    case 'f':
      out.type = PathElement::Type::kField;
      return true;
    case 'i': {
      PathScalar index;
      index.kind = Kind::kInt;
      const char* end = content.data() + content.size();
      auto [ptr, ec] = std::from_chars(content.data(), end, index.integer);
      if (ec != std::errc() || ptr != end) return false;
      out.type = PathElement::Type::kIndex;
      out.scalars.push_back(std::move(index));
      return true;
    }
    case 'v': {
      auto doc = ParseJson(content);
      if (!doc) return false;
      out = PathElement::SetItem(doc->root());
      return true;
    }
    case 'k': {
      auto doc = ParseJson(content);
      if (!doc || !doc->root().IsMap()) return false;
      std::vector<PathScalar> keys;
      for (MemberView m : doc->root().members()) keys.push_back(PathScalar::Of(m.key, m.value));
      out = PathElement::Key(std::move(keys));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

PathScalar PathScalar::Of(std::string_view name, Value v) {
  PathScalar s;
  s.name = name;
  s.kind = v.kind();
  s.boolean = v.AsBool();
  s.integer = v.AsInt();
  s.number = v.AsDouble();
  s.text = v.AsString();
  return s;
}

int PathScalar::Compare(const PathScalar& o) const {
  if (int by_name = name.compare(o.name); by_name != 0) return by_name;
  int rank = Rank(kind), other = Rank(o.kind);
  if (rank != other) return Sign(rank < other, true);
  if (rank == 0 && kind == Kind::kInt && o.kind == Kind::kInt) {
    return Sign(integer<o.integer, integer> o.integer);
  }
  if (rank == 0) return Sign(AsNumber(*this) < AsNumber(o), AsNumber(*this) > AsNumber(o));
  if (rank == 1) return text.compare(o.text);
  return rank == 2 ? Sign(boolean<o.boolean, boolean> o.boolean) : 0;
}

std::string PathScalar::ToString() const {
  if (kind == Kind::kString) return Quote(text);
  std::string out;
  AppendJson(*this, out);
  return out;
}

PathElement PathElement::Field(std::string_view name) {
  PathElement e;
  e.text = "f:" + std::string(name);
  return e;
}

PathElement PathElement::Key(std::vector<PathScalar> keys) {
  std::ranges::sort(keys, {}, &PathScalar::name);
  PathElement e;
  e.type = Type::kKey;
  e.text = "k:{";
  for (const PathScalar& k : keys) {
    if (e.text.size() > 3) e.text += ',';
    WriteJsonString(k.name, e.text);
    e.text += ':';
    AppendJson(k, e.text);
  }
  e.text += '}';
  e.scalars = std::move(keys);
  return e;
}

PathElement PathElement::SetItem(Value v) {
  PathElement e;
  e.type = Type::kValue;
  e.scalars.push_back(PathScalar::Of("", v));
  e.text = "v:";
  AppendJson(e.scalars[0], e.text);
  return e;
}

int PathElement::Compare(const PathElement& o) const {
  if (type != o.type) return type < o.type ? -1 : 1;
  if (type == Type::kField) return text.compare(o.text);
  for (size_t i = 0; i < scalars.size() && i < o.scalars.size(); ++i) {
    if (int c = scalars[i].Compare(o.scalars[i]); c != 0) return c;
  }
  return Sign(scalars.size() < o.scalars.size(), scalars.size() > o.scalars.size());
}

std::string PathElement::ToString() const {
  switch (type) {
    case Type::kField:
      return "." + std::string(name());
    case Type::kValue:
      return "[=" + scalars[0].ToString() + "]";
    case Type::kIndex:
      return "[" + std::string(name()) + "]";
    case Type::kKey:
      break;
  }
  std::string out = "[";
  for (const PathScalar& s : scalars) {
    if (out.size() > 1) out += ',';
    out += s.name + "=" + s.ToString();
  }
  return out + "]";
}

std::string PathToString(const FieldPath& path) {
  std::string out;
  for (const PathElement& e : path) out += e.ToString();
  return out;
}

FieldSet FieldSet::FromJson(Value fields) {
  FieldSet set;
  set.entries_.reserve(fields.size());
  for (MemberView m : fields.members()) {
    PathElement element;
    if (m.key == "." || !ParseElement(m.key, element)) continue;
    FieldSet children = FromJson(m.value);
    // What has no children is a member; what has says so with ".".
    bool member = children.empty() || m.value.Has(".");
    bool in_order = set.entries_.empty() || set.entries_.back().element.Compare(element) < 0;
    Entry& e = in_order ? set.entries_.emplace_back() : set.At(element);
    e.element = std::move(element);
    e.member = e.member || member;
    e.children = std::move(children);
  }
  return set;
}

Node FieldSet::Build(Canonicalizer& build) const {
  std::vector<Member> members;
  members.reserve(entries_.size() + 1);
  for (const Entry& e : entries_) {
    Member& m = members.emplace_back();
    m.key = e.element.text.data();
    m.key_size = static_cast<uint32_t>(e.element.text.size());
    m.value = e.children.Build(build);
    if (!e.member || e.children.empty()) continue;
    std::vector<Member> with_self;
    Member& self = with_self.emplace_back();
    self.key = ".";
    self.key_size = 1;
    self.fixed = true;
    self.value = build.Map({});
    with_self.insert(with_self.end(), m.value.members, m.value.members + m.value.size);
    m.value = build.Map(with_self);
  }
  return build.Map(members);
}

Object FieldSet::ToJson() const {
  Arena arena;
  Canonicalizer build(arena);
  return FinishCompact(Build(build), nullptr);
}

bool FieldSet::Meets(Value fields) const {
  for (const Entry& e : entries_) {
    Value other = fields[e.element.text];
    if (!other.IsMap()) continue;
    bool member = other.empty() || other.Has(".");
    if ((e.member && member) || e.children.Meets(other)) return true;
  }
  return false;
}

FieldSet::Entry& FieldSet::At(const PathElement& element) {
  auto at = std::ranges::lower_bound(
      entries_, element,
      [](const PathElement& a, const PathElement& b) { return a.Compare(b) < 0; }, &Entry::element);
  if (at == entries_.end() || at->element.Compare(element) != 0) {
    at = entries_.emplace(at);
    at->element = element;
  }
  return *at;
}

const FieldSet::Entry* FieldSet::Find(const PathElement& element) const {
  auto at = std::ranges::lower_bound(
      entries_, element,
      [](const PathElement& a, const PathElement& b) { return a.Compare(b) < 0; }, &Entry::element);
  return at != entries_.end() && at->element.Compare(element) == 0 ? &*at : nullptr;
}

void FieldSet::Insert(std::span<const PathElement> path) {
  if (path.empty()) return;
  FieldSet* set = this;
  for (size_t i = 0; i + 1 < path.size(); ++i) set = &set->At(path[i]).children;
  set->At(path.back()).member = true;
}

bool FieldSet::Has(const PathElement& element) const {
  const Entry* e = Find(element);
  return e != nullptr && e->member;
}

const FieldSet* FieldSet::Below(const PathElement& element) const {
  const Entry* e = Find(element);
  return e != nullptr && !e->children.empty() ? &e->children : nullptr;
}

FieldSet FieldSet::Merge(const FieldSet& a, const FieldSet& b, Combine how) {
  FieldSet out;
  auto keep = [&](const PathElement& element, bool member, FieldSet children) {
    if (!member && children.empty()) return;
    out.entries_.push_back({element, member, std::move(children)});
  };
  size_t i = 0, j = 0;
  while (i < a.entries_.size() || j < b.entries_.size()) {
    const Entry* x = i < a.entries_.size() ? &a.entries_[i] : nullptr;
    const Entry* y = j < b.entries_.size() ? &b.entries_[j] : nullptr;
    int order = x == nullptr ? 1 : y == nullptr ? -1 : x->element.Compare(y->element);
    if (order < 0) {
      if (how != Combine::kIntersection) keep(x->element, x->member, x->children);
      ++i;
    } else if (order > 0) {
      if (how == Combine::kUnion) keep(y->element, y->member, y->children);
      ++j;
    } else {
      bool member = how == Combine::kUnion          ? x->member || y->member
                    : how == Combine::kIntersection ? x->member && y->member
                                                    : x->member && !y->member;
      bool all_below = how == Combine::kRecursive && y->member;
      FieldSet children = all_below ? FieldSet() : Merge(x->children, y->children, how);
      keep(x->element, member, std::move(children));
      ++i;
      ++j;
    }
  }
  return out;
}

FieldSet FieldSet::Union(const FieldSet& other) const {
  return Merge(*this, other, Combine::kUnion);
}
FieldSet FieldSet::Intersection(const FieldSet& other) const {
  return Merge(*this, other, Combine::kIntersection);
}
FieldSet FieldSet::Difference(const FieldSet& other) const {
  return Merge(*this, other, Combine::kDifference);
}
FieldSet FieldSet::RecursiveDifference(const FieldSet& other) const {
  return Merge(*this, other, Combine::kRecursive);
}

FieldSet FieldSet::WithNamedFields(const Message* message) const {
  FieldSet out = *this;
  for (Entry& e : out.entries_) {
    const sextant::api::Field* f = nullptr;
    if (e.element.type == PathElement::Type::kField && message != nullptr) {
      f = message->FindField(e.element.name());
    }
    if (f != nullptr && !e.children.empty()) e.member = true;
    // Items of a list and values of a map are of the field's message.
    const Message* below = f != nullptr ? f->message : nullptr;
    if (f != nullptr && f->shape != Shape::kSingle) {
      for (Entry& item : e.children.entries_) item.children = item.children.WithNamedFields(below);
    } else {
      e.children = e.children.WithNamedFields(below);
    }
  }
  return out;
}

void FieldSet::Visit(FieldPath& path, const std::function<void(const FieldPath&)>& visit) const {
  // Members before what lies below.
  for (const Entry& e : entries_) {
    if (!e.member) continue;
    path.push_back(e.element);
    visit(path);
    path.pop_back();
  }
  for (const Entry& e : entries_) {
    path.push_back(e.element);
    e.children.Visit(path, visit);
    path.pop_back();
  }
}

void FieldSet::ForEach(const std::function<void(const FieldPath&)>& visit) const {
  FieldPath path;
  Visit(path, visit);
}

bool FieldSet::operator==(const FieldSet& other) const {
  return std::ranges::equal(entries_, other.entries_, [](const Entry& a, const Entry& b) {
    return a.member == b.member && a.element.Compare(b.element) == 0 && a.children == b.children;
  });
}

}  // namespace sextant::api
