// The table of rules: one row for each kind, by group and plural.
//
// Facts: pkg/registry/*/*/strategy.go (AllowCreateOnUpdate, AllowUnconditionalUpdate, Generation)
// and storage/storage.go (ReturnDeletedObject).
#include "api/rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/custom_kind.h"
#include "api/names.h"
#include "api/rules_crd.h"
#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

Complaints PathSegment(std::string_view name, bool) { return IsPathSegmentName(name); }

struct Row {
  std::string_view group;
  std::string_view plural;
  Rules rules;
};

constexpr std::string_view kApps = "apps";
constexpr std::string_view kBatch = "batch";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kStorage = "storage.k8s.io";
constexpr std::string_view kNetworking = "networking.k8s.io";
constexpr std::string_view kScheduling = "scheduling.k8s.io";
constexpr std::string_view kAdmission = "admissionregistration.k8s.io";
constexpr std::string_view kResource = "resource.k8s.io";
constexpr std::string_view kFlow = "flowcontrol.apiserver.k8s.io";

constexpr SubresourceRules kNamespaceSubresources[] = {
    {.name = "finalize", .validate = ValidateNamespaceFinalize}};
constexpr SubresourceRules kPodSubresources[] = {
    {"ephemeralcontainers", PrepareEphemeralContainers, ValidateEphemeralContainersUpdate},
    {"resize", PrepareResize, ValidateResize}};

