#include "controllers/daemonset.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/affinity.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kBurst = 250;  // Pods made or deleted in one round
constexpr Duration kFirstBackoff = 1s;
constexpr Duration kMaxBackoff = 15min;

struct Tolerated {
  std::string_view key;
  std::string_view effect;
  bool host_network_only = false;
};
constexpr Tolerated kTolerated[] = {
    {"node.kubernetes.io/not-ready", "NoExecute"},
    {"node.kubernetes.io/unreachable", "NoExecute"},
    {"node.kubernetes.io/disk-pressure", "NoSchedule"},
    {"node.kubernetes.io/memory-pressure", "NoSchedule"},
    {"node.kubernetes.io/pid-pressure", "NoSchedule"},
    {"node.kubernetes.io/unschedulable", "NoSchedule"},
    {"node.kubernetes.io/network-unavailable", "NoSchedule", true},
};

void AddTolerations(Mut spec) {
  const bool host_network = spec["hostNetwork"].AsBool();
  Mut list = spec["tolerations"];
  for (const Tolerated& each : kTolerated) {
    if (each.host_network_only && !host_network) continue;
    bool there = false;
    for (size_t i = 0; i < list.size() && !there; ++i) {
      const Mut have = list.at(i);
      there = have["key"].AsString() == each.key && have["effect"].AsString() == each.effect &&
              have["operator"].AsString() == "Exists" && !have.Has("tolerationSeconds");
    }
    if (there) continue;
    Mut toleration = list.Append();
    toleration.Set("key", each.key);
    toleration.Set("operator", "Exists");
    toleration.Set("effect", each.effect);
  }
}

// In place of any matchFields that stand there (ReplaceDaemonSetPodNodeNameNodeAffinity).
void PinToNode(Mut spec, const std::string& node) {
  Mut required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  Mut terms = required["nodeSelectorTerms"];
  if (terms.size() == 0) terms.Append();
  for (size_t i = 0; i < terms.size(); ++i) {
    terms.at(i).Erase("matchFields");
    Mut field = terms.at(i)["matchFields"].Append();
    field.Set("key", "metadata.name");
    field.Set("operator", "In");
    field["values"].Append().SetString(node);
  }
}

// The node for which a Pod was made, bound or not.
std::string TargetNode(const Object& pod) {
  const Value spec = pod["spec"];
  if (!spec["nodeName"].AsString().empty()) return std::string(spec["nodeName"].AsString());
  const Value required =
      spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  for (Value term : required["nodeSelectorTerms"].items()) {
    for (Value field : term["matchFields"].items()) {
      if (field["key"].AsString() == "metadata.name" && field["operator"].AsString() == "In") {
        return std::string(field["values"].at(0).AsString());
      }
    }
  }
  return "";
}

// Bound before unbound, then the oldest (podByCreationTimestampAndPhase).
void SortOldestFirst(std::vector<Object>& pods) {
  std::sort(pods.begin(), pods.end(), [](const Object& a, const Object& b) {
    const bool a_bound = !a["spec"]["nodeName"].AsString().empty();
    const bool b_bound = !b["spec"]["nodeName"].AsString().empty();
    if (a_bound != b_bound) return a_bound;
    const std::string_view a_made = a["metadata"]["creationTimestamp"].AsString();
    const std::string_view b_made = b["metadata"]["creationTimestamp"].AsString();
    return a_made != b_made ? a_made < b_made : a.name() < b.name();
  });
}

int64_t GenerationOf(const Object& set) { return set["status"]["observedGeneration"].AsInt(); }

std::string_view HashLabel(const Object& pod) {
  return pod["metadata"]["labels"][kRevisionHashLabel].AsString();
}

bool NodeMatters(const Change& change) {
  if (change.added() || change.deleted()) return true;
  return !Equal(change.before["metadata"]["labels"], change.after["metadata"]["labels"]) ||
         !Equal(change.before["spec"], change.after["spec"]);
}

}  // namespace

