#include "api/schema_validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <unordered_map>

#include "api/go_values.h"
#include "api/json.h"
#include "api/names.h"
#include "api/regex.h"
#include "api/rules_kit.h"
#include "api/schema_formats.h"
#include "api/schema_values.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxErrors = 1000;  // of one object
constexpr std::string_view kIn = " in body ";

// What one check found. `message` tells two of them apart.
struct Finding {
  enum class Kind : uint8_t { kInvalid, kRequired, kEnum, kTooLong, kTooMany, kType, kPlain };
  Kind kind = Kind::kInvalid;
  std::string name;     // path within the value; unused by kPlain
  std::string printed;  // the bad value
  std::string message;
  int64_t max = 0;
  int64_t actual = 0;
  std::vector<std::string> valid;
};

struct Outcome {
  std::vector<Finding> findings;
  int matches = 0;  // checks that passed: the best of several failures has most

  bool valid() const { return findings.empty(); }
  void Add(Finding finding) {
    if (findings.size() >= kMaxErrors) return;
    for (const Finding& known : findings)
      if (known.message == finding.message) return;
    findings.push_back(std::move(finding));
  }
  void Merge(Outcome other) {
    matches += other.matches;
    if (findings.empty()) {
      findings = std::move(other.findings);
      return;
    }
    for (Finding& finding : other.findings) Add(std::move(finding));
  }
};

std::string Printed(Value v) {
  switch (v.kind()) {
    case Kind::kString:
      return Quote(v.AsString());
    case Kind::kAbsent:
    case Kind::kNull:
      return "\"\"";
    case Kind::kDouble:
      return GoFloat(v.AsDouble());
    default:
      return ToJson(v);
  }
}

std::string_view TypeOf(Value v) {
  switch (v.kind()) {
    case Kind::kBool:
      return "boolean";
    case Kind::kInt:
      return "integer";
    case Kind::kDouble:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kList:
      return "array";
    case Kind::kMap:
      return "object";
    default:
      return "null";
  }
}

