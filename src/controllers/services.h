// Where the Pods behind Services are: EndpointSlices, and the older Endpoints.
// Source: k8s.io/endpointslice at v0.36.3, k8s.io/kubernetes pkg/controller/endpoint at v1.36.3.
#pragma once

#include <memory>

#include "controllers/reconciler.h"

namespace sextant::controllers {

std::unique_ptr<Controller> MakeEndpointSliceController(Deps deps);
std::unique_ptr<Controller> MakeEndpointsController(Deps deps);

}  // namespace sextant::controllers
