#include "controllers/job_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "controllers/replicaset.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Mut;
using api::Object;
using api::Value;

constexpr Duration kFirstBackoff = 10s;
constexpr Duration kMaxBackoff = 10min;
constexpr size_t kMaxUncounted = 500;  // uids in status.uncountedTerminatedPods

std::optional<int64_t> NumberIn(const Object& pod, const char* annotation) {
  const std::string_view text = pod["metadata"]["annotations"][annotation].AsString();
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0) {
    return {};
  }
  return number;
}

int64_t AllFailures(const Object& pod) {
  return NumberIn(pod, kIndexFailures).value_or(0) +
         NumberIn(pod, kIndexIgnoredFailures).value_or(0);
}

std::set<std::string> Uids(Value list) {
  std::set<std::string> uids;
  for (Value uid : list.items()) uids.emplace(uid.AsString());
  return uids;
}

bool HasValidIndex(const JobState& state, const Object& pod) {
  if (!state.is_indexed()) return true;
  const auto index = IndexOf(pod);
  return index && *index < state.completions();
}

// The terminated status that a rule's onExitCodes means; absent if there is none.
Value MatchExitCodes(Value rule, const Object& pod) {
  const Value wanted = rule["onExitCodes"];
  const bool in = wanted["operator"].AsString() == "In";
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (Value status : pod["status"][list].items()) {
      const Value ended = status["state"]["terminated"];
      const std::string_view name = wanted["containerName"].AsString();
      if (!ended || ended["exitCode"].AsInt() == 0) continue;
      if (!name.empty() && name != status["name"].AsString()) continue;
      bool listed = false;
      for (Value value : wanted["values"].items())
        listed = listed || value.AsInt() == ended["exitCode"].AsInt();
      if (listed == in) return status;
    }
  }
  return {};
}

Value MatchConditions(Value rule, const Object& pod) {
  for (Value condition : pod["status"]["conditions"].items())
    for (Value pattern : rule["onPodConditions"].items())
      if (condition["type"].AsString() == pattern["type"].AsString() &&
          condition["status"].AsString() == pattern["status"].AsString("True")) {
        return condition;
      }
  return {};
}

// Restarts of containers that go on, for restartPolicy OnFailure.
bool RestartsExceed(const JobState& state) {
  if (state.spec()["template"]["spec"]["restartPolicy"].AsString() != "OnFailure") return false;
  int64_t restarts = 0;
  for (const Object& pod : state.pods) {
    const std::string_view phase = pod["status"]["phase"].AsString();
    if (phase != "Running" && phase != "Pending") continue;
    for (const char* list : {"containerStatuses", "initContainerStatuses"})
      for (Value status : pod["status"][list].items()) restarts += status["restartCount"].AsInt();
  }
  const int64_t limit = state.spec()["backoffLimit"].AsInt();
  return limit == 0 ? restarts > 0 : restarts >= limit;
}

// Failures after the last success, of the Pods that are new in this round.
JobBackoff NextBackoff(JobBackoff before, const std::vector<Object>& succeeded,
                       const std::vector<Object>& failed) {
  if (succeeded.empty() && failed.empty()) return before;
  JobBackoff next;
  std::optional<Time> success;
  for (const Object& pod : succeeded) {
    const Time at = FinishedAt(pod);
    success = std::max(success.value_or(at), at);
  }
  if (!success) next = before;
  for (const Object& pod : failed) {
    const Time at = FinishedAt(pod);
    if (success && at <= *success) continue;
    ++next.failures;
    next.last = std::max(next.last, at);
  }
  return next;
}

std::optional<Condition> PolicyFailure(const JobState& state) {
  const Value policy = state.spec()["podFailurePolicy"];
  if (!policy) return {};
  for (const Object& pod : state.pods) {
    if (!CountsAsFailed(state, pod)) continue;
    FailureVerdict verdict = JudgeFailure(policy, pod);
    if (!verdict.message.empty()) {
      return Condition{"FailureTarget", "True", "PodFailurePolicy", std::move(verdict.message)};
    }
  }
  return {};
}

