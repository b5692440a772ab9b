#include "api/document.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>

#include "base/check.h"

namespace sextant::api {
namespace {

constexpr size_t kFirstChunk = 1024;
constexpr size_t kMaxChunk = 1 << 20;

size_t Align8(size_t n) { return (n + 7) & ~size_t{7}; }

// Bytes of a compact copy: members and items first (aligned), texts packed behind them.
struct Sizes {
  size_t nodes = 0;
  size_t text = 0;
};

void Measure(const Node& n, Sizes& sizes) {
  switch (n.kind) {
    case Kind::kString:
      if (!n.fixed) sizes.text += n.size;
      break;
    case Kind::kList:
      sizes.nodes += n.size * sizeof(Node);
      for (uint32_t i = 0; i < n.size; ++i) Measure(n.items[i], sizes);
      break;
    case Kind::kMap:
      sizes.nodes += n.size * sizeof(Member);
      for (uint32_t i = 0; i < n.size; ++i) {
        if (!n.members[i].fixed) sizes.text += n.members[i].key_size;
        Measure(n.members[i].value, sizes);
      }
      break;
    default:
      break;
  }
}

class Copier {
 public:
  Copier(char* nodes, char* text) : nodes_(nodes), text_(text) {}

  Node Copy(const Node& n) {
    Node out = n;
    switch (n.kind) {
      case Kind::kString:
        if (!n.fixed) out.text = CopyText(n.text, n.size);
        break;
      case Kind::kList: {
        Node* items = Take<Node>(n.size);
        for (uint32_t i = 0; i < n.size; ++i) items[i] = Copy(n.items[i]);
        out.items = items;
        break;
      }
      case Kind::kMap: {
        Member* members = Take<Member>(n.size);
        for (uint32_t i = 0; i < n.size; ++i) {
          const Member& from = n.members[i];
          Member m = from;
          if (!from.fixed) m.key = CopyText(from.key, from.key_size);
          m.value = Copy(from.value);
          members[i] = m;
        }
        out.members = members;
        break;
      }
      default:
        break;
    }
    return out;
  }

 private:
  template <typename T>
  T* Take(uint32_t n) {
    char* at = nodes_;
    nodes_ += n * sizeof(T);
    return reinterpret_cast<T*>(at);
  }
  const char* CopyText(const char* from, uint32_t n) {
    char* at = text_;
    if (n != 0) std::memcpy(at, from, n);
    text_ += n;
    return at;
  }

  char* nodes_;
  char* text_;
};

bool EqualMaps(Value a, Value b) {
  if (a.size() != b.size()) return false;
  const Node& x = *a.node();
  const Node& y = *b.node();
  bool same_order = x.sorted && y.sorted;
  std::optional<MemberIndex> index;
  for (uint32_t i = 0; i < x.size; ++i) {
    const Member& m = x.members[i];
    // Usually both stand in the same order.
    if (y.members[i].name() == m.name()) {
      if (!Equal(Value(&m.value), Value(&y.members[i].value))) return false;
      continue;
    }
    if (same_order) return false;
    if (!index) index.emplace(b);
    Value found = index->Find(m.name());
    if (found.IsAbsent() || !Equal(Value(&m.value), found)) return false;
  }
  return true;
}

const Member* BinaryFind(const Node& map, std::string_view key) {
  const Member* end = map.members + map.size;
  const Member* at = std::lower_bound(
      map.members, end, key, [](const Member& m, std::string_view k) { return m.name() < k; });
  return at != end && at->name() == key ? at : nullptr;
}

// Below this, looking through is faster.
constexpr uint32_t kSmallMap = 16;

}  // namespace

bool Value::AsBool(bool otherwise) const {
  return kind() == Kind::kBool ? node_->boolean : otherwise;
}

int64_t Value::AsInt(int64_t otherwise) const {
  if (kind() == Kind::kInt) return node_->integer;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (kind() == Kind::kDouble && node_->number >= -kLimit && node_->number < kLimit &&
      std::trunc(node_->number) == node_->number) {
    return static_cast<int64_t>(node_->number);
  }
  return otherwise;
}

double Value::AsDouble(double otherwise) const {
  if (kind() == Kind::kDouble) return node_->number;
  if (kind() == Kind::kInt) return static_cast<double>(node_->integer);
  return otherwise;
}

std::string_view Value::AsString(std::string_view otherwise) const {
  return kind() == Kind::kString ? std::string_view(node_->text, node_->size) : otherwise;
}

Value Value::operator[](std::string_view key) const {
  if (kind() != Kind::kMap) return {};
  if (node_->sorted && node_->size > kSmallMap) {
    const Member* found = BinaryFind(*node_, key);
    return found != nullptr ? Value(&found->value) : Value();
  }
  const Member* m = node_->members;
  for (const Member* end = m + node_->size; m != end; ++m) {
    if (m->key_size == key.size() && std::memcmp(m->key, key.data(), key.size()) == 0) {
      return Value(&m->value);
    }
  }
  return {};
}

Value Value::Path(std::string_view dotted) const {
  Value at = *this;
  while (true) {
    size_t dot = dotted.find('.');
    at = at[dotted.substr(0, dot)];
    if (dot == std::string_view::npos) return at;
    dotted.remove_prefix(dot + 1);
  }
}

size_t Value::size() const {
  return kind() == Kind::kMap || kind() == Kind::kList ? node_->size : 0;
}

Value Value::at(size_t i) const {
  return kind() == Kind::kList && i < node_->size ? Value(node_->items + i) : Value();
}

ItemRange Value::items() const {
  return kind() == Kind::kList ? ItemRange(node_->items, node_->size) : ItemRange(nullptr, 0);
}

MemberRange Value::members() const {
  return kind() == Kind::kMap ? MemberRange(node_->members, node_->size) : MemberRange(nullptr, 0);
}

bool KeysAscend(std::span<const Member> members) {
  for (size_t i = 1; i < members.size(); ++i) {
    if (!(members[i - 1].name() < members[i].name())) return false;
  }
  return true;
}

MemberIndex::MemberIndex(Value map) : map_(map) {
  if (!map.IsMap() || map.node()->sorted || map.size() <= kSmallMap) return;
  const Node& n = *map.node();
  order_.reserve(n.size);
  for (uint32_t i = 0; i < n.size; ++i) order_.push_back(n.members + i);
  std::ranges::sort(order_, {}, &Member::name);
}

Value MemberIndex::Find(std::string_view key) const {
  if (order_.empty()) return map_[key];
  auto at = std::ranges::lower_bound(order_, key, {}, &Member::name);
  return at != order_.end() && (*at)->name() == key ? Value(&(*at)->value) : Value();
}

bool Equal(Value a, Value b) {
  if (a.node() == b.node()) return true;
  if (a.kind() != b.kind()) {
    bool numbers = (a.kind() == Kind::kInt && b.kind() == Kind::kDouble) ||
                   (a.kind() == Kind::kDouble && b.kind() == Kind::kInt);
    return numbers && a.AsDouble() == b.AsDouble();
  }
  switch (a.kind()) {
    case Kind::kAbsent:
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.AsBool() == b.AsBool();
    case Kind::kInt:
      return a.AsInt() == b.AsInt();
    case Kind::kDouble:
      return a.AsDouble() == b.AsDouble();
    case Kind::kString:
      return a.AsString() == b.AsString();
    case Kind::kList:
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!Equal(a.at(i), b.at(i))) return false;
      }
      return true;
    case Kind::kMap:
      return EqualMaps(a, b);
  }
  return false;
}