size_t Runes(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

// What tells the items of a list of type map apart: their keys, as JSON.
class ItemKeys {
 public:
  explicit ItemKeys(const SchemaNode& list) : names_(list.list_map_keys) {
    std::ranges::sort(names_);
  }

  std::string Of(Value item) const {
    std::string text = "{";
    for (std::string_view name : names_) {
      const Value value = item[name];
      if (value.IsAbsent()) continue;
      if (text.size() > 1) text += ',';
      WriteJsonString(name, text);
      text += ':' + ToJson(value);
    }
    return text + "}";
  }

 private:
  std::vector<std::string_view> names_;
};

// The items of a list of type map as they were, by their keys. Those of other lists have no former
// state.
class FormerItems {
 public:
  FormerItems(Value old, const SchemaNode& list) : keys_(list) {
    if (list.list_type != "map") return;
    for (Value item : old.items()) items_.try_emplace(keys_.Of(item), item);
  }
  // Absent if there was none.
  Value Of(Value item) const {
    if (items_.empty()) return {};
    const auto at = items_.find(keys_.Of(item));
    return at != items_.end() ? at->second : Value();
  }

 private:
  ItemKeys keys_;
  std::unordered_map<std::string, Value> items_;
};

class Validator {
 public:
  // `old` is the value's former state if it has one; `ratchets` false below what is compared as a
  // whole (allOf and its like).
  Outcome Validate(Value v, Value old, const SchemaNode& s, const At& at, bool ratchets) const {
    Outcome outcome = v.IsNull() || v.IsAbsent() ? Null(s, at) : Present(v, old, s, at);
    if (ratchets && !outcome.valid() && !old.IsAbsent() && Equal(v, old)) {
      outcome.findings.clear();
    }
    return outcome;
  }

 private:
  static Finding Bad(const At& at, std::string printed, std::string_view what) {
    Finding f;
    f.name = at.ToString();
    f.printed = std::move(printed);
    f.message = fmt::format("{}{}{}", f.name, kIn, what);
    return f;
  }
  static Finding Plain(std::string message) {
    Finding f;
    f.kind = Finding::Kind::kPlain;
    f.message = std::move(message);
    return f;
  }
  static Finding WrongType(const At& at, std::string_view wanted, std::string_view given) {
    Finding f = Bad(at, Quote(given), fmt::format("must be of type {}: {}", wanted, Quote(given)));
    f.kind = Finding::Kind::kType;
    return f;
  }

  static std::string_view Wanted(const SchemaNode& s) {
    return s.int_or_string ? std::string_view("integer,string") : s.type;
  }
  static bool Takes(const SchemaNode& s, std::string_view type) {
    if (s.int_or_string) return type == "integer" || type == "string";
    return s.type == type;
  }
  // Formats that nobody knows are not asked for.
  static std::string_view FormatOf(const SchemaNode& s) {
    const std::string_view type = s.int_or_string ? std::string_view() : s.type;
    return !s.format.empty() && IsKnownFormat(s.format, type) ? s.format : std::string_view();
  }

  Outcome Null(const SchemaNode& s, const At& at) const {
    Outcome out;
    if (!Wanted(s).empty() && !s.nullable) {
      out.Add(WrongType(at, Wanted(s), "null"));
    } else {
      ++out.matches;
    }
    Enum(Value(), s, at, out);
    return out;
  }

  Outcome Present(Value v, Value old, const SchemaNode& s, const At& at) const {
    Outcome out;
    const std::string_view format = FormatOf(s);
    if (!Wanted(s).empty() || !format.empty()) {
      out.Merge(OfType(v, s, format, at));
      ++out.matches;
    }
    out.Merge(Junctors(v, old, s, at));
    ++out.matches;
    if (v.IsString()) {
      Text(v, s, at, out);
      ++out.matches;
      if (!format.empty()) {
        if (!HasFormat(v.AsString(), format)) out.Add(WrongType(at, format, v.AsString()));
        ++out.matches;
      }
    }
    if (v.IsNumber()) {
      NumberIn(v, s, format, at, out);
      out.matches += 2;
    }
    if (v.IsList()) {
      List(v, old, s, at, out);
      out.matches += 2;
    }
    Enum(v, s, at, out);
    ++out.matches;
    if (v.IsMap()) {
      Map(v, old, s, at, out);
      ++out.matches;
    }
    ++out.matches;
    return out;
  }

  static Outcome OfType(Value v, const SchemaNode& s, std::string_view format, const At& at) {
    Outcome out;
    const std::string_view type = TypeOf(v);
    const bool whole = v.kind() == Kind::kDouble && v.AsDouble() == std::floor(v.AsDouble()) &&
                       Takes(s, "integer");
    const bool fits = Takes(s, type) || whole || (type == "integer" && Takes(s, "number"));
    const bool texts = v.IsString() || v.IsList();
    const bool numbers = Takes(s, "number") || Takes(s, "integer");
    if (texts && !format.empty() && !numbers) {
      ++out.matches;
    } else if (fits || Wanted(s).empty()) {
      ++out.matches;
    } else {
      out.Add(WrongType(at, Wanted(s), type));
    }
    return out;
  }

  static void Enum(Value v, const SchemaNode& s, const At& at, Outcome& out) {
    if (s.enum_values.empty()) return;
    for (Value allowed : s.enum_values)
      if (!v.IsAbsent() && Equal(v, allowed)) return;
    Finding f;
    f.kind = Finding::Kind::kEnum;
    f.name = at.ToString();
    f.printed = v.IsAbsent() ? "null" : Printed(v);
    for (Value allowed : s.enum_values) {
      f.valid.push_back(allowed.IsString() ? std::string(allowed.AsString()) : ToJson(allowed));
    }
    f.message = fmt::format("{}{}should be one of [{}]", f.name, kIn, fmt::join(f.valid, " "));
    out.Add(std::move(f));
  }

  static void Text(Value v, const SchemaNode& s, const At& at, Outcome& out) {
    const std::string_view text = v.AsString();
    const auto length = static_cast<int64_t>(Runes(text));
    if (s.max_length && length > *s.max_length) {
      Finding f =
          Bad(at, Quote(text), fmt::format("should be at most {} chars long", *s.max_length));
      f.kind = Finding::Kind::kTooLong;
      f.max = *s.max_length;
      return out.Add(std::move(f));
    }
    if (s.min_length && length < *s.min_length) {
      return out.Add(
          Bad(at, Quote(text), fmt::format("should be at least {} chars long", *s.min_length)));
    }
    if (s.pattern.empty()) return;
    if (!s.expression || !re2::RE2::PartialMatch(Re2Text(text), *s.expression)) {
      out.Add(Bad(at, Quote(text), fmt::format("should match '{}'", s.pattern)));
    }
  }

  // Whole numbers are measured with whole bounds and factors.
  static std::partial_ordering Against(Value v, double bound) {
    if (v.IsInt()) return v.AsInt() <=> GoInt64(bound);
    return v.AsDouble() <=> bound;
  }
  static void MultipleOf(Value v, double factor, const At& at, Outcome& out) {
    const int64_t whole = GoInt64(factor);
    const std::string shown = v.IsInt() ? fmt::format("{}", whole) : GoFloat(factor);
    if (v.IsInt() ? whole <= 0 : factor <= 0) {
      Finding f = Bad(at, shown, "");
      f.message =
          fmt::format("factor MultipleOf declared for {} must be positive: {}", f.name, shown);
      return out.Add(std::move(f));
    }
    const double times = v.AsDouble() / factor;
    const bool fits =
        v.IsInt() ? v.AsInt() % whole == 0 : std::abs(times - std::round(times)) <= 1e-9;
    if (!fits) out.Add(Bad(at, Printed(v), fmt::format("should be a multiple of {}", shown)));
  }

  static void NumberIn(Value v, const SchemaNode& s, std::string_view format, const At& at,
                       Outcome& out) {
    const bool integer = v.IsInt();
    const double value = v.AsDouble();
    const auto shown = [integer](double bound) {
      return integer ? fmt::format("{}", GoInt64(bound)) : GoFloat(bound);
    };
    if (!integer && s.type == "integer" && value != std::floor(value)) {
      const std::string how =
          format.empty() ? std::string("(default format)") : fmt::format("with format {}", format);
      out.Add(
          Plain(fmt::format("Checked value must be of type integer {} in {}", how, at.ToString())));
    } else if (format == "int32" && (value > std::numeric_limits<int32_t>::max() ||
                                     value < std::numeric_limits<int32_t>::min())) {
      out.Add(Plain(fmt::format("Checked value must be of type integer with format int32 in {}",
                                at.ToString())));
    }
    if (format == "float" && std::abs(value) > std::numeric_limits<float>::max()) {
      out.Add(Plain(fmt::format("Checked value must be of type number with format float in {}",
                                at.ToString())));
    }
    if (s.multiple_of) MultipleOf(v, *s.multiple_of, at, out);
    const auto above = [&](double bound, bool exclusive) {
      const auto order = Against(v, bound);
      return order > 0 || (exclusive && order == 0);
    };
    const auto below = [&](double bound, bool exclusive) {
      const auto order = Against(v, bound);
      return order < 0 || (exclusive && order == 0);
    };
    if (s.minimum && below(*s.minimum, s.exclusive_minimum)) {
      out.Add(Bad(at, Printed(v),
                  fmt::format("should be greater than {}{}",
                              s.exclusive_minimum ? "" : "or equal to ", shown(*s.minimum))));
    }
    if (s.maximum && above(*s.maximum, s.exclusive_maximum)) {
      out.Add(Bad(at, Printed(v),
                  fmt::format("should be less than {}{}", s.exclusive_maximum ? "" : "or equal to ",
                              shown(*s.maximum))));
    }
  }

  void List(Value v, Value old, const SchemaNode& s, const At& at, Outcome& out) const {
    if (s.items) {
      const FormerItems former(old, s);
      size_t i = 0;
      for (Value item : v.items()) {
        out.Merge(Validate(item, former.Of(item), *s.items, at.Item("", i++), true));
      }
    }
    const auto size = static_cast<int64_t>(v.size());
    if (s.min_items && size < *s.min_items) {
      out.Add(Bad(at, fmt::format("{}", size),
                  fmt::format("should have at least {} items", *s.min_items)));
    }
    if (s.max_items && size > *s.max_items) {
      Finding f = Bad(at, "", fmt::format("should have at most {} items", *s.max_items));
      f.kind = Finding::Kind::kTooMany;
      f.max = *s.max_items;
      f.actual = size;
      out.Add(std::move(f));
    }
  }

  void Map(Value v, Value old, const SchemaNode& s, const At& at, Outcome& out) const {
    const auto size = static_cast<int64_t>(v.size());
    if (s.min_properties && size < *s.min_properties) {
      out.Add(Bad(at, fmt::format("{}", size),
                  fmt::format("should have at least {} properties", *s.min_properties)));
    }
    if (s.max_properties && size > *s.max_properties) {
      Finding f = Bad(at, "", fmt::format("should have at most {} properties", *s.max_properties));
      f.kind = Finding::Kind::kTooMany;
      f.max = *s.max_properties;
      f.actual = size;
      out.Add(std::move(f));
    }
    for (auto [key, value] : v.members()) {
      const SchemaNode* property = s.Property(key);
      const SchemaNode* child = property != nullptr ? property : s.additional.get();
      if (child == nullptr) {
        if (s.forbids_additional) {
          Finding f = Bad(at, Quote(key), "");
          f.message = fmt::format("{}.{} in body is a forbidden property", f.name, key);
          out.Add(std::move(f));
        }
        continue;
      }
      // At the root, Kubernetes has a dot before what is no property.
      const bool dotted = property == nullptr && at.IsRoot();
      const std::string name = dotted ? "." + std::string(key) : std::string();
      out.Merge(Validate(value, old[key], *child, at / (dotted ? name : key), true));
    }
    for (std::string_view name : s.required) {
      if (v.Has(name)) continue;
      Finding f;
      f.kind = Finding::Kind::kRequired;
      f.name = fmt::format("{}.{}", at.ToString(), name);
      f.message = fmt::format("{} in body is required", f.name);
      out.Add(std::move(f));
    }
  }

  Outcome Junctors(Value v, Value old, const SchemaNode& s, const At& at) const {
    Outcome out;
    const auto try_one = [&](const SchemaNode& node) { return Validate(v, old, node, at, false); };
    AnyOf(s, at, try_one, out);
    OneOf(s, at, try_one, out);
    if (!s.all_of.empty()) {
      size_t valid = 0;
      for (const auto& node : s.all_of) {
        Outcome one = try_one(*node);
        valid += one.valid() ? 1 : 0;
        out.Merge(std::move(one));
      }
      if (valid != s.all_of.size()) {
        out.Add(Plain(fmt::format("{} must validate all the schemas (allOf){}",
                                  Quote(at.ToString()), valid == 0 ? ". None validated" : "")));
      }
    }
    if (s.not_ && try_one(*s.not_).valid()) {
      out.Add(Plain(fmt::format("{} must not validate the schema (not)", Quote(at.ToString()))));
    }
    ++out.matches;
    return out;
  }

  template <typename Try>
  static void AnyOf(const SchemaNode& s, const At& at, const Try& try_one, Outcome& out) {
    if (s.any_of.empty()) return;
    std::optional<Outcome> best;
    for (const auto& node : s.any_of) {
      Outcome one = try_one(*node);
      if (one.valid()) return out.Merge(std::move(one));
      if (!best || one.matches > best->matches) best = std::move(one);
    }
    out.Add(
        Plain(fmt::format("{} must validate at least one schema (anyOf)", Quote(at.ToString()))));
    out.Merge(*std::move(best));
  }

  template <typename Try>
  static void OneOf(const SchemaNode& s, const At& at, const Try& try_one, Outcome& out) {
    if (s.one_of.empty()) return;
    std::optional<Outcome> best;
    std::optional<Outcome> first;
    int valid = 0;
    for (const auto& node : s.one_of) {
      Outcome one = try_one(*node);
      if (one.valid()) {
        ++valid;
        best.reset();
        if (!first) first = std::move(one);
      } else if (valid == 0 && (!best || one.matches > best->matches)) {
        best = std::move(one);
      }
    }
    if (valid == 1) return out.Merge(*std::move(first));
    out.Add(Plain(fmt::format("{} must validate one and only one schema (oneOf). {}",
                              Quote(at.ToString()),
                              valid == 0 ? std::string("Found none valid")
                                         : fmt::format("Found {} valid alternatives", valid))));
    if (best) out.Merge(*std::move(best));
  }
};

std::string Below(std::string_view path, std::string_view name) {
  while (name.starts_with('.')) name.remove_prefix(1);
  if (name.empty()) return std::string(path);
  if (path.empty()) return std::string(name);
  return fmt::format("{}.{}", path, name);
}

void Tell(Finding& f, std::string_view path, FieldErrors& errors) {
  std::string at = Below(path, f.name);
  switch (f.kind) {
    case Finding::Kind::kRequired:
      return errors.Required(std::move(at), "");
    case Finding::Kind::kEnum:
      return errors.NotSupportedRaw(std::move(at), f.printed, std::move(f.valid));
    case Finding::Kind::kTooLong:
      return errors.TooLong(std::move(at), static_cast<int>(f.max));
    case Finding::Kind::kTooMany:
      return errors.TooMany(std::move(at), static_cast<int>(f.actual), static_cast<int>(f.max));
    case Finding::Kind::kType:
      return errors.TypeInvalidRaw(std::move(at), f.printed, std::move(f.message));
    case Finding::Kind::kInvalid:
      return errors.InvalidRaw(std::move(at), f.printed, std::move(f.message));
    case Finding::Kind::kPlain:
      // Kubernetes gives these no path at the root.
      return errors.InvalidRaw(path.empty() ? "<nil>" : std::string(path), "\"\"",
                               std::move(f.message));
  }
}

// Calls `visit(value, schema, at)` for what lies directly in `v` and has a schema.
template <typename Visit>
void EachBelow(Value v, const SchemaNode& schema, const At& at, const Visit& visit) {
  size_t i = 0;
  for (Value item : v.items()) {
    if (schema.items) visit(item, *schema.items, at.Item("", i++));
  }
  for (auto [key, value] : v.members()) {
    const SchemaNode* property = schema.Property(key);
    if (property != nullptr) {
      visit(value, *property, at / key);
    } else if (schema.additional) {
      visit(value, *schema.additional, at.Key("", key));
    }
  }
}

// --- list types ----------------------------------------------------------------------------------

// Positions of the second of equal items; later ones of the same are not told again.
std::vector<size_t> Twice(const std::vector<std::string>& keys) {
  std::unordered_map<std::string_view, int> seen;
  std::vector<size_t> twice;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (++seen[keys[i]] == 2) twice.push_back(i);
  }
  return twice;
}

