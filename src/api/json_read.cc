// ParseJson, DecodeJson, DecodeTree and PeekTypeMeta of json.h.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "api/canonical.h"
#include "api/json.h"
#include "api/json_cursor.h"
#include "api/json_scan.h"
#include "api/quantity.h"
#include "api/time_value.h"
#include "base/base64.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxStrictErrors = 100;
constexpr size_t kKeepScratch = size_t{1} << 20;  // larger scratch memory is given back

// What one thread needs again and again.
struct Scratch {
  Arena arena;
  std::vector<char> text;
  std::vector<Entry> entries;
  std::vector<Member> members;
  std::vector<Node> nodes;

  void Clear() {
    arena.Clear();
    entries.clear();
    members.clear();
    nodes.clear();
    if (text.capacity() > kKeepScratch) text = {};
    if (entries.capacity() > kKeepScratch / sizeof(Entry)) entries = {};
    if (members.capacity() > kKeepScratch / sizeof(Member)) members = {};
    if (nodes.capacity() > kKeepScratch / sizeof(Node)) nodes = {};
  }
};

constexpr std::string_view kAnonymousStruct =
    R"(struct { APIVersion string "json:\"apiVersion,omitempty\""; )"
    R"(Kind string "json:\"kind,omitempty\"" })";

std::string_view AfterDot(std::string_view name) {
  if (name == kAnonymousStruct) return {};
  size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view BaseGoType(const Field& f) {
  switch (f.type) {
    case Type::kBool:
      return "bool";
    case Type::kInt32:
      return "int32";
    case Type::kInt64:
      return "int64";
    case Type::kUint32:
      return "uint32";
    case Type::kDouble:
      return "float64";
    case Type::kBytes:
      return "[]uint8";
    case Type::kMessage:
      return f.message->go_name;
    case Type::kQuantity:
      return "resource.Quantity";
    case Type::kTime:
      return "v1.Time";
    case Type::kMicroTime:
      return "v1.MicroTime";
    case Type::kDuration:
      return "v1.Duration";
    case Type::kIntOrString:
      return "intstr.IntOrString";
    case Type::kRawExtension:
      return "runtime.RawExtension";
    case Type::kFieldsV1:
      return "v1.FieldsV1";
    case Type::kStringList:
      return "[]string";
    case Type::kString:
    case Type::kAny:
      return "string";
  }
  return "string";
}

std::string GoType(const Slot& slot) {
  if (slot.field == nullptr) return slot.message ? std::string(slot.message->go_name) : "";
  const Field& f = *slot.field;
  constexpr std::string_view kMapPrefix = "map[string]";
  std::string_view type = f.go_type;
  if (slot.shape == f.shape) {
    if (!type.empty()) return std::string(type);
    std::string base(BaseGoType(f));
    return f.shape == Shape::kList  ? "[]" + base
           : f.shape == Shape::kMap ? "map[string]" + base
                                    : base;
  }
  if (f.shape == Shape::kList && type.starts_with("[]")) return std::string(type.substr(2));
  if (f.shape == Shape::kMap && type.starts_with(kMapPrefix)) {
    return std::string(type.substr(kMapPrefix.size()));
  }
  return std::string(BaseGoType(f));
}

bool IsFree(const Slot& slot) {
  if (slot.Unknown()) return true;
  if (slot.field == nullptr || slot.shape != Shape::kSingle) return false;
  Type t = slot.field->type;
  return t == Type::kAny || t == Type::kRawExtension || t == Type::kFieldsV1;
}

bool IsStringList(const Slot& slot) {
  return slot.field != nullptr && slot.shape == Shape::kSingle &&
         slot.field->type == Type::kStringList;
}

// The slot that a StringList's own list has.
Slot StringListSlot() {
  static const Field kField = {.name = "items", .shape = Shape::kList};
  return {nullptr, &kField, Shape::kList, false};
}

Node Number(double v) {
  Node n;
  n.kind = Kind::kDouble;
  n.number = v;
  return n;
}

Node Integer(int64_t v) {
  Node n;
  n.kind = Kind::kInt;
  n.integer = v;
  return n;
}

template <typename T>
bool ParseAll(std::string_view raw, T& v) {
  auto [ptr, ec] = std::from_chars(raw.data(), raw.data() + raw.size(), v);
  return ec == std::errc() && ptr == raw.data() + raw.size();
}

// Position of the first byte that base64 (standard, padded; line breaks ignored) cannot have, as Go
// reports it; nullopt if all is well. `same` says that encoding again gives the same text.
std::optional<size_t> Base64Error(std::string_view s, bool& same) {
  auto value = [](char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  same = true;
  size_t i = 0;
  auto skip_breaks = [&] {
    while (i < s.size() && (s[i] == '\n' || s[i] == '\r')) {
      same = false;
      ++i;
    }
  };
  int in_quantum = 0;
  int last = 0;
  for (skip_breaks(); i < s.size() && s[i] != '='; skip_breaks()) {
    last = value(s[i]);
    if (last < 0) return i;
    in_quantum = (in_quantum + 1) % 4;
    ++i;
  }
  if (i == s.size()) {
    if (in_quantum == 0) return std::nullopt;
    return s.size() - static_cast<size_t>(in_quantum);
  }
  if (in_quantum < 2) return i;
  if (in_quantum == 2) {
    ++i;
    skip_breaks();
    if (i == s.size()) return s.size();
    if (s[i] != '=') return i;
  }
  ++i;
  skip_breaks();
  if (i != s.size()) return i;
  // Bits that the last character has too many are lost.
  if ((last & (in_quantum == 2 ? 15 : 3)) != 0) same = false;
  return std::nullopt;
}

class Reader {
 public:
  Reader(const char* begin, const char* end, const JsonOptions& options, Scratch& scratch)
      : cursor_(begin, end, options.max_depth),
        strict_(options.strict),
        unstructured_(options.unstructured),
        scratch_(scratch),
        canon_(scratch.arena) {}

  // False: error() says why. Errors of types go before nothing else, errors of syntax before all.
  bool Read(const Slot& slot, Node& out) { return Value(slot, out) && cursor_.AtEnd(); }
  bool stopped() const { return !fatal_.empty(); }
  const std::string& syntax_error() const { return cursor_.error(); }
  // The type error that Go would report, empty if there is none.
  const std::string& type_error() const { return fatal_.empty() ? saved_ : fatal_; }

 private:
  // Where in the object a value lies; a list of what the calls on the stack are about.
  struct Step {
    const Step* above;
    const Message* message;  // non-null: a field of it
    const Field* field;
    std::string_view key;  // map key or field name; no data: an index
    size_t index;
  };

  bool ValueAt(const Message* message, const Field* field, std::string_view key, size_t index,
               const Slot& slot, Node& out) {
    Step step{path_, message, field, key, index};
    path_ = &step;
    bool read = Value(slot, out);
    path_ = step.above;
    return read;
  }

  // From the outermost step on.
  std::vector<const Step*> Path() const {
    std::vector<const Step*> path;
    for (const Step* s = path_; s != nullptr; s = s->above) path.push_back(s);
    std::ranges::reverse(path);
    return path;
  }

  bool Value(const Slot& slot, Node& out) {
    switch (char c = cursor_.Peek()) {
      case '{':
        if (slot.IsMessage()) return ReadMessage(slot, out);
        if (slot.shape == Shape::kMap || IsFree(slot) || slot.custom) return ReadMap(slot, out);
        return Mismatch("object", slot, out);
      case '[':
        if (slot.shape == Shape::kList || IsFree(slot) || slot.custom) return ReadList(slot, out);
        if (IsStringList(slot)) return ReadList(StringListSlot(), out);
        return Mismatch("array", slot, out);
      case '"':
        return ReadString(slot, out);
      case 't':
      case 'f':
        return ReadBool(c == 't', slot, out);
      case 'n':
        return ReadNull(slot, out);
      default:
        if (c == '-' || (c >= '0' && c <= '9')) return ReadNumber(slot, out);
        return cursor_.Syntax("looking for beginning of value");
    }
  }

  bool ReadMessage(const Slot& slot, Node& out) {
    const Message& message = *slot.message;
    size_t base = scratch_.entries.size();
    bool more;
    if (!cursor_.OpenObject(more)) return false;
    int hint = 0;
    while (more) {
      std::string_view key;
      if (!ReadKey(key)) return false;
      Entry e;
      e.field = IndexOfField(message, key, hint);
      if (e.field >= 0) {
        const Field& f = message.fields[static_cast<size_t>(e.field)];
        hint = e.field + 1;
        if (strict_ != nullptr) CheckDuplicate(base, e.field, key);
        Slot child = Slot::Of(f, slot);
        if (!ValueAt(&message, &f, key, 0, child, e.member.value)) return false;
        scratch_.entries.push_back(e);
      } else if (!Unknown(slot, key, e)) {
        return false;
      }
      if (!cursor_.NextMember(more)) return false;
    }
    auto all = std::span<const Entry>(scratch_.entries).subspan(base);
    out = canon_.Assemble(all, slot);
    scratch_.entries.resize(base);
    return true;
  }

  bool Unknown(const Slot& slot, std::string_view key, Entry& e) {
    if (!slot.message->preserve_unknown) {
      if (strict_ != nullptr) strict_->Add("unknown field", PathTo(key));
      return cursor_.SkipValue();
    }
    e.member = Named(key);
    Slot child{.custom = slot.custom};
    if (!ValueAt(nullptr, nullptr, key, 0, child, e.member.value)) return false;
    scratch_.entries.push_back(e);
    return true;
  }

  void CheckDuplicate(size_t base, int field, std::string_view key) {
    for (size_t i = base; i < scratch_.entries.size(); ++i) {
      if (scratch_.entries[i].field == field) return strict_->Add("duplicate field", PathTo(key));
    }
  }

  static Member Named(std::string_view key) {
    Member m;
    m.key = key.data();
    m.key_size = static_cast<uint32_t>(key.size());
    return m;
  }

  bool ReadMap(const Slot& slot, Node& out) {
    bool typed = slot.shape == Shape::kMap;
    Slot element = typed ? slot.Element() : Slot{.custom = slot.custom};
    size_t base = scratch_.members.size();
    bool more;
    if (!cursor_.OpenObject(more)) return false;
    while (more) {
      std::string_view key;
      if (!ReadKey(key)) return false;
      Member m = Named(key);
      if (!ValueAt(nullptr, nullptr, key, 0, element, m.value)) return false;
      m.value = canon_.Element(m.value, element);
      scratch_.members.push_back(m);
      if (!cursor_.NextMember(more)) return false;
    }
    auto all = std::span<Member>(scratch_.members).subspan(base);
    bool opaque = slot.field != nullptr && !typed && !slot.custom;  // Go keeps its bytes
    if (strict_ != nullptr && !opaque) ReportDuplicates(all);
    out = typed || slot.custom ? canon_.SortedMap(all) : KeepOrder(all);
    scratch_.members.resize(base);
    return true;
  }

  Node KeepOrder(std::span<Member> all) {
    std::vector<uint32_t> order = SortedOrder(all);
    if (order.empty()) return canon_.Map(all);
    bool duplicates = false;
    for (size_t i = 1; i < order.size(); ++i) {
      if (all[order[i - 1]].name() != all[order[i]].name()) continue;
      // The later one counts, at the place of the first.
      all[order[i - 1]].value = all[order[i]].value;
      all[order[i]].key = nullptr;
      order[i] = order[i - 1];
      duplicates = true;
    }
    if (!duplicates) return canon_.Map(all);
    std::vector<Member> kept;
    std::ranges::copy_if(all, std::back_inserter(kept), [](const Member& m) { return m.key; });
    return canon_.Map(kept);
  }

  static std::vector<uint32_t> SortedOrder(std::span<const Member> all) {
    std::vector<uint32_t> order;
    bool sorted = true;
    for (size_t i = 1; i < all.size() && sorted; ++i) sorted = all[i - 1].name() < all[i].name();
    if (sorted) return order;
    for (uint32_t i = 0; i < all.size(); ++i) order.push_back(i);
    std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
      int by_name = all[a].name().compare(all[b].name());
      return by_name != 0 ? by_name < 0 : a < b;
    });
    return order;
  }

  void ReportDuplicates(std::span<const Member> all) {
    std::vector<uint32_t> order = SortedOrder(all);
    for (size_t i = 1; i < order.size(); ++i) {
      std::string_view key = all[order[i]].name();
      if (all[order[i - 1]].name() == key) strict_->Add("duplicate field", PathTo(key));
    }
  }

  bool ReadList(const Slot& slot, Node& out) {
    bool typed = slot.shape == Shape::kList;
    Slot element = typed ? slot.Element() : Slot{.custom = slot.custom};
    size_t base = scratch_.nodes.size();
    bool more;
    if (!cursor_.OpenArray(more)) return false;
    for (size_t i = 0; more; ++i) {
      Node item;
      if (!ValueAt(nullptr, nullptr, {}, i, element, item)) return false;
      scratch_.nodes.push_back(canon_.Element(item, element));
      if (!cursor_.NextItem(more)) return false;
    }
    out = canon_.List(std::span<const Node>(scratch_.nodes).subspan(base));
    scratch_.nodes.resize(base);
    return true;
  }

  bool ReadKey(std::string_view& key) {
    bool plain;
    if (!cursor_.Key(key, plain)) return false;
    if (!plain) key = Unescape(key, scratch_.arena);
    return true;
  }

  bool ReadString(const Slot& slot, Node& out) {
    std::string_view text;
    bool plain;
    if (!cursor_.RawString(text, plain)) return false;
    std::string_view raw = text;
    if (!plain) text = Unescape(text, scratch_.arena);
    if (IsFree(slot)) return Set(out, Canonicalizer::View(text));
    if (slot.shape != Shape::kSingle || slot.message != nullptr) {
      return TypeError("string", slot, out, Canonicalizer::View(text));
    }
    switch (slot.field->type) {
      case Type::kString:
      case Type::kIntOrString:
        return Set(out, Canonicalizer::View(text));
      case Type::kBytes:
        return ReadBytes(slot, text, out);
      case Type::kQuantity:
        return ReadQuantity(slot, raw, out);
      case Type::kTime:
        return ReadFormatted(slot, text, out, CanonicalTime(text, TimeKind::kSeconds, buffer_));
      case Type::kMicroTime:
        return ReadFormatted(slot, text, out, CanonicalTime(text, TimeKind::kMicro, buffer_));
      case Type::kDuration:
        return ReadFormatted(slot, text, out, CanonicalDuration(text, buffer_));
      default:
        return TypeError("string", slot, out, Canonicalizer::View(text));
    }
  }

  bool ReadBytes(const Slot& slot, std::string_view text, Node& out) {
    bool same;
    auto bad = Base64Error(text, same);
    if (bad && !slot.custom) {
      if (saved_.empty()) saved_ = "illegal base64 data at input byte " + std::to_string(*bad);
      return true;
    }
    return Set(out,
               bad || same ? Canonicalizer::View(text) : canon_.Text(Base64(*Base64Decode(text))));
  }

  bool ReadQuantity(const Slot& slot, std::string_view raw, Node& out) {
    auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    std::string_view text = raw;
    while (!text.empty() && space(text.front())) text.remove_prefix(1);
    while (!text.empty() && space(text.back())) text.remove_suffix(1);
    return ReadFormatted(slot, text, out, CanonicalQuantity(text, buffer_));
  }

  bool ReadFormatted(const Slot& slot, std::string_view text, Node& out,
                     const Result<std::string_view>& form) {
    if (!form) {
      if (slot.custom) return Set(out, Canonicalizer::View(text));
      return Fatal(form.error().message);
    }
    if (form->empty()) {
      out.kind = Kind::kNull;
      return true;
    }
    return Set(out, form->data() == text.data() ? Canonicalizer::View(text) : canon_.Text(*form));
  }

  bool ReadBool(bool value, const Slot& slot, Node& out) {
    if (!cursor_.Literal(value ? "true" : "false")) return false;
    Node n;
    n.kind = Kind::kBool;
    n.boolean = value;
    bool fits = IsFree(slot) || (slot.shape == Shape::kSingle && slot.message == nullptr &&
                                 slot.field->type == Type::kBool);
    if (fits) return Set(out, n);
    if (slot.message == nullptr && slot.shape == Shape::kSingle &&
        slot.field->type == Type::kQuantity) {
      return ReadQuantity(slot, value ? "true" : "false", out);
    }
    return TypeError("bool", slot, out, n);
  }

  bool ReadNull(const Slot& slot, Node& out) {
    if (!cursor_.Literal("null")) return false;
    out.kind = Kind::kNull;
    bool plain = slot.field != nullptr && slot.shape == Shape::kSingle && !slot.field->pointer;
    if (plain && slot.field->type == Type::kDuration && !slot.custom) {
      return Fatal(CanonicalDuration("", buffer_).error().message);
    }
    return true;
  }

  bool ReadNumber(const Slot& slot, Node& out) {
    std::string_view raw;
    if (!cursor_.RawNumber(raw)) return false;
    if (slot.custom || IsFree(slot)) return FreeNumber(raw, out);
    Node as_is = Number(0);
    if (slot.shape != Shape::kSingle || slot.message != nullptr) {
      return TypeError("number", slot, out, as_is);
    }
    switch (slot.field->type) {
      case Type::kInt32:
      case Type::kIntOrString:
        return ReadInteger<int32_t>(raw, slot, out);
      case Type::kInt64:
        return ReadInteger<int64_t>(raw, slot, out);
      case Type::kUint32:
        return ReadInteger<uint32_t>(raw, slot, out);
      case Type::kDouble: {
        double v;
        if (!ParseAll(raw, v)) return TypeError("number " + std::string(raw), slot, out, as_is);
        return Set(out, IntegerIfExact(v));
      }
      case Type::kQuantity:
        return ReadQuantity(slot, raw, out);
      default:
        return TypeError("number", slot, out, as_is);
    }
  }

  // A float prints as an integer where it is one; -0 and what is beyond 2^53 stay floats.
  static Node IntegerIfExact(double v) {
    constexpr double kLimit = 9007199254740992.0;
    bool whole = v > -kLimit && v < kLimit && static_cast<double>(static_cast<int64_t>(v)) == v;
    return whole && v != 0 ? Integer(static_cast<int64_t>(v)) : Number(v);
  }

  template <typename T>
  bool ReadInteger(std::string_view raw, const Slot& slot, Node& out) {
    T v;
    if (!ParseAll(raw, v)) {
      return TypeError("number " + std::string(raw), slot, out, Number(0));
    }
    return Set(out, Integer(v));
  }

  bool FreeNumber(std::string_view raw, Node& out) {
    int64_t integer;
    if (raw.find('.') == std::string_view::npos && ParseAll(raw, integer)) {
      return Set(out, Integer(integer));
    }
    double v = 0;
    if (!ParseAll(raw, v)) {
      // libstdc++ says "out of range" for what is too small as well; Go takes that as 0.
      std::string copy(raw);
      v = std::strtod(copy.c_str(), nullptr);
      if (v > std::numeric_limits<double>::max() || v < std::numeric_limits<double>::lowest()) {
        Save("number " + copy, "float64");
        return true;
      }
    }
    return Set(out, IntegerIfExact(v));
  }

  static bool Set(Node& out, const Node& value) {
    out = value;
    return true;
  }

  // An object or array where another thing is wanted.
  bool Mismatch(std::string_view what, const Slot& slot, Node& out) {
    const char* start = cursor_.at();
    if (!cursor_.SkipValue()) return false;
    bool quantity = slot.shape == Shape::kSingle && slot.field != nullptr &&
                    slot.field->type == Type::kQuantity;
    if (quantity) return ReadQuantity(slot, {start, cursor_.at()}, out);
    return TypeError(what, slot, out, Node());
  }

  // A value of the wrong type. Custom resources keep it for validation to see.
  bool TypeError(std::string_view what, const Slot& slot, Node& out, const Node& as_is) {
    if (slot.custom) return Set(out, as_is);
    bool own_decoder = slot.field != nullptr && slot.shape == Shape::kSingle;
    if (own_decoder) {
      switch (slot.field->type) {
        case Type::kTime:
        case Type::kMicroTime:
        case Type::kDuration:
          return Fatal(TypeText(what, "string"));
        case Type::kIntOrString:
          return Fatal(TypeText(what, "int32"));
        default:
          break;
      }
    }
    if (unstructured_) {
      if (saved_.empty()) saved_ = ConverterText(what, slot);
      return true;
    }
    Save(what, GoType(slot));
    return true;
  }

  static std::string ConverterText(std::string_view what, const Slot& slot) {
    const std::string_view have = what == "object"             ? "map"
                                  : what == "array"            ? "slice"
                                  : what.starts_with("number") ? "int64"
                                                               : what;
    if (slot.shape == Shape::kList) return fmt::format("cannot restore slice from {}", have);
    if (slot.shape == Shape::kMap) return fmt::format("cannot restore map from {}", have);
    if (slot.IsMessage()) return fmt::format("cannot restore struct from: {}", have);
    return fmt::format("unrecognized type: {}", GoType(slot));
  }

  bool Fatal(std::string text) {
    fatal_ = std::move(text);
    return false;
  }

  void Save(std::string_view what, std::string_view type) {
    if (saved_.empty()) saved_ = TypeText(what, type);
  }

  std::string TypeText(std::string_view what, std::string_view type) const {
    std::string text = "json: cannot unmarshal " + std::string(what) + " into Go ";
    const Message* innermost = nullptr;
    std::string path;
    for (const Step* step : Path()) {
      // Kubernetes reads the metadata of a custom resource by itself.
      if (step->message == nullptr || step->message->custom) continue;
      innermost = step->message;
      bool type_meta = step->message->top && step->field->number == 0 &&
                       (step->key == "kind" || step->key == "apiVersion");
      if (type_meta) path += path.empty() ? "TypeMeta" : ".TypeMeta";
      AddVia(step->field->via, path);
      if (!path.empty()) path += '.';
      path += step->field->name;
    }
    if (innermost == nullptr) return text + "value of type " + std::string(type);
    return text + "struct field " + std::string(AfterDot(innermost->go_name)) + "." + path +
           " of type " + std::string(type);
  }

  static void AddVia(const Field* via, std::string& path) {
    if (via == nullptr) return;
    AddVia(via->via, path);
    if (!path.empty()) path += '.';
    path += via->go_name;
  }

  std::string PathTo(std::string_view key) const {
    std::string path;
    for (const Step* step : Path()) {
      if (step->key.data() == nullptr) {
        path += "[" + std::to_string(step->index) + "]";
        continue;
      }
      if (!path.empty()) path += '.';
      path += step->key;
    }
    if (!path.empty()) path += '.';
    return path.append(key);
  }

  JsonCursor cursor_;
  StrictReport* strict_;
  bool unstructured_;
  Scratch& scratch_;
  Canonicalizer canon_;
  const Step* path_ = nullptr;
  std::string buffer_;
  std::string saved_;
  std::string fatal_;
};

