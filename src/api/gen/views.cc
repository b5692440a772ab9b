// Writes build/gen/api/views/<file>.h: typed getters over Value, and <file>_mut.h: typed setters
// over Mut. The words are said in api/views.h and api/builders.h.
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
    "and",      "auto",    "bool",      "break",    "case",      "catch",   "class", "const",
    "continue", "default", "delete",    "do",       "double",    "else",    "enum",  "explicit",
    "export",   "extern",  "false",     "float",    "for",       "friend",  "goto",  "if",
    "inline",   "int",     "long",      "mutable",  "namespace", "new",     "not",   "operator",
    "or",       "private", "protected", "public",   "register",  "return",  "short", "signed",
    "sizeof",   "static",  "struct",    "switch",   "template",  "this",    "throw", "true",
    "try",      "typedef", "union",     "unsigned", "using",     "virtual", "void",  "volatile",
    "while",    "xor",     "v",         "m"};

// "$ref" -> "ref", "x-kubernetes-list-type" -> "x_kubernetes_list_type", "namespace" ->
// "namespace_".
std::string Identifier(const std::string& name) {
  std::string out;
  for (char c : name) {
    if (c == '-')
      out += '_';
    else if (c != '$')
      out += c;
  }
  if (std::ranges::find(kReserved, out) != std::end(kReserved)) out += '_';
  return out;
}

struct Getter {
  const char* type;
  const char* call;
  const char* set;
};

Getter GetterOf(Type type) {
  switch (type) {
    case Type::kBool:
      return {"bool", "AsBool", "SetBool"};
    case Type::kInt32:
    case Type::kInt64:
    case Type::kUint32:
      return {"int64_t", "AsInt", "SetInt"};
    case Type::kDouble:
      return {"double", "AsDouble", "SetDouble"};
    case Type::kString:
    case Type::kBytes:
    case Type::kTime:
    case Type::kMicroTime:
    case Type::kDuration:
      return {"std::string_view", "AsString", "SetString"};
    default:
      return {nullptr, nullptr, nullptr};
  }
}

// One header: a struct per message, with the fields of inlined messages among its own.
class Header {
 public:
  Header(const Model& model, const std::string& file, const char* suffix)
      : model_(model), file_(file), suffix_(suffix) {}
  virtual ~Header() = default;

  std::string Render(const char* what, const char* base) {
    std::string forward, structs;
    for (const MessageModel& m : model_.messages) {
      if (m.file != file_) continue;
      forward += "struct " + m.simple + suffix_ + ";\n";
      structs += Struct(m, base);
    }
    std::string out = fmt::format(
        "// Typed {} of src/api/proto/{}.proto, written by api_gen.\n#pragma once\n\n"
        "#include \"api/{}.h\"\n",
        what, file_, what);
    for (const std::string& f : includes_) out += fmt::format("#include \"api/views/{}.h\"\n", f);
    out += fmt::format("\nnamespace sextant::api::{} {{\n\n{}\n{}", file_, forward, structs);
    return out + bodies_ + fmt::format("\n}}  // namespace sextant::api::{}\n", file_);
  }

 protected:
  virtual void AddField(const MessageModel& owner, const FieldModel& f, std::string* out) = 0;
  virtual void AddTop(const MessageModel&, std::string*) {}

  // A function of a type that may be declared further down: its body stands after all structs.
  void Later(const MessageModel& owner, const std::string& type, const std::string& name,
             const std::string& expression, std::string* out) {
    *out += fmt::format("  inline {} {}() const;\n", type, name);
    bodies_ += fmt::format("inline {} {}{}::{}() const {{ return {}({}); }}\n", type, owner.simple,
                           suffix_, name, type, expression);
  }

  std::string TypeName(const FieldModel& f) {
    const MessageModel& m = Target(f);
    if (m.file != file_) includes_.insert(m.file + (*suffix_ != 0 ? "_mut" : ""));
    return m.file + "::" + m.simple + suffix_;
  }

