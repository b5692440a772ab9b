// The collections of a cluster that can be listed, watched and deleted from: what the garbage
// collector, quotas and the deletion of namespaces look after. Custom ones come and go.
//
//   collections.Follow({.came = [&](const Collection& c) {...}, .gone = ...});
//
// Definitions tell of it: what is served is looked at when one of them changes, once more shortly
// after (a kind is withdrawn only after its definition has gone), and every 30 s, as
// kube-controller-manager asks discovery.
//
// Threads: the client's loop. Ownership: the informers outlive this, this outlives who follows it.
// Source: pkg/controller/garbagecollector (Sync) and resourcequota (Sync) at v1.36.3.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/schema.h"
#include "client/client.h"
#include "client/informer.h"

namespace sextant::controllers {

// What the cluster serves now.
using Registries = std::function<std::shared_ptr<const api::Registry>()>;

struct Collection {
  client::Gvr gvr;  // points into the registry
  bool namespaced = true;
  std::shared_ptr<const api::Registry> registry;
};

// Each storage once, in its preferred version.
std::vector<Collection> CollectionsOf(const std::shared_ptr<const api::Registry>& registry);

class Collections {
 public:
  // `gone` is called before the collection's shared informer goes. Another version of a collection
  // is another collection: the old one goes, then the new one comes.
  struct Follower {
    std::function<void(const Collection&)> came;
    std::function<void(const Collection&)> gone;
  };

  Collections(client::SharedInformers& informers, Registries registries);
  ~Collections();
  Collections(const Collections&) = delete;
  Collections& operator=(const Collections&) = delete;

  std::shared_ptr<const api::Registry> Registry() const { return registries_(); }
  // Tells of those that there are, at once, then of all that come and go.
  void Follow(Follower follower);

 private:
  void Look();
  void LookAgain(Duration after);

  client::SharedInformers& informers_;
  const Registries registries_;
  std::shared_ptr<const api::Registry> seen_;  // that `known_` is of
  std::vector<Collection> known_;
  std::vector<Follower> followers_;
  std::unique_ptr<client::Subscription> definitions_;
  TimerId timer_ = 0;
};

}  // namespace sextant::controllers
