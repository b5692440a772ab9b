#include "server/write_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "api/custom_kind.h"
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

Status Mutate(const Operation& op, std::string_view verb, Value old, Mut object,
              const WriteContext& context) {
  const AdmissionRequest request{op, verb, old, context.view};
  for (const auto& plugin : context.admission) RETURN_IF_ERROR(plugin->Admit(request, object));
  return {};
}

Status Allocate(const Operation& op, std::string_view verb, Value old, Mut object,
                const WriteContext& context) {
  const AdmissionRequest request{op, verb, old, context.view};
  for (const auto& plugin : context.admission) RETURN_IF_ERROR(plugin->Allocate(request, object));
  return {};
}

Status ValidateAdmission(const Operation& op, std::string_view verb, Value old, Value object,
                         const WriteContext& context) {
  const AdmissionRequest request{op, verb, old, context.view};
  for (const auto& plugin : context.admission) RETURN_IF_ERROR(plugin->Validate(request, object));
  return {};
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
  if (const api::CustomVersion* custom = api::AsCustom(*op.resource)) {
    object = api::AdmitCustom(*custom, std::move(object), nullptr);
  }
  if (op.apply) return object;
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
  const auto differs = [status_too](Value x, Value y) {
    for (auto [key, value] : x.members()) {
      if (key == "metadata" || key == "kind" || key == "apiVersion") continue;
      if (key == "status" && !status_too) continue;
      if (!Equal(value, y[key])) return true;
    }
    return false;
  };
  return differs(a, b) || differs(b, a);
}

// True if nothing but managedFields (whose times move) differs.
bool SameButManagers(Value a, Value b) {
  const auto differs = [](Value x, Value y) {
    for (auto [key, value] : x.members()) {
      if (key == "metadata") {
        for (auto [meta_key, meta_value] : value.members()) {
          if (meta_key == "managedFields" || meta_key == "resourceVersion") continue;
          if (!Equal(meta_value, y[key][meta_key])) return true;
        }
      } else if (!Equal(value, y[key])) {
        return true;
      }
    }
    return false;
  };
  return !differs(a, b) && !differs(b, a);
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

bool Contains(Value list, std::string_view text) {
  for (Value item : list.items())
    if (item.AsString() == text) return true;
  return false;
}

}  // namespace

api::ManagerInfo FieldManagerOf(const Operation& op, const std::string& api_version, Time now) {
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  return {.manager = op.options.field_manager,
          .subresource = op.subresource ? op.subresource->name : std::string_view(),
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
    return Fail(BadRequest(fmt::format(
        "the namespace of the provided object does not match the namespace sent on the request")));
  }
  if (op.info.verb != "create" && op.info.verb != "list") {
    const std::string_view name = metadata["name"].AsString();
    if (name.empty()) {
      return Fail(BadRequest(
          fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                      "based on URL", op.info.name)));
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
  Editor edit(Defaulted(op, asked, Object(), context.view.now()));
  Mut root = edit.Root();
  Mut metadata = root["metadata"];
  KeepOwnersOnce(metadata, warnings);
  RETURN_IF_ERROR(Mutate(op, "create", Value(), root, context));

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
  if (HasStatus(*op.resource) && !rules.status_on_create) root.Erase("status");
  if (rules.prepare) rules.prepare(root, Value());
  RETURN_IF_ERROR(Allocate(op, "create", Value(), root, context));
  Object object = std::move(edit).Finish(op.resource->message);

  api::FieldErrors errors;
  api::ValidateObjectMeta(object["metadata"], op.resource->namespaced, rules, errors);
  if (custom) {
    api::ValidateCustom(*custom, object.root(), errors);
  } else if (rules.validate_create) {
    rules.validate_create(object.root(), errors);
  } else if (rules.validate) {
    rules.validate(object.root(), errors);
  }
  if (!errors.empty()) return Fail(InvalidObject(op, object.root(), errors));
  if (rules.warnings) rules.warnings(object.root(), Value(), warnings);
  RETURN_IF_ERROR(ValidateAdmission(op, "create", Value(), object.root(), context));
  if (op.info.verb == "create" && !op.apply && !asked.resource_version().empty() &&
      asked.resource_version() != "0") {
    return Fail({.message = "resourceVersion should not be set on objects to be created"});
  }
  return object;
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
  } else if (version != current.resource_version()) {
    return Fail(Conflict(QualifiedResource(op), op.info.name,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again"));
  }
  if (!asked.uid().empty() && asked.uid() != current.uid()) {
    return Fail(Conflict(QualifiedResource(op), op.info.name,
                         fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                     "meta: {}",
                                     asked.uid(), current.uid())));
  }
  return {};
}

Result<Object> PrepareUpdate(const Operation& op, const Object& asked, const Object& current,
                             const WriteContext& context, std::vector<std::string>& warnings) {
  const api::Rules& rules = api::RulesFor(*op.resource);
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  const bool status = op.subresource && op.subresource->name == "status";
  const Value old = current.root();
  Editor edit(Defaulted(op, asked, current, context.view.now()));
  edit.Keep(current);
  Mut root = edit.Root();
  Mut metadata = root["metadata"];
  metadata.Set("resourceVersion", old["metadata"]["resourceVersion"]);
  KeepOwnersOnce(metadata, warnings);
  RETURN_IF_ERROR(Mutate(op, "update", old, root, context));
  KeepSystemMetadata(metadata, old["metadata"]);
  if (status) {
    KeepAllButStatus(root, old);
    if (custom) KeepOldMetadata(metadata, old["metadata"]);
  } else if (HasStatus(*op.resource)) {
    SetOrErase(root, "status", old["status"]);
  }
  const api::SubresourceRules* part =
      op.subresource ? api::FindSubresourceRules(rules, op.subresource->name) : nullptr;
  if (part) {
    part->prepare(root, old);
  } else if (rules.prepare) {
    rules.prepare(root, old);
  }
  RETURN_IF_ERROR(Allocate(op, "update", old, root, context));
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
    const auto validate = status ? api::ValidateCustomStatus : api::ValidateCustomUpdate;
    validate(*custom, next.root(), old, errors);
  } else if (part) {
    part->validate(next.root(), old, errors);
  } else if (status) {
    if (rules.validate_status) rules.validate_status(next.root(), old, errors);
  } else {
    if (rules.validate) rules.validate(next.root(), errors);
    if (rules.validate_update) rules.validate_update(next.root(), old, errors);
  }
  if (!errors.empty()) return Fail(InvalidObject(op, next.root(), errors));
  if (rules.warnings && !status && !part) rules.warnings(next.root(), old, warnings);
  RETURN_IF_ERROR(ValidateAdmission(op, "update", old, next.root(), context));
  if (SameButManagers(next.root(), old)) return current;
  return next;
}

