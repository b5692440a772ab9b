#include "server/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "api/conversion.h"
#include "api/custom_kind.h"
#include "api/json.h"
#include "api/managed_fields.h"
#include "api/patch.h"
#include "base/check.h"
#include "base/quote.h"
#include "base/strand.h"
#include "server/decode.h"
#include "server/filter.h"
#include "server/write_steps.h"

namespace sextant::server {
namespace {

using api::Object;
using store::CommitError;
using store::Committed;
using store::Entry;
using store::Write;

// How often one request is worked out again after losing a race. The real server gives up on a
// patch after 5; we retry longer, since a retry here costs microseconds.
constexpr int kMaxAttempts = 64;
constexpr int kMaxNameAttempts = 8;
constexpr Duration kVisiblePoll = std::chrono::milliseconds(1);
// Admission's kRetrySoon: 40 times 25 ms.
constexpr Duration kSoon = std::chrono::milliseconds(25);
constexpr int kMaxSoonAttempts = 40;

using EntryPtr = std::shared_ptr<const Entry>;

Outcome ObjectOutcome(const Operation& op, Object object, int code = 200) {
  Outcome outcome;
  outcome.code = code;
  outcome.object = api::FromStored(std::move(object), *op.resource);
  outcome.message = op.resource->message;
  return outcome;
}

Outcome DeletedStatus(const Operation& op, const Object& last, int code) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", "Status");
  root.Set("apiVersion", "v1");
  root["metadata"].SetMap();
  root.Set("status", "Success");
  api::Mut details = root["details"];
  details.Set("name", last.name());
  if (!op.resource->group_version.group.empty()) {
    details.Set("group", op.resource->group_version.group);
  }
  details.Set("kind", op.resource->plural);
  details.Set("uid", last.uid());
  Outcome outcome;
  outcome.code = code;
  outcome.object = std::move(edit).Finish();
  return outcome;
}

Error CommitFailure(const Operation& op, std::string_view name, CommitError error) {
  switch (error) {
    case CommitError::kExists:
      return AlreadyExists(QualifiedResource(op), name);
    case CommitError::kNotFound:
      return NotFound(QualifiedResource(op), name);
    case CommitError::kConflict:
      return Conflict(QualifiedResource(op), name,
                      "the object has been modified; please apply your changes to the latest "
                      "version and try again");
    case CommitError::kTooLarge:
      return RequestEntityTooLarge("etcdserver: request is too large");
    case CommitError::kFull:
      return TooManyRequests("the store has too many writes in flight, please try again later", 1);
    case CommitError::kStopped:
    case CommitError::kNone:
      break;
  }
  return ServiceUnavailable("the store has stopped: nothing can be written");
}

// One write from its first reading to its durable end. Lives on by the callbacks that hold it.
class WriteJob : public std::enable_shared_from_this<WriteJob> {
 public:
  // `on`: where what is not the core's is done; outlives the job.
  WriteJob(Pipeline& pipeline, Executor& on, Operation op, Respond done)
      : pipeline_(pipeline),
        on_(on),
        op_(std::move(op)),
        done_(std::move(done)),
        context_(pipeline.context()) {}

  void Create() {
    auto checked = CheckAgainstUrl(op_, op_.body.root());
    if (!checked) return Finish(Fail(std::move(checked).error()));
    std::vector<std::string> warnings = warnings_;  // another try begins with these again
    auto object = PrepareCreate(op_, op_.body, context_, warnings);
    if (!object && object.error().retry_after_s == kRetrySoon) {
      if (++attempts_ < kMaxSoonAttempts) return TryCreateSoon();
      object.error().retry_after_s = 0;
    }
    std::swap(warnings, warnings_);
    if (!object) return Finish(Fail(std::move(object).error()));
    const bool generated = op_.body.name().empty();
    settlements_ = Settlements(op_, "create", api::Value(), object->root(), context_);
    if (op_.options.dry_run()) return DryCreate(*std::move(object));
    Write write{Write::Op::kCreate, StorageKey(op_, object->name()), 0,
                api::ToStored(*object, *op_.resource)};
    const std::string name(object->name());
    Commit(std::move(write),
           [name, generated, warnings = std::move(warnings)](WriteJob& job, Committed committed) {
             if (committed.error == CommitError::kExists && generated &&
                 ++job.attempts_ < kMaxNameAttempts) {
               job.warnings_ = warnings;
               return job.OnWorker([](WriteJob& again) { again.Create(); });
             }
             job.Answer(name, std::move(committed), 201);
           });
  }

