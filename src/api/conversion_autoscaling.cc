// autoscaling/v1 and v2 of the HorizontalPodAutoscaler: stored as v2. What v1 has no field for
// travels in annotations.
//
// Source: k8s.io/kubernetes pkg/apis/autoscaling/{annotations,v1/conversion}.go at v1.36.3.
#include <array>
#include <span>
#include <string>

#include "api/conversion.h"
#include "api/json.h"
#include "api/rules_kinds.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::string_view kScaleDownTolerance =
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
constexpr std::string_view kScaleUpTolerance = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
constexpr std::array kOfSpec = {kMetrics, kBehavior, kScaleDownTolerance, kScaleUpTolerance};
constexpr std::array kOfStatus = {kCurrentMetrics, kConditions};

constexpr std::string_view kV1 = "autoscaling/v1";
constexpr std::string_view kV2 = "autoscaling/v2";
constexpr std::string_view kV1Package = "io.k8s.api.autoscaling.v1.";
constexpr std::string_view kV2Package = "io.k8s.api.autoscaling.v2.";

// One field of a metric: where v2 and where v1 has it.
struct Place {
  std::string_view member;  // "resource", "pods", ...
  bool status;
  std::string_view v2;
  std::string_view v1;
};
constexpr Place kPlaces[] = {
    {"object", false, "describedObject", "target"},
    {"object", false, "metric.name", "metricName"},
    {"object", false, "metric.selector", "selector"},
    {"object", false, "target.value", "targetValue"},
    {"object", false, "target.averageValue", "averageValue"},
    {"pods", false, "metric.name", "metricName"},
    {"pods", false, "metric.selector", "selector"},
    {"pods", false, "target.averageValue", "targetAverageValue"},
    {"resource", false, "name", "name"},
    {"resource", false, "target.averageUtilization", "targetAverageUtilization"},
    {"resource", false, "target.averageValue", "targetAverageValue"},
    {"containerResource", false, "name", "name"},
    {"containerResource", false, "container", "container"},
    {"containerResource", false, "target.averageUtilization", "targetAverageUtilization"},
    {"containerResource", false, "target.averageValue", "targetAverageValue"},
    {"external", false, "metric.name", "metricName"},
    {"external", false, "metric.selector", "metricSelector"},
    {"external", false, "target.value", "targetValue"},
    {"external", false, "target.averageValue", "targetAverageValue"},
    {"object", true, "describedObject", "target"},
    {"object", true, "metric.name", "metricName"},
    {"object", true, "metric.selector", "selector"},
    {"object", true, "current.value", "currentValue"},
    {"object", true, "current.averageValue", "averageValue"},
    {"pods", true, "metric.name", "metricName"},
    {"pods", true, "metric.selector", "selector"},
    {"pods", true, "current.averageValue", "currentAverageValue"},
    {"resource", true, "name", "name"},
    {"resource", true, "current.averageUtilization", "currentAverageUtilization"},
    {"resource", true, "current.averageValue", "currentAverageValue"},
    {"containerResource", true, "name", "name"},
    {"containerResource", true, "container", "container"},
    {"containerResource", true, "current.averageUtilization", "currentAverageUtilization"},
    {"containerResource", true, "current.averageValue", "currentAverageValue"},
    {"external", true, "metric.name", "metricName"},
    {"external", true, "metric.selector", "metricSelector"},
    {"external", true, "current.value", "currentValue"},
    {"external", true, "current.averageValue", "currentAverageValue"},
};

const Message* FindMessage(std::string_view package, std::string_view name) {
  return Registry::Builtin().FindMessage(std::string(package) + std::string(name));
}

// What v1 leaves to be seen from the values.
std::string_view TargetType(std::string_view member, Value target) {
  if (member == "pods") return "AverageValue";
  if (member == "object") return target["averageValue"] ? "AverageValue" : "Value";
  if (member == "external") return target["value"] ? "Value" : "AverageValue";
  return target["averageUtilization"] ? "Utilization" : "AverageValue";
}

void ConvertMetric(Value from, Mut to, bool status, bool to_v2) {
  to.Set("type", from["type"]);
  for (const Place& place : kPlaces) {
    const Value source = from[place.member];
    if (place.status != status || !source) continue;
    const Value value = source.Path(to_v2 ? place.v1 : place.v2);
    if (value) to[place.member].Path(to_v2 ? place.v2 : place.v1).Set(value);
  }
  if (!to_v2 || status) return;
  for (const std::string& member : to.Keys()) {
    if (member == "type") continue;
    const Mut target = to[member]["target"];
    target.Set("type", TargetType(member, target.Snapshot()));
  }
}

bool IsCpuPercent(Value metric) {
  const Value source = metric["resource"];
  return metric["type"].AsString() == "Resource" && source["name"].AsString() == "cpu" &&
         source["target"]["averageUtilization"];
}

// A list of metrics in the words of one version, in their canonical form.
Object Metrics(Value metrics, bool status, bool to_v2) {
  const Message* message = FindMessage(to_v2 ? kV2Package : kV1Package,
                                       status ? std::string_view("MetricStatus") : "MetricSpec");
  Editor list;
  list.Root().SetList();
  for (Value metric : metrics.items()) {
    Editor one;
    ConvertMetric(metric, one.Root(), status, to_v2);
    list.Root().Append().Set(std::move(one).Finish(message));
  }
  return std::move(list).Finish();
}

