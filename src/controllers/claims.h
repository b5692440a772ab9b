// Words about PersistentVolumeClaims and PersistentVolumes that several controllers share.
// Source: k8s.io/component-helpers/storage/volume (helpers.go, pv_helpers.go) at v1.36.3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controllers/objects.h"

namespace sextant::controllers {

inline constexpr Gvr kClaims{"", "v1", "persistentvolumeclaims"};
inline constexpr Gvr kVolumes{"", "v1", "persistentvolumes"};
inline constexpr Gvr kStorageClasses{"storage.k8s.io", "v1", "storageclasses"};

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
// Whether the class of this name waits for a Pod before it binds.
bool DelaysBinding(const api::Object& storage_class);
// Names of the claims that a Pod's volumes use.
std::vector<std::string> ClaimNames(const api::Object& pod);
bool UsesClaim(const api::Object& pod, std::string_view claim);

// The claim that a volume's claimRef names; empty name: none.
ObjectName ClaimOfVolume(const api::Object& volume);
void SetClaimReference(api::Mut ref, const api::Object& claim);
// Whether the volume is the claim's, or kept free for it by name.
bool IsBoundTo(const api::Object& volume, const api::Object& claim);
// What keeps this volume from serving the claim, empty if nothing does (checkVolumeSatisfyClaim).
std::string WhyUnfit(const api::Object& volume, const api::Object& claim);
// The smallest free volume that fits; with `delayed` only one that is kept free for this claim.
api::Object MatchingVolume(const std::vector<api::Object>& volumes, const api::Object& claim,
                           bool delayed);

}  // namespace sextant::controllers
