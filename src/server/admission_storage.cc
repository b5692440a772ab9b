// Storage and ingress: plugin/pkg/admission/storage (setdefault, resize,
// storageobjectinuseprotection), plugin/pkg/admission/network/defaultingressclass.
#include <fmt/format.h>

#include <tuple>

#include "api/default_class.h"
#include "api/lists.h"
#include "api/quantity.h"
#include "server/admission_plugins.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Object;
using api::Quantity;
using api::Value;

constexpr std::string_view kBetaClass = "volume.beta.kubernetes.io/storage-class";

Object DefaultClass(const ClusterView& view, std::string_view resource,
                    std::span<const std::string_view> marks) {
  std::vector<Object> classes;
  if (const auto all = view.Snapshot(resource)) {
    for (const auto& entry : all->Range("", "", "", 0)) classes.push_back(entry->object);
  }
  return api::DefaultClass(classes, marks);
}

class DefaultStorageClass : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultStorageClass"; }

  Status Admit(const AdmissionRequest& request, Mut claim) const override {
    if (!request.On("", "persistentvolumeclaims") || request.verb != "create") return {};
    if (claim["metadata"]["annotations"].Has(kBetaClass)) return {};
    if (claim["spec"].Has("storageClassName")) return {};
    const Object found =
        DefaultClass(request.view, "storageclasses.storage.k8s.io", api::kDefaultStorageMarks);
    if (found) claim["spec"].Set("storageClassName", found.name());
    return {};
  }
};

class DefaultIngressClass : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultIngressClass"; }

  Status Admit(const AdmissionRequest& request, Mut ingress) const override {
    if (!request.On("networking.k8s.io", "ingresses") || request.verb != "create") return {};
    if (ingress["spec"].Has("ingressClassName")) return {};
    if (ingress["metadata"]["annotations"].Has("kubernetes.io/ingress.class")) return {};
    const Object found =
        DefaultClass(request.view, "ingressclasses.networking.k8s.io", api::kDefaultIngressMarks);
    if (found) ingress["spec"].Set("ingressClassName", found.name());
    return {};
  }
};

// What is in use stays until its controller takes the finalizer away.
class StorageObjectInUseProtection : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "StorageObjectInUseProtection"; }

  Status Admit(const AdmissionRequest& request, Mut object) const override {
    if (request.verb != "create") return {};
    for (const auto& [group, plural, finalizer] : kProtected) {
      if (!request.On(group, plural)) continue;
      const Mut list = object["metadata"]["finalizers"];
      if (api::Holds(list.Snapshot(), finalizer)) return {};
      list.Append().SetString(finalizer);
    }
    return {};
  }

 private:
  static constexpr std::tuple<std::string_view, std::string_view, std::string_view> kProtected[] = {
      {"", "persistentvolumes", "kubernetes.io/pv-protection"},
      {"", "persistentvolumeclaims", "kubernetes.io/pvc-protection"},
      {"storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"},
  };
};

std::string_view ClassOf(Value claim) {
  const Value annotated = claim["metadata"]["annotations"][kBetaClass];
  return annotated ? annotated.AsString() : claim["spec"]["storageClassName"].AsString();
}

class PersistentVolumeClaimResize : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PersistentVolumeClaimResize"; }

  Status Validate(const AdmissionRequest& request, Value claim) const override {
    if (!request.On("", "persistentvolumeclaims") || request.verb != "update") return {};
    const auto size = [](Value c) {
      return Quantity::ParseOrZero(c["spec"]["resources"]["requests"]["storage"].AsString());
    };
    // That the claim is bound, validation has seen to.
    if (size(claim) <= size(request.old) || MayGrow(request, claim)) return {};
    return Fail(AdmissionForbidden(
        request, claim,
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
        "pvc must support resize"));
  }

 private:
  static bool MayGrow(const AdmissionRequest& request, Value claim) {
    const std::string_view name = ClassOf(claim);
    if (name.empty() || name != ClassOf(request.old)) return false;
    return request.view.Get("storageclasses.storage.k8s.io", "", name)["allowVolumeExpansion"]
        .AsBool();
  }
};

}  // namespace

void AddStorageAdmission(AdmissionChain& chain) {
  chain.push_back(std::make_unique<DefaultStorageClass>());
  chain.push_back(std::make_unique<StorageObjectInUseProtection>());
  chain.push_back(std::make_unique<PersistentVolumeClaimResize>());
}

std::unique_ptr<AdmissionPlugin> MakeDefaultIngressClass() {
  return std::make_unique<DefaultIngressClass>();
}

}  // namespace sextant::server
