// The decoding half of protobuf.h.
#include <algorithm>
#include <cstring>

#include "api/canonical.h"
#include "api/protobuf.h"
#include "api/quantity.h"
#include "api/time_value.h"
#include "api/wire.h"
#include "base/base64.h"
#include "base/clock.h"

namespace sextant::api {
namespace {

constexpr int kMaxDepth = 200;  // messages within messages

Node Null() {
  Node n;
  n.kind = Kind::kNull;
  return n;
}

Node Integer(int64_t v) {
  Node n;
  n.kind = Kind::kInt;
  n.integer = v;
  return n;
}

class Decoder {
 public:
  explicit Decoder(Arena& arena) : canon_(arena) {}

  const std::string& error() const { return error_; }

  bool Top(std::string_view data, const Message& message, const TypeMeta& meta, Node& out) {
    if (message.top) {
      AddText(message, "kind", meta.kind);
      AddText(message, "apiVersion", meta.api_version);
    }
    if (!Fields(data, message, message)) return false;
    out = Group(0, Slot::Root(message));
    return true;
  }

 private:
  void AddText(const Message& message, std::string_view name, std::string_view text) {
    Entry e;
    e.field = IndexOfField(message, name, 0);
    e.member.value = canon_.Text(text);
    if (e.field >= 0) entries_.push_back(e);
  }

  // Reads the fields of `message` on the wire; they belong to `owner` (itself, or what inlines it).
  bool Fields(std::string_view data, const Message& message, const Message& owner) {
    if (++depth_ > kMaxDepth) return Bad("proto: nested too deep");
    WireReader in(data);
    while (!in.AtEnd()) {
      uint32_t number;
      Wire wire;
      uint64_t value = 0;
      std::string_view bytes;
      if (!in.Next(number, wire, value, bytes)) return Bad("unexpected EOF");
      const Field* f = message.FindNumber(number);
      if (f == nullptr) continue;
      if (!Check(*f, wire)) return false;
      if (f->inlined) {
        if (!Fields(bytes, *f->message, owner)) return false;
        continue;
      }
      Entry e;
      e.field = &message == &owner ? static_cast<int>(f - message.fields.data())
                                   : IndexOfField(owner, f->name, 0);
      if (e.field < 0) continue;
      bool packed = f->shape == Shape::kList && wire == Wire::kBytes && IsNumber(f->type);
      bool read = packed ? Packed(*f, bytes, e) : One(*f, value, bytes, e);
      if (!read) return false;
      if (!packed) entries_.push_back(e);
    }
    --depth_;
    return true;
  }

  static bool IsNumber(Type t) {
    return t == Type::kBool || t == Type::kInt32 || t == Type::kInt64 || t == Type::kUint32 ||
           t == Type::kDouble;
  }

  bool Check(const Field& f, Wire wire) {
    bool list = f.shape == Shape::kList && wire == Wire::kBytes;
    Wire want = f.shape == Shape::kMap    ? Wire::kBytes
                : !IsNumber(f.type)       ? Wire::kBytes
                : f.type == Type::kDouble ? Wire::kFixed64
                                          : Wire::kVarint;
    if (wire == want || list) return true;
    return Bad("proto: wrong wireType = " + std::to_string(static_cast<int>(wire)) + " for field " +
               std::string(f.go_name.empty() ? f.name : f.go_name));
  }

  bool Packed(const Field& f, std::string_view data, Entry e) {
    WireReader in(data);
    while (!in.AtEnd()) {
      uint64_t v;
      if (f.type == Type::kDouble || !in.Varint(v)) return Bad("unexpected EOF");
      if (!Single(f, v, {}, e.member.value)) return false;
      entries_.push_back(e);
    }
    return true;
  }

  // One occurrence of a field: a value, an item, or an entry of a map.
  bool One(const Field& f, uint64_t value, std::string_view bytes, Entry& e) {
    if (f.shape != Shape::kMap) return Single(f, value, bytes, e.member.value);
    WireReader in(bytes);
    std::string_view key;
    uint64_t number = 0;
    std::string_view content;
    while (!in.AtEnd()) {
      uint32_t field;
      Wire wire;
      uint64_t v = 0;
      std::string_view b;
      if (!in.Next(field, wire, v, b)) return Bad("unexpected EOF");
      if (field == 1) key = b;
      if (field == 2) {
        number = v;
        content = b;
      }
    }
    key = Clean(key);
    e.member.key = key.data();
    e.member.key_size = static_cast<uint32_t>(key.size());
    return Single(f, number, content, e.member.value);
  }

