// What may be written to a Job's status: controllers other than Kubernetes' own write it too
// (spec.managedBy), so its transitions are held to what clients expect. A rule is asked only when
// what it speaks of has changed. Source: validateJobStatus and ValidateJobStatusUpdate in
// pkg/apis/batch/validation, getStatusValidationOptions in pkg/registry/batch/job.
#include <fmt/format.h>

#include <algorithm>

#include "api/conditions.h"
#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

bool Is(Value status, std::string_view type, std::string_view value = "True") {
  return FindCondition(status["conditions"], type)["status"].AsString() == value;
}

bool Finished(Value status) { return Is(status, "Complete") || Is(status, "Failed"); }

struct Change {
  Value spec;
  Value now;
  Value before;

  bool Condition(std::string_view type) const { return Is(now, type) != Is(before, type); }
  bool Field(std::string_view name) const { return !Same(now[name], before[name]); }
  bool Finish() const { return Finished(now) != Finished(before); }
};

void ValidateNumbers(Value status, const At& at, FieldErrors& errors) {
  for (const char* name : {"active", "succeeded", "failed", "ready", "terminating"}) {
    NonNegative(status, name, at, errors);
  }
  const At uncounted = at / "uncountedTerminatedPods";
  std::set<std::string_view> seen;
  for (const char* list : {"succeeded", "failed"}) {
    size_t i = 0;
    for (Value uid : status["uncountedTerminatedPods"][list].items()) {
      const At here = uncounted.Item(list, i++);
      if (uid.AsString().empty()) {
        errors.InvalidText(here, "", "must not be empty");
      } else if (!seen.insert(uid.AsString()).second) {
        errors.Duplicate(here, uid.AsString());
      }
    }
  }
}

