// Binding, eviction and scale: subresources that change the object they stand under.
#include <fmt/format.h>

#include "api/conditions.h"
#include "api/custom_kind.h"
#include "api/patch.h"
#include "api/pods.h"
#include "api/selector.h"
#include "base/quote.h"
#include "server/conditions.h"
#include "server/subresource_parts.h"
#include "server/write_steps.h"

namespace sextant::server {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

// The same request, but on the object itself.
Operation OnObject(const Operation& op, std::string_view verb) {
  Operation inner = op;
  inner.info.verb = verb;
  inner.info.subresource.clear();
  inner.subresource = nullptr;
  inner.authorized = true;
  return inner;
}

Error BindConflict(const std::string& name, std::string_view why) {
  return Conflict({"", "pods/binding"}, name, why);
}

Result<Object> Bound(const Operation& op, const Object& pod, const Object& binding, Time now) {
  const std::string name(pod.name());
  if (!binding.uid().empty() && binding.uid() != pod.uid()) {
    return Fail(BindConflict(name, fmt::format("Precondition failed: UID in precondition: {}, UID "
                                               "in object meta: {}",
                                               binding.uid(), pod.uid())));
  }
  if (pod["metadata"]["deletionTimestamp"]) {
    return Fail(BindConflict(
        name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name)));
  }
  const std::string_view node = pod["spec"]["nodeName"].AsString();
  if (!node.empty()) {
    return Fail(BindConflict(
        name, fmt::format("pod {} is already assigned to node {}", name, Quote(node))));
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    return Fail(
        BindConflict(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name)));
  }
  Editor edit(pod);
  Mut root = edit.Root();
  root["spec"].Set("nodeName", binding["target"]["name"].AsString());
  root["status"].Erase("nominatedNodeName");
  for (auto [key, value] : binding["metadata"]["annotations"].members()) {
    root["metadata"]["annotations"].Set(key, value.AsString());
  }
  for (auto [key, value] : binding["metadata"]["labels"].members()) {
    root["metadata"]["labels"].Set(key, value.AsString());
  }
  api::SetCondition(root["status"]["conditions"], {"PodScheduled", "True", "", ""}, now);
  return std::move(edit).Finish(op.resource->message);
}

// A selector as the text that ?labelSelector= takes; old ones are plain maps.
std::string SelectorText(Value selector) {
  if (selector.Has("matchLabels") || selector.Has("matchExpressions")) {
    auto parsed = api::LabelSelector::From(selector);
    return parsed ? parsed->ToString() : "";
  }
  return api::LabelSelector::FromMap(selector).ToString();
}

// Where a kind has its numbers; a custom resource says so itself.
api::ScalePaths PathsOf(const api::Resource& resource) {
  const api::CustomVersion* custom = api::AsCustom(resource);
  if (custom && custom->scale) return *custom->scale;
  return {"spec.replicas", "status.replicas", "spec.selector"};
}

Object ScaleOf(const Operation& op, const Object& object) {
  const api::ScalePaths paths = PathsOf(*op.resource);
  Editor edit;
  Mut root = edit.Root();
  root.Set("kind", "Scale");
  root.Set("apiVersion", "autoscaling/v1");
  const Value from = object["metadata"];
  Mut metadata = root["metadata"];
  for (const char* key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (from[key]) metadata.Set(key, from[key].AsString());
  }
  root["spec"].SetMap();
  if (const int64_t want = object.Path(paths.spec).AsInt(); want != 0) {
    root["spec"].Set("replicas", want);
  }
  root["status"].Set("replicas", object.Path(paths.status).AsInt());
  const Value chosen = paths.selector.empty() ? Value() : object.Path(paths.selector);
  const std::string selector =
      chosen.IsString() ? std::string(chosen.AsString()) : SelectorText(chosen);
  if (!selector.empty()) root["status"].Set("selector", selector);
  return std::move(edit).Finish();
}

// A custom resource without a number of replicas has no scale.
Status CustomReplicas(const Operation& op, const Object& object) {
  const api::CustomVersion* custom = api::AsCustom(*op.resource);
  if (!custom || !object.Path(custom->scale->spec).IsAbsent()) return {};
  return Fail(InternalError(
      fmt::format("the spec replicas field \".{}\" does not exist", custom->scale->spec)));
}

Outcome ScaleOutcome(const Operation& op, const Object& object) {
  Outcome outcome;
  outcome.object = ScaleOf(op, object);
  outcome.message = op.subresource->message;
  return outcome;
}