Result<Object> Decode(std::string_view text, const Slot& slot, const JsonOptions& options) {
  if (text.size() > options.max_bytes) {
    return Fail(RequestEntityTooLarge("limit is " + std::to_string(options.max_bytes)));
  }
  thread_local Scratch scratch;
  scratch.text.resize(text.size() + 1 + kScanPadding);
  char* begin = scratch.text.data();
  std::memcpy(begin, text.data(), text.size());
  std::memset(begin + text.size(), 0, 1 + kScanPadding);
  const char* end = begin + text.size();

  Result<Object> result;
  Node root;
  Reader reader(begin, end, options, scratch);
  bool read = reader.Read(slot, root);
  std::string error = reader.type_error();
  if (!read && reader.stopped()) {
    // Go looks at the syntax of everything first.
    JsonCursor rest(begin, end, options.max_depth);
    if (!rest.SkipValue() || !rest.AtEnd()) error = rest.error();
  } else if (!read) {
    error = reader.syntax_error();
  }
  if (!error.empty()) {
    result = Fail(BadRequest(error));
  } else {
    bool builtin = slot.message != nullptr && !slot.message->custom && root.kind == Kind::kMap;
    result = FinishCompact(root, builtin ? slot.message : nullptr);
  }
  scratch.Clear();
  return result;
}

}  // namespace

