// Recorded cases (docs/recorded-cases.md): a script of requests and the real server's answers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sextant::recorded {

struct Header {
  std::string name;  // as written
  std::string value;
};

struct Save {
  std::string name;
  std::string path;
};

struct Step {
  std::string name;
  int line = 0;
  std::string method;  // GET ..., READ, CLOSE
  std::string target;
  std::vector<Header> headers;
  std::string body;
  bool has_body = false;
  std::string as = "admin";
  std::vector<Save> saves;
  std::vector<std::string> more_headers;  // @headers
  std::vector<std::string> items;
  std::vector<std::string> sort;
  std::string fact;
  std::string open;
  int until = 0;
  bool keep_managed_fields = false;
  bool hash = false;
  bool protobuf = false;
  bool status_only = false;

  int status = 0;
  std::vector<Header> answer_headers;
  std::string answer_body;
};

struct CaseFile {
  std::string name;   // "pod-create"
  std::string error;  // not empty: the file is wrong
  std::vector<Step> steps;
};

CaseFile ParseCaseFile(const std::string& name, const std::string& text);

// Puts variables in: {{NAME}}, {{NAME|q}} (query-escaped), {{12*x}}. An unknown one ends up in
// `error`.
std::string Expand(const std::string& text, const std::map<std::string, std::string>& variables,
                   std::string& error);

}  // namespace sextant::recorded
