#include "server/write_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "api/conversion.h"
#include "api/custom_kind.h"
#include "api/lists.h"
#include "base/quote.h"
#include "server/decode.h"
#include "server/pipeline.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr size_t kMaxGeneratedBase = 63 - 5;  // apimachinery names.maxGeneratedNameLength

Random& WorkerRandom() {
  thread_local Random random(RandomSeed());
  return random;
}

bool HasStatus(const api::Resource& resource) {
  if (const api::CustomVersion* custom = api::AsCustom(resource)) return custom->has_status;
  return resource.FindSubresource("status") != nullptr && resource.message->FindField("status");
}

// What admission is asked: the plugins' order, and one request for all of them.
class Admission {
 public:
  Admission(const Operation& op, std::string_view verb, Value old, const WriteContext& context,
            std::vector<std::string>& warnings)
      : chain_(context.admission),
        request_{op, verb, old, context.view, context.authorizer, warnings} {}

  Status Mutate(Mut object) const {
    for (const auto& plugin : chain_) RETURN_IF_ERROR(plugin->Admit(request_, object));
    return {};
  }
  Status Allocate(Mut object) const {
    for (const auto& plugin : chain_) RETURN_IF_ERROR(plugin->Allocate(request_, object));
    return {};
  }
  Status Validate(Value object) const {
    for (const auto& plugin : chain_) RETURN_IF_ERROR(plugin->Validate(request_, object));
    return {};
  }
  std::vector<Settlement> Settle(Value object) const {
    std::vector<Settlement> all;
    for (const auto& plugin : chain_) {
      if (Settlement one = plugin->Settle(request_, object)) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  const AdmissionChain& chain_;
  const AdmissionRequest request_;
};

// Where the object would lie in a real cluster's etcd.
std::string EtcdKey(const Operation& op) {
  const std::string_view slash = op.resource->namespaced ? "/" : "";
  return fmt::format("/registry/{}/{}{}{}", op.resource->plural,
                     op.resource->namespaced ? op.info.ns : "", slash, op.info.name);
}

Error InvalidObject(const Operation& op, Value object, api::FieldErrors& errors) {
  // A custom resource may have said that it is of another kind.
  const std::string_view kind =
      api::AsCustom(*op.resource) ? object["kind"].AsString() : op.resource->kind;
  return Invalid(op.resource->group_version.group, kind, object["metadata"]["name"].AsString(),
                 errors.Take());
}

// What was asked for with defaults, and the fields of it entered under the client's name. Taken
// before admission and preparation: what they add belongs to nobody. Server-side apply has done
// this already.
Object Defaulted(const Operation& op, const Object& asked, const Object& before, Time now) {
  const api::Rules& rules = api::RulesFor(*op.resource);
  Editor edit(asked);
  if (op.resource->namespaced) {
    edit.Root()["metadata"].Set("namespace", op.info.ns);
  } else {
    edit.Root()["metadata"].Erase("namespace");
  }
  if (rules.set_defaults) rules.set_defaults(edit.Root());
  Object object = std::move(edit).Finish(op.resource->message);
  if (op.apply) {
    // Bodies and patches have been shaped as they were read.
    const api::CustomVersion* custom = api::AsCustom(*op.resource);
    return custom ? api::AdmitCustom(*custom, std::move(object), nullptr) : object;
  }
  const std::string api_version = op.resource->group_version.ToString();
  return api::TrackUpdate(FieldManagerOf(op, api_version, now), api::FieldsOfKind(*op.resource),
                          before, object);
}

// An owner that is named twice is kept once, with a word about it.
void KeepOwnersOnce(Mut metadata, std::vector<std::string>& warnings) {
  if (!metadata.Has("ownerReferences")) return;
  const Mut owners = metadata["ownerReferences"];
  std::set<std::string> twice;
  for (size_t i = 1; i < owners.size();) {
    const Value owner = owners.at(i).Snapshot();
    bool known = false;
    for (size_t j = 0; j < i; ++j) known = known || Equal(owners.at(j).Snapshot(), owner);
    if (known) {
      twice.emplace(owner["uid"].AsString());
      owners.EraseAt(i);
    } else {
      ++i;
    }
  }
  if (twice.empty()) return;
  warnings.push_back(
      fmt::format(".metadata.ownerReferences contains duplicate entries; API server dedups owner "
                  "references in 1.20+, and may reject such requests as early as 1.24; please fix "
                  "your requests; duplicate UID(s) observed: {}",
                  fmt::join(twice, ", ")));
}

// Everything but metadata, a status of its own and the type: what metadata.generation counts.
bool SpecChanged(Value a, Value b, bool status_too) {
  return !api::SameBut(a, b, [status_too](std::string_view key) {
    return key == "metadata" || key == "kind" || key == "apiVersion" ||
           (key == "status" && !status_too);
  });
}

// The same managers with the same fields, whenever that was.
bool SameManagers(Value a, Value b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto is_time = [](std::string_view key) { return key == "time"; };
    if (!api::SameBut(a.at(i), b.at(i), is_time)) return false;
  }
  return true;
}

// True if nothing but the times of managedFields differs.
bool SameButTimes(Value a, Value b) {
  return api::SameBut(a, b, [](std::string_view key) { return key == "metadata"; }) &&
         api::SameBut(a["metadata"], b["metadata"],
                      [](std::string_view key) {
                        return key == "managedFields" || key == "resourceVersion";
                      }) &&
         SameManagers(a["metadata"]["managedFields"], b["metadata"]["managedFields"]);
}

void SetOrErase(Mut map, std::string_view key, Value value) {
  if (value) {
    map.Set(key, value);
  } else {
    map.Erase(key);
  }
}

// An update never changes these: they are taken from what stands there.
void KeepSystemMetadata(Mut metadata, Value old) {
  if (metadata["uid"].AsString().empty()) SetOrErase(metadata, "uid", old["uid"]);
  SetOrErase(metadata, "creationTimestamp", old["creationTimestamp"]);
  SetOrErase(metadata, "generation", old["generation"]);
  if (old["deletionTimestamp"]) metadata.Set("deletionTimestamp", old["deletionTimestamp"]);
  if (old["deletionGracePeriodSeconds"] && !metadata.Has("deletionGracePeriodSeconds")) {
    metadata.Set("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"]);
  }
  metadata.Erase("selfLink");
}