NodeFit FitOf(const Object& set, const Object& node) {
  Editor edit(CopyOf(set["spec"]["template"]));
  AddTolerations(edit["spec"]);
  const Object pod = std::move(edit).Finish();
  const Value spec = pod["spec"];
  const std::string_view wanted = spec["nodeName"].AsString();
  if (!wanted.empty() && wanted != node.name()) return {};
  if (!scheduler::MatchesRequiredNodeAffinity(pod.root(), node.root())) return {};
  const Value taints = node["spec"]["taints"];
  if (scheduler::FirstUntolerated(spec["tolerations"], taints, true, true)) {
    return {false, !scheduler::FirstUntolerated(spec["tolerations"], taints, false, true)};
  }
  return {true, true};
}

// One round of work on one set.
struct DaemonSetController::Sync {
  Object set;
  History history;
  std::string hash;
  std::vector<Object> nodes;
  std::map<std::string, NodeFit> fits;              // by node
  std::map<std::string, std::vector<Object>> pods;  // by node, without terminal ones that go
  std::vector<std::string> live_hashes;
  std::vector<std::string> create_on;
  std::vector<Object> remove;

  bool surges() const {
    const Value strategy = set["spec"]["updateStrategy"];
    return strategy["type"].AsString() == "RollingUpdate" &&
           Scaled(strategy["rollingUpdate"]["maxSurge"], 1, true, 0) > 0;
  }
  int64_t min_ready() const { return set["spec"]["minReadySeconds"].AsInt(); }
};

DaemonSetController::DaemonSetController(Deps deps)
    : Reconciler(deps, {.component = "daemonset-controller"}),
      nodes_(Use(client::kNodes)),
      sets_(*this, client::kDaemonSets),
      pods_(*this, client::kPods),
      revisions_(*this, client::kControllerRevisions) {
  AddOwnerIndex(pods_.cache());
  AddOwnerIndex(revisions_.cache());
  Hear(sets_.cache(), [this](const Change& change) {
    if (change.deleted()) failures_.erase(std::string(change.before.uid()));
    Enqueue(change.name());
  });
  Hear(nodes_, [this](const Change& change) { OnNode(change); });
  const auto enqueue = [this](const ObjectName& name) { Enqueue(name); };
  Hear(pods_.cache(), [this, enqueue](const Change& change) {
    ForOwners(change, sets_.cache(), "DaemonSet", enqueue);
  });
  Hear(revisions_.cache(), [this, enqueue](const Change& change) {
    ForOwners(change, sets_.cache(), "DaemonSet", enqueue);
  });
}

void DaemonSetController::OnNode(const Change& change) {
  if (!NodeMatters(change)) return;
  for (const Object& set : sets_.cache().List()) Enqueue(NameOf(set));
}

void DaemonSetController::Reconcile(const ObjectName& key, Done done) {
  auto sync = std::make_shared<Sync>();
  sync->set = sets_.cache().Get(key);
  if (!sync->set) return done({});
  const Value selector = sync->set["spec"]["selector"];
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) {
    events().Warning(sync->set, "SelectingAll",
                     "This daemon set is selecting all pods. A non-empty selector is required.");
    return done({});
  }
  if (IsDeleting(sync->set)) return done({});
  const auto next = std::make_shared<bool>(false);  // whether the history is known
  auto join = JoinThen([this, sync, next, done = std::move(done)](Status status) mutable {
    if (!status || !*next) return done(std::move(status));
    Manage(sync, std::move(done));
  });
  FindHistory(revisions_, sets_, sync->set, false, join, [sync, next](History history) {
    sync->history = std::move(history);
    sync->hash = sync->history.hash();
    *next = true;
  });
}

// False while Pods are being adopted or released: the round ends there.
bool DaemonSetController::LoadPods(Sync& sync, const std::shared_ptr<Join>& join) {
  sync.pods.clear();
  sync.live_hashes.clear();
  const auto selector = api::LabelSelector::From(sync.set["spec"]["selector"]);
  if (!selector) {
    join->Failed(selector.error());
    return false;
  }
  Claimed claimed = Claim(sync.set, *selector, pods_, join);
  for (Object& pod : claimed.owned) {
    sync.live_hashes.emplace_back(HashLabel(pod));
    if (IsPodTerminal(pod) && IsDeleting(pod)) continue;
    const std::string node = TargetNode(pod);
    if (!node.empty()) sync.pods[node].push_back(std::move(pod));
  }
  for (auto& [node, pods] : sync.pods) SortOldestFirst(pods);
  return !claimed.changed;
}

