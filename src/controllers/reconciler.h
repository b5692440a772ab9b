// Reconciler: what all controllers are made of, and Writer and Join, by which they act.
//
//   class Thing : public Reconciler {
//     Thing(Deps deps) : Reconciler(deps, {.component = "thing-controller"}),
//                        things_(Use(kThings)), pods_(*this, client::kPods) {
//       Hear(things_, [this](const Change& change) { Enqueue(change.name()); });
//     }
//     void Reconcile(const ObjectName& key, Done done) override;
//   };
//
// Informer events become keys, keys are worked on once all informers in use are synced; a failed
// key comes again later (client::WorkQueue). A Reconcile ends only when the caches show what it
// wrote (Writer), so the next one for the key never acts on a state before its own writes: that
// takes the place of client-go's expectations.
//
// Threads: everything on the client's executor. Ownership: Deps outlive the controller; callbacks
// still under way when a controller is destroyed are dropped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/alive.h"
#include "client/events.h"
#include "client/informer.h"
#include "client/work_queue.h"

namespace sextant::controllers {

using client::Change;
using client::Gvr;
using client::NameOf;
using client::ObjectName;
using Done = std::move_only_function<void(Status)>;

// Ends with how a call went.
inline client::Callback<api::Object> Ending(Done done) {
  return [done = std::move(done)](Result<api::Object> result) mutable {
    done(result ? Status() : Fail(std::move(result).error()));
  };
}

class Collections;

struct Deps {
  client::Client& client;              // for writes: made for this controller's own account
  client::SharedInformers& informers;  // for reads: shared by all controllers
  Collections& collections;            // what is served, for those that look after all of it
};

// The user name of a controller's account, as kube-controller-manager makes its clients with
// --use-service-account-credentials.
std::string AccountUser(std::string_view account);

class Controller {
 public:
  virtual ~Controller() = default;
  virtual void Start() = 0;
};

// Several pieces of work that go on side by side: runs `done` with the first error, or ok, when the
// last piece has ended (and the maker has let go of the Join).
class Join : public std::enable_shared_from_this<Join> {
 public:
  explicit Join(Done done) : done_(std::move(done)) {}
  ~Join() { done_(std::move(first_error_)); }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  static std::shared_ptr<Join> Make(Done done) { return std::make_shared<Join>(std::move(done)); }

  // Ends when it was called (or dropped).
  client::Callback<api::Object> Piece() {
    return [self = shared_from_this()](Result<api::Object> result) {
      if (!result) self->Failed(std::move(result).error());
    };
  }
  void Failed(Error error) {
    if (first_error_) first_error_ = Fail(std::move(error));
  }

 private:
  Done done_;
  Status first_error_;
};

struct ReconcilerOptions {
  std::string component;  // source of events: "daemonset-controller"
  int parallel = 4;
};

class Reconciler : public Controller {
 public:
  ~Reconciler() override;
  void Start() final;

 protected:
  Reconciler(Deps deps, ReconcilerOptions options);

  virtual void Reconcile(const ObjectName& key, Done done) = 0;
  // Once, when the informers are synced and before any event.
  virtual void OnStarted() {}

  // The shared informer of a collection; work begins when it is synced. One that comes after the
  // beginning holds up nothing.
  client::Informer& Use(Gvr gvr);
  void Hear(client::Informer& informer, client::ChangeHandler handler);
  // Before a shared informer goes: nothing of this controller holds it any more.
  void LetGo(client::Informer& informer);
  void Enqueue(const ObjectName& key) { queue_.Add(key); }
  void EnqueueAfter(const ObjectName& key, Duration delay) { queue_.AddAfter(key, delay); }

  // Runs `f` unless this controller is gone by then.
  template <typename F>
  auto Guarded(F f) {
    return alive_.Guard(std::move(f));
  }
  // A Join whose end runs `f` unless this controller is gone by then.
  std::shared_ptr<Join> JoinThen(Done f) { return Join::Make(Guarded(std::move(f))); }

  client::Client& client() { return deps_.client; }
  Collections& collections() { return deps_.collections; }
  client::EventRecorder& events() { return events_; }
  Loop& loop() { return deps_.client.executor(); }
  Time Now() { return loop().clock().Now(); }

 private:
  friend class Writer;
  void MaybeBegin();

  Deps deps_;
  client::EventRecorder events_;
  client::WorkQueue<ObjectName> queue_;
  std::vector<client::Informer*> used_;
  std::vector<std::pair<client::Informer*, client::ChangeHandler>> heard_;
  std::vector<std::pair<client::Informer*, std::unique_ptr<client::Subscription>>> subscriptions_;
  bool started_ = false;
  bool begun_ = false;
  Alive alive_;
};

// Writes of one collection. Each answer comes when the collection's informer shows the write (or
// five seconds later, should it never do so). A member of its Reconciler; one that goes earlier is
// retired first.
class Writer {
 public:
  Writer(Reconciler& controller, Gvr gvr);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  client::Informer& cache() { return cache_; }
  // The collection is gone: what waits for its informer ends.
  void Retire();
  // By the schema of the collection.
  api::Object Finish(api::Editor edit) const { return std::move(edit).Finish(message_); }

  void Create(api::Object object, client::Callback<api::Object> done);
  void Update(api::Object object, client::Callback<api::Object> done, std::string subresource = "");
  void UpdateStatus(api::Object object, client::Callback<api::Object> done) {
    Update(std::move(object), std::move(done), "status");
  }
  void Patch(const api::Object& target, client::PatchType type, api::Object patch,
             client::Callback<api::Object> done, std::string subresource = "");
  // With the uid as precondition; what is gone already, or is another one by now, counts as
  // deleted.
  void Delete(const api::Object& target, client::Callback<api::Object> done,
              client::DeleteOptions options = {});

 private:
  struct Waiter {
    std::function<bool()> shown;
    Task then;
    TimerId timer = 0;
  };
  using Waiters = std::multimap<ObjectName, Waiter>;

  void Await(const ObjectName& name, std::function<bool()> shown, Task then);
  void AwaitRevision(const ObjectName& name, const api::Object& written, Task then);
  void Look(const ObjectName& name);
  client::Callback<api::Object> WhenShown(ObjectName name, client::Callback<api::Object> done);
  client::WriteOptions Options(std::string subresource) const;

  Reconciler& controller_;
  const Gvr gvr_;
  client::Informer& cache_;
  const api::Message* const message_;
  bool retired_ = false;
  Waiters waiters_;
  std::unique_ptr<client::Subscription> subscription_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// True if revision `a` is not older than `b`. Revisions are decimal numbers (KEP-5504).
bool RevisionAtLeast(std::string_view a, std::string_view b);

}  // namespace sextant::controllers
