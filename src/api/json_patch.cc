// ApplyJsonPatch of patch.h.
#include <charconv>
#include <optional>

#include "api/canonical.h"
#include "api/patch.h"

namespace sextant::api {
namespace {

// The API does not say what an operation failed on.
Error Rejected() {
  return Error{.code = 422,
               .reason = "Invalid",
               .message = "the server rejected our request due to an error in our request",
               .empty_details = true};
}

std::string DecodeToken(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    bool escape =
        token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1');
    if (escape) {
      out += token[++i] == '1' ? '/' : '~';
    } else {
      out += token[i];
    }
  }
  return out;
}

// Go's Atoi.
std::optional<int64_t> Index(std::string_view text) {
  bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (plus && text.starts_with('-')) return std::nullopt;
  int64_t v = 0;
  auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (text.empty() || ec != std::errc() || ptr != text.data() + text.size()) return std::nullopt;
  return v;
}

class Patcher {
 public:
  explicit Patcher(const Object& current) : edit_(current) {}

  Status Apply(Value op) {
    std::string_view kind = op["op"].AsString();
    bool has_path = op["path"].IsString();
    std::string_view path = op["path"].AsString();
    if (!has_path) return Fail(Rejected());
    if (kind == "add") return Add(path, op["value"]);
    if (kind == "remove") return Remove(path);
    if (kind == "replace") return Replace(path, op["value"]);
    if (kind == "test") return Test(path, op["value"]);
    if (kind != "move" && kind != "copy") return Fail(Rejected());
    if (!op["from"].IsString()) return Fail(Rejected());
    ASSIGN_OR_RETURN(Value value, Get(op["from"].AsString()));
    if (kind == "move") {
      RETURN_IF_ERROR(Remove(op["from"].AsString()));
      return Add(path, value);
    }
    copied_ += CompactSize(value);
    if (copied_ > kMaxJsonPatchCopyBytes) return Fail(Rejected());
    return Add(path, value);
  }

  Object Finish() && { return std::move(edit_).Finish(); }

 private:
  struct Place {
    Mut container;
    std::string key;
  };

  // The container that a path's last part lies in.
  Result<Place> Find(std::string_view path) {
    size_t slash = path.find('/');
    if (slash == std::string_view::npos) return Fail(Rejected());
    path.remove_prefix(slash + 1);
    Mut at = edit_.Root();
    while (true) {
      slash = path.find('/');
      std::string key = DecodeToken(path.substr(0, slash));
      if (at.kind() != Kind::kMap && at.kind() != Kind::kList) return Fail(Rejected());
      if (slash == std::string_view::npos) return Place{at, std::move(key)};
      ASSIGN_OR_RETURN(at, Child({at, std::move(key)}));
      path.remove_prefix(slash + 1);
    }
  }

  // What is there; absent if a map lacks it.
  Result<Mut> Child(const Place& p) {
    if (p.container.kind() == Kind::kMap) {
      return p.container.Has(p.key) ? p.container[p.key] : Mut();
    }
    ASSIGN_OR_RETURN(size_t i, ItemIndex(p, p.container.size()));
    return p.container.at(i);
  }

  // An index below `end`; negative ones count from it.
  static Result<size_t> ItemIndex(const Place& p, size_t end) {
    auto i = Index(p.key);
    auto n = static_cast<int64_t>(end);
    if (!i || *i >= n || *i < -n) return Fail(Rejected());
    return static_cast<size_t>(*i < 0 ? *i + n : *i);
  }

  Result<Value> Get(std::string_view path) {
    ASSIGN_OR_RETURN(Place p, Find(path));
    ASSIGN_OR_RETURN(Mut m, Child(p));
    return m.Snapshot();
  }

  static void Put(Mut place, Value v) {
    if (v.IsAbsent()) {
      place.SetNull();
    } else {
      place.Set(v);
    }
  }

  Status Add(std::string_view path, Value v) {
    ASSIGN_OR_RETURN(Place p, Find(path));
    if (p.container.kind() == Kind::kMap) {
      Put(p.container[p.key], v);
      return {};
    }
    if (p.key == "-") {
      Put(p.container.Append(), v);
      return {};
    }
    ASSIGN_OR_RETURN(size_t i, ItemIndex(p, p.container.size() + 1));
    Put(p.container.Insert(i), v);
    return {};
  }

  Status Remove(std::string_view path) {
    ASSIGN_OR_RETURN(Place p, Find(path));
    if (p.container.kind() == Kind::kMap) {
      if (!p.container.Has(p.key)) return Fail(Rejected());
      p.container.Erase(p.key);
      return {};
    }
    ASSIGN_OR_RETURN(size_t i, ItemIndex(p, p.container.size()));
    p.container.EraseAt(i);
    return {};
  }

  Status Replace(std::string_view path, Value v) {
    if (path.empty()) {
      if (!v.IsMap() && !v.IsList()) return Fail(Rejected());
      edit_.Root().Set(v);
      return {};
    }
    ASSIGN_OR_RETURN(Place p, Find(path));
    if (p.container.kind() == Kind::kMap) {
      // A member that is not there is made; the library that the API server uses does the same.
      Put(p.container[p.key], v);
      return {};
    }
    ASSIGN_OR_RETURN(size_t i, ItemIndex(p, p.container.size()));
    Put(p.container.at(i), v);
    return {};
  }

  Status Test(std::string_view path, Value want) {
    Value have;
    if (path.empty()) {
      have = edit_.Root().Snapshot();
    } else {
      ASSIGN_OR_RETURN(have, Get(path));
    }
    bool both_nothing = !have && !want;
    if (both_nothing || Equal(have, want)) return {};
    return Fail(Rejected());
  }

  Editor edit_;
  size_t copied_ = 0;
};

}  // namespace

Result<Object> ApplyJsonPatch(const Object& current, const Object& operations) {
  size_t n = operations.root().size();
  if (n > kMaxJsonPatchOperations) {
    return Fail(RequestEntityTooLarge("The allowed maximum operations in a JSON patch is " +
                                      std::to_string(kMaxJsonPatchOperations) + ", got " +
                                      std::to_string(n)));
  }
  Patcher patcher(current);
  for (Value op : operations.root().items()) RETURN_IF_ERROR(patcher.Apply(op));
  return std::move(patcher).Finish();
}

}  // namespace sextant::api
