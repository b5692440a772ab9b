// ReplicaSets: as many Pods of one template as asked for.
// Source: k8s.io/kubernetes pkg/controller/replicaset at v1.36.3.
#pragma once

#include <string>
#include <vector>

#include "controllers/objects.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

// `count` of `pods` in the order in which a ReplicaSet gives Pods up: without a node, pending, not
// ready, of low deletion cost, beside others on their node (`related` counts), young, restarting.
std::vector<api::Object> PodsToGiveUp(std::vector<api::Object> pods,
                                      const std::vector<api::Object>& related, size_t count,
                                      Time now);

class ReplicaSetController : public Reconciler {
 public:
  explicit ReplicaSetController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  // The Pods of a set that count: active ones, and how many are ending.
  struct Pods {
    std::vector<api::Object> active;
    int64_t ending = 0;
    bool changed = false;
  };
  Pods PodsOf(const api::Object& set, const std::shared_ptr<Join>& join);
  void Manage(const api::Object& set, const Pods& pods, const std::shared_ptr<Join>& join);
  std::vector<api::Object> Related(const api::Object& set);
  void WriteStatus(const api::Object& set, const Status& managed, Done done);

  Writer sets_;
  Writer pods_;
};

}  // namespace sextant::controllers
