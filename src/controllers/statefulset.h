// StatefulSets: Pods with a number, a name that stays and volumes of their own.
//
// A round does the first step that is due, as the set's Pods stand: with podManagementPolicy
// OrderedReady one Pod at a time, each waiting for the one before; updates go from the highest
// number down to the partition.
// Source: k8s.io/kubernetes pkg/controller/statefulset at v1.36.3.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/history.h"
#include "controllers/objects.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class StatefulSetController : public Reconciler {
 public:
  explicit StatefulSetController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  bool Load(Round& round, const std::shared_ptr<Join>& join);
  void Step(const RoundPtr& round, Done done);
  // Each returns true if nothing further may be done in this round.
  bool Replicas(const RoundPtr& round, const std::shared_ptr<Join>& join);
  bool Replica(const RoundPtr& round, int64_t ordinal, const std::shared_ptr<Join>& join);
  bool Condemned(const RoundPtr& round, const std::shared_ptr<Join>& join);
  void Update(const RoundPtr& round, const std::shared_ptr<Join>& join);
  void Create(const RoundPtr& round, int64_t ordinal, const std::shared_ptr<Join>& join);
  void CreateClaims(const RoundPtr& round, int64_t ordinal, const std::shared_ptr<Join>& join);
  void Delete(const RoundPtr& round, const api::Object& pod, const std::shared_ptr<Join>& join);
  api::Object NewPod(const Round& round, int64_t ordinal) const;
  void WriteStatus(const RoundPtr& round, Done done);

  Writer sets_;
  Writer pods_;
  Writer claims_;
  Writer revisions_;
};

}  // namespace sextant::controllers
