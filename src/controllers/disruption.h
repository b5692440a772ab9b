// PodDisruptionBudgets: how many Pods may be taken away now. The eviction subresource reads it.
// Source: k8s.io/kubernetes pkg/controller/disruption at v1.36.3.
#pragma once

#include <string>
#include <vector>

#include "controllers/reconciler.h"

namespace sextant::controllers {

class DisruptionController : public Reconciler {
 public:
  explicit DisruptionController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  // How many Pods the controllers of these want.
  int64_t ExpectedScale(const std::vector<api::Object>& pods);
  // Pods whose eviction was allowed but that are not yet being deleted.
  void KeepDisrupted(const api::Object& budget, const std::vector<api::Object>& pods,
                     api::Mut status);

  Writer budgets_;
  client::Informer& pods_;
  client::Informer& replica_sets_;
  client::Informer& deployments_;
  client::Informer& stateful_sets_;
};

}  // namespace sextant::controllers