void CheckSet(Value list, const At& at, FieldErrors& errors) {
  std::vector<std::string> keys;
  for (Value item : list.items()) keys.push_back(ToJson(item));
  for (size_t i : Twice(keys)) errors.DuplicateRaw(at.Item("", i), keys[i]);
}

void CheckKeyed(Value list, const SchemaNode& schema, const At& at, FieldErrors& errors) {
  const ItemKeys keys_of(schema);
  std::vector<std::string> keys;
  for (Value item : list.items()) {
    if (!item.IsMap() && !item.IsNull()) {
      return errors.Invalid(at.Item("", keys.size()), item,
                            "must be an object for an array of list-type map");
    }
    keys.push_back(keys_of.Of(item));
  }
  for (size_t i : Twice(keys)) errors.DuplicateRaw(at.Item("", i), keys[i]);
}

void CheckLists(Value v, const SchemaNode& schema, const At& at, FieldErrors& errors) {
  if (v.IsList() && schema.list_type == "set") CheckSet(v, at, errors);
  if (v.IsList() && schema.list_type == "map") CheckKeyed(v, schema, at, errors);
  EachBelow(v, schema, at, [&errors](Value value, const SchemaNode& below, const At& here) {
    CheckLists(value, below, here, errors);
  });
}

// --- embedded resources --------------------------------------------------------------------------

