// Warnings: what is accepted and yet not what its author wants. Source: pkg/api/pod/warnings.go,
// pkg/api/node, pkg/api/service/warnings.go, pkg/registry/core/*/strategy.go.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/base64.h"
#include "base/quote.h"

namespace sextant::api {
namespace {

struct Deprecated {
  std::string_view name;
  std::string_view message;
};

constexpr Deprecated kNodeLabels[] = {
    {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
    {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
    {"failure-domain.beta.kubernetes.io/region",
     "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
    {"failure-domain.beta.kubernetes.io/zone",
     "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
    {"beta.kubernetes.io/instance-type",
     "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods",
     "deprecated since v1.22; use Taints and Tolerations instead"},
    {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"}};
constexpr Deprecated kAnnotations[] = {
    {"scheduler.alpha.kubernetes.io/critical-pod",
     "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
    {"security.alpha.kubernetes.io/sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"},
    {"security.alpha.kubernetes.io/unsafe-sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"}};
constexpr Deprecated kVolumes[] = {
    {"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    {"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    {"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    {"flocker", "deprecated in v1.22, non-functional in v1.25+"},
    {"storageos", "deprecated in v1.22, non-functional in v1.25+"},
    {"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    {"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    {"rbd", "deprecated in v1.28, non-functional in v1.31+"}};
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";

const Deprecated* Find(std::span<const Deprecated> list, std::string_view name) {
  const auto at = std::ranges::find(list, name, &Deprecated::name);
  return at == list.end() ? nullptr : &*at;
}

void Say(Warnings& out, const At& at, std::string_view message) {
  out.push_back(fmt::format("{}: {}", at.ToString(), message));
}

// What one Pod spec and its metadata deserve.
class PodWarnings {
 public:
  PodWarnings(Value metadata, Value spec, const At& metadata_at, const At& at, Warnings& out)
      : metadata_(metadata), spec_(spec), metadata_at_(metadata_at), at_(at), out_(out) {}

  void Run() {
    for (auto [key, value] : spec_["nodeSelector"].members()) {
      if (const Deprecated* d = Find(kNodeLabels, key)) {
        Say(out_, at_.Key("nodeSelector", key), d->message);
      }
    }
    NodeAffinity();
    Spread();
    for (const Deprecated& d : kAnnotations) {
      if (metadata_["annotations"].Has(d.name)) {
        Say(out_, metadata_at_.Key("annotations", d.name), d.message);
      }
    }
    Volumes();
    EmptySources();
    Duplicates("hostAliases", "ip", "ip");
    Duplicates("imagePullSecrets", "name", "name");
    EmptyPullSecrets();
    for (const char* name : {"memory", "ephemeral-storage"}) {
      Fraction(spec_["overhead"][name], at_.Key("overhead", name));
    }
    if (!spec_["securityContext"]["seccompProfile"]) Seccomp(kSeccompPod);
    EachContainer(spec_, at_, [&](Value c, const At& here) { Container(c, here); });
    Ports();
    PortNames();
    for (const char* kind : {"podAffinity", "podAntiAffinity"}) PodAffinity(kind);
  }

 private:
  void Term(Value term, const At& at) {
    size_t i = 0;
    for (Value expr : term["matchExpressions"].items()) {
      const At here = at.Item("matchExpressions", i++);
      const std::string_view key = expr["key"].AsString();
      if (const Deprecated* d = Find(kNodeLabels, key)) {
        Say(out_, here / "key", fmt::format("{} is {}", key, d->message));
      }
    }
  }

  void NodeAffinity() {
    const Value affinity = spec_["affinity"]["nodeAffinity"];
    const At here = at_ / "affinity.nodeAffinity";
    const At required = here / "requiredDuringSchedulingIgnoredDuringExecution";
    size_t i = 0;
    for (Value term :
         affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].items()) {
      Term(term, required.Item("nodeSelectorTerms", i++));
    }
    i = 0;
    for (Value term : affinity["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      const At item = here.Item("preferredDuringSchedulingIgnoredDuringExecution", i++);
      Term(term["preference"], item / "preference");
    }
  }

  void Spread() {
    size_t i = 0;
    for (Value c : spec_["topologySpreadConstraints"].items()) {
      const At here = at_.Item("topologySpreadConstraints", i++);
      const std::string_view key = c["topologyKey"].AsString();
      if (const Deprecated* d = Find(kNodeLabels, key)) {
        Say(out_, here / "topologyKey", fmt::format("{} is {}", key, d->message));
      }
      if (!c["labelSelector"]) NullSelector(here);
    }
  }

  void NullSelector(const At& at) {
    Say(out_, at / "labelSelector", "a null labelSelector results in matching no pod");
  }

  void Volumes() {
    size_t i = 0;
    for (Value v : spec_["volumes"].items()) {
      const At here = at_.Item("volumes", i++);
      for (const Deprecated& d : kVolumes) {
        if (!v[d.name]) continue;
        Say(out_, here / (d.name == "storageos" ? std::string_view("storageOS") : d.name),
            d.message);
      }
    }
  }

  // Two files of one volume, one of which is the other or lies below it.
  void EmptySources() {
    for (Value v : spec_["volumes"].items()) {
      const std::string_view volume = v["name"].AsString();
      for (const char* kind : {"configMap", "secret", "downwardAPI"}) {
        const bool secret = std::string_view(kind) == "secret";
        const std::string_view name = v[kind][secret ? "secretName" : "name"].AsString();
        const std::string what = std::string_view(kind) == "downwardAPI" ? "DownwardAPI"
                                 : secret                                ? "Secret " + Quote(name)
                                          : "ConfigMap " + Quote(name);
        Paths paths;
        for (Value item : v[kind]["items"].items()) {
          Overlap(paths, {std::string(item["path"].AsString()), ""}, volume, what);
        }
      }
      Paths paths;
      for (Value source : v["projected"]["sources"].items()) {
        if (source.empty()) {
          out_.push_back(
              fmt::format("volume {} (Projected) has no sources provided", Quote(volume)));
        }
        ProjectedPaths(source, paths, volume);
      }
    }
  }

  struct Path {
    std::string path;
    std::string source;
    std::string ToString() const {
      return source.empty() ? Quote(path) : fmt::format("{} ({})", Quote(path), source);
    }
  };
  using Paths = std::vector<Path>;

  void ProjectedPaths(Value source, Paths& paths, std::string_view volume) {
    for (const char* kind : {"configMap", "secret", "downwardAPI"}) {
      const std::string_view name = source[kind]["name"].AsString();
      const std::string_view k = kind;
      const std::string what = k == "downwardAPI" ? "DownwardAPI"
                               : k == "secret"    ? "Secret " + Quote(name)
                                                  : "ConfigMap " + Quote(name);
      for (Value item : source[kind]["items"].items()) {
        Overlap(paths, {std::string(item["path"].AsString()), what}, volume, "Projected");
      }
    }
    if (const Value token = source["serviceAccountToken"]) {
      Overlap(paths, {std::string(token["path"].AsString()), "ServiceAccountToken"}, volume,
              "Projected");
    }
  }

  void Overlap(Paths& paths, Path next, std::string_view volume, std::string_view what) {
    while (next.path.ends_with('/')) next.path.pop_back();
    if (next.path.empty()) return;
    for (const Path& other : paths) {
      if (next.path != other.path && !next.path.starts_with(other.path + "/") &&
          !other.path.starts_with(next.path + "/")) {
        continue;
      }
      out_.push_back(fmt::format("volume {} ({}): overlapping paths: {} with {}", Quote(volume),
                                 what, next.ToString(), other.ToString()));
    }
    paths.push_back(std::move(next));
  }

  void Duplicates(const char* list, const char* field, std::string_view what) {
    Names seen;
    size_t i = 0;
    for (Value item : spec_[list].items()) {
      const At here = at_.Item(list, i++);
      const std::string_view text = item[field].AsString();
      if (seen.emplace(text).second) continue;
      Say(out_, here / field, fmt::format("duplicate {} {}", what, Quote(text)));
    }
  }

  void EmptyPullSecrets() {
    size_t i = 0;
    for (Value item : spec_["imagePullSecrets"].items()) {
      const At here = at_.Item("imagePullSecrets", i++);
      if (item["name"].AsString().empty()) Say(out_, here / "name", "invalid empty name \"\"");
    }
  }

  void Fraction(Value quantity, const At& at) {
    if (!quantity) return;
    const Quantity q = Quantity::ParseOrZero(quantity.AsString());
    if (q.MilliValue() % 1000 == 0) return;
    Say(out_, at,
        fmt::format("fractional byte value {} is invalid, must be an integer",
                    Quote(quantity.AsString())));
  }

  void Seccomp(std::string_view key) {
    if (!metadata_["annotations"].Has(key)) return;
    Say(out_, metadata_at_.Key("annotations", key),
        "non-functional in v1.27+; use the \"seccompProfile\" field instead");
  }

  void Container(Value c, const At& at) {
    if (!c["securityContext"]["seccompProfile"]) {
      Seccomp(fmt::format("{}{}", kSeccompContainer, c["name"].AsString()));
    }
    const At resources = at / "resources";
    for (const char* name : {"memory", "ephemeral-storage"}) {
      for (const char* list : {"limits", "requests"}) {
        Fraction(c["resources"][list][name], resources.Key(list, name));
      }
    }
    Names seen;
    size_t i = 0;
    for (Value var : c["env"].items()) {
      const At here = at.Item("env", i++);
      const std::string_view name = var["name"].AsString();
      if (seen.emplace(name).second) continue;
      const std::string own = fmt::format("$({})", name);
      const std::string_view value = var["value"].AsString();
      if (var["valueFrom"] || value == own || value.find(own) == std::string_view::npos) {
        Say(out_, here,
            fmt::format("hides previous definition of {}, which may be dropped when "
                        "using apply",
                        Quote(name)));
      }
    }
  }

  struct Port {
    std::string at;
    int64_t host;
    std::string_view ip;
  };

  void Ports() {
    std::map<std::pair<int64_t, std::string_view>, std::vector<Port>> ports;
    EachContainer(spec_, at_, [&](Value c, const At& container) {
      size_t i = 0;
      for (Value p : c["ports"].items()) {
        const At here = container.Item("ports", i++);
        Port port{here.ToString(), p["hostPort"].AsInt(), p["hostIP"].AsString()};
        auto& others = ports[{p["containerPort"].AsInt(), p["protocol"].AsString()}];
        for (const Port& other : others) {
          std::string_view what;
          if (port.ip == other.ip && port.host == other.host) {
            what = "duplicate";
          } else if (port.host == 0 || other.host == 0) {
            what = "overlapping";
          } else if (port.host == other.host && port.ip.empty() != other.ip.empty()) {
            what = "dangerously ambiguous";
          } else {
            continue;
          }
          Say(out_, here, fmt::format("{} port definition with {}", what, other.at));
        }
        others.push_back(std::move(port));
      }
    });
  }

  void PortNames() {
    std::map<std::string_view, std::string> names;
    EachContainer(spec_, at_, [&](Value c, const At& container) {
      size_t i = 0;
      for (Value p : c["ports"].items()) {
        const At here = container.Item("ports", i++);
        const std::string_view name = p["name"].AsString();
        if (name.empty()) continue;
        const auto [at, fresh] = names.emplace(name, here.ToString());
        if (fresh) continue;
        Say(out_, here,
            fmt::format("duplicate port name {} with {}, services and probes that "
                        "select ports by name will use {}",
                        Quote(name), at->second, at->second));
      }
    });
  }

  void PodAffinity(const char* kind) {
    const At affinity = at_ / "affinity";
    const At here = affinity / kind;
    const Value v = spec_["affinity"][kind];
    size_t i = 0;
    for (Value term : v["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      const At item = here.Item("requiredDuringSchedulingIgnoredDuringExecution", i++);
      if (!term["labelSelector"]) NullSelector(item);
    }
    i = 0;
    for (Value term : v["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      const At item = here.Item("preferredDuringSchedulingIgnoredDuringExecution", i++);
      if (!term["podAffinityTerm"]["labelSelector"]) NullSelector(item / "podAffinityTerm");
    }
  }

  Value metadata_;
  Value spec_;
  const At& metadata_at_;
  const At& at_;
  Warnings& out_;
};

void WarnOfTemplateAt(Value template_, const At& at, Warnings& out) {
  const At metadata = at / "metadata";
  const At spec = at / "spec";
  PodWarnings(template_["metadata"], template_["spec"], metadata, spec, out).Run();
}

bool Changed(Value a, Value b) { return !b || !Same(a, b); }

void WarnOfDnsName(Value o, std::string_view where, Warnings& out) {
  const Complaints complaints = IsDns1123Label(o["metadata"]["name"].AsString());
  if (complaints.empty()) return;
  out.push_back(
      fmt::format("metadata.name: this is used in {}, which can result in surprising "
                  "behavior; a DNS label is recommended: [{}]",
                  where, fmt::join(complaints, " ")));
}

}  // namespace

void WarnOfPod(Value o, Value old, Warnings& out) {
  if (!old) WarnOfDnsName(o, "the Pod's hostname", out);
  const At metadata("metadata");
  const At spec("spec");
  PodWarnings(o["metadata"], o["spec"], metadata, spec, out).Run();
}

void WarnOfTemplate(Value o, Value old, Warnings& out) {
  if (!Changed(o["spec"], old["spec"])) return;
  const At spec("spec");
  WarnOfTemplateAt(o["spec"]["template"], spec / "template", out);
}

void WarnOfJob(Value o, Value old, Warnings& out) {
  if (!old) WarnOfDnsName(o, "Pod names and hostnames", out);
  constexpr int64_t kManyCompletions = 100000;
  constexpr int64_t kMuchParallelism = 10000;
  const Value job = o["spec"];
  const At spec("spec");
  if (job["completionMode"].AsString() == "Indexed" &&
      job["completions"].AsInt() > kManyCompletions &&
      job["parallelism"].AsInt() > kMuchParallelism) {
    Say(out, spec,
        "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
        "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of "
        "indexes fail");
  }
  WarnOfTemplateAt(job["template"], spec / "template", out);
}

void WarnOfCronJob(Value o, Value old, Warnings& out) {
  if (!old) WarnOfDnsName(o, "Pod names and hostnames", out);
  if (!Changed(o["spec"], old["spec"])) return;
  const At job("spec.jobTemplate.spec");
  WarnOfTemplateAt(o["spec"]["jobTemplate"]["spec"]["template"], job / "template", out);
}

void WarnOfNode(Value o, Value, Warnings& out) {
  if (o["spec"]["configSource"]) {
    out.emplace_back("spec.configSource: the feature is no longer supported");
  }
  if (!o["spec"]["externalID"].AsString().empty()) {
    out.emplace_back("spec.externalID: this field is deprecated, and is unused by Kubernetes");
  }
}

void WarnOfService(Value o, Value, Warnings& out) {
  const Value spec = o["spec"];
  const std::string_view type = spec["type"].AsString();
  const bool headless = type == "ClusterIP" && spec["clusterIP"].AsString() == "None";
  const bool named = type == "ExternalName";
  const bool external = !spec["externalIPs"].empty();
  if (o["metadata"]["annotations"].Has("service.kubernetes.io/topology-aware-hints")) {
    out.emplace_back(
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
        "service.kubernetes.io/topology-mode instead");
  }
  if (headless) {
    if (!spec["loadBalancerIP"].AsString().empty()) {
      out.emplace_back("spec.loadBalancerIP is ignored for headless services");
    }
    if (external) out.emplace_back("spec.externalIPs is ignored for headless services");
    if (spec["sessionAffinity"].AsString() != "None") {
      out.emplace_back("spec.SessionAffinity is ignored for headless services");
    }
  }
  if (external && !headless && !named) {
    out.emplace_back(
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  if (named && external) {
    out.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  }
  if (!named && !spec["externalName"].AsString().empty()) {
    out.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (spec["trafficDistribution"].AsString() == "PreferClose") {
    out.emplace_back(
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
}

void WarnOfCsiDriver(Value o, Value old, Warnings& out) {
  const Value spec = o["spec"];
  if (old || spec["tokenRequests"].empty() || spec["serviceAccountTokenInSecrets"]) return;
  out.emplace_back(
      "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
      "prevent possible logging of tokens in volume attributes");
}

// As far as a look at the text goes: whether key and certificate match is not checked.
void WarnOfSecret(Value o, Value, Warnings& out) {
  if (o["type"].AsString() != "kubernetes.io/tls") return;
  const auto pem = [&](const char* key) {
    const auto text = Base64Decode(o["data"][key].AsString());
    return text && text->contains("-----BEGIN ");
  };
  if (!pem("tls.crt")) {
    out.emplace_back("tls: failed to find any PEM data in certificate input");
  } else if (!pem("tls.key")) {
    out.emplace_back("tls: failed to find any PEM data in key input");
  }
}

void WarnOfServiceAccount(Value o, Value old, Warnings& out) {
  constexpr std::string_view kEnforce = "kubernetes.io/enforce-mountable-secrets";
  if (old["metadata"]["annotations"].Has(kEnforce)) return;
  if (!o["metadata"]["annotations"].Has(kEnforce)) return;
  out.push_back(
      fmt::format("metadata.annotations[{}]: deprecated in v1.32+; prefer separate namespaces to "
                  "isolate access to mounted secrets",
                  kEnforce));
}

}  // namespace sextant::api
