#include "controllers/job.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr int64_t kBurst = 500;                     // Pods made or removed in one round
constexpr size_t kMaxGeneratedBase = 58;            // apimachinery names.MaxGeneratedNameLength
constexpr std::string_view kOrphanPrefix = "pod/";  // keys of Pods whose Job is gone
constexpr const char* kIndexVariable = "JOB_COMPLETION_INDEX";

void AddIndexVariable(Mut containers) {
  for (size_t i = 0; i < containers.size(); ++i) {
    Mut env = containers.at(i)["env"];
    bool there = false;
    for (size_t k = 0; k < env.size(); ++k) there |= env.at(k)["name"].AsString() == kIndexVariable;
    if (there) continue;
    Mut variable = env.Append();
    variable.Set("name", kIndexVariable);
    Mut from = variable["valueFrom"]["fieldRef"];
    from.Set("apiVersion", "v1");
    from.Set("fieldPath", fmt::format("metadata.labels['{}']", kCompletionIndex));
  }
}

void CountIndexFailures(const JobState& state, int64_t index, Mut annotations) {
  int64_t failures = 0;
  int64_t ignored = 0;
  const auto before = state.delayed.find(index);
  if (before != state.delayed.end()) {
    const Value have = before->second["metadata"]["annotations"];
    const auto number = [&](const char* key) {
      return std::strtoll(std::string(have[key].AsString("0")).c_str(), nullptr, 10);
    };
    failures = number(kIndexFailures);
    ignored = number(kIndexIgnoredFailures);
    const bool counts = JudgeFailure(state.spec()["podFailurePolicy"], before->second).counts;
    ++(counts ? failures : ignored);
  }
  annotations.Set(kIndexFailures, fmt::format("{}", failures));
  if (ignored > 0) annotations.Set(kIndexIgnoredFailures, fmt::format("{}", ignored));
}

// Only if it is there already, or to say "True" (ensureJobConditionStatus).
bool EnsureCondition(Value have, Mut conditions, const Condition& condition, Time now) {
  const Value present = FindCondition(have, condition.type);
  if (!present && condition.status == "False") return false;
  if (present && present["status"].AsString() == condition.status &&
      present["reason"].AsString() == condition.reason &&
      present["message"].AsString() == condition.message) {
    return false;
  }
  SetCondition(conditions, condition, now, "lastProbeTime");
  return true;
}

bool IsManagedElsewhere(const Object& job) {
  const std::string_view by = job["spec"]["managedBy"].AsString();
  return !by.empty() && by != "kubernetes.io/job-controller";
}

}  // namespace

JobController::JobController(Deps deps)
    : Reconciler(deps, {.component = "job-controller"}),
      jobs_(*this, client::kJobs),
      pods_(*this, client::kPods) {
  AddOwnerIndex(pods_.cache());
  Hear(jobs_.cache(), [this](const Change& change) {
    if (change.deleted()) {
      backoffs_.erase(change.name());
      for (const Object& pod : ControlledBy(pods_.cache(), change.before)) OnPod({pod, pod});
    }
    Enqueue(change.name());
  });
  Hear(pods_.cache(), [this](const Change& change) { OnPod(change); });
}

void JobController::OnPod(const Change& change) {
  ForOwners(change, jobs_.cache(), "Job", [this](const ObjectName& name) { Enqueue(name); });
  const Object& pod = change.after;
  if (!pod || !IsTracked(pod)) return;
  const Value owner = ControllerOf(pod);
  const ObjectName job{std::string(pod.ns()), std::string(owner["name"].AsString())};
  if (owner && jobs_.cache().Get(job).uid() == owner["uid"].AsString()) return;
  Enqueue({std::string(pod.ns()), std::string(kOrphanPrefix) + std::string(pod.name())});
}

void JobController::ReleaseOrphan(const ObjectName& name, Done done) {
  const Object pod = pods_.cache().Get(name);
  if (!pod || !IsTracked(pod)) return done({});
  const Value owner = ControllerOf(pod);
  const Object job = jobs_.cache().Get({name.ns, std::string(owner["name"].AsString())});
  if (owner && job.uid() == owner["uid"].AsString()) return done({});
  Release({pod}, std::move(done));
}

void JobController::Reconcile(const ObjectName& key, Done done) {
  if (key.name.starts_with(kOrphanPrefix)) {
    return ReleaseOrphan({key.ns, key.name.substr(kOrphanPrefix.size())}, std::move(done));
  }
  const Object job = jobs_.cache().Get(key);
  if (!job || IsManagedElsewhere(job)) return done({});
  if (IsJobFinished(job)) {
    backoffs_.erase(key);
    return done({});
  }
  const auto go_on = std::make_shared<bool>(false);
  const auto removing = std::make_shared<bool>(false);
  const auto join = JoinThen([this, key, uid = std::string(job.uid()), go_on, removing,
                              done = std::move(done)](Status managed) mutable {
    // A Job cannot end while some of its Pods could not be deleted.
    if (!*go_on || (!managed && *removing)) return done(std::move(managed));
    Track(key, std::move(uid), true, [done = std::move(done), managed](Status tracked) mutable {
      done(managed ? std::move(tracked) : std::move(managed));
    });
  });
  const auto state = Assess(key, job.uid(), join);
  if (!state) return;
  *go_on = true;
  if (state->finish) {
    *removing = true;
    for (const Object& pod : state->active) DeletePod(pods_, events(), job, pod, join->Piece());
  } else if (!IsDeleting(job)) {
    Manage(*state, join);
  }
}

