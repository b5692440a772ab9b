#include "controllers/pod_gc.h"

#include <algorithm>
#include <set>

#include "api/pods.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;

constexpr size_t kKeptEnded = 12'500;  // --terminated-pod-gc-threshold
constexpr Duration kPeriod = 20s;
constexpr Duration kQuarantine = 40s;
const ObjectName kRound{"", "round"};  // the only key

bool IsOutOfService(const Object& node) {
  if (IsConditionTrue(node["status"]["conditions"], "Ready")) return false;
  for (api::Value taint : node["spec"]["taints"].items())
    if (taint["key"].AsString() == "node.kubernetes.io/out-of-service") return true;
  return false;
}

}  // namespace

PodGcController::PodGcController(Deps deps)
    : Reconciler(deps, {.component = "pod-garbage-collector"}),
      nodes_(Use(client::kNodes)),
      pods_(*this, client::kPods) {}

void PodGcController::OnStarted() { Enqueue(kRound); }

void PodGcController::Reconcile(const ObjectName&, Done done) {
  const auto join = JoinThen([this, done = std::move(done)](Status) mutable {
    EnqueueAfter(kRound, kPeriod);
    done({});  // what failed is tried in the next round
  });
  const std::vector<Object> pods = pods_.cache().List();
  EndTerminated(pods, join);
  for (const Object& pod : pods) {
    if (!IsDeleting(pod)) continue;
    const std::string node(pod["spec"]["nodeName"].AsString());
    if (node.empty() || IsOutOfService(nodes_.Get({"", node}))) End(pod, "", "", join);
  }
  EndOrphans(pods, join);
}

void PodGcController::EndTerminated(const std::vector<Object>& pods,
                                    const std::shared_ptr<Join>& join) {
  std::vector<Object> ended;
  for (const Object& pod : pods)
    if (IsPodTerminal(pod)) ended.push_back(pod);
  if (ended.size() <= kKeptEnded) return;
  std::sort(ended.begin(), ended.end(), [](const Object& a, const Object& b) {
    const bool a_evicted = a["status"]["reason"].AsString() == "Evicted";
    const bool b_evicted = b["status"]["reason"].AsString() == "Evicted";
    if (a_evicted != b_evicted) return a_evicted;
    const std::string_view a_made = a["metadata"]["creationTimestamp"].AsString();
    const std::string_view b_made = b["metadata"]["creationTimestamp"].AsString();
    return a_made != b_made ? a_made < b_made : a.name() < b.name();
  });
  for (size_t i = 0; i < ended.size() - kKeptEnded; ++i) End(ended[i], "", "", join);
}

void PodGcController::EndOrphans(const std::vector<Object>& pods,
                                 const std::shared_ptr<Join>& join) {
  std::set<std::string> named;
  for (const Object& pod : pods) {
    const std::string node(pod["spec"]["nodeName"].AsString());
    if (!node.empty() && !nodes_.Get({"", node})) named.insert(node);
  }
  std::erase_if(missing_, [&](const auto& each) { return !named.contains(each.first); });
  for (const std::string& node : named) {
    const Time since = missing_.try_emplace(node, Now()).first->second;
    if (Now() - since < kQuarantine) continue;
    // The cache may lag behind: the server has the last word.
    client().Get(client::kNodes, {"", node}, Guarded([this, node, join](Result<Object> found) {
                   if (found || found.error().code != 404) return;
                   for (const Object& pod : pods_.cache().List()) {
                     if (pod["spec"]["nodeName"].AsString() != node) continue;
                     End(pod, "DeletionByPodGC", "PodGC: node no longer exists", join);
                   }
                 }));
  }
}

// Marks the Pod as failed, for there is no kubelet to do so, and deletes it without grace.
void PodGcController::End(const Object& pod, std::string_view reason, std::string_view message,
                          const std::shared_ptr<Join>& join) {
  const auto remove = [this, pod, join](Result<Object> marked) {
    if (!marked && marked.error().code != 404) return join->Failed(std::move(marked).error());
    pods_.Delete(pod, join->Piece(), {.grace_period_s = 0});
  };
  if (IsPodTerminal(pod)) return remove(pod);
  Editor edit;
  edit["metadata"].Set("uid", pod.uid());
  edit["status"].Set("phase", "Failed");
  if (!reason.empty()) api::AddDisruptionTarget(edit, reason, message, FormatTime(Now()));
  pods_.Patch(pod, client::PatchType::kStrategic, std::move(edit).Finish(), remove, "status");
}

}  // namespace sextant::controllers
