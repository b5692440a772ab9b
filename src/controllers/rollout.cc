#include "controllers/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxHistoryChars = 2000;
constexpr std::string_view kSkipped[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                         kRevision,
                                         kRevisionHistory,
                                         kDesiredReplicas,
                                         kMaxReplicas,
                                         "deprecated.deployment.rollback.to"};
constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

bool Older(const Object& a, const Object& b) {
  const std::string_view a_made = a["metadata"]["creationTimestamp"].AsString();
  const std::string_view b_made = b["metadata"]["creationTimestamp"].AsString();
  return a_made != b_made ? a_made < b_made : a.name() < b.name();
}

// Equal but for the label that the controller adds.
bool SameTemplate(Value a, Value b) {
  const auto strip = [](Value v) {
    Editor edit(CopyOf(v));
    edit["metadata"]["labels"].Erase(kTemplateHash);
    return std::move(edit).Finish();
  };
  const Object x = strip(a);
  const Object y = strip(b);
  return Equal(x.root(), y.root());
}

std::pair<int64_t, int64_t> Fenceposts(const Rollout& rollout) {
  const Value rolling = rollout.deployment["spec"]["strategy"]["rollingUpdate"];
  const int64_t surge = Scaled(rolling["maxSurge"], rollout.replicas(), true, 0);
  int64_t unavailable = Scaled(rolling["maxUnavailable"], rollout.replicas(), false, 0);
  if (surge == 0 && unavailable == 0) unavailable = 1;
  return {surge, unavailable};
}

// By size, then newer (or older) first.
void SortBySize(std::vector<Object>& sets, bool newer_first) {
  std::sort(sets.begin(), sets.end(), [newer_first](const Object& a, const Object& b) {
    if (Replicas(a) != Replicas(b)) return Replicas(a) > Replicas(b);
    return newer_first ? Older(b, a) : Older(a, b);
  });
}

int64_t Fraction(const Rollout& rollout, const Object& set) {
  const int64_t size = Replicas(set);
  if (rollout.replicas() == 0) return -size;
  int64_t before = NumberIn(set, kMaxReplicas).value_or(0);
  if (before == 0) before = rollout.deployment["status"]["replicas"].AsInt();
  if (before == 0) return 0;
  const double scaled = static_cast<double>(size * (rollout.replicas() + rollout.max_surge())) /
                        static_cast<double>(before);
  return static_cast<int64_t>(std::llround(scaled)) - size;
}

std::string_view NameOr(const Rollout& rollout) {
  return rollout.fresh ? rollout.fresh.name() : rollout.deployment.name();
}
std::string_view WordFor(const Rollout& rollout) {
  return rollout.fresh ? "ReplicaSet" : "Deployment";
}

bool IsProgressing(Value old, Value now) {
  const auto number = [](Value status, const char* field) { return status[field].AsInt(); };
  return number(now, "updatedReplicas") > number(old, "updatedReplicas") ||
         number(now, "replicas") - number(now, "updatedReplicas") <
             number(old, "replicas") - number(old, "updatedReplicas") ||
         number(now, "readyReplicas") > number(old, "readyReplicas") ||
         number(now, "availableReplicas") > number(old, "availableReplicas");
}

bool HasTimedOut(const Object& deployment, Value condition, Time now) {
  if (!condition) return false;
  const std::string_view reason = condition["reason"].AsString();
  if (reason == "NewReplicaSetAvailable") return false;
  if (reason == "ProgressDeadlineExceeded") return true;
  const auto since = ParseTime(condition["lastUpdateTime"].AsString());
  return since &&
         *since + std::chrono::seconds(deployment["spec"]["progressDeadlineSeconds"].AsInt()) < now;
}

