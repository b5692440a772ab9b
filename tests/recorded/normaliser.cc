#include "normaliser.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/base64.h"
#include "net/tls.h"

namespace sextant::recorded {
namespace {

const RE2& Uid() {
  static const RE2 re("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
  return re;
}

// Replaces each match of `re` (whose whole match is group 1) by what `by` makes of it.
template <typename F>
std::string ReplaceEach(const std::string& text, const RE2& re, F by) {
  std::string out;
  re2::StringPiece rest(text);
  re2::StringPiece whole(text);
  size_t at = 0;
  re2::StringPiece groups[4];
  const int count = std::min(re.NumberOfCapturingGroups() + 1, 4);
  while (at <= text.size() && re.Match(whole, at, text.size(), RE2::UNANCHORED, groups, count)) {
    const size_t begin = static_cast<size_t>(groups[0].data() - text.data());
    out += text.substr(at, begin - at);
    out += by(groups);
    at = begin + groups[0].size();
    if (groups[0].empty()) break;
  }
  return out + text.substr(std::min(at, text.size()));
}

std::string Str(const re2::StringPiece& piece) { return std::string(piece.data(), piece.size()); }

bool Digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool ItemNamed(const Json& item, const std::vector<std::string>& wanted) {
  std::string name;
  if (item.is_object()) {
    if (item.contains("metadata") && item["metadata"].contains("name")) {
      name = item["metadata"]["name"].get<std::string>();
    } else if (item.contains("name") && item["name"].is_string()) {
      name = item["name"].get<std::string>();
    } else if (item.contains("object") && item["object"].is_object() &&
               item["object"].contains("metadata")) {
      name = item["object"]["metadata"].value("name", "");
    }
  }
  for (const std::string& want : wanted) {
    if (want == name) return true;
    if (want.ends_with("*") && name.starts_with(want.substr(0, want.size() - 1))) return true;
  }
  return false;
}

void FilterItems(Json& body, const std::vector<std::string>& wanted) {
  for (const char* key : {"items", "resources", "groups", "rows"}) {
    if (!body.is_object() || !body.contains(key) || !body[key].is_array()) continue;
    Json kept = Json::array();
    for (const Json& item : body[key])
      if (ItemNamed(item, wanted)) kept.push_back(item);
    body[key] = kept;
  }
}

void DropDescriptions(Json& value) {
  if (value.is_object()) {
    if (value.contains("description") && value["description"].is_string()) {
      value.erase("description");
    }
    for (auto& [key, child] : value.items()) DropDescriptions(child);
  } else if (value.is_array()) {
    for (Json& child : value) DropDescriptions(child);
  }
}

void DropColumnProse(Json& value) {
  if (value.is_object()) {
    for (auto& [key, child] : value.items()) {
      key == "columnDefinitions" ? DropDescriptions(child) : DropColumnProse(child);
    }
  } else if (value.is_array()) {
    for (Json& child : value) DropColumnProse(child);
  }
}

void DropManagedFields(Json& value) {
  if (value.is_object()) {
    for (auto& [key, child] : value.items()) {
      if (key == "metadata" && child.is_object()) child.erase("managedFields");
      DropManagedFields(child);
    }
  } else if (value.is_array()) {
    for (Json& child : value) DropManagedFields(child);
  }
}

bool IsListLike(const Json& object) {
  if (object.contains("items") || object.contains("rows")) return true;
  return object.contains("kind") && object["kind"].is_string() &&
         object["kind"].get<std::string>().ends_with("List");
}

constexpr size_t kGeneratedBase = 58;

}  // namespace

std::string Normaliser::Number(const std::string& word, const std::string& value) {
  auto& known = numbers_[word];
  const auto [it, fresh] = known.try_emplace(value, static_cast<int>(known.size()) + 1);
  return fmt::format("<{}-{}>", word, it->second);
}

void Normaliser::NoteGenerated(const std::string& name, size_t prefix) {
  for (const auto& [known, placeholder] : generated_)
    if (known == name) return;
  generated_.emplace_back(name,
                          name.substr(0, prefix) + fmt::format("<gen-{}>", generated_.size() + 1));
}

void Normaliser::FindGenerated(const Json& value) {
  static const RE2 suffix("[bcdfghjklmnpqrstvwxz2456789]{5}");
  static const RE2 token("(kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5})");
  if (value.is_object()) {
    if (value.contains("metadata") && value["metadata"].is_object()) {
      const Json& metadata = value["metadata"];
      const std::string base = metadata.value("generateName", "").substr(0, kGeneratedBase);
      const std::string name = metadata.value("name", "");
      if (!base.empty() && name.size() == base.size() + 5 && name.starts_with(base) &&
          RE2::FullMatch(name.substr(base.size()), suffix)) {
        NoteGenerated(name, base.size());
      }
    }
    for (const auto& [key, child] : value.items()) FindGenerated(child);
  } else if (value.is_array()) {
    for (const Json& child : value) FindGenerated(child);
  } else if (value.is_string()) {
    const std::string text = value.get<std::string>();
    re2::StringPiece input(text);
    std::string found;
    while (RE2::FindAndConsume(&input, token, &found)) NoteGenerated(found, found.size() - 5);
  }
}

std::string Normaliser::Strings(std::string text, const NormaliseOptions& options) {
  text = ReplaceEach(text, Uid(), [&](auto* g) { return Number("uid", Str(g[0])); });
  for (const auto& [name, placeholder] : generated_) {
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + placeholder.size())) {
      text.replace(at, name.size(), placeholder);
    }
  }
  static const RE2 time("(20[2-9][0-9])-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z");
  text = ReplaceEach(text, time, [](auto* g) {
    if (std::stoi(Str(g[1])) < 2025) return Str(g[0]);
    return g[2].empty() ? std::string("<time>") : fmt::format("<time.{}>", g[2].size() - 1);
  });
  static const RE2 version(
      "(ResourceVersion in precondition: |ResourceVersion in object meta: |ResourceVersion in the "
      "precondition \\(|ResourceVersion in record \\()([0-9]+)");
  text = ReplaceEach(text, version, [&](auto* g) {
    if (g[2] == "0") return Str(g[0]);
    return Str(g[1]) + Number("rv", Str(g[2]));
  });
  static const RE2 current("(Too large resource version: [0-9]+, current: )[0-9]+");
  text = ReplaceEach(text, current, [](auto* g) { return Str(g[1]) + "<rv>"; });
  static const RE2 ip("10\\.96\\.([0-9]+)\\.[0-9]+");
  std::string third;
  if (RE2::FullMatch(text, ip, &third) && third != "0") return Number("ip", text);
  static const RE2 credential("X509SHA256=[0-9a-f]{64}");
  RE2::GlobalReplace(&text, credential, "X509SHA256=<hash>");
  static const RE2 patched("(?s)Invalid value: \"\\{\\\\\"apiVersion.*\": ");
  RE2::Replace(&text, patched, "Invalid value: \"<patched>\": ");
  static const RE2 hash("hash=[0-9A-F]{32,}");
  RE2::GlobalReplace(&text, hash, "hash=<hash>");
  if (!options.server.empty()) {
    for (size_t at = text.find(options.server); at != std::string::npos;
         at = text.find(options.server)) {
      text.replace(at, options.server.size(), "<server>");
    }
  }
  return text;
}

