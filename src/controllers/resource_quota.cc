#include "controllers/resource_quota.h"

#include <algorithm>

#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Amounts;
using api::Editor;
using api::Object;
using api::Quantity;
using api::QuotaKind;
using api::Value;

constexpr Gvr kQuotas{"", "v1", "resourcequotas"};
// Counts that no event tells about (a Pod whose time to end has passed) are found by then.
constexpr Duration kResync = std::chrono::minutes(5);

bool PodGivesBack(const Change& update, Time now) {
  static const QuotaKind kPods("", "pods");
  return kPods.Usage(update.before.root(), now) != kPods.Usage(update.after.root(), now) ||
         kPods.Handles("update", "", update.after.root(), update.before.root());
}

bool ServiceGivesBack(const Change& update, Time) {
  return update.before["spec"]["type"].AsString() != update.after["spec"]["type"].AsString();
}

bool ClaimGivesBack(const Change& update, Time) {
  static const QuotaKind kClaims("", "persistentvolumeclaims");
  return kClaims.Handles("update", "status", update.after.root(), update.before.root());
}

struct Updates {
  std::string_view plural;
  bool (*gives_back)(const Change& update, Time now);
};
constexpr Updates kUpdates[] = {{"pods", PodGivesBack},
                                {"services", ServiceGivesBack},
                                {"persistentvolumeclaims", ClaimGivesBack}};

bool TracksAny(const QuotaKind& kind, Value names) {
  for (auto [name, q] : names.members())
    if (kind.Tracks(name)) return true;
  return false;
}

}  // namespace

ResourceQuotaController::ResourceQuotaController(Deps deps)
    : Reconciler(deps, {.component = "resourcequota-controller"}), quotas_(*this, kQuotas) {
  Hear(quotas_.cache(), [this](const Change& change) {
    const bool same = change.before && change.after &&
                      Equal(change.before["spec"]["hard"], change.after["spec"]["hard"]);
    if (!same) Enqueue(change.name());
  });
  collections().Follow({.came = [this](const Collection& collection) { Came(collection); },
                        .gone = [this](const Collection& collection) { Gone(collection); }});
}

void ResourceQuotaController::Came(const Collection& collection) {
  QuotaKind kind(collection.gvr.group, collection.gvr.resource);
  if (!collection.namespaced || !kind.Counted()) return;
  auto counted = std::make_unique<Counted>(
      Counted{collection.gvr, std::move(kind), Use(collection.gvr), nullptr});
  for (const Updates& row : kUpdates) {
    if (collection.gvr.group.empty() && row.plural == collection.gvr.resource) {
      counted->gives_back = row.gives_back;
    }
  }
  const Counted& it = *counted_.emplace_back(std::move(counted));
  Hear(it.cache, [this, &it](const Change& change) { OnChange(it, change); });
  it.cache.OnSynced(Guarded([this, kind = it.kind] { EnqueueThose(kind, ""); }));
}

void ResourceQuotaController::Gone(const Collection& collection) {
  const auto found =
      std::ranges::find(counted_, collection.gvr, [](const auto& counted) { return counted->gvr; });
  if (found == counted_.end()) return;
  LetGo((*found)->cache);
  EnqueueThose((*found)->kind, "");
  counted_.erase(found);
}

void ResourceQuotaController::EnqueueThose(const QuotaKind& kind, std::string_view ns) {
  for (const Object& quota : quotas_.cache().List(ns))
    if (TracksAny(kind, quota["spec"]["hard"])) Enqueue(NameOf(quota));
}

bool ResourceQuotaController::CanCount(const Object& quota) const {
  return std::ranges::all_of(counted_, [&](const auto& counted) {
    return counted->cache.synced() || !TracksAny(counted->kind, quota["spec"]["hard"]);
  });
}

void ResourceQuotaController::OnChange(const Counted& counted, const Change& change) {
  if (change.added()) return;
  if (!change.deleted() && (!counted.gives_back || !counted.gives_back(change, Now()))) return;
  EnqueueThose(counted.kind, change.object().ns());
}

Amounts ResourceQuotaController::Usage(const Object& quota) {
  const Value hard = quota["spec"]["hard"];
  Amounts used;
  for (const auto& counted : counted_) {
    if (!TracksAny(counted->kind, hard)) continue;
    Amounts all;
    for (const Object& object : counted->cache.List(quota.ns())) {
      if (!counted->kind.InScopes(quota.root(), object.root())) continue;
      AddAmounts(all, counted->kind.Usage(object.root(), Now()));
    }
    for (auto [name, limit] : hard.members()) {
      if (!counted->kind.Tracks(name)) continue;
      const auto at = all.find(name);
      used[std::string(name)] += at == all.end() ? Quantity() : at->second;
    }
  }
  return used;
}

void ResourceQuotaController::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object quota = quotas_.cache().Get(key);
  if (!quota) return;
  EnqueueAfter(key, kResync);
  if (!CanCount(quota)) return;  // comes again when it is
  const Amounts used = Usage(quota);
  const Value status = quota["status"];
  const bool same_limits =
      status["hard"] && api::ReadAmounts(status["hard"]) == api::ReadAmounts(quota["spec"]["hard"]);
  if (same_limits && status["used"] && api::ReadAmounts(status["used"]) == used) return;
  Editor edit(quota);
  edit["status"].Erase("hard");
  edit["status"]["hard"].SetMap();
  for (auto [name, limit] : quota["spec"]["hard"].members()) {
    edit["status"]["hard"].Set(name, limit.AsString());
  }
  WriteAmounts(used, edit["status"]["used"]);
  quotas_.UpdateStatus(quotas_.Finish(std::move(edit)), join->Piece());
}

}  // namespace sextant::controllers