// The same for a custom resource, whose metadata stays as well but for who owns what.
void KeepOldMetadata(Mut metadata, Value old) {
  const api::Object managers = api::CopyOf(metadata["managedFields"].Snapshot());
  metadata.Set(old);
  if (managers.root().IsList()) {
    metadata["managedFields"].Set(managers);
  } else {
    metadata.Erase("managedFields");
  }
}

// PUT .../status: the new status and metadata over the old rest.
void KeepAllButStatus(Mut object, Value old) {
  for (const std::string& key : object.Keys()) {
    if (key != "metadata" && key != "status" && key != "kind" && key != "apiVersion") {
      object.Erase(key);
    }
  }
  for (auto [key, value] : old.members()) {
    if (key != "metadata" && key != "status" && key != "kind" && key != "apiVersion") {
      object.Set(key, value);
    }
  }
  SetOrErase(object["metadata"], "ownerReferences", old["metadata"]["ownerReferences"]);
}

}  // namespace

api::ManagerInfo FieldManagerOf(const Operation& op, const std::string& api_version, Time now) {
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  const std::string_view part = op.subresource ? op.subresource->name : op.part;
  if (part == "scale") now = {};
  return {.manager = op.options.field_manager,
          .subresource = part,
          .api_version = api_version,
          .now = now,
          .status_apart = !custom || custom->has_status,
          .metadata_apart = custom != nullptr};
}

