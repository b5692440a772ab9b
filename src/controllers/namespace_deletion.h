// Namespaces that are being deleted: everything in them goes, Pods first, then they are finalized.
// Source: k8s.io/kubernetes pkg/controller/namespace/deletion at v1.36.3.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controllers/collections.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class NamespaceController : public Reconciler {
 public:
  explicit NamespaceController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  struct Round;
  void Empty(const std::shared_ptr<Round>& round, const Collection& collection,
             const std::shared_ptr<Join>& join);
  void Count(const std::shared_ptr<Round>& round, const Collection& collection,
             const std::shared_ptr<Join>& join);
  void Others(std::shared_ptr<Round> round, Done done);
  void Tell(std::shared_ptr<Round> round, Done done);
  void Finalize(const api::Object& space, Done done);

  Writer namespaces_;
  client::Informer& pods_;
};

}  // namespace sextant::controllers
