#include "controllers/garbage_collector.h"

#include <algorithm>

#include "api/lists.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

bool HasFinalizer(const Object& object, std::string_view wanted) {
  return api::Holds(object["metadata"]["finalizers"], wanted);
}

bool WaitsForDependents(const Object& object) {
  return IsDeleting(object) && HasFinalizer(object, kForeground);
}

Value ReferenceTo(const Object& object, std::string_view uid) {
  for (Value reference : object["metadata"]["ownerReferences"].items())
    if (reference["uid"].AsString() == uid) return reference;
  return {};
}

bool Blocks(const Object& object) {
  for (Value reference : object["metadata"]["ownerReferences"].items())
    if (reference["blockOwnerDeletion"].AsBool()) return true;
  return false;
}

}  // namespace

// What is known of one object's owners.
struct GarbageCollector::Verdict {
  Object object;
  std::map<std::string, Owner> owners;  // by uid
};

GarbageCollector::GarbageCollector(Deps deps)
    : Reconciler(deps, {.component = "garbage-collector-controller", .parallel = 20}) {
  collections().Follow({.came = [this](const Collection& collection) { Came(collection); },
                        .gone = [this](const Collection& collection) { Gone(collection); }});
}

void GarbageCollector::Came(const Collection& collection) {
  // Events own nothing, and nothing that matters owns them.
  if (collection.gvr.resource == "events") return;
  watched_.push_back(std::unique_ptr<Watched>(new Watched{collection, {*this, collection.gvr}}));
  Watched& in = *watched_.back();
  Hear(in.writer.cache(), [this, &in](const Change& change) { OnChange(in, change); });
}

// Its objects may be there still, in another version: what they own is not judged by this.
void GarbageCollector::Gone(const Collection& collection) {
  const auto found = std::ranges::find_if(
      watched_, [&](const auto& each) { return each->collection.gvr == collection.gvr; });
  if (found == watched_.end()) return;
  Watched& in = **found;
  in.writer.Retire();
  LetGo(in.writer.cache());
  std::vector<std::string> uids;
  for (const auto& [uid, node] : nodes_)
    if (node.in == &in) uids.push_back(uid);
  for (const std::string& uid : uids) Forget(uid);
  watched_.erase(found);
}

Object GarbageCollector::ObjectOf(std::string_view uid) const {
  const auto node = nodes_.find(std::string(uid));
  if (node == nodes_.end()) return {};
  Object object = node->second.in->writer.cache().Get(node->second.name);
  return object.uid() == uid ? object : Object();
}

std::vector<Object> GarbageCollector::DependentsOf(std::string_view uid) const {
  std::vector<Object> all;
  const auto found = dependents_.find(std::string(uid));
  if (found == dependents_.end()) return all;
  for (const std::string& dependent : found->second)
    if (Object object = ObjectOf(dependent)) all.push_back(std::move(object));
  return all;
}

Writer& GarbageCollector::WriterOf(const Object& object) {
  return nodes_.at(std::string(object.uid())).in->writer;
}

void GarbageCollector::OnChange(Watched& in, const Change& change) {
  if (change.before && change.before.uid() != change.after.uid()) {
    Forget(std::string(change.before.uid()));
  }
  if (!change.after) return;
  const Object& object = change.after;
  const std::string uid(object.uid());
  Node& node = nodes_[uid];
  node.in = &in;
  node.name = change.name();
  std::set<std::string> owners;
  bool look =
      IsDeleting(object) && (HasFinalizer(object, kForeground) || HasFinalizer(object, kOrphan));
  for (Value reference : object["metadata"]["ownerReferences"].items()) {
    const std::string owner(reference["uid"].AsString());
    owners.insert(owner);
    dependents_[owner].insert(uid);
    const Object known = ObjectOf(owner);
    if (!node.owners.contains(owner)) look = look || !known;
    // A reference that no longer blocks may let its owner go.
    if (known && WaitsForDependents(known)) EnqueueUid(owner);
  }
  for (const std::string& owner : node.owners) {
    if (owners.contains(owner)) continue;
    dependents_[owner].erase(uid);
    if (dependents_[owner].empty()) dependents_.erase(owner);
    EnqueueUid(owner);
  }
  node.owners = std::move(owners);
  if (look) EnqueueUid(uid);
}

