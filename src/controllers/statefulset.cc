#include "controllers/statefulset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

// The number at the end of a Pod's name, if the rest is the set's.
std::optional<int64_t> OrdinalOf(std::string_view set, std::string_view pod) {
  if (!pod.starts_with(set) || pod.size() < set.size() + 2 || pod[set.size()] != '-') return {};
  const std::string_view digits = pod.substr(set.size() + 1);
  int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
  return number;
}

std::string RevisionOf(const Object& pod) {
  return std::string(pod["metadata"]["labels"][kRevisionHashLabel].AsString());
}

bool IsRunningAndReady(const Object& pod) {
  return pod["status"]["phase"].AsString() == "Running" && IsPodReady(pod);
}

}  // namespace

struct StatefulSetController::Round {
  Object set;
  History history;
  Object current_revision;
  std::map<int64_t, Object> replicas;   // those that are there, by ordinal
  std::map<int64_t, Object> condemned;  // beyond the range
  Time now{};

  int64_t start() const { return set["spec"]["ordinals"]["start"].AsInt(); }
  int64_t count() const { return set["spec"]["replicas"].AsInt(1); }
  int64_t end() const { return start() + count(); }  // one past the last
  int64_t min_ready() const { return set["spec"]["minReadySeconds"].AsInt(); }
  bool is_ordered() const { return set["spec"]["podManagementPolicy"].AsString() != "Parallel"; }
  Value rolling() const { return set["spec"]["updateStrategy"]["rollingUpdate"]; }
  bool is_rolling() const {
    return set["spec"]["updateStrategy"]["type"].AsString() == "RollingUpdate";
  }
  bool IsAvailable(const Object& pod) const {
    return pod["status"]["phase"].AsString() == "Running" && IsPodAvailable(pod, min_ready(), now);
  }
  // Not there, ending, or not yet available.
  bool IsUnavailable(int64_t ordinal) const {
    const auto pod = replicas.find(ordinal);
    return pod == replicas.end() || IsDeleting(pod->second) || !IsAvailable(pod->second);
  }
  // The unavailable Pod of the lowest number: it alone does not wait for others to end.
  std::string FirstUnavailable() const {
    for (int64_t i = start(); i < end(); ++i) {
      if (!IsUnavailable(i)) continue;
      const auto pod = replicas.find(i);
      return pod == replicas.end() ? "" : std::string(pod->second.uid());
    }
    for (const auto& [ordinal, pod] : condemned)
      if (IsDeleting(pod) || !IsAvailable(pod)) return std::string(pod.uid());
    return "";
  }
};

