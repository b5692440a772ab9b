#include "controllers/collections.h"

#include <algorithm>
#include <set>

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;

constexpr client::Gvr kDefinitions = client::kCustomResourceDefinitions;
constexpr Duration kShortly = 1s;
constexpr Duration kPeriod = 30s;

bool Has(const std::vector<Collection>& all, const Collection& one) {
  return std::ranges::any_of(all, [&](const Collection& each) { return each.gvr == one.gvr; });
}

}  // namespace

std::vector<Collection> CollectionsOf(const std::shared_ptr<const api::Registry>& registry) {
  std::vector<Collection> collections;
  std::set<std::string> seen;
  for (const api::Resource* resource : registry->resources()) {
    if (resource->virtual_review) continue;
    if (!resource->HasVerb("list") || !resource->HasVerb("watch") || !resource->HasVerb("delete")) {
      continue;
    }
    if (!seen.insert(resource->StorageName()).second) continue;
    const api::GroupVersion& gv = resource->group_version;
    collections.push_back(
        {{gv.group, gv.version, resource->plural}, resource->namespaced, registry});
  }
  return collections;
}

Collections::Collections(client::SharedInformers& informers, Registries registries)
    : informers_(informers),
      registries_(std::move(registries)),
      seen_(registries_()),
      known_(CollectionsOf(seen_)) {
  if (!seen_->Find({kDefinitions.group, kDefinitions.version}, kDefinitions.resource)) return;
  definitions_ = informers_.For({.gvr = kDefinitions}).Subscribe([this](const client::Change&) {
    Look();
    LookAgain(kShortly);
  });
  LookAgain(kPeriod);
}

Collections::~Collections() { informers_.client().executor().Cancel(timer_); }

void Collections::LookAgain(Duration after) {
  Loop& loop = informers_.client().executor();
  loop.Cancel(timer_);
  timer_ = loop.After(after, [this] {
    Look();
    LookAgain(kPeriod);
  });
}

void Collections::Follow(Follower follower) {
  for (const Collection& collection : known_) follower.came(collection);
  followers_.push_back(std::move(follower));
}

void Collections::Look() {
  const std::shared_ptr<const api::Registry> now = registries_();
  if (now == seen_) return;
  seen_ = now;
  const std::vector<Collection> served = CollectionsOf(now);
  std::vector<Collection> gone;
  std::erase_if(known_, [&](Collection& one) {
    if (Has(served, one)) return false;
    gone.push_back(one);
    return true;
  });
  for (const Collection& one : gone) {
    for (const Follower& follower : followers_) follower.gone(one);
    informers_.Drop({.gvr = one.gvr});
  }
  for (const Collection& one : served) {
    if (Has(known_, one)) continue;
    known_.push_back(one);
    for (const Follower& follower : followers_) follower.came(one);
  }
}

}  // namespace sextant::controllers
