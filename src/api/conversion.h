// Conversion between the versions in which one stored kind is served. Most kinds have one version
// and pass through; Events are served as core/v1 and events.k8s.io/v1 and stored as core/v1.
// Source: k8s.io/kubernetes pkg/apis/events/v1/conversion.go. Pure; any thread.
#pragma once

#include "api/document.h"
#include "api/schema.h"

namespace sextant::api {

// From the form in which `served` speaks to the stored form, and back. The same object comes back
// where there is nothing to convert.
Object ToStored(Object object, const Resource& served);
Object FromStored(Object object, const Resource& served);

}  // namespace sextant::api
