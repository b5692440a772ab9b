// What may change in a Pod that exists. Source: validation.go, ValidatePodUpdate and
// ValidatePodStatusUpdate.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_diff.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxInt32 = 2147483647;
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kUpdatable =
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions "
    "to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)";

void ValidateAnnotationChange(Value next, Value old, const At& at, FieldErrors& errors) {
  struct Guarded {
    std::string_view key;
    bool prefix;
    std::string_view what;
  };
  constexpr Guarded kGuarded[] = {{kAppArmor, true, "AppArmor annotations"},
                                  {kMirror, false, "mirror pod annotation"}};
  const auto guard = [&](std::string_view key, std::string_view verb) {
    for (const Guarded& g : kGuarded) {
      if (g.prefix ? key.starts_with(g.key) : key == g.key) {
        errors.Forbidden(at.Key("", key), fmt::format("may not {} {}", verb, g.what));
      }
    }
  };
  for (auto [key, value] : old.members()) {
    if (!Equal(next[key], value)) guard(key, "remove or update");
  }
  for (auto [key, value] : next.members()) {
    if (!old.Has(key)) guard(key, "add");
  }
}

// False: nothing more can be said.
bool ValidateContainerChange(Value next, Value old, const At& at, FieldErrors& errors) {
  if (next.size() != old.size()) {
    errors.Forbidden(at, "pod updates may not add or remove containers");
    return false;
  }
  size_t i = 0;
  for (Value c : next.items()) {
    const At here = at.Item("", i++);
    RequiredText(c, "image", here, errors);
    ValidateImagePadding(c, here, errors);
  }
  return true;
}

void ValidateDeadline(Value next, Value old, const At& at, FieldErrors& errors) {
  const At here = at / "activeDeadlineSeconds";
  const Value now = next["activeDeadlineSeconds"];
  const Value before = old["activeDeadlineSeconds"];
  if (!now) {
    if (before) {
      errors.InvalidRaw(here, "null", "must not update from a positive integer to nil value");
    }
    return;
  }
  if (now.AsInt() < 0 || now.AsInt() > kMaxInt32) {
    errors.Invalid(here, now, RangeComplaint(0, kMaxInt32));
  }
  if (before && before.AsInt() < now.AsInt()) {
    errors.Invalid(here, now, "must be less than or equal to previous value");
  }
}

bool EqualBut(Value a, Value b, std::string_view ignored) {
  const auto covers = [&](Value x, Value y) {
    for (auto [key, value] : x.members())
      if (key != ignored && !Equal(value, y[key])) return false;
    return true;
  };
  return covers(a, b) && covers(b, a);
}

void ValidateTolerationChange(Value next, Value old, const At& at, FieldErrors& errors) {
  for (Value before : old.items()) {
    bool found = false;
    for (Value now : next.items()) found |= EqualBut(before, now, "tolerationSeconds");
    if (!found) {
      errors.Forbidden(at, "existing toleration can not be modified except its tolerationSeconds");
    }
  }
  ValidateTolerations(next, at, errors);
}

void ValidateGateChange(Value next, Value old, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value gate : next.items()) {
    const At here = at.Item("", i++);
    const std::string_view name = gate["name"].AsString();
    bool known = false;
    for (Value before : old.items()) known |= before["name"].AsString() == name;
    if (!known) {
      errors.Forbidden(
          here / "name",
          fmt::format("only deletion is allowed, but found new scheduling gate '{}'", name));
    }
  }
}

bool OnlyAdds(Value next, Value old) {
  if (old["matchExpressions"].empty() && old["matchFields"].empty()) {
    return next["matchExpressions"].empty() && next["matchFields"].empty();
  }
  for (const char* list : {"matchExpressions", "matchFields"}) {
    if (next[list].size() < old[list].size()) return false;
    for (size_t i = 0; i < old[list].size(); ++i) {
      if (!Equal(next[list].at(i), old[list].at(i))) return false;
    }
  }
  return true;
}

