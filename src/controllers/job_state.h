// What a Job and its Pods add up to: pure functions.
// Source: k8s.io/kubernetes pkg/controller/job at v1.36.3 (job_controller.go, backoff_utils.go,
// pod_failure_policy.go, success_policy.go).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/clock.h"
#include "controllers/job_indexes.h"
#include "controllers/objects.h"

namespace sextant::controllers {

inline constexpr const char* kTracking = "batch.kubernetes.io/job-tracking";
inline constexpr const char* kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr const char* kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
inline constexpr const char* kIndexIgnoredFailures =
    "batch.kubernetes.io/job-index-ignored-failure-count";

// Failures since the last success: new Pods wait 10 s, 20 s, ... 10 min after the last one.
struct JobBackoff {
  int64_t failures = 0;
  Time last{};
  Duration Left(Time now) const;
};

struct JobState {
  api::Object job;
  std::vector<api::Object> pods;
  std::vector<api::Object> active;
  int64_t ready = 0;
  int64_t terminating = 0;
  int64_t succeeded = 0;  // counted, on the way to it, and new
  int64_t failed = 0;
  std::set<std::string> uncounted_succeeded;  // uids
  std::set<std::string> uncounted_failed;
  IndexSet counted_indexes;    // as in the status
  IndexSet succeeded_indexes;  // with new ones
  std::optional<IndexSet> failed_indexes;
  std::map<int64_t, api::Object> delayed;  // by index: failed Pods kept until they are replaced
  JobBackoff backoff;
  // How it will end: FailureTarget or SuccessCriteriaMet.
  std::optional<Condition> finish;

  api::Value spec() const { return job["spec"]; }
  bool is_indexed() const { return spec()["completionMode"].AsString() == "Indexed"; }
  bool is_suspended() const { return spec()["suspend"].AsBool(); }
  bool has_completions() const { return static_cast<bool>(spec()["completions"]); }
  int64_t completions() const { return spec()["completions"].AsInt(1); }
  bool limits_per_index() const { return static_cast<bool>(spec()["backoffLimitPerIndex"]); }
  bool replaces_failed_only() const;
  bool is_complete() const;
};

bool IsJobFinished(const api::Object& job);
bool IsTracked(const api::Object& pod);
std::optional<int64_t> IndexOf(const api::Object& pod);
// Failed, or (unless only failed Pods are replaced) ending without success.
bool CountsAsFailed(const JobState& state, const api::Object& pod);
Time FinishedAt(const api::Object& pod);

// What spec.podFailurePolicy says of a failed Pod.
struct FailureVerdict {
  std::string_view action;  // "" where no rule matched
  bool counts = true;
  std::string message;  // of FailJob
};
FailureVerdict JudgeFailure(api::Value policy, const api::Object& pod);

// When status.startTime is set: passes how long the Job may still be active; nullopt: no limit.
std::optional<Duration> DeadlineLeft(const api::Object& job, Time now);

JobState AssessJob(const api::Object& job, std::vector<api::Object> pods, JobBackoff before,
                   Time now);

// The next status, and the Pods whose finalizer may go once that status is stored.
struct JobTracking {
  std::vector<api::Object> release;
  bool finished = false;  // Complete or Failed is in it
};
JobTracking TrackJob(const JobState& state, api::Mut status, Time now);

// How many Pods there should be now.
int64_t WantedActive(const JobState& state);
// At least `count` of the active Pods: doubled and invalid indexes, then those a ReplicaSet would
// give up first.
std::vector<api::Object> JobPodsToRemove(const JobState& state, int64_t count, Time now);
std::vector<int64_t> IndexesToStart(const JobState& state, int64_t count);

}  // namespace sextant::controllers
