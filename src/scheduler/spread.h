// spec.topologySpreadConstraints, read once for each Pod. Plain values; any thread.
//
// A constraint's matchLabelKeys need nothing here: the API server has merged them into its selector
// when the Pod was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/selector.h"

namespace sextant::scheduler {

struct SpreadConstraint {
  int64_t max_skew = 1;
  std::string key;
  api::LabelSelector selector = api::LabelSelector::Nothing();
  int64_t min_domains = 1;
  bool honor_affinity = true;
  bool honor_taints = false;
};

struct SpreadConstraints {
  std::vector<SpreadConstraint> required;   // DoNotSchedule
  std::vector<SpreadConstraint> preferred;  // ScheduleAnyway

  bool empty() const { return required.empty() && preferred.empty(); }
};

inline SpreadConstraints ReadSpreadConstraints(const api::Object& pod) {
  SpreadConstraints out;
  for (api::Value c : pod["spec"]["topologySpreadConstraints"].items()) {
    const bool required = c["whenUnsatisfiable"].AsString() == "DoNotSchedule";
    auto selector = api::LabelSelector::From(c["labelSelector"]);
    (required ? out.required : out.preferred)
        .push_back({.max_skew = c["maxSkew"].AsInt(),
                    .key = std::string(c["topologyKey"].AsString()),
                    .selector = selector ? *std::move(selector) : api::LabelSelector::Nothing(),
                    .min_domains = c["minDomains"].AsInt(1),
                    .honor_affinity = c["nodeAffinityPolicy"].AsString("Honor") == "Honor",
                    .honor_taints = c["nodeTaintsPolicy"].AsString("Ignore") == "Honor"});
  }
  return out;
}

}  // namespace sextant::scheduler
