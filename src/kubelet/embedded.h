// The bytes of programs that this one carries, for the toolbox: sextant-init (src/kubelet/init/)
// and nvidia-smi (src/gpu/nvidia_smi_main.cc).
#pragma once

#include <string_view>

namespace sextant::kubelet {
std::string_view EmbeddedInit();
std::string_view EmbeddedNvidiaSmi();
}  // namespace sextant::kubelet
