// WriteYaml of yaml.h, over libyaml's emitter, which breaks lines and quotes as Go's port of it
// does.
#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>

#include "api/yaml.h"
#include "base/ascii.h"
#include "base/check.h"

namespace sextant::api {
namespace {

bool Letter(char c) { return IsLetter(c) || static_cast<signed char>(c) < 0; }

struct Run {
  int64_t value = 0;
  size_t end = 0;
};

Run ReadDigits(std::string_view s, size_t at, int64_t start) {
  constexpr size_t kMost = 18;
  Run run{start, at};
  for (; run.end < s.size() && IsDigit(s[run.end]); ++run.end) {
    if (run.end - at < kMost) run.value = run.value * 10 + (s[run.end] - '0');
  }
  return run;
}

// The order of keys: letters by code, runs of digits by value.
bool NaturalLess(std::string_view a, std::string_view b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    bool al = Letter(a[i]), bl = Letter(b[i]);
    if (al && bl) return static_cast<uint8_t>(a[i]) < static_cast<uint8_t>(b[i]);
    if (al || bl) return bl;
    int64_t start = 0;
    if (a[i] == '0' || b[i] == '0') {
      for (size_t j = i; j-- > 0 && IsDigit(a[j]);) {
        if (a[j] != '0') start = 1;
      }
    }
    Run ra = ReadDigits(a, i, start), rb = ReadDigits(b, i, start);
    if (ra.value != rb.value) return ra.value < rb.value;
    if (ra.end != rb.end) return ra.end < rb.end;
    return a[i] < b[i];
  }
  return a.size() < b.size();
}

struct KeyLess {
  bool operator()(std::string_view a, std::string_view b) const { return NaturalLess(a, b); }
};

// [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?, a number in base 60 for other readers.
bool Base60(std::string_view s) {
  if (s.starts_with('-') || s.starts_with('+')) s.remove_prefix(1);
  size_t at = 0;
  if (s.empty() || !IsDigit(s[0])) return false;
  while (at < s.size() && (IsDigit(s[at]) || s[at] == '_')) ++at;
  size_t groups = 0;
  for (; at < s.size() && s[at] == ':'; ++groups) {
    ++at;
    size_t n = 0;
    while (at + n < s.size() && IsDigit(s[at + n])) ++n;
    if (n == 0 || n > 2 || (n == 2 && s[at] > '5')) return false;
    at += n;
  }
  if (at < s.size() && s[at] == '.') {
    ++at;
    while (at < s.size() && (IsDigit(s[at]) || s[at] == '_')) ++at;
  }
  return groups > 0 && at == s.size();
}

bool StaysText(std::string_view s) {
  if (ResolveYaml(s).kind != YamlKind::kText || s == "<<" || Base60(s)) return false;
  // A time.
  bool time = s.size() > 4 && std::ranges::all_of(s.substr(0, 4), IsDigit) && s[4] == '-';
  return !time;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, &Writer::Append, &out_);
    yaml_emitter_set_unicode(&emitter_, 1);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { yaml_emitter_delete(&emitter_); }

  void Document(Value v) {
    yaml_event_t e;
    yaml_stream_start_event_initialize(&e, YAML_UTF8_ENCODING);
    Emit(e);
    yaml_document_start_event_initialize(&e, nullptr, nullptr, nullptr, 1);
    Emit(e);
    Any(v);
    yaml_document_end_event_initialize(&e, 1);
    Emit(e);
    yaml_stream_end_event_initialize(&e);
    Emit(e);
  }

 private:
  static int Append(void* to, unsigned char* bytes, size_t n) {
    static_cast<std::string*>(to)->append(reinterpret_cast<char*>(bytes), n);
    return 1;
  }

  void Emit(yaml_event_t& e) { CHECK(yaml_emitter_emit(&emitter_, &e) != 0); }

  void Scalar(std::string_view text, yaml_scalar_style_t style) {
    yaml_event_t e;
    int plain = style == YAML_PLAIN_SCALAR_STYLE;
    yaml_scalar_event_initialize(&e, nullptr, nullptr,
                                 reinterpret_cast<const yaml_char_t*>(text.data()),
                                 static_cast<int>(text.size()), plain || true, true, style);
    Emit(e);
  }

  void String(std::string_view s) {
    if (s.find('\n') != std::string_view::npos) return Scalar(s, YAML_LITERAL_SCALAR_STYLE);
    Scalar(s, StaysText(s) ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
  }

  void Any(Value v) {
    switch (v.kind()) {
      case Kind::kAbsent:
      case Kind::kNull:
        return Scalar("null", YAML_PLAIN_SCALAR_STYLE);
      case Kind::kBool:
        return Scalar(v.AsBool() ? "true" : "false", YAML_PLAIN_SCALAR_STYLE);
      case Kind::kInt:
      case Kind::kDouble:
        return Scalar(ToJson(v), YAML_PLAIN_SCALAR_STYLE);
      case Kind::kString:
        return String(v.AsString());
      case Kind::kList:
        return List(v);
      case Kind::kMap:
        return Map(v);
    }
  }

  void List(Value v) {
    yaml_event_t e;
    yaml_sequence_start_event_initialize(
        &e, nullptr, nullptr, 1, v.empty() ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
    Emit(e);
    for (Value item : v.items()) Any(item);
    yaml_sequence_end_event_initialize(&e);
    Emit(e);
  }

  void Map(Value v) {
    std::multimap<std::string_view, Value, KeyLess> members;
    for (MemberView m : v.members()) members.emplace(m.key, m.value);
    yaml_event_t e;
    yaml_mapping_start_event_initialize(
        &e, nullptr, nullptr, 1, v.empty() ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
    Emit(e);
    for (const auto& [key, value] : members) {
      String(key);
      Any(value);
    }
    yaml_mapping_end_event_initialize(&e);
    Emit(e);
  }

  std::string& out_;
  yaml_emitter_t emitter_{};
};

}  // namespace

void WriteYaml(Value v, std::string& out) { Writer(out).Document(v); }

}  // namespace sextant::api
