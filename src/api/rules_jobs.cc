// Jobs. Source: pkg/apis/batch/validation/validation.go, pkg/registry/batch/job/strategy.go.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "api/conditions.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "api/selector.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxIndexedParallelism = 100000;
constexpr int64_t kMaxFailedIndexes = 100000;
constexpr int64_t kManyCompletions = 100000;
constexpr int64_t kMaxWithManyCompletions = 10000;
constexpr int kMaxRules = 20;
constexpr int kMaxPatterns = 20;
constexpr int kMaxExitCodes = 255;
constexpr int kMaxManagedBy = 63;
constexpr size_t kMaxIndexesText = size_t{64} << 10;

bool IsIndexed(Value spec) { return spec["completionMode"].AsString() == "Indexed"; }

void ValidateHasLabel(Value labels, std::string_view key, std::string_view expected, const At& at,
                      FieldErrors& errors) {
  const At here = at.Key("labels", key);
  if (!labels.Has(key)) {
    errors.Required(here, fmt::format("must be '{}'", expected));
  } else if (labels[key].AsString() != expected) {
    errors.Invalid(here, labels, fmt::format("must be '{}'", expected));
  }
}

// A selector that the server made selects by the Job's own uid.
void ValidateGeneratedSelector(Value job, FieldErrors& errors) {
  const Value spec = job["spec"];
  if (spec["manualSelector"].AsBool() || !spec["selector"]) return;
  const std::string_view uid = job["metadata"]["uid"].AsString();
  const std::string_view name = job["metadata"]["name"].AsString();
  const Value labels = spec["template"]["metadata"]["labels"];
  const At at("spec");
  const At metadata = at / "template.metadata";
  struct Expected {
    std::string_view key;
    std::string_view value;
  };
  const Expected expected[] = {{"controller-uid", uid},
                               {"job-name", name},
                               {"batch.kubernetes.io/controller-uid", uid},
                               {"batch.kubernetes.io/job-name", name}};
  Editor edit;
  for (const Expected& e : expected) {
    ValidateHasLabel(labels, e.key, e.value, metadata, errors);
    edit.Root().Set(e.key, e.value);
  }
  const Object own = std::move(edit).Finish();
  const Result<LabelSelector> selector = LabelSelector::From(spec["selector"]);
  if (selector && !selector->Matches(own.root())) {
    errors.Invalid(at / "selector", spec["selector"], "`selector` not auto-generated");
  }
}

void ValidateExitCodes(Value codes, const Names& containers, const At& at, FieldErrors& errors) {
  const std::string_view op = codes["operator"].AsString();
  if (op.empty()) {
    errors.Required(at / "operator", "valid values: [\"In\" \"NotIn\"]");
  } else {
    OneOf(codes, "operator", {"In", "NotIn"}, at, errors);
  }
  const Value container = codes["containerName"];
  if (container && !containers.contains(container.AsString())) {
    errors.Invalid(at / "containerName", container,
                   "must be one of the container or initContainer names in the pod template");
  }
  const Value values = codes["values"];
  if (values.empty()) {
    errors.InvalidRaw(at / "values", "[]", "at least one value is required");
  } else if (values.size() > kMaxExitCodes) {
    errors.TooMany(at / "values", static_cast<int>(values.size()), kMaxExitCodes);
  }
  bool ordered = true;
  std::set<int64_t> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const At here = at.Item("values", i);
    const int64_t code = values.at(i).AsInt();
    if (op == "In" && code == 0) {
      errors.InvalidRaw(here, "0", "must not be 0 for the In operator");
    }
    if (!seen.insert(code).second) errors.DuplicateRaw(here, std::to_string(code));
    if (i > 0 && values.at(i - 1).AsInt() > code) ordered = false;
  }
  if (!ordered) errors.Invalid(at / "values", values, "must be ordered");
}

void ValidateConditionPatterns(Value patterns, const At& at, FieldErrors& errors) {
  if (patterns.size() > kMaxPatterns) {
    errors.TooMany(at, static_cast<int>(patterns.size()), kMaxPatterns);
  }
  size_t i = 0;
  for (Value p : patterns.items()) {
    const At here = at.Item("", i++);
    Complain(IsQualifiedName(p["type"].AsString()), p["type"].AsString(), here / "type", errors);
    if (p["status"].AsString().empty()) {
      errors.Required(here / "status", "valid values: [\"False\" \"True\" \"Unknown\"]");
    } else {
      OneOf(p, "status", {"False", "True", "Unknown"}, here, errors);
    }
  }
}

