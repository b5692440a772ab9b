// Escalation of rights: pkg/registry/rbac (policybased storage of roles and bindings),
// pkg/registry/rbac/validation, component-helpers/auth/rbac/validation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "api/lists.h"
#include "base/quote.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kClusterRole = "ClusterRole";  // a roleRef's kind
constexpr std::string_view kRole = "Role";

// A rule of one verb, on one resource (perhaps of one name) or one path.
struct Right {
  std::string group;
  std::string resource;
  std::optional<std::string> name;
  std::string path;  // empty: a resource
  std::string verb;
};

void AddRights(Value rule, std::vector<Right>& out) {
  const auto each = [&](Right right) {
    for (Value verb : rule["verbs"].items()) {
      right.verb = verb.AsString();
      out.push_back(right);
    }
  };
  for (Value group : rule["apiGroups"].items()) {
    for (Value resource : rule["resources"].items()) {
      Right right{std::string(group.AsString()), std::string(resource.AsString()), {}, {}, {}};
      if (rule["resourceNames"].empty()) each(right);
      for (Value name : rule["resourceNames"].items()) {
        right.name = name.AsString();
        each(right);
      }
    }
  }
  for (Value path : rule["nonResourceURLs"].items()) {
    each({{}, {}, {}, std::string(path.AsString()), {}});
  }
}

bool HasOrAll(Value list, std::string_view wanted) {
  return api::Holds(list, "*") || api::Holds(list, wanted);
}

bool CoversPath(std::string_view own, std::string_view path) {
  if (own == path) return true;
  if (!own.ends_with('*')) return false;
  own = own.substr(0, own.find_last_not_of('*') + 1);
  return path.starts_with(own);
}

bool Covers(Value rule, const Right& right) {
  if (!HasOrAll(rule["verbs"], right.verb)) return false;
  if (!right.path.empty()) {
    for (Value own : rule["nonResourceURLs"].items())
      if (CoversPath(own.AsString(), right.path)) return true;
    return false;
  }
  if (!HasOrAll(rule["apiGroups"], right.group)) return false;
  const size_t slash = right.resource.find('/');
  const bool any_of = slash != std::string::npos &&
                      api::Holds(rule["resources"], "*" + right.resource.substr(slash));
  if (!HasOrAll(rule["resources"], right.resource) && !any_of) return false;
  const Value names = rule["resourceNames"];
  return names.empty() || (right.name && api::Holds(names, *right.name));
}

std::string Words(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(Quote(word));
  return fmt::format("[{}]", fmt::join(quoted, " "));
}