std::optional<Condition> SuccessByPolicy(const JobState& state) {
  int64_t number = 0;
  for (Value rule : state.spec()["successPolicy"]["rules"].items()) {
    const Value count = rule["succeededCount"];
    bool met = false;
    if (state.succeeded_indexes.size() == 0) return {};
    if (rule["succeededIndexes"]) {
      const IndexSet wanted =
          IndexSet::Parse(rule["succeededIndexes"].AsString(), state.completions());
      const int64_t have = wanted.Overlap(state.succeeded_indexes);
      met = wanted.size() > 0 && (have == wanted.size() || (count && have >= count.AsInt()));
    } else if (count) {
      met = state.succeeded_indexes.size() >= count.AsInt();
    }
    if (met) {
      return Condition{"SuccessCriteriaMet", "True", "SuccessPolicy",
                       fmt::format("Matched rules at index {}", number)};
    }
    ++number;
  }
  return {};
}

Condition FailureFor(std::string_view reason, std::string message) {
  return {"FailureTarget", "True", reason, std::move(message)};
}

std::optional<Condition> Existing(const JobState& state, std::string_view type) {
  const Value have = FindCondition(state.job["status"]["conditions"], type);
  if (have["status"].AsString() != "True") return {};
  return Condition{type, "True", have["reason"].AsString(),
                   std::string(have["message"].AsString())};
}

bool IsIndexFailed(const JobState& state, const Object& pod) {
  if (!CountsAsFailed(state, pod)) return false;
  const FailureVerdict verdict = JudgeFailure(state.spec()["podFailurePolicy"], pod);
  if (verdict.action == "FailIndex") return true;
  return verdict.counts &&
         NumberIn(pod, kIndexFailures).value_or(0) >= state.spec()["backoffLimitPerIndex"].AsInt();
}

void AssessIndexes(JobState& state) {
  const Value status = state.job["status"];
  state.counted_indexes =
      IndexSet::Parse(status["completedIndexes"].AsString(), state.completions());
  state.succeeded_indexes = state.counted_indexes;
  if (state.limits_per_index()) {
    state.failed_indexes = IndexSet::Parse(status["failedIndexes"].AsString(), state.completions());
  }
  IndexSet active;
  for (const Object& pod : state.active)
    if (const auto index = IndexOf(pod)) active.Add(*index);
  for (const Object& pod : state.pods) {
    if (!IsTracked(pod) || !HasValidIndex(state, pod)) continue;
    if (pod["status"]["phase"].AsString() == "Succeeded")
      state.succeeded_indexes.Add(*IndexOf(pod));
    if (state.failed_indexes && IsIndexFailed(state, pod)) state.failed_indexes->Add(*IndexOf(pod));
  }
  state.succeeded = state.succeeded_indexes.size();
  if (!state.failed_indexes) return;
  for (const Object& pod : state.pods) {
    if (!IsTracked(pod) || !HasValidIndex(state, pod) || !CountsAsFailed(state, pod)) continue;
    const int64_t index = *IndexOf(pod);
    if (state.succeeded_indexes.Has(index) || state.failed_indexes->Has(index) ||
        active.Has(index)) {
      continue;
    }
    Object& kept = state.delayed[index];
    if (!kept || AllFailures(kept) <= AllFailures(pod)) kept = pod;
  }
}

void AssessFinish(JobState& state, Time now) {
  const Value spec = state.spec();
  auto& finish = state.finish;
  finish = Existing(state, "SuccessCriteriaMet");
  if (!finish) finish = Existing(state, "FailureTarget");
  if (!finish) finish = PolicyFailure(state);
  if (!finish) {
    const auto left = DeadlineLeft(state.job, now);
    if (state.failed > spec["backoffLimit"].AsInt() || RestartsExceed(state)) {
      finish = FailureFor("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    } else if (left && *left <= Duration{0}) {
      finish = FailureFor("DeadlineExceeded", "Job was active longer than specified deadline");
    }
  }
  if (finish || !state.is_indexed()) return;
  if (state.failed_indexes) {
    const int64_t failed = state.failed_indexes->size();
    if (spec["maxFailedIndexes"] && failed > spec["maxFailedIndexes"].AsInt()) {
      finish = FailureFor("MaxFailedIndexesExceeded",
                          "Job has exceeded the specified maximal number of failed indexes");
    } else if (failed > 0 && failed + state.succeeded >= state.completions()) {
      finish = FailureFor("FailedIndexes", "Job has failed indexes");
    }
  }
  if (!finish) finish = SuccessByPolicy(state);
}

}  // namespace

