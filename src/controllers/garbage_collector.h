// The garbage collector: objects go when the last of their owners is gone.
//
// It keeps a graph of who owns whom over all collections, told by their informers. Deletion of an
// owner is `Background` (dependents go after it), `Foreground` (it stays, with the finalizer
// foregroundDeletion, until dependents that block it are gone) or `Orphan` (dependents lose the
// reference, then the owner goes). An owner that the graph does not know is asked for before
// anything is deleted.
//
// Keys are {"", uid}. Source: k8s.io/kubernetes pkg/controller/garbagecollector at v1.36.3.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/collections.h"
#include "controllers/reconciler.h"

namespace sextant::controllers {

class GarbageCollector : public Reconciler {
 public:
  explicit GarbageCollector(Deps deps);

 protected:
  void Reconcile(const ObjectName& key, Done done) override;

 private:
  struct Watched {
    Collection collection;
    Writer writer;
  };
  struct Node {
    Watched* in = nullptr;
    ObjectName name;
    std::set<std::string> owners;  // uids
  };
  struct Verdict;
  enum class Owner { kSolid, kDangling, kWaiting };

  void Came(const Collection& collection);
  void Gone(const Collection& collection);
  void OnChange(Watched& in, const Change& change);
  void Forget(const std::string& uid);
  void EnqueueUid(std::string_view uid) { Enqueue({"", std::string(uid)}); }
  // The object as the cache has it; empty if it is not (or no longer) that one.
  api::Object ObjectOf(std::string_view uid) const;
  std::vector<api::Object> DependentsOf(std::string_view uid) const;

  void Orphan(const api::Object& owner, Done done);
  void WaitForDependents(const api::Object& owner, Done done);
  void Classify(const api::Object& object, Done done);
  void Ask(const std::shared_ptr<Verdict>& verdict, api::Value reference,
           const std::shared_ptr<Join>& join);
  void Judge(const Verdict& verdict, Done done);
  void Unblock(const api::Object& object, Done done);
  void Delete(const api::Object& object, std::string propagation, Done done);
  void RemoveOwners(const api::Object& object, const std::set<std::string>& uids,
                    client::Callback<api::Object> done);
  void RemoveFinalizer(const api::Object& object, std::string_view finalizer, Done done);
  Writer& WriterOf(const api::Object& object);

  std::vector<std::unique_ptr<Watched>> watched_;
  std::unordered_map<std::string, Node> nodes_;                        // by uid
  std::unordered_map<std::string, std::set<std::string>> dependents_;  // owner to its dependents
};

}  // namespace sextant::controllers
