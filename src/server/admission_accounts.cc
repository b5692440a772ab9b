// ServiceAccount: plugin/pkg/admission/serviceaccount.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "api/lists.h"
#include "base/random.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kTokenMount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kTokenVolume = "kube-api-access-";
constexpr int64_t kTokenLifetime_s = 3607;  // serviceaccount.WarnOnlyBoundTokenExpirationSeconds
constexpr int64_t kProjectedMode = 420;     // 0644
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kEnforce = "kubernetes.io/enforce-mountable-secrets";

struct ContainerList {
  const char* field;
  std::string_view word;  // in messages
};
constexpr ContainerList kContainers[] = {{"initContainers", "init container"},
                                         {"containers", "container"},
                                         {"ephemeralContainers", "ephemeral container"}};

// Why a container may not have a secret that its account does not list; "" if it may have its.
std::string SecretComplaint(Value container, std::string_view word, const Object& account) {
  const auto not_allowed = [&](std::string_view where, std::string_view secret) {
    return fmt::format(
        "{} {} with {} referencing secret.secretName=\"{}\" is not allowed because service account "
        "{} does not reference that secret",
        word, container["name"].AsString(), where, secret, account.name());
  };
  for (Value env : container["env"].items()) {
    const Value ref = env["valueFrom"]["secretKeyRef"];
    const std::string_view secret = ref["name"].AsString();
    if (ref && !api::FindBy(account["secrets"], "name", secret)) {
      return not_allowed(fmt::format("envVar {}", env["name"].AsString()), secret);
    }
  }
  for (Value from : container["envFrom"].items()) {
    const std::string_view secret = from["secretRef"]["name"].AsString();
    if (from["secretRef"] && !api::FindBy(account["secrets"], "name", secret)) {
      return not_allowed("envFrom", secret);
    }
  }
  return {};
}

std::string AnyContainerComplaint(Value spec, std::span<const ContainerList> lists,
                                  const Object& account) {
  for (const ContainerList& list : lists) {
    for (Value container : spec[list.field].items()) {
      std::string why = SecretComplaint(container, list.word, account);
      if (!why.empty()) return why;
    }
  }
  return {};
}

std::string PodComplaint(Value spec, const Object& account) {
  for (Value volume : spec["volumes"].items()) {
    const std::string_view secret = volume["secret"]["secretName"].AsString();
    if (!volume["secret"] || api::FindBy(account["secrets"], "name", secret)) continue;
    return fmt::format(
        "volume with secret.secretName=\"{}\" is not allowed because service account "
        "{} does not reference that secret",
        secret, account.name());
  }
  std::string why = AnyContainerComplaint(spec, std::span(kContainers).first(2), account);
  if (!why.empty()) return why;
  size_t i = 0;
  for (Value pull : spec["imagePullSecrets"].items()) {
    const std::string_view secret = pull["name"].AsString();
    if (!api::FindBy(account["imagePullSecrets"], "name", secret)) {
      return fmt::format(
          "imagePullSecrets[{}].name=\"{}\" is not allowed because service account "
          "{} does not reference that imagePullSecret",
          i, secret, account.name());
    }
    ++i;
  }
  return {};
}

bool NamesSecrets(Value spec) {
  if (!spec["imagePullSecrets"].empty()) return true;
  for (Value volume : spec["volumes"].items()) {
    if (volume["secret"]) return true;
    for (Value source : volume["projected"]["sources"].items())
      if (source["secret"]) return true;
  }
  for (const ContainerList& list : kContainers) {
    for (Value container : spec[list.field].items()) {
      for (Value env : container["env"].items())
        if (env["valueFrom"]["secretKeyRef"]) return true;
      for (Value from : container["envFrom"].items())
        if (from["secretRef"]) return true;
    }
  }
  return false;
}

// What a mirror Pod, which runs whatever the API says, may not refer to; "" if all is well.
std::string_view MirrorComplaint(Value spec) {
  if (!spec["serviceAccountName"].AsString().empty()) {
    return "a mirror pod may not reference service accounts";
  }
  if (NamesSecrets(spec)) return "a mirror pod may not reference secrets";
  for (Value volume : spec["volumes"].items()) {
    for (Value source : volume["projected"]["sources"].items()) {
      if (source["serviceAccountToken"]) {
        return "a mirror pod may not use ServiceAccountToken volume projections";
      }
    }
  }
  return {};
}

