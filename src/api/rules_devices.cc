// Resource claims. Source: pkg/apis/resource/validation/validation.go.
#include <fmt/format.h>

#include "api/rules_kinds.h"

namespace sextant::api {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io/";  // before the version in apiVersion

void SpecUnchanged(Value o, Value old, std::string_view type, FieldErrors& errors) {
  if (Same(o["spec"], old["spec"])) return;
  const std::string_view version = o["apiVersion"].AsString().substr(kGroup.size());
  errors.InvalidRaw(
      "spec", InternalJson(o["spec"], fmt::format("io.k8s.api.resource.{}.{}", version, type)),
      std::string(kImmutable));
}

}  // namespace

void ValidateResourceClaimUpdate(Value o, Value old, FieldErrors& errors) {
  SpecUnchanged(o, old, "ResourceClaimSpec", errors);
}

void ValidateResourceClaimTemplateUpdate(Value o, Value old, FieldErrors& errors) {
  SpecUnchanged(o, old, "ResourceClaimTemplateSpec", errors);
}

}  // namespace sextant::api