Duration JobBackoff::Left(Time now) const {
  if (failures == 0) return Duration{0};
  Duration wait = kFirstBackoff;
  for (int64_t i = 1; i < failures && wait < kMaxBackoff; ++i) wait *= 2;
  return std::max<Duration>(Duration{0}, std::min(wait, kMaxBackoff) - (now - last));
}

bool JobState::replaces_failed_only() const {
  return spec()["podReplacementPolicy"].AsString() == "Failed" || spec()["podFailurePolicy"];
}

bool JobState::is_complete() const {
  if (!active.empty()) return false;
  return has_completions() ? succeeded >= completions() : succeeded > 0;
}

bool IsJobFinished(const Object& job) {
  return IsConditionTrue(job["status"]["conditions"], "Complete") ||
         IsConditionTrue(job["status"]["conditions"], "Failed");
}

bool IsTracked(const Object& pod) {
  for (Value finalizer : pod["metadata"]["finalizers"].items())
    if (finalizer.AsString() == kTracking) return true;
  return false;
}

std::optional<int64_t> IndexOf(const Object& pod) { return NumberIn(pod, kCompletionIndex); }

bool CountsAsFailed(const JobState& state, const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  if (phase == "Failed") return true;
  if (state.replaces_failed_only()) return false;
  return IsDeleting(pod) && phase != "Succeeded";
}

Time FinishedAt(const Object& pod) {
  std::optional<Time> latest;
  bool all = true;
  for (Value status : pod["status"]["containerStatuses"].items()) {
    const auto at = ParseTime(status["state"]["terminated"]["finishedAt"].AsString());
    all = all && at;
    if (at) latest = std::max(latest.value_or(*at), *at);
  }
  if (all && latest) return *latest;
  const Value ready = FindCondition(pod["status"]["conditions"], "Ready");
  if (ready["status"].AsString() == "False") {
    if (const auto at = ParseTime(ready["lastTransitionTime"].AsString())) return *at;
  }
  if (const auto at = ParseTime(pod["metadata"]["deletionTimestamp"].AsString())) {
    return *at - std::chrono::seconds(pod["metadata"]["deletionGracePeriodSeconds"].AsInt());
  }
  return CreatedAt(pod);
}

FailureVerdict JudgeFailure(Value policy, const Object& pod) {
  int64_t number = -1;
  for (Value rule : policy["rules"].items()) {
    ++number;
    const std::string_view action = rule["action"].AsString();
    const bool by_code = static_cast<bool>(rule["onExitCodes"]);
    const Value match = by_code ? MatchExitCodes(rule, pod) : MatchConditions(rule, pod);
    if (!match) continue;
    if (action != "FailJob") return {action, action != "Ignore", ""};
    std::string what = by_code ? fmt::format("Container {} for pod {}/{} failed with exit code {}",
                                             match["name"].AsString(), pod.ns(), pod.name(),
                                             match["state"]["terminated"]["exitCode"].AsInt())
                               : fmt::format("Pod {}/{} has condition {}", pod.ns(), pod.name(),
                                             match["type"].AsString());
    return {action, true, fmt::format("{} matching {} rule at index {}", what, action, number)};
  }
  return {};
}

std::optional<Duration> DeadlineLeft(const Object& job, Time now) {
  const Value limit = job["spec"]["activeDeadlineSeconds"];
  if (!limit || job["spec"]["suspend"].AsBool()) return {};
  const auto start = ParseTime(job["status"]["startTime"].AsString());
  return std::chrono::seconds(limit.AsInt()) - (now - start.value_or(now));
}