void DaemonSetController::Manage(std::shared_ptr<Sync> sync, Done done) {
  const auto go_on = std::make_shared<bool>(false);
  auto join = JoinThen([this, sync, go_on, done = std::move(done)](Status status) mutable {
    if (status && *go_on) return Roll(sync, std::move(done));
    if (status) return done({});
    // A status is told even where Pods could not be made; the error counts.
    WriteStatus(sync, [done = std::move(done), status = std::move(status)](Status) mutable {
      done(std::move(status));
    });
  });
  sync->nodes = nodes_.List();
  if (!LoadPods(*sync, join)) return;
  *go_on = true;
  for (const Object& node : sync->nodes) {
    sync->fits[std::string(node.name())] = FitOf(sync->set, node);
  }
  ForgetFailures(*sync);
  for (const Object& node : sync->nodes)
    ManageNode(*sync, node, sync->fits.at(std::string(node.name())));
  // Pods that were made for a node that is gone and never got there: nobody else deletes them.
  for (const auto& [node, pods] : sync->pods) {
    if (sync->fits.contains(node)) continue;
    for (const Object& pod : pods)
      if (pod["spec"]["nodeName"].AsString().empty()) sync->remove.push_back(pod);
  }
  Act(*sync, join);
}

void DaemonSetController::ManageNode(Sync& sync, const Object& node, const NodeFit& fit) {
  const std::string name(node.name());
  const auto found = sync.pods.find(name);
  if (found == sync.pods.end()) {
    if (fit.should_run) sync.create_on.push_back(name);
    return;
  }
  if (!fit.may_continue) {
    for (const Object& pod : found->second)
      if (!IsDeleting(pod)) sync.remove.push_back(pod);
    return;
  }
  std::vector<Object> running;
  for (const Object& pod : found->second) {
    if (IsDeleting(pod)) continue;
    const std::string_view phase = pod["status"]["phase"].AsString();
    if (phase == "Failed") {
      if (DeleteFailed(sync, pod, name)) sync.remove.push_back(pod);
    } else if (phase == "Succeeded") {
      events().Normal(
          sync.set, "SucceededDaemonPod",
          fmt::format("Found succeeded daemon pod {}/{} on node {}, will try to delete it",
                      pod.ns(), pod.name(), name));
      sync.remove.push_back(pod);
    } else {
      running.push_back(pod);
    }
  }
  if (!sync.surges()) {
    for (size_t i = 1; i < running.size(); ++i) sync.remove.push_back(running[i]);
  } else if (running.empty()) {
    if (fit.should_run) sync.create_on.push_back(name);
  } else if (running.size() > 1) {
    ManageSurge(sync, running);
  }
}

// Two may be there while the new one is not yet available and the old one is ready.
void DaemonSetController::ManageSurge(Sync& sync, const std::vector<Object>& running) {
  Object oldest_new;
  Object oldest_old;
  for (const Object& pod : running) {
    Object& slot = HashLabel(pod) == sync.hash ? oldest_new : oldest_old;
    if (!slot) {
      slot = pod;
    } else {
      sync.remove.push_back(pod);
    }
  }
  if (!oldest_new || !oldest_old) return;
  if (!IsPodReady(oldest_old) || IsPodAvailable(oldest_new, sync.min_ready(), Now())) {
    sync.remove.push_back(oldest_old);
  }
}

// What another template, a node that is gone, or a failure long ago says no more.
void DaemonSetController::ForgetFailures(const Sync& sync) {
  const auto at = failures_.find(std::string(sync.set.uid()));
  if (at == failures_.end()) return;
  Failures& failures = at->second;
  const bool other = failures.generation != GenerationOf(sync.set);
  std::erase_if(failures.nodes, [&](const auto& entry) {
    return other || !sync.fits.contains(entry.first) ||
           Now() - entry.second.since > 2 * kMaxBackoff;
  });
}

