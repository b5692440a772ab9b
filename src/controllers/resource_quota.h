// ResourceQuotas: status.used counted anew when something gives back what it took, or when the
// quota itself is new or changes. What is taken, admission enters together with the write. Source:
// k8s.io/kubernetes pkg/controller/resourcequota, pkg/quota/v1/install at v1.36.3.
#pragma once

#include <memory>
#include <vector>

#include "api/quota.h"
#include "api/schema.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class ResourceQuotaController : public Reconciler {
 public:
  // Kinds that are served later, by new CustomResourceDefinitions, are not counted anew.
  ResourceQuotaController(Deps deps, std::shared_ptr<const api::Registry> registry);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  // One collection that quotas can count.
  struct Counted {
    api::QuotaKind kind;
    client::Informer& cache;
    bool (*gives_back)(const Change& update, Time now);  // null: only deletions do
  };

  void OnChange(const Counted& counted, const Change& change);
  // What the objects of the quota's namespace take of the resources that it limits.
  api::Amounts Usage(const api::Object& quota);

  const std::shared_ptr<const api::Registry> registry_;  // counted_ points into it
  Writer quotas_;
  std::vector<std::unique_ptr<const Counted>> counted_;
};

}  // namespace sextant::controllers
