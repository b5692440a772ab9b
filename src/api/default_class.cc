#include "api/default_class.h"

namespace sextant::api {

bool IsDefaultStorageClass(Value metadata) {
  const Value annotations = metadata["annotations"];
  return annotations["storageclass.kubernetes.io/is-default-class"].AsString() == "true" ||
         annotations["storageclass.beta.kubernetes.io/is-default-class"].AsString() == "true";
}

Object DefaultStorageClass(const std::vector<Object>& classes) {
  Object best;
  for (const Object& one : classes) {
    if (!IsDefaultStorageClass(one["metadata"])) continue;
    // Times are RFC 3339 in UTC: they compare as text.
    const std::string_view made = one["metadata"]["creationTimestamp"].AsString();
    const std::string_view best_made = best["metadata"]["creationTimestamp"].AsString();
    if (!best || made > best_made || (made == best_made && one.name() < best.name())) best = one;
  }
  return best;
}

}  // namespace sextant::api
