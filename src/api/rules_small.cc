// Kinds of which there is little to say: leases, runtime classes, events, IP addresses, GPU
// pools.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxEventName = 128;
constexpr size_t kMaxEventNote = 1024;
constexpr int64_t kMaxGpus = 1024;

void ValidateSeries(Value series, FieldErrors& errors) {
  if (!series) return;
  if (series["count"].AsInt() < 2) errors.InvalidText("series.count", "", "should be at least 2");
  if (series["lastObservedTime"].AsString().empty()) {
    errors.Required("series.lastObservedTime", "");
  }
}

// The two groups that serve events name some fields differently.
struct EventFields {
  Value object;
  std::string_view message;
  const char* reporter;
};

EventFields FieldsOf(Value o) {
  const bool core = o["apiVersion"].AsString() == "v1";
  const char* reporter = core ? "reportingComponent" : "reportingController";
  return {o[core ? "involvedObject" : "regarding"], o[core ? "message" : "note"].AsString(),
          reporter};
}

void ValidateNewEvent(Value o, const EventFields& fields, FieldErrors& errors) {
  const std::string_view reporter = o[fields.reporter].AsString();
  if (reporter.empty()) errors.Required(fields.reporter, "");
  Complain(IsQualifiedName(reporter), reporter, At(fields.reporter), errors);
  for (const char* name : {"reportingInstance", "action", "reason"}) {
    const std::string_view text = o[name].AsString();
    if (text.empty()) errors.Required(name, "");
    if (text.size() > kMaxEventName) {
      errors.InvalidText(name, "", fmt::format("can have at most {} characters", kMaxEventName));
    }
  }
  if (fields.message.size() > kMaxEventNote) {
    errors.InvalidText("message", "", fmt::format("can have at most {} characters", kMaxEventNote));
  }
}

}  // namespace

void ValidateEvent(Value o, FieldErrors& errors) {
  const EventFields fields = FieldsOf(o);
  const std::string_view ns = o["metadata"]["namespace"].AsString();
  const std::string_view about = fields.object["namespace"].AsString();
  const bool dated = !o["eventTime"].AsString().empty();
  const bool homeless = ns == "default" || (dated ? ns == "kube-system" : ns.empty());
  if (about.empty() ? !homeless : !dated && ns != about) {
    errors.InvalidText("involvedObject.namespace", about, "does not match event.namespace");
  }
  if (dated) ValidateNewEvent(o, fields, errors);
  Complain(IsDns1123Subdomain(ns), ns, At("namespace"), errors);
}

void ValidateEventCreate(Value o, FieldErrors& errors) {
  ValidateEvent(o, errors);
  if (o["apiVersion"].AsString() == "v1") return;
  ValidateSeries(o["series"], errors);
  if (o["eventTime"].AsString().empty()) errors.Required("eventTime", "");
  const std::string_view type = o["type"].AsString();
  if (type != "Normal" && type != "Warning") {
    errors.InvalidText("type", "", fmt::format("has invalid value: {}", type));
  }
  for (const char* name : {"deprecatedFirstTimestamp", "deprecatedLastTimestamp"}) {
    if (!o[name].AsString().empty()) {
      const bool first = std::string_view(name) == "deprecatedFirstTimestamp";
      errors.InvalidText(first ? "firstTimestamp" : "lastTimestamp", "", "needs to be unset");
    }
  }
  if (o["deprecatedCount"].AsInt() != 0) errors.InvalidText("count", "", "needs to be unset");
  if (!o["deprecatedSource"].empty()) errors.InvalidText("source", "", "needs to be unset");
}

