// A Pod's spec as a whole, and Pod templates. Source: validation.go, ValidatePodSpec,
// validatePodMetadataAndSpec, ValidatePodCreate, ValidatePodTemplateSpec.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxNameservers = 3;
constexpr size_t kMaxSearches = 32;
constexpr size_t kMaxSearchCharacters = 2048;
constexpr size_t kMaxHostname = 64;
constexpr int64_t kMaxDeadlineS = 2147483647;

void ValidatePodClaims(Value claims, const At& at, FieldErrors& errors) {
  Names names;
  size_t i = 0;
  for (Value claim : claims.items()) {
    const At here = at.Item("", i++);
    const std::string_view name = claim["name"].AsString();
    if (name.empty()) {
      errors.Required(here / "name", "");
    } else if (names.contains(name)) {
      errors.Duplicate(here / "name", name);
    } else {
      Complain(IsDns1123Label(name), name, here / "name", errors);
      names.emplace(name);
    }
    const Value claim_name = claim["resourceClaimName"];
    const Value template_name = claim["resourceClaimTemplateName"];
    const auto shown = [&] { return InternalJson(claim, "io.k8s.api.core.v1.PodResourceClaim"); };
    if (claim_name && template_name) {
      errors.InvalidRaw(here, shown(),
                        "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                        "specified");
    }
    if (!claim_name && !template_name) {
      errors.InvalidRaw(here, shown(),
                        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    }
    for (const char* field : {"resourceClaimName", "resourceClaimTemplateName"}) {
      if (!claim[field]) continue;
      const std::string_view text = claim[field].AsString();
      Complain(NameIsDnsSubdomain(text, false), text, here / field, errors);
    }
  }
}

void ValidatePodLevelResources(const PodScope& scope, const At& at, FieldErrors& errors) {
  const Value resources = scope.spec["resources"];
  if (!resources) return;
  const At here = at / "resources";
  if (scope.spec["os"]["name"].AsString() == "windows") {
    return errors.Forbidden(here, "may not be set for a windows pod");
  }
  if (resources["claims"]) {
    errors.Forbidden(here / "claims", "claims may not be set for Resources at pod-level");
  }
  ValidatePodResources(resources, scope.claims, here, errors);
  for (const char* list : {"requests", "limits"}) {
    const At list_at = here / list;
    for (const auto& [name, sum] : AggregateResources(scope.spec, list)) {
      const Value own = resources[list][name];
      if (!own || (std::string_view(list) == "limits" && !IsHugePages(name))) continue;
      if (sum <= Quantity::ParseOrZero(own.AsString())) continue;
      errors.InvalidText(
          list_at.Key("", name), own.AsString(),
          fmt::format("must be greater than or equal to aggregate container {} of {}", list,
                      sum.ToString()));
    }
  }
  size_t i = 0;
  for (Value c : scope.spec["containers"].items()) {
    const At container = here.Item("containers", i++);
    for (auto [name, limit] : c["resources"]["limits"].members()) {
      const Value own = resources["limits"][name];
      if (!own ||
          Quantity::ParseOrZero(limit.AsString()) <= Quantity::ParseOrZero(own.AsString())) {
        continue;
      }
      const At key = container.Key("", name);
      errors.InvalidText(
          key / "limits", limit.AsString(),
          fmt::format("must be less than or equal to pod limits of {}", own.AsString()));
    }
  }
}

void ValidateHostNetworkPorts(const PodScope& scope, const At& at, FieldErrors& errors) {
  if (!scope.spec["hostNetwork"].AsBool()) return;
  size_t i = 0;
  for (Value c : scope.spec["containers"].items()) {
    const At container = at.Item("containers", i++);
    size_t j = 0;
    for (Value port : c["ports"].items()) {
      const At here = container.Item("ports", j++);
      const int64_t host = port["hostPort"].AsInt();
      if ((scope.is_pod || host != 0) && host != port["containerPort"].AsInt()) {
        errors.InvalidRaw(here / "hostPort", std::to_string(host),
                          "must match `containerPort` when `hostNetwork` is true");
      }
    }
  }
}

void ValidateChoice(Value spec, const char* name, Words words, const At& at, FieldErrors& errors) {
  if (spec[name].AsString().empty()) {
    errors.Required(at / name, "");
  } else {
    OneOf(spec, name, words, at, errors);
  }
}

void ValidateDns(Value spec, const At& at, FieldErrors& errors) {
  const Value config = spec["dnsConfig"];
  const Value servers = config["nameservers"];
  const Value searches = config["searches"];
  if (spec["dnsPolicy"].AsString() == "None") {
    if (!config) {
      return errors.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    if (servers.empty()) {
      return errors.Required(at / "nameservers",
                             "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
  }
  if (servers.size() > kMaxNameservers) {
    errors.Invalid(at / "nameservers", servers,
                   fmt::format("must not have more than {} nameservers", kMaxNameservers));
  }
  size_t i = 0;
  for (Value server : servers.items()) {
    ValidateIp(server.AsString(), at.Item("nameservers", i++), errors);
  }
  if (searches.size() > kMaxSearches) {
    errors.Invalid(at / "searches", searches,
                   fmt::format("must not have more than {} search paths", kMaxSearches));
  }
  size_t characters = searches.empty() ? 0 : searches.size() - 1;
  for (Value search : searches.items()) characters += search.AsString().size();
  if (characters > kMaxSearchCharacters) {
    errors.Invalid(at / "searches", searches,
                   fmt::format("must not have more than {} characters (including spaces) in the "
                               "search list",
                               kMaxSearchCharacters));
  }
  i = 0;
  for (Value search : searches.items()) {
    const At here = at.Item("searches", i++);
    std::string_view text = search.AsString();
    if (text == ".") continue;
    if (text.ends_with('.')) text.remove_suffix(1);
    Complain(IsDns1123SubdomainWithUnderscore(text), text, here, errors);
  }
  i = 0;
  for (Value option : config["options"].items()) {
    const At here = at.Item("options", i++);
    if (option["name"].AsString().empty()) errors.Required(here, "must not be empty");
  }
}

void ValidateGates(Value spec, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value gate : spec["readinessGates"].items()) {
    const At here = at.Item("readinessGates", i++);
    const std::string_view type = gate["conditionType"].AsString();
    Complain(IsQualifiedName(type), type, here / "conditionType", errors);
  }
  Names seen;
  i = 0;
  for (Value gate : spec["schedulingGates"].items()) {
    const At here = at.Item("schedulingGates", i++);
    const std::string_view name = gate["name"].AsString();
    Complain(IsQualifiedName(name), name, here, errors);
    if (!seen.emplace(name).second) errors.Duplicate(here, name);
  }
}

void ValidateHostUsers(const PodScope& scope, const At& at, FieldErrors& errors) {
  if (scope.host_users) return;
  constexpr const char* kWhy = "when `hostUsers` is false";
  if (scope.spec["hostNetwork"].AsBool()) errors.Forbidden(at / "hostNetwork", kWhy);
  if (scope.spec["hostPID"].AsBool()) errors.Forbidden(at / "HostPID", kWhy);
  if (scope.spec["hostIPC"].AsBool()) errors.Forbidden(at / "HostIPC", kWhy);
  EachContainer(scope.spec, at, [&](Value c, const At& here) {
    if (!c["volumeDevices"].empty()) errors.Forbidden(here / "volumeDevices", kWhy);
  });
}

void ValidateHostname(Value spec, const At& at, FieldErrors& errors) {
  const Value name = spec["hostnameOverride"];
  if (!name) return;
  const At here = at / "hostnameOverride";
  if (spec["setHostnameAsFQDN"].AsBool()) {
    errors.Forbidden(here, "may not be specified when setHostnameAsFQDN is true");
  }
  if (spec["hostNetwork"].AsBool()) {
    errors.Forbidden(here, "may not be specified when hostNetwork is true");
  }
  if (name.AsString().size() > kMaxHostname) errors.TooLong(here, kMaxHostname);
  Complain(IsDns1123Subdomain(name.AsString()), name.AsString(), here, errors);
}

void ValidateNamesInSpec(Value spec, const At& at, FieldErrors& errors) {
  using Check = Complaints (*)(std::string_view, bool);
  constexpr Check kSubdomain = NameIsDnsSubdomain;
  constexpr Check kLabel = [](std::string_view text, bool) { return IsDns1123Label(text); };
  const auto check = [&](const char* name, Check complaints) {
    const std::string_view text = spec[name].AsString();
    if (!text.empty()) Complain(complaints(text, false), text, at / name, errors);
  };
  check("serviceAccountName", kSubdomain);
  check("nodeName", kSubdomain);
  if (const Value deadline = spec["activeDeadlineSeconds"]) {
    if (deadline.AsInt() < 1 || deadline.AsInt() > kMaxDeadlineS) {
      errors.Invalid(at / "activeDeadlineSeconds", deadline, RangeComplaint(1, kMaxDeadlineS));
    }
  }
  check("hostname", kLabel);
  check("subdomain", kLabel);
  ValidateTolerations(spec["tolerations"], at / "tolerations", errors);
  size_t i = 0;
  for (Value alias : spec["hostAliases"].items()) {
    const At here = at.Item("hostAliases", i++);
    ValidateIp(alias["ip"].AsString(), here / "ip", errors);
    size_t j = 0;
    for (Value host : alias["hostnames"].items()) {
      Complain(IsDns1123Subdomain(host.AsString()), host.AsString(), here.Item("hostnames", j++),
               errors);
    }
  }
  check("priorityClassName", kSubdomain);
  if (const Value runtime = spec["runtimeClassName"]) {
    Complain(NameIsDnsSubdomain(runtime.AsString(), false), runtime.AsString(),
             at / "runtimeClassName", errors);
  }
  if (spec["preemptionPolicy"]) {
    ValidateChoice(spec, "preemptionPolicy", {"PreemptLowerPriority", "Never"}, at, errors);
  }
}

void ValidateOverhead(Value overhead, const At& at, FieldErrors& errors) {
  if (!overhead) return;
  Editor edit;
  edit.Root().Set("limits", overhead);
  const Object limits = std::move(edit).Finish();
  ValidateContainerResources(limits.root(), {}, at, errors);
}

// Variables from files need the emptyDir that the file is in.
void ValidateFileVolumes(Value spec, const At& at, FieldErrors& errors) {
  EachContainer(spec, at, [&](Value c, const At& here) {
    size_t i = 0;
    for (Value var : c["env"].items()) {
      const At env = here.Item("env", i++);
      const Value ref = var["valueFrom"]["fileKeyRef"];
      if (!ref) continue;
      const std::string_view name = ref["volumeName"].AsString();
      Value volume;
      for (Value v : spec["volumes"].items())
        if (v["name"].AsString() == name) volume = v;
      if (!volume) {
        errors.NotFound(env / "valueFrom.fileKeyRef.volumeName", name);
      } else if (!volume["emptyDir"]) {
        errors.InvalidText(env / "valueFrom.fileKeyRef.volumeName", name,
                           "referenced volume must be of type emptyDir");
      }
    }
  });
}

// Tokens of projected volumes need a service account.
void ValidateTokenVolumes(Value spec, const At& at, FieldErrors& errors) {
  if (!spec["serviceAccountName"].AsString().empty()) return;
  size_t i = 0;
  for (Value v : spec["volumes"].items()) {
    const At volume = at.Item("volumes", i++);
    const At projected = volume / "projected";
    size_t j = 0;
    for (Value source : v["projected"]["sources"].items()) {
      const At here = projected.Item("sources", j++);
      if (source["serviceAccountToken"]) {
        errors.Forbidden(here / "serviceAccountToken",
                         "must not be specified when serviceAccountName is not set");
      }
    }
  }
}

}  // namespace

void ValidatePodSpec(Value spec, Value metadata, bool is_pod, const At& at, FieldErrors& errors) {
  PodScope scope{.metadata = metadata, .spec = spec, .is_pod = is_pod};
  scope.host_users = spec["hostUsers"].AsBool(true);
  if (const Value grace = spec["terminationGracePeriodSeconds"]) {
    scope.grace_s = grace.AsInt();
  } else {
    errors.Required(at / "terminationGracePeriodSeconds", "");
  }
  for (Value claim : spec["resourceClaims"].items()) {
    if (!claim["name"].AsString().empty()) scope.claims.emplace(claim["name"].AsString());
  }
  ValidateVolumes(spec["volumes"], scope, at, errors);
  ValidatePodClaims(spec["resourceClaims"], at / "resourceClaims", errors);
  ValidateAllContainers(scope, at, errors);
  ValidateEphemeralContainers(scope, at, errors);
  ValidatePodLevelResources(scope, at, errors);
  ValidateHostNetworkPorts(scope, at, errors);
  ValidateChoice(spec, "restartPolicy", {"Always", "OnFailure", "Never"}, at, errors);
  ValidateChoice(spec, "dnsPolicy", {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
                 at, errors);
  ValidateLabels(spec["nodeSelector"], at / "nodeSelector", errors);
  ValidatePodSecurity(spec, at / "securityContext", errors);
  ValidateAffinity(spec["affinity"], at / "affinity", errors);
  ValidateDns(spec, at / "dnsConfig", errors);
  ValidateGates(spec, at, errors);
  ValidateTopologySpread(spec["topologySpreadConstraints"], at / "topologySpreadConstraints",
                         errors);
  ValidateWindowsHostProcess(spec, at, errors);
  ValidateHostUsers(scope, at, errors);
  ValidateHostname(spec, at, errors);
  ValidateNamesInSpec(spec, at, errors);
  ValidateOverhead(spec["overhead"], at / "overhead", errors);
  ValidateOs(spec, at, errors);
  ValidateFileVolumes(spec, at, errors);
}

void ValidatePodTemplateSpec(Value template_, const At& at, FieldErrors& errors) {
  const Value metadata = template_["metadata"];
  // The API server's own paths: labels and annotations stand at the template itself.
  ValidateLabels(metadata["labels"], at / "labels", errors);
  ValidateAnnotations(metadata["annotations"], at / "annotations", errors);
  ValidatePodAnnotations(metadata["annotations"], template_["spec"], at / "annotations", errors);
  const At spec = at / "spec";
  ValidatePodSpec(template_["spec"], Value(), false, spec, errors);
  ValidateSeccompAnnotations(metadata, template_["spec"], spec, errors);
  if (!template_["spec"]["ephemeralContainers"].empty()) {
    errors.Forbidden(spec / "ephemeralContainers",
                     "ephemeral containers not allowed in pod template");
  }
}

void ValidatePod(Value pod, FieldErrors& errors) {
  const Value spec = pod["spec"];
  const At metadata("metadata");
  const At at("spec");
  ValidatePodAnnotations(pod["metadata"]["annotations"], spec, metadata / "annotations", errors);
  ValidatePodSpec(spec, pod["metadata"], true, at, errors);
  ValidateTokenVolumes(spec, at, errors);
  for (const char* list : {"containers", "initContainers"}) {
    size_t i = 0;
    for (Value c : spec[list].items()) ValidateImagePadding(c, at.Item(list, i++), errors);
  }
}

void ValidatePodCreate(Value pod, FieldErrors& errors) {
  ValidatePod(pod, errors);
  const Value spec = pod["spec"];
  const At at("spec");
  if (!spec["ephemeralContainers"].empty()) {
    errors.Forbidden(at / "ephemeralContainers", "cannot be set on create");
  }
  if (!spec["nodeName"].AsString().empty() && !spec["schedulingGates"].empty()) {
    errors.Forbidden(at / "nodeName", "cannot be set until all schedulingGates have been cleared");
  }
  ValidateSeccompAnnotations(pod["metadata"], spec, at, errors);
}

}  // namespace sextant::api