  // PUT.
  void Update() {
    auto checked = CheckAgainstUrl(op_, op_.body.root());
    if (!checked) return Finish(Fail(std::move(checked).error()));
    ReadLatest([](WriteJob& job, EntryPtr entry) { job.UpdateFrom(std::move(entry)); });
  }

  void Patch() {
    ReadLatest([](WriteJob& job, EntryPtr entry) { job.PatchFrom(std::move(entry)); });
  }

  void Delete() {
    auto request = ReadDeleteOptions(op_);
    if (!request) return Finish(Fail(std::move(request).error()));
    delete_ = *std::move(request);
    ReadLatest([](WriteJob& job, EntryPtr entry) { job.DeleteFrom(std::move(entry)); });
  }

  void Modify(Pipeline::Change change) {
    change_ = std::move(change);
    ReadLatest([](WriteJob& job, EntryPtr entry) { job.ModifyFrom(std::move(entry)); });
  }

 private:
  using Step = void (*)(WriteJob&, EntryPtr);

  template <typename F>
  void OnWorker(F next) {
    on_.Post([self = shared_from_this(), next]() mutable { next(*self); });
  }

  // Reads what is ordered last, on the core loop, and goes on with it on a worker.
  void ReadLatest(Step step) {
    step_ = step;
    pipeline_.core().Post([self = shared_from_this()] {
      EntryPtr entry = self->pipeline_.store().Latest(StorageKey(self->op_, self->op_.info.name));
      self->on_.Post([self, entry] { self->step_(*self, entry); });
    });
  }

  void Commit(Write write, std::function<void(WriteJob&, Committed)> then) {
    pipeline_.core().Post([self = shared_from_this(), write = std::move(write),
                           then = std::move(then)]() mutable {
      auto also = self->Settle();
      if (!also) return self->FinishOnWorker(std::move(also).error());
      also->insert(also->begin(), std::move(write));
      self->pipeline_.store().CommitAll(*std::move(also), [self, then = std::move(then)](
                                                              Committed committed) {
        self->on_.Post([self, then, committed = std::move(committed)] { then(*self, committed); });
      });
    });
  }

  // On the core loop: what goes with the commit, or why there may be none.
  Result<std::vector<Write>> Settle() {
    std::vector<Write> all;
    for (const Settlement& settlement : settlements_) {
      ASSIGN_OR_RETURN(std::vector<Write> some, settlement(pipeline_.store()));
      std::ranges::move(some, std::back_inserter(all));
    }
    return all;
  }

  void FinishOnWorker(Error error) {
    on_.Post([self = shared_from_this(), error = std::move(error)] { self->Finish(Fail(error)); });
  }

  void TryCreateSoon() {
    pipeline_.core().Post([self = shared_from_this()] {
      self->pipeline_.core().After(kSoon, [self] { self->on_.Post([self] { self->Create(); }); });
    });
  }

  bool NotThere(const EntryPtr& entry) {
    if (entry) return false;
    Finish(Fail(NotFound(QualifiedResource(op_), op_.info.name)));
    return true;
  }

  void UpdateFrom(EntryPtr entry) {
    const api::Rules& rules = api::RulesFor(*op_.resource);
    if (!entry && rules.allow_create_on_update && !op_.subresource) {
      if (!op_.body.uid().empty()) {
        return Finish(Fail(Conflict(
            QualifiedResource(op_), op_.info.name,
            fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: ",
                        op_.body.uid()))));
      }
      return Create();
    }
    if (NotThere(entry)) return;
    const Object current = api::FromStored(entry->object, *op_.resource);
    auto checked =
        CheckUpdatePreconditions(op_, op_.body, current, rules.allow_unconditional_update);
    if (!checked) return Finish(Fail(std::move(checked).error()));
    named_version_ = !op_.body.resource_version().empty();
    StoreUpdate(entry, current, PrepareUpdate(op_, op_.body, current, context_, warnings_));
  }