void ValidateGatedAffinity(Value next, Value old, const At& at, FieldErrors& errors) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr std::string_view kTerm = "io.k8s.api.core.v1.NodeSelectorTerm";
  const Value old_required = old[kRequired];
  if (!old_required) return;
  const Value old_terms = old_required["nodeSelectorTerms"];
  const Value new_terms = next[kRequired]["nodeSelectorTerms"];
  const At required = at / kRequired;
  const At terms = required / "nodeSelectorTerms";
  if (!old_terms.empty() && old_terms.size() != new_terms.size()) {
    std::string shown;
    for (Value term : new_terms.items()) {
      shown += shown.empty() ? "[" : ",";
      shown += InternalJson(term, kTerm);
    }
    errors.InvalidRaw(terms, shown.empty() ? "null" : shown + "]",
                      "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    return;
  }
  for (size_t i = 0; i < old_terms.size(); ++i) {
    if (OnlyAdds(new_terms.at(i), old_terms.at(i))) continue;
    errors.InvalidRaw(terms.Item("", i), InternalJson(new_terms.at(i), kTerm),
                      "only additions are allowed (no mutations or deletions)");
  }
}

// Pods with gates may still be narrowed to fewer nodes.
void ValidateGated(Mut munged, Value old, const At& at, FieldErrors& errors) {
  const Value spec = munged.Snapshot();
  if (!Same(spec["nodeSelector"], old["nodeSelector"])) {
    for (auto [key, value] : old["nodeSelector"].members()) {
      if (Equal(spec["nodeSelector"][key], value)) continue;
      errors.Invalid(at / "nodeSelector", spec["nodeSelector"],
                     "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    }
    SetOrErase(munged, "nodeSelector", old["nodeSelector"]);
  }
  const Value affinity = spec["affinity"];
  const Value now = affinity["nodeAffinity"];
  const Value before = old["affinity"]["nodeAffinity"];
  if (Same(now, before)) return;
  const At here = at / "affinity";
  ValidateGatedAffinity(now, before, here / "nodeAffinity", errors);
  if (affinity && !old["affinity"] && !affinity["podAffinity"] && !affinity["podAntiAffinity"]) {
    munged.Erase("affinity");
  } else {
    SetOrErase(munged["affinity"], "nodeAffinity", before);
  }
}

// The new spec with everything that may change set back: what still differs may not.
void ValidateRest(Value spec, Value old, const At& at, FieldErrors& errors) {
  Editor edit;
  const Mut munged = edit.Root();
  for (auto [key, value] : spec.members()) munged.Set(key, value);
  for (const char* list : {"containers", "initContainers"}) {
    for (size_t i = 0; i < old[list].size(); ++i) {
      SetOrErase(munged[list].at(i), "image", old[list].at(i)["image"]);
    }
  }
  for (const char* name : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    SetOrErase(munged, name, old[name]);
  }
  const Value grace = old["terminationGracePeriodSeconds"];
  if (grace && grace.AsInt() < 0 && munged["terminationGracePeriodSeconds"].AsInt() == 1) {
    munged.Set("terminationGracePeriodSeconds", grace);
  }
  if (!old["schedulingGates"].empty()) ValidateGated(munged, old, at, errors);
  const Object rest = std::move(edit).Finish();
  if (Equal(rest.root(), old)) return;
  constexpr std::string_view kSpec = "io.k8s.api.core.v1.PodSpec";
  const std::string before = InternalJson(old, kSpec, 1);
  const std::string after = InternalJson(rest.root(), kSpec, 1);
  if (before == after) return;  // differs in what the internal type does not have
  errors.Forbidden(at, fmt::format("{}\n{}", kUpdatable, UnifiedDiff(before, after)));
}

// --- status
// -----------------------------------------------------------------------------------------

// A container that has ended stays so, where its Pod does not start it again.
void ValidateStates(Value next, Value old, const char* list, const At& at, FieldErrors& errors) {
  const std::string_view policy = old["spec"]["restartPolicy"].AsString();
  const bool ephemeral = std::string_view(list) == "ephemeralContainerStatuses";
  const bool init = std::string_view(list) == "initContainerStatuses";
  if (policy == "Always" && !ephemeral) return;
  size_t i = 0;
  for (Value before : old["status"][list].items()) {
    const At here = at.Item(list, i++);
    const Value ended = before["state"]["terminated"];
    if (!ended) continue;
    if (!ephemeral && ended["exitCode"].AsInt() != 0 && policy == "OnFailure") continue;
    bool restarts = false;
    for (Value c : old["spec"][init ? "initContainers" : "containers"].items()) {
      if (c["name"].AsString() != before["name"].AsString()) continue;
      restarts = c["restartPolicy"].AsString() == "Always" ||
                 (c["restartPolicy"].AsString() == "OnFailure" && ended["exitCode"].AsInt() != 0) ||
                 !c["restartPolicyRules"].empty();
    }
    if (restarts && !ephemeral) continue;
    for (Value now : next["status"][list].items()) {
      if (now["name"].AsString() != before["name"].AsString() || now["state"]["terminated"]) {
        continue;
      }
      errors.Forbidden(here / "state", "may not be transitioned to non-terminated state");
    }
  }
}

void ValidateIps(Value status, Value old, const char* list, const At& at, FieldErrors& errors) {
  size_t i = 0;
  int v6 = 0;
  for (Value ip : status[list].items()) {
    const At here = at.Item(list, i++);
    const std::string_view text = ip["ip"].AsString();
    v6 += IsIpV6(text) ? 1 : 0;
    bool known = false;
    for (Value before : old[list].items()) known |= before["ip"].AsString() == text;
    if (!known) ValidateIp(text, here, errors);
  }
  if (i > 1 && (i > 2 || v6 != 1)) {
    errors.InvalidRaw(at / list, "", "may specify no more than one IP for each IP family");
  }
}

void ValidatePodConditions(Value conditions, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value c : conditions.items()) {
    const At here = at.Item("conditions", i++);
    const std::string_view type = c["type"].AsString();
    if (c["observedGeneration"].AsInt() < 0) {
      errors.Invalid(here / "observedGeneration", c["observedGeneration"],
                     "must be a non-negative integer");
    }
    if (type == "PodScheduled" || type == "Ready" || type == "Initialized") continue;
    Complain(IsQualifiedName(type), type, here / "Type", errors);
  }
}

void ValidateClaimStatuses(Value pod, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value s : pod["status"]["resourceClaimStatuses"].items()) {
    const At here = at.Item("resourceClaimStatuses", i++);
    const std::string_view name = s["name"].AsString();
    bool known = false;
    for (Value c : pod["spec"]["resourceClaims"].items()) known |= c["name"].AsString() == name;
    if (!known) {
      errors.InvalidText(here / "name", name,
                         "must match the name of an entry in `spec.resourceClaims`");
    }
    if (const Value claim = s["resourceClaimName"]) {
      Complain(NameIsDnsSubdomain(claim.AsString(), false), claim.AsString(), here / "name",
               errors);
    }
  }
}

