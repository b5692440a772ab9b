// What registries' strategies do to objects on the way in. Source: pkg/registry/*/*/strategy.go.
#include <algorithm>
#include <charconv>

#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

constexpr std::string_view kKubeFinalizer = "kubernetes";

}  // namespace

// Configuration by the API (dynamic kubelet configuration) is gone.
void PrepareNode(Mut o, Value old) {
  if (!old || !old["spec"]["configSource"]) o["spec"].Erase("configSource");
  if (!old || !old["status"]["config"]) o["status"].Erase("config");
}

void PrepareNamespace(Mut o, Value old) {
  const std::string name(o["metadata"]["name"].AsString());
  if (!name.empty()) o["metadata"]["labels"].Set("kubernetes.io/metadata.name", name);
  if (old) {
    SetOrErase(o["spec"], "finalizers", old["spec"]["finalizers"]);
    return;
  }
  o["status"].Set("phase", "Active");
  const Mut finalizers = o["spec"]["finalizers"];
  for (size_t i = 0, n = finalizers ? finalizers.size() : 0; i < n; ++i) {
    if (finalizers.at(i).AsString() == kKubeFinalizer) return;
  }
  finalizers.Append().SetString(kKubeFinalizer);
}

bool NamespaceHeld(Value o) { return !o["spec"]["finalizers"].empty(); }

void NamespaceOnDelete(Mut o) { o["status"].Set("phase", "Terminating"); }

// A Job without manualSelector selects its Pods by its own uid.
void PrepareJob(Mut o, Value old) {
  if (old || o["spec"]["manualSelector"].AsBool()) return;
  const std::string name(o["metadata"]["name"].AsString());
  const std::string uid(o["metadata"]["uid"].AsString());
  constexpr size_t kMaxLabel = 63;  // longer names are refused as the template's label
  const Mut labels = o["spec"]["template"]["metadata"]["labels"];
  const bool given = Given(o["metadata"], "labels") && o["metadata"]["labels"].size() > 0;
  const Object given_labels = CopyOf(labels.Snapshot());
  for (const char* key : {"job-name", "batch.kubernetes.io/job-name"}) {
    if (!labels.Has(key)) labels.Set(key, name);
  }
  for (const char* key : {"controller-uid", "batch.kubernetes.io/controller-uid"}) {
    if (!labels.Has(key)) labels.Set(key, uid);
  }
  // The object's own labels, where defaulting took them from the template, are one map with it.
  if (name.size() <= kMaxLabel &&
      (!given || Equal(o["metadata"]["labels"].Snapshot(), given_labels.root()))) {
    o["metadata"].Set("labels", labels.Snapshot());
  }
  const Mut match = o["spec"]["selector"]["matchLabels"];
  if (!match.Has("batch.kubernetes.io/controller-uid")) {
    match.Set("batch.kubernetes.io/controller-uid", uid);
  }
}

// The template's generation, which the first versions of DaemonSets had a field for.
void PrepareDaemonSet(Mut o, Value old) {
  constexpr std::string_view kGeneration = "deprecated.daemonset.template.generation";
  const auto number = [](std::string_view text) {
    int64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    return n;
  };
  const Mut annotations = o["metadata"]["annotations"];
  int64_t generation = std::max<int64_t>(number(annotations[kGeneration].AsString()), 1);
  if (old) {
    generation = number(old["metadata"]["annotations"][kGeneration].AsString());
    if (!Same(o["spec"]["template"].Snapshot(), old["spec"]["template"])) ++generation;
  }
  annotations.Set(kGeneration, std::to_string(generation));
}