  void PatchFrom(EntryPtr entry) {
    if (op_.apply) return ApplyFrom(std::move(entry));
    if (NotThere(entry)) return;
    const Object current = api::FromStored(entry->object, *op_.resource);
    auto decoded = api::ApplyPatch(
        current, *op_.resource->message,
        {op_.patch_type, op_.patch, op_.options.field_validation, op_.registry.get()}, &warnings_);
    if (decoded) decoded = Admitted(*std::move(decoded));
    if (!decoded) return Finish(Fail(std::move(decoded).error()));
    auto checked = CheckAgainstUrl(op_, decoded->root());
    if (checked) checked = CheckUpdatePreconditions(op_, *decoded, current, true);
    if (!checked) return Finish(Fail(std::move(checked).error()));
    named_version_ = decoded->resource_version() != current.resource_version();
    StoreUpdate(entry, current, PrepareUpdate(op_, *decoded, current, context_, warnings_));
  }

  // A patched custom resource as its schema has it.
  Result<Object> Admitted(Object object) {
    const api::CustomVersion* custom = api::AsCustom(*op_.resource);
    if (!custom) return object;
    const auto wrong = [&object](std::string_view why) {
      return Fail(api::WrongPatch(api::ToJson(object.root()), why));
    };
    api::StrictReport unknown;
    auto admitted = api::ReadCustom(*custom, object, unknown);
    if (!admitted) return wrong(admitted.error().message);
    const std::string& validation = op_.options.field_validation;
    if (unknown.errors.empty() || validation == "Ignore") return admitted;
    if (validation == "Strict") {
      return wrong(fmt::format("strict decoding error: {}", fmt::join(unknown.errors, ", ")));
    }
    warnings_.insert(warnings_.end(), unknown.errors.begin(), unknown.errors.end());
    return admitted;
  }

  // Server-side apply: what is not there is made.
  void ApplyFrom(EntryPtr entry) {
    const Object current = entry ? api::FromStored(entry->object, *op_.resource) : Object();
    const api::GroupVersion gv = api::GroupVersion::Of(op_.body.api_version());
    const api::GroupVersionKind said{gv.group, gv.version, op_.body.kind()};
    if (said != BodyKindOf(op_).gvk) {
      return Finish(Fail(BadRequest(fmt::format("invalid object type: {}/{}, Kind={}", said.group,
                                                said.version, said.kind))));
    }
    const std::string api_version = op_.resource->group_version.ToString();
    auto merged =
        api::ApplyFields(FieldManagerOf(op_, api_version, pipeline_.now()), op_.options.force,
                         api::FieldsOfKind(*op_.resource), current, op_.body.root());
    if (!merged) return Finish(Fail(std::move(merged).error()));
    if (!entry) {
      if (op_.subresource) {
        return Finish(Fail(NotFound(QualifiedResource(op_), op_.info.name)));
      }
      op_.info.verb = "create";
      if (auto allowed = pipeline_.Authorize(op_); !allowed) {
        return Finish(Fail(std::move(allowed).error()));
      }
      op_.body = *std::move(merged);
      return Create();
    }
    if (merged->SameAs(current)) return AnswerVisible(current, entry->mod_revision);
    auto checked = CheckAgainstUrl(op_, merged->root());
    if (checked) checked = CheckUpdatePreconditions(op_, op_.body, current, true);
    if (!checked) return Finish(Fail(std::move(checked).error()));
    StoreUpdate(entry, current, PrepareUpdate(op_, *merged, current, context_, warnings_));
  }

  void ModifyFrom(EntryPtr entry) {
    if (NotThere(entry)) return;
    const Object current = api::FromStored(entry->object, *op_.resource);
    auto next = change_(current);
    if (next && !*next) next = current;
    StoreUpdate(entry, current, std::move(next));
  }

