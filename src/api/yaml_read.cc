// ParseYaml of yaml.h, over libyaml's events.
#include <fmt/format.h>
#include <yaml.h>

#include <cmath>
#include <map>
#include <optional>

#include "api/canonical.h"
#include "api/yaml.h"
#include "base/base64.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

// A value as it was read. Trees are copied where an alias stands.
struct Item {
  std::string key;  // of a member
  YamlPlace place;
  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Item> children;
  size_t values = 1;  // itself and all below
};

// One event, freed at the end of its scope.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (filled_) yaml_event_delete(&event_);
  }
  bool Read(yaml_parser_t& parser) {
    filled_ = yaml_parser_parse(&parser, &event_) != 0;
    return filled_;
  }
  const yaml_event_t* operator->() const { return &event_; }
  yaml_event_type_t type() const { return event_.type; }
  YamlPlace place() const {
    return {static_cast<int>(event_.start_mark.line) + 1,
            static_cast<int>(event_.start_mark.column) + 1};
  }

 private:
  yaml_event_t event_{};
  bool filled_ = false;
};

std::string_view Text(const yaml_char_t* s) {
  return s == nullptr ? std::string_view() : reinterpret_cast<const char*>(s);
}

class Reader {
 public:
  Reader(std::string_view text, const YamlOptions& options) : options_(options) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  Result<std::vector<YamlDocument>> All() {
    std::vector<YamlDocument> out;
    while (true) {
      Event e;
      if (!e.Read(parser_)) return Fail(SyntaxError());
      if (e.type() == YAML_STREAM_END_EVENT) return out;
      if (e.type() != YAML_DOCUMENT_START_EVENT) continue;
      anchors_.clear();
      values_ = 0;
      Item root;
      RETURN_IF_ERROR(Next(root, 0));
      ASSIGN_OR_RETURN(YamlDocument doc, Finish(root));
      out.push_back(std::move(doc));
      if (!options_.first_only) continue;
      Event end;
      if (!end.Read(parser_)) return Fail(SyntaxError());
      return out;
    }
  }

 private:
  Error SyntaxError() const {
    size_t line = 0;
    bool scanner = parser_.error == YAML_SCANNER_ERROR;
    // The first line counts as none; Go adds one to the scanner's count only.
    if (parser_.problem_mark.line != 0) {
      line = parser_.problem_mark.line + scanner;
    } else {
      line = parser_.context_mark.line;
    }
    std::string_view why = parser_.problem != nullptr ? std::string_view(parser_.problem)
                                                      : "unknown problem parsing YAML content";
    if (line == 0) return BadRequest(fmt::format("yaml: {}", why));
    return BadRequest(fmt::format("yaml: line {}: {}", line, why));
  }

  static std::unexpected<Error> Wrong(std::string_view why) {
    return Fail(BadRequest(fmt::format("yaml: {}", why)));
  }

  Status Count(size_t n) {
    values_ += n;
    if (values_ > options_.max_values) return Wrong("document contains excessive aliasing");
    return {};
  }

  // Reads the next value.
  Status Next(Item& out, int depth) {
    Event e;
    if (!e.Read(parser_)) return Fail(SyntaxError());
    return Read(e, out, depth);
  }

  Status Read(const Event& e, Item& out, int depth) {
    if (depth > options_.max_depth) {
      return Wrong(fmt::format("exceeded max depth of {}", options_.max_depth));
    }
    out.place = e.place();
    RETURN_IF_ERROR(Count(1));
    switch (e.type()) {
      case YAML_ALIAS_EVENT:
        return Alias(Text(e->data.alias.anchor), out);
      case YAML_SCALAR_EVENT:
        RETURN_IF_ERROR(Scalar(e, out));
        return Anchor(Text(e->data.scalar.anchor), out);
      case YAML_SEQUENCE_START_EVENT:
        RETURN_IF_ERROR(Sequence(out, depth));
        return Anchor(Text(e->data.sequence_start.anchor), out);
      case YAML_MAPPING_START_EVENT:
        RETURN_IF_ERROR(Mapping(out, depth));
        return Anchor(Text(e->data.mapping_start.anchor), out);
      default:
        return Wrong("unexpected event");
    }
  }

  // Keeps a copy, which counts as well: anchors may stand within anchors.
  Status Anchor(std::string_view name, const Item& item) {
    if (name.empty()) return {};
    RETURN_IF_ERROR(Count(item.values));
    anchors_.insert_or_assign(std::string(name), item);
    return {};
  }

