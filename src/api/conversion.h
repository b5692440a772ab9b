// Conversion between the versions in which one stored kind is served. Most kinds have one version
// and pass through; Events are served as core/v1 and events.k8s.io/v1 and stored as core/v1,
// HorizontalPodAutoscalers as autoscaling/v1 and v2 and stored as v2; custom resources change their
// apiVersion and what the other version's schema prunes.
// Source: k8s.io/kubernetes pkg/apis/events/v1/conversion.go,
// pkg/apis/autoscaling/v1/conversion.go. Pure; any thread.
#pragma once

#include <cstdint>

#include "api/document.h"
#include "api/schema.h"

namespace sextant::api {

// From the form in which `served` speaks to the stored form, and back. The same object comes back
// where there is nothing to convert.
Object ToStored(Object object, const Resource& served);
Object FromStored(Object object, const Resource& served);

// The version that an old one of the kind is read as, whose form is the same: policy/v1 for an
// Eviction of policy/v1beta1. Others are read as what they say.
std::string ReadAs(std::string_view api_version, std::string_view kind);

// A write of spec leaves status as it is, and the other way round: what `object` says of the kept
// one outside of its member (autoscaling/v1: in annotations) becomes what `old` says, nothing on
// create.
enum class Kept : uint8_t { kSpec, kStatus };
void KeepConverted(Mut object, Value old, const Resource& served, Kept kept);

// A HorizontalPodAutoscaler of autoscaling/v1 as of v2, and back. Empty if it is none of v1.
Object AutoscalerToStored(Value object);
Object AutoscalerFromStored(const Object& object);
void KeepAutoscaler(Mut object, Value old, Kept kept);

}  // namespace sextant::api
