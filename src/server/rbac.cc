// RBAC, and the chain of authorizers: k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac.
#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "server/admission.h"
#include "server/authorizer.h"
#include "server/node_authorizer.h"

namespace sextant::server {
namespace {

using api::Value;

constexpr std::string_view kClusterRole = "ClusterRole";  // a roleRef's kind
constexpr std::string_view kServiceAccountUser = "system:serviceaccount:";

bool ListHas(Value list, std::string_view wanted) {
  for (Value item : list.items())
    if (item.AsString() == wanted || item.AsString() == "*") return true;
  return false;
}

bool ResourceMatches(Value resources, const RequestInfo& info) {
  const std::string combined =
      info.subresource.empty() ? info.resource : info.resource + "/" + info.subresource;
  const std::string any_of = "*/" + info.subresource;
  for (Value item : resources.items()) {
    const std::string_view rule = item.AsString();
    if (rule == "*" || rule == combined) return true;
    if (!info.subresource.empty() && rule == any_of) return true;
  }
  return false;
}

bool PathMatches(Value urls, std::string_view path) {
  for (Value item : urls.items()) {
    std::string_view rule = item.AsString();
    if (rule == "*" || rule == path) return true;
    if (rule.ends_with("*") && path.starts_with(rule.substr(0, rule.size() - 1))) return true;
  }
  return false;
}

}  // namespace

bool RuleAllows(Value rule, const RequestInfo& info) {
  if (!ListHas(rule["verbs"], info.verb)) return false;
  if (!info.is_resource) return PathMatches(rule["nonResourceURLs"], info.path);
  if (!ListHas(rule["apiGroups"], info.group)) return false;
  if (!ResourceMatches(rule["resources"], info)) return false;
  const Value names = rule["resourceNames"];
  if (names.empty()) return true;
  for (Value name : names.items())
    if (name.AsString() == info.name) return true;
  return false;
}

namespace {

bool SubjectMatches(Value subject, const User& user, std::string_view binding_ns) {
  const std::string_view kind = subject["kind"].AsString();
  const std::string_view name = subject["name"].AsString();
  if (kind == "User") return name == user.name;
  if (kind == "Group") return user.InGroup(name);
  if (kind != "ServiceAccount") return false;
  const std::string_view ns = subject["namespace"].AsString(binding_ns);
  std::string_view rest = user.name;
  if (!rest.starts_with(kServiceAccountUser)) return false;
  rest.remove_prefix(kServiceAccountUser.size());
  return rest.size() == ns.size() + 1 + name.size() && rest.starts_with(ns) &&
         rest[ns.size()] == ':' && rest.ends_with(name);
}

class ChainAuthorizer : public Authorizer {
 public:
  Decision Authorize(const User& user, const RequestInfo& info,
                     const ClusterView& view) const override {
    if (user.InGroup("system:masters")) return {true, ""};
    const Decision node = AuthorizeNode(user, info, view);
    if (node.allowed) return node;
    const Decision rbac = Rbac(user, info, view);
    return rbac.allowed ? rbac : node;  // RBAC gives no reasons for a refusal
  }

  UserRules RulesFor(const User& user, std::string_view ns,
                     const ClusterView& view) const override {
    UserRules out;
    ForEachRole(user, ns, view, [&](Value, std::string_view, Value, const api::Object& role) {
      out.roles.push_back(role);
      for (Value rule : role["rules"].items()) out.rules.push_back(rule);
      return false;
    });
    return out;
  }

 private:
  static Decision Rbac(const User& user, const RequestInfo& info, const ClusterView& view) {
    Decision decision;
    const std::string_view ns = info.is_resource ? std::string_view(info.ns) : "";
    ForEachRole(
        user, ns, view,
        [&](Value binding, std::string_view binding_ns, Value subject, const api::Object& role) {
          for (Value rule : role["rules"].items()) {
            if (!RuleAllows(rule, info)) continue;
            decision = {true, Reason(binding, binding_ns, subject)};
            return true;
          }
          return false;
        });
    return decision;
  }

  // Calls `visit(binding, its namespace, the subject that matches, role)` for every role that
  // `user` holds cluster-wide and in `ns` (unless empty), until it answers true.
  template <typename F>
  static void ForEachRole(const User& user, std::string_view ns, const ClusterView& view, F visit) {
    const auto visit_all = [&](std::string_view resource, std::string_view in) {
      const auto bindings = view.Snapshot(resource);
      for (const auto& entry : bindings->Range(in, "", "", 0)) {
        const Value binding = entry->object.root();
        const Value subject = MatchingSubject(binding, user, in);
        if (!subject) continue;
        const api::Object role = RoleOf(binding, in, view);
        if (role && visit(binding, in, subject, role)) return true;
      }
      return false;
    };
    if (visit_all("clusterrolebindings.rbac.authorization.k8s.io", "")) return;
    if (!ns.empty()) visit_all("rolebindings.rbac.authorization.k8s.io", ns);
  }

  static Value MatchingSubject(Value binding, const User& user, std::string_view ns) {
    for (Value subject : binding["subjects"].items())
      if (SubjectMatches(subject, user, ns)) return subject;
    return {};
  }

  static api::Object RoleOf(Value binding, std::string_view ns, const ClusterView& view) {
    const Value ref = binding["roleRef"];
    const bool cluster_role = ref["kind"].AsString() == kClusterRole;
    return view.Get(
        cluster_role ? "clusterroles.rbac.authorization.k8s.io" : "roles.rbac.authorization.k8s.io",
        cluster_role ? "" : ns, ref["name"].AsString());
  }

  static std::string Reason(Value binding, std::string_view ns, Value subject) {
    const std::string_view kind = subject["kind"].AsString();
    std::string who = fmt::format("{} {}", kind, Quote(subject["name"].AsString()));
    if (kind == "ServiceAccount") {
      who = fmt::format("{} \"{}/{}\"", kind, subject["name"].AsString(),
                        subject["namespace"].AsString());
    }
    const Value ref = binding["roleRef"];
    const std::string_view name = binding["metadata"]["name"].AsString();
    if (ns.empty()) {
      return fmt::format("RBAC: allowed by ClusterRoleBinding {} of {} {} to {}", Quote(name),
                         ref["kind"].AsString(), Quote(ref["name"].AsString()), who);
    }
    return fmt::format("RBAC: allowed by RoleBinding \"{}/{}\" of {} {} to {}", name, ns,
                       ref["kind"].AsString(), Quote(ref["name"].AsString()), who);
  }
};

}  // namespace

std::unique_ptr<Authorizer> DefaultAuthorizer() { return std::make_unique<ChainAuthorizer>(); }

Error ForbiddenError(const User& user, const RequestInfo& info, std::string_view reason) {
  const std::string who = Quote(user.name);
  if (!info.is_resource) {
    Error error = Forbidden({}, "",
                            fmt::format("User {} cannot {} path {}{}{}", who, info.verb,
                                        Quote(info.path), reason.empty() ? "" : ": ", reason));
    return error;
  }
  std::string resource = info.resource;
  if (!info.subresource.empty()) resource += "/" + info.subresource;
  std::string why = fmt::format("User {} cannot {} resource {} in API group {}", who, info.verb,
                                Quote(resource), Quote(info.group));
  why += info.ns.empty() ? " at the cluster scope"
                         : fmt::format(" in the namespace {}", Quote(info.ns));
  if (!reason.empty()) why += fmt::format(": {}", reason);
  return Forbidden({info.group, info.resource}, info.name, why);
}

}  // namespace sextant::server
