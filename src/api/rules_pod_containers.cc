// Containers of a Pod spec. Source: validation.go, validateContainerCommon and what it calls.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_pod.h"

namespace sextant::api {
namespace {

constexpr int kMaxRestartRules = 20;
constexpr int kMaxExitCodes = 255;

void ValidatePorts(Value ports, const At& at, FieldErrors& errors) {
  Names names;
  size_t i = 0;
  for (Value port : ports.items()) {
    const At here = at.Item("ports", i++);
    const std::string_view name = port["name"].AsString();
    if (!name.empty()) {
      const Complaints complaints = IsPortName(name);
      Complain(complaints, name, here / "name", errors);
      if (complaints.empty() && !names.emplace(name).second) {
        errors.Duplicate(here / "name", name);
      }
    }
    if (port["containerPort"].AsInt() == 0) {
      errors.Required(here / "containerPort", "");
    } else {
      for (const std::string& why : IsPortNumber(port["containerPort"].AsInt())) {
        errors.Invalid(here / "containerPort", port["containerPort"], why);
      }
    }
    if (port["hostPort"].AsInt() != 0) {
      for (const std::string& why : IsPortNumber(port["hostPort"].AsInt())) {
        errors.Invalid(here / "hostPort", port["hostPort"], why);
      }
    }
    if (port["protocol"].AsString().empty()) {
      errors.Required(here / "protocol", "");
    } else {
      OneOf(port, "protocol", {"SCTP", "TCP", "UDP"}, here, errors);
    }
  }
}

void ValidateKeySelector(Value ref, const At& at, FieldErrors& errors) {
  const std::string_view name = ref["name"].AsString();
  Complain(NameIsDnsSubdomain(name, false), name, at / "name", errors);
  const std::string_view key = ref["key"].AsString();
  if (key.empty()) {
    errors.Required(at / "key", "");
  } else {
    Complain(IsConfigMapKey(key), key, at / "key", errors);
  }
}

void ValidateFileKey(Value ref, const At& at, FieldErrors& errors) {
  const std::string_view key = ref["key"].AsString();
  if (key.empty()) {
    errors.Required(at / "key", "");
  } else {
    Complain(IsRelaxedEnvVarName(key), key, at / "key", errors);
  }
  const std::string_view volume = ref["volumeName"].AsString();
  if (volume.empty()) {
    errors.Required(at / "volumeName", "");
  } else {
    Complain(IsDns1123Label(volume), volume, at / "volumeName", errors);
  }
  const std::string_view path = ref["path"].AsString();
  if (path.empty()) {
    errors.Required(at / "path", "");
  } else {
    ValidateNoBacksteps(path, at / "path", errors);
  }
}

void ValidateValueFrom(Value var, const At& at, FieldErrors& errors) {
  const Value from = var["valueFrom"];
  if (!from) return;
  int sources = 0;
  if (from["fieldRef"]) {
    ++sources;
    ValidateFieldRef(from["fieldRef"],
                     {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
                      "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP",
                      "status.podIPs"},
                     at / "fieldRef", errors);
  }
  if (from["resourceFieldRef"]) {
    ++sources;
    ValidateResourceFieldRef(from["resourceFieldRef"], false, at / "resourceFieldRef", errors);
  }
  for (const char* kind : {"configMapKeyRef", "secretKeyRef"}) {
    if (!from[kind]) continue;
    ++sources;
    ValidateKeySelector(from[kind], at / kind, errors);
  }
  if (from["fileKeyRef"]) {
    ++sources;
    ValidateFileKey(from["fileKeyRef"], at / "fileKeyRef", errors);
  }
  if (sources == 0) {
    errors.InvalidText(at, "",
                       "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                       "`secretKeyRef` or `fileKeyRef`");
  } else if (!var["value"].AsString().empty()) {
    errors.InvalidText(at, "", "may not be specified when `value` is not empty");
  } else if (sources > 1) {
    errors.InvalidText(at, "", "may not have more than one field specified at a time");
  }
}

void ValidateEnv(Value container, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value var : container["env"].items()) {
    const At here = at.Item("env", i++);
    const std::string_view name = var["name"].AsString();
    if (name.empty()) {
      errors.Required(here / "name", "");
    } else {
      Complain(IsRelaxedEnvVarName(name), name, here / "name", errors);
    }
    ValidateValueFrom(var, here / "valueFrom", errors);
  }
  i = 0;
  const At list = at / "envFrom";
  for (Value from : container["envFrom"].items()) {
    const At here = list.Item("", i++);
    const std::string_view prefix = from["prefix"].AsString();
    if (!prefix.empty()) Complain(IsRelaxedEnvVarName(prefix), prefix, here / "prefix", errors);
    int sources = 0;
    for (const char* kind : {"configMapRef", "secretRef"}) {
      if (!from[kind]) continue;
      ++sources;
      const At ref = here / kind;
      const std::string_view name = from[kind]["name"].AsString();
      if (name.empty()) {
        errors.Required(ref / "name", "");
      } else {
        Complain(NameIsDnsSubdomain(name, true), name, ref / "name", errors);
      }
    }
    if (sources == 0) {
      errors.InvalidText(list, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (sources > 1) {
      errors.InvalidText(list, "", "may not have more than one field specified at a time");
    }
  }
}

bool HasItem(Value list, const char* field, std::string_view value) {
  for (Value item : list.items())
    if (item[field].AsString() == value) return true;
  return false;
}

void ValidatePropagation(Value mount, Value container, const At& at, FieldErrors& errors) {
  const Value mode = mount["mountPropagation"];
  if (!mode) return;
  const size_t before = errors.causes().size();
  OneOf(mount, "mountPropagation", {"Bidirectional", "HostToContainer", "None"}, at, errors);
  if (errors.causes().size() == before && mode.AsString() == "Bidirectional" &&
      !container["securityContext"]["privileged"].AsBool()) {
    errors.Forbidden(at / "mountPropagation",
                     "Bidirectional mount propagation is available only to privileged containers");
  }
}

void ValidateRecursiveReadOnly(Value mount, const At& at, FieldErrors& errors) {
  const Value mode = mount["recursiveReadOnly"];
  if (!mode || mode.AsString() == "Disabled") return;
  if (mode.AsString() != "Enabled" && mode.AsString() != "IfPossible") {
    OneOf(mount, "recursiveReadOnly", {"Disabled", "Enabled", "IfPossible"}, at, errors);
    return;
  }
  const At here = at / "recursiveReadOnly";
  if (!mount["readOnly"].AsBool()) {
    errors.Forbidden(here, "may only be specified when readOnly is true");
  }
  const Value propagation = mount["mountPropagation"];
  if (propagation && propagation.AsString() != "None") {
    errors.Forbidden(here, "may only be specified when mountPropagation is None or not specified");
  }
}

void ValidateMounts(Value container, const PodScope& scope, const At& at, FieldErrors& errors) {
  const At list = at / "volumeMounts";
  const Value devices = container["volumeDevices"];
  Names paths;
  size_t i = 0;
  for (Value mount : container["volumeMounts"].items()) {
    const At here = list.Item("", i++);
    const std::string_view name = mount["name"].AsString();
    const std::string_view path = mount["mountPath"].AsString();
    if (name.empty()) errors.Required(here / "name", "");
    if (!scope.volumes.contains(name)) errors.NotFound(here / "name", name);
    if (path.empty()) errors.Required(here / "mountPath", "");
    if (!paths.emplace(path).second) {
      errors.InvalidText(here / "mountPath", path, "must be unique");
    }
    if (HasItem(devices, "name", name)) {
      errors.InvalidText(here / "name", name, "must not already exist in volumeDevices");
    }
    if (HasItem(devices, "devicePath", path)) {
      errors.InvalidText(here / "mountPath", path,
                         "must not already exist as a path in volumeDevices");
    }
    const std::string_view sub = mount["subPath"].AsString();
    const std::string_view expr = mount["subPathExpr"].AsString();
    if (!sub.empty()) ValidateDescendingPath(sub, list / "subPath", errors);
    if (!expr.empty()) {
      if (!sub.empty()) {
        errors.InvalidText(here / "subPathExpr", expr,
                           "subPathExpr and subPath are mutually exclusive");
      }
      ValidateDescendingPath(expr, list / "subPathExpr", errors);
    }
    ValidatePropagation(mount, container, list, errors);
    ValidateRecursiveReadOnly(mount, list, errors);
  }
}

void ValidateDevices(Value container, const PodScope& scope, const At& at, FieldErrors& errors) {
  const At list = at / "volumeDevices";
  const Value mounts = container["volumeMounts"];
  Names names;
  Names paths;
  size_t i = 0;
  for (Value device : container["volumeDevices"].items()) {
    const At here = list.Item("", i++);
    const std::string_view name = device["name"].AsString();
    const std::string_view path = device["devicePath"].AsString();
    const auto volume = scope.volumes.find(name);
    if (name.empty()) errors.Required(here / "name", "");
    if (names.contains(name)) errors.InvalidText(here / "name", name, "must be unique");
    if (volume == scope.volumes.end()) {
      errors.NotFound(here / "name", name);
    } else if (!volume->second["persistentVolumeClaim"] && !volume->second["ephemeral"]) {
      errors.InvalidText(here / "name", name,
                         "can only use volume source type of PersistentVolumeClaim or Ephemeral "
                         "for block mode");
    }
    if (path.empty()) errors.Required(here / "devicePath", "");
    if (paths.contains(path)) errors.InvalidText(here / "devicePath", path, "must be unique");
    FieldErrors backsteps;
    ValidateNoBacksteps(path, here, backsteps);
    if (!path.empty() && !backsteps.empty()) {
      errors.InvalidText(here / "devicePath", path, "can not contain backsteps ('..')");
    } else {
      paths.emplace(path);
    }
    if (HasItem(mounts, "name", name)) {
      errors.InvalidText(here / "name", name, "must not already exist in volumeMounts");
    }
    if (HasItem(mounts, "mountPath", path)) {
      errors.InvalidText(here / "devicePath", path,
                         "must not already exist as a path in volumeMounts");
    }
    if (!name.empty()) names.emplace(name);
  }
}

void ValidatePortNumberOrName(Value port, const At& at, FieldErrors& errors) {
  if (port.IsString()) {
    Complain(IsPortName(port.AsString()), port.AsString(), at, errors);
    return;
  }
  for (const std::string& why : IsPortNumber(port.AsInt())) {
    errors.InvalidRaw(at, std::to_string(port.AsInt()), why);
  }
}

void ValidateHttpGet(Value action, const At& at, FieldErrors& errors) {
  RequiredText(action, "path", at, errors);
  ValidatePortNumberOrName(action["port"], at / "port", errors);
  OneOf(action, "scheme", {"HTTP", "HTTPS"}, at, errors, false);
  for (Value header : action["httpHeaders"].items()) {
    const std::string_view name = header["name"].AsString();
    Complain(IsHttpHeaderName(name), name, at / "httpHeaders", errors);
  }
}

void ValidateAction(std::string_view kind, Value action, const PodScope& scope, const At& at,
                    FieldErrors& errors) {
  if (kind == "exec") {
    if (action["command"].empty()) errors.Required(at / "command", "");
  } else if (kind == "httpGet") {
    ValidateHttpGet(action, at, errors);
  } else if (kind == "tcpSocket" || kind == "grpc") {
    ValidatePortNumberOrName(action["port"], at / "port", errors);
  } else if (scope.grace_s) {
    const int64_t seconds = action["seconds"].AsInt();
    if (seconds < 0 || seconds > *scope.grace_s) {
      errors.Invalid(at, action["seconds"],
                     fmt::format("must be non-negative and less than terminationGracePeriodSeconds "
                                 "({})",
                                 *scope.grace_s));
    }
  }
}

void ValidateHandler(Value handler, Words kinds, const PodScope& scope, const At& at,
                     FieldErrors& errors) {
  int count = 0;
  for (std::string_view kind : kinds) {
    if (!handler[kind]) continue;
    if (count++ > 0) {
      errors.Forbidden(at / kind, "may not specify more than 1 handler type");
    } else {
      ValidateAction(kind, handler[kind], scope, at / kind, errors);
    }
  }
  if (count == 0) errors.Required(at, "must specify a handler type");
}

void ValidateProbe(Value probe, std::string_view kind, const PodScope& scope, const At& at,
                   FieldErrors& errors) {
  if (!probe) return;
  ValidateHandler(probe, {"exec", "httpGet", "tcpSocket", "grpc"}, scope, at, errors);
  for (const char* name : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                           "successThreshold", "failureThreshold"}) {
    NonNegative(probe, name, at, errors);
  }
  const Value grace = probe["terminationGracePeriodSeconds"];
  if (grace && grace.AsInt() <= 0) {
    errors.Invalid(at / "terminationGracePeriodSeconds", grace, "must be greater than 0");
  }
  if (kind == "readinessProbe") {
    if (grace) {
      errors.Invalid(at / "terminationGracePeriodSeconds", grace,
                     "must not be set for readinessProbes");
    }
  } else if (probe["successThreshold"].AsInt() != 1) {
    errors.Invalid(at / "successThreshold", probe["successThreshold"], "must be 1");
  }
}

constexpr const char* kProbes[] = {"livenessProbe", "readinessProbe", "startupProbe"};

void ValidateLifecycle(Value lifecycle, const PodScope& scope, const At& at, FieldErrors& errors) {
  for (const char* hook : {"postStart", "preStop"}) {
    if (!lifecycle[hook]) continue;
    ValidateHandler(lifecycle[hook], {"exec", "httpGet", "tcpSocket", "sleep"}, scope, at / hook,
                    errors);
  }
}

void ValidateRunning(Value c, const PodScope& scope, const At& at, FieldErrors& errors) {
  if (c["lifecycle"]) ValidateLifecycle(c["lifecycle"], scope, at / "lifecycle", errors);
  for (const char* probe : kProbes) ValidateProbe(c[probe], probe, scope, at / probe, errors);
}

void ValidateResizePolicy(Value c, const PodScope& scope, const At& at, FieldErrors& errors) {
  const At list = at / "resizePolicy";
  Names seen;
  size_t i = 0;
  for (Value policy : c["resizePolicy"].items()) {
    const std::string_view resource = policy["resourceName"].AsString();
    const std::string_view restart = policy["restartPolicy"].AsString();
    if (!seen.emplace(resource).second) errors.Duplicate(list.Item("", i), resource);
    ++i;
    if (resource.empty()) {
      errors.Required(list, "");
    } else if (resource != "cpu" && resource != "memory") {
      NotSupported(list, resource, {"cpu", "memory"}, errors);
    }
    if (restart.empty()) {
      errors.Required(list, "");
    } else if (restart != "NotRequired" && restart != "RestartContainer") {
      NotSupported(list, restart, {"NotRequired", "RestartContainer"}, errors);
    }
    if (scope.spec["restartPolicy"].AsString() == "Never" && restart != "NotRequired") {
      errors.InvalidText(list, restart,
                         "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
  }
}

void ValidateRestart(Value c, const At& at, FieldErrors& errors) {
  const Value rules = c["restartPolicyRules"];
  if (!c["restartPolicy"]) {
    if (rules.empty()) return;
    errors.Required(at / "restartPolicy", "must specify restartPolicy when restart rules are used");
  } else {
    OneOf(c, "restartPolicy", {"Always", "Never", "OnFailure"}, at, errors);
  }
  if (rules.size() > kMaxRestartRules) {
    errors.TooMany(at / "restartPolicyRules", static_cast<int>(rules.size()), kMaxRestartRules);
  }
  size_t i = 0;
  for (Value rule : rules.items()) {
    const At here = at.Item("restartPolicyRules", i++);
    OneOf(rule, "action", {"Restart", "RestartAllContainers"}, here, errors, false);
    const Value codes = rule["exitCodes"];
    const At codes_at = here / "exitCodes";
    if (!codes) {
      errors.Required(codes_at, "must be specified");
      continue;
    }
    OneOf(codes, "operator", {"In", "NotIn"}, codes_at, errors, false);
    if (codes["values"].size() > kMaxExitCodes) {
      errors.TooMany(codes_at / "values", static_cast<int>(codes["values"].size()), kMaxExitCodes);
    }
  }
}

void ValidateCommon(Value c, const PodScope& scope, const At& at, FieldErrors& errors) {
  const std::string_view name = c["name"].AsString();
  if (name.empty()) {
    errors.Required(at / "name", "");
  } else {
    Complain(IsDns1123Label(name), name, at / "name", errors);
  }
  RequiredText(c, "image", at, errors);
  if (c["terminationMessagePolicy"].AsString().empty()) {
    errors.Required(at / "terminationMessagePolicy", "");
  } else {
    OneOf(c, "terminationMessagePolicy", {"File", "FallbackToLogsOnError"}, at, errors);
  }
  ValidatePorts(c["ports"], at, errors);
  ValidateEnv(c, at, errors);
  ValidateMounts(c, scope, at, errors);
  ValidateDevices(c, scope, at, errors);
  ValidatePullPolicy(c["imagePullPolicy"], at / "imagePullPolicy", errors);
  ValidateContainerResources(c["resources"], scope.claims, at / "resources", errors);
  ValidateResizePolicy(c, scope, at, errors);
  ValidateContainerSecurity(c["securityContext"], scope.host_users, at / "securityContext", errors);
}

void ValidateHostPorts(Value c, const At& at, Names& taken, FieldErrors& errors) {
  size_t i = 0;
  for (Value port : c["ports"].items()) {
    const At here = at.Item("ports", i++);
    const int64_t number = port["hostPort"].AsInt();
    if (number == 0) continue;
    const std::string text =
        fmt::format("{}/{}/{}", port["protocol"].AsString(), port["hostIP"].AsString(), number);
    if (!taken.insert(text).second) errors.Duplicate(here / "hostPort", text);
  }
}

void ValidateInit(Value c, const PodScope& scope, Names& names, size_t i, const At& at,
                  FieldErrors& errors) {
  const At here = at.Item("initContainers", i);
  ValidateCommon(c, scope, here, errors);
  const bool sidecar = c["restartPolicy"].AsString() == "Always";
  ValidateRestart(c, here, errors);
  const std::string_view name = c["name"].AsString();
  if (!name.empty() && !names.emplace(name).second) errors.Duplicate(here / "name", name);
  Names ports;
  // The one container is looked at as a list of its own, hence index 0.
  ValidateHostPorts(c, at.Item("initContainers", 0), ports, errors);
  if (sidecar) {
    ValidateRunning(c, scope, here, errors);
  } else {
    for (const char* field : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (c[field]) {
        errors.Forbidden(here / field,
                         "may not be set for init containers without restartPolicy=Always");
      }
    }
  }
  size_t j = 0;
  for (Value policy : c["resizePolicy"].items()) {
    const At policy_at = here.Item("resizePolicy", j++);
    if (!sidecar && policy["restartPolicy"].AsString() == "RestartContainer") {
      errors.InvalidText(policy_at / "restartPolicy", "RestartContainer",
                         "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
  }
}

}  // namespace

void ValidatePullPolicy(Value policy, const At& at, FieldErrors& errors) {
  const std::string_view text = policy.AsString();
  if (text.empty()) return errors.Required(at, "");
  if (text != "Always" && text != "IfNotPresent" && text != "Never") {
    NotSupported(at, text, {"Always", "IfNotPresent", "Never"}, errors);
  }
}

void ValidateImagePadding(Value container, const At& at, FieldErrors& errors) {
  const std::string_view image = container["image"].AsString();
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  if (image.empty()) return;
  if (kSpace.find(image.front()) == std::string_view::npos &&
      kSpace.find(image.back()) == std::string_view::npos) {
    return;
  }
  errors.InvalidText(at / "image", image, "must not have leading or trailing whitespace");
}

void ValidateAllContainers(const PodScope& scope, const At& at, FieldErrors& errors) {
  const Value containers = scope.spec["containers"];
  if (containers.empty()) errors.Required(at / "containers", "");
  Names names;
  size_t i = 0;
  for (Value c : containers.items()) {
    const At here = at.Item("containers", i++);
    ValidateCommon(c, scope, here, errors);
    if (!names.emplace(c["name"].AsString()).second) {
      errors.Duplicate(here / "name", c["name"].AsString());
    }
    ValidateRunning(c, scope, here, errors);
    ValidateRestart(c, here, errors);
  }
  Names ports;
  i = 0;
  for (Value c : containers.items()) {
    ValidateHostPorts(c, at.Item("containers", i++), ports, errors);
  }
  i = 0;
  for (Value c : scope.spec["initContainers"].items()) {
    ValidateInit(c, scope, names, i++, at, errors);
  }
}

void ValidateEphemeralContainers(const PodScope& scope, const At& at, FieldErrors& errors) {
  Names others;
  for (const char* list : {"containers", "initContainers"}) {
    for (Value c : scope.spec[list].items()) others.emplace(c["name"].AsString());
  }
  Names all = others;
  size_t i = 0;
  for (Value c : scope.spec["ephemeralContainers"].items()) {
    const At here = at.Item("ephemeralContainers", i++);
    ValidateCommon(c, scope, here, errors);
    ValidateImagePadding(c, here, errors);
    const std::string_view name = c["name"].AsString();
    if (!all.emplace(name).second) errors.Duplicate(here / "name", name);
    const std::string_view target = c["targetContainerName"].AsString();
    if (!target.empty() && !others.contains(target)) {
      errors.NotFound(here / "targetContainerName", target);
    }
    for (const char* field :
         {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
          "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      const Value v = c[field];
      if (v && !((v.IsMap() || v.IsList()) && v.empty())) {
        errors.Forbidden(here / field, "cannot be set for an Ephemeral Container");
      }
    }
    size_t j = 0;
    for (Value mount : c["volumeMounts"].items()) {
      const At mount_at = here.Item("volumeMounts", j++);
      for (const char* field : {"subPath", "subPathExpr"}) {
        if (!mount[field].AsString().empty()) {
          errors.Forbidden(mount_at / field, "cannot be set for an Ephemeral Container");
        }
      }
    }
  }
}

}  // namespace sextant::api
