// Subresources and virtual resources that are no view of one stored object: scale, binding,
// eviction, ServiceAccount tokens, namespace finalize, reviews of access and of tokens.
// A table by subresource name and kind; see the .cc. Threads: workers.
#pragma once

#include "server/authenticator.h"
#include "server/pipeline.h"

namespace sextant::server {

class Subresources {
 public:
  Subresources(Pipeline& pipeline, const Authenticator& authenticator)
      : pipeline_(pipeline), authenticator_(authenticator) {}

  // True if `op` is one of these.
  static bool Serves(const Operation& op);
  // True if `op` is one of these: `done` has been or will be called. Authorizes by itself.
  bool Execute(Operation& op, Respond& done);

 private:
  Pipeline& pipeline_;
  const Authenticator& authenticator_;
};

}  // namespace sextant::server
