#include "server/pod_security.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include "base/quote.h"

namespace sextant::server {
namespace {

using api::Value;
using One = Violations::One;
using Names = std::vector<std::string>;
using NameSet = std::set<std::string>;
using Words = std::span<const std::string_view>;

bool In(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

struct Pod {
  Value metadata;
  Value spec;

  Value context() const { return spec["securityContext"]; }
  bool windows() const { return spec["os"]["name"].AsString() == "windows"; }
  // In a user namespace: root inside is nobody outside.
  bool own_users() const { return spec["hostUsers"] && !spec["hostUsers"].AsBool(); }

  // The containers of which `bad(container, its securityContext)` holds, init containers first.
  template <typename Bad>
  Names Containers(Bad bad) const {
    Names names;
    for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
      for (Value c : spec[list].items())
        if (bad(c, c["securityContext"])) names.emplace_back(c["name"].AsString());
    }
    return names;
  }
};

template <typename List>
std::string Quoted(const List& words) {
  return fmt::format("\"{}\"", fmt::join(words, "\", \""));
}
template <typename List>
std::string_view Plural(std::string_view one, std::string_view many, const List& counted) {
  return counted.size() == 1 ? one : many;
}
std::string Listed(const Names& containers) {
  return fmt::format("{} {}", Plural("container", "containers", containers), Quoted(containers));
}
// Who sets something: the Pod, containers, or both.
std::string Setters(bool pod, const Names& containers) {
  Names setters;
  if (pod) setters.emplace_back("pod");
  if (!containers.empty()) setters.push_back(Listed(containers));
  return fmt::format("{}", fmt::join(setters, " and "));
}

// ---- baseline ----

One AppArmor(const Pod& pod) {
  NameSet values;
  const auto bad = [&](Value context) {
    const Value profile = context["appArmorProfile"];
    const std::string_view type = profile["type"].AsString();
    if (!profile || type == "RuntimeDefault" || type == "Localhost") return false;
    values.emplace(type);
    return true;
  };
  const bool own = bad(pod.context());
  const Names containers = pod.Containers([&](Value, Value context) { return bad(context); });
  Names annotations;
  for (auto [key, v] : pod.metadata["annotations"].members()) {
    const std::string_view value = v.AsString();
    if (!key.starts_with("container.apparmor.security.beta.kubernetes.io/")) continue;
    if (value.empty() || value == "runtime/default" || value.starts_with("localhost/")) continue;
    annotations.push_back(fmt::format("{}={}", key, Quote(value)));
  }
  std::ranges::sort(annotations);
  std::string setters = Setters(own, containers);
  if (!annotations.empty()) {
    if (!setters.empty()) setters += " and ";
    setters += Plural("annotation", "annotations", annotations);
  }
  if (setters.empty()) return {};
  Names all(values.begin(), values.end());
  all.insert(all.end(), annotations.begin(), annotations.end());
  return {std::string(Plural("forbidden AppArmor profile", "forbidden AppArmor profiles", all)),
          fmt::format("{} must not set AppArmor profile type to {}", setters, Quoted(all))};
}

bool AddsOtherThan(Value context, Words allowed, NameSet& added) {
  bool bad = false;
  for (Value capability : context["capabilities"]["add"].items()) {
    if (In(allowed, capability.AsString())) continue;
    added.emplace(capability.AsString());
    bad = true;
  }
  return bad;
}

One DefaultCapabilities(const Pod& pod) {
  constexpr std::string_view kAllowed[] = {"AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",
                                           "FSETID",           "KILL",    "MKNOD",        "SETUID",
                                           "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP",
                                           "SYS_CHROOT"};
  NameSet added;
  const Names bad =
      pod.Containers([&](Value, Value context) { return AddsOtherThan(context, kAllowed, added); });
  if (bad.empty()) return {};
  return {"non-default capabilities",
          fmt::format("{} must not include {} in securityContext.capabilities.add", Listed(bad),
                      Quoted(added))};
}

One HostNamespaces(const Pod& pod) {
  Names used;
  for (const char* name : {"hostNetwork", "hostPID", "hostIPC"})
    if (pod.spec[name].AsBool()) used.push_back(fmt::format("{}=true", name));
  if (used.empty()) return {};
  return {"host namespaces", fmt::format("{}", fmt::join(used, ", "))};
}

One HostPaths(const Pod& pod) {
  Names volumes;
  for (Value volume : pod.spec["volumes"].items())
    if (volume["hostPath"]) volumes.emplace_back(volume["name"].AsString());
  if (volumes.empty()) return {};
  return {"hostPath volumes",
          fmt::format("{} {}", Plural("volume", "volumes", volumes), Quoted(volumes))};
}

One HostPorts(const Pod& pod) {
  NameSet ports;
  const Names bad = pod.Containers([&](Value container, Value) {
    bool uses = false;
    for (Value port : container["ports"].items()) {
      if (port["hostPort"].AsInt() == 0) continue;
      ports.insert(std::to_string(port["hostPort"].AsInt()));
      uses = true;
    }
    return uses;
  });
  if (bad.empty()) return {};
  return {"hostPort", fmt::format("{} {} {} {}", Listed(bad), Plural("uses", "use", bad),
                                  Plural("hostPort", "hostPorts", ports), fmt::join(ports, ", "))};
}

One ProbeHosts(const Pod& pod) {
  NameSet hosts;
  const Names found = pod.Containers([&](Value container, Value) {
    bool uses = false;
    const auto look = [&](Value handler) {
      for (const char* way : {"httpGet", "tcpSocket"}) {
        const std::string_view host = handler[way]["host"].AsString();
        if (host.empty()) continue;
        hosts.emplace(host);
        uses = true;
      }
    };
    for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      look(container[probe]);
    }
    for (const char* hook : {"postStart", "preStop"}) look(container["lifecycle"][hook]);
    return uses;
  });
  if (found.empty()) return {};
  const NameSet bad(found.begin(), found.end());
  return {"probe or lifecycle host",
          fmt::format("{} {} {} {} {}", Plural("container", "containers", bad), Quoted(bad),
                      Plural("uses", "use", bad),
                      Plural("probe or lifecycle host", "probe or lifecycle hosts", hosts),
                      Quoted(hosts))};
}

One Privileged(const Pod& pod) {
  const Names bad =
      pod.Containers([](Value, Value context) { return context["privileged"].AsBool(); });
  if (bad.empty()) return {};
  return {"privileged",
          fmt::format("{} must not set securityContext.privileged=true", Listed(bad))};
}

One ProcMount(const Pod& pod) {
  NameSet kinds;
  const Names bad = pod.Containers([&](Value, Value context) {
    const Value mount = context["procMount"];
    if (!mount || mount.AsString() == "Default") return false;
    kinds.emplace(mount.AsString());
    return true;
  });
  if (bad.empty()) return {};
  return {"procMount", fmt::format("{} must not set securityContext.procMount to {}", Listed(bad),
                                   Quoted(kinds))};
}

One ProcMountByUsers(const Pod& pod) { return pod.own_users() ? One() : ProcMount(pod); }

One SeLinux(const Pod& pod, Words types) {
  NameSet bad_types;
  bool user = false;
  bool role = false;
  const auto bad = [&](Value context) {
    const Value options = context["seLinuxOptions"];
    const std::string_view type = options["type"].AsString();
    const bool typed = !type.empty() && !In(types, type);
    const bool named = !options["user"].AsString().empty();
    const bool acting = !options["role"].AsString().empty();
    if (typed) bad_types.emplace(type);
    user = user || named;
    role = role || acting;
    return typed || named || acting;
  };
  const bool own = bad(pod.context());
  const Names containers = pod.Containers([&](Value, Value context) { return bad(context); });
  const std::string setters = Setters(own, containers);
  if (setters.empty()) return {};
  Names data;
  if (!bad_types.empty()) {
    data.push_back(fmt::format("{} {}", Plural("type", "types", bad_types), Quoted(bad_types)));
  }
  if (user) data.emplace_back("user may not be set");
  if (role) data.emplace_back("role may not be set");
  return {"seLinuxOptions", fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                                        setters, fmt::join(data, "; "))};
}

