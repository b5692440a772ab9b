// Security contexts, operating systems and the annotations that once stood for them. Source:
// validation.go, ValidateSecurityContext, validatePodSpecSecurityContext, validateOS,
// validateLinux, validateWindows.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/json.h"
#include "api/rules_pod.h"
#include "base/ascii.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

constexpr size_t kMaxProfile = 4095;
constexpr size_t kMaxSysctl = 253;
constexpr size_t kMaxCredentialSpec = size_t{64} << 10;
constexpr size_t kMaxDomain = 256;
constexpr size_t kMaxUser = 104;
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kWindowsForbidden = "cannot be set for a windows pod";

void ValidateSeccomp(Value profile, const At& at, FieldErrors& errors) {
  if (!profile) return;
  const std::string_view type = profile["type"].AsString();
  if (type.empty()) {
    errors.Required(at / "type", "type is required when seccompProfile is set");
  } else {
    OneOf(profile, "type", {"Localhost", "RuntimeDefault", "Unconfined"}, at, errors);
  }
  const Value file = profile["localhostProfile"];
  const At here = at / "localhostProfile";
  if (type != "Localhost") {
    if (file) {
      errors.InvalidRaw(here, InternalJson(profile, "io.k8s.api.core.v1.SeccompProfile"),
                        "can only be set when seccomp type is Localhost");
    }
  } else if (!file) {
    errors.Required(here, "must be set when seccomp type is Localhost");
  } else {
    ValidateDescendingPath(file.AsString(), here, errors);
  }
}

void ValidateAppArmor(Value profile, const At& at, FieldErrors& errors) {
  if (!profile) return;
  const std::string_view type = profile["type"].AsString();
  const Value file = profile["localhostProfile"];
  const At here = at / "localhostProfile";
  if (type == "Localhost") {
    const std::string_view text = file.AsString();
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    if (!file || text.find_first_not_of(kSpace) == std::string_view::npos) {
      if (!text.empty()) {
        errors.InvalidText(here, text, "must not be padded with whitespace");
      } else {
        errors.Required(here, "must be set when AppArmor type is Localhost");
      }
    } else if (kSpace.find(text.front()) != std::string_view::npos ||
               kSpace.find(text.back()) != std::string_view::npos) {
      errors.InvalidText(here, text, "must not be padded with whitespace");
    }
    if (text.size() > kMaxProfile) errors.TooLong(here, kMaxProfile);
  } else if (type == "RuntimeDefault" || type == "Unconfined") {
    if (file) errors.Invalid(here, file, "can only be set when AppArmor type is Localhost");
  } else if (type.empty()) {
    errors.Required(at / "type", "type is required when appArmorProfile is set");
  } else {
    OneOf(profile, "type", {"Localhost", "RuntimeDefault", "Unconfined"}, at, errors);
  }
}

