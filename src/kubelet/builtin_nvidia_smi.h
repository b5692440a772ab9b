// nvidia-smi for the isolation level "built-in": the same answers as the static program's, given
// inside the lab from the file that the container would have read.
//
// Threads: the program may be called from any; `clock` outlives it. A loop (-l) is answered once.
#pragma once

#include "base/clock.h"
#include "kubelet/builtin_script.h"

namespace sextant::kubelet {

BuiltinProgram NvidiaSmiProgram(const Clock& clock);

}  // namespace sextant::kubelet
