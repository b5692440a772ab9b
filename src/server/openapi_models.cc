#include "server/openapi_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "server/openapi_schema.h"

namespace sextant::server {
namespace {

using api::Mut;
using api::Resource;
using api::Subresource;

// Every group version that Kubernetes can decode, served or not. The document of version 2 names
// all of them, those of custom kinds name what stands in k8s.io/api.
struct Decoded {
  std::string_view group_version;
  bool for_custom;
};
constexpr Decoded kDecoded[] = {{"v1", true},
                                {"admission.k8s.io/v1", false},
                                {"admission.k8s.io/v1beta1", false},
                                {"admissionregistration.k8s.io/v1", true},
                                {"admissionregistration.k8s.io/v1alpha1", true},
                                {"admissionregistration.k8s.io/v1beta1", true},
                                {"apiextensions.k8s.io/v1", false},
                                {"apiextensions.k8s.io/v1beta1", false},
                                {"apiregistration.k8s.io/v1", false},
                                {"apiregistration.k8s.io/v1beta1", false},
                                {"apps/v1", true},
                                {"apps/v1beta1", true},
                                {"apps/v1beta2", true},
                                {"authentication.k8s.io/v1", true},
                                {"authentication.k8s.io/v1alpha1", true},
                                {"authentication.k8s.io/v1beta1", true},
                                {"authorization.k8s.io/v1", true},
                                {"authorization.k8s.io/v1beta1", true},
                                {"autoscaling/v1", true},
                                {"autoscaling/v2", true},
                                {"batch/v1", true},
                                {"batch/v1beta1", true},
                                {"certificates.k8s.io/v1", true},
                                {"certificates.k8s.io/v1alpha1", true},
                                {"certificates.k8s.io/v1beta1", true},
                                {"coordination.k8s.io/v1", true},
                                {"coordination.k8s.io/v1alpha2", true},
                                {"coordination.k8s.io/v1beta1", true},
                                {"discovery.k8s.io/v1", true},
                                {"discovery.k8s.io/v1beta1", true},
                                {"events.k8s.io/v1", true},
                                {"events.k8s.io/v1beta1", true},
                                {"extensions/v1beta1", true},
                                {"flowcontrol.apiserver.k8s.io/v1", true},
                                {"flowcontrol.apiserver.k8s.io/v1beta1", true},
                                {"flowcontrol.apiserver.k8s.io/v1beta2", true},
                                {"flowcontrol.apiserver.k8s.io/v1beta3", true},
                                {"imagepolicy.k8s.io/v1alpha1", false},
                                {"internal.apiserver.k8s.io/v1alpha1", true},
                                {"networking.k8s.io/v1", true},
                                {"networking.k8s.io/v1beta1", true},
                                {"node.k8s.io/v1", true},
                                {"node.k8s.io/v1alpha1", true},
                                {"node.k8s.io/v1beta1", true},
                                {"policy/v1", true},
                                {"policy/v1beta1", true},
                                {"rbac.authorization.k8s.io/v1", true},
                                {"rbac.authorization.k8s.io/v1alpha1", true},
                                {"rbac.authorization.k8s.io/v1beta1", true},
                                {"resource.k8s.io/v1", true},
                                {"resource.k8s.io/v1alpha3", true},
                                {"resource.k8s.io/v1beta1", true},
                                {"resource.k8s.io/v1beta2", true},
                                {"scheduling.k8s.io/v1", true},
                                {"scheduling.k8s.io/v1alpha2", true},
                                {"scheduling.k8s.io/v1beta1", true},
                                {"storage.k8s.io/v1", true},
                                {"storage.k8s.io/v1alpha1", true},
                                {"storage.k8s.io/v1beta1", true},
                                {"storagemigration.k8s.io/v1beta1", true}};

// Kinds of meta/v1 that are no resources. Some are spoken in every group.
struct SharedKind {
  std::string_view kind;
  bool in_groups;
};
constexpr SharedKind kSharedKinds[] = {{"DeleteOptions", true},   {"WatchEvent", true},
                                       {"Status", false},         {"APIVersions", false},
                                       {"APIGroup", false},       {"APIGroupList", false},
                                       {"APIResourceList", false}};

void AddKind(Mut out, const api::GroupVersionKind& kind) {
  Mut gvk = out["x-kubernetes-group-version-kind"].Append();
  gvk.Set("group", kind.group);
  gvk.Set("kind", kind.kind);
  gvk.Set("version", kind.version);
}

}  // namespace

ModelWriter::ModelWriter(const api::Registry& registry, const api::GroupVersion& gv)
    : registry_(registry), gv_(gv), scope_(Scope::kGroup) {
  for (const Resource* resource : registry.resources()) {
    if (resource->group_version == gv) FindCustom(*resource);
  }
  if (!custom_.empty()) scope_ = Scope::kCustom;
  FindKinds();
}

ModelWriter::ModelWriter(const api::Registry& registry) : registry_(registry), scope_(Scope::kAll) {
  for (const Resource* resource : registry.resources()) FindCustom(*resource);
  FindKinds();
}

bool ModelWriter::IsCustom(const std::string& model) const {
  return custom_.contains(model) || custom_lists_.contains(model);
}

void ModelWriter::Write(Mut schemas) {
  std::set<std::string> written;
  while (written.size() < needed_.size()) {
    const std::set<std::string> round = needed_;
    for (const std::string& model : round) {
      if (written.insert(model).second) WriteModel(model, schemas[model]);
    }
  }
}

void ModelWriter::WriteModel(const std::string& model, Mut out) {
  if (const auto custom = custom_.find(model); custom != custom_.end()) {
    return WriteCustomSchema(*custom->second, out, needed_);
  }
  if (const auto custom = custom_lists_.find(model); custom != custom_lists_.end()) {
    return WriteCustomListSchema(*custom->second, out, needed_);
  }
  if (WriteSpecialSchema(model, out)) return;
  const api::Message* message = registry_.FindMessage(model);
  CHECK(message);
  WriteSchema(*message, out, needed_);
  AddKinds(*message, out);
}

void ModelWriter::FindCustom(const Resource& resource) {
  const api::CustomVersion* custom = api::AsCustom(resource);
  if (!custom) return;
  custom_.emplace(CustomModel(resource.group_version, resource.kind), custom);
  custom_lists_.emplace(CustomModel(resource.group_version, resource.list_kind), custom);
}

void ModelWriter::FindKinds() {
  for (const Resource* resource : registry_.resources()) {
    const api::GroupVersion& gv = resource->group_version;
    Know(resource->message, {gv.group, gv.version, resource->kind});
    Know(registry_.FindKindMessage(gv, resource->list_kind),
         {gv.group, gv.version, resource->list_kind});
    for (const Subresource& sub : resource->subresources) {
      if (sub.message != resource->message) Know(sub.message, sub.kind);
    }
  }
}

void ModelWriter::Know(const api::Message* message, const api::GroupVersionKind& kind) {
  std::vector<api::GroupVersionKind>& known = kinds_[message];
  if (std::find(known.begin(), known.end(), kind) == known.end()) known.push_back(kind);
}

// x-kubernetes-group-version-kind of models that are kinds.
void ModelWriter::AddKinds(const api::Message& message, Mut out) const {
  if (const auto known = kinds_.find(&message); known != kinds_.end()) {
    for (const api::GroupVersionKind& kind : known->second) AddKind(out, kind);
  }
  for (const SharedKind& shared : kSharedKinds) {
    if (message.name != fmt::format("{}{}", kMetaPrefix, shared.kind)) continue;
    for (const api::GroupVersion& gv : SpokenIn(shared.in_groups)) {
      AddKind(out, {gv.group, gv.version, shared.kind});
    }
  }
}

// The group versions that a kind of meta/v1 is spoken in, as far as the document goes.
std::vector<api::GroupVersion> ModelWriter::SpokenIn(bool groups) const {
  std::vector<api::GroupVersion> out = {{"", "v1"}};
  if (!groups) return out;
  if (scope_ == Scope::kGroup) {
    if (!gv_.group.empty()) out.push_back(gv_);
    return out;
  }
  out.clear();
  for (const Decoded& decoded : kDecoded) {
    if (scope_ == Scope::kAll || decoded.for_custom) {
      out.push_back(api::GroupVersion::Of(decoded.group_version));
    }
  }
  return out;
}

}  // namespace sextant::server
