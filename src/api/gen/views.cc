// Writes build/gen/api/views/<file>.h: typed getters over Value. The words are said in api/views.h.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "api/gen/model.h"
#include "api/gen/rows.h"

namespace sextant::api::gen {
namespace {

constexpr std::string_view kReserved[] = {
    "and",     "auto",     "bool",    "break",   "case",      "catch",     "class",   "const",
    "continue", "default", "delete",  "do",      "double",    "else",      "enum",    "explicit",
    "export",  "extern",   "false",   "float",   "for",       "friend",    "goto",    "if",
    "inline",  "int",      "long",    "mutable", "namespace", "new",       "not",     "operator",
    "or",      "private",  "protected", "public", "register", "return",    "short",   "signed",
    "sizeof",  "static",   "struct",  "switch",  "template",  "this",      "throw",   "true",
    "try",     "typedef",  "union",   "unsigned", "using",    "virtual",   "void",    "volatile",
    "while",   "xor",      "v"};

// "$ref" -> "ref", "x-kubernetes-list-type" -> "x_kubernetes_list_type", "namespace" -> "namespace_".
std::string Identifier(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (c == '-') out += '_';
    else if (c != '$') out += c;
  }
  if (std::ranges::find(kReserved, out) != std::end(kReserved)) out += '_';
  return out;
}

struct Getter {
  const char* type;
  const char* call;
};

Getter GetterOf(Type type) {
  switch (type) {
    case Type::kBool: return {"bool", "AsBool"};
    case Type::kInt32:
    case Type::kInt64:
    case Type::kUint32: return {"int64_t", "AsInt"};
    case Type::kDouble: return {"double", "AsDouble"};
    case Type::kString:
    case Type::kBytes:
    case Type::kTime:
    case Type::kMicroTime:
    case Type::kDuration: return {"std::string_view", "AsString"};
    default: return {nullptr, nullptr};
  }
}

class Views {
 public:
  Views(const Model& model, const std::string& file) : model_(model), file_(file) {}

  std::string Render() {
    std::string forward, structs;
    for (const MessageModel& m : model_.messages) {
      if (m.file != file_) continue;
      forward += "struct " + m.simple + ";\n";
      structs += Struct(m);
    }
    std::string out = fmt::format(
        "// Typed views of src/api/proto/{}.proto, written by api_gen.\n#pragma once\n\n"
        "#include \"api/views.h\"\n", file_);
    for (const std::string& f : includes_) out += fmt::format("#include \"api/views/{}.h\"\n", f);
    out += fmt::format("\nnamespace sextant::api::{} {{\n\n{}\n{}", file_, forward, structs);
    return out + bodies_ + fmt::format("\n}}  // namespace sextant::api::{}\n", file_);
  }

 private:
  std::string Struct(const MessageModel& m) {
    std::string out;
    if (!m.description.empty()) out += "// " + m.description + "\n";
    out += fmt::format("struct {} : View {{\n  using View::View;\n", m.simple);
    std::set<std::string> done;
    for (const FieldModel& f : m.fields) AddField(m, f, &out, &done);
    return out + "};\n\n";
  }

  void AddField(const MessageModel& owner, const FieldModel& f, std::string* out,
                std::set<std::string>* done) {
    if ((f.flags & kInlineFlag) != 0) {
      // The inlined message's own view of the same value, and its getters.
      const MessageModel& inlined = Target(f);
      for (const FieldModel& below : inlined.fields) AddField(owner, below, out, done);
      return;
    }
    if (!done->insert(f.name).second) return;
    const std::string name = Identifier(f.name);
    const std::string at = fmt::format("v[\"{}\"]", f.name);
    const Getter getter = GetterOf(f.type);
    const bool pointer = (f.flags & kPointerFlag) != 0;
    if (pointer || f.presence == Presence::kPointer) {
      *out += fmt::format("  bool {}() const {{ return static_cast<bool>({}); }}\n",
                          Identifier("has_" + f.name), at);
    }
    if (f.shape == Shape::kSingle && getter.type != nullptr && pointer) {
      *out += fmt::format("  {} {}({} otherwise = {{}}) const {{ return {}.{}(otherwise); }}\n",
                          getter.type, name, getter.type, at, getter.call);
    } else if (f.shape == Shape::kSingle && getter.type != nullptr) {
      *out += fmt::format("  {} {}() const {{ return {}.{}(); }}\n", getter.type, name, at,
                          getter.call);
    } else if (f.shape == Shape::kList || f.type == Type::kStringList) {
      if (f.type == Type::kMessage) {
        Message(owner, "ListView<" + TypeName(f) + ">", name, at, out);
      } else {
        const char* element = f.type == Type::kStringList ? "std::string_view"
                              : getter.type != nullptr    ? getter.type
                                                          : "Value";
        const std::string type = fmt::format("ListView<{}>", element);
        *out += f.shape == Shape::kMap
                    ? fmt::format("  Value {}() const {{ return {}; }}\n", name, at)
                    : fmt::format("  {} {}() const {{ return {}({}); }}\n", type, name, type, at);
      }
    } else if (f.shape == Shape::kSingle && f.type == Type::kMessage) {
      Message(owner, TypeName(f), name, at, out);
    } else {
      *out += fmt::format("  Value {}() const {{ return {}; }}\n", name, at);
    }
  }

  // A getter of a type that may be declared further down: its body stands after all structs.
  void Message(const MessageModel& owner, const std::string& type, const std::string& name,
               const std::string& at, std::string* out) {
    *out += fmt::format("  inline {} {}() const;\n", type, name);
    bodies_ += fmt::format("inline {} {}::{}() const {{ return {}({}); }}\n", type, owner.simple,
                           name, type, at);
  }

  const MessageModel& Target(const FieldModel& f) const {
    return model_.messages[static_cast<size_t>(f.message)];
  }

  std::string TypeName(const FieldModel& f) {
    const MessageModel& m = Target(f);
    if (m.file != file_) includes_.insert(m.file);
    return m.file + "::" + m.simple;
  }

  const Model& model_;
  const std::string& file_;
  std::set<std::string> includes_;
  std::string bodies_;
};

}  // namespace

std::string RenderViews(const Model& model, const std::string& file) {
  return Views(model, file).Render();
}

}  // namespace sextant::api::gen
