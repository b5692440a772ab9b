// Words about PersistentVolumeClaims and PersistentVolumes that scheduler and controllers share.
// Source: k8s.io/component-helpers/storage/volume (helpers.go, pv_helpers.go) at v1.36.3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "client/client.h"

namespace sextant::scheduler {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kProvisionerBeta =
    "volume.beta.kubernetes.io/storage-provisioner";

bool HasAnnotation(const api::Object& object, std::string_view key);
std::string AnnotationOf(const api::Object& object, std::string_view key);

// The class that a claim or a volume names, the old annotation first; empty: none.
std::string StorageClassOf(const api::Object& object);
// Whether claims of this class wait for a Pod before they are bound.
bool DelaysBinding(const api::Object& storage_class);
// Whether a volume can be made for them at all.
bool Provisions(const api::Object& storage_class);
// Whether the claim has its volume, and the binder has said so.
bool IsBound(const api::Object& claim);

// The claim that a volume's claimRef names; empty name: none.
client::ObjectName ClaimOfVolume(const api::Object& volume);
// Whether the volume is the claim's, or kept free for it by name.
bool IsBoundTo(const api::Object& volume, const api::Object& claim);
// What keeps this volume from serving the claim, empty if nothing does (checkVolumeSatisfyClaim).
std::string WhyUnfit(const api::Object& volume, const api::Object& claim);
void SetClaimReference(api::Mut ref, const api::Object& claim);
// The volume with the claim's reference, marked as bound by us unless it was kept free for it.
api::Object BoundToClaim(const api::Object& volume, const api::Object& claim);

// Whether the claim asks for less storage than the other; among equals the name decides.
bool AsksForLess(const api::Object& claim, const api::Object& other);

// The volumes that can serve a claim.
struct VolumeChoice {
  api::Object kept;               // kept free for it, then no other will do
  std::vector<api::Object> free;  // that anybody may take, the smallest first

  // Empty where there is none.
  api::Object Best() const { return kept || free.empty() ? kept : free.front(); }
};
VolumeChoice VolumesFor(const std::vector<api::Object>& volumes, const api::Object& claim);
// Whether the volume can be used on the node.
bool IsUsableOn(const api::Object& volume, api::Value node);

}  // namespace sextant::scheduler
