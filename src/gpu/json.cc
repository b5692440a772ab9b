#include "gpu/json.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/utf8.h"

namespace sextant::gpu {

// Recursive descent over the text; every error carries its byte offset.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Result<Json> Run() {
    Json value;
    RETURN_IF_ERROR(Value(0, value));
    Space();
    if (pos_ != text_.size()) return Fail(Bad("text after the value"));
    return value;
  }

 private:
  Error Bad(std::string_view what) const {
    return BadRequest("JSON, byte " + std::to_string(pos_) + ": " + std::string(what));
  }
  void Space() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t' ||
                                   text_[pos_] == '\n' || text_[pos_] == '\r')) {
      ++pos_;
    }
  }
  bool Take(char c) {
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  bool Word(std::string_view word) {
    if (!text_.substr(pos_).starts_with(word)) return false;
    pos_ += word.size();
    return true;
  }

  Status Value(int depth, Json& out) {
    if (depth > Json::kMaxDepth) return Fail(Bad("nested too deep"));
    Space();
    if (pos_ >= text_.size()) return Fail(Bad("unexpected end"));
    const char c = text_[pos_];
    if (c == '{') return Object(depth, out);
    if (c == '[') return Array(depth, out);
    if (c == '"') {
      out.type_ = Json::Type::kString;
      return String(out.string_);
    }
    if (Word("true") || Word("false")) {
      out.type_ = Json::Type::kBool;
      out.bool_ = c == 't';
      return {};
    }
    if (Word("null")) return {};
    return Number(out);
  }

  Status Object(int depth, Json& out) {
    out.type_ = Json::Type::kObject;
    ++pos_;
    Space();
    if (Take('}')) return {};
    while (true) {
      Space();
      if (pos_ >= text_.size() || text_[pos_] != '"') return Fail(Bad("expected a member name"));
      std::string key;
      RETURN_IF_ERROR(String(key));
      Space();
      if (!Take(':')) return Fail(Bad("expected ':'"));
      out.keys_.push_back(std::move(key));
      RETURN_IF_ERROR(Value(depth + 1, out.items_.emplace_back()));
      Space();
      if (Take('}')) return {};
      if (!Take(',')) return Fail(Bad("expected ',' or '}'"));
    }
  }

  Status Array(int depth, Json& out) {
    out.type_ = Json::Type::kArray;
    ++pos_;
    Space();
    if (Take(']')) return {};
    while (true) {
      RETURN_IF_ERROR(Value(depth + 1, out.items_.emplace_back()));
      Space();
      if (Take(']')) return {};
      if (!Take(',')) return Fail(Bad("expected ',' or ']'"));
    }
  }

  Status Number(Json& out) {
    const char* begin = text_.data() + pos_;
    const char* end = text_.data() + text_.size();
    double value = 0;
    const auto [ptr, ec] = std::from_chars(begin, end, value);
    // from_chars also reads "inf" and "nan", which JSON does not have.
    if (ec != std::errc() || !std::isfinite(value)) return Fail(Bad("expected a value"));
    pos_ += static_cast<size_t>(ptr - begin);
    out.type_ = Json::Type::kNumber;
    out.number_ = value;
    return {};
  }

  std::optional<unsigned> Hex4() {
    if (text_.size() - pos_ < 4) return std::nullopt;
    unsigned value = 0;
    const char* begin = text_.data() + pos_;
    const auto [ptr, ec] = std::from_chars(begin, begin + 4, value, 16);
    if (ec != std::errc() || ptr != begin + 4) return std::nullopt;
    pos_ += 4;
    return value;
  }

  Status Escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (pos_ >= text_.size()) return Fail(Bad("unexpected end"));
    const char c = text_[pos_++];
    if (const size_t at = kFrom.find(c); at != std::string_view::npos) {
      out.push_back(kTo[at]);
      return {};
    }
    if (c != 'u') return Fail(Bad("unknown escape"));
    const auto unit = Hex4();
    if (!unit) return Fail(Bad("expected four hex digits"));
    unsigned code = *unit;
    if (code >= 0xDC00 && code < 0xE000) return Fail(Bad("lone surrogate"));
    if (code >= 0xD800 && code < 0xDC00) {
      const auto low = Word("\\u") ? Hex4() : std::nullopt;
      if (!low || *low < 0xDC00 || *low >= 0xE000) return Fail(Bad("lone surrogate"));
      code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
    }
    char bytes[4];
    out.append(bytes, PutUtf8(bytes, code));
    return {};
  }

  Status String(std::string& out) {
    ++pos_;
    while (pos_ < text_.size()) {
      const char c = text_[pos_++];
      if (c == '"') return {};
      if (static_cast<unsigned char>(c) < 0x20) return Fail(Bad("control character in a string"));
      if (c == '\\') {
        RETURN_IF_ERROR(Escape(out));
      } else {
        out.push_back(c);
      }
    }
    return Fail(Bad("string without an end"));
  }

  std::string_view text_;
  size_t pos_ = 0;
};

Result<Json> Json::Parse(std::string_view text) {
  if (text.size() > kMaxBytes) return Fail(BadRequest("JSON text too large"));
  return JsonParser(text).Run();
}

const Json& Json::At(std::string_view key) const {
  static const Json kNone;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return items_[i];
  }
  return kNone;
}

std::string Json::Str(std::string_view otherwise) const {
  return type_ == Type::kString ? string_ : std::string(otherwise);
}

int64_t Json::Int(int64_t otherwise) const {
  // 2^53: beyond it a double does not tell neighbours apart.
  if (type_ != Type::kNumber || std::abs(number_) > 9007199254740992.0) return otherwise;
  return static_cast<int64_t>(number_);
}

double Json::Num(double otherwise) const { return type_ == Type::kNumber ? number_ : otherwise; }

bool Json::Bool(bool otherwise) const { return type_ == Type::kBool ? bool_ : otherwise; }

std::vector<int> Json::Ints() const {
  std::vector<int> out;
  if (type_ != Type::kArray) return out;
  for (const Json& item : items_) out.push_back(static_cast<int>(item.Int()));
  return out;
}

std::vector<std::string> Json::Strings() const {
  std::vector<std::string> out;
  if (type_ != Type::kArray) return out;
  for (const Json& item : items_) out.push_back(item.Str());
  return out;
}

void JsonWriter::Comma() {
  if (!first_) out_.push_back(',');
  first_ = false;
}

JsonWriter& JsonWriter::Open(char c) {
  Comma();
  out_.push_back(c);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Close(char c) {
  out_.push_back(c);
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Comma();
  Quote(key);
  out_.push_back(':');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Str(std::string_view value) {
  Comma();
  Quote(value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Comma();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Comma();
  out_ += value ? "true" : "false";
  return *this;
}

void JsonWriter::Quote(std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  out_.push_back('"');
  for (const char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out_.push_back('\\');
      out_.push_back(c);
    } else if (byte < 0x20) {
      out_ += "\\u00";
      out_.push_back(kHex[byte >> 4]);
      out_.push_back(kHex[byte & 15]);
    } else {
      out_.push_back(c);
    }
  }
  out_.push_back('"');
}

}  // namespace sextant::gpu
