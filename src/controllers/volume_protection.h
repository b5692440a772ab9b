// Claims that a Pod uses and volumes that are bound stay, deleted or not, until they are free.
// Source: pkg/controller/volume/pvcprotection, pvprotection at v1.36.3.
#pragma once

#include "controllers/reconciler.h"

namespace sextant::controllers {

// A scheduled Pod, even an ended one, keeps its claims.
class ClaimProtection : public Reconciler {
 public:
  explicit ClaimProtection(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  bool IsUsed(const api::Object& claim) const;

  Writer claims_;
  client::Informer& pods_;
};

// A claim that is bound to it keeps a volume.
class VolumeProtection : public Reconciler {
 public:
  explicit VolumeProtection(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  Writer volumes_;
};

}  // namespace sextant::controllers
