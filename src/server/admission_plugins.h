// Admission plugins that have a file of their own; DefaultAdmission puts the chain together.
#pragma once

#include <memory>

#include "server/admission.h"

namespace sextant::server {

// Gives Services their IP families, cluster IPs (10.96.0.0/16) and node ports (30000-32767), and
// refuses those that another Service has. Addresses of one's own choice are compared with what is
// visible: two that are asked for in the same millisecond may both be given.
// Source: pkg/registry/core/service/storage/alloc.go at v1.36.3.
std::unique_ptr<AdmissionPlugin> MakeServiceAddresses();

// Pods take overhead, node selector and tolerations of their runtime class, which must be there.
// Source: plugin/pkg/admission/runtimeclass.
std::unique_ptr<AdmissionPlugin> MakeRuntimeClassAdmission();

// Pods run as a ServiceAccount that is there, with its token and its pull secrets; an account may
// limit them to its own secrets. Source: plugin/pkg/admission/serviceaccount.
std::unique_ptr<AdmissionPlugin> MakeServiceAccountAdmission();

// Pods take the priority of their class; one class at most is the default one.
// Source: plugin/pkg/admission/priority.
std::unique_ptr<AdmissionPlugin> MakePriorityAdmission();

// Small things (admission_pods.cc): the first taint of Nodes, tolerations of lost nodes, labels of
// where a Pod runs, the room that a node has for a Pod that grows.
std::unique_ptr<AdmissionPlugin> MakeTaintNodesByCondition();
std::unique_ptr<AdmissionPlugin> MakeDefaultTolerationSeconds();
std::unique_ptr<AdmissionPlugin> MakePodTopologyLabels();
std::unique_ptr<AdmissionPlugin> MakePodResizeValidator();

// Claims get the default class, stay while they are in use, and grow where their class lets them.
void AddStorageAdmission(AdmissionChain& chain);
std::unique_ptr<AdmissionPlugin> MakeDefaultIngressClass();

// Who approves or signs a request for a certificate has a right on its signer.
void AddCertificateAdmission(AdmissionChain& chain);

// Containers take the defaults of the namespace's LimitRanges; Pods and claims of storage stay
// within them. Source: plugin/pkg/admission/limitranger.
std::unique_ptr<AdmissionPlugin> MakeLimitRanger();

// Writes that would take more than a ResourceQuota of the namespace allows are refused; what they
// take is entered in the quota's status together with them, so no two can take the same rest.
// Source: k8s.io/apiserver pkg/admission/plugin/resourcequota.
std::unique_ptr<AdmissionPlugin> MakeResourceQuotaAdmission();

// Kubelets may change what is theirs: their Node, its lease, slices and Pods, tokens of its Pods.
// Source: plugin/pkg/admission/noderestriction.
std::unique_ptr<AdmissionPlugin> MakeNodeRestriction();

// Pods stay within the Pod Security level of their namespace; what makes Pods is warned of.
// Source: k8s.io/pod-security-admission admission.
std::unique_ptr<AdmissionPlugin> MakePodSecurity();

// Nobody gives away rights that he does not hold: roles and their bindings.
// Source: pkg/registry/rbac (policybased storage), component-helpers/auth/rbac/validation.
std::unique_ptr<AdmissionPlugin> MakeRoleEscalationCheck();

}  // namespace sextant::server