Status CheckAgainstUrl(const Operation& op, Value object) {
  const Value metadata = object["metadata"];
  const std::string_view ns = metadata["namespace"].AsString();
  const std::string_view expected = op.resource->namespaced ? std::string_view(op.info.ns) : "";
  // A namespace given to an object that has none is forgotten.
  if (!expected.empty() && !ns.empty() && ns != expected) {
    return Fail(BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (op.info.verb != "create" && op.info.verb != "list") {
    const std::string_view name = metadata["name"].AsString();
    if (name.empty()) {
      return Fail(BadRequest(
          fmt::format("the name of the object ({} based on URL) was undeterminable: name must be "
                      "provided",
                      op.info.name)));
    }
    if (name != op.info.name) {
      return Fail(BadRequest(
          fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                      op.info.name)));
    }
  }
  return {};
}

Result<Object> PrepareCreate(const Operation& op, const Object& asked, const WriteContext& context,
                             std::vector<std::string>& warnings) {
  const api::Rules& rules = api::RulesFor(*op.resource);
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  if (custom && custom->terminating) {
    return Fail(Forbidden(QualifiedResource(op), asked.name(),
                          "create not allowed while custom resource definition is terminating"));
  }
  const Admission admission(op, "create", Value(), context, warnings);
  Editor edit(Defaulted(op, asked, Object(), context.view.now()));
  Mut root = edit.Root();
  Mut metadata = root["metadata"];
  KeepOwnersOnce(metadata, warnings);
  RETURN_IF_ERROR(admission.Mutate(root));

  for (const char* key :
       {"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    metadata.Erase(key);
  }
  metadata.Set("uid", NewUuid(WorkerRandom()));
  metadata.Set("creationTimestamp", FormatTime(context.view.now()));
  const std::string base(metadata["generateName"].AsString());
  if (!base.empty() && metadata["name"].AsString().empty()) {
    metadata.Set("name", base.substr(0, kMaxGeneratedBase) + NameSuffix(WorkerRandom()));
  }
  metadata.Erase("generation");
  if (rules.has_generation) metadata.Set("generation", 1);
  if (HasStatus(*op.resource) && !rules.status_on_create) {
    root.Erase("status");
    api::KeepConverted(root, Value(), *op.resource, api::Kept::kStatus);
  }
  if (rules.prepare) rules.prepare(root, Value());
  RETURN_IF_ERROR(admission.Allocate(root));
  Object object = std::move(edit).Finish(op.resource->message);

  api::FieldErrors errors;
  api::ValidateObjectMeta(object["metadata"], op.resource->namespaced, rules, errors);
  if (custom) {
    api::ValidateCustom(*custom, object.root(), Value(), errors);
  } else if (rules.validate_create) {
    rules.validate_create(object.root(), errors);
  } else if (rules.validate) {
    rules.validate(object.root(), errors);
  }
  if (!errors.empty()) return Fail(InvalidObject(op, object.root(), errors));
  if (rules.warnings) rules.warnings(object.root(), Value(), warnings);
  RETURN_IF_ERROR(admission.Validate(object.root()));
  if (op.info.verb == "create" && !op.apply && !asked.resource_version().empty() &&
      asked.resource_version() != "0") {
    return Fail({.message = "resourceVersion should not be set on objects to be created"});
  }
  return object;
}

std::vector<Settlement> Settlements(const Operation& op, std::string_view verb, Value old,
                                    Value object, const WriteContext& context) {
  std::vector<std::string> warnings;  // validation has told them
  return Admission(op, verb, old, context, warnings).Settle(object);
}

Status AdmitSubresource(Operation& op, const WriteContext& context) {
  if (op.info.verb != "create" || op.resource->virtual_review) return {};
  std::vector<std::string> warnings;
  const Admission admission(op, op.info.verb, Value(), context, warnings);
  Editor edit(op.body);
  RETURN_IF_ERROR(admission.Mutate(edit.Root()));
  op.body = std::move(edit).Finish(op.subresource ? op.subresource->message : op.resource->message);
  return admission.Validate(op.body.root());
}

Error UidConflict(const Operation& op, std::string_view asked, std::string_view current) {
  return Conflict(QualifiedResource(op), op.info.name,
                  fmt::format("StorageError: invalid object, Code: 4, Key: {}, "
                              "ResourceVersion: 0, AdditionalErrorMsg: Precondition "
                              "failed: UID in precondition: {}, UID in object meta: {}",
                              EtcdKey(op), asked, current));
}

Status CheckUpdatePreconditions(const Operation& op, const Object& asked, const Object& current,
                                bool unconditional_allowed) {
  const std::string_view version = asked.resource_version();
  if (version.empty() || version == "0") {
    if (!unconditional_allowed) {
      api::FieldErrors errors;
      errors.InvalidRaw("metadata.resourceVersion", "0", "must be specified for an update");
      return Fail(Invalid(op.resource->group_version.group, op.resource->plural, op.info.name,
                          errors.Take()));
    }
  } else if (version.find_first_not_of("0123456789") != std::string_view::npos) {
    return Fail(Error{
        .code = 500,
        .message = fmt::format("strconv.ParseUint: parsing {}: invalid syntax", Quote(version))});
  } else if (version != current.resource_version()) {
    return Fail(Conflict(QualifiedResource(op), op.info.name,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again"));
  }
  // A patch that changes the uid fails the validation of metadata.
  if (op.info.verb == "update" && !asked.uid().empty() && asked.uid() != current.uid()) {
    return Fail(UidConflict(op, asked.uid(), current.uid()));
  }
  return {};
}

Result<Object> PrepareUpdate(const Operation& op, const Object& asked, const Object& current,
                             const WriteContext& context, std::vector<std::string>& warnings) {
  const api::Rules& rules = api::RulesFor(*op.resource);
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  const bool status = op.subresource && op.subresource->name == "status";
  const Value old = current.root();
  const Admission admission(op, "update", old, context, warnings);
  Editor edit(Defaulted(op, asked, current, context.view.now()));
  edit.Keep(current);
  Mut root = edit.Root();
  Mut metadata = root["metadata"];
  metadata.Set("resourceVersion", old["metadata"]["resourceVersion"]);
  KeepOwnersOnce(metadata, warnings);
  RETURN_IF_ERROR(admission.Mutate(root));
  KeepSystemMetadata(metadata, old["metadata"]);
  if (status) {
    KeepAllButStatus(root, old);
    if (custom) KeepOldMetadata(metadata, old["metadata"]);
    api::KeepConverted(root, old, *op.resource, api::Kept::kSpec);
  } else if (HasStatus(*op.resource)) {
    SetOrErase(root, "status", old["status"]);
    api::KeepConverted(root, old, *op.resource, api::Kept::kStatus);
  }
  const api::SubresourceRules* part =
      op.subresource ? api::FindSubresourceRules(rules, op.subresource->name) : nullptr;
  if (part) {
    if (part->prepare) part->prepare(root, old);
  } else if (rules.prepare) {
    rules.prepare(root, old);
  }
  RETURN_IF_ERROR(admission.Allocate(root));
  Object next = std::move(edit).Finish(op.resource->message);
  const bool status_too = custom && !custom->has_status;
  if (!status && rules.has_generation && SpecChanged(next.root(), old, status_too)) {
    Editor bump(next);
    bump.Root()["metadata"].Set("generation", old["metadata"]["generation"].AsInt() + 1);
    next = std::move(bump).Finish(op.resource->message);
  }
  api::FieldErrors errors;
  // Once for every kind, and once more by the kind: its causes name such an error twice.
  for (int i = 0; i < 2; ++i) {
    if (i == 0 || !status) {
      api::ValidateObjectMeta(next["metadata"], op.resource->namespaced, rules, errors);
    }
    api::ValidateObjectMetaUpdate(next["metadata"], old["metadata"], errors);
  }
  if (custom) {
    const auto validate = status ? api::ValidateCustomStatus : api::ValidateCustom;
    validate(*custom, next.root(), old, errors);
  } else if (part) {
    part->validate(next.root(), old, errors);
  } else if (status) {
    if (rules.validate_status) rules.validate_status(next.root(), old, errors);
  } else {
    if (rules.validate) rules.validate(next.root(), errors);
    if (rules.validate_update) {
      rules.validate_update(next.root(), old, errors);
    } else {
      api::ValidateImmutableFields(next.root(), old, *op.resource->message, errors);
    }
  }
  if (!errors.empty()) return Fail(InvalidObject(op, next.root(), errors));
  if (rules.warnings && !status && !part) rules.warnings(next.root(), old, warnings);
  RETURN_IF_ERROR(admission.Validate(next.root()));
  if (SameButTimes(next.root(), old)) return current;
  return next;
}

bool DeletesDuringUpdate(const api::Rules& rules, Value next, Value current) {
  if (!next["metadata"]["finalizers"].empty()) return false;
  if (!current["metadata"]["deletionTimestamp"]) return false;
  if (rules.held && rules.held(next)) return false;
  return current["metadata"]["deletionGracePeriodSeconds"].AsInt() == 0;
}

// The body's options where there is a body, else the query's.
Result<DeleteRequest> ReadDeleteOptions(Operation& op) {
  DeleteRequest request;
  Options& query = op.options;
  if (op.body) {
    const Value body = op.body.root();
    query.grace_period_s.reset();
    query.orphan_dependents.reset();
    query.dry_run_values.clear();
    if (body["gracePeriodSeconds"]) query.grace_period_s = body["gracePeriodSeconds"].AsInt();
    if (body["orphanDependents"]) query.orphan_dependents = body["orphanDependents"].AsBool();
    query.propagation_policy = body["propagationPolicy"].AsString();
    for (Value value : body["dryRun"].items()) query.dry_run_values.emplace_back(value.AsString());
    request.uid = body["preconditions"]["uid"].AsString();
    request.resource_version = body["preconditions"]["resourceVersion"].AsString();
  }
  const std::optional<bool> orphan = query.orphan_dependents;
  const std::string& policy = query.propagation_policy;
  request.grace_s = query.grace_period_s;
  api::FieldErrors errors;
  if (orphan && !policy.empty()) {
    errors.InvalidText("propagationPolicy", policy,
                       "orphanDependents and deletionPropagation cannot be both set");
  }
  if (!policy.empty() && policy != "Foreground" && policy != "Background" && policy != "Orphan") {
    errors.NotSupported("propagationPolicy", policy, {"Foreground", "Background", "Orphan", "nil"});
  }
  CheckDryRun(query.dry_run_values, errors);
  if (!errors.empty()) return Fail(Invalid("meta.k8s.io", "DeleteOptions", "", errors.Take()));
  if (request.grace_s && *request.grace_s < 0) request.grace_s = 1;
  request.propagation = policy;
  if (orphan) {
    request.propagation = *orphan ? "Orphan" : "Background";
    request.explicit_cascade = !*orphan;
  }
  return request;
}

namespace {

Status CheckDeletePreconditions(const Operation& op, const DeleteRequest& request,
                                const Object& current) {
  const GroupResource kind{std::string(op.resource->group_version.group),
                           std::string(op.resource->kind)};
  if (!request.uid.empty() && request.uid != current.uid()) {
    // Namespaces look for themselves, before the store does.
    if (api::RulesFor(*op.resource).held) {
      return Fail(Conflict(
          QualifiedResource(op), op.info.name,
          fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                      request.uid, current.uid())));
    }
    return Fail(Conflict(
        kind, op.info.name,
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The "
                    "object might have been deleted and then recreated",
                    request.uid, current.uid())));
  }
  if (!request.resource_version.empty() && request.resource_version != current.resource_version()) {
    return Fail(
        Conflict(kind, op.info.name,
                 fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                             "ResourceVersion in record ({}). The object might have been modified",
                             request.resource_version, current.resource_version())));
  }
  return {};
}

constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

// The garbage collector's finalizers follow what this deletion asks for.
bool SetCollectorFinalizers(const DeleteRequest& request, bool orphans_by_default, Mut metadata,
                            Value old) {
  const bool said = !request.propagation.empty();
  const bool orphan_before = api::Holds(old["finalizers"], kOrphanFinalizer);
  const bool foreground_before = api::Holds(old["finalizers"], kForegroundFinalizer);
  const bool orphan = said ? request.propagation == "Orphan"
                           : orphan_before || (orphans_by_default && !foreground_before);
  const bool foreground = said ? request.propagation == "Foreground" : foreground_before;
  std::vector<std::string> next;
  for (Value finalizer : old["finalizers"].items()) {
    if (finalizer.AsString() != kOrphanFinalizer && finalizer.AsString() != kForegroundFinalizer) {
      next.emplace_back(finalizer.AsString());
    }
  }
  if (orphan) next.emplace_back(kOrphanFinalizer);
  if (foreground && !orphan) next.emplace_back(kForegroundFinalizer);
  const size_t before = old["finalizers"].size();
  bool same = before == next.size();
  for (const std::string& finalizer : next) same = same && api::Holds(old["finalizers"], finalizer);
  if (same) return !next.empty();
  metadata.Erase("finalizers");
  for (const std::string& finalizer : next) metadata["finalizers"].Append().SetString(finalizer);
  return !next.empty();
}

// A second DELETE of an object that is ending may only shorten its grace. False: nothing to do.
bool ShortenGrace(const DeleteRequest& request, Mut metadata, Value old, Time now) {
  const int64_t had = old["deletionGracePeriodSeconds"].AsInt();
  if (!request.grace_s || *request.grace_s >= had) return false;
  int64_t period = *request.grace_s;
  Time at = now;
  if (auto parsed = ParseTime(old["deletionTimestamp"].AsString())) at = *parsed;
  at += std::chrono::seconds(period - had);
  if (at < now) {
    at = now;
    if (period != 0) period = 1;
  }
  metadata.Set("deletionTimestamp", FormatTime(at));
  metadata.Set("deletionGracePeriodSeconds", period);
  return true;
}

}  // namespace

Result<DeletePlan> PlanDelete(const Operation& op, const DeleteRequest& request,
                              const Object& current, const WriteContext& context) {
  RETURN_IF_ERROR(CheckDeletePreconditions(op, request, current));
  std::vector<std::string> warnings;  // nobody hears them: a deletion has none
  RETURN_IF_ERROR(Admission(op, "delete", current.root(), context, warnings).Validate(Value()));
  const api::Rules& rules = api::RulesFor(*op.resource);
  const Value old = current["metadata"];
  const bool ending = static_cast<bool>(old["deletionTimestamp"]);
  Editor edit(current);
  Mut metadata = edit.Root()["metadata"];
  bool graceful = false;
  int64_t grace = 0;
  if (rules.grace_s) {
    if (!ending) {
      grace = rules.grace_s(current.root(), request.grace_s);
      graceful = true;
      metadata.Set("deletionTimestamp",
                   FormatTime(context.view.now() + std::chrono::seconds(grace)));
      metadata.Set("deletionGracePeriodSeconds", grace);
      if (old["generation"].AsInt() > 0) metadata.Set("generation", old["generation"].AsInt() + 1);
    } else if (old["deletionGracePeriodSeconds"].AsInt() > 0) {
      if (!ShortenGrace(request, metadata, old, context.view.now())) {
        return DeletePlan{DeletePlan::Kind::kNothing, current, 200};
      }
      graceful = true;
      grace = metadata["deletionGracePeriodSeconds"].AsInt();
    }
  }
  const bool finalizers = SetCollectorFinalizers(request, rules.orphans_by_default, metadata, old);
  const bool held = rules.held && rules.held(current.root());
  if (!graceful && (finalizers || held) && !ending) {
    metadata.Set("deletionTimestamp", FormatTime(context.view.now()));
    if (!rules.held) metadata.Set("deletionGracePeriodSeconds", 0);
    if (old["generation"].AsInt() > 0 && !rules.held) {
      metadata.Set("generation", old["generation"].AsInt() + 1);
    }
    if (rules.on_delete) rules.on_delete(edit.Root());
  }
  const bool stays = finalizers || held || grace > 0;
  DeletePlan plan;
  plan.object = std::move(edit).Finish(op.resource->message);
  plan.kind = stays ? DeletePlan::Kind::kMark : DeletePlan::Kind::kRemove;
  if (stays && SameButTimes(plan.object.root(), current.root())) {
    plan.kind = DeletePlan::Kind::kNothing;
    plan.object = current;
  }
  if (stays && request.explicit_cascade) plan.code = 202;
  return plan;
}

}  // namespace sextant::server
