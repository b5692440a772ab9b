// Whether a node takes a Pod: what the real kubelet checks again although the scheduler has.
// Pure. Source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm/admission/errors.go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/document.h"
#include "kubelet/device_manager.h"

namespace sextant::kubelet {

struct Refusal {
  std::string reason;   // "OutOfcpu", "NodeAffinity", "UnexpectedAdmissionError"
  std::string message;  // of the event; the status says "Pod was rejected: " before it
};

// `others`: the Pods that the node has admitted and that have not ended.
std::optional<Refusal> CheckFit(const api::Object& pod, const api::Object& node,
                                const std::vector<api::Object>& others,
                                const DeviceManager& devices);

// Of a resource's name: "nvidia.com/gpu", not "cpu" or "hugepages-2Mi".
bool IsExtended(std::string_view name);

Refusal AllocationFailed(const Error& error);

}  // namespace sextant::kubelet