struct Arena::Chunk {
  Chunk* next;
  size_t size;  // of the memory behind the header
};

Arena::~Arena() {
  while (chunks_ != nullptr) ::operator delete(std::exchange(chunks_, chunks_->next));
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(chunks_, other.chunks_);
  std::swap(at_, other.at_);
  std::swap(left_, other.left_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Arena::AddChunk(size_t size) {
  Chunk* chunk = static_cast<Chunk*>(::operator new(sizeof(Chunk) + size));
  chunk->next = std::exchange(chunks_, chunk);
  chunk->size = size;
  at_ = reinterpret_cast<char*>(chunk + 1);
  left_ = size;
  bytes_ += sizeof(Chunk) + size;
}

void* Arena::Allocate(size_t bytes) {
  bytes = Align8(bytes);
  if (bytes > left_) AddChunk(std::max(bytes, std::clamp(bytes_, kFirstChunk, kMaxChunk)));
  char* at = at_;
  at_ += bytes;
  left_ -= bytes;
  return at;
}

std::string_view Arena::Copy(std::string_view text) {
  if (text.empty()) return {};
  char* at = static_cast<char*>(Allocate(text.size()));
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

void Arena::Reserve(size_t bytes) {
  bytes = Align8(bytes);
  if (bytes > left_) AddChunk(bytes);
}

void Arena::Clear() {
  Chunk* keep = nullptr;  // the largest that is not too large
  while (chunks_ != nullptr) {
    Chunk* c = std::exchange(chunks_, chunks_->next);
    if (c->size <= kMaxChunk && (keep == nullptr || c->size > keep->size)) std::swap(c, keep);
    ::operator delete(c);
  }
  at_ = nullptr;
  left_ = bytes_ = 0;
  if (keep == nullptr) return;
  keep->next = nullptr;
  chunks_ = keep;
  at_ = reinterpret_cast<char*>(keep + 1);
  left_ = keep->size;
  bytes_ = sizeof(Chunk) + keep->size;
}

size_t CompactSize(Value v) {
  if (v.IsAbsent()) return 0;
  Sizes sizes;
  Measure(*v.node(), sizes);
  return sizes.nodes + sizes.text;
}

Object CopyOf(Value v) {
  Node root;
  if (!v.IsAbsent()) root = *v.node();
  return FinishCompact(root, nullptr);
}

Object FinishCompact(const Node& root, const Message* canonical_for) {
  Sizes sizes;
  Measure(root, sizes);
  Arena arena;
  Node copy = root;
  if (size_t bytes = sizes.nodes + sizes.text; bytes != 0) {
    arena.Reserve(bytes);
    char* at = static_cast<char*>(arena.Allocate(bytes));
    copy = Copier(at, at + sizes.nodes).Copy(root);
  }
  return Object(std::make_shared<const Document>(std::move(arena), copy, canonical_for));
}

}  // namespace sextant::api
