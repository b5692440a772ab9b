// The walk: the six layers of a cluster, bottom up, as far as the Kubernetes API shows them. It
// stops at the lowest layer that fails; what stands above is skipped and says what blocks it. A
// check passes only when what it is about was seen; what cannot be seen is `unsupported`, and so is
// what a command would have shown in a container that only pretends to run. Where the API server
// cannot be asked no layer is judged: the report has an error.
//
// Without `probe` nothing is executed in the cluster. With it the capability Pod runs once and asks
// for one GPU; after it has gone, a second one asks for all cards of that node that are free, to
// see that the first one's card is among them. Both are removed. Blocking; the caller's thread,
// never a loop.
#pragma once

#include <string>

#include "base/random.h"
#include "client/blocking.h"
#include "preflight/evidence.h"
#include "preflight/probe.h"

namespace sextant::preflight {

struct WalkOptions {
  bool probe = false;
  std::string ns = "default";
  std::string context;
  std::string server;  // its address, for a person
  ProbeLimits limits{.run = std::chrono::seconds(60),
                     .acknowledge = std::chrono::seconds(15),
                     .gone = std::chrono::seconds(20)};
  // Between looks at the Pod. Where it says that the walk is to end, what was made is removed
  // first.
  Prober::Sleep sleep;
};

Report Walk(client::Client& client, const Clock& clock, Random& random, const WalkOptions& options);

}  // namespace sextant::preflight
