// Pods by two doors of their own: ephemeralcontainers adds containers to look around with, resize
// changes CPU and memory. Source: ValidatePodEphemeralContainersUpdate and ValidatePodResize in
// validation.go, pkg/registry/core/pod/strategy.go.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_diff.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr const char* kOnlyCompute = "only cpu and memory resources are mutable";

// Everything but `fields` of the spec is as it was.
void KeepAllBut(Mut pod, Value old, Words fields) {
  Editor kept;
  const Value now = pod["spec"].Snapshot();
  for (std::string_view name : fields) SetOrErase(kept.Root(), name, now[name]);
  const Object given = std::move(kept).Finish();
  pod.Erase("spec");
  for (auto [name, value] : old["spec"].members()) pod["spec"].Set(name, value);
  for (std::string_view name : fields) {
    const Value v = given.root()[name];
    if (v) {
      pod["spec"][name].Set(CopyOf(v));
    } else {
      pod["spec"].Erase(name);
    }
  }
  SetOrErase(pod, "status", old["status"]);
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    SetOrErase(pod["metadata"], name, old["metadata"][name]);
  }
}

bool SameNames(Value a, Value b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a.at(i)["name"], b.at(i)["name"])) return false;
  }
  return true;
}

bool Removed(Value now, Value before) {
  for (auto [name, value] : before.members())
    if (!now.Has(name)) return true;
  return false;
}

void ValidateRemoved(Value now, Value before, std::string_view what, const At& at,
                     FieldErrors& errors) {
  for (const char* list : {"requests", "limits"}) {
    if (Removed(now[list], before[list])) {
      errors.Forbidden(at / list, fmt::format("{} {} cannot be removed", what, list));
    }
  }
}

bool IsCompute(std::string_view name) { return name == "cpu" || name == "memory"; }

// Equal but for amounts of CPU and memory.
bool SameAmounts(Value a, Value b) {
  const auto covers = [](Value x, Value y) {
    for (auto [name, value] : x.members())
      if (!IsCompute(name) && !Equal(value, y[name])) return false;
    return true;
  };
  return covers(a, b) && covers(b, a);
}

bool SameButCompute(Value a, Value b) {
  const auto covers = [](Value x, Value y) {
    for (auto [name, value] : x.members())
      if (name != "resources" && !Equal(value, y[name])) return false;
    return true;
  };
  return covers(a, b) && covers(b, a) &&
         SameAmounts(a["resources"]["limits"], b["resources"]["limits"]) &&
         SameAmounts(a["resources"]["requests"], b["resources"]["requests"]);
}

// False: the lists cannot be compared item by item.
bool ValidateOrder(Value spec, Value before, const At& at, FieldErrors& errors) {
  bool comparable = true;
  for (const char* list : {"containers", "initContainers"}) {
    if (spec[list].size() != before[list].size()) {
      errors.Forbidden(at / list, fmt::format("{} may not be added or removed on resize", list));
      comparable = false;
      continue;
    }
    for (size_t i = 0; i < spec[list].size(); ++i) {
      const At here = at.Item(list, i);
      if (Equal(spec[list].at(i)["name"], before[list].at(i)["name"])) continue;
      errors.Forbidden(here / "name",
                       fmt::format("{} may not be renamed or reordered on resize", list));
      comparable = false;
    }
  }
  return comparable;
}

void ValidatePodLevelResize(Value spec, Value before, const At& at, FieldErrors& errors) {
  const Value now = spec["resources"];
  const Value old = before["resources"];
  if (!now && !old) return;
  const At here = at / "resources";
  if (old && !now) return errors.Forbidden(here, "pod-level resources cannot be removed");
  if (old) ValidateRemoved(now, old, "pod-level resource", here, errors);
  if (!SameAmounts(now["limits"], old["limits"]) ||
      !SameAmounts(now["requests"], old["requests"])) {
    errors.Forbidden(at, "only cpu and memory resources are mutable at pod-level");
  }
}

bool NodeCanResize(Value pod) {
  for (Value s : pod["status"]["containerStatuses"].items()) {
    if (s["state"]["running"]) return static_cast<bool>(s["resources"]);
  }
  return true;
}