void FillReplicaFailure(const Rollout& rollout, Mut conditions, Time now) {
  RemoveCondition(conditions, "ReplicaFailure");
  for (const Object& set : rollout.all()) {
    const Value failure = FindCondition(set["status"]["conditions"], "ReplicaFailure");
    if (!failure) continue;
    SetCondition(conditions,
                 {"ReplicaFailure", failure["status"].AsString(), failure["reason"].AsString(),
                  std::string(failure["message"].AsString())},
                 ParseTime(failure["lastTransitionTime"].AsString()).value_or(now),
                 "lastUpdateTime");
    return;
  }
}

}  // namespace

int64_t Rollout::max_surge() const { return is_rolling() ? Fenceposts(*this).first : 0; }

int64_t Rollout::max_unavailable() const {
  if (!is_rolling() || replicas() == 0) return 0;
  return std::min(Fenceposts(*this).second, replicas());
}

std::vector<Object> Rollout::all() const {
  std::vector<Object> sets;
  if (fresh) sets.push_back(fresh);
  sets.insert(sets.end(), old.begin(), old.end());
  return sets;
}

Rollout MakeRollout(const Object& deployment, std::vector<Object> replica_sets) {
  Rollout rollout;
  rollout.deployment = deployment;
  std::sort(replica_sets.begin(), replica_sets.end(), Older);
  for (Object& set : replica_sets) {
    if (!rollout.fresh && SameTemplate(set["spec"]["template"], deployment["spec"]["template"])) {
      rollout.fresh = std::move(set);
    } else {
      rollout.old.push_back(std::move(set));
    }
  }
  return rollout;
}

int64_t Replicas(const Object& set) { return set["spec"]["replicas"].AsInt(set ? 1 : 0); }

int64_t SumReplicas(const std::vector<Object>& sets) {
  int64_t sum = 0;
  for (const Object& set : sets) sum += Replicas(set);
  return sum;
}

int64_t SumStatus(const std::vector<Object>& sets, const char* field) {
  int64_t sum = 0;
  for (const Object& set : sets) sum += set["status"][field].AsInt();
  return sum;
}

std::vector<Object> Active(const std::vector<Object>& sets) {
  std::vector<Object> active;
  for (const Object& set : sets)
    if (Replicas(set) > 0) active.push_back(set);
  return active;
}