bool Normaliser::Jwt(Json& value, const NormaliseOptions& options) {
  static const RE2 jwt("(eyJ[A-Za-z0-9_-]+)\\.([A-Za-z0-9_-]+)\\.[A-Za-z0-9_-]+");
  std::string header;
  std::string claims;
  if (!RE2::FullMatch(value.get<std::string>(), jwt, &header, &claims)) return false;
  const auto part = [&](const std::string& text) {
    auto raw = Base64UrlDecode(text);
    Json json = raw ? Json::parse(*raw, nullptr, false) : Json();
    if (json.is_object()) {
      if (json.contains("kid")) json["kid"] = "<kid>";
      for (Json* level : {&json, json.contains("kubernetes.io") ? &json["kubernetes.io"] : &json}) {
        for (const char* key : {"exp", "iat", "nbf", "warnafter"}) {
          if (level->contains(key)) (*level)[key] = "<time>";
        }
      }
    }
    Walk(json, "", {}, options);
    return json;
  };
  Json out = Json::object();
  out["header"] = part(header);
  out["claims"] = part(claims);
  value = out;
  return true;
}

void Normaliser::WalkCells(Json& table) {
  static const RE2 age("([0-9]+(y|d|h|m|s))+");
  if (table.contains("columnDefinitions") && table["columnDefinitions"].is_array()) {
    columns_.clear();
    for (const Json& column : table["columnDefinitions"])
      columns_.push_back(column.value("name", ""));
  }
  if (!table.contains("rows") || !table["rows"].is_array()) return;
  for (Json& row : table["rows"]) {
    if (!row.is_object() || !row.contains("cells") || !row["cells"].is_array()) continue;
    Json& cells = row["cells"];
    for (size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
      const std::string& name = columns_[i];
      const bool timed = name == "Age" || name == "Last Seen" || name == "First Seen" ||
                         name == "Duration" || name == "Last Schedule";
      if (timed && cells[i].is_string() && RE2::FullMatch(cells[i].get<std::string>(), age)) {
        cells[i] = "<age>";
      }
    }
  }
}