// Nothing while Pods are adopted or released, or when the Job has gone.
std::optional<JobState> JobController::Assess(const ObjectName& key, std::string_view uid,
                                              const std::shared_ptr<Join>& join) {
  const Object job = jobs_.cache().Get(key);
  if (!job || job.uid() != uid) return {};
  const auto selector = api::LabelSelector::From(job["spec"]["selector"]);
  if (!selector) {
    join->Failed(selector.error());
    return {};
  }
  Claimed claimed = Claim(job, *selector, pods_, join);
  if (claimed.changed) return {};
  return AssessJob(job, std::move(claimed.owned), backoffs_[key], Now());
}

void JobController::Manage(const JobState& state, const std::shared_ptr<Join>& join) {
  const int64_t active = static_cast<int64_t>(state.active.size());
  const int64_t wanted = state.is_suspended() ? 0 : WantedActive(state);
  const int64_t excess = std::max<int64_t>(0, active - wanted);
  std::vector<Object> remove = JobPodsToRemove(state, excess, Now());
  if (remove.size() > kBurst) remove.resize(kBurst);
  for (const Object& pod : remove) RemovePod(state, pod, join);
  if (!remove.empty() || state.is_suspended()) return;
  const int64_t ending = state.replaces_failed_only() ? state.terminating : 0;
  const int64_t missing = wanted - ending - active;
  if (missing > 0) StartPods(state, std::min(missing, kBurst), join);
}

void JobController::StartPods(const JobState& state, int64_t count,
                              const std::shared_ptr<Join>& join) {
  const ObjectName key = NameOf(state.job);
  if (!state.limits_per_index()) {
    const Duration left = state.backoff.Left(Now());
    if (left > Duration{0}) return EnqueueAfter(key, left);
  }
  std::vector<Object> pods;
  if (!state.is_indexed()) {
    for (int64_t i = 0; i < count; ++i) pods.push_back(NewPod(state, {}));
  } else {
    std::optional<Duration> soonest;
    for (const int64_t index : IndexesToStart(state, count)) {
      const auto before = state.delayed.find(index);
      if (state.limits_per_index() && before != state.delayed.end()) {
        const Value failures = before->second["metadata"]["annotations"][kIndexFailures];
        const JobBackoff backoff{
            std::strtoll(std::string(failures.AsString("0")).c_str(), nullptr, 10) + 1,
            FinishedAt(before->second)};
        const Duration left = backoff.Left(Now());
        if (left > Duration{0}) {
          soonest = std::min(soonest.value_or(left), left);
          continue;
        }
      }
      pods.push_back(NewPod(state, index));
    }
    if (soonest) EnqueueAfter(key, *soonest);
  }
  CreatePods(pods_, events(), state.job, std::move(pods), join);
}

Object JobController::NewPod(const JobState& state, std::optional<int64_t> index) const {
  const Object& job = state.job;
  Editor edit;
  edit.Keep(job);
  FillPodFromTemplate(edit.Root(), job["spec"]["template"], job);
  Mut metadata = edit["metadata"];
  metadata["finalizers"].Append().SetString(kTracking);
  if (index) {
    const std::string number = fmt::format("{}", *index);
    metadata["annotations"].Set(kCompletionIndex, number);
    metadata["labels"].Set(kCompletionIndex, number);
    const std::string suffix = fmt::format("-{}-", *index);
    metadata.Set("generateName",
                 std::string(job.name().substr(0, kMaxGeneratedBase - suffix.size())) + suffix);
    Mut spec = edit["spec"];
    spec.Set("hostname", fmt::format("{}-{}", job.name(), *index));
    AddIndexVariable(spec["initContainers"]);
    AddIndexVariable(spec["containers"]);
    if (state.limits_per_index()) CountIndexFailures(state, *index, metadata["annotations"]);
  }
  return pods_.Finish(std::move(edit));
}

// A Pod too many is not counted: the finalizer goes first.
void JobController::RemovePod(const JobState& state, const Object& pod,
                              const std::shared_ptr<Join>& join) {
  const auto remove = [this, job = state.job, pod, join](Result<Object> released) {
    if (!released) return join->Failed(std::move(released).error());
    DeletePod(pods_, events(), job, pod, join->Piece());
  };
  if (!IsTracked(pod)) return remove(pod);
  ReleasePod(pod, remove);
}