JobState AssessJob(const Object& job, std::vector<Object> pods, JobBackoff before, Time now) {
  JobState state;
  state.job = job;
  state.pods = std::move(pods);
  const Value uncounted = job["status"]["uncountedTerminatedPods"];
  state.uncounted_succeeded = Uids(uncounted["succeeded"]);
  state.uncounted_failed = Uids(uncounted["failed"]);
  std::vector<Object> succeeded;
  std::vector<Object> failed;
  int64_t ignored = 0;
  for (const Object& pod : state.pods) {
    const std::string uid(pod.uid());
    if (IsPodActive(pod)) state.active.push_back(pod);
    if (IsDeleting(pod) && !IsPodTerminal(pod)) ++state.terminating;
    if (!IsTracked(pod) || !HasValidIndex(state, pod)) continue;
    if (pod["status"]["phase"].AsString() == "Succeeded") {
      if (!state.uncounted_succeeded.contains(uid)) succeeded.push_back(pod);
    } else if (CountsAsFailed(state, pod) && !state.uncounted_failed.contains(uid)) {
      failed.push_back(pod);
      if (!JudgeFailure(state.spec()["podFailurePolicy"], pod).counts) ++ignored;
    }
  }
  for (const Object& pod : state.active) state.ready += IsPodReady(pod) ? 1 : 0;
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  state.succeeded =
      job["status"]["succeeded"].AsInt() + count(succeeded) + count(state.uncounted_succeeded);
  state.failed =
      job["status"]["failed"].AsInt() + count(failed) - ignored + count(state.uncounted_failed);
  state.backoff = NextBackoff(before, succeeded, failed);
  if (state.is_indexed()) AssessIndexes(state);
  AssessFinish(state, now);
  return state;
}

namespace {

// Pods that have lost the finalizer are counted for good.
int64_t SettleCounted(Mut list, const std::set<std::string>& tracked) {
  int64_t settled = 0;
  for (size_t i = list.size(); i-- > 0;) {
    if (tracked.contains(std::string(list.at(i).AsString()))) continue;
    list.EraseAt(i);
    ++settled;
  }
  return settled;
}

bool MayRelease(const JobState& state, const Object& pod) {
  if (IsDeleting(state.job) || state.finish) return true;
  if (pod["status"]["phase"].AsString() == "Succeeded") return true;
  if (!CountsAsFailed(state, pod)) return false;
  const auto index = IndexOf(pod);
  if (!index) return true;
  const auto kept = state.delayed.find(*index);
  return kept == state.delayed.end() || kept->second.uid() != pod.uid();
}

// Adds the Pod to what is to be counted; true if it was not there.
void CountPod(const JobState& state, const Object& pod, Mut uncounted, IndexSet& indexes) {
  const std::string uid(pod.uid());
  const bool ends_badly = state.finish && state.finish->type != "SuccessCriteriaMet";
  if (pod["status"]["phase"].AsString() == "Succeeded" && !state.uncounted_failed.contains(uid)) {
    if (state.is_indexed()) {
      if (HasValidIndex(state, pod)) indexes.Add(*IndexOf(pod));
    } else if (!state.uncounted_succeeded.contains(uid)) {
      uncounted["succeeded"].Append().SetString(uid);
    }
  } else if (CountsAsFailed(state, pod) || ends_badly) {
    if (state.uncounted_failed.contains(uid) || !HasValidIndex(state, pod)) return;
    if (!JudgeFailure(state.spec()["podFailurePolicy"], pod).counts) return;
    uncounted["failed"].Append().SetString(uid);
  }
}

// SuccessCriteriaMet or FailureTarget first; when all is counted and ended, Complete or Failed.
bool FinishJob(const JobState& state, Mut status, bool settled, Time now) {
  Mut conditions = status["conditions"];
  if (!IsConditionTrue(state.job["status"]["conditions"], state.finish->type)) {
    SetCondition(conditions, *state.finish, now, "lastProbeTime");
    return false;
  }
  if (!settled || state.terminating > 0 || !state.active.empty()) return false;
  const bool success = state.finish->type == "SuccessCriteriaMet";
  SetCondition(
      conditions,
      {success ? "Complete" : "Failed", "True", state.finish->reason, state.finish->message}, now,
      "lastProbeTime");
  if (success) status.Set("completionTime", FormatTime(now));
  return true;
}

}  // namespace

