#include "api/custom_kind.h"
#include "api/json.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

// A CRD as JSON, "---", and an object of it: whatever the schema, an object that was admitted once
// is not changed by being admitted again, and being validated ends.
FUZZ_TARGET(custom_kind) {
  fuzz::Bytes bytes(input);
  const auto crd = ParseJson(bytes.Part());
  const auto object = ParseJson(bytes.Rest());
  if (!crd) return;
  const auto kind = CustomKind::Compile(*crd);
  if (!kind || !object) return;
  for (const CustomVersion* version : (*kind)->versions()) {
    std::vector<std::string> unknown;
    const Object once = AdmitCustom(*version, *object, &unknown);
    const Object twice = AdmitCustom(*version, once, nullptr);
    CHECK(ToJson(once.root()) == ToJson(twice.root()));
    FieldErrors errors;
    ValidateCustom(*version, once.root(), {}, errors);
  }
}

}  // namespace sextant::api