constexpr std::string_view kSeLinuxTypes[] = {"container_t", "container_init_t", "container_kvm_t",
                                              "container_engine_t"};
One SeLinuxOld(const Pod& pod) { return SeLinux(pod, Words(kSeLinuxTypes).first(3)); }
One SeLinuxNow(const Pod& pod) { return SeLinux(pod, kSeLinuxTypes); }

One SeccompAnnotations(const Pod& pod) {
  NameSet forbidden;
  const auto look = [&](const std::string& key) {
    const Value annotation = pod.metadata["annotations"][key];
    const std::string_view value = annotation.AsString();
    if (!annotation || value == "runtime/default" || value == "docker/default" ||
        value.starts_with("localhost/")) {
      return false;
    }
    forbidden.insert(fmt::format("{}={}", key, Quote(value)));
    return true;
  };
  look("seccomp.security.alpha.kubernetes.io/pod");
  pod.Containers([&](Value container, Value) {
    return look(fmt::format("container.seccomp.security.alpha.kubernetes.io/{}",
                            container["name"].AsString()));
  });
  if (forbidden.empty()) return {};
  return {"seccompProfile",
          fmt::format("forbidden {} {}", Plural("annotation", "annotations", forbidden),
                      fmt::join(forbidden, ", "))};
}