StatefulSetController::StatefulSetController(Deps deps)
    : Reconciler(deps, {.component = "statefulset-controller"}),
      sets_(*this, client::kStatefulSets),
      pods_(*this, client::kPods),
      claims_(*this, client::kPersistentVolumeClaims),
      revisions_(*this, client::kControllerRevisions) {
  AddOwnerIndex(pods_.cache());
  AddOwnerIndex(revisions_.cache());
  Hear(sets_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(pods_.cache(), [this](const Change& change) {
    ForOwners(change, sets_.cache(), "StatefulSet",
              [this](const ObjectName& name) { Enqueue(name); });
  });
}

void StatefulSetController::Reconcile(const ObjectName& key, Done done) {
  auto round = std::make_shared<Round>();
  round->set = sets_.cache().Get(key);
  if (!round->set || IsDeleting(round->set)) return done({});
  const auto found = std::make_shared<bool>(false);
  const auto join = JoinThen([this, round, found, done = std::move(done)](Status status) mutable {
    if (!status || !*found) return done(std::move(status));
    Step(round, std::move(done));
  });
  FindHistory(revisions_, sets_, round->set, true, join, [round, found](History history) {
    const std::string_view wanted = round->set["status"]["currentRevision"].AsString();
    round->current_revision = history.current;
    for (const Object& old : history.old)
      if (old.name() == wanted) round->current_revision = old;
    round->history = std::move(history);
    *found = true;
  });
}

// False while Pods are adopted or released.
bool StatefulSetController::Load(Round& round, const std::shared_ptr<Join>& join) {
  round.replicas.clear();
  round.condemned.clear();
  round.now = Now();
  const auto selector = api::LabelSelector::From(round.set["spec"]["selector"]);
  if (!selector) {
    join->Failed(selector.error());
    return false;
  }
  Claimed claimed = Claim(round.set, *selector, pods_, join);
  for (Object& pod : claimed.owned) {
    const auto ordinal = OrdinalOf(round.set.name(), pod.name());
    if (!ordinal) continue;
    const bool in_range = *ordinal >= round.start() && *ordinal < round.end();
    (in_range ? round.replicas : round.condemned)[*ordinal] = std::move(pod);
  }
  return !claimed.changed;
}

void StatefulSetController::Step(const RoundPtr& round, Done done) {
  auto join = JoinThen([this, round, done = std::move(done)](Status status) mutable {
    WriteStatus(round, [status = std::move(status), done = std::move(done)](Status told) mutable {
      done(status ? std::move(told) : std::move(status));
    });
  });
  if (!Load(*round, join)) return;
  if (Replicas(round, join) || Condemned(round, join)) return;
  if (round->is_rolling()) Update(round, join);
}

bool StatefulSetController::Replicas(const RoundPtr& round, const std::shared_ptr<Join>& join) {
  bool wait = false;
  for (int64_t i = round->start(); i < round->end(); ++i) {
    wait = Replica(round, i, join) || wait;
    if (wait && round->is_ordered()) return true;
  }
  return wait;
}

bool StatefulSetController::Replica(const RoundPtr& round, int64_t ordinal,
                                    const std::shared_ptr<Join>& join) {
  const auto found = round->replicas.find(ordinal);
  if (found == round->replicas.end()) {
    Create(round, ordinal, join);
    return round->is_ordered();
  }
  const Object& pod = found->second;
  if (IsPodTerminal(pod)) {
    if (!IsDeleting(pod)) Delete(round, pod, join);
    return true;
  }
  if (pod["status"]["phase"].AsString() == "Pending") CreateClaims(round, ordinal, join);
  if (!round->is_ordered()) return false;
  return IsDeleting(pod) || !IsRunningAndReady(pod) || !round->IsAvailable(pod);
}

// From the highest number down; in order only the first unavailable one goes without waiting.
bool StatefulSetController::Condemned(const RoundPtr& round, const std::shared_ptr<Join>& join) {
  const std::string first = round->FirstUnavailable();
  bool wait = false;
  for (auto at = round->condemned.rbegin(); at != round->condemned.rend(); ++at) {
    const Object& pod = at->second;
    if (IsDeleting(pod)) {
      if (round->is_ordered()) return true;
      continue;
    }
    if (round->is_ordered() && !round->IsAvailable(pod) && pod.uid() != first) return true;
    Delete(round, pod, join);
    wait = true;
    if (round->is_ordered()) return true;
  }
  return wait;
}

void StatefulSetController::Update(const RoundPtr& round, const std::shared_ptr<Join>& join) {
  const int64_t lowest = round->start() + round->rolling()["partition"].AsInt();
  const int64_t allowed =
      std::max<int64_t>(1, Scaled(round->rolling()["maxUnavailable"], round->count(), true, 1));
  int64_t unavailable = 0;
  for (int64_t i = round->start(); i < round->end(); ++i) unavailable += round->IsUnavailable(i);
  for (int64_t i = round->end() - 1; i >= lowest && unavailable < allowed; --i) {
    const auto found = round->replicas.find(i);
    if (found == round->replicas.end()) continue;
    const Object& pod = found->second;
    if (IsDeleting(pod) || RevisionOf(pod) == round->history.hash()) continue;
    Delete(round, pod, join);
    ++unavailable;
  }
}

void StatefulSetController::Create(const RoundPtr& round, int64_t ordinal,
                                   const std::shared_ptr<Join>& join) {
  CreateClaims(round, ordinal, join);
  Object pod = NewPod(*round, ordinal);
  const std::string name(pod.name());
  pods_.Create(std::move(pod), [this, set = round->set, name, join](Result<Object> made) {
    if (made) {
      return events().Normal(
          set, "SuccessfulCreate",
          fmt::format("create Pod {} in StatefulSet {} successful", name, set.name()));
    }
    if (IsNamespaceEnding(made.error())) return;
    events().Warning(set, "FailedCreate",
                     fmt::format("create Pod {} in StatefulSet {} failed error: {}", name,
                                 set.name(), made.error().message));
    join->Failed(std::move(made).error());
  });
}

void StatefulSetController::CreateClaims(const RoundPtr& round, int64_t ordinal,
                                         const std::shared_ptr<Join>& join) {
  const Object& set = round->set;
  for (Value claim_template : set["spec"]["volumeClaimTemplates"].items()) {
    const std::string name =
        fmt::format("{}-{}-{}", claim_template["metadata"]["name"].AsString(), set.name(), ordinal);
    if (claims_.cache().Get({std::string(set.ns()), name})) continue;
    Editor edit;
    edit.Keep(set);
    edit.Root().Set("apiVersion", "v1");
    edit.Root().Set("kind", "PersistentVolumeClaim");
    Mut metadata = edit["metadata"];
    metadata.Set("name", name);
    metadata.Set("namespace", set.ns());
    const Value from = claim_template["metadata"];
    if (from["labels"]) metadata.Set("labels", from["labels"]);
    if (from["annotations"]) metadata.Set("annotations", from["annotations"]);
    for (auto [key, value] : set["spec"]["selector"]["matchLabels"].members())
      metadata["labels"].Set(key, value.AsString());
    edit.Root().Set("spec", claim_template["spec"]);
    claims_.Create(
        claims_.Finish(std::move(edit)), [this, set, name, ordinal, join](Result<Object> made) {
          if (!made) return join->Failed(std::move(made).error());
          events().Normal(set, "SuccessfulCreate",
                          fmt::format("create Claim {} Pod {}-{} in StatefulSet {} success", name,
                                      set.name(), ordinal, set.name()));
        });
  }
}

void StatefulSetController::Delete(const RoundPtr& round, const Object& pod,
                                   const std::shared_ptr<Join>& join) {
  pods_.Delete(pod,
               [this, set = round->set, name = std::string(pod.name()), join](Result<Object> gone) {
                 if (gone) {
                   return events().Normal(
                       set, "SuccessfulDelete",
                       fmt::format("delete Pod {} in StatefulSet {} successful", name, set.name()));
                 }
                 events().Warning(set, "FailedDelete",
                                  fmt::format("delete Pod {} in StatefulSet {} failed error: {}",
                                              name, set.name(), gone.error().message));
                 join->Failed(std::move(gone).error());
               });
}

Object StatefulSetController::NewPod(const Round& round, int64_t ordinal) const {
  const Object& set = round.set;
  const int64_t old_ones = round.rolling() ? round.rolling()["partition"].AsInt()
                                           : set["status"]["currentReplicas"].AsInt();
  const bool old = round.is_rolling() && ordinal < round.start() + old_ones;
  const Object& revision = old ? round.current_revision : round.history.current;
  const std::string name = fmt::format("{}-{}", set.name(), ordinal);
  Editor edit;
  edit.Keep(set);
  edit.Keep(revision);
  FillPodFromTemplate(edit.Root(), revision["data"]["spec"]["template"], set);
  Mut metadata = edit["metadata"];
  metadata.Erase("generateName");
  metadata.Set("name", name);
  Mut labels = metadata["labels"];
  labels.Set("statefulset.kubernetes.io/pod-name", name);
  labels.Set("apps.kubernetes.io/pod-index", fmt::format("{}", ordinal));
  labels.Set(kRevisionHashLabel, PodHashOf(revision));
  Mut spec = edit["spec"];
  spec.Set("hostname", name);
  const std::string_view service = set["spec"]["serviceName"].AsString();
  if (!service.empty()) spec.Set("subdomain", service);
  for (Value claim_template : set["spec"]["volumeClaimTemplates"].items()) {
    const std::string_view volume = claim_template["metadata"]["name"].AsString();
    Mut volumes = spec["volumes"];
    size_t at = 0;
    while (at < volumes.size() && volumes.at(at)["name"].AsString() != volume) ++at;
    if (at < volumes.size()) volumes.EraseAt(at);
    Mut added = volumes.Append();
    added.Set("name", volume);
    added["persistentVolumeClaim"].Set("claimName",
                                       fmt::format("{}-{}-{}", volume, set.name(), ordinal));
  }
  return pods_.Finish(std::move(edit));
}

void StatefulSetController::WriteStatus(const RoundPtr& round, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object set = sets_.cache().Get(NameOf(round->set));
  if (!set || set.uid() != round->set.uid()) return;
  if (!Load(*round, join)) return;
  const std::string update = round->history.hash();
  std::string current = PodHashOf(round->current_revision);
  int64_t total = 0, ready = 0, available = 0, of_current = 0, of_update = 0;
  std::vector<std::string> live = {current};
  const auto add = [&](const Object& pod) {
    ++total;
    ready += IsRunningAndReady(pod) ? 1 : 0;
    available += IsRunningAndReady(pod) && round->IsAvailable(pod) ? 1 : 0;
    if (!IsDeleting(pod)) {
      of_current += RevisionOf(pod) == current ? 1 : 0;
      of_update += RevisionOf(pod) == update ? 1 : 0;
    }
    live.push_back(RevisionOf(pod));
  };
  for (const auto& [ordinal, pod] : round->replicas) add(pod);
  for (const auto& [ordinal, pod] : round->condemned) add(pod);
  const int64_t wanted = round->count();
  if (round->is_rolling() && of_update == wanted && ready == wanted && total == wanted) {
    current = update;
    of_current = of_update;
  }
  Editor edit(set);
  Mut status = edit["status"];
  status.Set("observedGeneration", round->set["metadata"]["generation"].AsInt());
  status.Set("replicas", total);
  status.Set("readyReplicas", ready);
  status.Set("availableReplicas", available);
  status.Set("currentReplicas", of_current);
  status.Set("updatedReplicas", of_update);
  status.Set("currentRevision", current);
  status.Set("updateRevision", update);
  status.Set("collisionCount", set["status"]["collisionCount"].AsInt());
  if (ready != available) EnqueueAfter(NameOf(set), std::chrono::seconds(round->min_ready()));
  TrimHistory(revisions_, round->history, set["spec"]["revisionHistoryLimit"].AsInt(10), live,
              join);
  Object next = sets_.Finish(std::move(edit));
  if (!Equal(next["status"], set["status"])) sets_.UpdateStatus(std::move(next), join->Piece());
}

}  // namespace sextant::controllers