// What the client wants the Scale to be, given what it is now.
Result<Object> WantedScale(const Operation& op, const Object& current) {
  if (op.info.verb != "patch") return op.body;
  std::vector<std::string> warnings;
  return api::ApplyPatch(ScaleOf(op, current), *op.subresource->message,
                         {op.patch_type, op.patch, op.options.field_validation, op.registry.get()},
                         &warnings);
}

Result<Object> Scaled(const Operation& op, const Object& current, const WriteContext& context) {
  ASSIGN_OR_RETURN(const Object wanted, WantedScale(op, current));
  RETURN_IF_ERROR(CheckAgainstUrl(op, wanted.root()));
  if (op.info.verb == "update") {
    RETURN_IF_ERROR(CheckUpdatePreconditions(op, wanted, current, true));
  }
  const int64_t replicas = wanted["spec"]["replicas"].AsInt();
  // A custom resource's schema says more than the Scale.
  if (replicas < 0 && !api::AsCustom(*op.resource)) {
    api::FieldErrors errors;
    errors.Invalid("spec.replicas", wanted["spec"]["replicas"],
                   "must be greater than or equal to 0");
    return Fail(Invalid("autoscaling", op.subresource->kind.kind, op.info.name, errors.Take()));
  }
  Editor edit(current);
  edit.Root().Path(PathsOf(*op.resource).spec).SetInt(replicas);
  const Object asked = std::move(edit).Finish(op.resource->message);
  std::vector<std::string> warnings;
  Operation update = OnObject(op, "update");
  update.part = op.subresource->name;
  return PrepareUpdate(update, asked, current, context, warnings);
}

bool EvictsFreely(const Object& pod) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" ||
         pod["metadata"]["deletionTimestamp"];
}

constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";
constexpr std::string_view kWouldViolate =
    "Cannot evict pod as it would violate the pod's disruption budget.";

Error BudgetRefusal(std::string message, int retry_after_s) {
  Error error = TooManyRequests(kWouldViolate, retry_after_s);
  error.causes.push_back({"DisruptionBudget", std::move(message), ""});
  return error;
}

// 429 unless the budget has room; takes one from it otherwise.
Result<Object> TakeFromBudget(const Object& budget, const std::string& pod, Time now,
                              const api::Message* schema) {
  const Value status = budget["status"];
  const std::string_view name = budget.name();
  if (status["observedGeneration"].AsInt() < budget["metadata"]["generation"].AsInt()) {
    return Fail(BudgetRefusal(
        fmt::format("The disruption budget {} is still being processed by the server.", name), 10));
  }
  const int64_t allowed = status["disruptionsAllowed"].AsInt();
  if (allowed <= 0) {
    return Fail(BudgetRefusal(
        fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                    status["desiredHealthy"].AsInt(), status["currentHealthy"].AsInt()),
        0));
  }
  Editor edit(budget);
  Mut out = edit.Root()["status"];
  out.Set("disruptionsAllowed", allowed - 1);
  out["disruptedPods"].Set(pod, FormatTime(now));
  return std::move(edit).Finish(schema);
}

std::vector<Object> BudgetsOf(const Object& pod, const ClusterView& view) {
  std::vector<Object> found;
  const auto budgets = view.Snapshot(kBudgets);
  for (const auto& entry : budgets->Range(pod.ns(), "", "", 0)) {
    auto selector = api::LabelSelector::From(entry->object["spec"]["selector"]);
    if (selector && selector->Matches(pod["metadata"]["labels"])) found.push_back(entry->object);
  }
  return found;
}

// Marks the Pod as a disruption's target, then deletes it.
void MarkAndDelete(const SubresourceCall& call, Respond done) {
  Operation update = OnObject(call.op, "update");
  const bool dry = call.op.options.dry_run();
  const auto remove = [&pipeline = call.pipeline, op = call.op](Respond respond) {
    Operation del = OnObject(op, "delete");
    const Value options = op.body["deleteOptions"];
    del.body = options ? api::CopyOf(options) : Object();
    pipeline.Execute(std::move(del), [respond = std::move(respond)](Result<Outcome> r) mutable {
      if (!r) return respond(Fail(std::move(r).error()));
      respond(SuccessStatus(201));
    });
  };
  if (dry) return remove(std::move(done));
  call.pipeline.Modify(
      update,
      [&view = call.pipeline, schema = call.op.resource->message](const Object& pod) {
        Editor edit(pod);
        api::SetCondition(
            edit.Root()["status"]["conditions"],
            {api::kDisruptionTarget, "True", "EvictionByEvictionAPI", "Eviction API: evicting"},
            view.now());
        return Result<Object>(std::move(edit).Finish(schema));
      },
      [remove, done = std::move(done)](Result<Outcome> r) mutable {
        if (!r) return done(Fail(std::move(r).error()));
        remove(std::move(done));
      });
}

}  // namespace

