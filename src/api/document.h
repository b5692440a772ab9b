// Documents: the form in which every API object lives in memory (DESIGN, law 6).
//
// A Document is one immutable tree in one arena with one reference count. `Object` is the handle
// that everybody passes around; `Value` is a view of one node, as cheap as a pointer, valid while
// an Object of its document lives.
//
//   Object pod = ...;
//   std::string_view node = pod["spec"]["nodeName"].AsString();   // "" if absent
//   for (Value c : pod["spec"]["containers"].items()) Use(c["name"].AsString());
//
// Changing means building another document:
//
//   Editor edit(pod);                                  // copy on write, per path
//   edit.Root()["spec"].Set("nodeName", "worker");
//   Object bound = std::move(edit).Finish();
//
// The tree is exactly the JSON that the API serves: fields stand in the schema's order (maps sorted
// by key), fields that JSON omits are absent, fields that JSON always carries are present. The
// codecs (json.h, protobuf.h) see to that when they read, so that writing is a plain walk.
//
// Threads: documents are immutable and counted atomically: share them freely. An Editor belongs to
// one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant::api {

enum class Kind : uint8_t { kAbsent, kNull, kBool, kInt, kDouble, kString, kList, kMap };

struct Member;

// One node, 16 bytes. Strings, members and items point into the document's arena, or, where `fixed`
// says so, into memory that outlives every document (the built-in schema tables).
struct Node {
  Kind kind = Kind::kAbsent;
  bool fixed = false;   // `text` is not part of the arena: copies share it
  bool sorted = false;  // of a map: the keys stand in ascending order, none twice
  uint32_t size = 0;    // bytes of a string, count of members or items
  union {
    bool boolean;
    int64_t integer;
    double number;
    const char* text;
    const Node* items;
    const Member* members;
  };
  constexpr Node() : integer(0) {}
};

struct Member {
  const char* key = nullptr;
  uint32_t key_size = 0;
  bool fixed = false;  // as in Node, for `key`
  Node value;
  std::string_view name() const { return {key, key_size}; }
};

// Whether keys ascend: what Node::sorted says.
bool KeysAscend(std::span<const Member> members);

class MemberRange;
class ItemRange;

// A view of one node. A default-made Value is absent; asking an absent or differently typed value
// gives the zero value, so that optional fields read without ceremony. Use kind() where it matters.
class Value {
 public:
  Value() = default;
  explicit Value(const Node* node) : node_(node) {}

  Kind kind() const { return node_ ? node_->kind : Kind::kAbsent; }
  bool IsAbsent() const { return kind() == Kind::kAbsent; }
  bool IsNull() const { return kind() == Kind::kNull; }
  bool IsMap() const { return kind() == Kind::kMap; }
  bool IsList() const { return kind() == Kind::kList; }
  bool IsString() const { return kind() == Kind::kString; }
  bool IsInt() const { return kind() == Kind::kInt; }
  bool IsNumber() const { return kind() == Kind::kInt || kind() == Kind::kDouble; }
  explicit operator bool() const { return !IsAbsent() && !IsNull(); }

  bool AsBool(bool otherwise = false) const;
  int64_t AsInt(int64_t otherwise = 0) const;  // a double with an integral value counts
  double AsDouble(double otherwise = 0) const;
  std::string_view AsString(std::string_view otherwise = {}) const;

  // Members of a map, in order; no members for other kinds.
  Value operator[](std::string_view key) const;
  Value operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  // Follows "spec.template.metadata" (keys without dots in them).
  Value Path(std::string_view dotted) const;
  bool Has(std::string_view key) const { return !(*this)[key].IsAbsent(); }
  size_t size() const;  // members or items; 0 for other kinds
  bool empty() const { return size() == 0; }
  Value at(size_t i) const;  // item i of a list; absent past the end
  ItemRange items() const;
  MemberRange members() const;

  const Node* node() const { return node_; }

 private:
  const Node* node_ = nullptr;
};

// Deep equality of what JSON would say; 1 and 1.0 are equal, order of members does not matter.
bool Equal(Value a, Value b);

class ItemRange {
 public:
  class Iterator {
   public:
    explicit Iterator(const Node* at) : at_(at) {}
    Value operator*() const { return Value(at_); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator&) const = default;

   private:
    const Node* at_;
  };
  ItemRange(const Node* first, size_t n) : first_(first), n_(n) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(first_ + n_); }

 private:
  const Node* first_;
  size_t n_;
};

struct MemberView {
  std::string_view key;
  Value value;
};

// Finds members of a map of any size and order quickly, for who looks at many.
class MemberIndex {
 public:
  explicit MemberIndex(Value map);
  Value Find(std::string_view key) const;

 private:
  Value map_;
  std::vector<const Member*> order_;  // by key; empty where the map itself serves
};

class MemberRange {
 public:
  class Iterator {
   public:
    explicit Iterator(const Member* at) : at_(at) {}
    MemberView operator*() const { return {at_->name(), Value(&at_->value)}; }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator&) const = default;

   private:
    const Member* at_;
  };
  MemberRange(const Member* first, size_t n) : first_(first), n_(n) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(first_ + n_); }

 private:
  const Member* first_;
  size_t n_;
};

// Bump allocator: chunks that grow, freed together.
class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();
  void* Allocate(size_t bytes);  // aligned to 8
  std::string_view Copy(std::string_view text);
  void Reserve(size_t bytes);              // one chunk will hold what comes, up to `bytes`
  void Clear();                            // forgets everything, keeps a chunk for reuse
  size_t bytes() const { return bytes_; }  // allocated from the system

 private:
  struct Chunk;  // its header; the memory follows
  void AddChunk(size_t size);
  Chunk* chunks_ = nullptr;
  char* at_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

