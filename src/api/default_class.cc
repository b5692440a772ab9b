#include "api/default_class.h"

namespace sextant::api {

bool IsDefaultClass(Value metadata, std::span<const std::string_view> marks) {
  for (std::string_view mark : marks)
    if (metadata["annotations"][mark].AsString() == "true") return true;
  return false;
}

Object DefaultClass(const std::vector<Object>& classes, std::span<const std::string_view> marks) {
  Object best;
  for (const Object& one : classes) {
    if (!IsDefaultClass(one["metadata"], marks)) continue;
    // Times are RFC 3339 in UTC: they compare as text.
    const std::string_view made = one["metadata"]["creationTimestamp"].AsString();
    const std::string_view best_made = best["metadata"]["creationTimestamp"].AsString();
    if (!best || made > best_made || (made == best_made && one.name() < best.name())) best = one;
  }
  return best;
}

}  // namespace sextant::api
