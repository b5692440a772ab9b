// Canonical form: the tree that Kubernetes would print after it has stored an object (decoded into
// Go's structs, written as protobuf, read back, encoded as JSON).
//
//   Canonicalizer canon(arena);
//   Node tree = canon.Canonical(node, Slot::Root(*message));
//
// The rules, from encoding/json and gogo's protobuf:
//   - members of a message stand in the schema's order, members of a map by key;
//   - plain values with omitempty are absent when zero, fields without it always present;
//   - lists and maps without omitempty that are empty are null (protobuf cannot tell them apart);
//     `items` of list kinds stay [], because the API server makes them so;
//   - quantities, times and durations are written in their one form.
// Fields that the message does not know are dropped, unless it preserves them. Values of a wrong
// type stay as they are: refusing is the decoder's business.
//
// Shared by the codecs and Editor::Finish. One thread; results live as long as the arena and what
// went in.
#pragma once

#include <span>
#include <vector>

#include "api/document.h"
#include "api/schema.h"

namespace sextant::api {

// What the schema says about the place of one value.
struct Slot {
  const Message* message = nullptr;  // kind of the value, or of its elements
  const Field* field = nullptr;      // nullptr at the root and where nothing is known
  Shape shape = Shape::kSingle;
  bool custom = false;  // inside a custom resource
  bool sorted = false;  // inside a custom resource's metadata: of a built-in type, sorted by name

  static Slot Root(const Message& m) { return {&m, nullptr, Shape::kSingle, m.custom}; }
  static Slot Of(const Field& f, const Slot& parent) {
    const Message* m = f.type == Type::kMessage ? f.message : nullptr;
    const bool custom = m != nullptr ? m->custom : parent.custom;
    return {m, &f, f.shape, custom, !custom && (parent.sorted || parent.custom)};
  }
  Slot Element() const { return {message, field, Shape::kSingle, custom, sorted}; }
  bool IsMessage() const { return message != nullptr && shape == Shape::kSingle; }
  bool Unknown() const { return message == nullptr && field == nullptr; }
};

// Index in message.fields of the field with this JSON name, -1 if none; looks from `hint` on first
// (members usually come in order).
int IndexOfField(const Message& message, std::string_view name, int hint);

// One decoded member of a message.
struct Entry {
  int field = -1;  // index in Message::fields, -1: unknown (name counts)
  Member member;
};

class Canonicalizer {
 public:
  explicit Canonicalizer(Arena& arena) : arena_(arena) {}

  Node Canonical(const Node& node, const Slot& slot);
  // From members whose values are canonical already, in any order; of several with one field the
  // last counts.
  Node Assemble(std::span<const Entry> entries, const Slot& slot);
  // A map with string keys: sorted, of equal keys the last counts.
  Node SortedMap(std::span<const Member> members);
  // Items or map values: null becomes the zero of the element type.
  Node Element(Node node, const Slot& slot);
  // A value that is neither list, map nor message.
  Node Scalar(const Node& node, const Field& field);
  // What a kAlways field shows when it was not given.
  Node Zero(const Field& field, bool custom);
  Arena& arena() { return arena_; }

  Node Text(std::string_view text);         // copied
  static Node View(std::string_view text);  // not copied
  Node List(std::span<const Node> items);
  Node Map(std::span<const Member> members);  // order kept

 private:
  bool Keep(const Field& field, const Message& parent, bool custom, Node& value);

  Arena& arena_;
};

}  // namespace sextant::api