bool SafeSeccomp(Value profile) {
  const std::string_view type = profile["type"].AsString();
  return type == "RuntimeDefault" || type == "Localhost";
}

One SeccompProfiles(const Pod& pod) {
  NameSet values;
  const auto bad = [&](Value context) {
    const Value profile = context["seccompProfile"];
    if (!profile || SafeSeccomp(profile)) return false;
    values.emplace(profile["type"].AsString());
    return true;
  };
  const bool own = bad(pod.context());
  const Names containers = pod.Containers([&](Value, Value context) { return bad(context); });
  const std::string setters = Setters(own, containers);
  if (setters.empty()) return {};
  return {"seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                                        setters, Quoted(values))};
}

constexpr std::string_view kSysctls[] = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    // since 1.27
    "net.ipv4.ip_local_reserved_ports",
    // since 1.29
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    // since 1.32
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"};

template <size_t kAllowed>
One Sysctls(const Pod& pod) {
  Names forbidden;
  for (Value sysctl : pod.context()["sysctls"].items()) {
    const std::string_view name = sysctl["name"].AsString();
    if (!In(Words(kSysctls).first(kAllowed), name)) forbidden.emplace_back(name);
  }
  if (forbidden.empty()) return {};
  return {"forbidden sysctls", fmt::format("{}", fmt::join(forbidden, ", "))};
}

One HostProcess(const Pod& pod) {
  const auto bad = [](Value context) { return context["windowsOptions"]["hostProcess"].AsBool(); };
  const std::string setters = Setters(
      bad(pod.context()), pod.Containers([&](Value, Value context) { return bad(context); }));
  if (setters.empty()) return {};
  return {"hostProcess", setters + " must not set securityContext.windowsOptions.hostProcess=true"};
}

// ---- restricted ----

One Escalation(const Pod& pod) {
  const Names bad = pod.Containers(
      [](Value, Value context) { return context["allowPrivilegeEscalation"].AsBool(true); });
  if (bad.empty()) return {};
  return {"allowPrivilegeEscalation != false",
          fmt::format("{} must set securityContext.allowPrivilegeEscalation=false", Listed(bad))};
}

One DroppedCapabilities(const Pod& pod) {
  constexpr std::string_view kAllowed[] = {"NET_BIND_SERVICE"};
  NameSet added;
  const Names keeping = pod.Containers([](Value, Value context) {
    for (Value capability : context["capabilities"]["drop"].items())
      if (capability.AsString() == "ALL") return false;
    return true;
  });
  const Names adding =
      pod.Containers([&](Value, Value context) { return AddsOtherThan(context, kAllowed, added); });
  Names details;
  if (!keeping.empty()) {
    details.push_back(
        fmt::format("{} must set securityContext.capabilities.drop=[\"ALL\"]", Listed(keeping)));
  }
  if (!adding.empty()) {
    details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add",
                                  Listed(adding), Quoted(added)));
  }
  if (details.empty()) return {};
  return {"unrestricted capabilities", fmt::format("{}", fmt::join(details, "; "))};
}

