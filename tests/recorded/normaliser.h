// The normaliser of recorded cases (docs/recorded-cases.md, section 5): what differs from one run
// to the next becomes a placeholder, the same value the same one within a file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sextant::recorded {

using Json = nlohmann::json;  // objects sorted by the bytes of their keys, as the walk wants them

struct NormaliseOptions {
  std::string path;                // of the request
  std::vector<std::string> items;  // @items
  bool keep_managed_fields = false;
  std::string server;  // host:port
};

class Normaliser {
 public:
  Json Body(Json body, const NormaliseOptions& options);
  // Rule 6 for a table whose columns an earlier event of its watch told.
  void WalkCells(Json& table);
  // A header's value, or a body that is plain text.
  std::string Text(const std::string& text, const NormaliseOptions& options);

 private:
  struct Place {
    bool list_metadata = false;  // within the metadata of a list, a table or a bookmark
    bool version = false;        // the body of /version
  };
  void Walk(Json& value, const std::string& key, const Place& place,
            const NormaliseOptions& options);
  void WalkObject(Json& object, const Place& place, const NormaliseOptions& options);
  void FindGenerated(const Json& value);
  void NoteGenerated(const std::string& name, size_t prefix);
  bool Jwt(Json& value, const NormaliseOptions& options);
  std::string Strings(std::string text, const NormaliseOptions& options);
  std::string Number(const std::string& word, const std::string& value);

  std::map<std::string, std::map<std::string, int>> numbers_;
  std::vector<std::pair<std::string, std::string>> generated_;  // name, placeholder
  std::vector<std::string> columns_;                            // of the last table
};

}  // namespace sextant::recorded
