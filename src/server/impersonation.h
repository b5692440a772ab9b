// Acting as somebody else: the Impersonate-* headers, and whether the asking user may.
// Two ways lead there. Constrained (KEP-5284): the verb impersonate-on:MODE:VERB on what is asked
// for, and impersonate:MODE on each thing that is impersonated. Legacy: the verb impersonate on
// each of them. The mode is chosen by the name: associated-node, arbitrary-node, serviceaccount or
// user-info; the first that allows it decides, and the first refusal is what a refused user hears.
// Source: k8s.io/apiserver pkg/endpoints/filters/impersonation at v0.36.3.
// Threads: any worker.
#pragma once

#include <optional>

#include "base/status.h"
#include "net/http.h"
#include "server/operation.h"
#include "server/pipeline.h"

namespace sextant::server {

// Who `asked` is to be done as; nothing if the request does not ask for that. `asked.user` is who
// asks, `asked.info` is known. 400 for headers without a user, 403 if it is not allowed.
Result<std::optional<User>> Impersonate(const net::Request& request, const Operation& asked,
                                        const Pipeline& pipeline);

}  // namespace sextant::server
