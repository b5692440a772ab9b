#include "controllers/volume_binder.h"

#include <fmt/format.h>

#include "api/default_class.h"
#include "api/pods.h"
#include "controllers/objects.h"
#include "scheduler/claims.h"

namespace sextant::controllers {
namespace {

using namespace scheduler;  // claims.h
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kYes = "yes";
constexpr std::string_view kInTree = "kubernetes.io/";

std::string_view PhaseOf(const Object& object) { return object["status"]["phase"].AsString(); }

std::string_view PolicyOf(const Object& volume) {
  return volume["spec"]["persistentVolumeReclaimPolicy"].AsString();
}

// Volumes have no namespace; claims always have one.
ObjectName VolumeKey(std::string_view name) { return {"", std::string(name)}; }

// What a released volume cannot be reclaimed for (FindDeletablePluginBySpec and its deleters; there
// is no deleter of ours).
std::string WhyNotDeleted(const Object& volume) {
  const Value host = volume["spec"]["hostPath"];
  if (host) {
    return fmt::format("host_path deleter only supports /tmp/.+ but received provided {}",
                       host["path"].AsString());
  }
  return fmt::format(
      "error getting deleter volume plugin for volume \"{}\": no deletable volume "
      "plugin matched",
      volume.name());
}

}  // namespace

VolumeBinder::VolumeBinder(Deps deps)
    : Reconciler(deps, {.component = "persistentvolume-controller", .parallel = 1}),
      claims_(*this, client::kPersistentVolumeClaims),
      volumes_(*this, client::kPersistentVolumes),
      classes_(Use(client::kStorageClasses)),
      pods_(Use(client::kPods)) {
  Hear(claims_.cache(), [this](const Change& change) {
    Enqueue(change.name());
    const std::string_view volume = change.object()["spec"]["volumeName"].AsString();
    if (!volume.empty()) return Enqueue(VolumeKey(volume));
    if (!change.deleted()) return;
    for (const Object& one : volumes_.cache().List())
      if (ClaimOfVolume(one) == change.name()) Enqueue(NameOf(one));
  });
  const auto enqueue_unbound = [this] {
    for (const Object& claim : claims_.cache().List())
      if (!HasAnnotation(claim, kBindCompleted)) Enqueue(NameOf(claim));
  };
  Hear(volumes_.cache(), [this, enqueue_unbound](const Change& change) {
    Enqueue(change.name());
    const ObjectName claim = ClaimOfVolume(change.object());
    if (!claim.name.empty()) return Enqueue(claim);
    enqueue_unbound();
  });
  Hear(classes_, [enqueue_unbound](const Change&) { enqueue_unbound(); });
}

void VolumeBinder::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  if (key.ns.empty()) {
    if (const Object volume = volumes_.cache().Get(key)) SyncVolume(volume, join);
    return;
  }
  const Object claim = claims_.cache().Get(key);
  if (!claim) return;
  if (HasAnnotation(claim, kBindCompleted)) return SyncBound(claim, join);
  if (claim["spec"]["volumeName"].AsString().empty()) return SyncUnbound(claim, join);
  SyncNamed(claim, join);
}

// ---- claims ----

// The claim leaves it to us which volume it gets.
void VolumeBinder::SyncUnbound(const Object& claim, const Ends& join) {
  const std::string class_name = StorageClassOf(claim);
  const Object storage_class = class_name.empty() ? Object() : classes_.Get({"", class_name});
  const bool delays = DelaysBinding(storage_class);
  const VolumeChoice choice = VolumesFor(volumes_.cache().List(), claim);
  const Object volume = delays ? choice.kept : choice.Best();
  if (volume) return Bind(volume, claim, join);
  if (TakeDefaultClass(claim, join)) return;
  if (delays && !HasAnnotation(claim, kSelectedNode)) {
    TellWaiting(claim);
  } else if (!class_name.empty()) {
    return Provision(claim, storage_class, join);
  } else {
    events().Normal(claim, "FailedBinding",
                    "no persistent volumes available for this claim and no storage class is set");
  }
  SetPending(claim, join);
}

// The claim names the volume that it wants.
void VolumeBinder::SyncNamed(const Object& claim, const Ends& join) {
  const std::string name(claim["spec"]["volumeName"].AsString());
  const Object volume = volumes_.cache().Get(VolumeKey(name));
  if (!volume) return SetPending(claim, join);
  if (!volume["spec"]["claimRef"]) {
    const std::string why = WhyUnfit(volume, claim);
    if (why.empty()) return Bind(volume, claim, join);
    events().Warning(claim, "VolumeMismatch",
                     fmt::format("Cannot bind to requested volume \"{}\": {}", name, why));
    return SetPending(claim, join);
  }
  if (IsBoundTo(volume, claim)) return Bind(volume, claim, join);
  events().Warning(claim, "FailedBinding",
                   fmt::format("volume \"{}\" already bound to a different claim.", name));
  SetPending(claim, join);
}