// clang-format off
const Row kRows[] = {
  {"", "pods", {.set_defaults = DefaultPod, .prepare = PreparePod, .validate = ValidatePod,
      .validate_update = ValidatePodUpdate, .validate_status = ValidatePodStatus,
      .validate_create = ValidatePodCreate, .warnings = WarnOfPod,
      .subresources = kPodSubresources, .has_generation = true,
      .returns_deleted = true, .grace_s = PodGrace}},
  {"", "namespaces", {.set_defaults = DefaultNamespace, .prepare = PrepareNamespace,
      .validate = ValidateNamespace, .validate_status = ValidateNamespaceStatus,
      .subresources = kNamespaceSubresources, .validate_name = NameIsDnsLabel,
      .returns_deleted = true, .on_delete = NamespaceOnDelete, .held = NamespaceHeld}},
  {"", "nodes", {.set_defaults = DefaultNode, .prepare = PrepareNode,
      .validate_update = ValidateNodeUpdate,
      .validate_status = ValidateNodeUpdate, .validate_create = ValidateNodeCreate,
      .warnings = WarnOfNode, .status_on_create = true}},
  {"", "configmaps", {.validate = ValidateConfigMap, .validate_update = ValidateConfigMapUpdate}},
  {"", "secrets", {.set_defaults = DefaultSecret, .prepare = PrepareSecret,
      .validate = ValidateSecret, .validate_update = ValidateSecretUpdate,
      .warnings = WarnOfSecret}},
  {"", "services", {.set_defaults = DefaultService, .prepare = PrepareService,
      .validate = ValidateService,
      .validate_update = ValidateServiceUpdate, .warnings = WarnOfService,
      .validate_name = NameIsDnsLabel,
      .allow_create_on_update = true, .returns_deleted = true}},
  {"", "serviceaccounts", {.warnings = WarnOfServiceAccount, .returns_deleted = true}},
  {"", "endpoints", {.set_defaults = DefaultEndpoints, .validate_update = ValidateEndpointsUpdate,
      .validate_create = ValidateEndpointsCreate,
      .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
      .allow_create_on_update = true}},
  {"", "events", {.validate = ValidateEvent, .validate_create = ValidateEventCreate,
      .allow_create_on_update = true}},
  {"", "limitranges", {.set_defaults = DefaultLimitRange, .validate = ValidateLimitRange,
      .allow_create_on_update = true}},
  {"", "resourcequotas", {.validate = ValidateResourceQuota,
      .validate_update = ValidateResourceQuotaUpdate,
      .validate_status = ValidateResourceQuotaStatus, .returns_deleted = true}},
  {"", "persistentvolumes", {.set_defaults = DefaultPersistentVolume,
      .prepare = PreparePersistentVolume, .validate = ValidateVolume,
      .validate_update = ValidateVolumeUpdate, .returns_deleted = true}},
  {"", "persistentvolumeclaims", {.set_defaults = DefaultPersistentVolumeClaim,
      .prepare = PreparePersistentVolumeClaim, .validate = ValidateClaim,
      .validate_update = ValidateClaimUpdate, .returns_deleted = true}},
  {"", "podtemplates", {.set_defaults = DefaultPodTemplateObject,
      .validate = ValidatePodTemplateObject, .has_generation = true,
      .returns_deleted = true}},
  {"", "replicationcontrollers", {.set_defaults = DefaultReplicationController,
      .validate = ValidateReplicationController, .validate_status = ValidateReplicaSetStatus,
      .warnings = WarnOfTemplate, .has_generation = true}},

  {kApps, "deployments", {.set_defaults = DefaultDeployment, .validate = ValidateDeployment,
      .validate_update = ValidateSelectorUnchanged, .validate_status = ValidateDeploymentStatus,
      .warnings = WarnOfTemplate, .has_generation = true}},
  {kApps, "replicasets", {.set_defaults = DefaultReplicaSet, .validate = ValidateReplicaSet,
      .validate_update = ValidateSelectorUnchanged, .validate_status = ValidateReplicaSetStatus,
      .has_generation = true}},
  {kApps, "daemonsets", {.set_defaults = DefaultDaemonSet, .prepare = PrepareDaemonSet,
      .validate = ValidateDaemonSet,
      .validate_update = ValidateSelectorUnchanged, .validate_status = ValidateDaemonSetStatus,
      .warnings = WarnOfTemplate,
      .field_annotation = "deprecated.daemonset.template.generation", .has_generation = true}},
  {kApps, "statefulsets", {.set_defaults = DefaultStatefulSet,
      .validate_update = ValidateStatefulSetUpdate, .validate_status = ValidateStatefulSetStatus,
      .validate_create = ValidateStatefulSetCreate, .warnings = WarnOfTemplate,
      .has_generation = true}},
  {kApps, "controllerrevisions", {.validate = ValidateRevision,
      .validate_update = ValidateRevisionUpdate, .validate_create = ValidateRevisionCreate}},

  {kBatch, "jobs", {.set_defaults = DefaultJob, .prepare = PrepareJob,
      .validate = ValidateJob,
      .validate_update = ValidateJobUpdate, .validate_status = ValidateJobStatus,
      .warnings = WarnOfJob, .has_generation = true,
      .orphans_by_default = true,
      .orphan_warning = "child pods are preserved by default when jobs are deleted; set "
          "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
          "suppress this warning"}},
  {kBatch, "cronjobs", {.set_defaults = DefaultCronJob,
      .validate_update = ValidateCronJobUpdate, .validate_create = ValidateCronJobCreate,
      .warnings = WarnOfCronJob, .has_generation = true}},

  {kRbac, "roles", {.validate = ValidateRole, .validate_name = PathSegment,
      .allow_create_on_update = true}},
  {kRbac, "clusterroles", {.validate = ValidateClusterRole,
      .validate_name = PathSegment, .allow_create_on_update = true}},
  {kRbac, "rolebindings", {.set_defaults = DefaultRoleBinding,
      .validate = ValidateRoleBinding, .validate_update = ValidateRoleRefUnchanged,
      .validate_name = PathSegment,
      .allow_create_on_update = true}},
  {kRbac, "clusterrolebindings", {.set_defaults = DefaultRoleBinding,
      .validate = ValidateClusterRoleBinding, .validate_update = ValidateRoleRefUnchanged,
      .validate_name = PathSegment, .allow_create_on_update = true}},

  {"events.k8s.io", "events", {.validate = ValidateEvent,
      .validate_update = ValidateEventUpdate, .validate_create = ValidateEventCreate,
      .allow_create_on_update = true}},
  {"coordination.k8s.io", "leases", {.validate = ValidateLease, .allow_create_on_update = true,
      .allow_unconditional_update = false}},
  {"discovery.k8s.io", "endpointslices", {.set_defaults = DefaultEndpointSlice,
      .validate_update = ValidateEndpointSliceUpdate,
      .validate_create = ValidateEndpointSliceCreate,
      .has_generation = true}},
  {"node.k8s.io", "runtimeclasses", {.validate = ValidateRuntimeClass,
      .validate_update = ValidateRuntimeClassUpdate, .allow_create_on_update = true,
      .allow_unconditional_update = false}},
  {"policy", "poddisruptionbudgets", {.validate = ValidateDisruptionBudget,
      .validate_status = ValidateDisruptionBudgetStatus, .has_generation = true,
      .allow_unconditional_update = false}},
  {"autoscaling", "horizontalpodautoscalers", {.set_defaults = DefaultHorizontalPodAutoscaler,
      .validate_update = ValidateAutoscalerUpdate, .validate_status = ValidateAutoscalerStatus,
      .validate_create = ValidateAutoscalerCreate}},
  {kScheduling, "priorityclasses", {.set_defaults = DefaultPriorityClass,
      .validate = ValidatePriorityClass, .validate_update = ValidatePriorityClassUpdate,
      .has_generation = true}},
  {kScheduling, "workloads", {}},
  {kScheduling, "podgroups", {}},

  {kStorage, "storageclasses", {.set_defaults = DefaultStorageClass,
      .validate = ValidateStorageClass, .validate_update = ValidateStorageClassUpdate,
      .returns_deleted = true}},
  {kStorage, "csidrivers", {.set_defaults = DefaultCsiDriver, .validate = ValidateCsiDriver,
      .warnings = WarnOfCsiDriver, .allow_unconditional_update = false, .returns_deleted = true}},
  {kStorage, "csinodes", {.validate = ValidateCsiNode, .allow_unconditional_update = false,
      .returns_deleted = true}},
  {kStorage, "csistoragecapacities", {.allow_unconditional_update = false}},
  {kStorage, "volumeattachments", {.validate = ValidateAttachment,
      .validate_update = ValidateAttachmentUpdate, .allow_unconditional_update = false,
      .returns_deleted = true}},
  {kStorage, "volumeattributesclasses", {.returns_deleted = true}},

  {kNetworking, "ingresses", {.validate_update = ValidateIngressUpdate,
      .validate_status = ValidateIngressStatus, .validate_create = ValidateIngressCreate,
      .warnings = WarnOfIngress, .has_generation = true}},
  {kNetworking, "ingressclasses", {.set_defaults = DefaultIngressClass,
      .validate = ValidateIngressClass, .validate_update = ValidateIngressClassUpdate,
      .has_generation = true}},
  {kNetworking, "networkpolicies", {.set_defaults = DefaultNetworkPolicy,
      .validate_update = ValidateNetworkPolicyUpdate,
      .validate_create = ValidateNetworkPolicyCreate, .has_generation = true}},
  {kNetworking, "ipaddresses", {.validate_update = ValidateIpAddressUpdate,
      .validate_create = ValidateIpAddressCreate, .validate_name = NameIsIp}},
  {kNetworking, "servicecidrs", {.validate_update = ValidateServiceCidrUpdate,
      .validate_create = ValidateServiceCidrCreate}},

  {"apiextensions.k8s.io", "customresourcedefinitions", {.set_defaults = DefaultCrd,
      .prepare = PrepareCrd, .validate_update = ValidateCrdUpdate,
      .validate_status = ValidateCrdStatus, .validate_create = ValidateCrdCreate,
      .warnings = WarnOfCrd, .has_generation = true, .allow_unconditional_update = false,
      .on_delete = CrdOnDelete, .held = CrdHeld}},

  {"certificates.k8s.io", "certificatesigningrequests", {
      .prepare = PrepareSigningRequest, .validate = ValidateSigningRequest,
      .validate_name = PathSegment}},

  {kAdmission, "mutatingwebhookconfigurations", {.set_defaults = DefaultWebhooks,
      .validate_update = ValidateWebhooksUpdate, .validate_create = ValidateWebhooksCreate,
      .has_generation = true, .allow_unconditional_update = false}},
  {kAdmission, "validatingwebhookconfigurations", {.set_defaults = DefaultWebhooks,
      .validate_update = ValidateWebhooksUpdate, .validate_create = ValidateWebhooksCreate,
      .has_generation = true, .allow_unconditional_update = false}},
  {kAdmission, "validatingadmissionpolicies", {.set_defaults = DefaultAdmissionPolicy,
      .validate = ValidateValidatingPolicy, .has_generation = true,
      .allow_unconditional_update = false}},
  {kAdmission, "mutatingadmissionpolicies", {.set_defaults = DefaultAdmissionPolicy,
      .validate = ValidateMutatingPolicy, .has_generation = true,
      .allow_unconditional_update = false}},
  {kAdmission, "validatingadmissionpolicybindings", {
      .set_defaults = DefaultAdmissionPolicyBinding, .validate = ValidateValidatingBinding,
      .has_generation = true, .allow_unconditional_update = false}},
  {kAdmission, "mutatingadmissionpolicybindings", {
      .set_defaults = DefaultAdmissionPolicyBinding, .validate = ValidateMutatingBinding,
      .has_generation = true, .allow_unconditional_update = false}},

  {kFlow, "flowschemas", {.set_defaults = DefaultFlowSchema, .has_generation = true}},
  {kFlow, "prioritylevelconfigurations", {.set_defaults = DefaultPriorityLevel,
      .has_generation = true}},

  {kResource, "deviceclasses", {.validate = ValidateDeviceClass,
      .has_generation = true, .returns_deleted = true}},
  {kResource, "devicetaintrules", {.has_generation = true, .returns_deleted = true}},
  {kResource, "resourceclaims", {.set_defaults = DefaultResourceClaim,
      .validate_update = ValidateResourceClaimUpdate,
      .validate_status = ValidateResourceClaimStatus,
      .validate_create = ValidateResourceClaimCreate, .returns_deleted = true}},
  {kResource, "resourceclaimtemplates", {.set_defaults = DefaultResourceClaimTemplate,
      .validate_update = ValidateClaimTemplateUpdate,
      .validate_create = ValidateClaimTemplateCreate, .returns_deleted = true}},
  {kResource, "resourceslices", {.validate = ValidateResourceSlice,
      .validate_update = ValidateResourceSliceUpdate, .has_generation = true,
      .returns_deleted = true}},
  {kResource, "resourcepoolstatusrequests", {.allow_unconditional_update = false,
      .returns_deleted = true}},

  {"sextant.dev", "gpupools", {.set_defaults = DefaultGpuPool, .validate = ValidateGpuPool,
      .has_generation = true}},
};
// clang-format on

