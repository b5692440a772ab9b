// The walk: the six layers of a cluster, bottom up, as far as the Kubernetes API shows them. It
// stops at the lowest layer that fails; what stands above is skipped and says what blocks it.
//
// Without `probe` nothing is executed in the cluster. With it the capability Pod runs once, asks
// for one GPU, and is removed afterwards. Blocking; the caller's thread, never a loop. Check ids:
// reference/gpu-faults.md 3.
#pragma once

#include <functional>
#include <string>

#include "base/random.h"
#include "client/blocking.h"
#include "preflight/evidence.h"

namespace sextant::preflight {

struct WalkOptions {
  bool probe = false;
  std::string ns = "default";
  std::string context;
  Duration probe_limit = std::chrono::seconds(60);
  std::function<void(Duration)> sleep;  // between looks at the Pod
};

Report Walk(client::Client& client, const Clock& clock, Random& random, const WalkOptions& options);

}  // namespace sextant::preflight