// The claim was bound once.
void VolumeBinder::SyncBound(const Object& claim, const Ends& join) {
  const std::string_view name = claim["spec"]["volumeName"].AsString();
  if (name.empty()) {
    return SetLost(
        claim, "ClaimLost",
        "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!", join);
  }
  const Object volume = volumes_.cache().Get(VolumeKey(name));
  if (!volume) {
    return SetLost(claim, "ClaimLost",
                   "Bound claim has lost its PersistentVolume. Data on the volume is lost!", join);
  }
  const Value ref = volume["spec"]["claimRef"];
  if (!ref || ref["uid"].AsString() == claim.uid()) return Bind(volume, claim, join);
  SetLost(claim, "ClaimMisbound",
          "Two claims are bound to the same volume, this one is bound incorrectly", join);
}

bool VolumeBinder::TakeDefaultClass(const Object& claim, const Ends& join) {
  if (claim["spec"]["storageClassName"] || !StorageClassOf(claim).empty()) return false;
  const Object found = api::DefaultClass(classes_.List(), api::kDefaultStorageMarks);
  if (!found) return false;
  Editor edit(claim);
  edit["spec"].Set("storageClassName", found.name());
  claims_.Update(claims_.Finish(std::move(edit)), join->Piece());
  return true;
}

void VolumeBinder::TellWaiting(const Object& claim) {
  std::vector<std::string> waiting;
  for (const Object& pod : pods_.List(claim.ns())) {
    if (IsPodTerminal(pod) || !pod["spec"]["nodeName"].AsString().empty()) continue;
    if (api::UsesClaim(pod, claim.name())) waiting.emplace_back(pod.name());
  }
  if (waiting.empty()) {
    return events().Normal(claim, "WaitForFirstConsumer",
                           "waiting for first consumer to be created before binding");
  }
  events().Normal(claim, "WaitForPodScheduled",
                  fmt::format("waiting for pod{} {} to be scheduled", waiting.size() > 1 ? "s" : "",
                              fmt::join(waiting, ",")));
}

void VolumeBinder::Provision(const Object& claim, const Object& storage_class, const Ends& join) {
  const std::string provisioner(storage_class["provisioner"].AsString());
  std::string failure;
  if (!storage_class) {
    failure = fmt::format("storageclass.storage.k8s.io \"{}\" not found", StorageClassOf(claim));
  } else if (provisioner.starts_with(kInTree)) {
    failure = fmt::format("no volume plugin matched name: {}", provisioner);
  }
  if (failure.empty()) return AskProvisioner(claim, provisioner, join);
  events().Warning(claim, "ProvisioningFailed", failure);
}

void VolumeBinder::AskProvisioner(const Object& claim, const std::string& provisioner,
                                  const Ends& join) {
  if (AnnotationOf(claim, kProvisioner) == provisioner) return;
  events().Normal(
      claim, "ExternalProvisioning",
      fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or "
                  "manually by the system administrator. If volume creation is delayed, please "
                  "verify that the provisioner is running and correctly registered.",
                  provisioner));
  Editor edit(claim);
  const Mut annotations = edit["metadata"]["annotations"];
  annotations.Set(kProvisionerBeta, provisioner);
  annotations.Set(kProvisioner, provisioner);
  claims_.Update(claims_.Finish(std::move(edit)), join->Piece());
}

// ---- binding ----

void VolumeBinder::Bind(const Object& volume, const Object& claim, const Ends& join) {
  const Value ref = volume["spec"]["claimRef"];
  if (!ref || !(ClaimOfVolume(volume) == NameOf(claim)) || ref["uid"].AsString() != claim.uid()) {
    return BindVolume(volume, claim, join);
  }
  if (PhaseOf(volume) != "Bound") return SetPhase(volume, "Bound", join);
  if (claim["spec"]["volumeName"].AsString() != volume.name() ||
      !HasAnnotation(claim, kBindCompleted)) {
    return BindClaim(volume, claim, join);
  }
  SetBound(claim, volume, join);
}

void VolumeBinder::BindVolume(const Object& volume, const Object& claim, const Ends& join) {
  volumes_.Update(volumes_.Finish(Editor(BoundToClaim(volume, claim))), join->Piece());
}

void VolumeBinder::BindClaim(const Object& volume, const Object& claim, const Ends& join) {
  Editor edit(claim);
  const Mut annotations = edit["metadata"]["annotations"];
  if (claim["spec"]["volumeName"].AsString() != volume.name()) {
    edit["spec"].Set("volumeName", volume.name());
    annotations.Set(kBoundByController, kYes);
  }
  annotations.Set(kBindCompleted, kYes);
  claims_.Update(claims_.Finish(std::move(edit)), join->Piece());
}