Complaints PathSegment(std::string_view name, bool) { return IsPathSegmentName(name); }

void CheckApiVersion(Value v, const At& at, FieldErrors& errors) {
  if (!v.IsString()) return errors.Invalid(at, v, "must be a string");
  const std::string_view text = v.AsString();
  if (text.empty()) return errors.InvalidText(at, text, "must not be empty");
  Complain(IsGroupVersion(text), text, at, errors);
}

void CheckKind(Value v, const At& at, FieldErrors& errors) {
  if (!v.IsString()) return errors.Invalid(at, v, "must be a string");
  if (v.AsString().empty()) return errors.InvalidText(at, "", "must not be empty");
  Complain(IsMixedCaseLabel(v.AsString()), v.AsString(), at, errors);
}

void CheckMetadata(Value metadata, const At& at, FieldErrors& errors) {
  const Rules rules{.validate_name = PathSegment, .free_finalizers = true};
  Editor named(CopyOf(metadata));
  // A name is not asked for.
  if (metadata["name"].AsString().empty()) named.Root().Set("name", "fakename");
  const Object whole = std::move(named).Finish();
  FieldErrors own;
  ValidateObjectMeta(whole.root(), !metadata["namespace"].AsString().empty(), rules, own);
  for (Cause& cause : own.Take()) {
    cause.field = at / cause.field;
    errors.Add(std::move(cause));
  }
}

