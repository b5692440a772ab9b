#include "controllers/cronjob.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "controllers/job_state.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr Gvr kCronJobs{"batch", "v1", "cronjobs"};
constexpr size_t kMaxName = 52;  // of a CronJob: eleven less than a Job's
constexpr Duration kSkew = 100ms;
constexpr int kManyMissed = 100;

bool IsUtc(std::string_view zone) {
  return zone.empty() || zone == "UTC" || zone == "Etc/UTC" || zone == "GMT";
}

bool Succeeded(const Object& job) {
  return IsConditionTrue(job["status"]["conditions"], "Complete");
}

bool IsActiveIn(Value active, std::string_view uid) {
  for (Value reference : active.items())
    if (reference["uid"].AsString() == uid) return true;
  return false;
}

}  // namespace

CronJobController::CronJobController(Deps deps)
    : Reconciler(deps, {.component = "cronjob-controller"}),
      crons_(*this, kCronJobs),
      jobs_(*this, client::kJobs) {
  AddOwnerIndex(jobs_.cache());
  Hear(crons_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(jobs_.cache(), [this](const Change& change) {
    const Value owner = ControllerOf(change.object());
    if (owner["kind"].AsString() != "CronJob") return;
    Enqueue({std::string(change.object().ns()), std::string(owner["name"].AsString())});
  });
}

// Status first; a round that wrote it ends, and the event of the write brings the next.
void CronJobController::Reconcile(const ObjectName& key, Done done) {
  const JoinPtr join = JoinThen(std::move(done));
  const Object cron = crons_.cache().Get(key);
  if (!cron) return;
  const std::vector<Object> jobs = ControlledBy(jobs_.cache(), cron);
  Editor edit(cron);
  if (NoteFinished(cron, jobs, edit["status"])) {
    return crons_.UpdateStatus(crons_.Finish(std::move(edit)), join->Piece());
  }
  TrimFinished(cron, jobs, join);
  const Value spec = cron["spec"];
  if (IsDeleting(cron) || spec["suspend"].AsBool()) return;
  const auto schedule = api::CronSchedule::Parse(spec["schedule"].AsString());
  if (!schedule) {
    return events().Warning(
        cron, "UnparseableSchedule",
        fmt::format("unparseable schedule: {} : {}", Quote(spec["schedule"].AsString()),
                    schedule.error().message));
  }
  for (const std::string_view zone :
       {spec["timeZone"].AsString(), std::string_view(schedule->zone())}) {
    if (IsUtc(zone)) continue;
    return events().Warning(cron, "UnknownTimeZone",
                            fmt::format("timeZone {} is not known here: only UTC is", Quote(zone)));
  }
  if (const auto next = schedule->Next(Now())) EnqueueAfter(key, *next - Now() + kSkew);
  const auto due = DueTime(cron, *schedule);
  if (!due) return;
  const Value active = cron["status"]["active"];
  const std::string_view policy = spec["concurrencyPolicy"].AsString();
  if (policy == "Forbid" && !active.empty()) {
    return events().Normal(cron, "JobAlreadyActive",
                           "Not starting job because prior execution is running and concurrency "
                           "policy is Forbid");
  }
  if (policy == "Replace") {
    for (const Object& job : jobs) {
      if (!IsActiveIn(active, job.uid())) continue;
      jobs_.Delete(job, join->Piece(), {.propagation = "Background"});
      events().Normal(cron, "SuccessfulDelete", fmt::format("Deleted job {}", job.name()));
    }
  }
  StartJob(cron, *due, join);
}

bool CronJobController::NoteFinished(const Object& cron, const std::vector<Object>& jobs,
                                     Mut status) {
  bool changed = false;
  Mut active = status["active"];
  for (size_t i = active.size(); i-- > 0;) {
    const std::string uid(active.at(i)["uid"].AsString());
    const auto job = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const Object& each) { return each.uid() == uid; });
    if (job != jobs.end() && !IsJobFinished(*job)) continue;
    if (job == jobs.end()) {
      events().Normal(cron, "MissingJob",
                      fmt::format("Active job went missing: {}", active.at(i)["name"].AsString()));
    } else {
      events().Normal(cron, "SawCompletedJob",
                      fmt::format("Saw completed job: {}, condition: {}", job->name(),
                                  Succeeded(*job) ? "Complete" : "Failed"));
    }
    active.EraseAt(i);
    changed = true;
  }
  for (const Object& job : jobs) {
    const std::string_view ended = job["status"]["completionTime"].AsString();
    if (!Succeeded(job) || ended <= status["lastSuccessfulTime"].AsString()) continue;
    status.Set("lastSuccessfulTime", ended);
    changed = true;
  }
  return changed;
}

