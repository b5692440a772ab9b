// The arithmetic of a Deployment's rollout: pure functions over it and its ReplicaSets.
// Source: k8s.io/kubernetes pkg/controller/deployment/util at v1.36.3.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/clock.h"

namespace sextant::controllers {

inline constexpr const char* kTemplateHash = "pod-template-hash";
inline constexpr const char* kRevision = "deployment.kubernetes.io/revision";
inline constexpr const char* kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr const char* kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr const char* kMaxReplicas = "deployment.kubernetes.io/max-replicas";

// A Deployment and what it controls.
struct Rollout {
  api::Object deployment;
  api::Object fresh;             // the ReplicaSet of the present template, if there is one
  std::vector<api::Object> old;  // by age

  int64_t replicas() const { return deployment["spec"]["replicas"].AsInt(1); }
  bool is_rolling() const {
    return deployment["spec"]["strategy"]["type"].AsString() == "RollingUpdate";
  }
  int64_t max_surge() const;
  int64_t max_unavailable() const;
  std::vector<api::Object> all() const;
};

Rollout MakeRollout(const api::Object& deployment, std::vector<api::Object> replica_sets);

int64_t Replicas(const api::Object& replica_set);  // spec.replicas
int64_t SumReplicas(const std::vector<api::Object>& sets);
int64_t SumStatus(const std::vector<api::Object>& sets, const char* field);
std::vector<api::Object> Active(const std::vector<api::Object>& sets);  // with replicas

// The number in an annotation, if it is one.
std::optional<int64_t> NumberIn(const api::Object& object, const char* annotation);
int64_t RevisionOf(const api::Object& object);
int64_t MaxRevision(const std::vector<api::Object>& sets);

// How many replicas the new set may have now.
int64_t NewReplicas(const Rollout& rollout, int64_t present);
// What scaling a Deployment in the middle of a rollout makes of its sets, by name.
std::map<std::string, int64_t> Proportional(const Rollout& rollout);
// The only set with replicas, else the newest; empty if there are several with replicas.
api::Object ActiveOrLatest(const Rollout& rollout);
bool IsSaturated(const Rollout& rollout);
// Sizes of old sets to go down to now, by name; empty: nothing to do.
std::map<std::string, int64_t> ScaleDownOld(const Rollout& rollout);

bool HasProgressDeadline(const api::Object& deployment);
bool HasHistoryLimit(const api::Object& deployment);
bool IsComplete(const api::Object& deployment, api::Value status);

// The annotations of the new set: the Deployment's own, and its revision. True if some changed.
bool AnnotateNew(const Rollout& rollout, api::Value have, api::Mut annotations, int64_t revision);
void AnnotateReplicas(const Rollout& rollout, api::Mut annotations);
bool ReplicasAnnotationsDiffer(const Rollout& rollout, const api::Object& set);

// status of the Deployment but for Progressing and ReplicaFailure.
void FillStatus(const Rollout& rollout, api::Mut status, Time now);
// ... and those two (progress.go).
void FillProgress(const Rollout& rollout, api::Value status, api::Mut next, Time now);

}  // namespace sextant::controllers
