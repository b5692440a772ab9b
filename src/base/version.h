// What this program is: its own version and the Kubernetes that it speaks.
#pragma once

#include <string_view>

namespace sextant::version {

inline constexpr std::string_view kKubernetes = "v1.36.3+sextant.1";
inline constexpr std::string_view kSextant = "0.1.0";
inline constexpr int kKubernetesMinor = 36;
// Empty where the build does not know.
inline constexpr std::string_view kCommit = "";
inline constexpr std::string_view kBuildDate = "1970-01-01T00:00:00Z";

}  // namespace sextant::version
