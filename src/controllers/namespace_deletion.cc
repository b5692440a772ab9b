#include "controllers/namespace_deletion.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/lists.h"
#include "controllers/objects.h"

namespace sextant::controllers {
namespace {

using namespace std::chrono_literals;
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

// While something remains; Pods that end are heard of at once.
constexpr Duration kLookAgain = 2s;
constexpr std::string_view kFinalizer = "kubernetes";

bool HasFinalizer(const Object& space) {
  return api::Holds(space["spec"]["finalizers"], kFinalizer);
}

std::string JoinTexts(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

// What one pass over a namespace found.
struct NamespaceController::Round {
  Object space;
  std::vector<Collection> collections;
  std::map<std::string, size_t> remaining;   // by "resource.group"
  std::map<std::string, size_t> finalizers;  // objects by what holds them
  std::vector<std::string> errors;

  std::vector<Condition> Conditions() const;
};

std::vector<Condition> NamespaceController::Round::Conditions() const {
  std::vector<std::string> kinds;
  for (const auto& [name, count] : remaining)
    kinds.push_back(fmt::format("{} has {} resource instances", name, count));
  std::vector<std::string> held;
  for (const auto& [name, count] : finalizers)
    held.push_back(fmt::format("{} in {} resource instances", name, count));
  std::vector<Condition> all = {
      {"NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", "False", "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      {"NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"},
      {"NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers",
       "All content-preserving finalizers finished"}};
  if (!errors.empty()) {
    std::vector<std::string> sorted = errors;
    std::sort(sorted.begin(), sorted.end());
    all[2] = {"NamespaceDeletionContentFailure", "True", "ContentDeletionFailed",
              fmt::format("Failed to delete all resource types, {} remaining: {}", errors.size(),
                          JoinTexts(sorted))};
  }
  if (!kinds.empty()) {
    all[3] = {"NamespaceContentRemaining", "True", "SomeResourcesRemain",
              "Some resources are remaining: " + JoinTexts(kinds)};
  }
  if (!held.empty()) {
    all[4] = {"NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
              "Some content in the namespace has finalizers remaining: " + JoinTexts(held)};
  }
  return all;
}

NamespaceController::NamespaceController(Deps deps)
    : Reconciler(deps, {.component = "namespace-controller", .parallel = 8}),
      namespaces_(*this, client::kNamespaces),
      pods_(Use(client::kPods)) {
  Hear(namespaces_.cache(), [this](const Change& change) {
    if (!change.deleted() && IsDeleting(change.after)) Enqueue(change.name());
  });
  Hear(pods_, [this](const Change& change) {
    const ObjectName ns{"", std::string(change.object().ns())};
    if (change.deleted() && IsDeleting(namespaces_.cache().Get(ns))) Enqueue(ns);
  });
}

void NamespaceController::Reconcile(const ObjectName& key, Done done) {
  const Object space = namespaces_.cache().Get(key);
  if (!space || !IsDeleting(space) || !HasFinalizer(space)) return done({});
  auto round = std::make_shared<Round>();
  round->space = space;
  round->collections = CollectionsOf(collections().Registry());
  // Pods first: what they need stays until they have ended (OrderedNamespaceDeletion).
  const auto join = JoinThen([this, round, done = std::move(done)](Status) mutable {
    if (round->remaining.empty()) return Others(round, std::move(done));
    Tell(round, std::move(done));
  });
  for (const Collection& collection : round->collections)
    if (collection.gvr == client::kPods) Empty(round, collection, join);
}

void NamespaceController::Others(std::shared_ptr<Round> round, Done done) {
  const auto join = JoinThen(
      [this, round, done = std::move(done)](Status) mutable { Tell(round, std::move(done)); });
  for (const Collection& collection : round->collections)
    if (collection.namespaced && collection.gvr != client::kPods) Empty(round, collection, join);
}

// Deletes all that is in it, then counts what is left.
void NamespaceController::Empty(const std::shared_ptr<Round>& round, const Collection& collection,
                                const std::shared_ptr<Join>& join) {
  client::ListOptions which;
  which.ns = round->space.name();
  client().DeleteCollection(collection.gvr, which, {.propagation = "Background"},
                            Guarded([this, round, collection, join](Result<Object> gone) {
                              if (!gone && gone.error().code != 404)
                                round->errors.push_back(gone.error().message);
                              Count(round, collection, join);
                            }));
}

void NamespaceController::Count(const std::shared_ptr<Round>& round, const Collection& collection,
                                const std::shared_ptr<Join>& join) {
  client::ListOptions which;
  which.ns = round->space.name();
  client().List(
      collection.gvr, which, Guarded([round, collection, join](Result<client::List> left) {
        if (!left) {
          if (left.error().code != 404) round->errors.push_back(left.error().message);
          return;
        }
        if (left->items.empty()) return;
        round->remaining[fmt::format("{}.{}", collection.gvr.resource, collection.gvr.group)] =
            left->items.size();
        for (const Object& item : left->items)
          for (Value finalizer : item["metadata"]["finalizers"].items())
            ++round->finalizers[std::string(finalizer.AsString())];
      }));
}

void NamespaceController::Tell(std::shared_ptr<Round> round, Done done) {
  const Object space = namespaces_.cache().Get(NameOf(round->space));
  if (!space || space.uid() != round->space.uid()) return done({});
  const bool clean = round->remaining.empty() && round->errors.empty();
  Editor edit(space);
  for (const Condition& condition : round->Conditions())
    SetCondition(edit["status"]["conditions"], condition, Now());
  Object next = namespaces_.Finish(std::move(edit));
  auto then = [this, clean, name = NameOf(space),
               done = std::move(done)](Result<Object> updated) mutable {
    if (!updated) return done(Fail(std::move(updated).error()));
    if (clean) return Finalize(*updated, std::move(done));
    EnqueueAfter(name, kLookAgain);
    done({});
  };
  if (Equal(next["status"], space["status"])) return then(space);
  namespaces_.UpdateStatus(std::move(next), std::move(then));
}

void NamespaceController::Finalize(const Object& space, Done done) {
  Editor edit(space);
  Mut finalizers = edit["spec"]["finalizers"];
  for (size_t i = finalizers.size(); i-- > 0;)
    if (finalizers.at(i).AsString() == kFinalizer) finalizers.EraseAt(i);
  namespaces_.Update(namespaces_.Finish(std::move(edit)), Ending(std::move(done)), "finalize");
}

}  // namespace sextant::controllers