void StrictReport::Add(std::string_view what, std::string_view path) {
  if (errors.size() >= kMaxStrictErrors) return;
  std::string text = std::string(what) + " " + Quote(path);
  if (std::ranges::find(errors, text) == errors.end()) errors.push_back(std::move(text));
}

Result<Object> ParseJson(std::string_view text, const JsonOptions& options) {
  return Decode(text, Slot(), options);
}

Result<Object> DecodeJson(std::string_view text, const Message& message,
                          const JsonOptions& options) {
  return Decode(text, Slot::Root(message), options);
}

Result<Object> DecodeTree(Value tree, const Message& message, const JsonOptions& options) {
  return DecodeJson(ToJson(tree, {.escape_html = false}), message, options);
}

Result<TypeMeta> PeekTypeMeta(std::string_view text) {
  static const Field kFields[] = {{.name = "apiVersion"}, {.name = "kind"}};
  static const Message kMessage = {.name = "", .go_name = kAnonymousStruct, .fields = kFields};
  auto doc = DecodeJson(text, kMessage);
  if (!doc) {
    Error error = doc.error();
    error.message = "couldn't get version/kind; json parse error: " + error.message;
    return Fail(std::move(error));
  }
  return TypeMeta{std::string(doc->api_version()), std::string(doc->kind())};
}

Object WithTypeMeta(Object object, const TypeMeta& meta, const Message& message) {
  if (!object.kind().empty() && !object.api_version().empty()) return object;
  Editor edit(object);
  edit.Root().Set("kind", meta.kind);
  edit.Root().Set("apiVersion", meta.api_version);
  return std::move(edit).Finish(&message);
}

}  // namespace sextant::api
