// CronJobs: Jobs by the clock. Schedules are read as UTC; another spec.timeZone is refused with an
// event.
// Source: k8s.io/kubernetes pkg/controller/cronjob at v1.36.3.
#pragma once

#include <string>
#include <vector>

#include "api/cron_schedule.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class CronJobController : public Reconciler {
 public:
  explicit CronJobController(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  using JoinPtr = std::shared_ptr<Join>;

  // Finished Jobs leave status.active; true if it changed.
  bool NoteFinished(const api::Object& cron, const std::vector<api::Object>& jobs, api::Mut status);
  void TrimFinished(const api::Object& cron, const std::vector<api::Object>& jobs,
                    const JoinPtr& join);
  // The time for which a Job is to be started now.
  std::optional<Time> DueTime(const api::Object& cron, const api::CronSchedule& schedule);
  void StartJob(const api::Object& cron, Time due, const JoinPtr& join);
  void NoteStarted(const api::Object& cron, const api::Object& job, Time due, const JoinPtr& join);

  Writer crons_;
  Writer jobs_;
};

}  // namespace sextant::controllers