  Status Alias(std::string_view name, Item& out) {
    auto found = anchors_.find(name);
    if (found == anchors_.end()) return Wrong(fmt::format("unknown anchor '{}' referenced", name));
    RETURN_IF_ERROR(Count(found->second.values));
    YamlPlace here = out.place;
    std::string key = std::move(out.key);
    out = found->second;
    out.place = here;
    out.key = std::move(key);
    return {};
  }

  Status Sequence(Item& out, int depth) {
    out.kind = Kind::kList;
    while (true) {
      Event e;
      if (!e.Read(parser_)) return Fail(SyntaxError());
      if (e.type() == YAML_SEQUENCE_END_EVENT) return {};
      Item item;
      RETURN_IF_ERROR(Read(e, item, depth + 1));
      out.values += item.values;
      out.children.push_back(std::move(item));
    }
  }

  Status Mapping(Item& out, int depth) {
    out.kind = Kind::kMap;
    Index index;
    while (true) {
      Event e;
      if (!e.Read(parser_)) return Fail(SyntaxError());
      if (e.type() == YAML_MAPPING_END_EVENT) return {};
      Item key;
      RETURN_IF_ERROR(Read(e, key, depth + 1));
      bool plain = e.type() == YAML_SCALAR_EVENT && e->data.scalar.plain_implicit != 0;
      Item value;
      RETURN_IF_ERROR(Next(value, depth + 1));
      out.values += value.values;
      if (plain && key.kind == Kind::kString && key.text == "<<") {
        RETURN_IF_ERROR(Merge(value, out, index));  // what it overrides is reported, not refused
        continue;
      }
      ASSIGN_OR_RETURN(std::string name, KeyText(key));
      if (auto seen = index.find(name); seen != index.end()) {
        // Without a report it is fine to override what was merged in.
        bool fine = seen->second.merged && options_.strict == nullptr;
        if (!fine) RETURN_IF_ERROR(Duplicate(name, value.place));
      }
      value.key = std::move(name);
      value.place = key.place;
      Put(std::move(value), false, out, index);
    }
  }

  Status Duplicate(const std::string& name, YamlPlace place) {
    std::string why = fmt::format("line {}: key {} already set in map", place.line, Quote(name));
    if (options_.strict == nullptr) return Wrong("unmarshal errors:\n  " + why);
    options_.strict->errors.push_back("yaml: unmarshal errors:\n  " + why);
    return {};
  }

  struct Child {
    size_t at;    // in the map's children
    bool merged;  // came in by <<
  };
  using Index = std::map<std::string, Child, std::less<>>;  // by key

  static void Put(Item value, bool merged, Item& out, Index& index) {
    auto [found, fresh] = index.try_emplace(value.key, out.children.size(), merged);
    found->second.merged = merged;
    if (fresh) {
      out.children.push_back(std::move(value));
    } else {
      out.children[found->second.at] = std::move(value);
    }
  }

  Status Merge(Item& value, Item& out, Index& index) {
    std::vector<Item*> maps;
    if (value.kind == Kind::kList) {
      // Earlier ones win.
      for (size_t i = value.children.size(); i-- > 0;) maps.push_back(&value.children[i]);
    } else {
      maps.push_back(&value);
    }
    for (Item* map : maps) {
      if (map->kind != Kind::kMap) {
        return Wrong("map merge requires map or sequence of maps as the value");
      }
      for (Item& child : map->children) {
        if (options_.strict != nullptr && index.contains(child.key)) {
          RETURN_IF_ERROR(Duplicate(child.key, child.place));
        }
        Put(child, true, out, index);
      }
    }
    return {};
  }

  static Result<std::string> KeyText(const Item& key) {
    switch (key.kind) {
      case Kind::kString:
        return key.text;
      case Kind::kInt:
        return std::to_string(key.integer);
      case Kind::kBool:
        return std::string(key.boolean ? "true" : "false");
      case Kind::kDouble:
        return fmt::format("{}", static_cast<float>(key.number));
      case Kind::kNull:
        return Fail(BadRequest("unsupported map key of type: %!s(<nil>), key: <nil>"));
      default:
        return Fail(BadRequest("yaml: invalid map key"));
    }
  }