  void StoreUpdate(const EntryPtr& entry, const Object& current, Result<Object> next) {
    if (!next) return Finish(Fail(std::move(next).error()));
    if (next->SameAs(current)) return AnswerVisible(current, entry->mod_revision);
    settlements_ = Settlements(op_, "update", current.root(), next->root(), context_);
    if (op_.options.dry_run()) return DryUpdate(*std::move(next));
    const bool remove =
        DeletesDuringUpdate(api::RulesFor(*op_.resource), next->root(), current.root());
    Write write{remove ? Write::Op::kDelete : Write::Op::kUpdate, entry->key, entry->mod_revision,
                api::ToStored(*next, *op_.resource)};
    Commit(std::move(write), [remove, last = *std::move(next)](WriteJob& job, Committed committed) {
      if (job.LostRace(committed)) return;
      // What goes with its last finalizer is answered as it was asked for, before the deletion.
      if (remove && committed.error == CommitError::kNone) {
        return job.Finish(ObjectOutcome(job.op_, last));
      }
      job.Answer(job.op_.info.name, std::move(committed), 200);
    });
  }

  void DeleteFrom(EntryPtr entry) {
    if (NotThere(entry)) return;
    const api::Rules& rules = api::RulesFor(*op_.resource);
    if (delete_.propagation.empty() && rules.orphans_by_default) {
      warnings_.emplace_back(rules.orphan_warning);
    }
    const Object current = api::FromStored(entry->object, *op_.resource);
    auto plan = PlanDelete(op_, delete_, current, context_);
    if (!plan) return Finish(Fail(std::move(plan).error()));
    plan_ = *std::move(plan);
    if (plan_.kind == DeletePlan::Kind::kNothing) {
      return AnswerVisible(plan_.object, entry->mod_revision);
    }
    if (op_.options.dry_run()) return Finish(DeleteOutcome(plan_.object));
    Write write{plan_.kind == DeletePlan::Kind::kMark ? Write::Op::kUpdate : Write::Op::kDelete,
                entry->key, entry->mod_revision, api::ToStored(plan_.object, *op_.resource)};
    Commit(std::move(write), [](WriteJob& job, Committed committed) {
      if (job.LostRace(committed)) return;
      if (committed.error != CommitError::kNone) {
        return job.Finish(Fail(CommitFailure(job.op_, job.op_.info.name, committed.error)));
      }
      job.Finish(job.DeleteOutcome(committed.entry->object));
    });
  }

  Outcome DeleteOutcome(const Object& last) {
    const bool removed = plan_.kind == DeletePlan::Kind::kRemove;
    if (removed && !api::RulesFor(*op_.resource).returns_deleted) {
      return DeletedStatus(op_, last, 200);
    }
    return ObjectOutcome(op_, last, removed ? 200 : plan_.code);
  }

  // True if another write came between and this one is worked out again (or told so).
  bool LostRace(const Committed& committed) {
    if (committed.error != CommitError::kConflict) return false;
    if (named_version_ || ++attempts_ >= kMaxAttempts) return false;
    warnings_.clear();
    ReadLatest(step_);
    return true;
  }

  void DryUpdate(Object object) {
    pipeline_.core().Post([self = shared_from_this(), object = std::move(object)] {
      if (auto also = self->Settle(); !also) return self->FinishOnWorker(also.error());
      self->on_.Post([self, object] { self->Finish(ObjectOutcome(self->op_, object)); });
    });
  }

  void DryCreate(Object object) {
    pipeline_.core().Post([self = shared_from_this(), object = std::move(object)] {
      if (auto also = self->Settle(); !also) return self->FinishOnWorker(also.error());
      const bool there =
          self->pipeline_.store().Latest(StorageKey(self->op_, object.name())) != nullptr;
      self->on_.Post([self, object, there] {
        if (there) {
          return self->Finish(Fail(AlreadyExists(QualifiedResource(self->op_), object.name())));
        }
        self->Finish(ObjectOutcome(self->op_, object, 201));
      });
    });
  }