using Key = std::pair<std::string_view, std::string_view>;
Key KeyOf(const Row* row) { return {row->plural, row->group}; }

// Pointers to the rows, by plural and group.
const std::array<const Row*, std::size(kRows)>& Index() {
  static const auto kIndex = [] {
    std::array<const Row*, std::size(kRows)> index{};
    for (size_t i = 0; i < index.size(); ++i) index[i] = &kRows[i];
    std::ranges::sort(index, {}, KeyOf);
    return index;
  }();
  return kIndex;
}

// Custom resources: like any other kind that has its own generation.
const Rules kCustom{.warnings = WarnOfCustom,
                    .has_generation = true,
                    .free_finalizers = true,
                    .allow_unconditional_update = false};
const Rules kNone;

}  // namespace

const Rules& RulesFor(const Resource& resource) {
  const Key key{resource.plural, resource.group_version.group};
  const auto& index = Index();
  const auto at = std::ranges::lower_bound(index, key, {}, KeyOf);
  if (at != index.end() && KeyOf(*at) == key) return (*at)->rules;
  return resource.message && resource.message->custom ? kCustom : kNone;
}

const SubresourceRules* FindSubresourceRules(const Rules& rules, std::string_view name) {
  const auto at = std::ranges::find(rules.subresources, name, &SubresourceRules::name);
  return at == rules.subresources.end() ? nullptr : &*at;
}

}  // namespace sextant::api
