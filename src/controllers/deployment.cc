#include "controllers/deployment.h"

#include <fmt/format.h>

#include <algorithm>

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxName = 253;

bool IsScaling(const Rollout& rollout) {
  for (const Object& set : Active(rollout.all())) {
    const auto desired = NumberIn(set, kDesiredReplicas);
    if (desired && *desired != rollout.replicas()) return true;
  }
  return false;
}

}  // namespace

DeploymentController::DeploymentController(Deps deps)
    : Reconciler(deps, {.component = "deployment-controller"}),
      deployments_(*this, client::kDeployments),
      sets_(*this, client::kReplicaSets),
      pods_(Use(client::kPods)) {
  AddOwnerIndex(sets_.cache());
  AddOwnerIndex(pods_);
  const auto enqueue = [this](const ObjectName& name) { Enqueue(name); };
  Hear(deployments_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(sets_.cache(), [this, enqueue](const Change& change) {
    ForOwners(change, deployments_.cache(), "Deployment", enqueue);
  });
  // A Recreate waits for the last old Pod.
  Hear(pods_, [this, enqueue](const Change& change) {
    const bool ended = change.deleted() || (!change.added() && IsPodTerminal(change.after) !=
                                                                   IsPodTerminal(change.before));
    if (!ended) return;
    const Value set = ControllerOf(change.object());
    if (set["kind"].AsString() != "ReplicaSet") return;
    const Object owner =
        sets_.cache().Get({std::string(change.object().ns()), std::string(set["name"].AsString())});
    if (owner) ForOwners({owner, {}}, deployments_.cache(), "Deployment", enqueue);
  });
}

void DeploymentController::Reconcile(const ObjectName& key, Done done) {
  const Object deployment = deployments_.cache().Get(key);
  if (!deployment) return done({});
  const JoinPtr join = JoinThen(std::move(done));
  const Value selector = deployment["spec"]["selector"];
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) {
    events().Warning(deployment, "SelectingAll",
                     "This deployment is selecting all pods. A non-empty selector is required.");
    return;
  }
  const auto parsed = api::LabelSelector::From(selector);
  if (!parsed) return join->Failed(parsed.error());
  Claimed claimed = Claim(deployment, *parsed, sets_, join);
  if (claimed.changed) return;
  const Rollout rollout = MakeRollout(deployment, std::move(claimed.owned));
  if (SyncRevision(rollout, join)) return;
  if (IsDeleting(deployment)) return WriteStatus(rollout, false, join);
  if (MarkPaused(rollout, join)) return;
  const bool paused = deployment["spec"]["paused"].AsBool();
  if (paused || IsScaling(rollout)) {
    if (Resize(rollout, join)) return;
    if (paused && CleanUp(rollout, join)) return;
    return WriteStatus(rollout, false, join);
  }
  if (rollout.is_rolling() ? Roll(rollout, join) : Recreate(rollout, join)) return;
  if (IsComplete(deployment, deployment["status"]) && CleanUp(rollout, join)) return;
  WriteStatus(rollout, true, join);
}

// A pause and its end are seen in Progressing, so that the time between does not count.
bool DeploymentController::MarkPaused(const Rollout& rollout, const JoinPtr& join) {
  const Object& deployment = rollout.deployment;
  if (!HasProgressDeadline(deployment)) return false;
  const Value present = FindCondition(deployment["status"]["conditions"], "Progressing");
  if (present["reason"].AsString() == "ProgressDeadlineExceeded") return false;
  const bool paused = deployment["spec"]["paused"].AsBool();
  if (paused == (present["reason"].AsString() == "DeploymentPaused")) return false;
  Editor edit(deployment);
  PutCondition(
      edit["status"]["conditions"],
      paused ? Condition{"Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"}
             : Condition{"Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"},
      Now(), "lastUpdateTime");
  deployments_.UpdateStatus(deployments_.Finish(std::move(edit)), join->Piece());
  return true;
}

// Annotations and minReadySeconds of the new set, the revision of the Deployment.
bool DeploymentController::SyncRevision(const Rollout& rollout, const JoinPtr& join) {
  const Object& set = rollout.fresh;
  const Object& deployment = rollout.deployment;
  if (!set) return false;
  Editor edit(set);
  bool changed = AnnotateNew(rollout, set["metadata"]["annotations"],
                             edit["metadata"]["annotations"], MaxRevision(rollout.old) + 1);
  const int64_t min_ready = deployment["spec"]["minReadySeconds"].AsInt();
  if (set["spec"]["minReadySeconds"].AsInt() != min_ready) {
    edit["spec"].Set("minReadySeconds", min_ready);
    changed = true;
  }
  if (changed) {
    sets_.Update(sets_.Finish(std::move(edit)), join->Piece());
    return true;
  }
  Editor next(deployment);
  const std::string_view revision = set["metadata"]["annotations"][kRevision].AsString();
  if (deployment["metadata"]["annotations"][kRevision].AsString() != revision) {
    next["metadata"]["annotations"].Set(kRevision, revision);
    changed = true;
  }
  if (HasProgressDeadline(deployment) &&
      !FindCondition(deployment["status"]["conditions"], "Progressing")) {
    PutCondition(next["status"]["conditions"],
                 {"Progressing", "True", "FoundNewReplicaSet",
                  fmt::format("Found new replica set \"{}\"", set.name())},
                 Now(), "lastUpdateTime");
    changed = true;
  }
  if (changed) deployments_.UpdateStatus(deployments_.Finish(std::move(next)), join->Piece());
  return changed;
}

