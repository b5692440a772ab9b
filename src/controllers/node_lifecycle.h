// The life of nodes: silent ones become Unknown, conditions become taints.
//
// A node whose lease and heartbeat have not moved for 50 s gets Ready=Unknown; conditions and
// spec.unschedulable show as NoSchedule taints, not-ready and unreachable also as NoExecute taints
// (one node of a zone at once, then one in ten seconds; fewer when most of a zone is gone, none
// when all nodes are). Pods of a node that stops being ready are marked not ready.
// What NoExecute taints do to Pods is TaintEviction's work.
// Source: k8s.io/kubernetes pkg/controller/nodelifecycle at v1.36.3 with its default options.
#pragma once

#include <map>
#include <string>

#include "controllers/reconciler.h"

namespace sextant::controllers {

class NodeLifecycleController : public Reconciler {
 public:
  explicit NodeLifecycleController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  // When the node was last heard of.
  struct Health {
    std::string heartbeat;  // of the Ready condition
    std::string renewed;    // of the lease
    Time heard;
    bool registered = false;
  };
  struct Zone {
    int64_t ready = 0;
    int64_t silent = 0;
    Time next_taint;
  };

  void OnNode(const Change& change);
  bool IsSilent(const api::Object& node);
  void MarkUnknown(const api::Object& node, Done done);
  void MarkPodsNotReady(const api::Object& node, const std::shared_ptr<Join>& join);
  void Taint(const api::Object& node, Done done);
  bool MayTaint(const api::Object& node);
  void Count(const api::Object& node, int by);

  Writer nodes_;
  Writer pods_;
  client::Informer& leases_;
  std::map<std::string, Health> health_;
  std::map<std::string, Zone> zones_;
  int64_t ready_ = 0;  // nodes, in all zones
};

}  // namespace sextant::controllers