// A Pod that fails at once again and again (the kubelet refuses it) is not replaced in a hot loop.
bool DaemonSetController::DeleteFailed(Sync& sync, const Object& pod, const std::string& node) {
  Failures& failures = failures_[std::string(sync.set.uid())];
  failures.generation = GenerationOf(sync.set);
  Backoff& backoff = failures.nodes[node];
  const Duration passed = Now() - backoff.since;
  if (passed < backoff.delay) {
    EnqueueAfter(NameOf(sync.set), backoff.delay);
    return false;
  }
  backoff.delay =
      backoff.delay == Duration{0} ? kFirstBackoff : std::min(backoff.delay * 2, kMaxBackoff);
  backoff.since = Now();
  events().Warning(sync.set, "FailedDaemonPod",
                   fmt::format("Found failed daemon pod {}/{} on node {}, will try to kill it",
                               pod.ns(), pod.name(), node));
  return true;
}

Object DaemonSetController::NewPod(const Sync& sync, const std::string& node) const {
  Editor edit;
  edit.Keep(sync.set);
  Mut root = edit.Root();
  FillPodFromTemplate(root, sync.set["spec"]["template"], sync.set);
  AddTolerations(root["spec"]);
  PinToNode(root["spec"], node);
  Mut labels = root["metadata"]["labels"];
  labels.Set(kRevisionHashLabel, sync.hash);
  const std::string_view generation =
      sync.set["metadata"]["annotations"]["deprecated.daemonset.template.generation"].AsString();
  if (!generation.empty()) labels.Set("pod-template-generation", generation);
  return pods_.Finish(std::move(edit));
}

void DaemonSetController::Act(Sync& sync, const std::shared_ptr<Join>& join) {
  std::vector<Object> wanted;
  for (const std::string& node : sync.create_on)
    if (wanted.size() < kBurst) wanted.push_back(NewPod(sync, node));
  if (sync.remove.size() > kBurst) sync.remove.resize(kBurst);
  for (const Object& pod : sync.remove) DeletePod(pods_, events(), sync.set, pod, join->Piece());
  const bool cut = sync.create_on.size() > kBurst || sync.remove.size() == kBurst;
  if (cut) Enqueue(NameOf(sync.set));
  CreatePods(pods_, events(), sync.set, std::move(wanted), join);
  sync.create_on.clear();
  sync.remove.clear();
}

void DaemonSetController::Roll(std::shared_ptr<Sync> sync, Done done) {
  auto join = JoinThen([this, sync, done = std::move(done)](Status status) mutable {
    WriteStatus(sync, [done = std::move(done), status = std::move(status)](Status written) mutable {
      done(status ? std::move(written) : std::move(status));
    });
  });
  if (!LoadPods(*sync, join)) return;
  const Value strategy = sync->set["spec"]["updateStrategy"];
  if (strategy["type"].AsString() == "RollingUpdate") {
    int64_t desired = 0;
    for (const auto& [node, fit] : sync->fits) {
      if (!fit.should_run) continue;
      ++desired;
      sync->pods.try_emplace(node);
    }
    const Value rolling = strategy["rollingUpdate"];
    int64_t unavailable = Scaled(rolling["maxUnavailable"], desired, true, 0);
    const int64_t surge = Scaled(rolling["maxSurge"], desired, true, 0);
    if (desired > 0 && unavailable == 0 && surge == 0) unavailable = 1;
    if (surge == 0) {
      RollUnavailable(*sync, unavailable);
    } else {
      RollSurge(*sync, surge, desired);
    }
  }
  Act(*sync, join);
  TrimHistory(revisions_, sync->history, sync->set["spec"]["revisionHistoryLimit"].AsInt(10),
              sync->live_hashes, join);
}

namespace {

// At most one new and one old Pod that stay; false where there are more (the manage round prunes).
bool NewAndOld(const std::vector<Object>& pods, std::string_view hash, Object& fresh, Object& old) {
  for (const Object& pod : pods) {
    if (IsDeleting(pod)) continue;
    Object& slot = HashLabel(pod) == hash ? fresh : old;
    if (slot) return false;
    slot = pod;
  }
  return true;
}

}  // namespace