bool DeploymentController::ScaleTo(const Rollout& rollout, const Object& set, int64_t size,
                                   bool even_if_same, const JoinPtr& join) {
  const int64_t before = Replicas(set);
  if (before == size && (!even_if_same || !ReplicasAnnotationsDiffer(rollout, set))) return false;
  Editor edit(set);
  edit["spec"].Set("replicas", size);
  AnnotateReplicas(rollout, edit["metadata"]["annotations"]);
  sets_.Update(sets_.Finish(std::move(edit)), [this, deployment = rollout.deployment, join, before,
                                               size](Result<Object> scaled) {
    if (!scaled) return join->Failed(std::move(scaled).error());
    if (before == size) return;
    events().Normal(deployment, "ScalingReplicaSet",
                    fmt::format("Scaled {} replica set {} from {} to {}",
                                before < size ? "up" : "down", scaled->name(), before, size));
  });
  return true;
}

// The Deployment was scaled: its sets follow, in the middle of a rollout in proportion.
bool DeploymentController::Resize(const Rollout& rollout, const JoinPtr& join) {
  if (const Object only = ActiveOrLatest(rollout)) {
    return ScaleTo(rollout, only, rollout.replicas(), true, join);
  }
  bool wrote = false;
  if (IsSaturated(rollout)) {
    for (const Object& set : Active(rollout.old)) wrote |= ScaleTo(rollout, set, 0, false, join);
    return wrote;
  }
  if (!rollout.is_rolling()) return false;
  const auto sizes = Proportional(rollout);
  for (const Object& set : Active(rollout.all()))
    wrote |= ScaleTo(rollout, set, sizes.at(std::string(set.name())), true, join);
  return wrote;
}

bool DeploymentController::CleanUp(const Rollout& rollout, const JoinPtr& join) {
  if (!HasHistoryLimit(rollout.deployment)) return false;
  std::vector<Object> old;
  for (const Object& set : rollout.old)
    if (!IsDeleting(set)) old.push_back(set);
  const int64_t excess =
      static_cast<int64_t>(old.size()) - rollout.deployment["spec"]["revisionHistoryLimit"].AsInt();
  if (excess <= 0) return false;
  std::sort(old.begin(), old.end(), [](const Object& a, const Object& b) {
    return RevisionOf(a) != RevisionOf(b) ? RevisionOf(a) < RevisionOf(b) : a.name() < b.name();
  });
  bool wrote = false;
  for (int64_t i = 0; i < excess; ++i) {
    const Object& set = old[static_cast<size_t>(i)];
    const bool unseen =
        set["metadata"]["generation"].AsInt() > set["status"]["observedGeneration"].AsInt();
    if (set["status"]["replicas"].AsInt() != 0 || Replicas(set) != 0 || unseen) continue;
    sets_.Delete(set, join->Piece());
    wrote = true;
  }
  return wrote;
}

bool DeploymentController::Roll(const Rollout& rollout, const JoinPtr& join) {
  const Object& set = rollout.fresh;
  if (!set) {
    CreateNew(rollout, join);
    return true;
  }
  if (Replicas(set) > rollout.replicas()) {
    return ScaleTo(rollout, set, rollout.replicas(), false, join);
  }
  if (ScaleTo(rollout, set, NewReplicas(rollout, Replicas(set)), false, join)) return true;
  bool wrote = false;
  const auto sizes = ScaleDownOld(rollout);
  for (const Object& old : rollout.old) {
    const auto size = sizes.find(std::string(old.name()));
    if (size != sizes.end()) wrote |= ScaleTo(rollout, old, size->second, false, join);
  }
  return wrote;
}

bool DeploymentController::Recreate(const Rollout& rollout, const JoinPtr& join) {
  bool wrote = false;
  for (const Object& set : Active(rollout.old)) wrote |= ScaleTo(rollout, set, 0, false, join);
  if (wrote || HasOldPods(rollout)) {
    if (!wrote) WriteStatus(rollout, true, join);
    return true;
  }
  if (!rollout.fresh) {
    CreateNew(rollout, join);
    return true;
  }
  return ScaleTo(rollout, rollout.fresh, rollout.replicas(), false, join);
}

bool DeploymentController::HasOldPods(const Rollout& rollout) {
  if (SumStatus(rollout.old, "replicas") > 0) return true;
  for (const Object& set : rollout.old)
    for (const Object& pod : ControlledBy(pods_, set))
      if (!IsPodTerminal(pod)) return true;
  return false;
}

