// WriteJson of json.h.
#include <charconv>
#include <cmath>
#include <cstring>

#include "api/json.h"
#include "api/json_scan.h"
#include "base/utf8.h"

namespace sextant::api {
namespace {

// What a thread writes into, kept from one text to the next.
std::vector<char>& Buffer() {
  constexpr size_t kFirst = 4096;
  thread_local std::vector<char> buffer(kFirst);
  return buffer;
}

// Appends to a thread's buffer with as few checks as the text allows.
class Writer {
 public:
  explicit Writer(const JsonStyle& style)
      : style_(style), buffer_(Buffer()), at_(buffer_.data()), end_(at_ + buffer_.size()) {}

  void Root(const Node& n) {
    if (style_.omit_type_meta && n.kind == Kind::kMap) {
      Map(n, 0, [](std::string_view key) { return key != "kind" && key != "apiVersion"; });
    } else {
      Any(n, 0);
    }
    if (style_.newline) Put('\n');
  }

  void String(std::string_view s) {
    Room(s.size() + 2);
    Unchecked('"');
    const char* p = s.data();
    const char* end = p + s.size();
    const char* stop = FindEscape(p, end, style_.escape_html);
    Unchecked({p, stop});
    while (stop != end) {
      p = Escape(stop, end);
      stop = FindEscape(p, end, style_.escape_html);
      Raw({p, stop});
    }
    Put('"');
  }

  void AppendTo(std::string& out) {
    out.append(buffer_.data(), at_);
    constexpr size_t kKeep = size_t{4} << 20;
    if (buffer_.size() > kKeep) buffer_ = std::vector<char>(kKeep / 1024);
  }

 private:
  void Room(size_t n) {
    if (static_cast<size_t>(end_ - at_) < n) [[unlikely]]
      Grow(n);
  }
  [[gnu::noinline]] void Grow(size_t n) {
    auto used = static_cast<size_t>(at_ - buffer_.data());
    buffer_.resize((used + n) * 2);
    at_ = buffer_.data() + used;
    end_ = buffer_.data() + buffer_.size();
  }
  void Unchecked(char c) { *at_++ = c; }
  void Unchecked(std::string_view s) {
    if (!s.empty()) std::memcpy(at_, s.data(), s.size());
    at_ += s.size();
  }
  void Put(char c) {
    Room(1);
    Unchecked(c);
  }
  void Raw(std::string_view s) {
    Room(s.size());
    Unchecked(s);
  }

  // Writes what stands for the character at `p`; returns where the next one starts.
  const char* Escape(const char* p, const char* end) {
    constexpr std::string_view kHex = "0123456789abcdef";
    auto c = static_cast<uint8_t>(*p);
    if (c >= 0x80) {
      size_t n = Utf8Length({p, end});
      if (n == 0) {
        Raw("\\ufffd");
        return p + 1;
      }
      // Line and paragraph separators, which JavaScript could not bear.
      bool separator = n == 3 && c == 0xE2 && static_cast<uint8_t>(p[1]) == 0x80 &&
                       (static_cast<uint8_t>(p[2]) & 0xFE) == 0xA8;
      if (separator) {
        Raw(p[2] & 1 ? "\\u2029" : "\\u2028");
      } else {
        Raw({p, n});
      }
      return p + n;
    }
    switch (c) {
      case '"':
        Raw("\\\"");
        break;
      case '\\':
        Raw("\\\\");
        break;
      case '\b':
        Raw("\\b");
        break;
      case '\f':
        Raw("\\f");
        break;
      case '\n':
        Raw("\\n");
        break;
      case '\r':
        Raw("\\r");
        break;
      case '\t':
        Raw("\\t");
        break;
      default:
        Raw("\\u00");
        Put(kHex[c >> 4]);
        Put(kHex[c & 15]);
    }
    return p + 1;
  }

