// What a container's processes use, read from /proc.
#pragma once

#include <sys/types.h>

#include "kubelet/runtime.h"

namespace sextant::kubelet {

// Of `root` and every process below it. Processes that have ended are in their parents' times
// once waited for. Threads: any; blocks for some file reads.
ContainerStats ReadStats(pid_t root);

}  // namespace sextant::kubelet
