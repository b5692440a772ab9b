// The lexical half of the JSON reader: a place in a text, tokens, and Go's words for what is wrong
// with them. Internal to json_read.cc.
#pragma once

#include <string>
#include <string_view>

#include "api/document.h"

namespace sextant::api {

// `begin`..`end` must be followed by a NUL and kScanPadding readable bytes.
class JsonCursor {
 public:
  JsonCursor(const char* begin, const char* end, int max_depth)
      : p_(begin), end_(end), left_(max_depth) {}

  // The next byte that is not white space (0 at the end, or a NUL in the text).
  char Peek() {
    while (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t') ++p_;
    return *p_;
  }
  void Advance() { ++p_; }
  const char* at() const { return p_; }

  // A string's text between its quotes, the cursor standing on the first; `plain` says that it
  // needs no Unescape.
  bool RawString(std::string_view& raw, bool& plain);
  bool RawNumber(std::string_view& raw);
  bool Literal(std::string_view word);  // true, false, null
  bool SkipValue();
  // Only white space may follow.
  bool AtEnd();

  // What lies between values: true to go on. Open* stand on the bracket and eat it; `more` is false
  // if the container is empty.
  bool OpenObject(bool& more);
  bool OpenArray(bool& more);
  bool Key(std::string_view& raw, bool& plain);  // with the colon
  bool NextMember(bool& more);
  bool NextItem(bool& more);

  bool Syntax(std::string_view where);
  const std::string& error() const { return error_; }

 private:
  bool Enter();
  bool Escape();
  bool Next(char close, std::string_view where, bool& more);

  const char* p_;
  const char* end_;
  int left_;
  std::string error_;
};

// The text that `raw` stands for, in the arena; what is not UTF-8 becomes U+FFFD.
std::string_view Unescape(std::string_view raw, Arena& arena);

}  // namespace sextant::api
