// FieldSelector of selector.h.
#include <fmt/format.h>

#include <algorithm>

#include "api/json_scan.h"
#include "api/selector.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxSelectorBytes = size_t{1} << 20;

// Names that are no JSON path of the object.
struct Alias {
  std::string_view kind;
  std::string_view field;
  std::string_view path;
  std::string_view other_path;
};
constexpr Alias kAliases[] = {
    {"Pod", "spec.host", "spec.nodeName", ""},
    {"Namespace", "name", "metadata.name", ""},
    {"Event", "source", "source.component", "reportingComponent"},
    {"Job", "status.successful", "status.succeeded", ""},
};

std::vector<std::string> SplitTerms(std::string_view text) {
  std::vector<std::string> terms;
  if (text.empty()) return terms;
  size_t start = 0;
  bool slash = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (slash) {
      slash = false;
    } else if (text[i] == '\\') {
      slash = true;
    } else if (text[i] == ',') {
      terms.emplace_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  terms.emplace_back(text.substr(start));
  std::ranges::sort(terms);
  return terms;
}

Result<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ',' || c == '=') {
      // Kubernetes prints the number of the character.
      return Fail(BadRequest(fmt::format("invalid field selector: unescaped character in value: {}",
                                         static_cast<int>(c))));
    }
    if (c == '\\') {
      if (i + 1 == text.size() || std::string_view("\\,=").find(text[i + 1]) == text.npos) {
        std::string_view rest = text.substr(i + 1);
        size_t rune = rest.empty() ? 0 : std::max<size_t>(1, Utf8Length(rest));
        return Fail(BadRequest("invalid field selector: invalid escape sequence: " +
                               std::string(text.substr(i, 1 + rune))));
      }
      c = text[++i];
    }
    out += c;
  }
  return out;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

// What Go's zero value of the field prints as.
std::string ZeroText(const Message* message, std::string_view path) {
  const Field* field = nullptr;
  while (message != nullptr) {
    size_t dot = path.find('.');
    field = message->FindField(path.substr(0, dot));
    if (field == nullptr || dot == std::string_view::npos) break;
    message = field->message;
    path.remove_prefix(dot + 1);
  }
  if (field == nullptr) return "";
  switch (field->type) {
    case Type::kBool:
      return "false";
    case Type::kInt32:
    case Type::kInt64:
    case Type::kUint32:
      return "0";
    default:
      return "";
  }
}

std::string Unsupported(const Resource& resource, const std::string& field) {
  const bool custom = resource.message != nullptr && resource.message->custom;
  if (resource.selectable_fields.empty() && !custom) {
    return Quote(field) +
           " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
  }
  // Each kind has its own words.
  if (resource.kind == "Job") return "field label " + Quote(field) + " not supported for Job";
  if (resource.kind == "ResourceSlice") {
    return "field label not supported for " + resource.group_version.ToString() +
           ", Kind=ResourceSlice: " + field;
  }
  return "field label not supported: " + field;
}

std::string Text(Value v) {
  switch (v.kind()) {
    case Kind::kString:
      return std::string(v.AsString());
    case Kind::kBool:
      return v.AsBool() ? "true" : "false";
    case Kind::kInt:
      return std::to_string(v.AsInt());
    default:
      return "";
  }
}

}  // namespace

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  if (text.size() > kMaxSelectorBytes) return Fail(BadRequest("field selector is too long"));
  FieldSelector s;
  for (const std::string& term : SplitTerms(text)) {
    if (term.empty()) continue;
    size_t at = 0;
    while (at < term.size() && term[at] != '=' && term.compare(at, 2, "!=") != 0) ++at;
    if (at == term.size()) {
      return Fail(
          BadRequest(fmt::format("invalid selector: '{}'; can't understand '{}'", text, term)));
    }
    size_t size = term[at] == '!' || term.compare(at, 2, "==") == 0 ? 2 : 1;
    ASSIGN_OR_RETURN(std::string value, Unescape(std::string_view(term).substr(at + size)));
    s.requirements_.push_back({term.substr(0, at), std::move(value), term[at] != '!'});
  }
  return s;
}

Status FieldSelector::Bind(const Resource& resource) {
  std::vector<Bound> bound;
  for (const FieldRequirement& r : requirements_) {
    bool known =
        r.field == "metadata.name" || r.field == "metadata.namespace" ||
        std::ranges::find(resource.selectable_fields, r.field) != resource.selectable_fields.end();
    Bound b{r.field, "", ""};
    for (const Alias& a : kAliases) {
      if (a.kind != resource.kind || a.field != r.field) continue;
      b.path = a.path;
      b.other_path = a.other_path;
      known = true;
    }
    if (!known) return Fail(BadRequest(Unsupported(resource, r.field)));
    b.absent = ZeroText(resource.message, b.path);
    bound.push_back(std::move(b));
  }
  bound_ = std::move(bound);
  return {};
}

bool FieldSelector::Matches(Value object) const {
  for (size_t i = 0; i < requirements_.size(); ++i) {
    const FieldRequirement& r = requirements_[i];
    const Bound* b = i < bound_.size() ? &bound_[i] : nullptr;
    Value v = object.Path(b != nullptr ? b->path : r.field);
    if (b != nullptr && !v && !b->other_path.empty()) v = object.Path(b->other_path);
    std::string text = v || b == nullptr ? Text(v) : b->absent;
    if ((text == r.value) != r.equal) return false;
  }
  return true;
}

std::string FieldSelector::ToString() const {
  std::string out;
  for (const FieldRequirement& r : requirements_) {
    if (!out.empty()) out += ',';
    out += r.field + (r.equal ? "=" : "!=") + Escape(r.value);
  }
  return out;
}

std::string_view FieldSelector::Exact(std::string_view field) const {
  for (const FieldRequirement& r : requirements_) {
    if (r.equal && r.field == field) return r.value;
  }
  return {};
}

}  // namespace sextant::api