struct Message;

// What an Object counts. `canonical_for` is the built-in message by whose rules the tree was put
// into canonical form (canonical.h), nullptr if none: editing need not look at its untouched parts.
class Document {
 public:
  Document(Arena arena, Node root, const Message* canonical_for)
      : arena_(std::move(arena)), root_(root), canonical_for_(canonical_for) {}
  const Node& root() const { return root_; }
  size_t bytes() const { return sizeof(*this) + arena_.bytes(); }
  const Message* canonical_for() const { return canonical_for_; }

 private:
  Arena arena_;
  Node root_;
  const Message* canonical_for_;
};

// The counted handle of a document: what the store keeps and everybody passes on. Empty when
// default-made. Copying costs one atomic increment.
class Object {
 public:
  Object() = default;
  explicit Object(std::shared_ptr<const Document> doc) : doc_(std::move(doc)) {}

  explicit operator bool() const { return doc_ != nullptr; }
  Value root() const { return doc_ ? Value(&doc_->root()) : Value(); }
  Value operator[](std::string_view key) const { return root()[key]; }
  Value operator[](const char* key) const { return root()[std::string_view(key)]; }
  Value Path(std::string_view dotted) const { return root().Path(dotted); }
  size_t bytes() const { return doc_ ? doc_->bytes() : 0; }  // memory held

  // What every object has.
  std::string_view api_version() const { return (*this)["apiVersion"].AsString(); }
  std::string_view kind() const { return (*this)["kind"].AsString(); }
  std::string_view name() const { return (*this)["metadata"]["name"].AsString(); }
  std::string_view ns() const { return (*this)["metadata"]["namespace"].AsString(); }
  std::string_view uid() const { return (*this)["metadata"]["uid"].AsString(); }
  std::string_view resource_version() const {
    return (*this)["metadata"]["resourceVersion"].AsString();
  }

  const std::shared_ptr<const Document>& document() const { return doc_; }
  bool SameAs(const Object& other) const { return doc_ == other.doc_; }  // the same document

 private:
  std::shared_ptr<const Document> doc_;
};

// A node that can be changed, inside an Editor. Reading falls through to the original document
// until a path is written. Handles stay valid while the Editor lives, except that erasing or
// overwriting a member or item ends the handles below it.
struct MutNode;
class Mut {
 public:
  Mut() = default;

  Kind kind() const;
  explicit operator bool() const { return kind() != Kind::kAbsent && kind() != Kind::kNull; }
  std::string_view AsString(std::string_view otherwise = {}) const;
  int64_t AsInt(int64_t otherwise = 0) const;
  bool AsBool(bool otherwise = false) const;

  // The member `key`, made as absent if there is none: setting it or something below it makes the
  // maps on the way.
  Mut operator[](std::string_view key) const;
  Mut operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  Mut Path(std::string_view dotted) const;
  bool Has(std::string_view key) const;
  size_t size() const;
  Mut at(size_t i) const;  // item i of a list; CHECKs i < size()
  Mut Append() const;      // a new absent item at the end (makes the list)
  Mut Insert(size_t i) const;
  std::vector<std::string> Keys() const;  // of a map, in order
  Value Snapshot() const;                 // as it stands now; valid while the Editor lives

  void SetNull() const;
  void SetBool(bool v) const;
  void SetInt(int64_t v) const;
  void SetDouble(double v) const;
  void SetString(std::string_view v) const;  // copied
  void SetMap() const;                       // {} (replaces what was there unless it is a map)
  void SetList() const;
  void Set(Value v) const;  // shares: the source must be kept by the Editor (see Editor::Keep)
  void Set(const Object& v) const;  // keeps the object's document alive by itself
  void Set(std::string_view key, std::string_view v) const { (*this)[key].SetString(v); }
  void Set(std::string_view key, const char* v) const { (*this)[key].SetString(v); }
  void Set(std::string_view key, int64_t v) const { (*this)[key].SetInt(v); }
  void Set(std::string_view key, int v) const { (*this)[key].SetInt(v); }
  void Set(std::string_view key, bool v) const { (*this)[key].SetBool(v); }
  void Set(std::string_view key, Value v) const { (*this)[key].Set(v); }
  void Erase(std::string_view key) const;  // nothing if there is none
  void EraseAt(size_t i) const;

 private:
  friend class Editor;
  class Core;
  Mut(Core* core, MutNode* node) : core_(core), node_(node) {}
  Core* core_ = nullptr;
  MutNode* node_ = nullptr;
};

// Builds a new document, from nothing or from another one. Values set from other documents are
// shared while editing; Finish copies everything into one compact arena (about 1 us per KB), so a
// finished document never keeps others alive.
class Editor {
 public:
  Editor();
  explicit Editor(Object base);
  Editor(Editor&&) noexcept;
  ~Editor();

  Mut Root() const;
  Mut operator[](std::string_view key) const { return Root()[key]; }
  void Keep(Object source);  // for Set(Value) from other documents

  // The finished document. With a schema the members are put into its order and made canonical
  // (see the top of this file); without one they stay as they were set. The Editor is empty then.
  // Custom (run-time) messages may go before the document does: its names are copied.
  Object Finish(const Message* schema = nullptr) &&;

 private:
  std::unique_ptr<Mut::Core> core_;
};

// A compact document with the subtree `v` as its root.
Object CopyOf(Value v);

// The same from a node of a codec's scratch tree; canonical_for as in Document.
Object FinishCompact(const Node& root, const Message* canonical_for);

// Bytes that a compact document of `v` takes.
size_t CompactSize(Value v);

}  // namespace sextant::api
