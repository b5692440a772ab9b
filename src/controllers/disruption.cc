#include "controllers/disruption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr Duration kDeletionTimeout =
    2min;  // an evicted Pod that is not deleted by then counts again

}  // namespace

DisruptionController::DisruptionController(Deps deps)
    : Reconciler(deps, {.component = "controllermanager"}),
      budgets_(*this, client::kPodDisruptionBudgets),
      pods_(Use(client::kPods)),
      replica_sets_(Use(client::kReplicaSets)),
      deployments_(Use(client::kDeployments)),
      stateful_sets_(Use(client::kStatefulSets)) {
  Hear(budgets_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(pods_, [this](const Change& change) {
    for (const Object& budget : budgets_.cache().List(change.object().ns())) {
      const auto selector = api::LabelSelector::From(budget["spec"]["selector"]);
      if (selector && (selector->Matches(change.before["metadata"]["labels"]) ||
                       selector->Matches(change.after["metadata"]["labels"]))) {
        Enqueue(NameOf(budget));
      }
    }
  });
}

int64_t DisruptionController::ExpectedScale(const std::vector<Object>& pods) {
  std::map<std::string, int64_t> scales;  // by uid
  for (const Object& pod : pods) {
    Value owner = ControllerOf(pod);
    const std::string ns(pod.ns());
    const auto find = [&](client::Informer& informer) {
      Object found = informer.Get({ns, std::string(owner["name"].AsString())});
      return found.uid() == owner["uid"].AsString() ? found : Object();
    };
    Object scaled;
    if (owner["kind"].AsString() == "ReplicaSet") {
      scaled = find(replica_sets_);
      owner = ControllerOf(scaled);
      if (owner["kind"].AsString() == "Deployment") {
        if (Object deployment = find(deployments_)) scaled = deployment;
      }
    } else if (owner["kind"].AsString() == "StatefulSet") {
      scaled = find(stateful_sets_);
    }
    if (scaled) scales[std::string(scaled.uid())] = scaled["spec"]["replicas"].AsInt(1);
  }
  int64_t sum = 0;
  for (const auto& [uid, scale] : scales) sum += scale;
  return sum;
}

void DisruptionController::KeepDisrupted(const Object& budget, const std::vector<Object>& pods,
                                         Mut status) {
  status.Erase("disruptedPods");
  const Value disrupted = budget["status"]["disruptedPods"];
  for (const Object& pod : pods) {
    if (IsDeleting(pod) || !disrupted.Has(pod.name())) continue;
    const std::string_view stamp = disrupted[pod.name()].AsString();
    const Time until = ParseTime(stamp).value_or(Time{}) + kDeletionTimeout;
    if (until < Now()) continue;
    status["disruptedPods"].Set(pod.name(), stamp);
    EnqueueAfter(NameOf(budget), until - Now() + 1s);
  }
}

void DisruptionController::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object budget = budgets_.cache().Get(key);
  if (!budget) return;
  const auto selector = api::LabelSelector::From(budget["spec"]["selector"]);
  if (!selector) return join->Failed(selector.error());
  std::vector<Object> pods;
  for (Object& pod : pods_.List(key.ns))
    if (selector->Matches(pod["metadata"]["labels"])) pods.push_back(std::move(pod));
  if (pods.empty()) events().Normal(budget, "NoPods", "No matching pods found");
  const Value spec = budget["spec"];
  int64_t expected = static_cast<int64_t>(pods.size());
  int64_t desired = 0;
  if (spec["maxUnavailable"]) {
    expected = ExpectedScale(pods);
    desired = std::max<int64_t>(0, expected - Scaled(spec["maxUnavailable"], expected, true, 0));
  } else if (spec["minAvailable"]) {
    if (spec["minAvailable"].IsString()) expected = ExpectedScale(pods);
    desired = Scaled(spec["minAvailable"], expected, true, 0);
  }
  Editor edit(budget);
  Mut status = edit["status"];
  KeepDisrupted(budget, pods, status);
  int64_t healthy = 0;
  for (const Object& pod : pods) {
    const bool leaves = status["disruptedPods"].Has(pod.name());
    healthy += !IsDeleting(pod) && !leaves && IsPodReady(pod) ? 1 : 0;
  }
  const int64_t allowed = expected > 0 ? std::max<int64_t>(0, healthy - desired) : 0;
  const int64_t generation = budget["metadata"]["generation"].AsInt();
  status.Set("currentHealthy", healthy);
  status.Set("desiredHealthy", desired);
  status.Set("expectedPods", expected);
  status.Set("disruptionsAllowed", allowed);
  status.Set("observedGeneration", generation);
  SetCondition(status["conditions"],
               {"DisruptionAllowed", allowed > 0 ? "True" : "False",
                allowed > 0 ? "SufficientPods" : "InsufficientPods", ""},
               Now());
  for (size_t i = 0; i < status["conditions"].size(); ++i) {
    Mut condition = status["conditions"].at(i);
    if (condition["type"].AsString() == "DisruptionAllowed") {
      condition.Set("observedGeneration", generation);
    }
  }
  Object next = budgets_.Finish(std::move(edit));
  if (!Equal(next["status"], budget["status"])) {
    budgets_.UpdateStatus(std::move(next), join->Piece());
  }
}

}  // namespace sextant::controllers
