// The pipeline: every kind's create, get, list, update, patch and delete, run by schema and rules.
//
//   pipeline.Execute(std::move(op), [](Result<Outcome> r) { ... });   // any thread
//
// Work (defaults, patches, validation, admission, list filtering) runs on workers over immutable
// snapshots; a write then commits by compare-and-swap on the core loop and answers when durable.
// A write that lost the race against another one is worked out again from the newer object (patch,
// delete, status...) or answered with 409 (an update that names a resourceVersion).
//
// Authorization is part of it: LocalClient calls pass the same gate as HTTP requests.
// Threads: Execute from any; `done` runs on a worker.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "server/admission.h"
#include "server/authorizer.h"
#include "server/operation.h"
#include "server/page_cache.h"
#include "server/write_steps.h"
#include "store/store.h"

namespace sextant::server {

struct PipelineParts {
  store::Store& store;
  Loop& core;
  Executor& workers;
  const Authorizer& authorizer;
  AdmissionChain admission;
};

class Pipeline : public ClusterView {
 public:
  explicit Pipeline(PipelineParts parts);
  ~Pipeline() override;

  // Everything but watch and the subresources that are no view of the object itself (see
  // subresources.h); those call the pieces below.
  void Execute(Operation op, Respond done);

  // 405 for a verb that the resource or subresource does not have, or ok.
  static Status CheckVerb(const Operation& op);

  // 403 as the API server words it, or ok.
  Status Authorize(const Operation& op) const;

  // Reads a write's target, lets `change` make the next state (on a worker, possibly more than
  // once), commits it. An empty object from `change` with ok means: nothing to do, answer the
  // current object. `change` sees the object in its stored version.
  using Change = std::function<Result<api::Object>(const api::Object& current)>;
  void Modify(const Operation& op, Change change, Respond done);

  // ClusterView
  std::shared_ptr<const store::Snapshot> Snapshot(std::string_view resource) const override;
  Time now() const override;

  store::Store& store() { return parts_.store; }
  Loop& core() { return parts_.core; }
  Executor& workers() { return parts_.workers; }
  const Authorizer& authorizer() const { return parts_.authorizer; }
  // What the steps of a write are worked out with (write_steps.h).
  WriteContext context() const { return {*this, parts_.admission, parts_.authorizer}; }

 private:
  void Read(Operation op, Respond done);
  void List(Operation op, Respond done);
  void ListAt(Operation op, std::shared_ptr<const store::Snapshot> snapshot, Respond done);

  PipelineParts parts_;
  PageCache pages_;
};

store::Key StorageKey(const Operation& op, std::string_view name);
GroupResource QualifiedResource(const Operation& op);
// The resourceVersion of a get or a watch; 0 for none. Error: 500, as the real server has it.
Result<store::Revision> ParseObjectRevision(std::string_view text);
// What a list or a watch has to look at: the one entry where its name is known, else those after
// `after`, at most `limit` (0: all).
std::vector<std::shared_ptr<const store::Entry>> EntriesOf(const store::Snapshot& snapshot,
                                                           const api::Resource& resource,
                                                           std::string_view ns,
                                                           std::string_view name,
                                                           const store::Key& after, size_t limit);
// True for the object itself and for what shows or changes a part of it (status, resize, ...), by
// the message. All else needs a handler of its own: the pipeline must not take it for the object.
bool IsView(const Operation& op);

}  // namespace sextant::server
