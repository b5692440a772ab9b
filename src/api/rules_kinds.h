// The rules of single kinds, as rules.cc's table names them. One group of functions per source file.
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
void ValidatePod(Value pod, FieldErrors& errors);        // rules_pod_validate.cc
void ValidatePodCreate(Value pod, FieldErrors& errors);  // all of it, for a new one
void ValidatePodUpdate(Value pod, Value old, FieldErrors& errors);  // rules_pod_update.cc
void ValidatePodStatus(Value pod, Value old, FieldErrors& errors);
int64_t PodGrace(Value pod, std::optional<int64_t> asked);
// BestEffort, Burstable or Guaranteed, from requests and limits.
std::string_view QosClassOf(Value spec);

// --- defaults of the other kinds: rules_defaults.cc ------------------------------------------------
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
void DefaultWebhooks(Mut o);
void DefaultAdmissionPolicy(Mut o);
void DefaultAdmissionPolicyBinding(Mut o);
void DefaultFlowSchema(Mut o);
void DefaultPriorityLevel(Mut o);
void DefaultResourceClaim(Mut o);
void DefaultResourceClaimTemplate(Mut o);
void DefaultGpuPool(Mut o);

// --- what strategies do on the way in: rules_prepare.cc ------------------------------------------
void PrepareNamespace(Mut o, Value old);
bool NamespaceHeld(Value o);
void NamespaceOnDelete(Mut o);
void PrepareJob(Mut o, Value old);
void PrepareSecret(Mut o, Value old);
void PreparePersistentVolume(Mut o, Value old);
void PreparePersistentVolumeClaim(Mut o, Value old);

}  // namespace sextant::api