void ValidateFailurePolicy(Value spec, const At& at, FieldErrors& errors) {
  const Value rules = spec["podFailurePolicy"]["rules"];
  if (rules.size() > kMaxRules) {
    errors.TooMany(at / "rules", static_cast<int>(rules.size()), kMaxRules);
  }
  Names containers;
  for (const char* list : {"containers", "initContainers"}) {
    for (Value c : spec["template"]["spec"][list].items()) {
      containers.emplace(c["name"].AsString());
    }
  }
  size_t i = 0;
  for (Value rule : rules.items()) {
    const At here = at.Item("rules", i++);
    const std::string_view action = rule["action"].AsString();
    if (action.empty()) {
      errors.Required(here / "action",
                      "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    } else if (action == "FailIndex") {
      if (!spec["backoffLimitPerIndex"]) {
        errors.InvalidText(here / "action", action, "requires the backoffLimitPerIndex to be set");
      }
    } else {
      OneOf(rule, "action", {"Count", "FailIndex", "FailJob", "Ignore"}, here, errors);
    }
    const bool codes = static_cast<bool>(rule["onExitCodes"]);
    const bool conditions = !rule["onPodConditions"].empty();
    if (codes) ValidateExitCodes(rule["onExitCodes"], containers, here / "onExitCodes", errors);
    if (conditions) {
      ValidateConditionPatterns(rule["onPodConditions"], here / "onPodConditions", errors);
    }
    if (codes && conditions) {
      errors.InvalidShape(here, "specifying both OnExitCodes and OnPodConditions is not supported");
    }
    if (!codes && !conditions) {
      errors.InvalidShape(here, "specifying one of OnExitCodes and OnPodConditions is required");
    }
  }
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t n = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return n;
}

struct Interval {
  int64_t first = 0;
  int64_t last = 0;
  std::string error;
};

// "3" or "3-5".
Interval ParseInterval(std::string_view text, int64_t completions) {
  Interval interval;
  if (std::ranges::count(text, '-') > 1) {
    interval.error = fmt::format(
        "the fragment {} violates the requirement that an index interval can have at most two "
        "parts "
        "separated by '-'",
        Quote(text));
    return interval;
  }
  const size_t dash = text.find('-');
  int64_t* const ends[] = {&interval.first, &interval.last};
  size_t i = 0;
  for (std::string_view part :
       {text.substr(0, dash), dash == std::string_view::npos ? text : text.substr(dash + 1)}) {
    const std::optional<int64_t> n = Number(part);
    if (!n) {
      interval.error = fmt::format("cannot convert string to integer for index: {}", Quote(part));
      return interval;
    }
    if (*n >= completions) {
      interval.error = fmt::format("too large index: {}", Quote(part));
      return interval;
    }
    *ends[i++] = *n;
  }
  if (dash != std::string_view::npos && interval.first >= interval.last) {
    interval.error = fmt::format("non-increasing order, previous: {}, current: {}", interval.first,
                                 interval.last);
  }
  return interval;
}

struct Indexes {
  int64_t total = 0;
  std::string error;
  std::vector<Interval> intervals;
};

Indexes ParseIndexes(std::string_view text, int64_t completions) {
  Indexes indexes;
  std::optional<int64_t> last;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    Interval interval = ParseInterval(text.substr(0, comma), completions);
    if (interval.error.empty() && last && *last >= interval.first) {
      interval.error =
          fmt::format("non-increasing order, previous: {}, current: {}", *last, interval.first);
    }
    if (!interval.error.empty()) {
      indexes.error = interval.error;
      return indexes;
    }
    indexes.total += interval.last - interval.first + 1;
    last = interval.last;
    indexes.intervals.push_back(std::move(interval));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return indexes;
}

void ValidateSuccessRule(Value rule, int64_t completions, const At& at, FieldErrors& errors) {
  const Value count = rule["succeededCount"];
  const Value indexes = rule["succeededIndexes"];
  if (!count && !indexes) {
    errors.Required(at, "at least one of succeededCount or succeededIndexes must be specified");
  }
  int64_t total = 0;
  if (indexes) {
    const At here = at / "succeededIndexes";
    if (indexes.AsString().size() > kMaxIndexesText) errors.TooLong(here, kMaxIndexesText);
    const Indexes parsed = ParseIndexes(indexes.AsString(), completions);
    total = parsed.total;
    if (!parsed.error.empty()) {
      total = 0;
      errors.Invalid(here, indexes,
                     fmt::format("error parsing succeededIndexes: {}", parsed.error));
    }
  }
  if (!count) return;
  const At here = at / "succeededCount";
  NonNegative(rule, "succeededCount", at, errors);
  if (count.AsInt() > completions) {
    errors.Invalid(here, count,
                   fmt::format("must be less than or equal to {} (the number of specified "
                               "completions)",
                               completions));
  }
  if (indexes && count.AsInt() > total) {
    errors.Invalid(here, count,
                   fmt::format("must be less than or equal to {} (the number of indexes in the "
                               "specified succeededIndexes field)",
                               total));
  }
}

void ValidateSuccessPolicy(Value spec, const At& at, FieldErrors& errors) {
  const Value policy = spec["successPolicy"];
  if (!policy) return;
  if (!IsIndexed(spec)) {
    errors.InvalidRaw(at, InternalJson(policy, "io.k8s.api.batch.v1.SuccessPolicy"),
                      "requires indexed completion mode");
    return;
  }
  const Value rules = policy["rules"];
  if (rules.empty()) {
    errors.Required(at / "rules",
                    "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kMaxRules) {
    errors.TooMany(at / "rules", static_cast<int>(rules.size()), kMaxRules);
  }
  size_t i = 0;
  for (Value rule : rules.items()) {
    ValidateSuccessRule(rule, spec["completions"].AsInt(), at.Item("rules", i++), errors);
  }
}

void ValidateManagedBy(Value spec, const At& at, FieldErrors& errors) {
  const Value managed = spec["managedBy"];
  if (!managed) return;
  const At here = at / "managedBy";
  const std::string_view text = managed.AsString();
  const size_t slash = text.find('/');
  if (text.empty()) {
    errors.Required(here, "");
  } else if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    errors.InvalidText(here, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    Complain(IsDns1123Subdomain(text.substr(0, slash)), text.substr(0, slash), here, errors);
  }
  if (text.size() > kMaxManagedBy) errors.TooLong(here, kMaxManagedBy);
}

void AtMost(Value v, int64_t most, std::string_view when, const At& at, FieldErrors& errors) {
  if (v && v.AsInt() > most) {
    errors.Invalid(at, v, fmt::format("must be less than or equal to {}{}", most, when));
  }
}

void ValidateIndexedMode(Value spec, const At& at, FieldErrors& errors) {
  const Value completions = spec["completions"];
  const Value failed = spec["maxFailedIndexes"];
  const Value parallelism = spec["parallelism"];
  if (!completions) errors.Required(at / "completions", "when completion mode is Indexed");
  AtMost(parallelism, kMaxIndexedParallelism, " when completion mode is Indexed",
         at / "parallelism", errors);
  if (completions && failed && failed.AsInt() > completions.AsInt()) {
    errors.Invalid(at / "maxFailedIndexes", failed, "must be less than or equal to completions");
  }
  AtMost(failed, kMaxFailedIndexes, "", at / "maxFailedIndexes", errors);
  if (completions.AsInt() <= kManyCompletions || !spec["backoffLimitPerIndex"]) return;
  if (!failed) {
    errors.Required(
        at / "maxFailedIndexes",
        fmt::format("must be specified when completions is above {}", kManyCompletions));
  }
  const std::string when = fmt::format(
      " when completions are above {} and used with backoff limit per index", kManyCompletions);
  AtMost(parallelism, kMaxWithManyCompletions, when, at / "parallelism", errors);
  AtMost(failed, kMaxWithManyCompletions, when, at / "maxFailedIndexes", errors);
}

void ValidateReplacement(Value spec, const At& at, FieldErrors& errors) {
  if (spec["podFailurePolicy"]) {
    OneOf(spec, "podReplacementPolicy", {"Failed"}, at, errors);
  } else {
    OneOf(spec, "podReplacementPolicy", {"Failed", "TerminatingOrFailed"}, at, errors);
  }
}

void ValidateJobRestart(Value spec, const At& at, FieldErrors& errors) {
  const std::string_view policy = spec["template"]["spec"]["restartPolicy"].AsString();
  const At here = at / "template.spec.restartPolicy";
  if (policy.empty() || policy == "Always") {
    errors.Required(here, "valid values: \"OnFailure\", \"Never\"");
  } else if (policy != "OnFailure" && policy != "Never") {
    NotSupported(here, policy, {"OnFailure", "Never"}, errors);
  } else if (spec["podFailurePolicy"] && policy != "Never") {
    errors.InvalidText(here, policy,
                       "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

}  // namespace

void ValidateJobSpecAlone(Value spec, const At& at, FieldErrors& errors) {
  for (const char* name : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                           "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    NonNegative(spec, name, at, errors);
  }
  if (spec["maxFailedIndexes"] && !spec["backoffLimitPerIndex"]) {
    errors.Required(at / "backoffLimitPerIndex", "when maxFailedIndexes is specified");
  }
  ValidateManagedBy(spec, at, errors);
  OneOf(spec, "completionMode", {"NonIndexed", "Indexed"}, at, errors);
  if (IsIndexed(spec)) ValidateIndexedMode(spec, at, errors);
  const std::string_view mode = spec["completionMode"].AsString();
  if (mode.empty() || mode == "NonIndexed") {
    for (const char* name : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (spec[name]) errors.Invalid(at / name, spec[name], "requires indexed completion mode");
    }
  }
  if (spec["podFailurePolicy"]) ValidateFailurePolicy(spec, at / "podFailurePolicy", errors);
  ValidateSuccessPolicy(spec, at / "successPolicy", errors);
  ValidateReplacement(spec, at, errors);
  ValidatePodTemplateSpec(spec["template"], at / "template", errors);
  ValidateJobRestart(spec, at, errors);
}

namespace {

void ValidateJobSpec(Value spec, const At& at, FieldErrors& errors) {
  ValidateJobSpecAlone(spec, at, errors);
  if (!spec["selector"]) {
    errors.Required(at / "selector", "");
  } else {
    ValidateLabelSelector(spec["selector"], at / "selector", errors);
  }
  const Result<LabelSelector> selector = LabelSelector::From(spec["selector"]);
  const Value labels = spec["template"]["metadata"]["labels"];
  if (selector && !selector->Matches(labels)) {
    errors.Invalid(at / "template.metadata.labels", labels,
                   "`selector` does not match template `labels`");
  }
}

// A Job that waits may still be given other resources and another place.
Object LoosenedTemplate(Value template_, Value old, bool scheduling, bool resources) {
  Editor edit;
  const Mut root = edit.Root();
  for (auto [key, value] : old.members()) root.Set(key, value);
  const Mut spec = root["spec"];
  const Value now = template_["spec"];
  if (scheduling) {
    const Value affinity = now["affinity"];
    if (affinity || old["spec"]["affinity"]) {
      SetOrErase(spec["affinity"], "nodeAffinity", affinity["nodeAffinity"]);
      if (!affinity && spec["affinity"].Snapshot().empty()) spec.Erase("affinity");
    }
    for (const char* name : {"nodeSelector", "tolerations", "schedulingGates"}) {
      SetOrErase(spec, name, now[name]);
    }
    for (const char* name : {"annotations", "labels"}) {
      SetOrErase(root["metadata"], name, template_["metadata"][name]);
    }
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!resources || now[list].size() != old["spec"][list].size()) continue;
    for (size_t i = 0; i < now[list].size(); ++i) {
      const Value c = now[list].at(i);
      if (Equal(c["name"], old["spec"][list].at(i)["name"])) {
        SetOrErase(spec[list].at(i), "resources", c["resources"]);
      }
    }
  }
  return std::move(edit).Finish();
}

void ValidateTemplateChange(Value job, Value old, const At& at, FieldErrors& errors) {
  const Value template_ = job["spec"]["template"];
  const Value before = old["spec"]["template"];
  const bool suspended = old["spec"]["suspend"].AsBool();
  const bool parked = IsConditionTrue(old["status"]["conditions"], "Suspended");
  const bool loose =
      suspended && (!old["status"]["startTime"] || parked) && old["status"]["active"].AsInt() == 0;
  const Object allowed = LoosenedTemplate(template_, before, loose, loose);
  if (loose) {
    // Only the spec is looked at here; labels and annotations may change.
    if (Same(template_["spec"], allowed["spec"])) return;
    errors.InvalidRaw(at / "template.spec",
                      InternalJson(template_["spec"], "io.k8s.api.core.v1.PodSpec"),
                      std::string(kImmutable));
  } else if (!Same(template_, before)) {
    errors.InvalidRaw(at / "template",
                      InternalJson(template_, "io.k8s.api.core.v1.PodTemplateSpec"),
                      std::string(kImmutable));
  }
}

void ValidateCompletionsChange(Value spec, Value old, const At& at, FieldErrors& errors) {
  if (!IsIndexed(spec)) {
    Immutable(spec["completions"], old["completions"], at / "completions", errors);
  } else if (!Same(spec["completions"], old["completions"]) && spec["completions"] &&
             spec["completions"].AsInt() != spec["parallelism"].AsInt()) {
    errors.Invalid(at / "completions", spec["completions"],
                   "can only be modified in tandem with spec.parallelism");
  }
}

}  // namespace

void ValidateJob(Value o, FieldErrors& errors) {
  ValidateGeneratedSelector(o, errors);
  const Value spec = o["spec"];
  const At at("spec");
  ValidateJobSpec(spec, at, errors);
  if (!IsIndexed(spec) || spec["completions"].AsInt() <= 0) return;
  const std::string_view name = o["metadata"]["name"].AsString();
  const std::string hostname = fmt::format("{}-{}", name, spec["completions"].AsInt() - 1);
  if (!IsDns1123Label(hostname).empty()) {
    errors.InvalidText(
        "metadata.name", name,
        fmt::format("will not able to create pod with invalid DNS label: {}", hostname));
  }
}

void ValidateJobUpdate(Value o, Value old, FieldErrors& errors) {
  const Value spec = o["spec"];
  const Value before = old["spec"];
  const At at("spec");
  ValidateJobSpec(spec, at, errors);  // as of a new one, too: told twice
  ValidateCompletionsChange(spec, before, at, errors);
  Immutable(spec["selector"], before["selector"], at / "selector", errors);
  ValidateTemplateChange(o, old, at, errors);
  Immutable(spec["completionMode"], before["completionMode"], at / "completionMode", errors);
  if (!Same(spec["podFailurePolicy"], before["podFailurePolicy"])) {
    errors.InvalidRaw(
        at / "podFailurePolicy",
        InternalJson(spec["podFailurePolicy"], "io.k8s.api.batch.v1.PodFailurePolicy"),
        std::string(kImmutable));
  }
  for (const char* name : {"backoffLimitPerIndex", "managedBy"}) {
    Immutable(spec[name], before[name], at / name, errors);
  }
  if (!Same(spec["successPolicy"], before["successPolicy"])) {
    errors.InvalidRaw(at / "successPolicy",
                      InternalJson(spec["successPolicy"], "io.k8s.api.batch.v1.SuccessPolicy"),
                      std::string(kImmutable));
  }
}

std::string IndexesError(std::string_view text, int64_t completions) {
  return ParseIndexes(text, completions).error;
}

std::string IndexesOverlap(std::string_view completed, std::string_view failed,
                           int64_t completions) {
  const Indexes a = ParseIndexes(completed, completions);
  const Indexes b = ParseIndexes(failed, completions);
  for (const Interval& x : a.intervals) {
    for (const Interval& y : b.intervals) {
      if (x.first > y.last || y.first > x.last) continue;
      return fmt::format("failedIndexes and completedIndexes overlap at index: {}",
                         std::max(x.first, y.first));
    }
  }
  return {};
}

}  // namespace sextant::api
