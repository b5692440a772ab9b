// Volumes of Pods: one row for each kind of source. Source: validation.go, validateVolumeSource and
// the functions it calls; the names in paths are its own, oddities included.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "api/rules_pod.h"
#include "base/ascii.h"

namespace sextant::api {
namespace {

constexpr int64_t kMaxMode = 0777;
constexpr int64_t kMinTokenS = 10 * 60;
constexpr int64_t kMaxTokenS = int64_t{1} << 32;
constexpr size_t kMaxIscsiName = 64;
constexpr size_t kMaxTenant = 64;
constexpr size_t kMaxDriver = 63;

void ValidateMode(Value message, const char* name, const At& at, FieldErrors& errors) {
  const Value mode = message[name];
  if (mode && (mode.AsInt() > kMaxMode || mode.AsInt() < 0)) {
    errors.Invalid(at / name, mode, "must be a number between 0 and 0777 (octal), both inclusive");
  }
}

void ValidateByte(Value message, const char* name, int64_t low, const At& at, FieldErrors& errors) {
  const int64_t n = message[name].AsInt();
  if (n < 0 || n > 255) errors.Invalid(at / name, message[name], RangeComplaint(low, 255));
}

void ValidateKeyToPath(Value item, const At& at, FieldErrors& errors) {
  RequiredText(item, "key", at, errors);
  RequiredText(item, "path", at, errors);
  ValidateNonReservedPath(item["path"].AsString(), at / "path", errors);
  ValidateMode(item, "mode", at, errors);
}

void ValidateItems(Value items, const At& at, FieldErrors& errors) {
  size_t i = 0;
  for (Value item : items.items()) ValidateKeyToPath(item, at.Item("items", i++), errors);
}

void ValidateDownwardFile(Value file, const At& at, FieldErrors& errors) {
  RequiredText(file, "path", at, errors);
  ValidateNonReservedPath(file["path"].AsString(), at / "path", errors);
  if (file["fieldRef"]) {
    ValidateFieldRef(file["fieldRef"],
                     {"metadata.annotations", "metadata.labels", "metadata.name",
                      "metadata.namespace", "metadata.uid"},
                     at / "fieldRef", errors);
    if (file["resourceFieldRef"]) {
      errors.InvalidText(at, "resource",
                         "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
  } else if (file["resourceFieldRef"]) {
    ValidateResourceFieldRef(file["resourceFieldRef"], true, at / "resourceFieldRef", errors);
  } else {
    errors.Required(at, "one of fieldRef and resourceFieldRef is required");
  }
  ValidateMode(file, "mode", at, errors);
}

// --- one function for each source with more than required fields ------------------------------

void HostPath(Value source, const At& at, FieldErrors& errors) {
  const std::string_view path = source["path"].AsString();
  if (path.empty()) return errors.Required(at / "path", "");
  ValidateNoBacksteps(path, at / "path", errors);
  OneOf(source, "type",
        {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
         "Socket"},
        at, errors);
}

void GitRepo(Value source, const At& at, FieldErrors& errors) {
  ValidateDescendingPath(source["directory"].AsString(), at / "directory", errors);
}

void GcePersistentDisk(Value source, const At& at, FieldErrors& errors) {
  ValidateByte(source, "partition", 1, at, errors);
}

void SecretVolume(Value source, const At& at, FieldErrors& errors) {
  ValidateMode(source, "defaultMode", at, errors);
  ValidateItems(source["items"], at, errors);
}

void Nfs(Value source, const At& at, FieldErrors& errors) {
  const std::string_view path = source["path"].AsString();
  if (!path.starts_with('/')) errors.InvalidText(at / "path", path, "must be an absolute path");
}

bool AllAlphanumeric(std::string_view text) { return std::ranges::all_of(text, IsAlphanumeric); }

bool AllDigits(std::string_view text) { return std::ranges::all_of(text, IsDigit); }

// iqn.2001-04.com.example:disk, eui.0123456789abcdef, naa. and 32 digits.
bool IsIscsiName(std::string_view name) {
  if (name.starts_with("eui")) return name.size() == 20 && AllAlphanumeric(name.substr(4));
  if (name.starts_with("naa")) return name.size() == 36 && AllAlphanumeric(name.substr(4));
  const size_t colon = name.find(':');
  if (name.size() < 13 || colon == std::string_view::npos || colon < 13) return false;
  const std::string_view authority = name.substr(12, colon - 12);
  const std::string_view unique = name.substr(colon + 1);
  const bool plain = std::ranges::all_of(
      authority, [](char c) { return AllAlphanumeric({&c, 1}) || c == '-' || c == '.'; });
  return name[3] == '.' && AllDigits(name.substr(4, 4)) && name[8] == '-' &&
         AllDigits(name.substr(9, 2)) && name[11] == '.' && plain && !unique.empty() &&
         unique.find_first_of(",;*&$| \t\r\n") == std::string_view::npos;
}

bool IscsiPrefix(std::string_view name) {
  return name.starts_with("iqn") || name.starts_with("eui") || name.starts_with("naa");
}

void Iscsi(Value source, const At& at, FieldErrors& errors) {
  RequiredText(source, "targetPortal", at, errors);
  const std::string_view iqn = source["iqn"].AsString();
  if (iqn.empty()) {
    errors.Required(at / "iqn", "");
  } else if (!IscsiPrefix(iqn)) {
    errors.InvalidText(at / "iqn", iqn, "must be valid format starting with iqn, eui, or naa");
  } else if (!IsIscsiName(iqn)) {
    errors.InvalidText(at / "iqn", iqn, "must be valid format");
  }
  ValidateByte(source, "lun", 0, at, errors);
  if ((source["chapAuthDiscovery"].AsBool() || source["chapAuthSession"].AsBool()) &&
      !source["secretRef"]) {
    errors.Required(at / "secretRef", "");
  }
  if (!source["initiatorName"]) return;
  const std::string_view initiator = source["initiatorName"].AsString();
  if (!IscsiPrefix(initiator)) {
    errors.InvalidText(at / "initiatorname", initiator,
                       "must be valid format starting with iqn, eui, or naa");
  } else if (!IsIscsiName(initiator)) {
    errors.InvalidText(at / "initiatorname", initiator, "must be valid format");
  }
}

void Flocker(Value source, const At& at, FieldErrors& errors) {
  const std::string_view name = source["datasetName"].AsString();
  const std::string_view uuid = source["datasetUUID"].AsString();
  if (name.empty() && uuid.empty()) {
    errors.Required(at, "one of datasetName and datasetUUID is required");
  }
  if (!name.empty() && !uuid.empty()) {
    errors.InvalidText(at, "resource",
                       "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.find('/') != std::string_view::npos) {
    errors.InvalidText(at / "datasetName", name, "must not contain '/'");
  }
}

void SecretRefName(Value source, const At& at, FieldErrors& errors) {
  if (source["secretRef"]) RequiredText(source["secretRef"], "name", at / "secretRef", errors);
}

void MonitorsAndImage(Value source, const At& at, FieldErrors& errors) {
  if (source["monitors"].empty()) errors.Required(at / "monitors", "");
  RequiredText(source, "image", at, errors);
}

void Monitors(Value source, const At& at, FieldErrors& errors) {
  if (source["monitors"].empty()) errors.Required(at / "monitors", "");
}

void Quobyte(Value source, const At& at, FieldErrors& errors) {
  constexpr const char* kPairs = "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = source["registry"].AsString();
  if (registry.empty()) {
    errors.Required(at / "registry", kPairs);
  } else if (source["tenant"].AsString().size() > kMaxTenant) {
    errors.Required(at / "tenant", "must be a UUID and may not exceed a length of 64 characters");
  } else {
    for (std::string_view rest = registry; true;) {
      const size_t comma = rest.find(',');
      const std::string_view pair = rest.substr(0, comma);
      if (std::ranges::count(pair, ':') != 1) {
        errors.InvalidText(at / "registry", registry, kPairs);
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  RequiredText(source, "volume", at, errors);
}

void DownwardApi(Value source, const At& at, FieldErrors& errors) {
  ValidateMode(source, "defaultMode", at, errors);
  for (Value file : source["items"].items()) ValidateDownwardFile(file, at, errors);
}

void Fc(Value source, const At& at, FieldErrors& errors) {
  const Value wwns = source["targetWWNs"];
  const bool wwids = !source["wwids"].empty();
  if (wwns.empty() && !wwids) {
    errors.Required(at / "targetWWNs", "must specify either targetWWNs or wwids, but not both");
  }
  if (!wwns.empty() && wwids) {
    errors.Invalid(at / "targetWWNs", wwns,
                   "targetWWNs and wwids can not be specified simultaneously");
  }
  if (wwns.empty()) return;
  if (!source["lun"]) {
    errors.Required(at / "lun", "lun is required if targetWWNs is specified");
  } else {
    ValidateByte(source, "lun", 0, at, errors);
  }
}

void FlexVolume(Value source, const At& at, FieldErrors& errors) {
  for (auto [key, value] : source["options"].members()) {
    const std::string domain = "." + AsciiLower(key.substr(0, key.find('/')));
    if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
      errors.InvalidText(at.Key("options", key), key,
                         "kubernetes.io and k8s.io namespaces are reserved");
    }
  }
}

void AzureDisk(Value source, const At& at, FieldErrors& errors) {
  OneOf(source, "cachingMode", {"None", "ReadOnly", "ReadWrite"}, at, errors);
  OneOf(source, "kind", {"Dedicated", "Managed", "Shared"}, at, errors);
  if (!source["kind"]) return;
  const bool managed = source["kind"].AsString() == "Managed";
  const std::string_view uri = source["diskURI"].AsString();
  if (managed && !uri.starts_with("/subscriptions/")) {
    NotSupported(at / "diskURI", uri,
                 {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/"
                  "microsoft.compute/disks/{disk-id}"},
                 errors);
  }
  if (!managed && !uri.starts_with("https://")) {
    NotSupported(at / "diskURI", uri,
                 {"https://{account-name}.blob.core.windows.net/{container-name}/"
                  "{disk-name}.vhd"},
                 errors);
  }
}

void StorageOs(Value source, const At& at, FieldErrors& errors) {
  const std::string_view name = source["volumeName"].AsString();
  if (name.empty()) {
    errors.Required(at / "volumeName", "");
  } else {
    Complain(IsDns1123Label(name), name, at / "volumeName", errors);
  }
  const std::string_view ns = source["volumeNamespace"].AsString();
  if (!ns.empty()) Complain(IsDns1123Label(ns), ns, at / "volumeNamespace", errors);
  SecretRefName(source, at, errors);
}

void Csi(Value source, const At& at, FieldErrors& errors) {
  ValidateCsiDriverName(source["driver"].AsString(), at / "driver", errors);
  const Value secret = source["nodePublishSecretRef"];
  if (!secret) return;
  const std::string_view name = secret["name"].AsString();
  if (name.empty()) {
    errors.Required(at / "nodePublishSecretRef.name", "");
  } else {
    Complain(NameIsDnsSubdomain(name, false), name, at / "name", errors);
  }
}

void Ephemeral(Value source, const At& at, FieldErrors& errors) {
  const Value claim = source["volumeClaimTemplate"];
  const At here = at / "volumeClaimTemplate";
  if (!claim) return errors.Required(here, "");
  const At metadata = here / "metadata";
  ValidateAnnotations(claim["metadata"]["annotations"], metadata / "annotations", errors);
  ValidateLabels(claim["metadata"]["labels"], metadata / "labels", errors);
  for (auto [key, value] : claim["metadata"].members()) {
    if (key != "annotations" && key != "labels" && value) {
      errors.Forbidden(metadata / key, "cannot be set");
    }
  }
  ValidateClaimSpec(claim["spec"], here / "spec", errors);
}

void ImageVolume(Value source, const At& at, FieldErrors& errors) {
  ValidatePullPolicy(source["pullPolicy"], at / "pullPolicy", errors);
}

// --- projected
// ------------------------------------------------------------------------------------

class Projection {
 public:
  Projection(const At& at, FieldErrors& errors) : at_(at), errors_(errors) {}

  void Source(Value source, const At& at) {
    int sources = 0;
    for (const char* kind : {"secret", "configMap"}) {
      if (!source[kind]) continue;
      ++sources;
      const At here = at / kind;
      RequiredText(source[kind], "name", here, errors_);
      size_t i = 0;
      for (Value item : source[kind]["items"].items()) {
        ValidateKeyToPath(item, here.Item("items", i++), errors_);
        Take(item["path"].AsString(), source[kind]["name"].AsString());
      }
    }
    if (const Value downward = source["downwardAPI"]) {
      ++sources;
      const At here = at / "downwardAPI";
      for (Value file : downward["items"].items()) {
        ValidateDownwardFile(file, here, errors_);
        Take(file["path"].AsString(), file["path"].AsString());
      }
    }
    if (source["serviceAccountToken"]) {
      ++sources;
      Token(source["serviceAccountToken"], at / "serviceAccountToken");
    }
    if (source["clusterTrustBundle"]) {
      ++sources;
      TrustBundle(source["clusterTrustBundle"], at / "clusterTrustBundle");
    }
    if (source["podCertificate"]) {
      ++sources;
      Certificate(source["podCertificate"], at / "podCertificate");
    }
    if (sources > 1) errors_.Forbidden(at, "may not specify more than 1 volume type per source");
  }

 private:
  void Take(std::string_view path, std::string_view shown) {
    if (path.empty()) return;
    if (!paths_.emplace(path).second) {
      errors_.InvalidText(at_, shown, "conflicting duplicate paths");
    }
  }

  void Token(Value token, const At& at) {
    const Value seconds = token["expirationSeconds"];
    if (seconds.AsInt() < kMinTokenS) {
      errors_.Invalid(at / "expirationSeconds", seconds,
                      "may not specify a duration less than 10 minutes");
    }
    if (seconds.AsInt() > kMaxTokenS) {
      errors_.Invalid(at / "expirationSeconds", seconds,
                      "may not specify a duration larger than 2^32 seconds");
    }
    const std::string_view path = token["path"].AsString();
    if (path.empty()) {
      errors_.Required(at_ / "path", "");
    } else {
      ValidateNonReservedPath(path, at_ / "path", errors_);
    }
  }

  void TrustBundle(Value bundle, const At& at) {
    const bool name = static_cast<bool>(bundle["name"]);
    const bool signer = static_cast<bool>(bundle["signerName"]);
    if (name && signer) {
      errors_.InvalidRaw(at,
                         InternalJson(bundle, "io.k8s.api.core.v1.ClusterTrustBundleProjection"),
                         "only one of name and signerName may be used");
    } else if (name) {
      if (bundle["name"].AsString().empty()) {
        errors_.Required(at / "name", "must be a valid object name");
      }
      if (bundle["labelSelector"]) {
        errors_.Invalid(at / "labelSelector", bundle["labelSelector"],
                        "labelSelector must be unset if name is specified");
      }
    } else if (signer) {
      if (bundle["signerName"].AsString().empty()) {
        errors_.Required(at / "signerName", "must be a valid signer name");
      }
      ValidateLabelSelector(bundle["labelSelector"], at / "labelSelector", errors_);
    } else {
      errors_.Required(at, "either name or signerName must be specified");
    }
    const std::string_view path = bundle["path"].AsString();
    if (path.empty()) errors_.Required(at / "path", "");
    ValidateNonReservedPath(path, at / "path", errors_);
    Take(path, path);
  }

  void Certificate(Value certificate, const At& at) {
    OneOf(certificate, "keyType",
          {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}, at, errors_,
          false);
    const Value seconds = certificate["maxExpirationSeconds"];
    if (seconds && seconds.AsInt() < 3600) {
      errors_.Invalid(at / "maxExpirationSeconds", seconds,
                      "if provided, maxExpirationSeconds must be >= 3600");
    }
    int paths = 0;
    for (const char* field : {"credentialBundlePath", "keyPath", "certificateChainPath"}) {
      const std::string_view path = certificate[field].AsString();
      if (path.empty()) continue;
      ++paths;
      ValidateNonReservedPath(path, at / field, errors_);
      Take(path, path);
    }
    if (paths == 0) {
      errors_.Required(
          at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
  }

  const At& at_;
  FieldErrors& errors_;
  Names paths_;
};

void Projected(Value source, const At& at, FieldErrors& errors) {
  ValidateMode(source, "defaultMode", at, errors);
  Projection projection(at, errors);
  size_t i = 0;
  for (Value s : source["sources"].items()) projection.Source(s, at.Item("sources", i++));
}

// --- the table
// --------------------------------------------------------------------------------------

struct SourceKind {
  std::string_view name;
  std::string_view in_path;    // what messages about its fields call it
  std::string_view as_second;  // what they call it when there is another one already
  std::initializer_list<std::string_view> required = {};
  void (*check)(Value, const At&, FieldErrors&) = nullptr;
};

// In the order in which the API server looks for them.
const SourceKind kSources[] = {
    {"hostPath", "hostPath", "hostPath", {}, HostPath},
    {"gitRepo", "gitRepo", "gitRepo", {"repository"}, GitRepo},
    {"gcePersistentDisk", "persistentDisk", "gcePersistentDisk", {"pdName"}, GcePersistentDisk},
    {"awsElasticBlockStore",
     "awsElasticBlockStore",
     "awsElasticBlockStore",
     {"volumeID"},
     GcePersistentDisk},
    {"secret", "secret", "secret", {"secretName"}, SecretVolume},
    {"nfs", "nfs", "nfs", {"server", "path"}, Nfs},
    {"iscsi", "iscsi", "iscsi", {}, Iscsi},
    {"glusterfs", "glusterfs", "glusterfs", {"endpoints", "path"}},
    {"flocker", "flocker", "flocker", {}, Flocker},
    {"persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", {"claimName"}},
    {"rbd", "rbd", "rbd", {}, MonitorsAndImage},
    {"cinder", "cinder", "cinder", {"volumeID"}, SecretRefName},
    {"cephfs", "cephfs", "cephFS", {}, Monitors},
    {"quobyte", "quobyte", "quobyte", {}, Quobyte},
    {"downwardAPI", "downwardAPI", "downwarAPI", {}, DownwardApi},
    {"fc", "fc", "fc", {}, Fc},
    {"flexVolume", "flexVolume", "flexVolume", {"driver"}, FlexVolume},
    {"configMap", "configMap", "configMap", {"name"}, SecretVolume},
    {"azureFile", "azureFile", "azureFile", {"secretName", "shareName"}},
    {"vsphereVolume", "vsphereVolume", "vsphereVolume", {"volumePath"}},
    {"photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", {"pdID"}},
    {"portworxVolume", "portworxVolume", "portworxVolume", {"volumeID"}},
    {"azureDisk", "azureDisk", "azureDisk", {"diskName", "diskURI"}, AzureDisk},
    {"storageos", "storageos", "storageos", {}, StorageOs},
    {"projected", "projected", "projected", {}, Projected},
    {"scaleIO", "scaleIO", "scaleIO", {"gateway", "system", "volumeName"}},
    {"csi", "csi", "csi", {}, Csi},
    {"ephemeral", "ephemeral", "ephemeral", {}, Ephemeral},
    {"image", "image", "image", {}, ImageVolume},
};

void CheckSource(const SourceKind& kind, Value source, const At& at, FieldErrors& errors) {
  for (std::string_view name : kind.required) RequiredText(source, name, at, errors);
  if (kind.check) kind.check(source, at, errors);
}

void ValidateSource(Value volume, const PodScope& scope, const At& at, FieldErrors& errors) {
  int count = 0;
  const std::string_view name = volume["name"].AsString();
  const std::string_view pod = scope.metadata["name"].AsString();
  if (const Value empty = volume["emptyDir"]) {
    ++count;
    if (Quantity::ParseOrZero(empty["sizeLimit"].AsString()).Sign() < 0) {
      errors.Forbidden(at / "emptyDir.sizeLimit",
                       "SizeLimit field must be a valid resource quantity");
    }
  }
  for (const SourceKind& kind : kSources) {
    const Value source = volume[kind.name];
    if (!source) continue;
    if (count > 0) {
      errors.Forbidden(at / kind.as_second, "may not specify more than 1 volume type");
      continue;
    }
    ++count;
    if (kind.name == "image" && scope.is_pod) {
      RequiredText(source, "reference", at / kind.in_path, errors);
    }
    CheckSource(kind, source, at / kind.in_path, errors);
    if (kind.name == "ephemeral" && !pod.empty() && !name.empty()) {
      const std::string claim = fmt::format("{}-{}", pod, name);
      for (const std::string& why : NameIsDnsSubdomain(claim, false)) {
        errors.InvalidText(at / "name", name, fmt::format("PVC name \"{}\": {}", claim, why));
      }
    }
    if (kind.name == "iscsi" && source["initiatorName"] &&
        name.size() + 1 + source["targetPortal"].AsString().size() > kMaxIscsiName) {
      errors.InvalidText(at / "name", name,
                         "Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                         "characters if iscsi.initiatorName is specified.");
    }
  }
  if (count == 0) errors.Required(at, "must specify a volume type");
}

}  // namespace

void ValidateCsiDriverName(std::string_view driver, const At& at, FieldErrors& errors) {
  if (driver.empty()) return errors.Required(at, "");
  if (driver.size() > kMaxDriver) errors.TooLong(at, kMaxDriver);
  Complain(IsDns1123Subdomain(AsciiLower(driver)), driver, at, errors);
}

void ValidateVolumes(Value volumes, PodScope& scope, const At& at, FieldErrors& errors) {
  Names created;  // claims that ephemeral volumes make
  const std::string_view pod = scope.metadata["name"].AsString();
  for (Value v : volumes.items()) {
    if (v["ephemeral"] && !pod.empty()) {
      created.insert(fmt::format("{}-{}", pod, v["name"].AsString()));
    }
  }
  size_t i = 0;
  for (Value v : volumes.items()) {
    const At here = at.Item("volumes", i++);
    const size_t before = errors.causes().size();
    ValidateSource(v, scope, here, errors);
    const std::string_view name = v["name"].AsString();
    if (name.empty()) {
      errors.Required(here / "name", "");
    } else {
      Complain(IsDns1123Label(name), name, here / "name", errors);
    }
    if (scope.volumes.contains(name)) errors.Duplicate(here / "name", name);
    if (errors.causes().size() == before) scope.volumes.emplace(name, v);
    const std::string_view claim = v["persistentVolumeClaim"]["claimName"].AsString();
    if (v["persistentVolumeClaim"] && created.contains(claim)) {
      errors.InvalidText(here / "persistentVolumeClaim.claimName", claim,
                         "must not reference a PVC that gets created for an ephemeral volume");
    }
  }
}

bool ValidateSharedVolumeSource(std::string_view name, Value source, const At& at,
                                FieldErrors& errors) {
  const auto kind = std::ranges::find(kSources, name, &SourceKind::name);
  if (kind == std::end(kSources)) return false;
  CheckSource(*kind, source, at, errors);
  return true;
}

}  // namespace sextant::api
