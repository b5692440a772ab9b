// Deployments: rollouts of ReplicaSets.
//
// One round does the first step that is needed (annotate, scale, create, clean up), the events of
// what it wrote bring the next; a round with nothing to do tells the status.
// Source: k8s.io/kubernetes pkg/controller/deployment at v1.36.3.
#pragma once

#include "controllers/reconciler.h"
#include "controllers/rollout.h"

namespace sextant::controllers {

class DeploymentController : public Reconciler {
 public:
  explicit DeploymentController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  using JoinPtr = std::shared_ptr<Join>;
  // Each returns true if it wrote something: the round ends there.
  bool MarkPaused(const Rollout& rollout, const JoinPtr& join);
  bool SyncRevision(const Rollout& rollout, const JoinPtr& join);
  bool ScaleTo(const Rollout& rollout, const api::Object& set, int64_t size, bool even_if_same,
               const JoinPtr& join);
  bool Resize(const Rollout& rollout, const JoinPtr& join);
  bool CleanUp(const Rollout& rollout, const JoinPtr& join);
  bool Roll(const Rollout& rollout, const JoinPtr& join);
  bool Recreate(const Rollout& rollout, const JoinPtr& join);
  void CreateNew(const Rollout& rollout, const JoinPtr& join);
  void NewCreated(const Rollout& rollout, const api::Object& made, int64_t revision,
                  const JoinPtr& join);
  void NewFailed(const Rollout& rollout, const api::Object& wanted, Error error,
                 const JoinPtr& join);
  bool HasOldPods(const Rollout& rollout);
  void WriteStatus(const Rollout& rollout, bool with_progress, const JoinPtr& join);
  void ComeBackForProgress(const api::Object& deployment);

  Writer deployments_;
  Writer sets_;
  client::Informer& pods_;
};

}  // namespace sextant::controllers
