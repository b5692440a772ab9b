// What a new cluster holds before anybody asks: namespaces, default roles and bindings, priority
// classes, the lab's pools and the device plugin's DaemonSet. Made through the API as any client
// would; what is there already is left alone, so it is run at every start.
#pragma once

#include <functional>
#include <vector>

#include "client/client.h"
#include "lab/config.h"

namespace sextant::lab {

// The objects, in the order in which they are made.
std::vector<api::Object> BootstrapObjects(const LabConfig& config);

// Creates them one after another with `client` (system:masters). The first error that is not
// AlreadyExists ends it. `done` runs on client.executor().
void Bootstrap(client::Client& client, std::vector<api::Object> objects,
               std::move_only_function<void(Status)> done);

}  // namespace sextant::lab
