// Node selectors and affinity terms, taints and tolerations: the matching rules of
// component-helpers/scheduling/corev1. Pure; any thread.
#pragma once

#include <string_view>

#include "api/document.h"

namespace sextant::scheduler {

// nodeSelectorTerms: any of them. An empty term matches nothing.
bool MatchesNodeSelector(api::Value node_selector, api::Value node);
bool MatchesNodeSelectorTerm(api::Value term, api::Value node);
// spec.nodeSelector and requiredDuringSchedulingIgnoredDuringExecution together.
bool MatchesRequiredNodeAffinity(api::Value pod, api::Value node);

bool Tolerates(api::Value toleration, api::Value taint);
// The first taint with one of the effects that nothing tolerates; absent if there is none.
api::Value FirstUntolerated(api::Value tolerations, api::Value taints, bool no_schedule,
                            bool no_execute);

}  // namespace sextant::scheduler