void ValidateCompletion(const Change& c, const At& at, FieldErrors& errors) {
  const bool complete = Is(c.now, "Complete");
  const Value ended = c.now["completionTime"];
  const Value started = c.now["startTime"];
  const At conditions = at / "conditions";
  const At ended_at = at / "completionTime";
  if ((c.Condition("Complete") || c.Condition("Failed")) && complete && Is(c.now, "Failed")) {
    errors.InvalidShape(conditions, "cannot set Complete=True and Failed=true conditions");
  }
  if ((c.Condition("Complete") || c.Condition("FailureTarget")) && complete &&
      Is(c.now, "FailureTarget")) {
    errors.InvalidShape(conditions, "cannot set Complete=True and FailureTarget=true conditions");
  }
  if (c.Condition("Complete") || c.Field("completionTime")) {
    if (ended && !complete) {
      errors.Invalid(ended_at, ended,
                     "cannot set completionTime when there is no Complete=True condition");
    }
    if (!ended && complete) {
      errors.Required(ended_at, "completionTime is required for Complete jobs");
    }
  }
  if ((c.Field("startTime") || c.Field("completionTime")) && started && ended &&
      ended.AsString() < started.AsString()) {
    errors.Invalid(ended_at, ended, "must be equal to or after `startTime`");
  }
  if ((c.Condition("Failed") || c.Field("failedIndexes")) && Is(c.now, "Failed") &&
      !Is(c.now, "FailureTarget")) {
    errors.InvalidShape(
        conditions, "cannot set Failed=True condition without the FailureTarget=true condition");
  }
  if ((c.Condition("Complete") || c.Condition("SuccessCriteriaMet")) && complete &&
      !Is(c.now, "SuccessCriteriaMet")) {
    errors.InvalidShape(
        conditions,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  }
}

void ValidateFinished(const Change& c, const At& at, FieldErrors& errors) {
  if (!Finished(c.now)) return;
  const Value active = c.now["active"];
  if ((c.Finish() || c.Field("active")) && active.AsInt() > 0) {
    errors.Invalid(at / "active", active, "active>0 is invalid for finished job");
  }
  const bool parked =
      c.spec["suspend"].AsBool() && c.spec["completions"] && c.spec["completions"].AsInt() == 0;
  if ((c.Finish() || c.Field("startTime")) && !parked && !c.now["startTime"]) {
    errors.Required(at / "startTime", "startTime is required for finished job");
  }
  const Value uncounted = c.now["uncountedTerminatedPods"];
  if ((c.Finish() || c.Field("uncountedTerminatedPods")) &&
      uncounted["succeeded"].size() + uncounted["failed"].size() > 0) {
    errors.InvalidRaw(at / "uncountedTerminatedPods",
                      InternalJson(uncounted, "io.k8s.api.batch.v1.UncountedTerminatedPods"),
                      "must be empty for finished job");
  }
}

void ValidateIndexes(const Change& c, const At& at, FieldErrors& errors) {
  const Value completions = c.spec["completions"];
  const Value completed = c.now["completedIndexes"];
  const Value failed = c.now["failedIndexes"];
  const auto format = [&](Value text, const char* name) {
    const std::string why = IndexesError(text.AsString(), completions.AsInt());
    if (!why.empty()) {
      errors.Invalid(at / name, text, fmt::format("error parsing {}: {}", name, why));
    }
  };
  const bool indexed = c.spec["completionMode"].AsString() == "Indexed";
  if (c.Field("completedIndexes") && completions) format(completed, "completedIndexes");
  if (c.Field("failedIndexes") && completions && c.spec["backoffLimitPerIndex"] && failed) {
    format(failed, "failedIndexes");
  }
  if (c.Field("completedIndexes") && !completed.AsString().empty() && !indexed) {
    errors.Invalid(at / "completedIndexes", completed,
                   "cannot set non-empty completedIndexes when non-indexed completion mode");
  }
  if (c.Field("failedIndexes") && failed && !c.spec["backoffLimitPerIndex"]) {
    errors.Invalid(at / "failedIndexes", failed,
                   "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  }
  if ((c.Field("failedIndexes") || c.Field("completedIndexes")) && completions && failed) {
    const std::string why =
        IndexesOverlap(completed.AsString(), failed.AsString(), completions.AsInt());
    if (!why.empty()) errors.Invalid(at / "failedIndexes", failed, why);
  }
}

void ValidateSuccess(const Change& c, const At& at, FieldErrors& errors) {
  const bool met = Is(c.now, "SuccessCriteriaMet");
  const At conditions = at / "conditions";
  if (met && Is(c.now, "Failed")) {
    errors.InvalidShape(conditions,
                        "cannot set SuccessCriteriaMet=True and Failed=true conditions");
  }
  if (met && Is(c.now, "FailureTarget")) {
    errors.InvalidShape(conditions,
                        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  }
  if (c.spec["successPolicy"] && !met && Is(c.now, "Complete")) {
    errors.InvalidShape(conditions,
                        "cannot set Complete=True for Job with SuccessPolicy unless "
                        "SuccessCriteriaMet=True");
  }
}

void ValidateNoWayBack(const Change& c, const At& at, FieldErrors& errors) {
  const At conditions = at / "conditions";
  for (const char* type : {"Failed", "Complete", "FailureTarget"}) {
    if (Is(c.before, type) && !Is(c.now, type)) {
      errors.InvalidShape(conditions,
                          fmt::format("cannot disable the terminal {}=True condition", type));
    }
  }
  const bool scaled = c.spec["completionMode"].AsString() == "Indexed" &&
                      Same(c.spec["completions"], c.spec["parallelism"]);
  for (const char* name : {"failed", "succeeded"}) {
    if (std::string_view(name) == "succeeded" && scaled) continue;
    if (c.now[name].AsInt() < c.before[name].AsInt()) {
      errors.InvalidRaw(at / name, std::to_string(c.now[name].AsInt()),
                        fmt::format("cannot decrease the {} counter", name));
    }
  }
  if (c.now["completionTime"] && c.before["completionTime"] && c.Field("completionTime")) {
    errors.Invalid(at / "completionTime", c.now["completionTime"], std::string(kImmutable));
  }
  const bool resuming = Is(c.before, "Suspended") && Is(c.now, "Suspended", "False");
  if (c.Field("startTime") && !resuming && c.before["startTime"] && !c.spec["suspend"].AsBool()) {
    errors.Invalid(at / "startTime", c.now["startTime"],
                   "field is immutable for unsuspended job once set");
  }
  if (Is(c.before, "SuccessCriteriaMet") && !Is(c.now, "SuccessCriteriaMet")) {
    errors.InvalidShape(conditions, "cannot disable the SuccessCriteriaMet=True condition");
  }
  if (Is(c.before, "Complete") && !Is(c.before, "SuccessCriteriaMet") &&
      Is(c.now, "SuccessCriteriaMet")) {
    errors.InvalidShape(conditions,
                        "cannot set SuccessCriteriaMet=True for Job already has Complete=true "
                        "conditions");
  }
}

}  // namespace

void ValidateJobStatus(Value o, Value old, FieldErrors& errors) {
  const At at("status");
  const Change c{o["spec"], o["status"], old["status"]};
  ValidateNumbers(c.now, at, errors);
  ValidateCompletion(c, at, errors);
  ValidateFinished(c, at, errors);
  ValidateIndexes(c, at, errors);
  const Value terminating = c.now["terminating"];
  if ((c.Finish() || c.Field("terminating")) && terminating.AsInt() > 0 && Finished(c.now)) {
    errors.Invalid(at / "terminating", terminating, "terminating>0 is invalid for finished job");
  }
  if ((c.Field("ready") || c.Field("active")) && c.now["ready"].AsInt() > c.now["active"].AsInt()) {
    errors.Invalid(at / "ready", c.now["ready"], "cannot set more ready pods than active");
  }
  ValidateSuccess(c, at, errors);
  ValidateNoWayBack(c, at, errors);
}

}  // namespace sextant::api
