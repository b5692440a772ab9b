#include "scheduler/claims.h"

#include <algorithm>
#include <utility>

#include "api/quantity.h"
#include "api/selector.h"
#include "scheduler/affinity.h"

namespace sextant::scheduler {
namespace {

using api::Object;
using api::Quantity;
using api::Value;
using client::ObjectName;

constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";
constexpr std::string_view kYes = "yes";
constexpr std::string_view kClassBeta = "volume.beta.kubernetes.io/storage-class";

Quantity CapacityOf(const Object& volume) {
  return Quantity::ParseOrZero(volume["spec"]["capacity"]["storage"].AsString());
}

Quantity RequestOf(const Object& claim) {
  return Quantity::ParseOrZero(claim["spec"]["resources"]["requests"]["storage"].AsString());
}

bool IsGoing(const Object& object) {
  return static_cast<bool>(object["metadata"]["deletionTimestamp"]);
}

std::string_view ModeOf(const Object& object) {
  return object["spec"]["volumeMode"].AsString("Filesystem");
}

bool HasAccessModes(const Object& volume, const Object& claim) {
  for (Value wanted : claim["spec"]["accessModes"].items()) {
    bool found = false;
    for (Value mode : volume["spec"]["accessModes"].items())
      found = found || mode.AsString() == wanted.AsString();
    if (!found) return false;
  }
  return true;
}

bool IsSelected(const Object& volume, const Object& claim) {
  const Value wanted = claim["spec"]["selector"];
  if (!wanted) return true;
  const auto selector = api::LabelSelector::From(wanted);
  return selector && selector->Matches(volume["metadata"]["labels"]);
}

bool IsFreeFor(const Object& volume, const Object& claim) {
  const Value attributes = claim["spec"]["volumeAttributesClassName"];
  return volume["status"]["phase"].AsString() == "Available" && !volume["spec"]["claimRef"] &&
         attributes.AsString() == volume["spec"]["volumeAttributesClassName"].AsString() &&
         IsSelected(volume, claim);
}

}  // namespace

bool HasAnnotation(const Object& object, std::string_view key) {
  return object["metadata"]["annotations"].Has(key);
}

std::string AnnotationOf(const Object& object, std::string_view key) {
  return std::string(object["metadata"]["annotations"][key].AsString());
}

std::string StorageClassOf(const Object& object) {
  if (HasAnnotation(object, kClassBeta)) return AnnotationOf(object, kClassBeta);
  return std::string(object["spec"]["storageClassName"].AsString());
}

bool DelaysBinding(const Object& storage_class) {
  return storage_class["volumeBindingMode"].AsString() == "WaitForFirstConsumer";
}

bool Provisions(const Object& storage_class) {
  return storage_class && storage_class["provisioner"].AsString() != kNoProvisioner;
}

bool IsBound(const Object& claim) {
  return HasAnnotation(claim, kBindCompleted) && !claim["spec"]["volumeName"].AsString().empty();
}

ObjectName ClaimOfVolume(const Object& volume) {
  const Value ref = volume["spec"]["claimRef"];
  return {std::string(ref["namespace"].AsString()), std::string(ref["name"].AsString())};
}

bool IsBoundTo(const Object& volume, const Object& claim) {
  const Value ref = volume["spec"]["claimRef"];
  if (!ref || ClaimOfVolume(volume) != client::NameOf(claim)) return false;
  const std::string_view uid = ref["uid"].AsString();
  return uid.empty() || uid == claim.uid();
}

void SetClaimReference(api::Mut ref, const Object& claim) {
  ref.Set("kind", "PersistentVolumeClaim");
  ref.Set("namespace", claim.ns());
  ref.Set("name", claim.name());
  ref.Set("uid", claim.uid());
  ref.Set("apiVersion", "v1");
  ref.Set("resourceVersion", claim.resource_version());
}

Object BoundToClaim(const Object& volume, const Object& claim) {
  api::Editor edit(volume);
  if (!IsBoundTo(volume, claim)) edit["metadata"]["annotations"].Set(kBoundByController, kYes);
  SetClaimReference(edit["spec"]["claimRef"], claim);
  return std::move(edit).Finish();
}

bool IsUsableOn(const Object& volume, Value node) {
  const Value required = volume["spec"]["nodeAffinity"]["required"];
  return !required || MatchesNodeSelector(required, node);
}

std::string WhyUnfit(const Object& volume, const Object& claim) {
  if (IsGoing(volume)) {
    return "the volume is marked for deletion \"" + std::string(volume.name()) + "\"";
  }
  if (CapacityOf(volume) < RequestOf(claim)) return "requested PV is too small";
  if (StorageClassOf(volume) != StorageClassOf(claim)) return "storageClassName does not match";
  if (ModeOf(volume) != ModeOf(claim)) return "incompatible volumeMode";
  if (!HasAccessModes(volume, claim)) return "incompatible accessMode";
  return {};
}

bool AsksForLess(const Object& claim, const Object& other) {
  return std::pair(RequestOf(claim), claim.name()) < std::pair(RequestOf(other), other.name());
}

VolumeChoice VolumesFor(const std::vector<Object>& volumes, const Object& claim) {
  VolumeChoice found;
  for (const Object& volume : volumes) {
    if (IsBoundTo(volume, claim)) {
      const bool fits = !IsGoing(volume) && ModeOf(volume) == ModeOf(claim) &&
                        !(CapacityOf(volume) < RequestOf(claim));
      if (fits) return {volume, {}};
    } else if (IsFreeFor(volume, claim) && WhyUnfit(volume, claim).empty()) {
      found.free.push_back(volume);
    }
  }
  std::ranges::sort(found.free, [](const Object& a, const Object& b) {
    return std::pair(CapacityOf(a), a.name()) < std::pair(CapacityOf(b), b.name());
  });
  return found;
}

}  // namespace sextant::scheduler