  Status Scalar(const Event& e, Item& out) {
    const auto& scalar = e->data.scalar;
    std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    std::string_view tag = Text(scalar.tag);
    bool plain = scalar.plain_implicit != 0;
    if (tag == "!") tag = {};  // the non-specific tag: text
    std::string_view type =
        tag.starts_with(kTagPrefix) ? tag.substr(kTagPrefix.size()) : std::string_view();
    out.kind = Kind::kString;
    out.text = text;
    if (type == "binary") {
      auto bytes = Base64Decode(text);
      if (!bytes) return Wrong("!!binary value contains invalid base64 data");
      out.text = *std::move(bytes);
      return {};
    }
    bool resolvable =
        tag.empty() ? plain : type == "bool" || type == "int" || type == "float" || type == "null";
    if (!resolvable) return {};
    YamlScalar v = ResolveYaml(text);
    if (type == "float" && v.kind == YamlKind::kInt) {
      v = {.kind = YamlKind::kFloat, .number = static_cast<double>(v.integer)};
    }
    if (!type.empty() && type != TypeName(v.kind)) {
      return Wrong(fmt::format("cannot decode !!{} `{}` as a !!{}", TypeName(v.kind), text, type));
    }
    return SetScalar(v, out);
  }

  static std::string_view TypeName(YamlKind kind) {
    switch (kind) {
      case YamlKind::kNull:
        return "null";
      case YamlKind::kBool:
        return "bool";
      case YamlKind::kInt:
        return "int";
      case YamlKind::kFloat:
        return "float";
      case YamlKind::kText:
        return "str";
    }
    return "str";
  }

  static Status SetScalar(const YamlScalar& v, Item& out) {
    switch (v.kind) {
      case YamlKind::kText:
        return {};
      case YamlKind::kNull:
        out.kind = Kind::kNull;
        return {};
      case YamlKind::kBool:
        out.kind = Kind::kBool;
        out.boolean = v.boolean;
        return {};
      case YamlKind::kInt:
        out.kind = Kind::kInt;
        out.integer = v.integer;
        return {};
      case YamlKind::kFloat:
        if (!std::isfinite(v.number)) {
          return Fail(
              BadRequest(std::string("json: unsupported value: ") + (std::isnan(v.number) ? "NaN"
                                                                     : v.number > 0       ? "+Inf"
                                                                                    : "-Inf")));
        }
        out.kind = Kind::kDouble;
        out.number = v.number;
        return {};
    }
    return {};
  }

  // From the items to a document; the order of walking is the same in both trees.
  Result<YamlDocument> Finish(const Item& root) {
    Arena arena;
    Canonicalizer build(arena);
    YamlDocument doc;
    doc.object = FinishCompact(Build(root, build), nullptr);
    AddPlaces(root, doc.object.root(), doc);
    return doc;
  }

  Node Build(const Item& item, Canonicalizer& build) {
    Node n;
    n.kind = item.kind;
    switch (item.kind) {
      case Kind::kBool:
        n.boolean = item.boolean;
        return n;
      case Kind::kInt:
        n.integer = item.integer;
        return n;
      case Kind::kDouble:
        n.number = item.number;
        return n;
      case Kind::kString:
        return Canonicalizer::View(item.text);
      case Kind::kList: {
        std::vector<Node> items;
        for (const Item& child : item.children) items.push_back(Build(child, build));
        return build.List(items);
      }
      case Kind::kMap: {
        std::vector<Member> members;
        for (const Item& child : item.children) {
          Member& m = members.emplace_back();
          m.key = child.key.data();
          m.key_size = static_cast<uint32_t>(child.key.size());
          m.value = Build(child, build);
        }
        return build.Map(members);
      }
      default:
        return n;
    }
  }

  static void AddPlaces(const Item& item, Value v, YamlDocument& doc) {
    doc.places.emplace(v.node(), item.place);
    size_t i = 0;
    for (Value child : v.items()) AddPlaces(item.children[i++], child, doc);
    for (MemberView child : v.members()) AddPlaces(item.children[i++], child.value, doc);
  }

  const YamlOptions& options_;
  yaml_parser_t parser_{};
  std::map<std::string, Item, std::less<>> anchors_;
  size_t values_ = 0;
};

}  // namespace

YamlPlace YamlDocument::PlaceOf(Value v) const {
  auto found = places.find(v.node());
  return found == places.end() ? YamlPlace() : found->second;
}

Result<std::vector<YamlDocument>> ParseYaml(std::string_view text, const YamlOptions& options) {
  if (text.size() > options.max_bytes) {
    return Fail(RequestEntityTooLarge(fmt::format("limit is {}", options.max_bytes)));
  }
  return Reader(text, options).All();
}

}  // namespace sextant::api
