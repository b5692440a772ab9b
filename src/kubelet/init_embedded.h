// The bytes of sextant-init (src/kubelet/init/), carried inside the program.
#pragma once

#include <string_view>

namespace sextant::kubelet {
std::string_view EmbeddedInit();
}  // namespace sextant::kubelet