One RestrictedVolumes(const Pod& pod) {
  constexpr std::string_view kAllowed[] = {"configMap", "csi",       "downwardAPI",
                                           "emptyDir",  "ephemeral", "image",
                                           "projected", "secret",    "persistentVolumeClaim"};
  constexpr std::string_view kRestricted[] = {"hostPath",
                                              "gcePersistentDisk",
                                              "awsElasticBlockStore",
                                              "gitRepo",
                                              "nfs",
                                              "iscsi",
                                              "glusterfs",
                                              "rbd",
                                              "flexVolume",
                                              "cinder",
                                              "cephfs",
                                              "flocker",
                                              "fc",
                                              "azureFile",
                                              "vsphereVolume",
                                              "quobyte",
                                              "azureDisk",
                                              "photonPersistentDisk",
                                              "portworxVolume",
                                              "scaleIO",
                                              "storageos"};
  Names volumes;
  NameSet types;
  for (Value volume : pod.spec["volumes"].items()) {
    const auto has = [&](std::string_view type) { return static_cast<bool>(volume[type]); };
    if (std::ranges::any_of(kAllowed, has)) continue;
    volumes.emplace_back(volume["name"].AsString());
    const auto* type = std::ranges::find_if(kRestricted, has);
    types.emplace(type == std::end(kRestricted) ? "unknown" : *type);
  }
  if (volumes.empty()) return {};
  return {"restricted volume types",
          fmt::format("{} {} {} {} {}", Plural("volume", "volumes", volumes), Quoted(volumes),
                      Plural("uses", "use", volumes),
                      Plural("restricted volume type", "restricted volume types", types),
                      Quoted(types))};
}

One NonRoot(const Pod& pod) {
  constexpr const char* kReason = "runAsNonRoot != true";
  const Value own = pod.context()["runAsNonRoot"];
  const std::string setters =
      Setters(own && !own.AsBool(), pod.Containers([](Value, Value context) {
        return context["runAsNonRoot"] && !context["runAsNonRoot"].AsBool();
      }));
  if (!setters.empty())
    return {kReason, setters + " must not set securityContext.runAsNonRoot=false"};
  if (own) return {};
  const Names silent =
      pod.Containers([](Value, Value context) { return !context["runAsNonRoot"]; });
  if (silent.empty()) return {};
  return {kReason,
          fmt::format("pod or {} must set securityContext.runAsNonRoot=true", Listed(silent))};
}

One NotUserZero(const Pod& pod) {
  const auto zero = [](Value context) {
    return context["runAsUser"] && context["runAsUser"].AsInt() == 0;
  };
  const std::string setters = Setters(
      zero(pod.context()), pod.Containers([&](Value, Value context) { return zero(context); }));
  if (setters.empty()) return {};
  return {"runAsUser=0", setters + " must not set runAsUser=0"};
}

One SeccompRequired(const Pod& pod) {
  One bad = SeccompProfiles(pod);
  if (!bad.reason.empty() || pod.context()["seccompProfile"]) return bad;
  const Names silent =
      pod.Containers([](Value, Value context) { return !context["seccompProfile"]; });
  if (silent.empty()) return {};
  return {"seccompProfile", fmt::format("pod or {} must set securityContext.seccompProfile.type to "
                                        "\"RuntimeDefault\" or \"Localhost\"",
                                        Listed(silent))};
}