  // The answer tells a state, so that state must be durable first (law 3).
  void AnswerVisible(const Object& object, store::Revision revision) {
    if (pipeline_.store().visible() >= revision) return Finish(ObjectOutcome(op_, object));
    pipeline_.core().Post([self = shared_from_this(), object, revision] {
      self->pipeline_.core().After(kVisiblePoll, [self, object, revision] {
        self->on_.Post([self, object, revision] { self->AnswerVisible(object, revision); });
      });
    });
  }

  void Answer(std::string_view name, Committed committed, int code) {
    if (committed.error != CommitError::kNone) {
      Error error = CommitFailure(op_, name, committed.error);
      if (committed.error == CommitError::kExists) {
        const Object there = pipeline_.Get(op_.resource->StorageName(), op_.info.ns, name);
        if (there["metadata"]["deletionTimestamp"]) {
          error.message = "object is being deleted: " + error.message;
        }
      }
      return Finish(Fail(std::move(error)));
    }
    Finish(ObjectOutcome(op_, committed.entry->object, code));
  }

  void Finish(Result<Outcome> outcome) {
    (outcome ? outcome->warnings : outcome.error().warnings) = std::move(warnings_);
    done_(std::move(outcome));
  }

  Pipeline& pipeline_;
  Executor& on_;
  Operation op_;
  Respond done_;
  const WriteContext context_;
  std::vector<Settlement> settlements_;
  std::vector<std::string> warnings_;
  Step step_ = nullptr;
  Pipeline::Change change_;
  DeleteRequest delete_;
  DeletePlan plan_;
  int attempts_ = 0;
  bool named_version_ = false;
};

// DELETE of a collection: its objects in the order of the list, none waiting for the disk of the
// one before, then the answer is the list.
class CollectionJob : public std::enable_shared_from_this<CollectionJob> {
 public:
  CollectionJob(Pipeline& pipeline, Operation op, Respond done)
      : pipeline_(pipeline),
        strand_(pipeline.workers()),
        op_(std::move(op)),
        done_(std::move(done)) {}

  void Start(Result<Outcome> listed) {
    if (!listed) return done_(std::move(listed));
    outcome_ = std::move(*listed);
    strand_.Post([self = shared_from_this()] { self->DeleteAll(); });
  }

 private:
  void DeleteAll() {
    left_ = outcome_.list->items.size();
    if (left_ == 0) return done_(std::move(outcome_));
    const size_t count = left_;
    for (size_t i = 0; i < count; ++i) {
      Operation one = op_;
      one.info.verb = "delete";
      one.info.name = outcome_.list->items[i].name();
      one.info.ns = outcome_.list->items[i].ns();
      std::make_shared<WriteJob>(
          pipeline_, strand_, std::move(one),
          [self = shared_from_this()](Result<Outcome> r) { self->OneDone(std::move(r)); })
          ->Delete();
    }
  }

  void OneDone(Result<Outcome> result) {
    if (!result && !result.error().Is("NotFound") && !error_) error_ = std::move(result).error();
    if (--left_ > 0) return;
    if (error_) return done_(Fail(*std::move(error_)));
    done_(std::move(outcome_));
  }

  Pipeline& pipeline_;
  Strand strand_;  // every step of every deletion
  const Operation op_;
  Respond done_;
  Outcome outcome_;
  size_t left_ = 0;
  std::optional<Error> error_;
};

}  // namespace

store::Key StorageKey(const Operation& op, std::string_view name) {
  return {op.resource->StorageName(), op.resource->namespaced ? op.info.ns : "", std::string(name)};
}

GroupResource QualifiedResource(const Operation& op) {
  return {std::string(op.resource->group_version.group), std::string(op.resource->plural)};
}