void VolumeBinder::Unbind(const Object& volume, const Ends& join) {
  Editor edit(volume);
  if (HasAnnotation(volume, kBoundByController)) {
    edit["spec"].Erase("claimRef");
    edit["metadata"]["annotations"].Erase(kBoundByController);
  } else {
    edit["spec"]["claimRef"].Erase("uid");
  }
  volumes_.Update(volumes_.Finish(std::move(edit)), join->Piece());
}

// ---- volumes ----

void VolumeBinder::SyncVolume(const Object& volume, const Ends& join) {
  const Value ref = volume["spec"]["claimRef"];
  const std::string uid(ref["uid"].AsString());
  // Free, or kept free for a claim that will bind it.
  if (uid.empty()) return SetPhase(volume, "Available", join);
  const ObjectName name = ClaimOfVolume(volume);
  const Object claim = claims_.cache().Get(name);
  if (claim && claim.uid() == uid) return SyncClaimed(volume, claim, join);
  if (PhaseOf(volume) == "Released" || PhaseOf(volume) == "Failed") return Reclaim(volume, join);
  // The cache may lag behind: the server has the last word.
  client().Get(client::kPersistentVolumeClaims, name,
               Guarded([this, name, uid, volume, join](Result<Object> found) {
                 if (found && found->uid() == uid) return;  // its event is on the way
                 if (!found && found.error().code != 404) return join->Failed(found.error());
                 Release(volume, join);
               }));
}

void VolumeBinder::SyncClaimed(const Object& volume, const Object& claim, const Ends& join) {
  const std::string_view name = claim["spec"]["volumeName"].AsString();
  if (name == volume.name()) return SetPhase(volume, "Bound", join);
  if (name.empty()) return;  // the claim's own round binds it
  // The claim has another volume by now: one that was made for it has no use.
  if (HasAnnotation(volume, kProvisionedBy) && PolicyOf(volume) == "Delete") {
    return Release(volume, join);
  }
  Unbind(volume, join);
}

void VolumeBinder::Release(const Object& volume, const Ends& join) {
  if (PhaseOf(volume) == "Released" || PhaseOf(volume) == "Failed") return Reclaim(volume, join);
  SetPhase(volume, "Released", join);
}

// By its policy. What an external provisioner made it takes away itself.
void VolumeBinder::Reclaim(const Object& volume, const Ends& join) {
  const std::string_view policy = PolicyOf(volume);
  if (policy == "Retain" || PhaseOf(volume) == "Failed") return;
  std::string reason = "VolumeFailedRecycle";
  std::string message = "No recycler plugin found for the volume!";
  if (policy == "Delete") {
    const std::string provisioner = AnnotationOf(volume, kProvisionedBy);
    if (!provisioner.empty() && !provisioner.starts_with(kInTree)) return;
    reason = "VolumeFailedDelete";
    message = WhyNotDeleted(volume);
  }
  events().Warning(volume, reason, message);
  SetPhase(volume, "Failed", join, message);
}

// ---- status ----

void VolumeBinder::SetPending(const Object& claim, const Ends& join) {
  if (PhaseOf(claim) == "Pending") return;
  Editor edit(claim);
  const Mut status = edit["status"];
  status.Set("phase", "Pending");
  status.Erase("accessModes");
  status.Erase("capacity");
  claims_.UpdateStatus(claims_.Finish(std::move(edit)), join->Piece());
}

void VolumeBinder::SetBound(const Object& claim, const Object& volume, const Ends& join) {
  const Value modes = volume["spec"]["accessModes"];
  const bool was_bound = PhaseOf(claim) == "Bound";
  if (was_bound && Equal(claim["status"]["accessModes"], modes)) return;
  Editor edit(claim);
  edit.Keep(volume);
  const Mut status = edit["status"];
  status.Set("phase", "Bound");
  status.Set("accessModes", modes);
  if (!was_bound) status.Set("capacity", volume["spec"]["capacity"]);
  claims_.UpdateStatus(claims_.Finish(std::move(edit)), join->Piece());
}

void VolumeBinder::SetLost(const Object& claim, std::string_view reason, std::string_view message,
                           const Ends& join) {
  if (PhaseOf(claim) == "Lost") return;
  events().Warning(claim, reason, message);
  Editor edit(claim);
  const Mut status = edit["status"];
  status.Set("phase", "Lost");
  status.Erase("accessModes");
  status.Erase("capacity");
  claims_.UpdateStatus(claims_.Finish(std::move(edit)), join->Piece());
}

void VolumeBinder::SetPhase(const Object& volume, std::string_view phase, const Ends& join,
                            const std::string& message) {
  if (PhaseOf(volume) == phase) return;
  Editor edit(volume);
  const Mut status = edit["status"];
  status.Set("phase", phase);
  status.Erase("message");
  if (!message.empty()) status.Set("message", message);
  volumes_.UpdateStatus(volumes_.Finish(std::move(edit)), join->Piece());
}

}  // namespace sextant::controllers
