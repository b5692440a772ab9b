// What registries' strategies do to objects on the way in. Source: pkg/registry/*/*/strategy.go.
#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

constexpr std::string_view kKubeFinalizer = "kubernetes";

}  // namespace

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
  if (!given || Equal(o["metadata"]["labels"].Snapshot(), given_labels.root())) {
    o["metadata"].Set("labels", labels.Snapshot());
  }
  const Mut match = o["spec"]["selector"]["matchLabels"];
  if (!match.Has("batch.kubernetes.io/controller-uid")) {
    match.Set("batch.kubernetes.io/controller-uid", uid);
  }
}

void PrepareSecret(Mut o, Value old) {
  if (old && o["type"].AsString().empty()) o.Set("type", old["type"].AsString());
}

void PreparePersistentVolume(Mut o, Value old) {
  if (!old) o["status"].Set("phase", "Pending");
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