// What follows the backslash, and what stands before it.
void ValidateWindowsUser(std::string_view name, const At& at, FieldErrors& errors) {
  const auto bad = [&](std::string why) { errors.InvalidText(at, name, std::move(why)); };
  if (name.empty()) return bad("runAsUserName cannot be an empty string");
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return bad("runAsUserName cannot contain control characters");
  }
  if (std::ranges::count(name, '\\') > 1) {
    return bad("runAsUserName cannot contain more than one backslash");
  }
  const size_t slash = name.find('\\');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? name.substr(0, slash) : std::string_view();
  const std::string_view user = has_domain ? name.substr(slash + 1) : name;
  if (domain.size() >= kMaxDomain) {
    bad(fmt::format("runAsUserName's Domain length must be under {} characters", kMaxDomain));
  }
  const bool net_bios = !domain.empty() && domain.size() <= 15 && domain[0] != '.' &&
                        domain.find_first_of("\\/:*?\"<>|") == std::string_view::npos;
  if (has_domain && !net_bios && !IsDns1123SubdomainCaseless(domain).empty()) {
    bad("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  }
  if (user.empty()) {
    bad("runAsUserName's User cannot be empty");
  } else if (user.size() > kMaxUser) {
    bad(fmt::format("runAsUserName's User length must not be longer than {} characters", kMaxUser));
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos) {
    bad("runAsUserName's User cannot contain only periods or spaces");
  }
  if (user.find_first_of("\"/\\:;|=,+*?<>@[]") != std::string_view::npos) {
    bad("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  }
}

void ValidateWindowsOptions(Value options, const At& at, FieldErrors& errors) {
  if (!options) return;
  if (const Value name = options["gmsaCredentialSpecName"]) {
    Complain(IsDns1123Subdomain(name.AsString()), name.AsString(), at / "gmsaCredentialSpecName",
             errors);
  }
  if (const Value spec = options["gmsaCredentialSpec"]) {
    if (spec.AsString().empty()) {
      errors.Invalid(at / "gmsaCredentialSpec", spec,
                     "gmsaCredentialSpec cannot be an empty string");
    } else if (spec.AsString().size() > kMaxCredentialSpec) {
      errors.Invalid(at / "gmsaCredentialSpec", spec,
                     "gmsaCredentialSpec size must be under 64 KiB");
    }
  }
  if (const Value user = options["runAsUserName"]) {
    ValidateWindowsUser(user.AsString(), at / "runAsUserName", errors);
  }
}

void ValidateIds(Value context, Words users, Words groups, const At& at, FieldErrors& errors) {
  for (std::string_view name : users) {
    if (!context[name]) continue;
    for (const std::string& why : IsUserId(context[name].AsInt())) {
      errors.Invalid(at / name, context[name], why);
    }
  }
  for (std::string_view name : groups) {
    if (!context[name]) continue;
    for (const std::string& why : IsGroupId(context[name].AsInt())) {
      errors.Invalid(at / name, context[name], why);
    }
  }
}

// Segments of letters, digits, '-' and '_', between dots or slashes.
bool IsSysctlName(std::string_view name) {
  if (name.empty() || name.size() > kMaxSysctl) return false;
  bool at_edge = true;  // the last character was a separator
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '.' || c == '/') {
      if (at_edge || !IsLowerOrDigit(name[i - 1])) return false;
      at_edge = true;
    } else if (IsLowerOrDigit(c) || (!at_edge && (c == '-' || c == '_'))) {
      at_edge = false;
    } else {
      return false;
    }
  }
  return IsLowerOrDigit(name.back());
}

bool IsNetSysctl(std::string_view name) { return name.starts_with("net."); }
bool IsIpcSysctl(std::string_view name) {
  return name == "kernel.sem" || name.starts_with("kernel.shm") || name.starts_with("kernel.msg") ||
         name.starts_with("fs.mqueue.");
}

void ValidateSysctls(Value spec, const At& at, FieldErrors& errors) {
  Names names;
  size_t i = 0;
  for (Value s : spec["securityContext"]["sysctls"].items()) {
    const At item = at.Item("sysctls", i++);
    const At here = item / "name";
    std::string name(s["name"].AsString());
    if (name.empty()) {
      errors.Required(here, "");
    } else if (!IsSysctlName(name)) {
      errors.InvalidText(here, name,
                         "must have at most 253 characters and match regex "
                         "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (names.contains(name)) {
      errors.Duplicate(here, name);
    }
    std::string dotted = name;
    const size_t first = dotted.find_first_of("./");
    if (first != std::string::npos && dotted[first] == '/') std::ranges::replace(dotted, '/', '.');
    if (spec["hostNetwork"].AsBool() && IsNetSysctl(dotted)) {
      errors.InvalidText(here, name, "may not be specified when 'hostNetwork' is true");
    } else if (spec["hostIPC"].AsBool() && IsIpcSysctl(dotted)) {
      errors.InvalidText(here, name, "may not be specified when 'hostIPC' is true");
    }
    names.insert(std::move(name));
  }
}

bool IsSet(Value message, std::string_view name) {
  const Value v = message[name];
  if (!v || ((v.IsList() || v.IsMap()) && v.empty() && name == "sysctls")) return false;
  return v.kind() != Kind::kBool || !name.starts_with("host") || name == "hostUsers" || v.AsBool();
}

void ValidateWindows(Value spec, const At& at, FieldErrors& errors) {
  struct PodField {
    const char* name;
    bool in_context;
  };
  // hostUsers and its like stand in the spec, the others in the security context.
  constexpr PodField kPodFields[] = {{"appArmorProfile", true},
                                     {"seLinuxOptions", true},
                                     {"hostUsers", false},
                                     {"hostPID", false},
                                     {"hostIPC", false},
                                     {"seccompProfile", true},
                                     {"fsGroup", true},
                                     {"fsGroupChangePolicy", true},
                                     {"sysctls", true},
                                     {"shareProcessNamespace", false},
                                     {"runAsUser", true},
                                     {"runAsGroup", true},
                                     {"supplementalGroups", true},
                                     {"supplementalGroupsPolicy", true},
                                     {"seLinuxChangePolicy", true}};
  const At context = at / "securityContext";
  for (const PodField& f : kPodFields) {
    if (!IsSet(f.in_context ? spec["securityContext"] : spec, f.name)) continue;
    errors.Forbidden((f.in_context ? context : at) / f.name, std::string(kWindowsForbidden));
  }
  EachContainer(spec, at, [&](Value c, const At& here) {
    const At container_context = here / "securityContext";
    for (const char* name : {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
                             "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation",
                             "procMount", "runAsUser", "runAsGroup"}) {
      if (c["securityContext"][name]) {
        errors.Forbidden(container_context / name, std::string(kWindowsForbidden));
      }
    }
  });
}

void ValidateLinux(Value spec, const At& at, FieldErrors& errors) {
  constexpr const char* kWhy = "windows options cannot be set for a linux pod";
  if (spec["securityContext"]["windowsOptions"]) {
    errors.Forbidden(at / "securityContext.windowsOptions", kWhy);
  }
  EachContainer(spec, at, [&](Value c, const At& here) {
    if (c["securityContext"]["windowsOptions"]) {
      errors.Forbidden(here / "securityContext.windowsOptions", kWhy);
    }
  });
}

void ValidateSeccompText(std::string_view profile, const At& at, FieldErrors& errors) {
  if (profile == "runtime/default" || profile == "docker/default" || profile == "unconfined") {
    return;
  }
  constexpr std::string_view kLocal = "localhost/";
  if (profile.starts_with(kLocal)) {
    return ValidateDescendingPath(profile.substr(kLocal.size()), at, errors);
  }
  errors.InvalidText(at, profile, "must be a valid seccomp profile");
}

// The annotation that came before the field must say the same.
void ValidateSeccompMatch(std::string_view annotation, Value profile, const At& at,
                          FieldErrors& errors) {
  const std::string_view type = profile["type"].AsString();
  constexpr std::string_view kLocal = "localhost/";
  bool match = true;
  if (type == "Unconfined") match = annotation == "unconfined";
  if (type == "RuntimeDefault") {
    match = annotation == "runtime/default" || annotation == "docker/default";
  }
  if (type == "Localhost") {
    match = annotation.starts_with(kLocal);
    if (match && annotation.substr(kLocal.size()) != profile["localhostProfile"].AsString()) {
      errors.Forbidden(at / "localhostProfile",
                       "seccomp profile in annotation and field must match");
    }
  }
  if (!match) {
    errors.Forbidden(at / "type", "seccomp type in annotation and field must match");
  }
}

}  // namespace

void ValidateContainerSecurity(Value context, bool host_users, const At& at, FieldErrors& errors) {
  if (!context) return;
  ValidateIds(context, {"runAsUser"}, {"runAsGroup"}, at, errors);
  if (const Value mount = context["procMount"]) {
    OneOf(context, "procMount", {"Default", "Unmasked"}, at, errors);
    if (host_users && mount.AsString() == "Unmasked") {
      errors.Invalid(at / "procMount", mount, "`hostUsers` must be false to use `Unmasked`");
    }
  }
  ValidateSeccomp(context["seccompProfile"], at / "seccompProfile", errors);
  const Value escalation = context["allowPrivilegeEscalation"];
  if (escalation && !escalation.AsBool()) {
    const auto shown = [&] { return InternalJson(context, "io.k8s.api.core.v1.SecurityContext"); };
    if (context["privileged"].AsBool()) {
      errors.InvalidRaw(at, shown(),
                        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for (Value cap : context["capabilities"]["add"].items()) {
      if (cap.AsString() != "CAP_SYS_ADMIN") continue;
      errors.InvalidRaw(at, shown(),
                        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                        "CAP_SYS_ADMIN");
    }
  }
  ValidateWindowsOptions(context["windowsOptions"], at / "windowsOptions", errors);
  ValidateAppArmor(context["appArmorProfile"], at / "appArmorProfile", errors);
}

void ValidatePodSecurity(Value spec, const At& at, FieldErrors& errors) {
  const Value context = spec["securityContext"];
  if (!context) return;
  ValidateIds(context, {}, {"fsGroup"}, at, errors);
  ValidateIds(context, {"runAsUser"}, {"runAsGroup"}, at, errors);
  size_t i = 0;
  for (Value group : context["supplementalGroups"].items()) {
    const At here = at.Item("supplementalGroups", i++);
    for (const std::string& why : IsGroupId(group.AsInt())) errors.Invalid(here, group, why);
  }
  if (spec["shareProcessNamespace"].AsBool() && spec["hostPID"].AsBool()) {
    errors.Invalid(at / "shareProcessNamespace", spec["shareProcessNamespace"],
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  ValidateSysctls(spec, at, errors);
  OneOf(context, "fsGroupChangePolicy", {"Always", "OnRootMismatch"}, at, errors);
  ValidateSeccomp(context["seccompProfile"], at / "seccompProfile", errors);
  ValidateWindowsOptions(context["windowsOptions"], at / "windowsOptions", errors);
  ValidateAppArmor(context["appArmorProfile"], at / "appArmorProfile", errors);
  OneOf(context, "supplementalGroupsPolicy", {"Merge", "Strict"}, at, errors);
  OneOf(context, "seLinuxChangePolicy", {"Recursive"}, at, errors);
}

void ValidateOs(Value spec, const At& at, FieldErrors& errors) {
  const Value os = spec["os"];
  if (!os) return;
  const std::string_view name = os["name"].AsString();
  const At here = at / "os";
  if (name.empty()) {
    errors.Required(here / "name", "");
  } else if (name == "linux") {
    ValidateLinux(spec, at, errors);
  } else if (name == "windows") {
    ValidateWindows(spec, at, errors);
  } else {
    NotSupported(here, name, {"linux", "windows"}, errors);
  }
}

void ValidateWindowsHostProcess(Value spec, const At& at, FieldErrors& errors) {
  const Value pod = spec["securityContext"]["windowsOptions"]["hostProcess"];
  size_t all = 0;
  size_t host = 0;
  EachContainer(spec, at, [&](Value c, const At& here) {
    ++all;
    const Value own = c["securityContext"]["windowsOptions"]["hostProcess"];
    if (pod && own && pod.AsBool() != own.AsBool()) {
      errors.Invalid(here / "securityContext.windowsOptions.hostProcess", own,
                     fmt::format("pod hostProcess value must be identical if both are specified, "
                                 "was {}",
                                 pod.AsBool()));
    }
    if (own ? own.AsBool() : pod.AsBool()) ++host;
  });
  if (host == 0) return;
  if (host != all) {
    errors.InvalidText(at, "",
                       "If pod contains any hostProcess containers then all containers must be "
                       "HostProcess containers");
  }
  if (!spec["hostNetwork"].AsBool()) {
    errors.InvalidRaw(at / "hostNetwork", "false",
                      "hostNetwork must be true if pod contains any hostProcess containers");
  }
}

void ValidateSeccompAnnotations(Value metadata, Value spec, const At& at, FieldErrors& errors) {
  const Value annotations = metadata["annotations"];
  const Value pod = spec["securityContext"]["seccompProfile"];
  if (pod && annotations.Has(kSeccompPod)) {
    ValidateSeccompMatch(annotations[kSeccompPod].AsString(), pod,
                         at / "securityContext.seccompProfile", errors);
  }
  EachContainer(spec, at, [&](Value c, const At& here) {
    const Value profile = c["securityContext"]["seccompProfile"];
    const std::string key = fmt::format("{}{}", kSeccompContainer, c["name"].AsString());
    if (!profile || !annotations.Has(key)) return;
    ValidateSeccompMatch(annotations[key].AsString(), profile,
                         here / "securityContext.seccompProfile", errors);
  });
}

void ValidatePodAnnotations(Value annotations, Value spec, const At& at, FieldErrors& errors) {
  constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
  constexpr std::string_view kCost = "controller.kubernetes.io/pod-deletion-cost";
  if (annotations.Has(kMirror) && spec["nodeName"].AsString().empty()) {
    errors.Invalid(at.Key("", kMirror), annotations[kMirror],
                   "must set spec.nodeName if mirror pod annotation is set");
  }
  if (annotations.Has(kCost)) {
    const std::string_view text = annotations[kCost].AsString();
    int32_t cost = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cost);
    const bool number = error == std::errc() && end == text.data() + text.size();
    if (!number || (text[0] == '0' && text != "0")) {
      errors.Invalid(at.Key("", kCost), annotations[kCost], "must be a 32bit integer");
    }
  }
  constexpr std::string_view kTolerations = "scheduler.alpha.kubernetes.io/tolerations";
  if (const std::string_view text = annotations[kTolerations].AsString(); !text.empty()) {
    const Result<Object> parsed = ParseJson(text);
    if (!parsed) {
      errors.InvalidText(at, kTolerations, parsed.error().message);
    } else {
      ValidateTolerations(parsed->root(), at / kTolerations, errors);
    }
  }
  for (auto [key, value] : annotations.members()) {
    if (key == kSeccompPod || key.starts_with(kSeccompContainer)) {
      ValidateSeccompText(value.AsString(), at / key, errors);
    }
    if (!key.starts_with(kAppArmor)) continue;
    const std::string_view container = key.substr(kAppArmor.size());
    bool found = false;
    EachContainer(spec, at,
                  [&](Value c, const At&) { found |= c["name"].AsString() == container; });
    if (!found) errors.InvalidText(at.Key("", key), container, "container not found");
    const std::string_view profile = value.AsString();
    if (!profile.empty() && profile != "runtime/default" && profile != "unconfined" &&
        !profile.starts_with("localhost/")) {
      errors.InvalidText(at.Key("", key), profile,
                         "invalid AppArmor profile name: " + Quote(profile));
    }
  }
}

}  // namespace sextant::api
