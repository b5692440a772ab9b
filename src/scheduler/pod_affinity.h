// spec.affinity.podAffinity and podAntiAffinity, read once for each Pod.
// Source: k8s.io/kube-scheduler framework (AffinityTerm) at v1.36. Plain values; any thread.
//
// matchLabelKeys and mismatchLabelKeys need nothing here: the API server has merged them into the
// label selectors when the Pod was made.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/selector.h"

namespace sextant::scheduler {

struct AffinityTerm {
  std::set<std::string, std::less<>> namespaces;
  api::LabelSelector namespace_selector = api::LabelSelector::Nothing();
  api::LabelSelector selector = api::LabelSelector::Nothing();
  std::string topology_key;
  int64_t weight = 0;  // of a preferred term

  // By their labels, and not all.
  bool selects_namespaces() const {
    return !namespace_selector.IsNothing() && !namespace_selector.Empty();
  }
  // A Pod of namespace `ns`, whose own labels are `namespace_labels`.
  bool Matches(std::string_view ns, api::Value namespace_labels, api::Value pod_labels) const;
};

struct AffinityTerms {
  std::vector<AffinityTerm> required;
  std::vector<AffinityTerm> required_anti;
  std::vector<AffinityTerm> preferred;
  std::vector<AffinityTerm> preferred_anti;

  bool selects_namespaces() const {
    for (const auto* list : {&required, &required_anti, &preferred, &preferred_anti})
      for (const AffinityTerm& term : *list)
        if (term.selects_namespaces()) return true;
    return false;
  }
  bool empty() const {
    return required.empty() && required_anti.empty() && preferred.empty() && preferred_anti.empty();
  }
};
AffinityTerms ReadAffinityTerms(const api::Object& pod);

}  // namespace sextant::scheduler
