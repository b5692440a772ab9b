// Values as the API server's internal Go types print them. Internal types have no JSON tags: every
// field is printed, under its Go name, with null for what is absent; types of apimachinery (labels,
// selectors, metadata) keep their tags. Four types have their fields in another order than v1.
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/rules_kit.h"
#include "api/schema.h"

namespace sextant::api {
namespace {

using Order = std::span<const std::string_view>;

constexpr std::string_view kPodSpec[] = {"volumes",
                                         "initContainers",
                                         "containers",
                                         "ephemeralContainers",
                                         "restartPolicy",
                                         "terminationGracePeriodSeconds",
                                         "activeDeadlineSeconds",
                                         "dnsPolicy",
                                         "nodeSelector",
                                         "serviceAccountName",
                                         "automountServiceAccountToken",
                                         "nodeName",
                                         "securityContext",
                                         "imagePullSecrets",
                                         "hostname",
                                         "subdomain",
                                         "setHostnameAsFQDN",
                                         "affinity",
                                         "schedulerName",
                                         "tolerations",
                                         "hostAliases",
                                         "priorityClassName",
                                         "priority",
                                         "preemptionPolicy",
                                         "dnsConfig",
                                         "readinessGates",
                                         "runtimeClassName",
                                         "overhead",
                                         "enableServiceLinks",
                                         "topologySpreadConstraints",
                                         "os",
                                         "schedulingGates",
                                         "resourceClaims",
                                         "resources",
                                         "hostnameOverride",
                                         "schedulingGroup"};
// The first five stand in v1's PodSpec.
constexpr size_t kFromSpec = 5;
constexpr std::string_view kPodSecurityContext[] = {"hostNetwork",
                                                    "hostPID",
                                                    "hostIPC",
                                                    "shareProcessNamespace",
                                                    "hostUsers",
                                                    "seLinuxOptions",
                                                    "windowsOptions",
                                                    "runAsUser",
                                                    "runAsGroup",
                                                    "runAsNonRoot",
                                                    "supplementalGroups",
                                                    "supplementalGroupsPolicy",
                                                    "fsGroup",
                                                    "fsGroupChangePolicy",
                                                    "sysctls",
                                                    "seccompProfile",
                                                    "appArmorProfile",
                                                    "seLinuxChangePolicy"};
constexpr std::string_view kVolume[] = {"name",
                                        "hostPath",
                                        "emptyDir",
                                        "gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "gitRepo",
                                        "secret",
                                        "nfs",
                                        "iscsi",
                                        "glusterfs",
                                        "persistentVolumeClaim",
                                        "rbd",
                                        "quobyte",
                                        "flexVolume",
                                        "cinder",
                                        "cephfs",
                                        "flocker",
                                        "downwardAPI",
                                        "fc",
                                        "azureFile",
                                        "configMap",
                                        "vsphereVolume",
                                        "azureDisk",
                                        "photonPersistentDisk",
                                        "projected",
                                        "portworxVolume",
                                        "scaleIO",
                                        "storageos",
                                        "csi",
                                        "ephemeral",
                                        "image"};

constexpr std::string_view kVolumeSource[] = {"gcePersistentDisk",
                                              "awsElasticBlockStore",
                                              "hostPath",
                                              "glusterfs",
                                              "nfs",
                                              "rbd",
                                              "quobyte",
                                              "iscsi",
                                              "flexVolume",
                                              "cinder",
                                              "cephfs",
                                              "fc",
                                              "flocker",
                                              "azureFile",
                                              "vsphereVolume",
                                              "azureDisk",
                                              "photonPersistentDisk",
                                              "portworxVolume",
                                              "scaleIO",
                                              "local",
                                              "storageos",
                                              "csi"};

constexpr std::string_view kPodSpecName = "io.k8s.api.core.v1.PodSpec";
constexpr std::string_view kContextName = "io.k8s.api.core.v1.PodSecurityContext";
constexpr std::string_view kVolumeName = "io.k8s.api.core.v1.Volume";
constexpr std::string_view kVolumeSourceName = "io.k8s.api.core.v1.PersistentVolumeSource";

class Printer {
 public:
  explicit Printer(int indent) : indent_(indent) {}
  std::string Take() { return std::move(out_); }

