// Authorization: may this user do this? RBAC with the default roles, and the Node authorizer.
// Threads: any; a decision reads an immutable picture of the roles.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/operation.h"

namespace sextant::server {

struct Decision {
  bool allowed = false;
  std::string reason;  // why allowed ("RBAC: allowed by ...") or, of nodes, refused; may be empty
};

class ClusterView;

// The policy rules that hold for a user in a namespace, as rbac/v1 PolicyRules.
struct UserRules {
  std::vector<api::Object> roles;  // keeps the rules alive
  std::vector<api::Value> rules;
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual UserRules RulesFor(const User& user, std::string_view ns,
                             const ClusterView& view) const = 0;
  virtual Decision Authorize(const User& user, const RequestInfo& info,
                             const ClusterView& view) const = 0;
};

// Group system:masters, then Node, then RBAC (roles and bindings of the view).
std::unique_ptr<Authorizer> DefaultAuthorizer();

// Whether one rbac/v1 PolicyRule allows it.
bool RuleAllows(api::Value rule, const RequestInfo& info);

// The 403 of the API server: `pods is forbidden: User "x" cannot list resource "pods" in API group
// "" in the namespace "default"`.
Error ForbiddenError(const User& user, const RequestInfo& info, std::string_view reason);

}  // namespace sextant::server
