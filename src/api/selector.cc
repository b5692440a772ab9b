#include "api/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "api/names.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxSelectorBytes = size_t{1} << 20;

struct OpText {
  SelectorOp op;
  std::string_view text;
};
// In the order in which Kubernetes lists them.
constexpr OpText kBinaryOps[] = {
    {SelectorOp::kIn, "in"},        {SelectorOp::kNotIn, "notin"},
    {SelectorOp::kEquals, "="},     {SelectorOp::kDoubleEquals, "=="},
    {SelectorOp::kNotEquals, "!="}, {SelectorOp::kGreaterThan, "gt"},
    {SelectorOp::kLessThan, "lt"},
};

std::optional<int64_t> Integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t v;
  auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || ptr != text.data() + text.size()) return std::nullopt;
  return v;
}

std::string InvalidValue(std::string_view path, std::string_view shown, std::string_view why) {
  return fmt::format("{}: Invalid value: {}: {}", path, shown, why);
}

std::string ShowList(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& v : values) {
    if (out.size() > 1) out += ',';
    out += Quote(v);
  }
  return out + "]";
}

// The complaints about a requirement, as NewRequirement gives them; "" if there are none.
std::string Check(const LabelRequirement& r) {
  std::vector<std::string> errors;
  auto add = [&](std::string_view path, std::string_view shown, std::string_view why) {
    std::string text = InvalidValue(path, shown, why);
    if (std::ranges::find(errors, text) == errors.end()) errors.push_back(std::move(text));
  };
  Complaints key = IsQualifiedName(r.key);
  if (!key.empty()) add("key", Quote(r.key), fmt::format("{}", fmt::join(key, "; ")));
  auto values = [&](std::string_view why) { add("values", ShowList(r.values), why); };
  switch (r.op) {
    case SelectorOp::kIn:
    case SelectorOp::kNotIn:
      if (r.values.empty()) values("for 'in', 'notin' operators, values set can't be empty");
      break;
    case SelectorOp::kEquals:
    case SelectorOp::kDoubleEquals:
    case SelectorOp::kNotEquals:
      if (r.values.size() != 1) values("exact-match compatibility requires one single value");
      break;
    case SelectorOp::kExists:
    case SelectorOp::kDoesNotExist:
      if (!r.values.empty()) values("values set must be empty for exists and does not exist");
      break;
    case SelectorOp::kGreaterThan:
    case SelectorOp::kLessThan:
      if (r.values.size() != 1) values("for 'Gt', 'Lt' operators, exactly one value is required");
      for (size_t i = 0; i < r.values.size(); ++i) {
        if (Integer(r.values[i])) continue;
        add(fmt::format("values[{}]", i), Quote(r.values[i]),
            "for 'Gt', 'Lt' operators, the value must be an integer");
      }
      break;
  }
  for (size_t i = 0; i < r.values.size(); ++i) {
    Complaints bad = IsLabelValue(r.values[i]);
    if (bad.empty()) continue;
    add(fmt::format("values[{}][{}]", i, r.key), Quote(r.values[i]),
        fmt::format("{}", fmt::join(bad, "; ")));
  }
  if (errors.size() <= 1) return errors.empty() ? "" : errors[0];
  return fmt::format("[{}]", fmt::join(errors, ", "));
}

enum class Token : uint8_t {
  kError,
  kEnd,
  kClose,
  kComma,
  kNot,
  kOperator,
  kIdentifier,
  kIn,
  kNotIn,
  kOpen,
};

struct Item {
  Token token = Token::kEnd;
  std::string text;
};

bool Special(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }
bool Space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::optional<Token> SpecialToken(std::string_view s) {
  if (s == ")") return Token::kClose;
  if (s == ",") return Token::kComma;
  if (s == "!") return Token::kNot;
  if (s == "(") return Token::kOpen;
  if (s == "==" || s == "=" || s == ">" || s == "<" || s == "!=") return Token::kOperator;
  return std::nullopt;
}

