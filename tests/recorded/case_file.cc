#include "case_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "net/http.h"

namespace sextant::recorded {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(Trim(word));
  return words;
}

bool SplitHeader(const std::string& line, Header& out) {
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return false;
  out = {line.substr(0, colon), Trim(line.substr(colon + 1))};
  return true;
}

void ReadDirective(const std::string& line, Step& step) {
  const size_t space = line.find(' ');
  const std::string word = line.substr(1, space == std::string::npos ? space : space - 1);
  const std::string rest = space == std::string::npos ? "" : Trim(line.substr(space + 1));
  if (word == "as") step.as = rest;
  if (word == "headers") step.more_headers = Words(rest);
  if (word == "items") step.items = Words(rest);
  if (word == "sort") step.sort = Words(rest);
  if (word == "fact") step.fact = rest;
  if (word == "open") step.open = rest;
  if (word == "until") step.until = std::atoi(rest.c_str());
  if (word == "keep") step.keep_managed_fields = rest == "managedFields";
  if (word == "hash") step.hash = true;
  if (word == "protobuf") step.protobuf = true;
  if (word == "status") step.status_only = true;
  if (word == "save") {
    const size_t gap = rest.find(' ');
    step.saves.push_back({rest.substr(0, gap), Trim(rest.substr(gap + 1))});
  }
}

std::string Join(const std::vector<std::string>& lines, size_t begin, size_t end) {
  while (end > begin && Trim(lines[end - 1]).empty()) --end;
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    if (i > begin) text += '\n';
    text += lines[i];
  }
  return text;
}

// Lines [begin, end) of one step; `begin` is the line after "### name".
void ReadStep(const std::vector<std::string>& lines, size_t begin, size_t end, Step& step) {
  size_t divider = begin;
  while (divider < end && lines[divider] != "---") ++divider;
  size_t at = begin;
  while (at < divider && (lines[at].starts_with("#") || lines[at].empty())) ++at;
  if (at < divider) {
    const size_t space = lines[at].find(' ');
    step.method = lines[at].substr(0, space);
    step.target = space == std::string::npos ? "" : lines[at].substr(space + 1);
    ++at;
  }
  for (; at < divider && !lines[at].empty(); ++at) {
    Header header;
    if (lines[at].starts_with("@")) {
      ReadDirective(lines[at], step);
    } else if (!lines[at].starts_with("#") && SplitHeader(lines[at], header)) {
      step.headers.push_back(header);
    }
  }
  if (at < divider) step.body = Join(lines, at + 1, divider);
  step.has_body = !step.body.empty();
  at = divider + 1;
  if (at >= end) return;
  step.status = std::atoi(lines[at].c_str());
  for (++at; at < end && !lines[at].empty(); ++at) {
    Header header;
    if (SplitHeader(lines[at], header)) step.answer_headers.push_back(header);
  }
  if (at < end) step.answer_body = Join(lines, at + 1, end);
}

}  // namespace

CaseFile ParseCaseFile(const std::string& name, const std::string& text) {
  CaseFile file;
  file.name = name;
  const std::vector<std::string> lines = Lines(text);
  if (lines.empty() || !lines[0].starts_with("# Answers:")) {
    file.error = "the first line must name the source of the answers";
    return file;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("### ")) continue;
    size_t end = i + 1;
    while (end < lines.size() && !lines[end].starts_with("### ")) ++end;
    Step step;
    step.name = lines[i].substr(4);
    step.line = static_cast<int>(i) + 1;
    ReadStep(lines, i + 1, end, step);
    file.steps.push_back(std::move(step));
  }
  return file;
}

std::string Expand(const std::string& text, const std::map<std::string, std::string>& variables,
                   std::string& error) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find("{{", at);
    const size_t end = begin == std::string::npos ? begin : text.find("}}", begin);
    if (end == std::string::npos) break;
    out += text.substr(at, begin - at);
    std::string name = text.substr(begin + 2, end - begin - 2);
    at = end + 2;
    const size_t star = name.find('*');
    if (star != std::string::npos && star + 2 == name.size() &&
        name.find_first_not_of("0123456789") == star) {
      out += std::string(static_cast<size_t>(std::atoi(name.c_str())), name[star + 1]);
      continue;
    }
    const bool escape = name.ends_with("|q");
    if (escape) name.resize(name.size() - 2);
    const auto found = variables.find(name);
    if (found == variables.end()) {
      error = fmt::format("unknown variable {}", name);
      continue;
    }
    out += escape ? net::PercentEncode(found->second) : found->second;
  }
  return at < text.size() ? out + text.substr(at) : out;
}

}  // namespace sextant::recorded
