#include "api/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/json.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxSteps = 128;
constexpr size_t kMaxFound = 10'000;  // values of one path

std::string Text(Value v) { return v.IsString() ? std::string(v.AsString()) : ToJson(v); }

// Everything below `v`, itself first.
void Descend(Value v, std::vector<Value>& out) {
  if (out.size() >= kMaxFound) return;
  out.push_back(v);
  for (Value item : v.items()) Descend(item, out);
  for (auto [key, value] : v.members()) Descend(value, out);
}

}  // namespace

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Step>> Steps(std::string_view ends) {
    std::vector<Step> steps;
    while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos) {
      if (steps.size() >= kMaxSteps) return Fail(Wrong("too many steps"));
      if (text_[at_] == '[') {
        RETURN_IF_ERROR(Bracket(steps));
      } else {
        RETURN_IF_ERROR(Dotted(steps));
      }
    }
    return steps;
  }

  Error Wrong(std::string_view what) const {
    return BadRequest(fmt::format("JSONPath \"{}\", character {}: {}", text_, at_, what));
  }
  void Skip(size_t n) { at_ += n; }
  bool AtEnd() const { return at_ >= text_.size(); }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Spaces() {
    while (Peek() == ' ') ++at_;
  }

  Status Dotted(std::vector<Step>& steps) {
    if (Peek() == '.') ++at_;
    if (Peek() == '.') {
      ++at_;
      steps.push_back({.kind = Step::Kind::kRecursive});
    }
    if (Peek() == '[' || AtEnd()) return {};
    if (Peek() == '*') {
      ++at_;
      steps.push_back({.kind = Step::Kind::kWildcard});
      return {};
    }
    Step step{.kind = Step::Kind::kMember};
    while (!AtEnd()) {
      const char c = Peek();
      if (c == '\\' && at_ + 1 < text_.size()) {
        step.name += text_[at_ + 1];
        at_ += 2;
      } else if (std::string_view(".[]{}()=!<> ").find(c) != std::string_view::npos) {
        break;
      } else {
        step.name += c;
        ++at_;
      }
    }
    if (step.name.empty()) return Fail(Wrong("unexpected character"));
    steps.push_back(std::move(step));
    return {};
  }

  Status Bracket(std::vector<Step>& steps) {
    ++at_;
    Spaces();
    if (Peek() == '?') return FilterIn(steps);
    if (Peek() == '\'' || Peek() == '"') {
      auto name = Quoted();
      if (!name) return Fail(Wrong("unterminated quote"));
      steps.push_back({.kind = Step::Kind::kMember, .name = *std::move(name)});
    } else if (Peek() == '*') {
      ++at_;
      steps.push_back({.kind = Step::Kind::kWildcard});
    } else {
      RETURN_IF_ERROR(IndexOrSlice(steps));
    }
    Spaces();
    if (Peek() != ']') return Fail(Wrong("']' expected"));
    ++at_;
    return {};
  }

  std::optional<std::string> Quoted() {
    const char quote = Peek();
    std::string out;
    for (++at_; !AtEnd(); ++at_) {
      if (Peek() == quote) {
        ++at_;
        return out;
      }
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      out += Peek();
    }
    return std::nullopt;
  }

  bool Integer(int64_t& out) {
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    return true;
  }

  Status IndexOrSlice(std::vector<Step>& steps) {
    Step step{.kind = Step::Kind::kIndex};
    step.has_first = Integer(step.first);
    if (Peek() == ':') {
      step.kind = Step::Kind::kSlice;
      ++at_;
      step.has_last = Integer(step.last);
      if (Peek() == ':') {
        ++at_;
        if (!Integer(step.by) || step.by <= 0) return Fail(Wrong("step must be > 0"));
      }
    } else if (!step.has_first) {
      return Fail(Wrong("an index, a name or a filter expected"));
    }
    steps.push_back(std::move(step));
    return {};
  }

  Status FilterIn(std::vector<Step>& steps) {
    ++at_;
    if (Peek() != '(') return Fail(Wrong("'(' expected"));
    ++at_;
    Spaces();
    if (Peek() != '@') return Fail(Wrong("'@' expected"));
    ++at_;
    Step step{.kind = Step::Kind::kFilter};
    ASSIGN_OR_RETURN(step.left, Steps("=!<>) "));
    Spaces();
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!text_.substr(at_).starts_with(op)) continue;
      step.op = op;
      at_ += op.size();
      Spaces();
      RETURN_IF_ERROR(Right(step));
      break;
    }
    Spaces();
    if (!text_.substr(at_).starts_with(")]")) return Fail(Wrong("\")]\" expected"));
    at_ += 2;
    steps.push_back(std::move(step));
    return {};
  }

  Status Right(Step& step) {
    if (Peek() == '\'' || Peek() == '"') {
      auto text = Quoted();
      if (!text) return Fail(Wrong("unterminated quote"));
      step.right = *std::move(text);
      step.right_is_text = true;
      return {};
    }
    while (!AtEnd() && Peek() != ')' && Peek() != ' ') step.right += text_[at_++];
    if (step.right.empty()) return Fail(Wrong("a value expected"));
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  if (text.size() > kMaxPath) return Fail(BadRequest("JSONPath is too long"));
  Parser parser(text);
  if (text.starts_with('$')) parser.Skip(1);
  JsonPath path;
  ASSIGN_OR_RETURN(path.steps_, parser.Steps("{}"));
  if (!parser.AtEnd()) return Fail(parser.Wrong("unexpected character"));
  return path;
}

