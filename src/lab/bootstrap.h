// What a new cluster holds before anybody asks: namespaces, default roles and bindings, priority
// classes, the lab's pools and the device plugin's DaemonSet. Made through the API as any client
// would; what is there already is left alone.
#pragma once

#include <functional>
#include <vector>

#include "client/client.h"
#include "lab/config.h"

namespace sextant::lab {

// What Kubernetes' own parts put back at every start: namespaces, default roles, priority classes.
std::vector<api::Object> SystemObjects();
// What the lab brings along once in its life: whoever deletes it wants it gone.
std::vector<api::Object> FirstObjects(const LabConfig& config);

// Creates them one after another with `client` (system:masters). The first error that is not
// AlreadyExists ends it. `done` runs on client.executor().
void Bootstrap(client::Client& client, std::vector<api::Object> objects,
               std::move_only_function<void(Status)> done);

}  // namespace sextant::lab