  // Text must be UTF-8 in JSON.
  std::string_view Clean(std::string_view text) {
    bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
    if (ascii) return text;
    std::string json;
    WriteJsonString(text, json);
    auto doc = ParseJson(json);
    return doc ? canon_.arena().Copy(doc->root().AsString()) : std::string_view();
  }

  bool Single(const Field& f, uint64_t v, std::string_view bytes, Node& out) {
    switch (f.type) {
      case Type::kBool:
        out.kind = Kind::kBool;
        out.boolean = v != 0;
        return true;
      case Type::kInt32:
        out = Integer(static_cast<int32_t>(v));
        return true;
      case Type::kUint32:
        out = Integer(static_cast<uint32_t>(v));
        return true;
      case Type::kInt64:
        out = Integer(static_cast<int64_t>(v));
        return true;
      case Type::kDouble:
        out.kind = Kind::kDouble;
        out.number = std::bit_cast<double>(v);
        return true;
      case Type::kString:
        out = Canonicalizer::View(Clean(bytes));
        return true;
      case Type::kBytes:
        out = canon_.Text(Base64(bytes));
        return true;
      case Type::kMessage: {
        size_t base = entries_.size();
        if (!Fields(bytes, *f.message, *f.message)) return false;
        out = Group(base, Slot{f.message, &f, Shape::kSingle, false});
        return true;
      }
      default:
        return Special(f, bytes, out);
    }
  }

  // Types that are messages on the wire and something else in JSON.
  bool Special(const Field& f, std::string_view bytes, Node& out) {
    WireReader in(bytes);
    uint64_t numbers[4] = {};
    std::string_view texts[4];
    std::vector<Node> list;
    while (!in.AtEnd()) {
      uint32_t field;
      Wire wire;
      uint64_t v = 0;
      std::string_view b;
      if (!in.Next(field, wire, v, b)) return Bad("unexpected EOF");
      if (field > 3) continue;
      numbers[field] = v;
      texts[field] = b;
      if (f.type == Type::kStringList) list.push_back(Canonicalizer::View(Clean(b)));
    }
    switch (f.type) {
      case Type::kQuantity: {
        std::string buffer;
        auto form = CanonicalQuantity(texts[1], buffer);
        if (!form) return Bad(form.error().message);
        out = canon_.Text(*form);
        return true;
      }
      case Type::kTime:
      case Type::kMicroTime: {
        if (bytes.empty()) return Set(out, Null());
        Instant t{static_cast<int64_t>(numbers[1]), static_cast<int32_t>(numbers[2])};
        bool seconds = f.type == Type::kTime;
        out = canon_.Text(FormatInstant(t, seconds ? TimeKind::kSeconds : TimeKind::kMicro));
        return true;
      }
      case Type::kDuration:
        return Set(out, canon_.Text(FormatDuration(Duration{static_cast<int64_t>(numbers[1])})));
      case Type::kIntOrString:
        if (numbers[1] != 0) return Set(out, Canonicalizer::View(Clean(texts[3])));
        return Set(out, Integer(static_cast<int32_t>(numbers[2])));
      case Type::kStringList:
        return Set(out, canon_.List(list));
      default:
        return Raw(texts[1], out);
    }
  }

  // A JSON text inside.
  bool Raw(std::string_view text, Node& out) {
    if (text.empty()) return Set(out, Null());
    auto doc = ParseJson(text);
    if (!doc) return Bad(doc.error().message);
    kept_.push_back(*doc);
    out = *doc->root().node();
    return true;
  }

  static bool Set(Node& out, const Node& n) {
    out = n;
    return true;
  }