void DaemonSetController::RollUnavailable(Sync& sync, int64_t max_unavailable) {
  int64_t unavailable = 0;
  std::vector<Object> candidates;
  for (const auto& [node, pods] : sync.pods) {
    Object fresh;
    Object old;
    if (!NewAndOld(pods, sync.hash, fresh, old) ||
        static_cast<bool>(fresh) == static_cast<bool>(old)) {
      ++unavailable;
    } else if (fresh) {
      if (!IsPodAvailable(fresh, sync.min_ready(), Now())) ++unavailable;
    } else if (!IsPodAvailable(old, sync.min_ready(), Now())) {
      sync.remove.push_back(old);
      ++unavailable;
    } else if (unavailable < max_unavailable) {
      candidates.push_back(old);
    }
  }
  const int64_t room = std::max<int64_t>(0, max_unavailable - unavailable);
  for (const Object& pod : candidates) {
    if (static_cast<int64_t>(&pod - candidates.data()) >= room) break;
    sync.remove.push_back(pod);
  }
}

void DaemonSetController::RollSurge(Sync& sync, int64_t max_surge, int64_t desired) {
  int64_t surging = 0;
  int64_t available = 0;
  std::vector<std::string> candidates;
  std::vector<Object> misplaced;
  for (const auto& [node, pods] : sync.pods) {
    Object fresh;
    Object old;
    if (!NewAndOld(pods, sync.hash, fresh, old)) {
      ++surging;
      continue;
    }
    const Object& counted = old ? old : fresh;
    if (counted && IsPodAvailable(counted, sync.min_ready(), Now())) ++available;
    if (!old) continue;
    if (fresh) {
      if (IsPodAvailable(fresh, sync.min_ready(), Now())) {
        sync.remove.push_back(old);
      } else {
        ++surging;
      }
      continue;
    }
    const bool fits = sync.fits.contains(node) && sync.fits.at(node).should_run;
    if (!IsPodAvailable(old, sync.min_ready(), Now())) {
      if (fits) {
        sync.create_on.push_back(node);
      } else {
        sync.remove.push_back(old);
      }
    } else if (!fits) {
      misplaced.push_back(old);
    } else if (surging < max_surge) {
      candidates.push_back(node);
    }
  }
  int64_t deletable = available - desired;
  for (const Object& pod : misplaced)
    if (deletable-- > 0) sync.remove.push_back(pod);
  int64_t room = max_surge - surging;
  for (const std::string& node : candidates)
    if (room-- > 0) sync.create_on.push_back(node);
}

void DaemonSetController::WriteStatus(std::shared_ptr<Sync> sync, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object set = sets_.cache().Get(NameOf(sync->set));
  if (!set || set.uid() != sync->set.uid()) return;
  if (!LoadPods(*sync, join)) return;
  int64_t desired = 0, current = 0, misscheduled = 0, ready = 0, updated = 0, available = 0;
  for (const auto& [node, fit] : sync->fits) {
    const auto pods = sync->pods.find(node);
    const bool scheduled = pods != sync->pods.end() && !pods->second.empty();
    if (!fit.should_run) {
      misscheduled += scheduled ? 1 : 0;
      continue;
    }
    ++desired;
    if (!scheduled) continue;
    ++current;
    const Object& pod = pods->second.front();
    ready += IsPodReady(pod) ? 1 : 0;
    available += IsPodAvailable(pod, sync->min_ready(), Now()) ? 1 : 0;
    updated += HashLabel(pod) == sync->hash ? 1 : 0;
  }
  Editor edit(set);
  Mut status = edit["status"];
  status.Set("observedGeneration", sync->set["metadata"]["generation"].AsInt());
  status.Set("desiredNumberScheduled", desired);
  status.Set("currentNumberScheduled", current);
  status.Set("numberMisscheduled", misscheduled);
  status.Set("numberReady", ready);
  status.Set("updatedNumberScheduled", updated);
  status.Set("numberAvailable", available);
  status.Set("numberUnavailable", desired - available);
  Object next = sets_.Finish(std::move(edit));
  if (sync->min_ready() > 0 && ready != available) {
    EnqueueAfter(NameOf(set), std::chrono::seconds(sync->min_ready()));
  }
  if (!Equal(next["status"], set["status"])) sets_.UpdateStatus(std::move(next), join->Piece());
}

}  // namespace sextant::controllers
