#include "api/schema_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/regex.h"

namespace sextant::api {
namespace {

using Children = std::vector<std::unique_ptr<SchemaNode>>;

re2::RE2::Options PatternOptions() {
  constexpr int64_t kMaxMemory = 8 << 20;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  return options;
}

std::optional<double> Number(Value v) {
  if (!v) return std::nullopt;
  return v.AsDouble();
}

std::optional<int64_t> Integer(Value v) {
  if (!v) return std::nullopt;
  return v.AsInt();
}

void Texts(Value list, std::vector<std::string_view>& out) {
  for (Value item : list.items()) out.push_back(item.AsString());
}

class Compiler {
 public:
  Result<std::unique_ptr<SchemaNode>> Compile(Value schema, size_t depth) {
    if (depth > kMaxSchemaDepth) {
      return Fail(BadRequest(fmt::format("a schema has at most {} levels", kMaxSchemaDepth)));
    }
    if (++nodes_ > kMaxSchemaNodes) {
      return Fail(BadRequest(fmt::format("a schema has at most {} nodes", kMaxSchemaNodes)));
    }
    auto node = std::make_unique<SchemaNode>();
    ReadStructure(schema, *node);
    RETURN_IF_ERROR(ReadValues(schema, *node));
    RETURN_IF_ERROR(ReadChildren(schema, *node, depth));
    return node;
  }

 private:
  static void ReadStructure(Value schema, SchemaNode& node) {
    node.type = schema["type"].AsString();
    node.nullable = schema["nullable"].AsBool();
    node.preserve_unknown = schema["x-kubernetes-preserve-unknown-fields"].AsBool();
    node.embedded = schema["x-kubernetes-embedded-resource"].AsBool();
    node.int_or_string = schema["x-kubernetes-int-or-string"].AsBool();
    node.list_type = schema["x-kubernetes-list-type"].AsString();
    node.map_type = schema["x-kubernetes-map-type"].AsString();
    Texts(schema["x-kubernetes-list-map-keys"], node.list_map_keys);
    if (schema["default"]) node.default_value = schema["default"];
  }

  Status ReadValues(Value schema, SchemaNode& node) {
    node.format = schema["format"].AsString();
    node.pattern = schema["pattern"].AsString();
    node.maximum = Number(schema["maximum"]);
    node.minimum = Number(schema["minimum"]);
    node.multiple_of = Number(schema["multipleOf"]);
    node.exclusive_maximum = schema["exclusiveMaximum"].AsBool();
    node.exclusive_minimum = schema["exclusiveMinimum"].AsBool();
    node.max_length = Integer(schema["maxLength"]);
    node.min_length = Integer(schema["minLength"]);
    node.max_items = Integer(schema["maxItems"]);
    node.min_items = Integer(schema["minItems"]);
    node.max_properties = Integer(schema["maxProperties"]);
    node.min_properties = Integer(schema["minProperties"]);
    for (Value item : schema["enum"].items()) node.enum_values.push_back(item);
    Texts(schema["required"], node.required);
    if (node.pattern.empty()) return {};
    auto expression = std::make_unique<re2::RE2>(Re2Text(node.pattern), PatternOptions());
    if (!expression->ok()) return {};  // the CRD's own validation says so
    pattern_size_ += static_cast<size_t>(std::max(expression->ProgramSize(), 0));
    if (pattern_size_ > kMaxPatternSize) {
      return Fail(BadRequest("the patterns of a schema are too large together"));
    }
    node.expression = std::move(expression);
    return {};
  }

  Status ReadChildren(Value schema, SchemaNode& node, size_t depth) {
    const Value properties = schema["properties"];
    if (properties.size() > kMaxSchemaProperties) {
      return Fail(
          BadRequest(fmt::format("an object has at most {} properties", kMaxSchemaProperties)));
    }
    for (auto [name, property] : properties.members()) {
      ASSIGN_OR_RETURN(auto child, Compile(property, depth + 1));
      node.properties.push_back({name, std::move(child)});
    }
    std::ranges::sort(node.properties, {}, &SchemaNode::Named::name);
    if (schema["items"].IsMap()) {
      ASSIGN_OR_RETURN(node.items, Compile(schema["items"], depth + 1));
    }
    const Value additional = schema["additionalProperties"];
    if (additional.IsMap()) {
      node.has_additional = true;
      ASSIGN_OR_RETURN(node.additional, Compile(additional, depth + 1));
    } else if (additional) {
      node.has_additional = additional.AsBool();
      node.forbids_additional = !additional.AsBool();
    }
    RETURN_IF_ERROR(ReadList(schema["allOf"], node.all_of, depth));
    RETURN_IF_ERROR(ReadList(schema["anyOf"], node.any_of, depth));
    RETURN_IF_ERROR(ReadList(schema["oneOf"], node.one_of, depth));
    if (schema["not"]) {
      ASSIGN_OR_RETURN(node.not_, Compile(schema["not"], depth + 1));
    }
    return {};
  }

  Status ReadList(Value list, Children& out, size_t depth) {
    for (Value item : list.items()) {
      ASSIGN_OR_RETURN(auto child, Compile(item, depth + 1));
      out.push_back(std::move(child));
    }
    return {};
  }

  size_t nodes_ = 0;
  size_t pattern_size_ = 0;
};

}  // namespace

SchemaNode::SchemaNode() = default;
SchemaNode::~SchemaNode() = default;

const SchemaNode* SchemaNode::Property(std::string_view name) const {
  const auto at = std::ranges::lower_bound(properties, name, {}, &SchemaNode::Named::name);
  return at != properties.end() && at->name == name ? at->node.get() : nullptr;
}

Result<std::shared_ptr<const SchemaNode>> CompileSchema(Value schema) {
  Compiler compiler;
  ASSIGN_OR_RETURN(auto node, compiler.Compile(schema, 0));
  return std::shared_ptr<const SchemaNode>(std::move(node));
}

std::string PatternError(std::string_view pattern) {
  using enum re2::RE2::ErrorCode;
  constexpr std::array<std::pair<re2::RE2::ErrorCode, std::string_view>, 13> kWords = {{
      {ErrorBadEscape, "invalid escape sequence"},
      {ErrorBadCharClass, "invalid character class"},
      {ErrorBadCharRange, "invalid character class range"},
      {ErrorMissingBracket, "missing closing ]"},
      {ErrorMissingParen, "missing closing )"},
      {ErrorUnexpectedParen, "unexpected )"},
      {ErrorTrailingBackslash, "trailing backslash at end of expression"},
      {ErrorRepeatArgument, "missing argument to repetition operator"},
      {ErrorRepeatSize, "invalid repeat count"},
      {ErrorRepeatOp, "invalid nested repetition operator"},
      {ErrorBadPerlOp, "invalid or unsupported Perl syntax"},
      {ErrorBadUTF8, "invalid UTF-8"},
      {ErrorBadNamedCapture, "invalid named capture"},
  }};
  const re2::RE2 expression(Re2Text(pattern), PatternOptions());
  if (expression.ok()) return "";
  for (const auto& [code, words] : kWords) {
    if (code != expression.error_code()) continue;
    // Go quotes the whole expression where RE2 points at nothing smaller.
    std::string shown = expression.error_arg();
    if (code == ErrorMissingParen || code == ErrorUnexpectedParen || shown.empty()) shown = pattern;
    return fmt::format("error parsing regexp: {}: `{}`", words, shown);
  }
  return fmt::format("error parsing regexp: {}", expression.error());
}

}  // namespace sextant::api
