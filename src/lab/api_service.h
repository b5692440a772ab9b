// The Service `kubernetes` of the namespace `default`, by which what runs in the cluster finds its
// API server, and the Endpoints and EndpointSlice behind it.
// Source: k8s.io/kubernetes v1.36.3 pkg/controlplane/controller/kubernetesservice and reconcilers.
#pragma once

#include <functional>
#include <string>

#include "client/client.h"
#include "net/io.h"

namespace sextant::lab {

// Where the API server is as seen from the cluster. Endpoints may not be loopback addresses: a lab
// that listens on one, or on all, has the address of its first node.
net::Endpoint ApiServerEndpoint(const net::Endpoint& listens);

// Makes the three, or corrects where they lead to; the Service itself, once there, is left alone.
// The first error ends it. `done` runs on client.executor().
void PublishApiServer(client::Client& client, const net::Endpoint& at,
                      std::move_only_function<void(Status)> done);

}  // namespace sextant::lab