std::vector<Item> Lex(std::string_view s) {
  std::vector<Item> items;
  size_t at = 0;
  while (true) {
    while (at < s.size() && Space(s[at])) ++at;
    // A NUL ends the text, as in Kubernetes.
    if (at >= s.size() || s[at] == 0) break;
    size_t start = at;
    if (!Special(s[at])) {
      while (at < s.size() && s[at] != 0 && !Special(s[at]) && !Space(s[at])) ++at;
      std::string_view word = s.substr(start, at - start);
      Token token = word == "in"      ? Token::kIn
                    : word == "notin" ? Token::kNotIn
                                      : Token::kIdentifier;
      items.push_back({token, std::string(word)});
      continue;
    }
    // The longest run that is a token.
    Item item{Token::kError, ""};
    while (at < s.size() && Special(s[at])) {
      auto token = SpecialToken(s.substr(start, at - start + 1));
      if (!token && item.token != Token::kError) break;
      ++at;
      if (token) item = {*token, std::string(s.substr(start, at - start))};
    }
    if (item.token == Token::kError) {
      item.text = fmt::format("error expected: keyword found '{}'", s.substr(start, at - start));
    }
    items.push_back(std::move(item));
  }
  items.push_back({Token::kEnd, ""});
  return items;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : items_(Lex(text)) {}

  Result<std::vector<LabelRequirement>> Parse() {
    std::vector<LabelRequirement> out;
    while (true) {
      const Item& next = Look();
      if (next.token == Token::kEnd) return out;
      if (!IsWord(next) && next.token != Token::kNot) {
        return Found(next, "!, identifier, or 'end of string'");
      }
      auto requirement = Requirement();
      if (!requirement) {
        return Fail(BadRequest("unable to parse requirement: " + requirement.error().message));
      }
      out.push_back(*std::move(requirement));
      Item after = Take();
      if (after.token == Token::kEnd) return out;
      if (after.token != Token::kComma) return Found(after, "',' or 'end of string'");
      if (!IsWord(Look()) && Look().token != Token::kNot) {
        return Fail(
            BadRequest(fmt::format("found '{}', expected: identifier after ','", Look().text)));
      }
    }
  }

 private:
  static std::unexpected<Error> Found(const Item& item, std::string_view expected) {
    return Fail(BadRequest(fmt::format("found '{}', expected: {}", item.text, expected)));
  }
  // `in` and `notin` are words where no operator can stand.
  static bool IsWord(const Item& item) {
    return item.token == Token::kIdentifier || item.token == Token::kIn ||
           item.token == Token::kNotIn;
  }
  const Item& Look() const { return items_[std::min(at_, items_.size() - 1)]; }
  Item Take() {
    Item item = Look();
    ++at_;
    return item;
  }

  Result<LabelRequirement> Requirement() {
    LabelRequirement r;
    Item item = Take();
    bool negated = item.token == Token::kNot;
    if (negated) item = Take();
    if (!IsWord(item)) return Found(item, "identifier");
    r.key = item.text;
    if (Complaints bad = IsQualifiedName(r.key); !bad.empty()) {
      return Fail(
          BadRequest(InvalidValue("<nil>", Quote(r.key), fmt::format("{}", fmt::join(bad, "; ")))));
    }
    bool alone = Look().token == Token::kEnd || Look().token == Token::kComma;
    if (negated || alone) {
      r.op = negated ? SelectorOp::kDoesNotExist : SelectorOp::kExists;
      return Checked(std::move(r));
    }
    RETURN_IF_ERROR(Operator(r.op));
    std::set<std::string> values;
    if (r.op == SelectorOp::kIn || r.op == SelectorOp::kNotIn) {
      RETURN_IF_ERROR(Values(values));
    } else if (Look().token == Token::kEnd || Look().token == Token::kComma) {
      values.insert("");
    } else {
      Item value = Take();
      if (!IsWord(value)) return Found(value, "identifier");
      values.insert(value.text);
    }
    r.values.assign(values.begin(), values.end());
    return Checked(std::move(r));
  }

  static Result<LabelRequirement> Checked(LabelRequirement r) {
    std::string why = Check(r);
    if (!why.empty()) return Fail(BadRequest(why));
    return r;
  }

  Status Operator(SelectorOp& op) {
    Item item = Take();
    std::string_view text = item.text;
    if (text == ">") text = "gt";
    if (text == "<") text = "lt";
    bool is_operator =
        item.token == Token::kOperator || item.token == Token::kIn || item.token == Token::kNotIn;
    for (const OpText& known : kBinaryOps) {
      if (!is_operator || known.text != text) continue;
      op = known.op;
      return {};
    }
    return Found(item, "in, notin, =, ==, !=, gt, lt");
  }

  Status Values(std::set<std::string>& out) {
    Item open = Take();
    if (open.token != Token::kOpen) {
      return Fail(BadRequest(fmt::format("found '{}' expected: '('", open.text)));
    }
    if (Look().token == Token::kClose) {
      Take();
      out.insert("");
      return {};
    }
    if (!IsWord(Look()) && Look().token != Token::kComma) {
      return Found(Look(), "',', ')' or identifier");
    }
    RETURN_IF_ERROR(Identifiers(out));
    Take();  // the closing parenthesis, which Identifiers saw
    return {};
  }

  Status Identifiers(std::set<std::string>& out) {
    while (true) {
      Item item = Take();
      if (IsWord(item)) {
        out.insert(item.text);
        if (Look().token == Token::kClose) return {};
        if (Look().token != Token::kComma) return Found(Look(), "',' or ')'");
      } else if (item.token == Token::kComma) {
        bool ends = Look().token == Token::kClose;
        if (out.empty() || ends || Look().token == Token::kComma) out.insert("");
        if (ends) return {};
      } else {
        return Found(item, "',', or identifier");
      }
    }
  }

  std::vector<Item> items_;
  size_t at_ = 0;
};