std::optional<int64_t> NumberIn(const Object& object, const char* annotation) {
  const std::string_view text = object["metadata"]["annotations"][annotation].AsString();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

int64_t RevisionOf(const Object& object) { return NumberIn(object, kRevision).value_or(0); }

int64_t MaxRevision(const std::vector<Object>& sets) {
  int64_t most = 0;
  for (const Object& set : sets) most = std::max(most, RevisionOf(set));
  return most;
}

int64_t NewReplicas(const Rollout& rollout, int64_t present) {
  if (!rollout.is_rolling()) return rollout.replicas();
  const int64_t total = SumReplicas(rollout.all());
  const int64_t room = rollout.replicas() + rollout.max_surge() - total;
  if (room <= 0) return present;
  return present + std::min(room, rollout.replicas() - present);
}

std::map<std::string, int64_t> Proportional(const Rollout& rollout) {
  std::vector<Object> sets = Active(rollout.all());
  const int64_t allowed = rollout.replicas() > 0 ? rollout.replicas() + rollout.max_surge() : 0;
  const int64_t to_add = allowed - SumReplicas(sets);
  SortBySize(sets, to_add > 0);
  std::map<std::string, int64_t> sizes;
  int64_t added = 0;
  for (const Object& set : sets) {
    int64_t share = 0;
    if (to_add != 0 && to_add != added) {
      const int64_t left = to_add - added;
      share = to_add > 0 ? std::min(Fraction(rollout, set), left)
                         : std::max(Fraction(rollout, set), left);
    }
    sizes[std::string(set.name())] = Replicas(set) + share;
    added += share;
  }
  if (to_add != 0 && !sets.empty()) {
    int64_t& largest = sizes[std::string(sets.front().name())];
    largest = std::max<int64_t>(0, largest + to_add - added);
  }
  return sizes;
}

Object ActiveOrLatest(const Rollout& rollout) {
  const std::vector<Object> active = Active(rollout.all());
  if (active.size() == 1) return active.front();
  if (!active.empty()) return {};
  if (rollout.fresh) return rollout.fresh;
  return rollout.old.empty() ? Object() : rollout.old.back();
}

bool IsSaturated(const Rollout& rollout) {
  const Object& set = rollout.fresh;
  return set && NumberIn(set, kDesiredReplicas) == rollout.replicas() &&
         Replicas(set) == rollout.replicas() &&
         set["status"]["availableReplicas"].AsInt() == rollout.replicas();
}

std::map<std::string, int64_t> ScaleDownOld(const Rollout& rollout) {
  std::map<std::string, int64_t> sizes;
  std::vector<Object> old = Active(rollout.old);
  if (old.empty() || !rollout.fresh) return sizes;
  const int64_t min_available = rollout.replicas() - rollout.max_unavailable();
  const int64_t fresh_unavailable =
      Replicas(rollout.fresh) - rollout.fresh["status"]["availableReplicas"].AsInt();
  const int64_t most = SumReplicas(rollout.all()) - min_available - fresh_unavailable;
  if (most <= 0) return sizes;
  // Replicas that are not available anyhow go first ...
  int64_t cleaned = 0;
  for (const Object& set : old) {
    const int64_t unhealthy = Replicas(set) - set["status"]["availableReplicas"].AsInt();
    const int64_t count = std::min(most - cleaned, unhealthy);
    if (count <= 0) continue;
    sizes[std::string(set.name())] = Replicas(set) - count;
    cleaned += count;
  }
  // ... then available ones, down to what must stay.
  int64_t spare = SumStatus(rollout.all(), "availableReplicas") - min_available;
  for (const Object& set : old) {
    const std::string name(set.name());
    const int64_t size = sizes.contains(name) ? sizes[name] : Replicas(set);
    const int64_t count = std::min(size, spare);
    if (count <= 0) continue;
    sizes[name] = size - count;
    spare -= count;
  }
  return sizes;
}

bool HasProgressDeadline(const Object& deployment) {
  const Value limit = deployment["spec"]["progressDeadlineSeconds"];
  return limit && limit.AsInt() != kNoLimit;
}

bool HasHistoryLimit(const Object& deployment) {
  const Value limit = deployment["spec"]["revisionHistoryLimit"];
  return limit && limit.AsInt() != kNoLimit;
}

bool IsComplete(const Object& deployment, Value status) {
  const int64_t wanted = deployment["spec"]["replicas"].AsInt(1);
  return status["updatedReplicas"].AsInt() == wanted && status["replicas"].AsInt() == wanted &&
         status["availableReplicas"].AsInt() == wanted &&
         status["observedGeneration"].AsInt() >= deployment["metadata"]["generation"].AsInt();
}

bool AnnotateNew(const Rollout& rollout, Value have, Mut annotations, int64_t revision) {
  bool changed = false;
  for (auto [key, value] : rollout.deployment["metadata"]["annotations"].members()) {
    if (std::find(std::begin(kSkipped), std::end(kSkipped), key) != std::end(kSkipped)) continue;
    if (have.Has(key) && have[key].AsString() == value.AsString()) continue;
    annotations.Set(key, value.AsString());
    changed = true;
  }
  const std::string_view old_text = have[kRevision].AsString();
  int64_t old = 0;
  std::from_chars(old_text.data(), old_text.data() + old_text.size(), old);
  if (old >= revision) return changed;
  annotations.Set(kRevision, fmt::format("{}", revision));
  if (old_text.empty()) return true;
  std::string history(have[kRevisionHistory].AsString());
  history += (history.empty() ? "" : ",") + std::string(old_text);
  while (history.size() > kMaxHistoryChars && history.find(',') != std::string::npos)
    history.erase(0, history.find(',') + 1);
  annotations.Set(kRevisionHistory, history);
  return true;
}

void AnnotateReplicas(const Rollout& rollout, Mut annotations) {
  annotations.Set(kDesiredReplicas, fmt::format("{}", rollout.replicas()));
  annotations.Set(kMaxReplicas, fmt::format("{}", rollout.replicas() + rollout.max_surge()));
}

bool ReplicasAnnotationsDiffer(const Rollout& rollout, const Object& set) {
  return NumberIn(set, kDesiredReplicas) != rollout.replicas() ||
         NumberIn(set, kMaxReplicas) != rollout.replicas() + rollout.max_surge();
}

void FillStatus(const Rollout& rollout, Mut status, Time now) {
  const std::vector<Object> all = rollout.all();
  const int64_t available = SumStatus(all, "availableReplicas");
  status.Set("observedGeneration", rollout.deployment["metadata"]["generation"].AsInt());
  status.Set("replicas", SumStatus(all, "replicas"));
  status.Set("updatedReplicas", rollout.fresh["status"]["replicas"].AsInt());
  status.Set("readyReplicas", SumStatus(all, "readyReplicas"));
  status.Set("availableReplicas", available);
  status.Set("unavailableReplicas", std::max<int64_t>(0, SumReplicas(all) - available));
  bool known = true;
  for (const Object& set : all) {
    known = known && (set["status"].Has("terminatingReplicas") ||
                      set["status"]["observedGeneration"].AsInt() == 0);
  }
  if (known) {
    status.Set("terminatingReplicas", SumStatus(all, "terminatingReplicas"));
  } else {
    status.Erase("terminatingReplicas");
  }
  const bool enough = available >= rollout.replicas() - rollout.max_unavailable();
  PutCondition(status["conditions"],
               enough ? Condition{"Available", "True", "MinimumReplicasAvailable",
                                  "Deployment has minimum availability."}
                      : Condition{"Available", "False", "MinimumReplicasUnavailable",
                                  "Deployment does not have minimum availability."},
               now, "lastUpdateTime");
}

void FillProgress(const Rollout& rollout, Value status, Mut next, Time now) {
  const Object& deployment = rollout.deployment;
  Mut conditions = next["conditions"];
  const Value present = FindCondition(status["conditions"], "Progressing");
  if (!HasProgressDeadline(deployment)) RemoveCondition(conditions, "Progressing");
  const bool was_complete = next["replicas"].AsInt() == next["updatedReplicas"].AsInt() &&
                            present["reason"].AsString() == "NewReplicaSetAvailable";
  if (HasProgressDeadline(deployment) && !was_complete) {
    const Value counted = next.Snapshot();
    const std::string who = fmt::format("{} \"{}\"", WordFor(rollout), NameOr(rollout));
    if (IsComplete(deployment, counted)) {
      PutCondition(
          conditions,
          {"Progressing", "True", "NewReplicaSetAvailable", who + " has successfully progressed."},
          now, "lastUpdateTime");
    } else if (IsProgressing(status, counted)) {
      // The time of the last progress moves though the reason may stay.
      RemoveCondition(conditions, "Progressing");
      SetCondition(conditions,
                   {"Progressing", "True", "ReplicaSetUpdated", who + " is progressing."}, now,
                   "lastUpdateTime");
      if (present["status"].AsString() == "True") {
        conditions.at(conditions.size() - 1)
            .Set("lastTransitionTime", present["lastTransitionTime"].AsString());
      }
    } else if (HasTimedOut(deployment, present, now)) {
      PutCondition(
          conditions,
          {"Progressing", "False", "ProgressDeadlineExceeded", who + " has timed out progressing."},
          now, "lastUpdateTime");
    }
  }
  FillReplicaFailure(rollout, conditions, now);
}

}  // namespace sextant::controllers
