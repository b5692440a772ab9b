// DaemonSets: one Pod on every node that fits.
//
// A Pod is pinned to its node by a required node affinity on metadata.name and bound by the
// scheduler. Updates: RollingUpdate with maxUnavailable or maxSurge, OnDelete; templates are kept
// as ControllerRevisions. Source: k8s.io/kubernetes pkg/controller/daemon at v1.36.3.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/history.h"
#include "controllers/objects.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

// Whether a Pod of the set belongs on the node, and whether one that is there may stay.
struct NodeFit {
  bool should_run = false;
  bool may_continue = false;
};
NodeFit FitOf(const api::Object& daemon_set, const api::Object& node);

class DaemonSetController : public Reconciler {
 public:
  explicit DaemonSetController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  struct Sync;
  struct Backoff {
    Duration delay{0};
    Time since;
  };

  void OnNode(const Change& change);
  bool LoadPods(Sync& sync, const std::shared_ptr<Join>& join);
  void Manage(std::shared_ptr<Sync> sync, Done done);
  void ManageNode(Sync& sync, const api::Object& node, const NodeFit& fit);
  void ManageSurge(Sync& sync, const std::vector<api::Object>& running);
  void ForgetFailures(const Sync& sync);
  bool DeleteFailed(Sync& sync, const api::Object& pod, const std::string& node);
  void Roll(std::shared_ptr<Sync> sync, Done done);
  void RollUnavailable(Sync& sync, int64_t max_unavailable);
  void RollSurge(Sync& sync, int64_t max_surge, int64_t desired);
  void Act(Sync& sync, const std::shared_ptr<Join>& join);
  api::Object NewPod(const Sync& sync, const std::string& node) const;
  void WriteStatus(std::shared_ptr<Sync> sync, Done done);

  client::Informer& nodes_;
  Writer sets_;
  Writer pods_;
  Writer revisions_;
  struct Failures {
    int64_t generation = 0;
    std::map<std::string, Backoff> nodes;
  };
  std::map<std::string, Failures> failures_;  // by the set's uid
};

}  // namespace sextant::controllers
