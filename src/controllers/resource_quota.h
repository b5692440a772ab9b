// ResourceQuotas: status.used counted anew when something gives back what it took, or when the
// quota itself is new or changes. What is taken, admission enters together with the write. Source:
// k8s.io/kubernetes pkg/controller/resourcequota, pkg/quota/v1/install at v1.36.3.
#pragma once

#include <memory>
#include <vector>

#include "api/quota.h"
#include "controllers/collections.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class ResourceQuotaController : public Reconciler {
 public:
  explicit ResourceQuotaController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  // One collection that quotas can count.
  struct Counted {
    Gvr gvr;
    api::QuotaKind kind;
    client::Informer& cache;
    bool (*gives_back)(const Change& update, Time now);  // null: only deletions do
  };

  void Came(const Collection& collection);
  void Gone(const Collection& collection);
  // The quotas that limit this kind, "" for all namespaces.
  void EnqueueThose(const api::QuotaKind& kind, std::string_view ns);
  void OnChange(const Counted& counted, const Change& change);
  // False while a kind that the quota limits has not been listed yet.
  bool CanCount(const api::Object& quota) const;
  // What the objects of the quota's namespace take of the resources that it limits.
  api::Amounts Usage(const api::Object& quota);

  Writer quotas_;
  std::vector<std::unique_ptr<const Counted>> counted_;
};

}  // namespace sextant::controllers