Outcome SuccessStatus(int code) {
  Editor edit;
  edit.Root().Set("kind", "Status");
  edit.Root().Set("apiVersion", "v1");
  edit.Root()["metadata"].SetMap();
  edit.Root().Set("status", "Success");
  edit.Root().Set("code", code);
  Outcome outcome;
  outcome.code = code;
  outcome.object = std::move(edit).Finish();
  return outcome;
}

void Bind(const SubresourceCall& call, Respond done) {
  Operation op = call.op;
  const Object binding = op.body;
  if (!op.subresource) {  // the old POST .../bindings
    op.info.name = binding.name();
    op.resource = op.registry->Find({"", "v1"}, client::kPods.resource);
    op.info.resource = op.resource->plural;
  }
  if (binding.name() != op.info.name) {
    return done(Fail(BadRequest("name in URL does not match name in Binding object")));
  }
  const Value target = binding["target"];
  api::FieldErrors errors;
  if (!target["kind"].AsString().empty() && target["kind"].AsString() != "Node") {
    errors.NotSupported("target.kind", target["kind"].AsString(), {"Node", "<empty>"});
  }
  if (target["name"].AsString().empty()) errors.Required("target.name", "");
  if (!errors.empty()) {
    const Cause& cause = errors.causes().front();
    return done(
        Fail(Error{.code = 500, .message = fmt::format("{}: {}", cause.field, cause.message)}));
  }
  Operation inner = OnObject(op, "update");
  call.pipeline.Modify(
      inner,
      [inner, binding, &view = call.pipeline](const Object& pod) {
        return Bound(inner, pod, binding, view.now());
      },
      [done = std::move(done)](Result<Outcome> r) mutable {
        if (!r) return done(Fail(std::move(r).error()));
        done(SuccessStatus(201));
      });
}

void Scale(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  if (op.info.verb == "get") {
    return call.pipeline.Execute(OnObject(op, "get"),
                                 [op, done = std::move(done)](Result<Outcome> r) mutable {
                                   if (!r) return done(Fail(std::move(r).error()));
                                   if (auto there = CustomReplicas(op, r->object); !there) {
                                     return done(Fail(std::move(there).error()));
                                   }
                                   done(ScaleOutcome(op, r->object));
                                 });
  }
  call.pipeline.Modify(
      OnObject(op, "update"),
      [op, &pipeline = call.pipeline](const Object& current) {
        return Scaled(op, current, pipeline.context());
      },
      [op, done = std::move(done)](Result<Outcome> r) mutable {
        if (!r) return done(Fail(std::move(r).error()));
        done(ScaleOutcome(op, r->object));
      });
}

void Evict(const SubresourceCall& call, Respond done) {
  const Operation& op = call.op;
  if (op.body.name() != op.info.name) {
    return done(Fail(BadRequest("name in URL does not match name in Eviction object")));
  }
  const Object pod = call.pipeline.Get(client::kPods.resource, op.info.ns, op.info.name);
  if (!pod) return done(Fail(NotFound(QualifiedResource(op), op.info.name)));
  if (EvictsFreely(pod)) return MarkAndDelete(call, std::move(done));
  const std::vector<Object> budgets = BudgetsOf(pod, call.pipeline);
  if (budgets.size() > 1) {
    Error error;
    error.message =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.";
    return done(Fail(std::move(error)));
  }
  if (budgets.empty()) return MarkAndDelete(call, std::move(done));
  const Value status = budgets[0]["status"];
  if (!HasCondition(pod.root(), "Ready")) {
    const bool always =
        budgets[0]["spec"]["unhealthyPodEvictionPolicy"].AsString() == "AlwaysAllow";
    const int64_t desired = status["desiredHealthy"].AsInt();
    if (always || (desired > 0 && status["currentHealthy"].AsInt() >= desired)) {
      return MarkAndDelete(call, std::move(done));
    }
  }
  Operation take = OnObject(op, "update");
  take.resource = op.registry->Find({"policy", "v1"}, "poddisruptionbudgets");
  take.info.group = "policy";
  take.info.resource = take.resource->plural;
  take.info.name = budgets[0].name();
  const std::string name = op.info.name;
  call.pipeline.Modify(
      take,
      [name, schema = take.resource->message, &view = call.pipeline](const Object& budget) {
        return TakeFromBudget(budget, name, view.now(), schema);
      },
      [call, done = std::move(done)](Result<Outcome> r) mutable {
        if (!r) return done(Fail(std::move(r).error()));
        MarkAndDelete(call, std::move(done));
      });
}

}  // namespace sextant::server