void ValidateContainerResizes(Value spec, Value before, const At& at, FieldErrors& errors) {
  const auto sidecar = [](Value c) { return c["restartPolicy"].AsString() == "Always"; };
  const auto compare = [&](const char* list, size_t i) {
    const At here = at.Item(list, i);
    ValidateRemoved(spec[list].at(i)["resources"], before[list].at(i)["resources"], "resource",
                    here / "resources", errors);
  };
  for (size_t i = 0; i < before["initContainers"].size(); ++i) {
    if (sidecar(before["initContainers"].at(i))) compare("initContainers", i);
  }
  for (size_t i = 0; i < before["containers"].size(); ++i) compare("containers", i);
  for (size_t i = 0; i < before["containers"].size(); ++i) {
    if (!SameButCompute(spec["containers"].at(i), before["containers"].at(i))) {
      errors.Forbidden(at, kOnlyCompute);
    }
  }
  for (size_t i = 0; i < before["initContainers"].size(); ++i) {
    const Value c = spec["initContainers"].at(i);
    const Value old = before["initContainers"].at(i);
    if (sidecar(c)) {
      if (!SameButCompute(c, old)) {
        errors.Forbidden(
            at.Item("initContainers", i),
            "only cpu and memory resources for init or sidecar containers are mutable");
      }
    } else if (!Equal(c, old)) {
      errors.Forbidden(at, "resources for non-sidecar init containers are immutable");
    }
  }
}

}  // namespace

void PrepareEphemeralContainers(Mut pod, Value old) {
  KeepAllBut(pod, old, {"ephemeralContainers"});
}

void ValidateEphemeralContainersUpdate(Value pod, Value old, FieldErrors& errors) {
  if (old["metadata"]["annotations"].Has(kMirror)) {
    return errors.Forbidden("", "static pods do not support ephemeral containers");
  }
  ValidatePod(pod, errors);
  const At spec("spec");
  const At at = spec / "ephemeralContainers";
  for (Value before : old["spec"]["ephemeralContainers"].items()) {
    const std::string_view name = before["name"].AsString();
    Value now;
    for (Value c : pod["spec"]["ephemeralContainers"].items())
      if (c["name"].AsString() == name) now = c;
    if (!now) {
      errors.Forbidden(
          at, fmt::format("existing ephemeral containers {} may not be removed\n", Quote(name)));
    } else if (!Equal(now, before)) {
      constexpr std::string_view kType = "io.k8s.api.core.v1.EphemeralContainer";
      errors.Forbidden(
          at,
          fmt::format("existing ephemeral containers {} may not be changed\n{}", Quote(name),
                      UnifiedDiff(InternalJson(before, kType, 1), InternalJson(now, kType, 1))));
    }
  }
}

void PrepareResize(Mut pod, Value old) {
  const Value now = pod["spec"].Snapshot();
  for (const char* list : {"containers", "initContainers"}) {
    if (now[list].size() != old["spec"][list].size()) return;  // validation says so
  }
  // Of each container, resources and resizePolicy are taken.
  for (const char* list : {"containers", "initContainers"}) {
    if (!SameNames(now[list], old["spec"][list])) continue;
    for (size_t i = 0; i < now[list].size(); ++i) {
      const Mut container = pod["spec"][list].at(i);
      const Value before = old["spec"][list].at(i);
      for (const std::string& name : container.Keys()) {
        if (name != "resources" && name != "resizePolicy") container.Erase(name);
      }
      for (auto [name, value] : before.members()) {
        if (name != "resources" && name != "resizePolicy") container.Set(name, value);
      }
    }
  }
  KeepAllBut(pod, old, {"containers", "initContainers", "resources"});
}

void ValidateResize(Value pod, Value old, FieldErrors& errors) {
  if (old["metadata"]["annotations"].Has(kMirror)) {
    return errors.Forbidden("", "static pods cannot be resized");
  }
  if (old["spec"]["os"]["name"].AsString() == "windows") {
    return errors.Forbidden("", "windows pods cannot be resized");
  }
  ValidatePod(pod, errors);
  const At at("spec");
  const Value spec = pod["spec"];
  const Value before = old["spec"];
  const std::string_view quality = old["status"]["qosClass"].AsString();
  if (quality != QosClassOf(spec)) {
    errors.InvalidText(at, quality, "Pod QOS Class may not change as a result of resizing");
  }
  if (!NodeCanResize(old)) {
    errors.Forbidden(at, "Pod running on node without support for resize");
  }
  ValidatePodLevelResize(spec, before, at, errors);
  if (!ValidateOrder(spec, before, at, errors)) return;
  ValidateContainerResizes(spec, before, at, errors);
  if (!errors.empty()) return;
  for (auto [name, value] : spec.members()) {
    if (name == "containers" || name == "initContainers" || name == "resources") continue;
    if (!Equal(value, before[name])) return errors.Forbidden(at, kOnlyCompute);
  }
}

}  // namespace sextant::api
