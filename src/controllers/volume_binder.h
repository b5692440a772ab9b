// Binds claims and volumes to each other, has volumes made for claims whose class says by whom, and
// does with a released volume what its policy says.
//
// Every round writes at most one object of a pair (volume, its status, claim, its status); the
// change of it starts the next round. For claims of a class that waits for a Pod the scheduler
// chooses: a volume, or the node where one is to be made (annotation selected-node).
//
// Source: pkg/controller/volume/persistentvolume/pv_controller.go at v1.36.3.
#pragma once

#include "controllers/reconciler.h"

namespace sextant::controllers {

class VolumeBinder : public Reconciler {
 public:
  explicit VolumeBinder(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  using Ends = std::shared_ptr<Join>;
  void SyncUnbound(const api::Object& claim, const Ends& join);
  void SyncNamed(const api::Object& claim, const Ends& join);
  void SyncBound(const api::Object& claim, const Ends& join);
  void SyncVolume(const api::Object& volume, const Ends& join);
  void SyncClaimed(const api::Object& volume, const api::Object& claim, const Ends& join);

  void Bind(const api::Object& volume, const api::Object& claim, const Ends& join);
  void BindVolume(const api::Object& volume, const api::Object& claim, const Ends& join);
  void BindClaim(const api::Object& volume, const api::Object& claim, const Ends& join);
  void Unbind(const api::Object& volume, const Ends& join);
  void Provision(const api::Object& claim, const api::Object& storage_class, const Ends& join);
  void AskProvisioner(const api::Object& claim, const std::string& provisioner, const Ends& join);
  bool TakeDefaultClass(const api::Object& claim, const Ends& join);
  void Release(const api::Object& volume, const Ends& join);
  void Reclaim(const api::Object& volume, const Ends& join);

  void SetPending(const api::Object& claim, const Ends& join);
  void SetBound(const api::Object& claim, const api::Object& volume, const Ends& join);
  void SetLost(const api::Object& claim, std::string_view reason, std::string_view message,
               const Ends& join);
  void SetPhase(const api::Object& volume, std::string_view phase, const Ends& join,
                const std::string& message = "");
  void TellWaiting(const api::Object& claim);

  Writer claims_;
  Writer volumes_;
  client::Informer& classes_;
  client::Informer& pods_;
};

}  // namespace sextant::controllers
