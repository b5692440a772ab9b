#include "controllers/volume_protection.h"

#include <algorithm>

#include "controllers/objects.h"
#include "scheduler/claims.h"

namespace sextant::controllers {
namespace {

using namespace scheduler;  // claims.h
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection";
constexpr std::string_view kVolumeFinalizer = "kubernetes.io/pv-protection";

bool HasFinalizer(const Object& object, std::string_view wanted) {
  for (Value finalizer : object["metadata"]["finalizers"].items())
    if (finalizer.AsString() == wanted) return true;
  return false;
}

// Puts the finalizer onto what is not being deleted, takes it off what is and is free.
void Protect(Writer& writer, const Object& object, std::string_view finalizer, bool used,
             const std::shared_ptr<Join>& join) {
  const bool has = HasFinalizer(object, finalizer);
  const bool wanted = !IsDeleting(object) || used;
  // A finalizer cannot be added any more to what is being deleted.
  if (has == wanted || (IsDeleting(object) && !has)) return;
  Editor edit(object);
  const Mut list = edit["metadata"]["finalizers"];
  if (wanted) {
    list.Append().SetString(finalizer);
  } else {
    for (size_t i = list.size(); i-- > 0;)
      if (list.at(i).AsString() == finalizer) list.EraseAt(i);
  }
  writer.Update(writer.Finish(std::move(edit)), join->Piece());
}

}  // namespace

ClaimProtection::ClaimProtection(Deps deps)
    : Reconciler(deps, {.component = "persistentvolumeclaim-protection-controller"}),
      claims_(*this, kClaims),
      pods_(Use(client::kPods)) {
  Hear(claims_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(pods_, [this](const Change& change) {
    if (!change.deleted()) return;
    for (const std::string& claim : ClaimNames(change.before))
      Enqueue({std::string(change.before.ns()), claim});
  });
}

bool ClaimProtection::IsUsed(const Object& claim) const {
  return std::ranges::any_of(pods_.List(claim.ns()), [&](const Object& pod) {
    return !pod["spec"]["nodeName"].AsString().empty() && UsesClaim(pod, claim.name());
  });
}

void ClaimProtection::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object claim = claims_.cache().Get(key);
  if (!claim) return;
  Protect(claims_, claim, kClaimFinalizer, IsDeleting(claim) && IsUsed(claim), join);
}

VolumeProtection::VolumeProtection(Deps deps)
    : Reconciler(deps, {.component = "persistentvolume-protection-controller"}),
      volumes_(*this, kVolumes) {
  Hear(volumes_.cache(), [this](const Change& change) { Enqueue(change.name()); });
}

void VolumeProtection::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  const Object volume = volumes_.cache().Get(key);
  if (!volume) return;
  Protect(volumes_, volume, kVolumeFinalizer, volume["status"]["phase"].AsString() == "Bound",
          join);
}

}  // namespace sextant::controllers