// Rights on one resource are one line with all their verbs; rights on paths stand alone.
std::string Describe(const std::vector<Right>& missing) {
  using Key = std::tuple<std::string, std::string, std::optional<std::string>>;
  std::map<Key, std::vector<std::string>> by_resource;
  std::set<std::string> lines;
  for (const Right& right : missing) {
    if (right.path.empty()) {
      by_resource[{right.group, right.resource, right.name}].push_back(right.verb);
    } else {
      lines.insert(fmt::format("{{NonResourceURLs:{}, Verbs:{}}}", Words({right.path}),
                               Words({right.verb})));
    }
  }
  for (const auto& [key, verbs] : by_resource) {
    const auto& [group, resource, name] = key;
    const std::string names = name ? fmt::format(", ResourceNames:{}", Words({*name})) : "";
    lines.insert(fmt::format("{{APIGroups:{}, Resources:{}{}, Verbs:{}}}", Words({group}),
                             Words({resource}), names, Words(verbs)));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// "" if the user holds all of `rights` where the request goes to.
std::string Lacking(const AdmissionRequest& request, const std::vector<Right>& rights) {
  const User& user = request.op.user;
  const UserRules own = request.authorizer.RulesFor(user, request.op.info.ns, request.view);
  std::vector<Right> missing;
  for (const Right& right : rights) {
    const auto covers = [&](Value rule) { return Covers(rule, right); };
    if (std::ranges::none_of(own.rules, covers)) missing.push_back(right);
  }
  if (missing.empty()) return {};
  return fmt::format(
      "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
      Quote(user.name), Words(user.groups), Describe(missing));
}

bool SameButOwnership(Value a, Value b) {
  const auto covers = [](Value x, Value y) {
    for (auto [key, value] : x.members()) {
      if (key == "metadata") {
        for (auto [name, meta] : value.members()) {
          if (name == "ownerReferences" || name == "finalizers" || name == "managedFields" ||
              name == "resourceVersion") {
            continue;
          }
          if (!Equal(meta, y[key][name])) return false;
        }
      } else if (!Equal(value, y[key])) {
        return false;
      }
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

std::unexpected<Error> Refuse(const AdmissionRequest& request, std::string_view why) {
  const Operation& op = request.op;
  return Fail(Forbidden({op.info.group, std::string(op.resource->plural)},
                        op.info.name.empty() ? op.body.name() : op.info.name, why));
}

bool Allowed(const AdmissionRequest& request, RequestInfo info) {
  return request.authorizer.Authorize(request.op.user, info, request.view).allowed;
}

Status CheckRole(const AdmissionRequest& request, Value role, bool aggregates) {
  RequestInfo escalate = request.op.info;
  escalate.verb = "escalate";
  escalate.subresource.clear();
  if (Allowed(request, escalate)) return {};
  std::vector<Right> rights;
  for (Value rule : role["rules"].items()) AddRights(rule, rights);
  if (const std::string why = Lacking(request, rights); !why.empty()) return Refuse(request, why);
  if (!aggregates) return {};
  // Whoever says what a role gathers may get everything.
  const std::vector<Right> all = {{"*", "*", {}, {}, "*"}, {{}, {}, {}, "*", "*"}};
  if (Lacking(request, all).empty()) return {};
  return Refuse(request, "must have cluster-admin privileges to use the aggregationRule");
}

Status CheckBinding(const AdmissionRequest& request, Value binding) {
  const Value ref = binding["roleRef"];
  const std::string_view kind = ref["kind"].AsString();
  if (kind != kClusterRole && kind != kRole) {
    return Fail({.message = fmt::format("unsupported role reference kind: {}", Quote(kind))});
  }
  const bool cluster = kind == kClusterRole;
  RequestInfo bind = request.op.info;
  bind.verb = "bind";
  bind.group = ref["apiGroup"].AsString();
  bind.resource = cluster ? "clusterroles" : "roles";
  bind.subresource.clear();
  bind.name = ref["name"].AsString();
  if (Allowed(request, bind)) return {};
  const GroupResource roles{std::string(kGroup), bind.resource};
  const Object role =
      request.view.Get(roles.ToString(), cluster ? "" : request.op.info.ns, bind.name);
  // The registry names what the request is about, not what is missing.
  if (!role) return Fail(NotFound({request.op.info.group, request.op.info.resource}, bind.name));
  std::vector<Right> rights;
  for (Value rule : role["rules"].items()) AddRights(rule, rights);
  if (const std::string why = Lacking(request, rights); !why.empty()) return Refuse(request, why);
  return {};
}

class RoleEscalationCheck : public AdmissionPlugin {
 public:
  std::string_view name() const override { return ""; }  // cannot be switched off

  Status Allocate(const AdmissionRequest& request, Mut object) const override {
    if (request.op.resource->group_version.group != kGroup || request.verb == "delete") return {};
    if (request.op.user.InGroup("system:masters")) return {};
    const Value next = object.Snapshot();
    if (request.old && SameButOwnership(next, request.old)) return {};
    if (request.On(kGroup, "roles")) return CheckRole(request, next, false);
    if (request.On(kGroup, "clusterroles")) {
      constexpr std::string_view kSelectors = "aggregationRule.clusterRoleSelectors";
      return CheckRole(request, next,
                       !next.Path(kSelectors).empty() || !request.old.Path(kSelectors).empty());
    }
    return CheckBinding(request, next);
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeRoleEscalationCheck() {
  return std::make_unique<RoleEscalationCheck>();
}

}  // namespace sextant::server