  // Puts occurrences of one field together and the message, whose entries stand from `base` on,
  // into canonical form.
  Node Group(size_t base, const Slot& slot) {
    const Message& message = *slot.message;
    std::span<Entry> all = std::span(entries_).subspan(base);
    // Numbers ascend on the wire, but Go's order of the fields may be another.
    for (size_t i = 1; i < all.size(); ++i) {
      for (size_t j = i; j > 0 && all[j].field < all[j - 1].field; --j) {
        if (i - j > kMostMoves) return GroupSorted(base, slot);
        std::swap(all[j], all[j - 1]);
      }
    }
    size_t kept = 0;
    for (size_t i = 0; i < all.size();) {
      size_t end = i;
      while (end < all.size() && all[end].field == all[i].field) ++end;
      const Field& f = message.fields[static_cast<size_t>(all[i].field)];
      Entry e = all[end - 1];
      if (f.shape != Shape::kSingle) e.member.value = Together(f, all.subspan(i, end - i));
      all[kept++] = e;
      i = end;
    }
    Node out = canon_.Assemble(all.first(kept), slot);
    entries_.resize(base);
    return out;
  }

  // The same for entries that are in no order (somebody else's writer): sorts first.
  Node GroupSorted(size_t base, const Slot& slot) {
    std::vector<Entry> given(entries_.begin() + static_cast<std::ptrdiff_t>(base), entries_.end());
    std::vector<uint32_t> order(given.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      return given[a].field != given[b].field ? given[a].field < given[b].field : a < b;
    });
    for (size_t i = 0; i < order.size(); ++i) entries_[base + i] = given[order[i]];
    return Group(base, slot);
  }

  Node Together(const Field& f, std::span<const Entry> entries) {
    if (f.shape == Shape::kList) {
      std::vector<Node> items;
      items.reserve(entries.size());
      for (const Entry& e : entries) {
        items.push_back(canon_.Element(e.member.value, Slot::Of(f, Slot()).Element()));
      }
      return canon_.List(items);
    }
    std::vector<Member> members;
    members.reserve(entries.size());
    for (const Entry& e : entries) members.push_back(e.member);
    return canon_.SortedMap(members);
  }

  bool Bad(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }

  static constexpr size_t kMostMoves = 64;  // of one entry while sorting by insertion

  Canonicalizer canon_;
  std::vector<Entry> entries_;  // of the messages being read, the innermost last
  std::vector<Object> kept_;    // documents that the tree points into until it is copied
  std::string error_;
  int depth_ = 0;
};

}  // namespace

Result<ProtobufEnvelope> OpenProtobuf(std::string_view body) {
  if (body.empty()) return Fail(BadRequest("empty data"));
  if (!body.starts_with(kProtobufMagic)) {
    return Fail(
        BadRequest("provided data does not appear to be a protobuf message, expected "
                   "prefix [107 56 115 0]"));
  }
  if (body.size() == kProtobufMagic.size()) return Fail(BadRequest("empty body"));
  ProtobufEnvelope e;
  WireReader in(body.substr(kProtobufMagic.size()));
  while (!in.AtEnd()) {
    uint32_t field;
    Wire wire;
    uint64_t v;
    std::string_view bytes;
    if (!in.Next(field, wire, v, bytes)) return Fail(BadRequest("unexpected EOF"));
    if (field == 2) e.raw = bytes;
    if (field != 1) continue;
    WireReader meta(bytes);
    while (!meta.AtEnd()) {
      if (!meta.Next(field, wire, v, bytes)) return Fail(BadRequest("unexpected EOF"));
      if (field == 1) e.meta.api_version = bytes;
      if (field == 2) e.meta.kind = bytes;
    }
  }
  return e;
}

Result<Object> DecodeProtobuf(std::string_view raw, const Message& message, const TypeMeta& meta) {
  thread_local Arena arena;
  Result<Object> result;
  {
    Decoder decoder(arena);
    Node root;
    if (decoder.Top(raw, message, meta, root)) {
      result = FinishCompact(root, &message);
    } else {
      result = Fail(BadRequest(decoder.error()));
    }
  }
  arena.Clear();
  return result;
}

Result<WatchFrame> OpenWatchFrame(std::string_view frame) {
  WatchFrame out;
  WireReader in(frame);
  uint32_t field;
  Wire wire;
  uint64_t v;
  std::string_view bytes;
  while (!in.AtEnd()) {
    if (!in.Next(field, wire, v, bytes)) return Fail(BadRequest("unexpected EOF"));
    if (field == 1) out.type = bytes;
    if (field != 2) continue;
    WireReader object(bytes);
    while (!object.AtEnd()) {
      if (!object.Next(field, wire, v, bytes)) return Fail(BadRequest("unexpected EOF"));
      if (field == 1) out.body = bytes;
    }
  }
  return out;
}

}  // namespace sextant::api