void JobController::ReleasePod(const Object& pod, client::Callback<Object> done) {
  Editor edit;
  edit["metadata"].Set("uid", pod.uid());
  edit["metadata"]["$deleteFromPrimitiveList/finalizers"].Append().SetString(kTracking);
  pods_.Patch(pod, client::PatchType::kStrategic, std::move(edit).Finish(),
              [pod, done = std::move(done)](Result<Object> released) mutable {
                // Gone meanwhile, or another one by now.
                if (!released && (released.error().code == 404 || released.error().code == 409)) {
                  return done(pod);
                }
                done(std::move(released));
              });
}

void JobController::Release(const std::vector<Object>& pods, Done done) {
  const auto join = JoinThen(std::move(done));
  for (const Object& pod : pods) ReleasePod(pod, join->Piece());
}

bool JobController::NoteSuspension(const JobState& state, Mut status) {
  const Value have = state.job["status"]["conditions"];
  if (state.is_suspended()) {
    if (!EnsureCondition(have, status["conditions"],
                         {"Suspended", "True", "JobSuspended", "Job suspended"}, Now())) {
      return false;
    }
    status.Erase("startTime");
    events().Normal(state.job, "Suspended", "Job suspended");
    return true;
  }
  if (!EnsureCondition(have, status["conditions"],
                       {"Suspended", "False", "JobResumed", "Job resumed"}, Now())) {
    return false;
  }
  status.Set("startTime", FormatTime(Now()));
  events().Normal(state.job, "Resumed", "Job resumed");
  return true;
}

void JobController::Track(const ObjectName& key, std::string uid, bool managed, Done done) {
  const auto join = JoinThen([](Status) {});
  auto state = Assess(key, uid, join);
  if (!state) return done({});
  if (state->finish && !state->active.empty()) {  // decided only now: its Pods go first
    Enqueue(key);
    state->finish.reset();
  }
  Editor edit(state->job);
  Mut status = edit["status"];
  if (!state->job["status"]["startTime"] && !state->is_suspended()) {
    status.Set("startTime", FormatTime(Now()));
  }
  if (!state->finish && !IsDeleting(state->job)) {
    if (state->is_complete()) {
      state->finish = Condition{"SuccessCriteriaMet", "True", "CompletionsReached",
                                "Reached expected number of succeeded pods"};
    } else if (managed) {
      NoteSuspension(*state, status);
    }
  }
  const JobTracking tracking = TrackJob(*state, status, Now());
  Object next = jobs_.Finish(std::move(edit));
  const JobBackoff backoff = state->backoff;
  auto then = [this, key, backoff, tracking,
               done = std::move(done)](Result<Object> stored) mutable {
    if (!stored) return done(Fail(std::move(stored).error()));
    if (!IsJobFinished(*stored)) backoffs_[key] = backoff;
    if (tracking.finished) TellEnd(*stored);
    if (const auto left = DeadlineLeft(*stored, Now()); left && *left > Duration{0}) {
      EnqueueAfter(key, *left);
    }
    Release(tracking.release, std::move(done));
  };
  if (Equal(next["status"], state->job["status"])) return then(state->job);
  jobs_.UpdateStatus(std::move(next), std::move(then));
}

void JobController::TellEnd(const Object& job) {
  const Value conditions = job["status"]["conditions"];
  if (!IsConditionTrue(conditions, "Complete")) {
    const Value failed = FindCondition(conditions, "Failed");
    return events().Warning(job, failed["reason"].AsString(), failed["message"].AsString());
  }
  const Value completions = job["spec"]["completions"];
  if (completions && job["status"]["succeeded"].AsInt() > completions.AsInt()) {
    events().Warning(job, "TooManySucceededPods",
                     "Too many succeeded pods running after completion count reached");
  }
  events().Normal(job, "Completed", "Job completed");
}

TtlAfterFinishedController::TtlAfterFinishedController(Deps deps)
    : Reconciler(deps, {.component = "ttl-after-finished-controller"}),
      jobs_(*this, client::kJobs) {
  Hear(jobs_.cache(), [this](const Change& change) {
    if (change.after && change.after["spec"]["ttlSecondsAfterFinished"]) Enqueue(change.name());
  });
}

void TtlAfterFinishedController::Reconcile(const ObjectName& key, Done done) {
  const Object job = jobs_.cache().Get(key);
  const Value ttl = job["spec"]["ttlSecondsAfterFinished"];
  if (!job || !ttl || IsDeleting(job) || !IsJobFinished(job)) return done({});
  const Value conditions = job["status"]["conditions"];
  const char* const type = IsConditionTrue(conditions, "Complete") ? "Complete" : "Failed";
  const auto ended = ParseTime(FindCondition(conditions, type)["lastTransitionTime"].AsString());
  if (!ended) return done({});
  const Duration left = *ended + std::chrono::seconds(ttl.AsInt()) - Now();
  if (left > Duration{0}) {
    EnqueueAfter(key, left);
    return done({});
  }
  jobs_.Delete(
      job, Ending(std::move(done)),
      {.propagation = "Foreground", .resource_version = std::string(job.resource_version())});
}

}  // namespace sextant::controllers