void GarbageCollector::Forget(const std::string& uid) {
  const auto found = nodes_.find(uid);
  if (found == nodes_.end()) return;
  for (const std::string& owner : found->second.owners) {
    dependents_[owner].erase(uid);
    if (dependents_[owner].empty()) dependents_.erase(owner);
    EnqueueUid(owner);
  }
  nodes_.erase(found);
  const auto dependents = dependents_.find(uid);
  if (dependents == dependents_.end()) return;
  for (const std::string& dependent : dependents->second) EnqueueUid(dependent);
}

void GarbageCollector::Reconcile(const ObjectName& key, Done done) {
  const Object object = ObjectOf(key.name);
  if (!object) return done({});
  if (IsDeleting(object)) {
    if (HasFinalizer(object, kOrphan)) return Orphan(object, std::move(done));
    if (HasFinalizer(object, kForeground)) return WaitForDependents(object, std::move(done));
    return done({});  // what it owns is looked at when it is gone
  }
  if (object["metadata"]["ownerReferences"].empty()) return done({});
  Classify(object, std::move(done));
}

void GarbageCollector::Orphan(const Object& owner, Done done) {
  const auto join = JoinThen([this, owner, done = std::move(done)](Status status) mutable {
    if (!status) return done(std::move(status));
    RemoveFinalizer(owner, kOrphan, std::move(done));
  });
  for (const Object& dependent : DependentsOf(owner.uid()))
    RemoveOwners(dependent, {std::string(owner.uid())}, join->Piece());
}

void GarbageCollector::WaitForDependents(const Object& owner, Done done) {
  bool blocked = false;
  for (const Object& dependent : DependentsOf(owner.uid())) {
    if (!ReferenceTo(dependent, owner.uid())["blockOwnerDeletion"].AsBool()) continue;
    blocked = true;
    if (!WaitsForDependents(dependent)) EnqueueUid(dependent.uid());
  }
  if (blocked) return done({});
  RemoveFinalizer(owner, kForeground, std::move(done));
}

// Asks for the owners that the graph does not know, then judges.
void GarbageCollector::Classify(const Object& object, Done done) {
  auto verdict = std::make_shared<Verdict>();
  verdict->object = object;
  const auto join = JoinThen([this, verdict, done = std::move(done)](Status status) mutable {
    if (!status) return done(std::move(status));
    Judge(*verdict, std::move(done));
  });
  for (Value reference : object["metadata"]["ownerReferences"].items()) {
    const std::string uid(reference["uid"].AsString());
    const Object owner = ObjectOf(uid);
    const bool reachable = owner && (owner.ns().empty() || owner.ns() == object.ns());
    if (reachable) {
      verdict->owners[uid] = WaitsForDependents(owner) ? Owner::kWaiting : Owner::kSolid;
    } else {
      Ask(verdict, reference, join);
    }
  }
}

void GarbageCollector::Ask(const std::shared_ptr<Verdict>& verdict, Value reference,
                           const std::shared_ptr<Join>& join) {
  const std::string uid(reference["uid"].AsString());
  verdict->owners[uid] = Owner::kSolid;
  const std::shared_ptr<const api::Registry> registry = collections().Registry();
  const api::Resource* resource = registry->FindKind(
      api::GroupVersion::Of(reference["apiVersion"].AsString()), reference["kind"].AsString());
  // A kind that is not served says nothing; a cluster-scoped object cannot be owned from within a
  // namespace.
  if (!resource || (resource->namespaced && verdict->object.ns().empty())) return;
  const Gvr gvr{resource->group_version.group, resource->group_version.version, resource->plural};
  const ObjectName name{resource->namespaced ? std::string(verdict->object.ns()) : "",
                        std::string(reference["name"].AsString())};
  client().Get(gvr, name, Guarded([verdict, uid, join](Result<Object> owner) {
                 if (!owner && owner.error().code != 404)
                   return join->Failed(std::move(owner).error());
                 if (!owner || owner->uid() != uid) {
                   verdict->owners[uid] = Owner::kDangling;
                 } else if (WaitsForDependents(*owner)) {
                   verdict->owners[uid] = Owner::kWaiting;
                 }
               }));
}

