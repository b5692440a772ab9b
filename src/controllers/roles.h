// ClusterRoles with an aggregationRule hold the rules of those that it selects (admin, edit, view).
// Source: k8s.io/kubernetes pkg/controller/clusterroleaggregation at v1.36.3.
#pragma once

#include "controllers/reconciler.h"

namespace sextant::controllers {

class ClusterRoleAggregation : public Reconciler {
 public:
  explicit ClusterRoleAggregation(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  Writer roles_;
};

}  // namespace sextant::controllers
