#include "controllers/replicaset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kBurst = 500;  // Pods made or deleted in one round
constexpr const char* kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

int PhaseOrder(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
}

int64_t DeletionCost(const Object& pod) {
  const std::string_view text = pod["metadata"]["annotations"][kDeletionCost].AsString();
  int64_t cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

int64_t MaxRestarts(const Object& pod, const char* list) {
  int64_t most = 0;
  for (Value status : pod["status"][list].items())
    most = std::max(most, status["restartCount"].AsInt());
  return most;
}

// Ages compare by their order of magnitude, so that not always the youngest goes.
int64_t LogAge(std::string_view stamp, Time now) {
  const auto at = ParseTime(stamp);
  const int64_t age = at ? (now - *at).count() : 0;
  return age > 0 ? static_cast<int64_t>(std::log2(static_cast<double>(age))) : -1;
}

struct Ranked {
  Object pod;
  size_t neighbours = 0;
};

// ActivePodsWithRanks.Less: negative if `a` goes first.
int64_t Order(const Ranked& a, const Ranked& b, Time now) {
  const bool a_bound = !a.pod["spec"]["nodeName"].AsString().empty();
  const bool b_bound = !b.pod["spec"]["nodeName"].AsString().empty();
  if (a_bound != b_bound) return a_bound ? 1 : -1;
  if (const int d = PhaseOrder(a.pod) - PhaseOrder(b.pod)) return d;
  const bool ready = IsPodReady(a.pod);
  if (ready != IsPodReady(b.pod)) return ready ? 1 : -1;
  if (const int64_t d = DeletionCost(a.pod) - DeletionCost(b.pod)) return d;
  if (a.neighbours != b.neighbours) return a.neighbours > b.neighbours ? -1 : 1;
  const auto since = [](const Object& pod) {
    return FindCondition(pod["status"]["conditions"], "Ready")["lastTransitionTime"].AsString();
  };
  if (ready && since(a.pod) != since(b.pod)) {
    if (const int64_t d = LogAge(since(a.pod), now) - LogAge(since(b.pod), now)) return d;
    return a.pod.uid() < b.pod.uid() ? -1 : 1;
  }
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    if (const int64_t d = MaxRestarts(b.pod, list) - MaxRestarts(a.pod, list)) return d;
  const auto made = [](const Object& pod) {
    return pod["metadata"]["creationTimestamp"].AsString();
  };
  if (made(a.pod) == made(b.pod)) return 0;
  if (const int64_t d = LogAge(made(a.pod), now) - LogAge(made(b.pod), now)) return d;
  return a.pod.uid() < b.pod.uid() ? -1 : 1;
}

}  // namespace

std::vector<Object> PodsToGiveUp(std::vector<Object> pods, const std::vector<Object>& related,
                                 size_t count, Time now) {
  if (count >= pods.size()) return pods;
  std::map<std::string, size_t> on_node;
  for (const Object& pod : related)
    if (IsPodActive(pod)) ++on_node[std::string(pod["spec"]["nodeName"].AsString())];
  std::vector<Ranked> ranked;
  for (Object& pod : pods) {
    const std::string node(pod["spec"]["nodeName"].AsString());
    ranked.push_back({std::move(pod), on_node[node]});
  }
  std::sort(ranked.begin(), ranked.end(), [now](const Ranked& a, const Ranked& b) {
    const int64_t order = Order(a, b, now);
    return order != 0 ? order < 0 : a.pod.name() < b.pod.name();
  });
  std::vector<Object> out;
  for (size_t i = 0; i < count; ++i) out.push_back(std::move(ranked[i].pod));
  return out;
}

