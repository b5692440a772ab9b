// Writes build/gen/api/tables.cc.
#include <fmt/format.h>

#include <iterator>

#include "api/gen/model.h"
#include "api/gen/rows.h"

namespace sextant::api::gen {
namespace {

// All strings, each once.
class TextPool {
 public:
  Text Add(const std::string& s) {
    if (s.empty()) return 0;
    if (s.size() > kTextLengthMax) Die("string of over 4095 bytes: " + s.substr(0, 60));
    auto [it, fresh] = at_.try_emplace(s, 0);
    if (fresh) {
      if (pool_.size() + s.size() >= kTextBytesMax) Die("over 1 MiB of strings");
      it->second = static_cast<Text>(pool_.size() << kTextLengthBits | s.size());
      pool_ += s;
    }
    return it->second;
  }

  // The pool as C++ string literals; one per line, which every compiler takes.
  std::string Literals() const {
    constexpr size_t kChunk = 90;
    std::string out;
    for (size_t i = 0; i < pool_.size(); i += kChunk) {
      out += "    \"";
      for (char c : pool_.substr(i, kChunk)) {
        if (c == '"' || c == '\\') out += '\\';
        if (c < 0x20 || c > 0x7e) Die("a string with a character beyond ASCII");
        if (c == '?')
          out += "\\?";
        else
          out += c;
      }
      out += "\"\n";
    }
    return out;
  }

 private:
  std::string pool_ = "-";  // so that offset 0 with length 0 is the empty string only
  std::unordered_map<std::string, Text> at_;
};

class Tables {
 public:
  explicit Tables(const Model& model) : model_(model) {}

  std::string Render() {
    for (const MessageModel& m : model_.messages) AddMessage(m);
    for (const ResourceModel& r : model_.resources) AddResource(r);
    std::string out =
        "// Written by api_gen from src/api/proto.\n#include \"api/gen/rows.h\"\n\n"
        "namespace sextant::api::gen {\nnamespace {\n\n";
    out +=
        "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\nconstexpr char kTextData[] =\n" +
        text_.Literals() + ";\n\n";
    std::string strings;
    for (size_t i = 0; i < strings_.size(); ++i) {
      strings += fmt::format("{},{}", strings_[i], i % 12 == 11 ? "\n" : "");
    }
    Array(out, "Text", "Strings", strings + "0");
    Array(out, "FieldRow", "Fields", fields_);
    Array(out, "MessageRow", "Messages", messages_);
    Array(out, "SubresourceRow", "Subresources", subresources_);
    Array(out, "ResourceRow", "Resources", resources_);
    out += "}  // namespace\n\nconst char* const kText = kTextData;\n";
    for (const char* name : {"Strings", "Fields", "Messages", "Subresources", "Resources"}) {
      const char* type = name == std::string("Strings")        ? "Text"
                         : name == std::string("Fields")       ? "FieldRow"
                         : name == std::string("Messages")     ? "MessageRow"
                         : name == std::string("Subresources") ? "SubresourceRow"
                                                               : "ResourceRow";
      out += fmt::format("const std::span<const {}> k{}(k{}Data);\n", type, name, name);
    }
    return out + "\n}  // namespace sextant::api::gen\n";
  }

 private:
  static void Array(std::string& out, const char* type, const char* name, const std::string& rows) {
    out += fmt::format("constexpr {} k{}Data[] = {{\n{}}};\n\n", type, name, rows);
  }

  std::string AddStrings(const std::vector<std::string>& values) {
    if (values.empty()) return "{0,0}";
    std::string key;
    for (const auto& v : values) key += v + '\n';
    auto [it, fresh] = lists_.try_emplace(key, strings_.size());
    if (fresh) {
      for (const auto& v : values) strings_.push_back(text_.Add(v));
      if (strings_.size() > 0xffff) Die("over 65535 strings in lists");
    }
    return fmt::format("{{{},{}}}", it->second, values.size());
  }

  static int Ref(int message) { return message < 0 ? kNoMessage : message; }

  void AddMessage(const MessageModel& m) {
    messages_ += fmt::format("{{{},{},{},{},{},{},{},{},{},{}}},\n", text_.Add(m.name),
                             text_.Add(m.go_name), text_.Add(m.description), text_.Add(m.unions),
                             text_.Add(m.group), text_.Add(m.version), text_.Add(m.kind),
                             field_count_, m.fields.size(), m.flags);
    for (const FieldModel& f : m.fields) {
      fields_ += fmt::format(
          "{{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}}},\n", text_.Add(f.name),
          text_.Add(f.go_name), text_.Add(f.go_type), text_.Add(f.default_json),
          text_.Add(f.merge_key), text_.Add(f.description), AddStrings(f.list_map_keys),
          AddStrings(f.enum_values), f.number, Ref(f.message), f.flags, static_cast<int>(f.type),
          static_cast<int>(f.shape), static_cast<int>(f.presence), static_cast<int>(f.list_type));
      ++field_count_;
    }
  }

  void AddResource(const ResourceModel& r) {
    resources_ += fmt::format(
        "{{{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}}},\n", text_.Add(r.group),
        text_.Add(r.version), text_.Add(r.plural), text_.Add(r.singular), text_.Add(r.kind),
        text_.Add(r.list_kind), text_.Add(r.hash), text_.Add(r.storage), AddStrings(r.short_names),
        AddStrings(r.categories), AddStrings(r.verbs), AddStrings(r.selectable), Ref(r.message),
        subresource_count_, r.subresources.size(), r.namespaced, r.review);
    for (const SubresourceModel& s : r.subresources) {
      subresources_ +=
          fmt::format("{{{},{},{},{},{},{}}},\n", text_.Add(s.name), text_.Add(s.group),
                      text_.Add(s.version), text_.Add(s.kind), Ref(s.message), AddStrings(s.verbs));
      ++subresource_count_;
    }
  }

  const Model& model_;
  TextPool text_;
  std::vector<Text> strings_;
  std::unordered_map<std::string, size_t> lists_;
  size_t field_count_ = 0, subresource_count_ = 0;
  std::string fields_, messages_, subresources_, resources_;
};

}  // namespace

std::string RenderTables(const Model& model) { return Tables(model).Render(); }

}  // namespace sextant::api::gen