// Go's internal types have no JSON names of their own.
void LowerNames(Value from, Mut to) {
  if (from.IsMap()) {
    to.SetMap();
    for (auto [key, value] : from.members()) {
      std::string name(key);
      if (!name.empty()) name[0] = AsciiLower(name[0]);
      if (!value.IsNull()) LowerNames(value, to[name]);
    }
  } else if (from.IsList()) {
    to.SetList();
    for (Value item : from.items()) LowerNames(item, to.Append());
  } else {
    to.Set(from);
  }
}

void DropRoundTrip(Mut metadata) {
  if (!metadata.Has("annotations")) return;
  for (std::string_view name : kOfSpec) metadata["annotations"].Erase(name);
  for (std::string_view name : kOfStatus) metadata["annotations"].Erase(name);
  if (metadata["annotations"].size() == 0) metadata.Erase("annotations");
}

Object ParsedAnnotation(Value object, std::string_view name) {
  const Value text = object["metadata"]["annotations"][name];
  if (!text) return {};
  auto parsed = ParseJson(text.AsString());
  return parsed ? *std::move(parsed) : Object();
}

void SpecToV2(Value object, Mut root) {
  const Mut spec = root["spec"];
  spec.Erase("targetCPUUtilizationPercentage");
  const Object others = ParsedAnnotation(object, kMetrics);
  if (others.root().IsList()) spec["metrics"].Set(Metrics(others.root(), false, true));
  if (const Value percent = object["spec"]["targetCPUUtilizationPercentage"]) {
    const Mut metric = spec["metrics"].Append();
    metric.Set("type", "Resource");
    metric["resource"].Set("name", "cpu");
    metric["resource"]["target"].Set("type", "Utilization");
    metric["resource"]["target"].Set("averageUtilization", percent);
  }
  DefaultAutoscalerMetrics(spec);
  const Object behavior = ParsedAnnotation(object, kBehavior);
  if (behavior && !behavior.root().empty()) {
    Editor lowered;
    lowered.Keep(behavior);  // its texts are shared until Finish
    LowerNames(behavior.root(), lowered.Root());
    spec["behavior"].Set(std::move(lowered).Finish());
  }
}

void StatusToV2(Value object, Mut root) {
  const Mut status = root["status"];
  status.Erase("currentCPUUtilizationPercentage");
  const Object current = ParsedAnnotation(object, kCurrentMetrics);
  if (current.root().IsList()) {
    status["currentMetrics"].Set(Metrics(current.root(), true, true));
  } else if (const Value percent = object["status"]["currentCPUUtilizationPercentage"]) {
    const Mut metric = status["currentMetrics"].Append();
    metric.Set("type", "Resource");
    metric["resource"].Set("name", "cpu");
    metric["resource"]["current"].Set("averageUtilization", percent);
  }
  const Object conditions = ParsedAnnotation(object, kConditions);
  if (conditions.root().IsList()) status["conditions"].Set(conditions);
}

void Annotate(Mut root, std::string_view name, const Object& value) {
  root["metadata"]["annotations"].Set(name, ToJson(value.root()));
}

}  // namespace

Object AutoscalerToStored(Value object) {
  if (object["apiVersion"].AsString() != kV1) return {};
  const Object from = CopyOf(object);
  Editor edit(from);
  const Mut root = edit.Root();
  root.Set("apiVersion", kV2);
  SpecToV2(from.root(), root);
  StatusToV2(from.root(), root);
  DropRoundTrip(root["metadata"]);
  return std::move(edit).Finish(FindMessage(kV2Package, "HorizontalPodAutoscaler"));
}

Object AutoscalerFromStored(const Object& object) {
  Editor edit(object);
  const Mut root = edit.Root();
  root.Set("apiVersion", kV1);
  DropRoundTrip(root["metadata"]);
  const Value metrics = object["spec"]["metrics"];
  Editor others;
  others.Keep(object);
  others.Root().SetList();
  bool cpu = false;
  for (Value metric : metrics.items()) {
    if (!IsCpuPercent(metric)) {
      others.Root().Append().Set(metric);
    } else if (!cpu) {
      cpu = true;
      root["spec"].Set("targetCPUUtilizationPercentage",
                       metric["resource"]["target"]["averageUtilization"]);
    }
  }
  const Object other = std::move(others).Finish();
  if (!other.root().empty()) Annotate(root, kMetrics, Metrics(other.root(), false, false));
  const Value current = object["status"]["currentMetrics"];
  for (Value metric : current.items()) {
    const Value source = metric["resource"];
    const Value percent = source["current"]["averageUtilization"];
    if (source["name"].AsString() == "cpu" && percent) {
      root["status"].Set("currentCPUUtilizationPercentage", percent);
    }
  }
  if (!current.empty()) Annotate(root, kCurrentMetrics, Metrics(current, true, false));
  if (const Value behavior = object["spec"]["behavior"]) {
    root["metadata"]["annotations"].Set(
        kBehavior,
        InternalJson(behavior, std::string(kV2Package) + "HorizontalPodAutoscalerBehavior"));
  }
  if (const Value conditions = object["status"]["conditions"]; !conditions.empty()) {
    Annotate(root, kConditions, CopyOf(conditions));
  }
  return std::move(edit).Finish(FindMessage(kV1Package, "HorizontalPodAutoscaler"));
}

void KeepAutoscaler(Mut object, Value old, Kept kept) {
  const Mut metadata = object["metadata"];
  const Value before = old["metadata"]["annotations"];
  if (!metadata.Has("annotations") && before.empty()) return;
  const auto names = kept == Kept::kSpec ? std::span<const std::string_view>(kOfSpec) : kOfStatus;
  for (std::string_view name : names) SetOrErase(metadata["annotations"], name, before[name]);
  if (metadata["annotations"].size() == 0) metadata.Erase("annotations");
}

}  // namespace sextant::api