bool DeletesDuringUpdate(const api::Rules& rules, Value next, Value current) {
  if (!next["metadata"]["finalizers"].empty()) return false;
  if (!current["metadata"]["deletionTimestamp"]) return false;
  if (rules.held && rules.held(next)) return false;
  return current["metadata"]["deletionGracePeriodSeconds"].AsInt() == 0;
}

Result<DeleteRequest> ReadDeleteOptions(const Operation& op) {
  DeleteRequest request;
  std::optional<bool> orphan = op.options.orphan_dependents;
  std::string policy = op.options.propagation_policy;
  request.grace_s = op.options.grace_period_s;
  if (op.body) {
    const Value body = op.body.root();
    if (body["gracePeriodSeconds"]) request.grace_s = body["gracePeriodSeconds"].AsInt();
    if (body["propagationPolicy"]) policy = body["propagationPolicy"].AsString();
    if (body["orphanDependents"]) orphan = body["orphanDependents"].AsBool();
    request.uid = body["preconditions"]["uid"].AsString();
    request.resource_version = body["preconditions"]["resourceVersion"].AsString();
  }
  api::FieldErrors errors;
  if (orphan && !policy.empty()) {
    errors.InvalidText("propagationPolicy", policy,
                       "orphanDependents and deletionPropagation cannot be both set");
  }
  if (!policy.empty() && policy != "Foreground" && policy != "Background" && policy != "Orphan") {
    errors.NotSupported("propagationPolicy", policy, {"Foreground", "Background", "Orphan", "nil"});
  }
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
bool SetCollectorFinalizers(const DeleteRequest& request, Mut metadata, Value old) {
  const bool orphan =
      request.propagation == "Orphan" ||
      (request.propagation.empty() && Contains(old["finalizers"], kOrphanFinalizer));
  const bool foreground =
      request.propagation == "Foreground" ||
      (request.propagation.empty() && Contains(old["finalizers"], kForegroundFinalizer));
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
  for (const std::string& finalizer : next) same = same && Contains(old["finalizers"], finalizer);
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
  RETURN_IF_ERROR(ValidateAdmission(op, "delete", current.root(), Value(), context));
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
  const bool finalizers = SetCollectorFinalizers(request, metadata, old);
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
  if (stays && SameButManagers(plan.object.root(), current.root())) {
    plan.kind = DeletePlan::Kind::kNothing;
    plan.object = current;
  }
  if (stays && request.explicit_cascade) plan.code = 202;
  return plan;
}

}  // namespace sextant::server
