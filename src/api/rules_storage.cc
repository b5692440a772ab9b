// Claims, volumes and storage classes. Source: validation.go of core and storage.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/rules_diff.h"
#include "api/rules_kinds.h"
#include "api/rules_pod.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr int kMaxParameters = 512;
constexpr int kMaxParameterBytes = 256 << 10;
constexpr int64_t kMinTokenS = 10 * 60;
constexpr size_t kMaxNodeId = 256;

void ValidateAccessModes(Value modes, const At& at, FieldErrors& errors) {
  bool once_pod = false;
  bool other = false;
  for (Value mode : modes.items()) {
    const std::string_view text = mode.AsString();
    static constexpr Words kModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                     "ReadWriteOncePod"};
    const bool known = std::ranges::find(kModes, text) != kModes.end();
    if (!known) NotSupported(at, text, kModes, errors);
    once_pod |= text == "ReadWriteOncePod";
    other |= known && text != "ReadWriteOncePod";
  }
  if (once_pod && other) {
    errors.Forbidden(at, "may not use ReadWriteOncePod with other access modes");
  }
}

void ValidateDataSource(Value source, const At& at, FieldErrors& errors) {
  const std::string_view kind = source["kind"].AsString();
  const std::string_view group = source["apiGroup"].AsString();
  RequiredText(source, "name", at, errors);
  RequiredText(source, "kind", at, errors);
  if (group.empty()) {
    if (kind != "PersistentVolumeClaim") {
      errors.InvalidText(at, kind,
                         "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
  } else {
    Complain(IsDns1123Subdomain(group), group, at / "apiGroup", errors);
  }
  const std::string_view ns = source["namespace"].AsString();
  if (!ns.empty()) Complain(NameIsDnsLabel(ns, false), ns, at / "namespace", errors);
}

}  // namespace

void ValidateClaimSpec(Value spec, const At& at, FieldErrors& errors) {
  const Value modes = spec["accessModes"];
  if (modes.empty()) errors.Required(at / "accessModes", "at least 1 access mode is required");
  ValidateLabelSelector(spec["selector"], at / "selector", errors);
  ValidateAccessModes(modes, at / "accessModes", errors);
  const Value storage = spec["resources"]["requests"]["storage"];
  const At resources = at / "resources";
  if (!storage) {
    errors.Required(resources.Key("", "storage"), "");
  } else {
    ValidatePositiveAmount(storage, resources.Key("", "storage"), errors);
  }
  const std::string_view storage_class = spec["storageClassName"].AsString();
  if (!storage_class.empty()) {
    Complain(NameIsDnsSubdomain(storage_class, false), storage_class, at / "storageClassName",
             errors);
  }
  OneOf(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
  for (const char* name : {"dataSource", "dataSourceRef"}) {
    if (spec[name]) ValidateDataSource(spec[name], at / name, errors);
  }
  const std::string_view attributes = spec["volumeAttributesClassName"].AsString();
  if (!attributes.empty()) {
    Complain(NameIsDnsSubdomain(attributes, false), attributes, at / "volumeAttributesClassName",
             errors);
  }
}

void ValidateClaim(Value o, FieldErrors& errors) {
  const At at("spec");
  ValidateClaimSpec(o["spec"], at, errors);
}

void ValidateClaimUpdate(Value o, Value old, FieldErrors& errors) {
  constexpr std::string_view kSpec = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
  const At at("spec");
  const Value now = o["spec"];
  const Value before = old["spec"];
  Editor edit;
  const Mut munged = edit.Root();
  for (auto [key, value] : now.members()) munged.Set(key, value);
  if (before["volumeName"].AsString().empty()) munged.Erase("volumeName");
  if (o["status"]["phase"].AsString() == "Bound") {
    SetOrErase(munged["resources"]["requests"], "storage",
               before["resources"]["requests"]["storage"]);
    SetOrErase(munged, "volumeAttributesClassName", before["volumeAttributesClassName"]);
  }
  if (!before["storageClassName"]) munged.Erase("storageClassName");
  const Object rest = std::move(edit).Finish();
  const std::string a = InternalJson(before, kSpec, 1);
  const std::string b = InternalJson(rest.root(), kSpec, 1);
  if (a != b) {
    errors.Forbidden(at, fmt::format("spec is immutable after creation except resources.requests "
                                     "and volumeAttributesClassName for bound claims\n{}",
                                     UnifiedDiff(a, b)));
  }
  const auto size = [](Value v) { return Quantity::ParseOrZero(v.AsString()); };
  const Quantity want = size(now["resources"]["requests"]["storage"]);
  if (want < size(before["resources"]["requests"]["storage"]) &&
      want <= size(old["status"]["capacity"]["storage"])) {
    errors.Forbidden(at / "resources.requests.storage",
                     "field can not be less than status.capacity");
  }
  Immutable(now["volumeMode"], before["volumeMode"], At("volumeMode"), errors);
}

// --- volumes
// ----------------------------------------------------------------------------------------

namespace {

void ValidateCapacity(Value spec, const At& at, FieldErrors& errors) {
  const Value capacity = spec["capacity"];
  if (capacity.empty()) errors.Required(at / "capacity", "");
  if (!capacity["storage"] || capacity.size() > 1) {
    errors.NotSupportedRaw(at / "capacity", capacity ? ToJson(capacity) : "null", {"storage"});
  }
  for (auto [name, quantity] : capacity.members()) {
    const At here = at.Key("capacity", name);
    const Quantity q = Quantity::ParseOrZero(quantity.AsString());
    if (q.Value() < 0) {
      errors.InvalidRaw(here, std::to_string(q.Value()), "must be a valid resource quantity");
    }
    ValidatePositiveAmount(quantity, here, errors);
  }
}

void ValidateSecretReference(Value ref, const At& at, FieldErrors& errors) {
  if (!ref) return;
  const std::string_view name = ref["name"].AsString();
  const std::string_view ns = ref["namespace"].AsString();
  if (name.empty()) {
    errors.Required(at / "name", "");
  } else {
    Complain(IsDns1123Subdomain(name), name, at / "name", errors);
  }
  if (ns.empty()) {
    errors.Required(at / "namespace", "");
  } else {
    Complain(IsDns1123Label(ns), ns, at / "namespace", errors);
  }
}

void ValidateLocal(Value spec, const At& at, FieldErrors& errors) {
  const At here = at / "local";
  const std::string_view path = spec["local"]["path"].AsString();
  if (path.empty()) {
    errors.Required(here / "path", "");
  } else {
    ValidateNoBacksteps(path, here / "path", errors);
  }
  if (!spec["nodeAffinity"]) {
    errors.Required(at / "nodeAffinity", "Local volume requires node affinity");
  }
}

void ValidateCsiVolume(Value csi, const At& at, FieldErrors& errors) {
  ValidateCsiDriverName(csi["driver"].AsString(), at / "driver", errors);
  RequiredText(csi, "volumeHandle", at, errors);
  for (const char* name : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                           "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    ValidateSecretReference(csi[name], at / name, errors);
  }
}

constexpr std::string_view kVolumeSources[] = {"hostPath",
                                               "gcePersistentDisk",
                                               "awsElasticBlockStore",
                                               "glusterfs",
                                               "flocker",
                                               "nfs",
                                               "rbd",
                                               "quobyte",
                                               "cephfs",
                                               "iscsi",
                                               "cinder",
                                               "fc",
                                               "flexVolume",
                                               "azureFile",
                                               "vsphereVolume",
                                               "photonPersistentDisk",
                                               "portworxVolume",
                                               "azureDisk",
                                               "scaleIO",
                                               "local",
                                               "storageos",
                                               "csi"};

void ValidateVolumeSource(Value spec, const At& at, FieldErrors& errors) {
  int count = 0;
  for (std::string_view name : kVolumeSources) {
    if (!spec[name]) continue;
    if (count++ > 0) {
      errors.Forbidden(at / name, "may not specify more than 1 volume type");
    } else if (name == "local") {
      ValidateLocal(spec, at, errors);
    } else if (name == "csi") {
      ValidateCsiVolume(spec[name], at / name, errors);
    } else {
      ValidateSharedVolumeSource(name, spec[name], at / name, errors);
    }
  }
  if (count == 0) errors.Required(at, "must specify a volume type");
}

}  // namespace

void ValidateVolume(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  if (spec["accessModes"].empty()) errors.Required(at / "accessModes", "");
  ValidateAccessModes(spec["accessModes"], at / "accessModes", errors);
  ValidateCapacity(spec, at, errors);
  if (!spec["persistentVolumeReclaimPolicy"].AsString().empty()) {
    OneOf(spec, "persistentVolumeReclaimPolicy", {"Delete", "Recycle", "Retain"}, at, errors);
  }
  if (const Value affinity = spec["nodeAffinity"]) {
    const At here = at / "nodeAffinity";
    if (affinity["required"]) {
      ValidateNodeSelector(affinity["required"], here / "required", errors);
    } else {
      errors.Required(here / "required", "must specify required node constraints");
    }
  }
  ValidateVolumeSource(spec, at, errors);
  if (spec["hostPath"]["path"].AsString() == "/" &&
      spec["persistentVolumeReclaimPolicy"].AsString() == "Recycle") {
    errors.Forbidden(at / "persistentVolumeReclaimPolicy",
                     "may not be 'recycle' for a hostPath mount of '/'");
  }
  const std::string_view storage_class = spec["storageClassName"].AsString();
  if (!storage_class.empty()) {
    Complain(NameIsDnsSubdomain(storage_class, false), storage_class, at / "storageClassName",
             errors);
  }
  OneOf(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
}

void ValidateVolumeUpdate(Value o, Value old, FieldErrors& errors) {
  constexpr std::string_view kSource = "io.k8s.api.core.v1.PersistentVolumeSource";
  const std::string before = InternalJson(old["spec"], kSource, 1);
  const std::string after = InternalJson(o["spec"], kSource, 1);
  if (before != after) {
    errors.Forbidden("spec.persistentvolumesource",
                     fmt::format("spec.persistentvolumesource is immutable after creation\n{}",
                                 UnifiedDiff(before, after)));
  }
  Immutable(o["spec"]["volumeMode"], old["spec"]["volumeMode"], At("volumeMode"), errors);
}

// --- storage.k8s.io
// ---------------------------------------------------------------------------------

void ValidateStorageClass(Value o, FieldErrors& errors) {
  const At root;
  const std::string_view provisioner = o["provisioner"].AsString();
  if (provisioner.empty()) {
    errors.Required("provisioner", "");
  } else {
    const std::string lower = AsciiLower(provisioner);
    Complain(IsQualifiedName(lower), lower, At("provisioner"), errors);
  }
  size_t bytes = 0;
  for (auto [key, value] : o["parameters"].members()) {
    if (key.empty()) errors.InvalidText("parameters", key, "field can not be empty.");
    bytes += key.size() + value.AsString().size();
  }
  if (o["parameters"].size() > kMaxParameters) errors.TooLong("parameters", kMaxParameters);
  if (bytes > kMaxParameterBytes) errors.TooLong("parameters", kMaxParameterBytes);
  OneOf(o, "reclaimPolicy", {"Delete", "Retain"}, root, errors);
  OneOf(o, "volumeBindingMode", {"Immediate", "WaitForFirstConsumer"}, root, errors);
}

void ValidateStorageClassUpdate(Value o, Value old, FieldErrors& errors) {
  for (const char* name : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    Immutable(o[name], old[name], At(name), errors);
  }
}

void ValidateCsiDriver(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  OneOf(spec, "fsGroupPolicy", {"File", "None", "ReadWriteOnceWithFSType"}, at, errors);
  Names audiences;
  size_t i = 0;
  for (Value request : spec["tokenRequests"].items()) {
    const At here = at.Item("tokenRequests", i++);
    if (!audiences.emplace(request["audience"].AsString()).second) {
      errors.Duplicate(here / "audience", request["audience"].AsString());
      continue;
    }
    const Value seconds = request["expirationSeconds"];
    if (seconds && seconds.AsInt() < kMinTokenS) {
      errors.Invalid(here / "expirationSeconds", seconds,
                     "may not specify a duration less than 10 minutes");
    }
  }
  for (Value mode : spec["volumeLifecycleModes"].items()) {
    if (mode.AsString() == "Persistent" || mode.AsString() == "Ephemeral") continue;
    NotSupported(at / "volumeLifecycleModes", mode.AsString(), {"Persistent", "Ephemeral"}, errors);
  }
}

void ValidateCsiNode(Value o, FieldErrors& errors) {
  const At at("spec");
  Names names;
  size_t i = 0;
  for (Value driver : o["spec"]["drivers"].items()) {
    const At here = at.Item("drivers", i++);
    const std::string_view name = driver["name"].AsString();
    const std::string_view id = driver["nodeID"].AsString();
    ValidateCsiDriverName(name, here / "name", errors);
    if (id.empty()) errors.Required(here / "nodeID", "");
    if (id.size() > kMaxNodeId) {
      errors.InvalidText(here / "nodeID", id,
                         fmt::format("must be {} characters or less", kMaxNodeId));
    }
    NonNegative(driver["allocatable"], "count", here / "allocatable", errors);
    if (!names.emplace(name).second) errors.Duplicate(here / "name", name);
    for (Value key : driver["topologyKeys"].items()) {
      Complain(IsQualifiedName(key.AsString()), key.AsString(), here, errors);
    }
  }
}

void ValidateAttachment(Value o, FieldErrors& errors) {
  const Value spec = o["spec"];
  const At at("spec");
  ValidateCsiDriverName(spec["attacher"].AsString(), at / "attacher", errors);
  const Value inline_spec = spec["source"]["inlineVolumeSpec"];
  const Value volume = spec["source"]["persistentVolumeName"];
  const At source = at / "source";
  constexpr const char* kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (!inline_spec && !volume) {
    errors.Required(source, kOne);
  } else if (inline_spec && volume) {
    errors.Forbidden(source, kOne);
  } else if (volume && volume.AsString().empty()) {
    errors.Required(source / "persistentVolumeName", "must specify non empty persistentVolumeName");
  }
  const std::string_view node = spec["nodeName"].AsString();
  Complain(NameIsDnsSubdomain(node, false), node, at / "nodeName", errors);
}

void ValidateAttachmentUpdate(Value o, Value old, FieldErrors& errors) {
  if (Same(o["spec"], old["spec"])) return;
  errors.InvalidRaw("spec", InternalJson(o["spec"], "io.k8s.api.storage.v1.VolumeAttachmentSpec"),
                    std::string(kImmutable));
}

}  // namespace sextant::api