void Normaliser::WalkObject(Json& object, const Place& place, const NormaliseOptions& options) {
  WalkCells(object);
  const bool bookmark = object.contains("type") && object["type"] == "BOOKMARK";
  const bool list = IsListLike(object);
  for (auto& [key, child] : object.items()) {
    Place inner;
    inner.version = place.version;
    if (key == "metadata") inner.list_metadata = list || place.list_metadata;
    if (key == "object" && bookmark) inner.list_metadata = true;
    if (place.list_metadata && key == "resourceVersion") inner.list_metadata = true;
    Walk(child, key, inner, options);
  }
  // Keys last: uids only.
  Json renamed = Json::object();
  for (auto& [key, child] : object.items()) {
    renamed[ReplaceEach(key, Uid(), [&](auto* g) { return Number("uid", Str(g[0])); })] = child;
  }
  object = renamed;
}

void Normaliser::Walk(Json& value, const std::string& key, const Place& place,
                      const NormaliseOptions& options) {
  if (value.is_object()) return WalkObject(value, place, options);
  if (value.is_array()) {
    for (Json& child : value) Walk(child, "", {}, options);
    if (key == "managedFields") {
      std::sort(value.begin(), value.end(),
                [](const Json& a, const Json& b) { return a.dump() < b.dump(); });
    }
    return;
  }
  if ((key == "nodePort" || key == "healthCheckNodePort") && value.is_number() &&
      value.get<int64_t>() >= 30086) {
    value = "<port>";
    return;
  }
  if (!value.is_string()) return;
  const std::string text = value.get<std::string>();
  if (key == "resourceVersion" && Digits(text) && text != "0") {
    value = place.list_metadata ? std::string("<rv>") : Number("rv", text);
  } else if (key == "continue" && !text.empty()) {
    value = "<continue>";
  } else if (key == "serverAddress") {
    value = "<server>";
  } else if (place.version && key == "gitVersion") {
    value = text.substr(0, text.find('+'));
  } else if (place.version && (key == "gitCommit" || key == "gitTreeState" || key == "buildDate" ||
                               key == "goVersion" || key == "compiler" || key == "platform")) {
    value = "<text>";
  } else if (key.empty() || !Jwt(value, options)) {
    value = Strings(text, options);
  }
}

Json Normaliser::Body(Json body, const NormaliseOptions& options) {
  if (!options.items.empty()) FilterItems(body, options.items);
  if (options.path.starts_with("/openapi/")) DropDescriptions(body);
  DropColumnProse(body);
  if (!options.keep_managed_fields) DropManagedFields(body);
  FindGenerated(body);
  Place place;
  place.version = options.path.starts_with("/version");
  Walk(body, "", place, options);
  return body;
}

std::string Normaliser::Text(const std::string& text, const NormaliseOptions& options) {
  return Strings(text, options);
}

}  // namespace sextant::recorded
