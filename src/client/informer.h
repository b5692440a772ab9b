// Informer: a local copy of a collection that follows the server.
//
//   SharedInformers informers(client);
//   Informer& pods = informers.For({.gvr = kPods});
//   pods.AddIndex("node", NodeNames);
//   auto sub = pods.Subscribe([&](const Change& c) { queue.Add(c.name()); });
//   ... pods.synced() ... pods.Get({"default", "web"}) ... pods.ByIndex("node", "worker")
//
// It lists with one streaming watch (sendInitialEvents) or, where the server refuses that, with
// pages and a watch; it resumes a broken watch from the last revision and lists again after 410
// Expired. Missed changes show up as the difference between the old copy and the new list. Waits
// between attempts grow from 800 ms to 30 s (client-go's reflector).
//
// Threads: everything on client.executor(). Handlers see the cache after the change; they may
// subscribe and unsubscribe, but must not destroy the informer.
// Errors: are logged and tried again for ever; last_error() says what stands in the way.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"

namespace sextant::client {

// One change of the cache. A new object has no `before`, a gone one no `after`.
struct Change {
  api::Object before;
  api::Object after;

  const api::Object& object() const { return after ? after : before; }
  bool added() const { return !before; }
  bool deleted() const { return !after; }
  ObjectName name() const { return NameOf(object()); }
};

using ChangeHandler = std::function<void(const Change&)>;
// The values under which an object is found in an index.
using IndexFunction = std::function<std::vector<std::string>(const api::Object&)>;

std::vector<std::string> NodeNames(const api::Object& pod);  // spec.nodeName

struct InformerOptions {
  Gvr gvr;
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  bool streaming = true;  // ask for streaming lists
};

// Ends the subscription when destroyed.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

class Informer {
 public:
  Informer(Client& client, InformerOptions options);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // True from the first complete list on.
  bool synced() const;
  // Runs once when synced, posted if it is so already.
  void OnSynced(Task task);

  // Hears every change from now on, and first of every object that is there (posted).
  [[nodiscard]] std::unique_ptr<Subscription> Subscribe(ChangeHandler handler);

  // Empty if there is none.
  api::Object Get(const ObjectName& name) const;
  // Sorted by namespace and name; "" for all namespaces.
  std::vector<api::Object> List(std::string_view ns = "") const;
  size_t size() const;

  void AddIndex(const std::string& index, IndexFunction function);
  // Sorted by namespace and name. The index must have been added.
  std::vector<api::Object> ByIndex(const std::string& index, const std::string& value) const;

  // The revision up to which the cache is known to be right.
  const std::string& resource_version() const;
  const std::optional<Error>& last_error() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// One informer for each collection and selection, shared by all that want it.
class SharedInformers {
 public:
  explicit SharedInformers(Client& client) : client_(client) {}
  Informer& For(const InformerOptions& options);
  // Ends this one, if there is one: nobody may hold it any more, nor be called by it now.
  void Drop(const InformerOptions& options);
  bool synced() const;  // all of them

  Client& client() { return client_; }

 private:
  using Key = std::vector<std::string>;
  static Key KeyOf(const InformerOptions& options);

  Client& client_;
  std::map<Key, std::unique_ptr<Informer>> informers_;
};

}  // namespace sextant::client
