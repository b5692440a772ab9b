// Claims, volumes and storage classes. Source: validation.go of core and storage.
#include <fmt/format.h>

#include <algorithm>

#include "api/rules_kinds.h"
#include "api/rules_pod.h"

namespace sextant::api {

void ValidateClaimSpec(Value spec, const At& at, FieldErrors& errors) {
  const Value modes = spec["accessModes"];
  if (modes.empty()) errors.Required(at / "accessModes", "at least 1 access mode is required");
  ValidateLabelSelector(spec["selector"], at / "selector", errors);
  bool once_pod = false;
  bool other = false;
  for (Value mode : modes.items()) {
    const std::string_view text = mode.AsString();
    static constexpr Words kModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                              "ReadWriteOncePod"};
    const bool known = std::ranges::find(kModes, text) != kModes.end();
    if (!known) NotSupported(at / "accessModes", text, kModes, errors);
    once_pod |= text == "ReadWriteOncePod";
    other |= known && text != "ReadWriteOncePod";
  }
  if (once_pod && other) {
    errors.Forbidden(at / "accessModes", "may not use ReadWriteOncePod with other access modes");
  }
  const Value storage = spec["resources"]["requests"]["storage"];
  const At resources = at / "resources";
  if (!storage) {
    errors.Required(resources.Key("", "storage"), "");
  } else {
    ValidatePositiveAmount(storage, resources.Key("", "storage"), errors);
  }
  const std::string_view storage_class = spec["storageClassName"].AsString();
  if (!storage_class.empty()) {
    Complain(NameIsDnsSubdomain(storage_class, false), storage_class, at / "storageClassName",
             errors);
  }
  OneOf(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
}

}  // namespace sextant::api
