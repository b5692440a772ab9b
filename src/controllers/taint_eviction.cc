#include "controllers/taint_eviction.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/pods.h"
#include "controllers/objects.h"
#include "scheduler/affinity.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

bool HasNoExecute(const Object& node) {
  for (Value taint : node["spec"]["taints"].items())
    if (taint["effect"].AsString() == "NoExecute") return true;
  return false;
}

// How long the Pod may stay: 0 not at all, nullopt for ever.
std::optional<Duration> MayStay(const Object& pod, const Object& node) {
  std::optional<Duration> shortest;
  for (Value taint : node["spec"]["taints"].items()) {
    if (taint["effect"].AsString() != "NoExecute") continue;
    bool tolerated = false;
    for (Value toleration : pod["spec"]["tolerations"].items()) {
      if (!scheduler::Tolerates(toleration, taint)) continue;
      tolerated = true;
      if (toleration.Has("tolerationSeconds")) {
        const Duration time =
            std::chrono::seconds(std::max<int64_t>(0, toleration["tolerationSeconds"].AsInt()));
        shortest = std::min(shortest.value_or(time), time);
      }
      break;  // the first that matches is the one in use
    }
    if (!tolerated) return Duration{0};
  }
  return shortest;
}

}  // namespace

TaintEvictionController::TaintEvictionController(Deps deps)
    : Reconciler(deps, {.component = "taint-eviction-controller", .parallel = 8}),
      nodes_(Use(client::kNodes)),
      pods_(*this, client::kPods) {
  pods_.cache().AddIndex("node", client::NodeNames);
  Hear(nodes_, [this](const Change& change) { OnNode(change); });
  Hear(pods_.cache(), [this](const Change& change) {
    const Value node = change.object()["spec"]["nodeName"];
    if (planned_.contains(change.name()) ||
        HasNoExecute(nodes_.Get({"", std::string(node.AsString())}))) {
      Enqueue(change.name());
    }
  });
}

void TaintEvictionController::OnNode(const Change& change) {
  if (Equal(change.before["spec"]["taints"], change.after["spec"]["taints"])) return;
  const std::string name(change.object().name());
  for (const Object& pod : pods_.cache().ByIndex("node", name)) Enqueue(NameOf(pod));
}

void TaintEvictionController::Cancel(const ObjectName& key, const Object& pod) {
  if (planned_.erase(key) == 0 || !pod) return;
  events().Normal(pod, "TaintManagerEviction",
                  fmt::format("Cancelling deletion of Pod {}", key.ToString()));
}

void TaintEvictionController::Reconcile(const ObjectName& key, Done done) {
  const Object pod = pods_.cache().Get(key);
  const auto planned = planned_.find(key);
  if (planned != planned_.end() && planned->second.uid != pod.uid()) planned_.erase(planned);
  if (!pod || IsDeleting(pod)) {
    planned_.erase(key);
    return done({});
  }
  const Object node = nodes_.Get({"", std::string(pod["spec"]["nodeName"].AsString())});
  if (!node || !HasNoExecute(node)) {
    Cancel(key, pod);
    return done({});
  }
  const std::optional<Duration> stay = MayStay(pod, node);
  if (!stay) {
    Cancel(key, pod);
    return done({});
  }
  if (*stay == Duration{0}) return Evict(pod, std::move(done));
  Planned& plan =
      planned_.try_emplace(key, Planned{std::string(pod.uid()), Now(), *stay}).first->second;
  plan.after = std::min(plan.after, *stay);
  const Duration left = plan.since + plan.after - Now();
  if (left <= Duration{0}) return Evict(pod, std::move(done));
  EnqueueAfter(key, left);
  done({});
}

void TaintEvictionController::Evict(const Object& pod, Done done) {
  const ObjectName key = NameOf(pod);
  planned_.erase(key);
  events().Normal(pod, "TaintManagerEviction",
                  fmt::format("Marking for deletion Pod {}", key.ToString()));
  Editor edit;
  api::AddDisruptionTarget(edit, "DeletionByTaintManager",
                           "Taint manager: deleting due to NoExecute taint", FormatTime(Now()));
  edit["metadata"].Set("uid", pod.uid());
  pods_.Patch(
      pod, client::PatchType::kStrategic, std::move(edit).Finish(),
      [this, pod, done = std::move(done)](Result<Object> patched) mutable {
        if (!patched) return done(Fail(std::move(patched).error()));
        pods_.Delete(pod, Ending(std::move(done)));
      },
      "status");
}

}  // namespace sextant::controllers