void ValidateEventUpdate(Value o, Value old, FieldErrors& errors) {
  if (o["apiVersion"].AsString() == "v1") return;
  if (!Same(o["series"], old["series"])) ValidateSeries(o["series"], errors);
  struct Fixed {
    const char* name;
    const char* shown;
  };
  constexpr Fixed kFixed[] = {{"regarding", "involvedObject"},
                              {"reason", "reason"},
                              {"note", "message"},
                              {"deprecatedSource", "source"},
                              {"deprecatedFirstTimestamp", "firstTimestamp"},
                              {"deprecatedLastTimestamp", "lastTimestamp"},
                              {"deprecatedCount", "count"},
                              {"type", "type"},
                              {"eventTime", "eventTime"},
                              {"action", "action"},
                              {"related", "related"},
                              {"reportingController", "reportingController"},
                              {"reportingInstance", "reportingInstance"}};
  for (const Fixed& f : kFixed) Immutable(o[f.name], old[f.name], At(f.shown), errors);
}

void ValidateLease(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  if (spec["leaseDurationSeconds"] && spec["leaseDurationSeconds"].AsInt() <= 0) {
    errors.Invalid(at / "leaseDurationSeconds", spec["leaseDurationSeconds"],
                   "must be greater than 0");
  }
  NonNegative(spec, "leaseTransitions", at, errors);
  if (!spec["preferredHolder"].AsString().empty() && spec["strategy"].AsString().empty()) {
    errors.Forbidden(at / "preferredHolder", "may only be specified if `strategy` is defined");
  }
}

void ValidateRuntimeClass(Value o, FieldErrors& errors) {
  const std::string_view handler = o["handler"].AsString();
  if (handler.empty()) {
    errors.Required("handler", "");
  } else {
    Complain(NameIsDnsLabel(handler, false), handler, At("handler"), errors);
  }
  const Value fixed = o["overhead"]["podFixed"];
  if (fixed) {
    Editor edit;
    edit.Root().Set("limits", fixed);
    const Object limits = std::move(edit).Finish();
    ValidateContainerResources(limits.root(), {}, At("overhead"), errors);
  }
  const At scheduling("scheduling");
  ValidateLabels(o["scheduling"]["nodeSelector"], scheduling / "nodeSelector", errors);
  ValidateTolerations(o["scheduling"]["tolerations"], scheduling / "tolerations", errors);
}

void ValidateRuntimeClassUpdate(Value o, Value old, FieldErrors& errors) {
  Immutable(o["handler"], old["handler"], At("handler"), errors);
}

// Our own kind, in the words that a custom resource's schema would give.
void ValidateGpuPool(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  RequiredText(spec, "model", at, errors);
  const int64_t count = spec["count"].AsInt();
  if (count < 0) {
    errors.Invalid(at / "count", spec["count"], std::string(kNotNegative));
  } else if (count > kMaxGpus) {
    errors.Invalid(at / "count", spec["count"], RangeComplaint(0, kMaxGpus));
  }
  OneOf(spec, "allocation", {"dra", "plugin"}, at, errors);
  const Value node = spec["node"];
  const At node_at = at / "node";
  for (const char* name : {"cpu", "memory"}) {
    if (node[name]) ValidatePositiveAmount(node[name], node_at / name, errors);
  }
  if (const std::string_view zone = node["zone"].AsString(); !zone.empty()) {
    Complain(IsLabelValue(zone), zone, node_at / "zone", errors);
  }
  if (const std::string_view rack = node["rack"].AsString(); !rack.empty()) {
    Complain(IsLabelValue(rack), rack, node_at / "rack", errors);
  }
  Names devices;
  size_t i = 0;
  for (Value device : spec["devices"].items()) {
    const At here = at.Item("devices", i++);
    const std::string_view name = device["name"].AsString();
    RequiredText(device, "name", here, errors);
    if (!name.empty() && !devices.emplace(name).second) errors.Duplicate(here / "name", name);
    NonNegative(device, "count", here, errors);
  }
  const At resources = at / "resources";
  for (auto [name, quantity] : spec["resources"].members()) {
    ValidateResourceName(name, resources.Key("", name), errors);
    ValidateAmount(name, quantity, resources.Key("", name), errors);
  }
}

}  // namespace sextant::api