void CheckEmbedded(Value v, const SchemaNode& schema, const At& at, FieldErrors& errors) {
  if (v.IsMap() && schema.embedded) {
    for (const char* name : {"apiVersion", "kind"})
      if (!v.Has(name)) errors.Required(at / name, "");
    if (v.Has("apiVersion")) CheckApiVersion(v["apiVersion"], at / "apiVersion", errors);
    if (v.Has("kind")) CheckKind(v["kind"], at / "kind", errors);
    if (v["metadata"]) CheckMetadata(v["metadata"], at, errors);
  }
  EachBelow(v, schema, at, [&errors](Value value, const SchemaNode& below, const At& here) {
    CheckEmbedded(value, below, here, errors);
  });
}

// The first that cannot be read; "" if all can.
std::string MetadataError(Value v, const SchemaNode& schema, const At& at) {
  if (const Value metadata = v["metadata"]; schema.embedded && metadata) {
    const std::string json = ToJson(metadata);
    const Result<Object> read = DecodeJson(json, ObjectMeta());
    if (!read) {
      return fmt::format("{}: Invalid value: {}: {}", (at / "metadata").ToString(), json,
                         read.error().message);
    }
  }
  std::string why;
  EachBelow(v, schema, at, [&why](Value value, const SchemaNode& below, const At& here) {
    if (why.empty()) why = MetadataError(value, below, here);
  });
  return why;
}

}  // namespace

std::string EmbeddedTypeError(Value object, const SchemaNode& schema) {
  return MetadataError(object, schema, At());
}

void ValidateBySchema(Value value, Value old, const SchemaNode& schema, std::string_view path,
                      FieldErrors& errors) {
  Outcome outcome = Validator().Validate(value, old, schema, At(), !old.IsAbsent());
  for (Finding& finding : outcome.findings) Tell(finding, path, errors);
}

void ValidateListTypes(Value object, const SchemaNode& schema, FieldErrors& errors) {
  CheckLists(object, schema, At(), errors);
}

void ValidateEmbedded(Value object, const SchemaNode& schema, FieldErrors& errors) {
  CheckEmbedded(object, schema, At(), errors);
}

}  // namespace sextant::api