void DeploymentController::CreateNew(const Rollout& rollout, const JoinPtr& join) {
  const Object& deployment = rollout.deployment;
  const Value spec = deployment["spec"];
  const std::string hash = TemplateHash(deployment);
  const int64_t revision = MaxRevision(rollout.old) + 1;
  Editor edit;
  edit.Keep(deployment);
  edit.Root().Set("apiVersion", "apps/v1");
  edit.Root().Set("kind", "ReplicaSet");
  Mut metadata = edit["metadata"];
  metadata.Set("name",
               fmt::format("{}-{}", deployment.name().substr(0, kMaxName - 1 - hash.size()), hash));
  metadata.Set("namespace", deployment.ns());
  const Value labels = spec["template"]["metadata"]["labels"];
  if (labels) metadata.Set("labels", labels);
  metadata["labels"].Set(kTemplateHash, hash);
  AddControllerRef(metadata, deployment);
  AnnotateNew(rollout, Value(), metadata["annotations"], revision);
  AnnotateReplicas(rollout, metadata["annotations"]);
  Mut to = edit["spec"];
  to.Set("replicas", NewReplicas(rollout, 0));
  to.Set("minReadySeconds", spec["minReadySeconds"].AsInt());
  to.Set("selector", spec["selector"]);
  to["selector"]["matchLabels"].Set(kTemplateHash, hash);
  to.Set("template", spec["template"]);
  to["template"]["metadata"]["labels"].Set(kTemplateHash, hash);
  Object wanted = sets_.Finish(std::move(edit));
  sets_.Create(wanted, [this, rollout, wanted, revision, join](Result<Object> made) {
    if (made) return NewCreated(rollout, *made, revision, join);
    NewFailed(rollout, wanted, std::move(made).error(), join);
  });
}

void DeploymentController::NewCreated(const Rollout& rollout, const Object& made, int64_t revision,
                                      const JoinPtr& join) {
  const Object& deployment = rollout.deployment;
  if (Replicas(made) > 0) {
    events().Normal(
        deployment, "ScalingReplicaSet",
        fmt::format("Scaled up replica set {} from 0 to {}", made.name(), Replicas(made)));
  }
  Editor edit(deployment);
  edit["metadata"]["annotations"].Set(kRevision, fmt::format("{}", revision));
  if (HasProgressDeadline(deployment)) {
    PutCondition(edit["status"]["conditions"],
                 {"Progressing", "True", "NewReplicaSetCreated",
                  fmt::format("Created new replica set \"{}\"", made.name())},
                 Now(), "lastUpdateTime");
  }
  deployments_.UpdateStatus(deployments_.Finish(std::move(edit)), join->Piece());
}

void DeploymentController::NewFailed(const Rollout& rollout, const Object& wanted, Error error,
                                     const JoinPtr& join) {
  const Object& deployment = rollout.deployment;
  if (IsNamespaceEnding(error)) return;
  if (error.Is("AlreadyExists")) return CountCollision(deployments_, deployment, join->Piece());
  const std::string text =
      fmt::format("Failed to create new replica set \"{}\": {}", wanted.name(), error.message);
  events().Warning(deployment, "ReplicaSetCreateError", text);
  join->Failed(std::move(error));
  if (!HasProgressDeadline(deployment)) return;
  Editor edit(deployment);
  PutCondition(edit["status"]["conditions"],
               {"Progressing", "False", "ReplicaSetCreateError", text}, Now(), "lastUpdateTime");
  deployments_.UpdateStatus(deployments_.Finish(std::move(edit)), join->Piece());
}

void DeploymentController::WriteStatus(const Rollout& rollout, bool with_progress,
                                       const JoinPtr& join) {
  const Object& deployment = rollout.deployment;
  Editor edit(deployment);
  FillStatus(rollout, edit["status"], Now());
  if (with_progress) FillProgress(rollout, deployment["status"], edit["status"], Now());
  Object next = deployments_.Finish(std::move(edit));
  if (!Equal(next["status"], deployment["status"])) {
    deployments_.UpdateStatus(std::move(next), join->Piece());
  } else if (with_progress) {
    ComeBackForProgress(deployment);
  }
}

// A rollout that stands still must be looked at when its deadline is over.
void DeploymentController::ComeBackForProgress(const Object& deployment) {
  const Value present = FindCondition(deployment["status"]["conditions"], "Progressing");
  if (!HasProgressDeadline(deployment) || !present ||
      IsComplete(deployment, deployment["status"]) ||
      present["reason"].AsString() == "ProgressDeadlineExceeded") {
    return;
  }
  const auto since = ParseTime(present["lastUpdateTime"].AsString());
  if (!since) return;
  const Duration left =
      *since + std::chrono::seconds(deployment["spec"]["progressDeadlineSeconds"].AsInt()) - Now();
  EnqueueAfter(NameOf(deployment), std::max<Duration>(left, 0s) + 1s);
}

}  // namespace sextant::controllers