class ServiceAccountAdmission : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "ServiceAccount"; }

  Status Admit(const AdmissionRequest& request, Mut pod) const override {
    if (!request.On("", "pods") || request.verb != "create") return {};
    if (pod["metadata"]["annotations"].Has(kMirror)) return {};
    Mut spec = pod["spec"];
    std::string account(spec["serviceAccountName"].AsString());
    if (account.empty()) {
      account = "default";
      spec.Set("serviceAccountName", account);
      spec.Set("serviceAccount", account);
    }
    const std::string& ns = request.op.info.ns;
    const Object found = request.view.Get("serviceaccounts", ns, account);
    if (!found) {
      Error error = AdmissionForbidden(
          request, request.op.body.root(),
          fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", ns,
                      account, account));
      if (account == "default") error.retry_after_s = kRetrySoon;
      return Fail(std::move(error));
    }
    if (WantsToken(spec, found.root())) MountToken(spec);
    if (spec["imagePullSecrets"].size() == 0) {
      for (Value secret : found["imagePullSecrets"].items()) {
        spec["imagePullSecrets"].Append().Set("name", secret["name"].AsString());
      }
    }
    return {};
  }

  Status Validate(const AdmissionRequest& request, Value pod) const override {
    const bool debugged = request.On("", "pods", "ephemeralcontainers") && request.verb == "update";
    if (!debugged && (!request.On("", "pods") || request.verb != "create")) return {};
    if (!debugged && pod["metadata"]["annotations"].Has(kMirror)) {
      const std::string_view why = MirrorComplaint(pod["spec"]);
      return why.empty() ? Status() : Fail(AdmissionForbidden(request, pod, why));
    }
    const Object account = request.view.Get("serviceaccounts", request.op.info.ns,
                                            pod["spec"]["serviceAccountName"].AsString());
    const std::string_view enforce = account["metadata"]["annotations"][kEnforce].AsString();
    constexpr std::string_view kTrue[] = {"1", "t", "T", "true", "TRUE", "True"};
    if (std::ranges::find(kTrue, enforce) == std::end(kTrue)) return {};
    const std::string why =
        debugged ? AnyContainerComplaint(pod["spec"], std::span(kContainers).last(1), account)
                 : PodComplaint(pod["spec"], account);
    return why.empty() ? Status() : Fail(AdmissionForbidden(request, pod, why));
  }

 private:
  static bool WantsToken(Mut spec, Value account) {
    if (spec.Has("automountServiceAccountToken")) {
      return spec["automountServiceAccountToken"].AsBool();
    }
    return account["automountServiceAccountToken"].AsBool(true);
  }

  static bool MountInto(Mut container, std::string_view volume) {
    Mut mounts = container["volumeMounts"];
    for (size_t i = 0; i < mounts.size(); ++i) {
      if (mounts.at(i)["mountPath"].AsString() == kTokenMount) return false;
    }
    Mut mount = mounts.Append();
    mount.Set("name", volume);
    mount.Set("readOnly", true);
    mount.Set("mountPath", kTokenMount);
    return true;
  }

  static void MountToken(Mut spec) {
    thread_local Random random(RandomSeed());
    std::string volume;
    Mut volumes = spec["volumes"];
    for (size_t i = 0; i < volumes.size() && volume.empty(); ++i) {
      const std::string_view name = volumes.at(i)["name"].AsString();
      if (name.starts_with(kTokenVolume)) volume = name;
    }
    const bool there = !volume.empty();
    if (!there) volume = std::string(kTokenVolume) + NameSuffix(random);
    bool needed = false;
    for (const char* list : {"initContainers", "containers"}) {
      Mut containers = spec[list];
      for (size_t i = 0; i < containers.size(); ++i) needed |= MountInto(containers.at(i), volume);
    }
    if (needed && !there) AddTokenVolume(spec["volumes"].Append(), volume);
  }

  static void AddTokenVolume(Mut volume, const std::string& name) {
    volume.Set("name", name);
    Mut projected = volume["projected"];
    projected.Set("defaultMode", kProjectedMode);
    Mut sources = projected["sources"];
    Mut token = sources.Append()["serviceAccountToken"];
    token.Set("expirationSeconds", kTokenLifetime_s);
    token.Set("path", "token");
    Mut ca = sources.Append()["configMap"];
    ca.Set("name", "kube-root-ca.crt");
    Mut item = ca["items"].Append();
    item.Set("key", "ca.crt");
    item.Set("path", "ca.crt");
    Mut file = sources.Append()["downwardAPI"]["items"].Append();
    file.Set("path", "namespace");
    file["fieldRef"].Set("apiVersion", "v1");
    file["fieldRef"].Set("fieldPath", "metadata.namespace");
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> MakeServiceAccountAdmission() {
  return std::make_unique<ServiceAccountAdmission>();
}

}  // namespace sextant::server