// Devices of a status belong to a resource or claim of their container.
void ValidateDeviceStatus(Value pod, const char* list, const char* containers, const At& at,
                          FieldErrors& errors) {
  size_t i = 0;
  for (Value s : pod["status"][list].items()) {
    const At here = at.Item(list, i++);
    Value container;
    for (Value c : pod["spec"][containers].items())
      if (Equal(c["name"], s["name"])) container = c;
    size_t j = 0;
    for (Value r : s["allocatedResourcesStatus"].items()) {
      const At item = here.Item("allocatedResourcesStatus", j++);
      const std::string_view name = r["name"].AsString();
      const bool claimed = name.starts_with("claim:");
      bool found = !container || container["resources"]["requests"].Has(name);
      for (Value claim : container["resources"]["claims"].items()) {
        const std::string_view request = claim["request"].AsString();
        found |= name == fmt::format("claim:{}{}{}", claim["name"].AsString(),
                                     request.empty() ? "" : "/", request);
      }
      if (!found) {
        errors.InvalidText(
            item / "name", name,
            claimed ? "must match one of the container's resource claims in a format "
                      "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
                    : "must match one of the container's resource requests");
      }
      size_t k = 0;
      for (Value health : r["resources"].items()) {
        OneOf(health, "health", {"Healthy", "Unhealthy", "Unknown"}, item.Item("resources", k++),
              errors, false);
      }
    }
  }
}

