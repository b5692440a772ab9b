// From what a kubelet knows of a Pod to the status that the API shows: phase, conditions, container
// statuses, addresses. Pure.
// Source: pkg/kubelet/kubelet_pods.go (getPhase, generateAPIPodStatus),
// pkg/kubelet/status/generate.go.
#pragma once

#include <string>
#include <string_view>

#include "api/document.h"
#include "kubelet/pod_model.h"

namespace sextant::kubelet {

std::string PodPhase(const PodRecord& record);

// The status as one map. `previous` is the status told before (times of unchanged conditions are
// kept); conditions that are not the kubelet's are left out, a strategic merge keeps them.
api::Object BuildPodStatus(const PodRecord& record, api::Value previous, Time now);

}  // namespace sextant::kubelet
