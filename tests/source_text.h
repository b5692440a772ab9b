// C++ source as a reader for tidy_test sees it: what is code, what is comment, what is string.
//
//   const SourceText source = ReadSource("int a = 1;  // one\n");
//   source.code[0] == "int a = 1;        "
//
// A scanner, not a parser: it knows comments, string, character and raw string literals, and
// braces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant::tidy {

struct SourceText {
  std::vector<std::string> lines;     // as written
  std::vector<std::string> code;      // comments and what is between quotes are blanks
  std::vector<std::string> literals;  // the string literals' contents, escapes as written
  std::vector<bool> in_raw_string;    // whether the line begins inside a raw string
};

SourceText ReadSource(std::string_view text);

// A function with a body, from the line of its opening brace to that of its closing brace.
// Lambdas and local classes count as part of the function around them.
struct Function {
  std::string head;  // what stands before the brace, for example "int main() "
  size_t line = 0;   // of the opening brace, from 1
  size_t lines = 0;
};
std::vector<Function> Functions(const SourceText& source);

// Whether `word` stands in `line` with no letter, digit or underscore on either side where the
// word itself begins or ends with one.
bool HasWord(std::string_view line, std::string_view word);

// Columns that `line` takes: UTF-8 code points.
size_t Columns(std::string_view line);

}  // namespace sextant::tidy