 private:
  std::string Struct(const MessageModel& m, const char* base) {
    std::string out;
    if (!m.description.empty()) out += "// " + m.description + "\n";
    out +=
        fmt::format("struct {}{} : {} {{\n  using {}::{};\n", m.simple, suffix_, base, base, base);
    if ((m.flags & kTopFlag) != 0) AddTop(m, &out);
    std::set<std::string> done;
    AddFields(m, m, &out, &done);
    return out + "};\n\n";
  }

  void AddFields(const MessageModel& owner, const MessageModel& from, std::string* out,
                 std::set<std::string>* done) {
    for (const FieldModel& f : from.fields) {
      if ((f.flags & kInlineFlag) != 0)
        AddFields(owner, Target(f), out, done);
      else if (done->insert(f.name).second)
        AddField(owner, f, out);
    }
  }

  const MessageModel& Target(const FieldModel& f) const {
    return model_.messages[static_cast<size_t>(f.message)];
  }

  const Model& model_;
  const std::string& file_;
  const char* suffix_;
  std::set<std::string> includes_;
  std::string bodies_;
};

class Views : public Header {
 public:
  Views(const Model& model, const std::string& file) : Header(model, file, "") {}

 private:
  void AddField(const MessageModel& owner, const FieldModel& f, std::string* out) override {
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
        Later(owner, "ListView<" + TypeName(f) + ">", name, at, out);
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
      Later(owner, TypeName(f), name, at, out);
    } else {
      *out += fmt::format("  Value {}() const {{ return {}; }}\n", name, at);
    }
  }
};

class Builders : public Header {
 public:
  Builders(const Model& model, const std::string& file) : Header(model, file, "Mut") {}

 private:
  void AddTop(const MessageModel& m, std::string* out) override {
    *out += fmt::format(
        "  void SetType() const {{\n    m.Set(\"kind\", \"{}\");\n    m.Set(\"apiVersion\", "
        "\"{}\");\n"
        "  }}\n",
        m.kind, m.group.empty() ? m.version : m.group + "/" + m.version);
  }

  void AddField(const MessageModel& owner, const FieldModel& f, std::string* out) override {
    if ((owner.flags & kTopFlag) != 0 && (f.name == "kind" || f.name == "apiVersion")) return;
    const std::string name = Identifier(f.name);
    const std::string at = fmt::format("m[\"{}\"]", f.name);
    const Getter getter = GetterOf(f.type);
    const bool list =
        f.shape == Shape::kList || (f.type == Type::kStringList && f.shape != Shape::kMap);
    if (f.type == Type::kMessage && f.shape != Shape::kMap) {
      if (list)
        Later(owner, TypeName(f), Identifier("add_" + f.name), at + ".Append()", out);
      else
        Later(owner, TypeName(f), name, at, out);
    } else if (f.shape == Shape::kSingle && getter.type != nullptr) {
      *out += fmt::format("  void {}({} x) const {{ {}.{}(x); }}\n", Identifier("set_" + f.name),
                          getter.type, at, getter.set);
    } else if (list && (getter.type != nullptr || f.type == Type::kStringList)) {
      const Getter element = f.type == Type::kStringList ? GetterOf(Type::kString) : getter;
      *out += fmt::format("  void {}({} x) const {{ {}.Append().{}(x); }}\n",
                          Identifier("add_" + f.name), element.type, at, element.set);
    }
    if (f.type != Type::kMessage || f.shape != Shape::kSingle) {
      *out += fmt::format("  Mut {}() const {{ return {}; }}\n", name, at);
    }
  }
};

}  // namespace

std::string RenderViews(const Model& model, const std::string& file) {
  return Views(model, file).Render("views", "View");
}

std::string RenderBuilders(const Model& model, const std::string& file) {
  return Builders(model, file).Render("builders", "Builder");
}

}  // namespace sextant::api::gen