JobTracking TrackJob(const JobState& state, Mut status, Time now) {
  JobTracking tracking;
  std::set<std::string> tracked;
  for (const Object& pod : state.pods)
    if (IsTracked(pod)) tracked.emplace(pod.uid());
  Mut uncounted = status["uncountedTerminatedPods"];
  uncounted.SetMap();
  const int64_t succeeded = SettleCounted(uncounted["succeeded"], tracked);
  const int64_t failed = SettleCounted(uncounted["failed"], tracked);
  IndexSet indexes = state.counted_indexes;
  for (const Object& pod : state.pods) {
    if (!IsTracked(pod) || !MayRelease(state, pod)) continue;
    if (tracking.release.size() >= kMaxUncounted) break;
    tracking.release.push_back(pod);
    CountPod(state, pod, uncounted, indexes);
  }
  status.Set("failed", state.job["status"]["failed"].AsInt() + failed);
  if (state.is_indexed()) {
    status.Set("succeeded", indexes.size());
    status.Set("completedIndexes", indexes.ToString());
    if (state.failed_indexes) status.Set("failedIndexes", state.failed_indexes->ToString());
  } else {
    status.Set("succeeded", state.job["status"]["succeeded"].AsInt() + succeeded);
  }
  status.Set("active", static_cast<int64_t>(state.active.size()));
  status.Set("ready", state.ready);
  status.Set("terminating", state.terminating);
  if (!state.finish) return tracking;
  const bool settled = tracking.release.empty() && uncounted["succeeded"].size() == 0 &&
                       uncounted["failed"].size() == 0;
  tracking.finished = FinishJob(state, status, settled, now);
  return tracking;
}

int64_t WantedActive(const JobState& state) {
  const int64_t parallelism = state.spec()["parallelism"].AsInt(1);
  if (!state.has_completions()) {
    return state.succeeded > 0 ? static_cast<int64_t>(state.active.size()) : parallelism;
  }
  return std::max<int64_t>(0, std::min(parallelism, state.completions() - state.succeeded));
}

std::vector<Object> JobPodsToRemove(const JobState& state, int64_t count, Time now) {
  std::vector<Object> remove;
  std::vector<Object> left;
  if (state.is_indexed()) {
    std::map<int64_t, std::vector<Object>> by_index;
    for (const Object& pod : state.active) {
      if (HasValidIndex(state, pod)) {
        by_index[*IndexOf(pod)].push_back(pod);
      } else {
        remove.push_back(pod);
      }
    }
    for (auto& [index, pods] : by_index) {
      const size_t doubled = pods.size() - 1;
      const std::vector<Object> first = PodsToGiveUp(pods, {}, doubled, now);
      for (Object& pod : pods) {
        const bool given = std::any_of(first.begin(), first.end(),
                                       [&](const Object& each) { return each.uid() == pod.uid(); });
        (given ? remove : left).push_back(std::move(pod));
      }
    }
  } else {
    left = state.active;
  }
  const int64_t more = count - static_cast<int64_t>(remove.size());
  if (more > 0) {
    for (Object& pod : PodsToGiveUp(std::move(left), {}, static_cast<size_t>(more), now))
      remove.push_back(std::move(pod));
  }
  return remove;
}

std::vector<int64_t> IndexesToStart(const JobState& state, int64_t count) {
  IndexSet taken = state.succeeded_indexes;
  for (const Object& pod : state.pods) {
    const bool ending = IsDeleting(pod) && !IsPodTerminal(pod);
    if (!IsPodActive(pod) && !(ending && state.replaces_failed_only())) continue;
    if (const auto index = IndexOf(pod)) taken.Add(*index);
  }
  if (state.failed_indexes) taken.AddAll(*state.failed_indexes);
  return taken.Missing(count, state.completions());
}

}  // namespace sextant::controllers
