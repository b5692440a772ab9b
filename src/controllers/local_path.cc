#include "controllers/local_path.h"

#include <fmt/format.h>

#include "controllers/objects.h"
#include "scheduler/claims.h"

namespace sextant::controllers {
namespace {

using namespace scheduler;  // claims.h
using api::Editor;
using api::Mut;
using api::Object;
using api::Value;

constexpr std::string_view kName = "rancher.io/local-path";
constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kNodeAnnotation = "local.path.provisioner/selected-node";
constexpr std::string_view kBasePath = "/var/local-path-provisioner";

std::string VolumeNameOf(const Object& claim) { return fmt::format("pvc-{}", claim.uid()); }

// What keeps the claim from a volume here, in the provisioner's words; empty if nothing does.
std::string WhyNot(const Object& claim) {
  if (claim["spec"]["selector"]) return "claim.Spec.Selector is not supported";
  for (Value mode : claim["spec"]["accessModes"].items()) {
    if (mode.AsString() == "ReadWriteOnce" || mode.AsString() == "ReadWriteOncePod") continue;
    return "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes";
  }
  if (!HasAnnotation(claim, kSelectedNode)) return "configuration error, no node was specified";
  return {};
}

void SetAffinity(Mut spec, std::string_view hostname) {
  const Mut term = spec["nodeAffinity"]["required"]["nodeSelectorTerms"].Append();
  const Mut expression = term["matchExpressions"].Append();
  expression.Set("key", kHostname);
  expression.Set("operator", "In");
  expression["values"].Append().SetString(hostname);
}

Object VolumeFor(const Object& claim, const Object& storage_class, const Object& node) {
  const std::string name = VolumeNameOf(claim);
  Editor edit;
  edit.Keep(claim);
  const Mut metadata = edit["metadata"];
  metadata.Set("name", name);
  metadata["annotations"].Set(kNodeAnnotation, node.name());
  metadata["annotations"].Set(kProvisionedBy, kName);
  const Mut spec = edit["spec"];
  spec["capacity"].Set("storage", claim["spec"]["resources"]["requests"]["storage"].AsString());
  spec.Set("accessModes", claim["spec"]["accessModes"]);
  spec.Set("persistentVolumeReclaimPolicy", storage_class["reclaimPolicy"].AsString("Delete"));
  spec.Set("storageClassName", storage_class.name());
  spec.Set("volumeMode", "Filesystem");
  spec["hostPath"].Set("path",
                       fmt::format("{}/{}_{}_{}", kBasePath, name, claim.ns(), claim.name()));
  spec["hostPath"].Set("type", "DirectoryOrCreate");
  SetAffinity(spec, node["metadata"]["labels"][kHostname].AsString(node.name()));
  SetClaimReference(spec["claimRef"], claim);
  return std::move(edit).Finish();
}

}  // namespace

LocalPathProvisioner::LocalPathProvisioner(Deps deps)
    : Reconciler(deps, {.component = "rancher.io/local-path_simulated"}),
      claims_(*this, client::kPersistentVolumeClaims),
      volumes_(*this, client::kPersistentVolumes),
      classes_(Use(client::kStorageClasses)),
      nodes_(Use(client::kNodes)) {
  Hear(claims_.cache(), [this](const Change& change) { Enqueue(change.name()); });
  Hear(volumes_.cache(), [this](const Change& change) { Enqueue(change.name()); });
}

void LocalPathProvisioner::Reconcile(const ObjectName& key, Done done) {
  const auto join = JoinThen(std::move(done));
  if (key.ns.empty()) {
    if (const Object volume = volumes_.cache().Get(key)) SyncVolume(volume, join);
  } else if (const Object claim = claims_.cache().Get(key)) {
    SyncClaim(claim, join);
  }
}

void LocalPathProvisioner::SyncClaim(const Object& claim, const std::shared_ptr<Join>& join) {
  if (IsDeleting(claim) || !claim["spec"]["volumeName"].AsString().empty()) return;
  const Object storage_class = classes_.Get({"", StorageClassOf(claim)});
  if (storage_class["provisioner"].AsString() != kName) return;
  if (AnnotationOf(claim, kProvisioner) == kName) Provision(claim, storage_class, join);
}

void LocalPathProvisioner::Provision(const Object& claim, const Object& storage_class,
                                     const std::shared_ptr<Join>& join) {
  if (volumes_.cache().Get({"", VolumeNameOf(claim)})) return;
  const std::string selected = AnnotationOf(claim, kSelectedNode);
  const Object node = nodes_.Get({"", selected});
  if (!selected.empty() && !node) return Reschedule(claim, join);
  if (const std::string why = WhyNot(claim); !why.empty()) {
    return events().Warning(claim, "ProvisioningFailed",
                            fmt::format("failed to provision volume with StorageClass \"{}\": {}",
                                        storage_class.name(), why));
  }
  events().Normal(claim, "Provisioning",
                  fmt::format("External provisioner is provisioning volume for claim \"{}\"",
                              NameOf(claim).ToString()));
  volumes_.Create(
      VolumeFor(claim, storage_class, node), Guarded([this, claim, join](Result<Object> made) {
        if (!made) return join->Failed(std::move(made).error());
        events().Normal(claim, "ProvisioningSucceeded",
                        fmt::format("Successfully provisioned volume {}", VolumeNameOf(claim)));
      }));
}

// The selected node is gone: without the annotation the scheduler selects another.
void LocalPathProvisioner::Reschedule(const Object& claim, const std::shared_ptr<Join>& join) {
  events().Warning(claim, "ProvisioningFailed",
                   fmt::format("node \"{}\" not found", AnnotationOf(claim, kSelectedNode)));
  Editor edit(claim);
  edit["metadata"]["annotations"].Erase(kSelectedNode);
  claims_.Update(claims_.Finish(std::move(edit)), join->Piece());
}

// A released volume of ours goes, by its policy; what is on its disk nobody sees again, for no
// other volume has its path.
void LocalPathProvisioner::SyncVolume(const Object& volume, const std::shared_ptr<Join>& join) {
  if (AnnotationOf(volume, kProvisionedBy) != kName || IsDeleting(volume)) return;
  if (volume["status"]["phase"].AsString() != "Released") return;
  if (volume["spec"]["persistentVolumeReclaimPolicy"].AsString() != "Delete") return;
  volumes_.Delete(volume, join->Piece());
}

}  // namespace sextant::controllers
