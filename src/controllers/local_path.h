// The provisioner rancher.io/local-path, simulated: what kind installs for its class `standard`.
//
// A claim gets a hostPath volume on the node that the scheduler chose for its Pod. The directory
// lies on the simulated node's own disk; that no more is written than was asked for nobody checks,
// as there.
//
// Source: github.com/rancher/local-path-provisioner (provisioner.go), its library
// sig-storage-lib-external-provisioner (controller.go), kind's const_storage.go.
#pragma once

#include "controllers/reconciler.h"

namespace sextant::controllers {

class LocalPathProvisioner : public Reconciler {
 public:
  explicit LocalPathProvisioner(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  void SyncClaim(const api::Object& claim, const std::shared_ptr<Join>& join);
  void Provision(const api::Object& claim, const api::Object& storage_class,
                 const std::shared_ptr<Join>& join);
  void Reschedule(const api::Object& claim, const std::shared_ptr<Join>& join);
  void SyncVolume(const api::Object& volume, const std::shared_ptr<Join>& join);

  Writer claims_;
  Writer volumes_;
  client::Informer& classes_;
  client::Informer& nodes_;
};

}  // namespace sextant::controllers