namespace {

// 0 for none; nullopt for what is no number.
std::optional<store::Revision> RevisionOf(std::string_view text) {
  store::Revision value = 0;
  if (text.empty()) return value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string NoRevision(std::string_view text) {
  return fmt::format(
      "resourceVersion: Invalid value: {}: strconv.ParseUint: parsing {}: invalid syntax",
      Quote(text), Quote(text));
}

}  // namespace

Result<store::Revision> ParseObjectRevision(std::string_view text) {
  if (const auto value = RevisionOf(text)) return *value;
  return Fail(Error{.code = 500, .message = NoRevision(text)});
}

std::vector<EntryPtr> EntriesOf(const store::Snapshot& snapshot, const api::Resource& resource,
                                std::string_view ns, std::string_view name, const store::Key& after,
                                size_t limit) {
  const bool one = !name.empty() && (!resource.namespaced || !ns.empty());
  if (!one) return snapshot.Range(ns, after.ns, after.name, limit);
  EntryPtr entry = snapshot.Get(ns, name);
  return entry ? std::vector<EntryPtr>{std::move(entry)} : std::vector<EntryPtr>();
}

bool IsView(const Operation& op) {
  return !op.subresource || op.subresource->message == op.resource->message;
}

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}
Pipeline::~Pipeline() = default;

Object ClusterView::Get(std::string_view resource, std::string_view ns,
                        std::string_view name) const {
  const auto entry = Snapshot(resource)->Get(ns, name);
  return entry ? entry->object : Object();
}

std::shared_ptr<const store::Snapshot> Pipeline::Snapshot(std::string_view resource) const {
  return parts_.store.Visible(resource);
}

Time Pipeline::now() const { return parts_.core.clock().Now(); }

Status Pipeline::Authorize(const Operation& op) const {
  const Decision decision = parts_.authorizer.Authorize(op.user, op.info, *this);
  if (decision.allowed) return {};
  return Fail(ForbiddenError(op.user, op.info, decision.reason));
}

Status Pipeline::CheckVerb(const Operation& op) {
  const std::string_view verb = op.info.verb;
  const auto verbs = op.subresource ? op.subresource->verbs : op.resource->verbs;
  if (std::ranges::find(verbs, verb) != verbs.end()) return {};
  return Fail(MethodNotAllowed());
}

void Pipeline::Execute(Operation op, Respond done) {
  parts_.workers.Post([this, op = std::move(op), done = std::move(done)]() mutable {
    if (!op.authorized) {
      if (auto allowed = Authorize(op); !allowed) return done(Fail(std::move(allowed).error()));
    }
    if (auto known = CheckVerb(op); !known) return done(Fail(std::move(known).error()));
    if (!IsView(op)) return done(Fail(PathNotFound()));
    const std::string_view verb = op.info.verb;
    if (verb == "get") return Read(std::move(op), std::move(done));
    if (verb == "list") return List(std::move(op), std::move(done));
    if (verb == "deletecollection") {
      auto job = std::make_shared<CollectionJob>(*this, op, std::move(done));
      return List(std::move(op), [job](Result<Outcome> r) { job->Start(std::move(r)); });
    }
    const std::string action(verb);  // the operation moves on
    auto job = std::make_shared<WriteJob>(*this, parts_.workers, std::move(op), std::move(done));
    if (action == "create") return job->Create();
    if (action == "update") return job->Update();
    if (action == "patch") return job->Patch();
    CHECK(action == "delete");
    job->Delete();
  });
}

void Pipeline::Modify(const Operation& op, Change change, Respond done) {
  std::make_shared<WriteJob>(*this, parts_.workers, op, std::move(done))->Modify(std::move(change));
}

void Pipeline::Read(Operation op, Respond done) {
  if (auto wanted = ParseObjectRevision(op.options.resource_version); !wanted) {
    return done(Fail(std::move(wanted).error()));
  }
  const store::Key key = StorageKey(op, op.info.name);
  const EntryPtr entry = parts_.store.Get(key);
  if (!entry) return done(Fail(NotFound(QualifiedResource(op), op.info.name)));
  done(ObjectOutcome(op, entry->object));
}

