// Jobs: Pods until enough have succeeded, or too many have failed.
//
// A Pod carries the finalizer batch.kubernetes.io/job-tracking until the Job's status has counted
// it: a round makes or removes Pods, stores the status with the uids that are about to be counted,
// then takes their finalizers off; the round after that counts them. So nothing is counted twice or
// lost, whatever breaks between.
// Source: k8s.io/kubernetes pkg/controller/job at v1.36.3.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/job_state.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class JobController : public Reconciler {
 public:
  explicit JobController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  void OnPod(const Change& change);
  void ReleaseOrphan(const ObjectName& pod, Done done);
  std::optional<JobState> Assess(const ObjectName& key, std::string_view uid,
                                 const std::shared_ptr<Join>& join);
  void Manage(const JobState& state, const std::shared_ptr<Join>& join);
  void StartPods(const JobState& state, int64_t count, const std::shared_ptr<Join>& join);
  api::Object NewPod(const JobState& state, std::optional<int64_t> index) const;
  void RemovePod(const JobState& state, const api::Object& pod, const std::shared_ptr<Join>& join);
  void Track(const ObjectName& key, std::string uid, bool managed, Done done);
  bool NoteSuspension(const JobState& state, api::Mut status);
  void Release(const std::vector<api::Object>& pods, Done done);
  void ReleasePod(const api::Object& pod, client::Callback<api::Object> done);
  void TellEnd(const api::Object& job);

  Writer jobs_;
  Writer pods_;
  std::map<ObjectName, JobBackoff> backoffs_;
};

// Deletes finished Jobs after spec.ttlSecondsAfterFinished.
// Source: pkg/controller/ttlafterfinished.
class TtlAfterFinishedController : public Reconciler {
 public:
  explicit TtlAfterFinishedController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  Writer jobs_;
};

}  // namespace sextant::controllers
