// The rules of single kinds, as rules.cc's table names them. One group of functions per source
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/rules_kit.h"

namespace sextant::api {

// --- Pods: rules_pod_defaults.cc ---------------------------------------------------------------
void DefaultPod(Mut pod);
// The defaults of a Pod template: those of a Pod but for what its spec gets from the Pod itself.
void DefaultPodTemplate(Mut template_);
void PreparePod(Mut pod, Value old);
void ValidatePod(Value pod, FieldErrors& errors);                   // rules_pod_validate.cc
void ValidatePodCreate(Value pod, FieldErrors& errors);             // all of it, for a new one
void ValidatePodUpdate(Value pod, Value old, FieldErrors& errors);  // rules_pod_update.cc
void ValidatePodStatus(Value pod, Value old, FieldErrors& errors);
void PrepareEphemeralContainers(Mut pod, Value old);  // rules_pod_subresources.cc
void ValidateEphemeralContainersUpdate(Value pod, Value old, FieldErrors& errors);
void PrepareResize(Mut pod, Value old);
void ValidateResize(Value pod, Value old, FieldErrors& errors);
int64_t PodGrace(Value pod, std::optional<int64_t> asked);
// BestEffort, Burstable or Guaranteed, from requests and limits.
std::string_view QosClassOf(Value spec);

// --- defaults of the other kinds: rules_defaults.cc
// ------------------------------------------------
void DefaultSecret(Mut o);
void DefaultNamespace(Mut o);
void DefaultNode(Mut o);
void DefaultService(Mut o);
void DefaultEndpoints(Mut o);
void DefaultEndpointSlice(Mut o);
void DefaultLimitRange(Mut o);
void DefaultPersistentVolume(Mut o);
void DefaultPersistentVolumeClaim(Mut o);
void DefaultReplicationController(Mut o);
void DefaultPodTemplateObject(Mut o);
void DefaultDeployment(Mut o);
void DefaultReplicaSet(Mut o);
void DefaultDaemonSet(Mut o);
void DefaultStatefulSet(Mut o);
void DefaultJob(Mut o);
void DefaultCronJob(Mut o);
void DefaultRoleBinding(Mut o);
void DefaultPriorityClass(Mut o);
void DefaultStorageClass(Mut o);
void DefaultCsiDriver(Mut o);
void DefaultNetworkPolicy(Mut o);
void DefaultIngressClass(Mut o);
void DefaultHorizontalPodAutoscaler(Mut o);
void DefaultAutoscalerMetrics(Mut spec);  // of autoscaling/v2
void DefaultWebhooks(Mut o);
void DefaultAdmissionPolicy(Mut o);
void DefaultAdmissionPolicyBinding(Mut o);
void DefaultFlowSchema(Mut o);
void DefaultPriorityLevel(Mut o);
void DefaultResourceClaim(Mut o);
void DefaultResourceClaimTemplate(Mut o);
void DefaultGpuPool(Mut o);

// --- core kinds: rules_core.cc
// --------------------------------------------------------------------
void ValidateConfigMap(Value o, FieldErrors& errors);
void ValidateConfigMapUpdate(Value o, Value old, FieldErrors& errors);
void ValidateSecret(Value o, FieldErrors& errors);
void ValidateSecretUpdate(Value o, Value old, FieldErrors& errors);
void ValidateNamespace(Value o, FieldErrors& errors);
void ValidateNamespaceFinalize(Value o, Value old, FieldErrors& errors);
void ValidateNamespaceStatus(Value o, Value old, FieldErrors& errors);
void ValidateNodeCreate(Value o, FieldErrors& errors);
void ValidateNodeUpdate(Value o, Value old, FieldErrors& errors);

// --- workloads: rules_apps.cc
// ----------------------------------------------------------------------
void ValidateDeployment(Value o, FieldErrors& errors);
void ValidateReplicaSet(Value o, FieldErrors& errors);
void ValidateSelectorUnchanged(Value o, Value old, FieldErrors& errors);
void ValidateDeploymentStatus(Value o, Value old, FieldErrors& errors);
void ValidateReplicaSetStatus(Value o, Value old, FieldErrors& errors);
void ValidateDaemonSet(Value o, FieldErrors& errors);
void ValidateDaemonSetStatus(Value o, Value old, FieldErrors& errors);
void ValidateStatefulSetCreate(Value o, FieldErrors& errors);
void ValidateStatefulSetUpdate(Value o, Value old, FieldErrors& errors);
void ValidateStatefulSetStatus(Value o, Value old, FieldErrors& errors);
void ValidateReplicationController(Value o, FieldErrors& errors);
void ValidatePodTemplateObject(Value o, FieldErrors& errors);
void ValidateRevision(Value o, FieldErrors& errors);
void ValidateRevisionCreate(Value o, FieldErrors& errors);
void ValidateRevisionUpdate(Value o, Value old, FieldErrors& errors);

// --- Jobs: rules_jobs.cc, rules_job_status.cc, rules_cronjobs.cc
// --------------------------------------
void ValidateJob(Value o, FieldErrors& errors);
void ValidateJobUpdate(Value o, Value old, FieldErrors& errors);
void ValidateJobStatus(Value o, Value old, FieldErrors& errors);
// A Job's spec without what its selector asks for: a template's.
void ValidateJobSpecAlone(Value spec, const At& at, FieldErrors& errors);
// "" or what is wrong with "1,3-5" below `completions`, or with two such lists together.
std::string IndexesError(std::string_view text, int64_t completions);
std::string IndexesOverlap(std::string_view completed, std::string_view failed,
                           int64_t completions);
void ValidateCronJobCreate(Value o, FieldErrors& errors);
void ValidateCronJobUpdate(Value o, Value old, FieldErrors& errors);

// --- rules_rbac.cc
// ------------------------------------------------------------------------------------
void ValidateRole(Value o, FieldErrors& errors);
void ValidateClusterRole(Value o, FieldErrors& errors);
void ValidateRoleBinding(Value o, FieldErrors& errors);
void ValidateClusterRoleBinding(Value o, FieldErrors& errors);
void ValidateRoleRefUnchanged(Value o, Value old, FieldErrors& errors);

// --- rules_policy.cc
// ----------------------------------------------------------------------------------
void ValidateLimitRange(Value o, FieldErrors& errors);
void ValidateResourceQuota(Value o, FieldErrors& errors);
void ValidateResourceQuotaUpdate(Value o, Value old, FieldErrors& errors);
void ValidateResourceQuotaStatus(Value o, Value old, FieldErrors& errors);
void ValidateDisruptionBudget(Value o, FieldErrors& errors);
void ValidateDisruptionBudgetStatus(Value o, Value old, FieldErrors& errors);
void ValidatePriorityClass(Value o, FieldErrors& errors);
void ValidatePriorityClassUpdate(Value o, Value old, FieldErrors& errors);

// --- rules_service.cc
// ---------------------------------------------------------------------------------
void ValidateService(Value o, FieldErrors& errors);
void ValidateServiceUpdate(Value o, Value old, FieldErrors& errors);
void ValidateEndpointsCreate(Value o, FieldErrors& errors);
void ValidateEndpointsUpdate(Value o, Value old, FieldErrors& errors);
void ValidateEndpointSliceCreate(Value o, FieldErrors& errors);
void ValidateEndpointSliceUpdate(Value o, Value old, FieldErrors& errors);

// --- rules_storage.cc
// ---------------------------------------------------------------------------------
void ValidateClaim(Value o, FieldErrors& errors);
void ValidateClaimUpdate(Value o, Value old, FieldErrors& errors);
void ValidateVolume(Value o, FieldErrors& errors);
void ValidateVolumeUpdate(Value o, Value old, FieldErrors& errors);
void ValidateStorageClass(Value o, FieldErrors& errors);
void ValidateStorageClassUpdate(Value o, Value old, FieldErrors& errors);
void ValidateCsiDriver(Value o, FieldErrors& errors);
void ValidateCsiNode(Value o, FieldErrors& errors);
void ValidateAttachment(Value o, FieldErrors& errors);
void ValidateAttachmentUpdate(Value o, Value old, FieldErrors& errors);

// --- rules_small.cc
// -----------------------------------------------------------------------------------
void ValidateEvent(Value o, FieldErrors& errors);
void ValidateEventCreate(Value o, FieldErrors& errors);
void ValidateEventUpdate(Value o, Value old, FieldErrors& errors);
void ValidateLease(Value o, FieldErrors& errors);
void ValidateRuntimeClass(Value o, FieldErrors& errors);
void ValidateRuntimeClassUpdate(Value o, Value old, FieldErrors& errors);
void ValidateGpuPool(Value o, FieldErrors& errors);

// --- rules_warnings.cc
// --------------------------------------------------------------------------------
using Warnings = std::vector<std::string>;
void WarnOfPod(Value o, Value old, Warnings& out);
void WarnOfTemplate(Value o, Value old, Warnings& out);  // spec.template
void WarnOfJob(Value o, Value old, Warnings& out);
void WarnOfCronJob(Value o, Value old, Warnings& out);
void WarnOfNode(Value o, Value old, Warnings& out);
void WarnOfService(Value o, Value old, Warnings& out);
void WarnOfCsiDriver(Value o, Value old, Warnings& out);
void WarnOfSecret(Value o, Value old, Warnings& out);
void WarnOfServiceAccount(Value o, Value old, Warnings& out);

// --- rules_networking.cc
// ------------------------------------------------------------------------------
void ValidateNetworkPolicyCreate(Value o, FieldErrors& errors);
void ValidateNetworkPolicyUpdate(Value o, Value old, FieldErrors& errors);
void ValidateIngressCreate(Value o, FieldErrors& errors);
void ValidateIngressUpdate(Value o, Value old, FieldErrors& errors);
void ValidateIngressStatus(Value o, Value old, FieldErrors& errors);
void WarnOfIngress(Value o, Value old, Warnings& out);
void ValidateIngressClass(Value o, FieldErrors& errors);
void ValidateIngressClassUpdate(Value o, Value old, FieldErrors& errors);
Complaints NameIsIp(std::string_view name, bool prefix);
void ValidateIpAddressCreate(Value o, FieldErrors& errors);
void ValidateIpAddressUpdate(Value o, Value old, FieldErrors& errors);
void ValidateServiceCidrCreate(Value o, FieldErrors& errors);
void ValidateServiceCidrUpdate(Value o, Value old, FieldErrors& errors);

// --- rules_autoscaling.cc
// -----------------------------------------------------------------------------
void ValidateAutoscalerCreate(Value o, FieldErrors& errors);
void ValidateAutoscalerUpdate(Value o, Value old, FieldErrors& errors);
void ValidateAutoscalerStatus(Value o, Value old, FieldErrors& errors);

// --- rules_webhooks.cc
// --------------------------------------------------------------------------------
// A webhook's clientConfig, also that of a CRD's conversion.
void ValidateWebhookClient(Value client, const At& at, FieldErrors& errors);
void ValidateWebhooksCreate(Value o, FieldErrors& errors);
void ValidateWebhooksUpdate(Value o, Value old, FieldErrors& errors);
void ValidateValidatingPolicy(Value o, FieldErrors& errors);
void ValidateMutatingPolicy(Value o, FieldErrors& errors);
void ValidateValidatingBinding(Value o, FieldErrors& errors);
void ValidateMutatingBinding(Value o, FieldErrors& errors);

// --- rules_certificates.cc
// ----------------------------------------------------------------------------
void ValidateSigningRequest(Value o, FieldErrors& errors);
void PrepareSigningRequest(Mut o, Value old);

// --- rules_devices.cc
// ---------------------------------------------------------------------------------
void ValidateResourceClaimCreate(Value o, FieldErrors& errors);
void ValidateResourceClaimUpdate(Value o, Value old, FieldErrors& errors);
void ValidateResourceClaimStatus(Value o, Value old, FieldErrors& errors);
void ValidateClaimTemplateCreate(Value o, FieldErrors& errors);
void ValidateClaimTemplateUpdate(Value o, Value old, FieldErrors& errors);
void ValidateDeviceClass(Value o, FieldErrors& errors);
void ValidateResourceSlice(Value o, FieldErrors& errors);
void ValidateResourceSliceUpdate(Value o, Value old, FieldErrors& errors);

// --- what strategies do on the way in: rules_prepare.cc ------------------------------------------
void PrepareNode(Mut o, Value old);
void PrepareNamespace(Mut o, Value old);
bool NamespaceHeld(Value o);
void NamespaceOnDelete(Mut o);
void PrepareJob(Mut o, Value old);
void PrepareDaemonSet(Mut o, Value old);
void PrepareService(Mut o, Value old);
void PrepareSecret(Mut o, Value old);
void PreparePersistentVolume(Mut o, Value old);
void PreparePersistentVolumeClaim(Mut o, Value old);

}  // namespace sextant::api