ReplicaSetController::ReplicaSetController(Deps deps)
    : Reconciler(deps, {.component = "replicaset-controller"}),
      sets_(*this, client::kReplicaSets),
      pods_(*this, client::kPods) {
  AddOwnerIndex(sets_.cache());
  AddOwnerIndex(pods_.cache());
  Hear(sets_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(pods_.cache(), [this](const Change& change) {
    ForOwners(change, sets_.cache(), "ReplicaSet",
              [this](const ObjectName& name) { Enqueue(name); });
  });
}

ReplicaSetController::Pods ReplicaSetController::PodsOf(const Object& set,
                                                        const std::shared_ptr<Join>& join) {
  Pods pods;
  const auto selector = api::LabelSelector::From(set["spec"]["selector"]);
  if (!selector) {
    join->Failed(selector.error());
    pods.changed = true;
    return pods;
  }
  Claimed claimed = Claim(set, *selector, pods_, join);
  pods.changed = claimed.changed;
  for (Object& pod : claimed.owned) {
    if (IsPodActive(pod)) {
      pods.active.push_back(std::move(pod));
    } else if (IsDeleting(pod) && !IsPodTerminal(pod)) {
      ++pods.ending;
    }
  }
  return pods;
}

void ReplicaSetController::Reconcile(const ObjectName& key, Done done) {
  const Object set = sets_.cache().Get(key);
  if (!set) return done({});
  const auto go_on = std::make_shared<bool>(true);
  const auto join = JoinThen([this, set, go_on, done = std::move(done)](Status managed) mutable {
    if (!*go_on) return done(std::move(managed));
    WriteStatus(set, managed, [done = std::move(done), managed](Status written) mutable {
      done(managed ? std::move(written) : std::move(managed));
    });
  });
  const Pods pods = PodsOf(set, join);
  if (pods.changed) {
    *go_on = false;
  } else if (!IsDeleting(set)) {
    Manage(set, pods, join);
  }
}

void ReplicaSetController::Manage(const Object& set, const Pods& pods,
                                  const std::shared_ptr<Join>& join) {
  const size_t wanted = static_cast<size_t>(set["spec"]["replicas"].AsInt(1));
  const size_t have = pods.active.size();
  if (have < wanted) {
    std::vector<Object> missing;
    for (size_t i = 0; i < std::min(wanted - have, kBurst); ++i) {
      Editor edit;
      edit.Keep(set);
      FillPodFromTemplate(edit.Root(), set["spec"]["template"], set);
      missing.push_back(pods_.Finish(std::move(edit)));
    }
    CreatePods(pods_, events(), set, std::move(missing), join);
  } else if (have > wanted) {
    const size_t excess = std::min(have - wanted, kBurst);
    for (const Object& pod : PodsToGiveUp(pods.active, Related(set), excess, Now()))
      DeletePod(pods_, events(), set, pod, join->Piece());
  }
  if (have + kBurst < wanted || wanted + kBurst < have) Enqueue(NameOf(set));
}

// The Pods of all sets that have the same controller as this one.
std::vector<Object> ReplicaSetController::Related(const Object& set) {
  std::vector<Object> related;
  const std::string_view owner = ControllerOf(set)["uid"].AsString();
  if (owner.empty()) return ControlledBy(pods_.cache(), set);
  for (const Object& other : sets_.cache().List(set.ns())) {
    if (ControllerOf(other)["uid"].AsString() != owner) continue;
    for (Object& pod : ControlledBy(pods_.cache(), other)) related.push_back(std::move(pod));
  }
  return related;
}

void ReplicaSetController::WriteStatus(const Object& seen, const Status& managed, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object set = sets_.cache().Get(NameOf(seen));
  if (!set || set.uid() != seen.uid()) return;
  const Pods pods = PodsOf(set, join);
  if (pods.changed) return;
  const api::LabelSelector labels =
      api::LabelSelector::FromMap(set["spec"]["template"]["metadata"]["labels"]);
  const int64_t min_ready = set["spec"]["minReadySeconds"].AsInt();
  int64_t labelled = 0, ready = 0, available = 0;
  std::optional<Time> next;
  for (const Object& pod : pods.active) {
    labelled += labels.Matches(pod["metadata"]["labels"]) ? 1 : 0;
    const auto at = PodAvailableAt(pod, min_ready);
    if (!at) continue;
    ++ready;
    if (*at <= Now()) {
      ++available;
    } else {
      next = std::min(next.value_or(*at), *at);
    }
  }
  if (next) EnqueueAfter(NameOf(set), *next - Now());
  Editor edit(set);
  Mut status = edit["status"];
  status.Set("observedGeneration", seen["metadata"]["generation"].AsInt());
  status.Set("replicas", static_cast<int64_t>(pods.active.size()));
  status.Set("fullyLabeledReplicas", labelled);
  status.Set("readyReplicas", ready);
  status.Set("availableReplicas", available);
  status.Set("terminatingReplicas", pods.ending);
  if (managed) {
    RemoveCondition(status["conditions"], "ReplicaFailure");
  } else if (!FindCondition(set["status"]["conditions"], "ReplicaFailure")) {
    const bool short_of =
        static_cast<int64_t>(pods.active.size()) < set["spec"]["replicas"].AsInt(1);
    SetCondition(status["conditions"],
                 {"ReplicaFailure", "True", short_of ? "FailedCreate" : "FailedDelete",
                  managed.error().message},
                 Now());
  }
  Object next_state = sets_.Finish(std::move(edit));
  if (!Equal(next_state["status"], set["status"])) {
    sets_.UpdateStatus(std::move(next_state), join->Piece());
  }
}

}  // namespace sextant::controllers
