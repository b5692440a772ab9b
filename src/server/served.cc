#include "server/served.h"

#include <array>
#include <string_view>
#include <vector>

namespace sextant::server {
namespace {

// In the order of the house's plan: what the pipeline, rules and tables stand behind today.
constexpr std::array<std::string_view, 21> kServed = {
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "sextant.dev/v1alpha1",
    "storage.k8s.io/v1",
};

class Part : public api::Registry {
 public:
  Part(const api::Registry& base, const std::function<bool(const api::Resource&)>& keep)
      : base_(base) {
    for (const api::Resource* resource : base.resources())
      if (keep(*resource)) resources_.push_back(resource);
  }
  std::span<const api::Resource* const> resources() const override { return resources_; }
  const api::Resource* Find(api::GroupVersion gv, std::string_view plural) const override {
    return Kept(base_.Find(gv, plural));
  }
  const api::Resource* FindKind(api::GroupVersion gv, std::string_view kind) const override {
    return Kept(base_.FindKind(gv, kind));
  }
  const api::Message* FindMessage(std::string_view name) const override {
    return base_.FindMessage(name);
  }
  const api::Message* FindKindMessage(api::GroupVersion gv, std::string_view kind) const override {
    return base_.FindKindMessage(gv, kind);
  }

 private:
  const api::Resource* Kept(const api::Resource* resource) const {
    for (const api::Resource* kept : resources_)
      if (kept == resource) return resource;
    return nullptr;
  }

  const api::Registry& base_;
  std::vector<const api::Resource*> resources_;
};

}  // namespace

bool ServedByDefault(const api::GroupVersion& gv) {
  const std::string text = gv.ToString();
  for (std::string_view served : kServed)
    if (served == text) return true;
  return false;
}

std::shared_ptr<const api::Registry> ServedRegistry(
    const api::Registry& base, const std::function<bool(const api::Resource&)>& keep) {
  return std::make_shared<Part>(base, keep);
}

}  // namespace sextant::server
