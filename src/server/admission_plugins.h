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

// DefaultStorageClass and StorageObjectInUseProtection: claims without a class get the default one,
// claims and volumes get their finalizers. Source: plugin/pkg/admission/storage.
std::unique_ptr<AdmissionPlugin> MakeStorageAdmission();

}  // namespace sextant::server
