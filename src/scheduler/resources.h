// Amounts of resources as the scheduler counts them: fixed fields for what every Pod has, a small
// sorted list for the rest. Units: CPU in millicores, everything else in whole units (bytes,
// cards). Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/document.h"

namespace sextant::scheduler {

// kube-scheduler's defaults for Pods that request nothing, used for scores only
// (pkg/scheduler/util/pod_resources.go).
inline constexpr std::string_view kDefaultCpu = "100m";
inline constexpr std::string_view kDefaultMemory = "200Mi";

struct Resources {
  int64_t milli_cpu = 0;
  int64_t memory = 0;
  int64_t ephemeral_storage = 0;
  int64_t pods = 0;
  std::vector<std::pair<std::string, int64_t>> scalars;  // extended, hugepages; sorted by name

  int64_t Scalar(std::string_view name) const;
  void SetScalar(std::string_view name, int64_t amount);
  void Add(const Resources& other);
  void Subtract(const Resources& other);
  bool operator==(const Resources&) const = default;
};

// A ResourceList ("cpu": "500m", ...). Quantities that do not parse count as 0: the API server has
// validated what it stored.
Resources ReadResources(api::Value list);

// What a Pod takes from a node (api::PodAmounts). `pods` is 1.
Resources PodRequests(api::Value pod);
// The same with the defaults above for containers that request nothing.
Resources NonZeroRequests(api::Value pod);

}  // namespace sextant::scheduler