bool JsonPath::Holds(const Step& filter, Value item) {
  const std::vector<Value> found = Follow(filter.left, item);
  if (filter.op.empty()) return !found.empty();
  if (found.size() != 1) return false;
  const Value left = found[0];
  int order = 0;
  double number = 0;
  const char* end = filter.right.data() + filter.right.size();
  const bool numeric =
      !filter.right_is_text && std::from_chars(filter.right.data(), end, number).ptr == end;
  if (numeric && left.IsNumber()) {
    order = left.AsDouble() < number ? -1 : left.AsDouble() > number ? 1 : 0;
  } else {
    order = Text(left).compare(filter.right);
  }
  if (filter.op == "==") return order == 0;
  if (filter.op == "!=") return order != 0;
  if (filter.op == "<") return order < 0;
  if (filter.op == "<=") return order <= 0;
  return filter.op == ">" ? order > 0 : order >= 0;
}

void JsonPath::Walk(std::vector<Value>& at, const Step& step) {
  std::vector<Value> next;
  for (Value v : at) {
    if (next.size() >= kMaxFound) break;
    const auto size = static_cast<int64_t>(v.IsList() ? v.size() : 0);
    const auto from_end = [size](int64_t i) { return i < 0 ? i + size : i; };
    switch (step.kind) {
      case Step::Kind::kMember:
        if (const Value child = v[step.name]; !child.IsAbsent()) next.push_back(child);
        break;
      case Step::Kind::kWildcard:
        for (Value item : v.items()) next.push_back(item);
        for (auto [key, value] : v.members()) next.push_back(value);
        break;
      case Step::Kind::kRecursive:
        Descend(v, next);
        break;
      case Step::Kind::kIndex:
        if (const int64_t i = from_end(step.first); i >= 0 && i < size) {
          next.push_back(v.at(static_cast<size_t>(i)));
        }
        break;
      case Step::Kind::kSlice: {
        const int64_t first = std::max<int64_t>(step.has_first ? from_end(step.first) : 0, 0);
        const int64_t last = std::min(step.has_last ? from_end(step.last) : size, size);
        for (int64_t i = first; i < last; i += step.by) {
          next.push_back(v.at(static_cast<size_t>(i)));
        }
        break;
      }
      case Step::Kind::kFilter:
        for (Value item : v.items())
          if (Holds(step, item)) next.push_back(item);
        break;
    }
  }
  at = std::move(next);
}

std::vector<Value> JsonPath::Follow(const std::vector<Step>& steps, Value root) {
  std::vector<Value> at = {root};
  for (const Step& step : steps) Walk(at, step);
  return at;
}

std::vector<Value> JsonPath::Find(Value root) const { return Follow(steps_, root); }

}  // namespace sextant::api