  void Any(const Node& n, int depth) {
    switch (n.kind) {
      case Kind::kAbsent:
      case Kind::kNull:
        return Raw("null");
      case Kind::kBool:
        return Raw(n.boolean ? "true" : "false");
      case Kind::kInt:
        return Integer(n.integer);
      case Kind::kDouble:
        return Float(n.number);
      case Kind::kString:
        return String({n.text, n.size});
      case Kind::kList:
        return List(n, depth);
      case Kind::kMap:
        return Map(n, depth, [](std::string_view) { return true; });
    }
  }

  void Integer(int64_t v) {
    constexpr size_t kMost = 20;
    Room(kMost);
    at_ = std::to_chars(at_, at_ + kMost, v).ptr;
  }

  // Go: shortest digits that read back the same, then zeros; with exponent below 1e-6 and from 1e21
  // on, written e-7 and e+21.
  void Float(double v) {
    if (!std::isfinite(v)) return Raw("null");
    char text[64];
    double size = std::fabs(v);
    bool exponent = size != 0 && (size < 1e-6 || size >= 1e21);
    constexpr double kExact = 9007199254740992.0;  // from here on to_chars prints all digits
    if (!exponent && size >= kExact) return LargeWhole(v);
    auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
    char* end = std::to_chars(text, text + sizeof(text), v, format).ptr;
    auto n = static_cast<size_t>(end - text);
    if (exponent && n >= 4 && text[n - 4] == 'e' && text[n - 3] == '-' && text[n - 2] == '0') {
      text[n - 2] = text[n - 1];
      --n;
    }
    Raw({text, n});
  }

  void LargeWhole(double v) {
    char text[64];
    char* end = std::to_chars(text, text + sizeof(text), v, std::chars_format::scientific).ptr;
    std::string digits;
    int exponent = 0;
    for (char* p = text; p != end; ++p) {
      if (*p == 'e') {
        std::from_chars(p + 2, end, exponent);  // behind the plus
        break;
      }
      if (*p != '.') digits += *p;
    }
    digits.resize(static_cast<size_t>(exponent) + (v < 0 ? 2 : 1), '0');
    Raw(digits);
  }

  void Line(int depth) {
    if (style_.indent == 0) return;
    auto spaces = static_cast<size_t>(depth * style_.indent);
    Room(spaces + 1);
    Unchecked('\n');
    std::memset(at_, ' ', spaces);
    at_ += spaces;
  }

  void List(const Node& n, int depth) {
    Put('[');
    for (uint32_t i = 0; i < n.size; ++i) {
      if (i != 0) Put(',');
      Line(depth + 1);
      Any(n.items[i], depth + 1);
    }
    if (n.size != 0) Line(depth);
    Put(']');
  }

  template <typename Wanted>
  void Map(const Node& n, int depth, Wanted wanted) {
    Put('{');
    bool any = false;
    for (uint32_t i = 0; i < n.size; ++i) {
      const Member& m = n.members[i];
      if (!wanted(m.name())) continue;
      if (any) Put(',');
      any = true;
      Line(depth + 1);
      Key(m);
      Any(m.value, depth + 1);
    }
    if (any) Line(depth);
    Put('}');
  }

  void Key(const Member& m) {
    constexpr size_t kAround = 4;  // quotes, colon, space
    if (!m.fixed) {
      String(m.name());
      Room(kAround);
    } else {
      // Names in schema tables need no escapes.
      Room(m.key_size + kAround);
      Unchecked('"');
      Unchecked(m.name());
      Unchecked('"');
    }
    Unchecked(':');
    if (style_.indent != 0) Unchecked(' ');
  }

  const JsonStyle& style_;
  std::vector<char>& buffer_;
  char* at_;
  char* end_;
};

}  // namespace

void WriteJson(Value v, std::string& out, const JsonStyle& style) {
  Writer writer(style);
  writer.Root(v.IsAbsent() ? Node() : *v.node());
  writer.AppendTo(out);
}

std::string ToJson(Value v, const JsonStyle& style) {
  std::string out;
  WriteJson(v, out, style);
  return out;
}

void WriteJsonString(std::string_view text, std::string& out, bool escape_html) {
  JsonStyle style{.escape_html = escape_html};
  Writer writer(style);
  writer.String(text);
  writer.AppendTo(out);
}

}  // namespace sextant::api