void GarbageCollector::Judge(const Verdict& verdict, Done done) {
  const Object object = ObjectOf(verdict.object.uid());
  if (!object || IsDeleting(object)) return done({});
  std::set<std::string> gone;
  bool solid = false;
  bool waiting = false;
  for (const auto& [uid, owner] : verdict.owners) {
    solid = solid || owner == Owner::kSolid;
    waiting = waiting || owner == Owner::kWaiting;
    if (owner != Owner::kSolid) gone.insert(uid);
  }
  if (solid) {
    if (gone.empty()) return done({});
    return RemoveOwners(object, gone, Ending(std::move(done)));
  }
  std::string propagation = "Background";
  const std::vector<Object> dependents = DependentsOf(object.uid());
  if (waiting && !dependents.empty()) {
    // Maybe a circle: this object no longer holds its owners up.
    for (const Object& dependent : dependents)
      if (WaitsForDependents(dependent) && Blocks(object)) return Unblock(object, std::move(done));
    propagation = "Foreground";
  } else if (HasFinalizer(object, kOrphan)) {
    propagation = "Orphan";
  } else if (HasFinalizer(object, kForeground)) {
    propagation = "Foreground";
  }
  Delete(verdict.object, std::move(propagation), std::move(done));
}

// Judged again when its references no longer block.
void GarbageCollector::Unblock(const Object& object, Done done) {
  Editor edit;
  edit.Keep(object);
  edit["metadata"].Set("resourceVersion", object.resource_version());
  edit["metadata"].Set("uid", object.uid());
  Mut references = edit["metadata"]["ownerReferences"];
  for (Value reference : object["metadata"]["ownerReferences"].items()) {
    Mut next = references.Append();
    next.Set(reference);
    next.Set("blockOwnerDeletion", false);
  }
  EnqueueUid(object.uid());
  WriterOf(object).Patch(object, client::PatchType::kMerge, std::move(edit).Finish(),
                         Ending(std::move(done)));
}

// Only as it was judged: what changed meanwhile is judged again.
void GarbageCollector::Delete(const Object& object, std::string propagation, Done done) {
  client::DeleteOptions options;
  options.propagation = std::move(propagation);
  const Object now = ObjectOf(object.uid());
  if (!Equal(now["metadata"]["ownerReferences"], object["metadata"]["ownerReferences"])) {
    EnqueueUid(object.uid());
    return done({});
  }
  options.resource_version = now.resource_version();
  const ObjectName name = NameOf(object);
  const Gvr gvr = nodes_.at(std::string(object.uid())).in->collection.gvr;
  options.uid = object.uid();
  client().Delete(gvr, name, std::move(options),
                  Guarded([done = std::move(done)](Result<Object> gone) mutable {
                    if (gone || gone.error().code == 404) return done({});
                    done(Fail(std::move(gone).error()));
                  }));
}

void GarbageCollector::RemoveOwners(const Object& object, const std::set<std::string>& uids,
                                    client::Callback<Object> done) {
  Editor edit;
  edit.Keep(object);
  edit["metadata"].Set("resourceVersion", object.resource_version());
  edit["metadata"].Set("uid", object.uid());
  Mut kept = edit["metadata"]["ownerReferences"];
  kept.SetList();
  for (Value reference : object["metadata"]["ownerReferences"].items())
    if (!uids.contains(std::string(reference["uid"].AsString()))) kept.Append().Set(reference);
  if (kept.size() == 0) kept.SetNull();
  WriterOf(object).Patch(object, client::PatchType::kMerge, std::move(edit).Finish(),
                         std::move(done));
}

void GarbageCollector::RemoveFinalizer(const Object& seen, std::string_view finalizer, Done done) {
  const Object object = ObjectOf(seen.uid());
  if (!object) return done({});
  Editor edit;
  edit["metadata"].Set("resourceVersion", object.resource_version());
  edit["metadata"].Set("uid", object.uid());
  Mut kept = edit["metadata"]["finalizers"];
  kept.SetList();
  for (Value each : object["metadata"]["finalizers"].items())
    if (each.AsString() != finalizer) kept.Append().SetString(each.AsString());
  if (kept.size() == 0) kept.SetNull();
  WriterOf(object).Patch(object, client::PatchType::kMerge, std::move(edit).Finish(),
                         [done = std::move(done)](Result<Object> patched) mutable {
                           if (patched || patched.error().code == 404) return done({});
                           done(Fail(std::move(patched).error()));
                         });
}

}  // namespace sextant::controllers