void CronJobController::TrimFinished(const Object& cron, const std::vector<Object>& jobs,
                                     const JoinPtr& join) {
  const auto trim = [&](bool succeeded, Value limit) {
    if (!limit) return;
    std::vector<Object> ended;
    for (const Object& job : jobs)
      if (IsJobFinished(job) && Succeeded(job) == succeeded && !IsDeleting(job)) {
        ended.push_back(job);
      }
    std::sort(ended.begin(), ended.end(), [](const Object& a, const Object& b) {
      const std::string_view x = a["status"]["startTime"].AsString();
      const std::string_view y = b["status"]["startTime"].AsString();
      return x != y ? x < y : a.name() < b.name();
    });
    const int64_t excess = static_cast<int64_t>(ended.size()) - limit.AsInt();
    for (int64_t i = 0; i < excess; ++i) {
      const Object& job = ended[static_cast<size_t>(i)];
      jobs_.Delete(job, join->Piece(), {.propagation = "Background"});
      events().Normal(cron, "SuccessfulDelete", fmt::format("Deleted job {}", job.name()));
    }
  };
  trim(true, cron["spec"]["successfulJobsHistoryLimit"]);
  trim(false, cron["spec"]["failedJobsHistoryLimit"]);
}

// The last time that has come since the last start and was not used.
std::optional<Time> CronJobController::DueTime(const Object& cron,
                                               const api::CronSchedule& schedule) {
  const auto last = ParseTime(cron["status"]["lastScheduleTime"].AsString());
  Time from = last.value_or(CreatedAt(cron));
  const Value deadline = cron["spec"]["startingDeadlineSeconds"];
  const Duration window = std::chrono::seconds(deadline.AsInt());
  if (deadline) from = std::max(from, Now() - window);
  std::optional<Time> due;
  int missed = 0;
  for (auto next = schedule.Next(from); next && *next <= Now(); next = schedule.Next(*next)) {
    due = next;
    if (++missed <= kManyMissed) continue;
    // Not every one of very many: the last day will do.
    from = std::max(*next, Now() - 24h);
    if (from > *next) next = from;
  }
  if (missed > kManyMissed) {
    events().Warning(
        cron, "TooManyMissedTimes",
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
        "check clock skew");
  }
  if (due && last && *due <= *last) return {};
  return due;
}

void CronJobController::StartJob(const Object& cron, Time due, const JoinPtr& join) {
  const Value from = cron["spec"]["jobTemplate"];
  const int64_t minute =
      std::chrono::duration_cast<std::chrono::minutes>(due.time_since_epoch()).count();
  Editor edit;
  edit.Keep(cron);
  edit.Root().Set("apiVersion", "batch/v1");
  edit.Root().Set("kind", "Job");
  Mut metadata = edit["metadata"];
  metadata.Set("name", fmt::format("{}-{}", cron.name().substr(0, kMaxName), minute));
  metadata.Set("namespace", cron.ns());
  if (from["metadata"]["labels"]) metadata.Set("labels", from["metadata"]["labels"]);
  if (from["metadata"]["annotations"]) {
    metadata.Set("annotations", from["metadata"]["annotations"]);
  }
  metadata["annotations"].Set("batch.kubernetes.io/cronjob-scheduled-timestamp", FormatTime(due));
  AddControllerRef(metadata, cron);
  edit.Root().Set("spec", from["spec"]);
  Object wanted = jobs_.Finish(std::move(edit));
  const ObjectName name = NameOf(wanted);
  jobs_.Create(std::move(wanted), [this, cron, due, name, join](Result<Object> made) {
    if (made) {
      events().Normal(cron, "SuccessfulCreate", fmt::format("Created job {}", made->name()));
      return NoteStarted(cron, *made, due, join);
    }
    if (made.error().Is("AlreadyExists")) {
      // Made before the status could be written; by another, it is none of ours.
      const Object job = jobs_.cache().Get(name);
      if (job && IsControlledBy(job, cron)) NoteStarted(cron, job, due, join);
      return;
    }
    events().Warning(cron, "FailedCreate",
                     fmt::format("Error creating job: {}", made.error().message));
    join->Failed(std::move(made).error());
  });
}

void CronJobController::NoteStarted(const Object& seen, const Object& job, Time due,
                                    const JoinPtr& join) {
  const Object cron = crons_.cache().Get(NameOf(seen));
  if (!cron || cron.uid() != seen.uid()) return;
  Editor edit(cron);
  Mut reference = edit["status"]["active"].Append();
  reference.Set("apiVersion", "batch/v1");
  reference.Set("kind", "Job");
  reference.Set("namespace", job.ns());
  reference.Set("name", job.name());
  reference.Set("uid", job.uid());
  reference.Set("resourceVersion", job.resource_version());
  edit["status"].Set("lastScheduleTime", FormatTime(due));
  crons_.UpdateStatus(crons_.Finish(std::move(edit)), join->Piece());
}

}  // namespace sextant::controllers