void SortByKey(std::vector<LabelRequirement>& requirements) {
  // Insertion keeps equal keys in order.
  for (size_t i = 1; i < requirements.size(); ++i) {
    for (size_t j = i; j > 0 && requirements[j].key < requirements[j - 1].key; --j) {
      std::swap(requirements[j], requirements[j - 1]);
    }
  }
}

}  // namespace

bool LabelRequirement::Matches(Value labels) const {
  Value label = labels[key];
  bool present = !label.IsAbsent();
  std::string_view text = label.AsString();
  auto listed = [&] { return std::ranges::find(values, text) != values.end(); };
  switch (op) {
    case SelectorOp::kIn:
    case SelectorOp::kEquals:
    case SelectorOp::kDoubleEquals:
      return present && listed();
    case SelectorOp::kNotIn:
    case SelectorOp::kNotEquals:
      return !present || !listed();
    case SelectorOp::kExists:
      return present;
    case SelectorOp::kDoesNotExist:
      return !present;
    case SelectorOp::kGreaterThan:
    case SelectorOp::kLessThan: {
      if (!present || values.size() != 1) return false;
      auto have = Integer(text);
      auto want = Integer(values[0]);
      if (!have || !want) return false;
      return op == SelectorOp::kGreaterThan ? *have > *want : *have < *want;
    }
  }
  return false;
}

std::string LabelRequirement::ToString() const {
  std::vector<std::string> sorted = values;
  std::ranges::sort(sorted);
  std::string joined = fmt::format("{}", fmt::join(sorted, ","));
  switch (op) {
    case SelectorOp::kIn:
      return key + " in (" + joined + ")";
    case SelectorOp::kNotIn:
      return key + " notin (" + joined + ")";
    case SelectorOp::kEquals:
      return key + "=" + joined;
    case SelectorOp::kDoubleEquals:
      return key + "==" + joined;
    case SelectorOp::kNotEquals:
      return key + "!=" + joined;
    case SelectorOp::kExists:
      return key;
    case SelectorOp::kDoesNotExist:
      return "!" + key;
    case SelectorOp::kGreaterThan:
      return key + ">" + joined;
    case SelectorOp::kLessThan:
      return key + "<" + joined;
  }
  return key;
}

LabelSelector LabelSelector::Nothing() {
  LabelSelector s;
  s.nothing_ = true;
  return s;
}

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  if (text.size() > kMaxSelectorBytes) return Fail(BadRequest("label selector is too long"));
  LabelSelector s;
  ASSIGN_OR_RETURN(s.requirements_, Parser(text).Parse());
  SortByKey(s.requirements_);
  return s;
}

Result<LabelSelector> LabelSelector::From(Value selector) {
  if (!selector) return Nothing();
  LabelSelector s;
  for (MemberView m : selector["matchLabels"].members()) {
    s.requirements_.push_back(
        {std::string(m.key), SelectorOp::kEquals, {std::string(m.value.AsString())}});
  }
  for (Value expression : selector["matchExpressions"].items()) {
    LabelRequirement r;
    std::string_view op = expression["operator"].AsString();
    if (op == "In") {
      r.op = SelectorOp::kIn;
    } else if (op == "NotIn") {
      r.op = SelectorOp::kNotIn;
    } else if (op == "Exists") {
      r.op = SelectorOp::kExists;
    } else if (op == "DoesNotExist") {
      r.op = SelectorOp::kDoesNotExist;
    } else {
      return Fail(BadRequest(Quote(op) + " is not a valid label selector operator"));
    }
    r.key = expression["key"].AsString();
    for (Value v : expression["values"].items()) r.values.emplace_back(v.AsString());
    s.requirements_.push_back(std::move(r));
  }
  for (const LabelRequirement& r : s.requirements_) {
    if (std::string why = Check(r); !why.empty()) return Fail(BadRequest(why));
  }
  SortByKey(s.requirements_);
  return s;
}

LabelSelector LabelSelector::FromMap(Value labels) {
  LabelSelector s;
  for (MemberView m : labels.members()) {
    s.requirements_.push_back(
        {std::string(m.key), SelectorOp::kEquals, {std::string(m.value.AsString())}});
  }
  SortByKey(s.requirements_);
  return s;
}

bool LabelSelector::Matches(Value labels) const {
  return !nothing_ && std::ranges::all_of(requirements_, [&](const LabelRequirement& r) {
    return r.Matches(labels);
  });
}

std::string LabelSelector::ToString() const {
  std::string out;
  for (const LabelRequirement& r : requirements_) {
    if (!out.empty()) out += ',';
    out += r.ToString();
  }
  return out;
}

}  // namespace sextant::api
