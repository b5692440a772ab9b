// Which columns each kind has: data, found by group and plural.
#include "server/tables.h"

#include <fmt/format.h>

#include <array>

#include "server/table_cells.h"

namespace sextant::server {
namespace {

using namespace cells;

// Paths as template arguments.
constexpr char kAddressType[] = "addressType";
constexpr char kAllowVolumeExpansion[] = "allowVolumeExpansion";
constexpr char kData[] = "data";
constexpr char kDriverName[] = "driverName";
constexpr char kGlobalDefault[] = "globalDefault";
constexpr char kHandler[] = "handler";
constexpr char kMetadataCreationTimestamp[] = "metadata.creationTimestamp";
constexpr char kMetadataName[] = "metadata.name";
constexpr char kPreemptionPolicy[] = "preemptionPolicy";
constexpr char kProvisioner[] = "provisioner";
constexpr char kReason[] = "reason";
constexpr char kRevision[] = "revision";
constexpr char kSpecAllocation[] = "spec.allocation";
constexpr char kSpecAttachRequired[] = "spec.attachRequired";
constexpr char kSpecAttacher[] = "spec.attacher";
constexpr char kSpecCount[] = "spec.count";
constexpr char kSpecDrivers[] = "spec.drivers";
constexpr char kSpecHolderIdentity[] = "spec.holderIdentity";
constexpr char kSpecModel[] = "spec.model";
constexpr char kSpecNodeName[] = "spec.nodeName";
constexpr char kSpecPersistentVolumeReclaimPolicy[] = "spec.persistentVolumeReclaimPolicy";
constexpr char kSpecPodInfoOnMount[] = "spec.podInfoOnMount";
constexpr char kSpecReplicas[] = "spec.replicas";
constexpr char kSpecRequiresRepublish[] = "spec.requiresRepublish";
constexpr char kSpecSchedule[] = "spec.schedule";
constexpr char kSpecSourcePersistentVolumeName[] = "spec.source.persistentVolumeName";
constexpr char kSpecStorageCapacity[] = "spec.storageCapacity";
constexpr char kSpecStorageClassName[] = "spec.storageClassName";
constexpr char kSpecType[] = "spec.type";
constexpr char kSpecVolumeName[] = "spec.volumeName";
constexpr char kStatusAttached[] = "status.attached";
constexpr char kStatusAvailableReplicas[] = "status.availableReplicas";
constexpr char kStatusCurrentNumberScheduled[] = "status.currentNumberScheduled";
constexpr char kStatusDesiredNumberScheduled[] = "status.desiredNumberScheduled";
constexpr char kStatusDisruptionsAllowed[] = "status.disruptionsAllowed";
constexpr char kStatusNodeInfoKubeletVersion[] = "status.nodeInfo.kubeletVersion";
constexpr char kStatusNominatedNodeName[] = "status.nominatedNodeName";
constexpr char kStatusNumberAvailable[] = "status.numberAvailable";
constexpr char kStatusNumberReady[] = "status.numberReady";
constexpr char kStatusPhase[] = "status.phase";
constexpr char kStatusReadyReplicas[] = "status.readyReplicas";
constexpr char kStatusReason[] = "status.reason";
constexpr char kStatusReplicas[] = "status.replicas";
constexpr char kStatusUpdatedNumberScheduled[] = "status.updatedNumberScheduled";
constexpr char kStatusUpdatedReplicas[] = "status.updatedReplicas";
constexpr char kType[] = "type";
constexpr char kValue[] = "value";

constexpr Column kCorePods[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Ready", "string", "", 0, PodReady},
    {"Status", "string", "", 0, PodStatus},
    {"Restarts", "string", "", 0, PodRestarts},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"IP", "string", "", 1, PodIp},
    {"Node", "string", "", 1, TextOrNone<kSpecNodeName>},
    {"Nominated Node", "string", "", 1, TextOrNone<kStatusNominatedNodeName>},
    {"Readiness Gates", "string", "", 1, PodReadinessGates},
};
constexpr Column kCoreNodes[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Status", "string", "", 0, NodeStatus},
    {"Roles", "string", "", 0, NodeRoles},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Version", "string", "", 0, Text<kStatusNodeInfoKubeletVersion>},
    {"Internal-IP", "string", "", 1, NodeInternalIp},
    {"External-IP", "string", "", 1, NodeExternalIp},
    {"OS-Image", "string", "", 1, NodeOs},
    {"Kernel-Version", "string", "", 1, NodeKernel},
    {"Container-Runtime", "string", "", 1, NodeRuntime},
};
constexpr Column kCorePodtemplates[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Containers", "string", "", 0, PodTemplateContainers},
    {"Images", "string", "", 0, PodTemplateImages},
    {"Pod Labels", "string", "", 0, PodTemplateLabels},
};
constexpr Column kReplicaSets[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Desired", "integer", "", 0, Number<kSpecReplicas>},
    {"Current", "integer", "", 0, Number<kStatusReplicas>},
    {"Ready", "integer", "", 0, Number<kStatusReadyReplicas>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, TemplateContainers},
    {"Images", "string", "", 1, TemplateImages},
    {"Selector", "string", "", 1, TemplateSelector},
};
constexpr Column kCoreServices[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Type", "string", "", 0, Text<kSpecType>},
    {"Cluster-IP", "string", "", 0, ServiceClusterIp},
    {"External-IP", "string", "", 0, ServiceExternalIp},
    {"Port(s)", "string", "", 0, ServicePorts},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Selector", "string", "", 1, ServiceSelector},
};
constexpr Column kCoreEndpoints[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Endpoints", "string", "", 0, EndpointsText},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kEvents[] = {
    {"Last Seen", "string", "", 0, EventLastSeen},
    {"Type", "string", "", 0, Text<kType>},
    {"Reason", "string", "", 0, Text<kReason>},
    {"Object", "string", "", 0, EventObject},
    {"Subobject", "string", "", 1, EventText},
    {"Source", "string", "", 1, EventSource},
    {"Message", "string", "", 0, EventMessage},
    {"First Seen", "string", "", 1, EventFirstSeen},
    {"Count", "string", "", 1, EventCount},
    {"Name", "string", "name", 1, Text<kMetadataName>},
};
constexpr Column kCoreNamespaces[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Status", "string", "", 0, Text<kStatusPhase>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kCoreSecrets[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Type", "string", "", 0, Text<kType>},
    {"Data", "string", "", 0, Count<kData>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kCoreServiceaccounts[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kCoreConfigmaps[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Data", "string", "", 0, ConfigMapData},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kCorePersistentvolumes[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Capacity", "string", "", 0, ClaimCapacity},
    {"Access Modes", "string", "", 0, AccessModes},
    {"Reclaim Policy", "string", "", 0, Text<kSpecPersistentVolumeReclaimPolicy>},
    {"Status", "string", "", 0, VolumeStatus},
    {"Claim", "string", "", 0, VolumeClaim},
    {"StorageClass", "string", "", 0, Text<kSpecStorageClassName>},
    {"VolumeAttributesClass", "string", "", 0, AttributesClass},
    {"Reason", "string", "", 0, Text<kStatusReason>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"VolumeMode", "string", "", 1, VolumeMode},
};
constexpr Column kCorePersistentvolumeclaims[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Status", "string", "", 0, ClaimStatus},
    {"Volume", "string", "", 0, Text<kSpecVolumeName>},
    {"Capacity", "string", "", 0, ClaimCapacity},
    {"Access Modes", "string", "", 0, AccessModes},
    {"StorageClass", "string", "", 0, Text<kSpecStorageClassName>},
    {"VolumeAttributesClass", "string", "", 0, AttributesClass},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"VolumeMode", "string", "", 1, VolumeMode},
};
constexpr Column kCoreResourcequotas[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Request", "string", "", 0, QuotaRequests},
    {"Limit", "string", "", 0, QuotaLimits},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kAppsDeployments[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Ready", "string", "", 0, ReadyOfWanted},
    {"Up-to-date", "string", "", 0, Number<kStatusUpdatedReplicas>},
    {"Available", "string", "", 0, Number<kStatusAvailableReplicas>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, TemplateContainers},
    {"Images", "string", "", 1, TemplateImages},
    {"Selector", "string", "", 1, TemplateSelector},
};
constexpr Column kAppsDaemonsets[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Desired", "integer", "", 0, Number<kStatusDesiredNumberScheduled>},
    {"Current", "integer", "", 0, Number<kStatusCurrentNumberScheduled>},
    {"Ready", "integer", "", 0, Number<kStatusNumberReady>},
    {"Up-to-date", "integer", "", 0, Number<kStatusUpdatedNumberScheduled>},
    {"Available", "integer", "", 0, Number<kStatusNumberAvailable>},
    {"Node Selector", "string", "", 0, DaemonNodeSelector},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, TemplateContainers},
    {"Images", "string", "", 1, TemplateImages},
    {"Selector", "string", "", 1, TemplateSelector},
};
constexpr Column kAppsStatefulsets[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Ready", "string", "", 0, ReadyOfWanted},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, TemplateContainers},
    {"Images", "string", "", 1, TemplateImages},
};
constexpr Column kAppsControllerrevisions[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Controller", "string", "", 0, RevisionController},
    {"Revision", "string", "", 0, Number<kRevision>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kBatchJobs[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Status", "string", "", 0, JobStatus},
    {"Completions", "string", "", 0, JobCompletions},
    {"Duration", "string", "", 0, JobDuration},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, TemplateContainers},
    {"Images", "string", "", 1, TemplateImages},
    {"Selector", "string", "", 1, TemplateSelector},
};
constexpr Column kBatchCronjobs[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Schedule", "string", "", 0, Text<kSpecSchedule>},
    {"Timezone", "string", "", 0, CronTimezone},
    {"Suspend", "boolean", "", 0, CronSuspend},
    {"Active", "integer", "", 0, CronActive},
    {"Last Schedule", "string", "", 0, CronLast},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Containers", "string", "", 1, CronContainers},
    {"Images", "string", "", 1, CronImages},
    {"Selector", "string", "", 1, CronSelector},
};
constexpr Column kPolicyPoddisruptionbudgets[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Min Available", "string", "", 0, BudgetMin},
    {"Max Unavailable", "string", "", 0, BudgetMax},
    {"Allowed Disruptions", "integer", "", 0, Number<kStatusDisruptionsAllowed>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kRoleBindings[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Role", "string", "", 0, BindingRole},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"Users", "string", "", 1, BindingUsers},
    {"Groups", "string", "", 1, BindingGroups},
    {"ServiceAccounts", "string", "", 1, BindingAccounts},
};
constexpr Column kCoordinationLeases[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Holder", "string", "", 0, Text<kSpecHolderIdentity>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kDiscoveryEndpointslices[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"AddressType", "string", "", 0, Text<kAddressType>},
    {"Ports", "string", "", 0, SlicePorts},
    {"Endpoints", "string", "", 0, SliceEndpoints},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kStorageStorageclasses[] = {
    {"Name", "string", "name", 0, StorageName},
    {"Provisioner", "string", "", 0, Text<kProvisioner>},
    {"ReclaimPolicy", "string", "", 0, StorageReclaim},
    {"VolumeBindingMode", "string", "", 0, StorageBinding},
    {"AllowVolumeExpansion", "string", "", 0, Flag<kAllowVolumeExpansion>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kStorageVolumeattributesclasses[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"DriverName", "string", "", 0, Text<kDriverName>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kStorageVolumeattachments[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Attacher", "string", "name", 0, Text<kSpecAttacher>},
    {"PV", "string", "", 0, Text<kSpecSourcePersistentVolumeName>},
    {"Node", "string", "", 0, Text<kSpecNodeName>},
    {"Attached", "boolean", "", 0, Flag<kStatusAttached>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kStorageCsinodes[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Drivers", "integer", "", 0, Count<kSpecDrivers>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kStorageCsidrivers[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"AttachRequired", "boolean", "", 0, Flag<kSpecAttachRequired>},
    {"PodInfoOnMount", "boolean", "", 0, Flag<kSpecPodInfoOnMount>},
    {"StorageCapacity", "boolean", "", 0, Flag<kSpecStorageCapacity>},
    {"TokenRequests", "string", "", 0, CsiTokens},
    {"RequiresRepublish", "boolean", "", 0, Flag<kSpecRequiresRepublish>},
    {"Modes", "string", "", 0, CsiModes},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kSchedulingPriorityclasses[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Value", "integer", "", 0, Number<kValue>},
    {"Global-Default", "boolean", "", 0, Flag<kGlobalDefault>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
    {"PreemptionPolicy", "string", "", 0, Text<kPreemptionPolicy>},
};
constexpr Column kNodeRuntimeclasses[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Handler", "string", "", 0, Text<kHandler>},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kSextantGpupools[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Model", "string", "", 0, Text<kSpecModel>},
    {"Count", "integer", "", 0, Number<kSpecCount>},
    {"Allocation", "string", "", 0, Text<kSpecAllocation>},
    {"Ready", "string", "", 0, PoolReady},
    {"Reason", "string", "", 0, PoolReason},
    {"Nodes", "string", "", 0, PoolNodes},
    {"Age", "string", "", 0, Age<kMetadataCreationTimestamp>},
};
constexpr Column kPlain[] = {
    {"Name", "string", "name", 0, Text<kMetadataName>},
    {"Created At", "date", "", 0, Text<kMetadataCreationTimestamp>},
};

constexpr std::array<TableKind, 35> kTables = {{
    {"", "pods", kCorePods, PodConditions},
    {"", "nodes", kCoreNodes},
    {"", "podtemplates", kCorePodtemplates},
    {"", "replicationcontrollers", kReplicaSets},
    {"", "services", kCoreServices},
    {"", "endpoints", kCoreEndpoints},
    {"", "events", kEvents},
    {"events.k8s.io", "events", kEvents},
    {"", "namespaces", kCoreNamespaces},
    {"", "secrets", kCoreSecrets},
    {"", "serviceaccounts", kCoreServiceaccounts},
    {"", "configmaps", kCoreConfigmaps},
    {"", "persistentvolumes", kCorePersistentvolumes},
    {"", "persistentvolumeclaims", kCorePersistentvolumeclaims},
    {"", "resourcequotas", kCoreResourcequotas},
    {"apps", "deployments", kAppsDeployments},
    {"apps", "replicasets", kReplicaSets},
    {"apps", "daemonsets", kAppsDaemonsets},
    {"apps", "statefulsets", kAppsStatefulsets},
    {"apps", "controllerrevisions", kAppsControllerrevisions},
    {"batch", "jobs", kBatchJobs},
    {"batch", "cronjobs", kBatchCronjobs},
    {"policy", "poddisruptionbudgets", kPolicyPoddisruptionbudgets},
    {"rbac.authorization.k8s.io", "rolebindings", kRoleBindings},
    {"rbac.authorization.k8s.io", "clusterrolebindings", kRoleBindings},
    {"coordination.k8s.io", "leases", kCoordinationLeases},
    {"discovery.k8s.io", "endpointslices", kDiscoveryEndpointslices},
    {"storage.k8s.io", "storageclasses", kStorageStorageclasses},
    {"storage.k8s.io", "volumeattributesclasses", kStorageVolumeattributesclasses},
    {"storage.k8s.io", "volumeattachments", kStorageVolumeattachments},
    {"storage.k8s.io", "csinodes", kStorageCsinodes},
    {"storage.k8s.io", "csidrivers", kStorageCsidrivers},
    {"scheduling.k8s.io", "priorityclasses", kSchedulingPriorityclasses},
    {"node.k8s.io", "runtimeclasses", kNodeRuntimeclasses},
    {"sextant.dev", "gpupools", kSextantGpupools},
}};
constexpr TableKind kPlainTable = {"", "", kPlain};

}  // namespace

const TableKind& TableFor(const api::Resource& resource) {
  for (std::span<const TableKind> tables :
       {std::span<const TableKind>(kTables), LaterGroupTables()}) {
    for (const TableKind& table : tables) {
      if (table.plural == resource.plural && table.group == resource.group_version.group) {
        return table;
      }
    }
  }
  return kPlainTable;
}

// apimachinery's util/duration.HumanDuration.
std::string HumanDuration(Duration d) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(d).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  const int64_t minutes = seconds / 60;
  if (minutes < 10) {
    const int64_t rest = seconds % 60;
    return rest == 0 ? fmt::format("{}m", minutes) : fmt::format("{}m{}s", minutes, rest);
  }
  if (minutes < 180) return fmt::format("{}m", minutes);
  const int64_t hours = minutes / 60;
  if (hours < 8) {
    const int64_t rest = minutes % 60;
    return rest == 0 ? fmt::format("{}h", hours) : fmt::format("{}h{}m", hours, rest);
  }
  if (hours < 48) return fmt::format("{}h", hours);
  const int64_t days = hours / 24;
  if (hours < 192) {
    const int64_t rest = hours % 24;
    return rest == 0 ? fmt::format("{}d", days) : fmt::format("{}d{}h", days, rest);
  }
  if (days < 730) return fmt::format("{}d", days);
  const int64_t years = days / 365;
  if (years < 8) {
    const int64_t rest = days % 365;
    return rest == 0 ? fmt::format("{}y", years) : fmt::format("{}y{}d", years, rest);
  }
  return fmt::format("{}y", years);
}

}  // namespace sextant::server
