#include "api/json_cursor.h"

#include "api/json_scan.h"
#include "base/ascii.h"
#include "base/quote.h"
#include "base/utf8.h"

namespace sextant::api {
namespace {

// Four hexadecimal digits behind \u at `s`, -1 if they are not that.
int Unicode(std::string_view s) {
  if (s.size() < 6 || s[0] != '\\' || s[1] != 'u') return -1;
  int v = 0;
  for (size_t i = 2; i < 6; ++i) {
    int h = HexDigit(s[i]);
    if (h < 0) return -1;
    v = v * 16 + h;
  }
  return v;
}

constexpr uint32_t kReplacement = 0xFFFD;

// The rune of a \u escape at `s`; `used` bytes of it were read.
uint32_t EscapedRune(std::string_view s, size_t& used) {
  auto r = static_cast<uint32_t>(Unicode(s));
  used = 6;
  if (r < 0xD800 || r > 0xDFFF) return r;
  int low = Unicode(s.substr(6));
  if (r > 0xDBFF || low < 0xDC00 || low > 0xDFFF) return kReplacement;
  used = 12;
  return 0x10000 + ((r - 0xD800) << 10) + (static_cast<uint32_t>(low) - 0xDC00);
}

char Unescaped(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

std::string_view Unescape(std::string_view raw, Arena& arena) {
  // Longest growth: one bad byte becomes three.
  char* out = static_cast<char*>(arena.Allocate(raw.size() * 3));
  char* to = out;
  while (!raw.empty()) {
    size_t used = 1;
    if (raw[0] == '\\') {
      if (raw[1] == 'u') {
        to = PutUtf8(to, EscapedRune(raw, used));
      } else {
        *to++ = Unescaped(raw[1]);
        used = 2;
      }
    } else if (static_cast<signed char>(raw[0]) >= 0) {
      *to++ = raw[0];
    } else if (size_t n = Utf8Length(raw); n != 0) {
      for (size_t i = 0; i < n; ++i) *to++ = raw[i];
      used = n;
    } else {
      to = PutUtf8(to, kReplacement);
    }
    raw.remove_prefix(used);
  }
  return {out, to};
}

bool JsonCursor::Syntax(std::string_view where) {
  if (p_ == end_) {
    // Go closes the text with a space, which is wrong inside of a token only.
    bool in_token = where.starts_with("in ") || where.starts_with("after decimal");
    bool in_string = where == "in string literal";
    error_ = in_token && !in_string ? "invalid character ' ' " + std::string(where)
                                    : "unexpected end of JSON input";
    return false;
  }
  std::string c = *p_ == '\'' ? "\\'" : *p_ == '"' ? "\"" : "";
  if (c.empty()) {
    // Go quotes the byte as a rune of that number.
    char rune[4];
    c = Quote({rune, PutUtf8(rune, static_cast<uint8_t>(*p_))});
    c = c.substr(1, c.size() - 2);
  }
  error_ = "invalid character '" + c + "' " + std::string(where);
  return false;
}

bool JsonCursor::Enter() {
  if (left_-- > 0) return true;
  error_ = "exceeded max depth";
  return false;
}

bool JsonCursor::Escape() {
  ++p_;
  if (*p_ != 'u') {
    constexpr std::string_view kSimple = "bfnrt\\/\"";
    if (*p_ == 0 || kSimple.find(*p_) == std::string_view::npos) {
      return Syntax("in string escape code");
    }
    ++p_;
    return true;
  }
  ++p_;
  for (int i = 0; i < 4; ++i, ++p_) {
    if (HexDigit(*p_) < 0) return Syntax("in \\u hexadecimal character escape");
  }
  return true;
}

bool JsonCursor::RawString(std::string_view& raw, bool& plain) {
  const char* start = ++p_;
  plain = true;
  while (true) {
    p_ = FindSpecial(p_);
    char c = *p_;
    if (c == '"') {
      raw = {start, p_};
      ++p_;
      return true;
    }
    if (c == '\\') {
      plain = false;
      if (!Escape()) return false;
    } else if (static_cast<signed char>(c) >= 0) {
      return Syntax("in string literal");
    } else {
      size_t n = Utf8Length({p_, end_});
      if (n == 0) plain = false;
      p_ += n == 0 ? 1 : n;
    }
  }
}

bool JsonCursor::RawNumber(std::string_view& raw) {
  const char* start = p_;
  if (*p_ == '-') ++p_;
  if (*p_ == '0') {
    ++p_;
  } else if (IsDigit(*p_)) {
    while (IsDigit(*p_)) ++p_;
  } else {
    return Syntax("in numeric literal");
  }
  if (*p_ == '.') {
    ++p_;
    if (!IsDigit(*p_)) return Syntax("after decimal point in numeric literal");
    while (IsDigit(*p_)) ++p_;
  }
  if (*p_ == 'e' || *p_ == 'E') {
    ++p_;
    if (*p_ == '+' || *p_ == '-') ++p_;
    if (!IsDigit(*p_)) return Syntax("in exponent of numeric literal");
    while (IsDigit(*p_)) ++p_;
  }
  raw = {start, p_};
  return true;
}

bool JsonCursor::Literal(std::string_view word) {
  for (char c : word) {
    if (*p_ != c) {
      return Syntax("in literal " + std::string(word) + " (expecting '" + std::string(1, c) + "')");
    }
    ++p_;
  }
  return true;
}

bool JsonCursor::AtEnd() {
  Peek();
  return p_ == end_ || Syntax("after top-level value");
}

bool JsonCursor::OpenObject(bool& more) {
  if (!Enter()) return false;
  ++p_;
  char c = Peek();
  more = c != '}';
  if (more) return c == '"' || Syntax("looking for beginning of object key string");
  ++p_;
  ++left_;
  return true;
}

bool JsonCursor::OpenArray(bool& more) {
  if (!Enter()) return false;
  ++p_;
  more = Peek() != ']';
  if (more) return true;
  ++p_;
  ++left_;
  return true;
}

bool JsonCursor::Key(std::string_view& raw, bool& plain) {
  if (!RawString(raw, plain)) return false;
  if (*p_ != ':' && Peek() != ':') return Syntax("after object key");
  ++p_;
  return true;
}

bool JsonCursor::Next(char close, std::string_view where, bool& more) {
  char c = *p_ == ',' ? ',' : Peek();
  more = c == ',';
  if (!more && c != close) return Syntax(where);
  ++p_;
  if (!more) ++left_;
  return true;
}

bool JsonCursor::NextMember(bool& more) {
  if (!Next('}', "after object key:value pair", more)) return false;
  return !more || Peek() == '"' || Syntax("looking for beginning of object key string");
}

bool JsonCursor::NextItem(bool& more) { return Next(']', "after array element", more); }

bool JsonCursor::SkipValue() {
  std::string_view raw;
  bool plain;
  bool more;
  switch (char c = Peek()) {
    case '{':
      if (!OpenObject(more)) return false;
      while (more) {
        if (!Key(raw, plain) || !SkipValue() || !NextMember(more)) return false;
      }
      return true;
    case '[':
      if (!OpenArray(more)) return false;
      while (more) {
        if (!SkipValue() || !NextItem(more)) return false;
      }
      return true;
    case '"':
      return RawString(raw, plain);
    case 't':
      return Literal("true");
    case 'f':
      return Literal("false");
    case 'n':
      return Literal("null");
    default:
      if (c == '-' || IsDigit(c)) return RawNumber(raw);
      return Syntax("looking for beginning of value");
  }
}

}  // namespace sextant::api