void ValidateAnnotations(Value pod, Value old, FieldErrors& errors) {
  const At metadata("metadata");
  const At at = metadata / "annotations";
  const Value annotations = pod["metadata"]["annotations"];
  ValidateAnnotationChange(annotations, old["metadata"]["annotations"], at, errors);
  ValidatePodAnnotations(annotations, pod["spec"], at, errors);
}

}  // namespace

void ValidatePodUpdate(Value pod, Value old, FieldErrors& errors) {
  ValidateAnnotations(pod, old, errors);
  const At at("spec");
  const Value spec = pod["spec"];
  const Value before = old["spec"];
  for (const char* list : {"containers", "initContainers"}) {
    if (!ValidateContainerChange(spec[list], before[list], at / list, errors)) return;
  }
  ValidateDeadline(spec, before, at, errors);
  ValidateTolerationChange(spec["tolerations"], before["tolerations"], at / "tolerations", errors);
  ValidateGateChange(spec["schedulingGates"], before["schedulingGates"], at / "schedulingGates",
                     errors);
  if (Equal(spec, before)) return;
  ValidateRest(spec, before, at, errors);
}

void ValidatePodStatus(Value pod, Value old, FieldErrors& errors) {
  ValidateAnnotations(pod, old, errors);
  const At at("status");
  const Value status = pod["status"];
  const Value before = old["status"];
  ValidatePodConditions(status["conditions"], at, errors);
  const std::string_view nominated = status["nominatedNodeName"].AsString();
  if (!nominated.empty() && nominated != before["nominatedNodeName"].AsString()) {
    Complain(NameIsDnsSubdomain(nominated, false), nominated, at / "nominatedNodeName", errors);
    if (!old["spec"]["nodeName"].AsString().empty()) {
      errors.Forbidden(at / "nominatedNodeName",
                       "may not be set on pods that are already bound to a node");
    }
  }
  if (status["observedGeneration"].AsInt() < 0) {
    errors.Invalid(at / "observedGeneration", status["observedGeneration"],
                   "must be a non-negative integer");
  }
  if (status["qosClass"].AsString() != before["qosClass"].AsString()) {
    errors.InvalidText(at / "qosClass", status["qosClass"].AsString(), std::string(kImmutable));
  }
  for (const char* list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    ValidateStates(pod, old, list, at, errors);
  }
  ValidateClaimStatuses(pod, at, errors);
  ValidateIps(status, before, "podIPs", at, errors);
  const Value hosts = status["hostIPs"];
  if (!hosts.empty()) {
    const At first = at.Item("hostIPs", 0);
    if (hosts.at(0)["ip"].AsString() != status["hostIP"].AsString()) {
      errors.Invalid(first / "ip", hosts.at(0)["ip"], "must be equal to `hostIP`");
    }
    ValidateIps(status, before, "hostIPs", at, errors);
  }
  ValidateDeviceStatus(pod, "containerStatuses", "containers", at, errors);
  ValidateDeviceStatus(pod, "initContainerStatuses", "initContainers", at, errors);
}

}  // namespace sextant::api
