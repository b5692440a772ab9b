#include "controllers/roles.h"

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr Gvr kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles"};

bool Holds(const std::vector<Value>& rules, Value wanted) {
  for (Value rule : rules)
    if (Equal(rule, wanted)) return true;
  return false;
}

}  // namespace

ClusterRoleAggregation::ClusterRoleAggregation(Deps deps)
    : Reconciler(deps, {.component = "clusterrole-aggregation-controller"}),
      roles_(*this, kClusterRoles) {
  Hear(roles_.cache(), [this](const Change& change) {
    if (change.after["aggregationRule"]) Enqueue(change.name());
    if (change.before && change.after && Equal(change.before["rules"], change.after["rules"]) &&
        Equal(change.before["metadata"]["labels"], change.after["metadata"]["labels"])) {
      return;
    }
    for (const Object& role : roles_.cache().List())
      if (role["aggregationRule"]) Enqueue(NameOf(role));
  });
}

void ClusterRoleAggregation::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object role = roles_.cache().Get(key);
  if (!role || !role["aggregationRule"]) return;
  const std::vector<Object> all = roles_.cache().List();
  std::vector<Value> rules;
  for (Value wanted : role["aggregationRule"]["clusterRoleSelectors"].items()) {
    const auto selector = api::LabelSelector::From(wanted);
    if (!selector) return join->Failed(selector.error());
    for (const Object& other : all) {
      if (other.name() == role.name() || !selector->Matches(other["metadata"]["labels"])) continue;
      for (Value rule : other["rules"].items())
        if (!Holds(rules, rule)) rules.push_back(rule);
    }
  }
  Editor edit(role);
  for (const Object& other : all) edit.Keep(other);
  Mut list = edit["rules"];
  list.SetNull();
  for (Value rule : rules) list.Append().Set(rule);
  Object next = roles_.Finish(std::move(edit));
  if (!Equal(next["rules"], role["rules"])) roles_.Update(std::move(next), join->Piece());
}

}  // namespace sextant::controllers