template <One (*kCheck)(const Pod&)>
One UnlessWindows(const Pod& pod) {
  return pod.windows() ? One() : kCheck(pod);
}
template <One (*kCheck)(const Pod&)>
One UnlessOwnUsers(const Pod& pod) {
  return pod.own_users() ? One() : kCheck(pod);
}

// In the order in which violations are told: by level, then by id.
struct Check {
  std::string_view id;
  SecurityLevel level;
  int from;  // minor versions of the policy
  int until;
  One (*check)(const Pod& pod);
  std::string_view overrides = {};  // a baseline check that says no more than this one
};
constexpr SecurityLevel kBase = SecurityLevel::kBaseline;
constexpr SecurityLevel kStrict = SecurityLevel::kRestricted;
constexpr int kOn = kLatestMinor;
constexpr Check kChecks[] = {
    {"appArmorProfile", kBase, 0, kOn, AppArmor},
    {"capabilities_baseline", kBase, 0, kOn, DefaultCapabilities},
    {"hostNamespaces", kBase, 0, kOn, HostNamespaces},
    {"hostPathVolumes", kBase, 0, kOn, HostPaths},
    {"hostPorts", kBase, 0, kOn, HostPorts},
    {"hostProbesAndHostLifecycle", kBase, 34, kOn, ProbeHosts},
    {"privileged", kBase, 0, kOn, Privileged},
    {"procMount", kBase, 0, 34, ProcMount},
    {"procMount", kBase, 35, kOn, ProcMountByUsers},
    {"seLinuxOptions", kBase, 0, 30, SeLinuxOld},
    {"seLinuxOptions", kBase, 31, kOn, SeLinuxNow},
    {"seccompProfile_baseline", kBase, 0, 18, SeccompAnnotations},
    {"seccompProfile_baseline", kBase, 19, kOn, SeccompProfiles},
    {"sysctls", kBase, 0, 26, Sysctls<5>},
    {"sysctls", kBase, 27, 28, Sysctls<6>},
    {"sysctls", kBase, 29, 31, Sysctls<10>},
    {"sysctls", kBase, 32, kOn, Sysctls<12>},
    {"windowsHostProcess", kBase, 0, kOn, HostProcess},
    {"allowPrivilegeEscalation", kStrict, 8, 24, Escalation},
    {"allowPrivilegeEscalation", kStrict, 25, kOn, UnlessWindows<Escalation>},
    {"capabilities_restricted", kStrict, 22, 24, DroppedCapabilities, "capabilities_baseline"},
    {"capabilities_restricted", kStrict, 25, kOn, UnlessWindows<DroppedCapabilities>,
     "capabilities_baseline"},
    {"procMount_restricted", kStrict, 35, kOn, ProcMount, "procMount"},
    {"restrictedVolumes", kStrict, 0, kOn, RestrictedVolumes, "hostPathVolumes"},
    {"runAsNonRoot", kStrict, 0, 34, NonRoot},
    {"runAsNonRoot", kStrict, 35, kOn, UnlessOwnUsers<NonRoot>},
    {"runAsUser", kStrict, 23, 34, NotUserZero},
    {"runAsUser", kStrict, 35, kOn, UnlessOwnUsers<NotUserZero>},
    {"seccompProfile_restricted", kStrict, 19, 24, SeccompRequired, "seccompProfile_baseline"},
    {"seccompProfile_restricted", kStrict, 25, kOn, UnlessWindows<SeccompRequired>,
     "seccompProfile_baseline"},
};

// ---- labels ----

constexpr std::string_view kLevels[] = {"privileged", "baseline", "restricted"};
constexpr std::string_view kLabels = "pod-security.kubernetes.io/";

class LabelReader {
 public:
  LabelReader(Value labels, api::FieldErrors& errors) : labels_(labels), errors_(errors) {}