namespace {

Status ValidateListOptions(const Options& options) {
  api::FieldErrors errors;
  const std::string& match = options.resource_version_match;
  if (!match.empty()) {
    if (options.resource_version.empty()) {
      errors.Forbidden("resourceVersionMatch",
                       "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!options.continue_token.empty()) {
      errors.Forbidden("resourceVersionMatch",
                       "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match != "Exact" && match != "NotOlderThan") {
      errors.NotSupported("resourceVersionMatch", match, {"Exact", "NotOlderThan", ""});
    }
    if (match == "Exact" && options.resource_version == "0") {
      errors.Forbidden("resourceVersionMatch",
                       "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
  }
  if (options.send_initial_events) {
    errors.Forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  }
  if (errors.empty()) return {};
  return Fail(Invalid("meta.k8s.io", "ListOptions", "", errors.Take()));
}

constexpr std::string_view kExpiredToken =
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list.";

}  // namespace

void Pipeline::List(Operation op, Respond done) {
  if (auto valid = ValidateListOptions(op.options); !valid) {
    return done(Fail(std::move(valid).error()));
  }
  const auto wanted = RevisionOf(op.options.resource_version);
  if (!wanted) {
    return done(
        Fail(BadRequest("invalid resource version: " + NoRevision(op.options.resource_version))));
  }
  const std::string resource = op.resource->StorageName();
  if (!op.options.continue_token.empty()) {
    if (*wanted != 0) {
      return done(
          Fail(BadRequest("specifying resource version is not allowed when using continue")));
    }
    auto token = DecodeContinue(op.options.continue_token);
    if (!token) return done(Fail(std::move(token).error()));
    auto page = pages_.Find(resource, token->revision, parts_.core.clock().Monotonic());
    if (!page) return done(Fail(Expired(kExpiredToken)));
    return ListAt(std::move(op), std::move(page), std::move(done));
  }
  if (op.options.resource_version_match == "Exact" && *wanted != 0) {
    auto snapshot = pages_.Find(resource, *wanted, parts_.core.clock().Monotonic());
    if (!snapshot && parts_.store.visible() == *wanted) snapshot = parts_.store.Visible(resource);
    if (!snapshot) {
      return done(Fail(Expired("The resourceVersion for the provided list is too old.")));
    }
    return ListAt(std::move(op), std::move(snapshot), std::move(done));
  }
  auto snapshot = parts_.store.Visible(resource);
  if (*wanted > snapshot->revision()) {
    return done(Fail(store::TooLargeRevision(*wanted, snapshot->revision())));
  }
  ListAt(std::move(op), std::move(snapshot), std::move(done));
}

void Pipeline::ListAt(Operation op, std::shared_ptr<const store::Snapshot> snapshot, Respond done) {
  auto filter = Filter::Make(*op.resource, op.options);
  if (!filter) return done(Fail(std::move(filter).error()));
  ContinueToken from;
  if (!op.options.continue_token.empty()) from = *DecodeContinue(op.options.continue_token);
  const std::string_view ns = op.resource->namespaced ? std::string_view(op.info.ns) : "";
  Outcome outcome;
  outcome.message = op.resource->message;
  outcome.list = std::make_unique<ListOutcome>();
  ListOutcome& list = *outcome.list;
  list.resource_version = fmt::format("{}", snapshot->revision());
  const size_t limit = op.options.limit > 0 ? static_cast<size_t>(op.options.limit) : 0;
  // One more than a page tells whether there is another one.
  const bool paged = limit > 0;
  const size_t want = paged && filter->all() ? limit + 1 : 0;
  const auto entries = EntriesOf(*snapshot, *op.resource, ns, filter->name(),
                                 {.resource = {}, .ns = from.ns, .name = from.name}, want);
  size_t used = 0;
  for (; used < entries.size(); ++used) {
    if (paged && list.items.size() == limit) break;
    const EntryPtr& entry = entries[used];
    Object object = api::FromStored(entry->object, *op.resource);
    if (filter->Matches(object.root())) list.items.push_back(std::move(object));
  }
  if (paged && used < entries.size()) {
    const store::Key& last = entries[used - 1]->key;
    list.continue_token = EncodeContinue({snapshot->revision(), last.ns, last.name});
    if (filter->all()) {
      list.remaining = static_cast<int64_t>(snapshot->Count(ns, last.ns, last.name));
    }
    pages_.Put(op.resource->StorageName(), snapshot, parts_.core.clock().Monotonic());
  }
  done(std::move(outcome));
}

}  // namespace sextant::server