  void Message(Value v, const api::Message& m, Value outer) {
    if (!m.name.starts_with("io.k8s.api.")) return Tagged(v);
    Open('{');
    if (m.name == kPodSpecName) {
      for (std::string_view name : kPodSpec) Member(v, m.FindField(name), v);
    } else if (m.name == kContextName) {
      const api::Message* spec = Registry::Builtin().FindMessage(kPodSpecName);
      for (size_t i = 0; i < std::size(kPodSecurityContext); ++i) {
        const bool from_spec = i < kFromSpec;
        Member(from_spec ? outer : v, (from_spec ? *spec : m).FindField(kPodSecurityContext[i]),
               outer);
      }
    } else if (m.name == kVolumeName) {
      for (std::string_view name : kVolume) Member(v, m.FindField(name), outer);
    } else if (m.name == kVolumeSourceName) {
      for (std::string_view name : kVolumeSource) Member(v, m.FindField(name), outer);
    } else {
      for (const Field& f : m.fields) {
        if (f.inlined) continue;
        if (f.name == "metadata" && f.type == Type::kMessage) {
          Metadata(v["metadata"]);
        } else {
          Member(v, &f, outer);
        }
      }
    }
    Close('}');
  }

 private:
  // ObjectMeta is embedded: its own fields, with their tags, stand among the others.
  void Metadata(Value metadata) {
    for (auto [key, value] : metadata.members()) {
      Key(key);
      Tagged(value);
    }
  }

  void Member(Value message, const Field* field, Value outer) {
    if (!field) return;
    Key(field->go_name);
    FieldValue(message[field->name], *field, outer);
  }

  void FieldValue(Value v, const Field& f, Value outer) {
    if (!v && (f.pointer || f.shape != Shape::kSingle)) {
      out_ += "null";
    } else if (f.shape == Shape::kList && f.type != Type::kBytes) {
      Open('[');
      for (Value item : v.items()) {
        Next();
        Single(item, f, outer);
      }
      Close(']');
    } else if (f.shape == Shape::kMap) {
      Open('{');
      for (auto [key, value] : v.members()) {
        Key(key);
        Single(value, f, outer);
      }
      Close('}');
    } else {
      Single(v, f, outer);
    }
  }

  void Single(Value v, const Field& f, Value outer) {
    if (f.type == Type::kMessage) return Message(v, *f.message, outer);
    if (v) return Tagged(v);
    switch (f.type) {
      case Type::kBool:
        out_ += "false";
        return;
      case Type::kInt32:
      case Type::kInt64:
      case Type::kUint32:
      case Type::kDouble:
      case Type::kIntOrString:
        out_ += '0';
        return;
      case Type::kString:
        out_ += "\"\"";
        return;
      case Type::kQuantity:
        out_ += "\"0\"";
        return;
      default:
        out_ += "null";
        return;
    }
  }

  // As its JSON stands, indented as the rest.
  void Tagged(Value v) {
    if (v.IsMap()) {
      Open('{');
      for (auto [key, value] : v.members()) {
        Key(key);
        Tagged(value);
      }
      Close('}');
    } else if (v.IsList()) {
      Open('[');
      for (Value item : v.items()) {
        Next();
        Tagged(item);
      }
      Close(']');
    } else if (v.IsAbsent()) {
      out_ += "{}";  // an absent message
    } else {
      WriteJson(v, out_);
    }
  }

  void Open(char c) {
    out_ += c;
    ++depth_;
    first_ = true;
  }
  void Close(char c) {
    --depth_;
    if (!first_) NewLine();
    out_ += c;
    first_ = false;
  }
  void Next() {
    if (!first_) out_ += ',';
    first_ = false;
    NewLine();
  }
  void Key(std::string_view name) {
    Next();
    WriteJsonString(name, out_);
    out_ += indent_ < 0 ? ":" : ": ";
  }
  void NewLine() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_ * depth_), ' ');
  }

  std::string out_;
  int indent_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string InternalJson(Value value, std::string_view message, int indent) {
  const Message* m = Registry::Builtin().FindMessage(message);
  if (!value || m == nullptr) return "null";
  Printer printer(indent);
  printer.Message(value, *m, Value());
  return printer.Take();
}

}  // namespace sextant::api
