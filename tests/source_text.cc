#include "source_text.h"

#include <algorithm>
#include <cctype>

namespace sextant::tidy {
namespace {

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Goes through a text once; what it meets it appends to a SourceText.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  SourceText Scan() {
    BeginLine(false);
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        SkipTo(text_.find('\n', at_));
      } else if (rest.starts_with("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        SkipTo(end == std::string_view::npos ? end : end + 2);
      } else if (rest.starts_with("R\"") && (at_ == 0 || !IsWordChar(text_[at_ - 1]))) {
        RawString();
      } else if (rest[0] == '"') {
        Literal('"');
      } else if (rest[0] == '\'' && (at_ == 0 || !IsWordChar(text_[at_ - 1]))) {
        Literal('\'');
      } else {
        Take(rest[0]);
      }
    }
    return std::move(out_);
  }

 private:
  void BeginLine(bool raw) {
    out_.lines.emplace_back();
    out_.code.emplace_back();
    out_.in_raw_string.push_back(raw);
  }

  // Moves on by one character, which `code` shows as `shown`.
  void Take(char shown, bool raw = false) {
    const char c = text_[at_++];
    if (c == '\n') {
      BeginLine(raw);
      return;
    }
    out_.lines.back() += c;
    out_.code.back() += shown;
  }

  void SkipTo(size_t end, bool raw = false) {
    end = std::min(end, text_.size());
    while (at_ < end) Take(' ', raw);
  }

  void Literal(char quote) {
    Take(quote);
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) Take(' ');
      Take(' ');
    }
    if (quote == '"') out_.literals.emplace_back(text_.substr(begin, at_ - begin));
    if (at_ < text_.size()) Take(quote);
  }

  void RawString() {
    Take('R');
    Take('"');
    const size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return;
    const std::string close = ")" + std::string(text_.substr(at_, open - at_)) + "\"";
    SkipTo(open + 1, true);
    const size_t end = std::min(text_.find(close, at_), text_.size());
    out_.literals.emplace_back(text_.substr(at_, end - at_));
    SkipTo(end, true);
    SkipTo(end + close.size(), true);
  }

  const std::string_view text_;
  size_t at_ = 0;
  SourceText out_;
};

// Whether the text before a brace is a function's: it has parameters, and is no scope, class or
// initializer.
bool IsFunctionHead(std::string_view head) {
  for (const char* word : {"namespace", "class", "struct", "union", "enum", "extern"})
    if (HasWord(head.substr(0, head.find('(')), word) && !HasWord(head, "operator")) return false;
  const size_t open = head.find('(');
  if (open == std::string_view::npos) return false;
  // "x = f({" or "x[] = {": an initializer.
  const size_t equals = head.find('=');
  return equals == std::string_view::npos || equals > open || HasWord(head, "operator");
}

// Whether the brace after `head` begins a list of values. The formatter puts a blank before the
// brace of every body, and none after the name that a list belongs to.
bool IsInitializer(std::string_view head) {
  if (!head.empty() && head.back() != ' ') return true;
  return head.find('=') < head.find('(') && !HasWord(head, "operator");
}

}  // namespace

SourceText ReadSource(std::string_view text) { return Scanner(text).Scan(); }

std::vector<Function> Functions(const SourceText& source) {
  std::vector<Function> functions;
  std::string head;
  int depth = 0;        // of braces inside the function; 0 outside of one
  int initializer = 0;  // of braces inside an initializer; 0 outside of one
  for (size_t n = 0; n < source.code.size(); ++n) {
    const std::string& line = source.code[n];
    if (!line.empty() && line[0] == '#') continue;
    for (const char c : line) {
      if (c == '{' && depth > 0) {
        ++depth;
      } else if (c == '}' && depth > 0) {
        if (--depth == 0) functions.back().lines = n + 2 - functions.back().line;
      } else if (depth > 0) {
        continue;
      } else if (c == '{' && (initializer > 0 || IsInitializer(head))) {
        ++initializer;
      } else if (c == '}' && initializer > 0) {
        --initializer;
      } else if (c == '{') {
        if (IsFunctionHead(head)) {
          functions.push_back({.head = head, .line = n + 1});
          depth = 1;
        }
        head.clear();
      } else if ((c == ';' || c == '}') && initializer == 0) {
        head.clear();
      } else if (initializer == 0) {
        head += c;
      }
    }
    if (!head.empty()) head += ' ';
  }
  return functions;
}

bool HasWord(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsWordChar(word.front()) || !IsWordChar(line[at - 1]);
    const bool ends = end == line.size() || !IsWordChar(word.back()) || !IsWordChar(line[end]);
    if (begins && ends) return true;
  }
  return false;
}

size_t Columns(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace sextant::tidy