  bool Has(std::string_view name) const { return labels_.Has(Key(name)); }

  // False if the label is there and wrong.
  bool Level(std::string_view name, SecurityLevel& level) {
    const Value label = labels_[Key(name)];
    if (label.IsAbsent()) return true;
    const auto* known = std::ranges::find(kLevels, label.AsString());
    if (known == std::end(kLevels)) {
      return Bad(name, label, fmt::format("must be one of {}", fmt::join(kLevels, ", ")));
    }
    level = static_cast<SecurityLevel>(known - std::begin(kLevels));
    return true;
  }

  void Version(std::string_view name, int& minor) {
    const Value label = labels_[Key(name)];
    std::string_view text = label.AsString();
    if (label.IsAbsent() || text == "latest") return;
    int value = 0;
    const bool prefixed = text.starts_with("v1.");
    if (prefixed) text.remove_prefix(3);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool plain = !text.empty() && text[0] != '-' && (text[0] != '0' || text.size() == 1);
    if (!prefixed || !plain || error != std::errc() || end != text.data() + text.size()) {
      Bad(name, label, "must be \"latest\" or \"v1.x\"");
      return;
    }
    minor = value;
  }

 private:
  static std::string Key(std::string_view name) { return fmt::format("{}{}", kLabels, name); }
  bool Bad(std::string_view name, Value label, std::string why) {
    errors_.InvalidText(fmt::format("metadata.labels[{}]", Key(name)), label.AsString(),
                        std::move(why));
    return false;
  }

  Value labels_;
  api::FieldErrors& errors_;
};

}  // namespace

std::string LeveledPolicy::ToString() const {
  const std::string_view name = kLevels[static_cast<size_t>(level)];
  if (minor == kLatestMinor) return fmt::format("{}:latest", name);
  return fmt::format("{}:v1.{}", name, minor);
}

PodSecurityPolicy PolicyOf(Value labels, api::FieldErrors& errors) {
  PodSecurityPolicy policy;
  LabelReader reader(labels, errors);
  const bool sound = reader.Level("enforce", policy.enforce.level);
  if (!sound) policy.enforce.level = SecurityLevel::kRestricted;
  reader.Version("enforce-version", policy.enforce.minor);
  LeveledPolicy audit;  // told to the audit log alone, but wrong labels are refused
  reader.Level("audit", audit.level);
  reader.Version("audit-version", audit.minor);
  if (!reader.Level("warn", policy.warn.level)) policy.warn.level = SecurityLevel::kPrivileged;
  reader.Version("warn-version", policy.warn.minor);
  // What is enforced is warned of as well: of workloads, whose Pods come later.
  if (!reader.Has("warn") && reader.Has("enforce") && sound &&
      policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!reader.Has("warn-version")) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

Violations Violations::Of(const LeveledPolicy& policy, Value metadata, Value spec) {
  Violations out;
  const auto applies = [&](const Check& check) {
    return check.level <= policy.level && check.from <= policy.minor && policy.minor <= check.until;
  };
  const auto overridden = [&](const Check& check) {
    return std::ranges::any_of(
        kChecks, [&](const Check& other) { return other.overrides == check.id && applies(other); });
  };
  const Pod pod{metadata, spec};
  for (const Check& check : kChecks) {
    if (!applies(check) || overridden(check)) continue;
    One found = check.check(pod);
    if (!found.reason.empty()) out.found_.push_back(std::move(found));
  }
  return out;
}

std::string Violations::Reasons() const {
  std::vector<std::string_view> reasons;
  for (const One& one : found_) reasons.push_back(one.reason);
  return fmt::format("{}", fmt::join(reasons, ", "));
}

std::string Violations::Detail() const {
  std::vector<std::string> texts;
  for (const One& one : found_) {
    texts.push_back(one.detail.empty() ? one.reason
                                       : fmt::format("{} ({})", one.reason, one.detail));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace sextant::server
