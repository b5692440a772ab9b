// What admission protects with a finalizer (StorageObjectInUseProtection) is let go when nothing
// uses it any more: claims, volumes, classes of volume attributes. Source: k8s.io/kubernetes
// pkg/controller/volume (pvcprotection, pvprotection, vacprotection) at v1.36.3.
#pragma once

#include <memory>

#include "controllers/reconciler.h"

namespace sextant::controllers {

std::unique_ptr<Controller> MakeClaimProtection(Deps deps);
std::unique_ptr<Controller> MakeVolumeProtection(Deps deps);
std::unique_ptr<Controller> MakeAttributesClassProtection(Deps deps);

}  // namespace sextant::controllers