namespace {

bool NeedsAddress(Value spec) { return spec["type"].AsString() != "ExternalName"; }

bool NeedsNodePort(Value spec) {
  const std::string_view type = spec["type"].AsString();
  return type == "NodePort" ||
         (type == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"].AsBool(true));
}

bool NeedsHealthPort(Value spec) {
  return spec["type"].AsString() == "LoadBalancer" &&
         spec["externalTrafficPolicy"].AsString() == "Local";
}

// clusterIP and clusterIPs are kept in step, whichever of them changed.
void NormalizeAddresses(Mut spec, Value old) {
  const std::string now(spec["clusterIP"].AsString());
  const bool listed = Given(spec, "clusterIPs") && spec["clusterIPs"].size() > 0;
  const std::string_view before = old["clusterIP"].AsString();
  if (!old) {
    if (!now.empty() && !listed) spec["clusterIPs"].Append().SetString(now);
    return;
  }
  if (!old["clusterIPs"].empty() && !listed && before == now) {
    spec.Set("clusterIPs", old["clusterIPs"]);
  }
  if (before == now || !Same(spec["clusterIPs"].Snapshot(), old["clusterIPs"])) return;
  spec.Erase("clusterIPs");
  if (!now.empty() || before.empty()) spec["clusterIPs"].Append().SetString(now);
}

// What was given out before stays where nothing else is asked for.
void KeepAllocated(Mut spec, Value old) {
  const Value now = spec.Snapshot();
  if (NeedsAddress(old) && NeedsAddress(now)) {
    if (now["clusterIP"].AsString().empty()) SetOrErase(spec, "clusterIP", old["clusterIP"]);
    if (now["clusterIPs"].empty()) SetOrErase(spec, "clusterIPs", old["clusterIPs"]);
  }
  if (NeedsNodePort(old) && NeedsNodePort(now)) {
    const auto uses = [](Value ports, int64_t number) {
      for (Value p : ports.items())
        if (p["nodePort"].AsInt() == number) return true;
      return false;
    };
    for (size_t i = 0, n = now["ports"].size(); i < n; ++i) {
      const Value port = now["ports"].at(i);
      if (port["nodePort"].AsInt() != 0) continue;
      int64_t before = 0;
      for (Value p : old["ports"].items())
        if (p["name"].AsString() == port["name"].AsString()) before = p["nodePort"].AsInt();
      if (before != 0 && !uses(now["ports"], before)) spec["ports"].at(i).Set("nodePort", before);
    }
  }
  if (NeedsHealthPort(old) && NeedsHealthPort(now) && now["healthCheckNodePort"].AsInt() == 0) {
    SetOrErase(spec, "healthCheckNodePort", old["healthCheckNodePort"]);
  }
}

// What the new type has no use for goes, unless the author changed it as well.
void DropByType(Mut spec, Value old) {
  const Value now = spec.Snapshot();
  const auto drop = [&](const char* name) {
    if (Same(now[name], old[name])) spec.Erase(name);
  };
  if (NeedsAddress(old) && !NeedsAddress(now)) {
    for (const char* name : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) drop(name);
  }
  if (NeedsNodePort(old) && !NeedsNodePort(now)) {
    for (size_t i = 0, n = now["ports"].size(); i < n; ++i) {
      const int64_t number = now["ports"].at(i)["nodePort"].AsInt();
      for (Value p : old["ports"].items()) {
        if (number != 0 && p["nodePort"].AsInt() == number) spec["ports"].at(i).Erase("nodePort");
      }
    }
  }
  if (NeedsHealthPort(old) && !NeedsHealthPort(now)) drop("healthCheckNodePort");
  const bool balanced = now["type"].AsString() == "LoadBalancer";
  if (old["type"].AsString() == "LoadBalancer" && !balanced) {
    drop("allocateLoadBalancerNodePorts");
    drop("loadBalancerClass");
  }
  const auto reachable = [](Value v) {
    const std::string_view type = v["type"].AsString();
    return type == "LoadBalancer" || type == "NodePort" ||
           (type == "ClusterIP" && !v["externalIPs"].empty());
  };
  if (reachable(old) && !reachable(now)) drop("externalTrafficPolicy");
}

}  // namespace

void PrepareService(Mut o, Value old) {
  const Mut spec = o["spec"];
  NormalizeAddresses(spec, old["spec"]);
  if (!old) return;
  KeepAllocated(spec, old["spec"]);
  DropByType(spec, old["spec"]);
  if (spec["type"].AsString() != "LoadBalancer" && Given(o, "status")) {
    o["status"]["loadBalancer"].Erase("ingress");
  }
}

void PrepareSecret(Mut o, Value old) {
  if (old && o["type"].AsString().empty()) o.Set("type", old["type"].AsString());
}

void PreparePersistentVolume(Mut o, Value old) {
  if (old) return;
  o["status"].Set("phase", "Pending");
  o["status"].Set("lastPhaseTransitionTime", o["metadata"]["creationTimestamp"].AsString());
}

// dataSource and dataSourceRef say the same where one of them is missing.
void PreparePersistentVolumeClaim(Mut o, Value old) {
  if (!old) o["status"].Set("phase", "Pending");
  const Mut spec = o["spec"];
  const bool source = Given(spec, "dataSource");
  const bool ref = Given(spec, "dataSourceRef");
  if (source && !ref) {
    spec.Set("dataSourceRef", spec["dataSource"].Snapshot());
  } else if (ref && !source && spec["dataSourceRef"]["namespace"].AsString().empty()) {
    const Value given = spec["dataSourceRef"].Snapshot();
    for (const char* name : {"apiGroup", "kind", "name"}) {
      if (given[name]) spec["dataSource"].Set(name, given[name]);
    }
  }
}

}  // namespace sextant::api
