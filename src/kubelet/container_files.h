// The few files that a container needs on this machine before it starts and after it has ended.
// Threads: any that may block.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/runtime.h"

namespace sextant::kubelet {

// pkg/kubelet/container: MaxContainerTerminationMessageLength.
inline constexpr size_t kMaxTerminationMessage = 4096;

// Directories on the way to `log_path`, an empty termination message (none if `message_path` is
// empty) and the sub paths of volumes. `owner` gets what the container is to write.
Status MakeContainerFiles(const std::string& log_path, const std::string& message_path,
                          const std::vector<Mount>& mounts, Owner owner);

// A whole file or the one before, never a part; not kept through a crash of the machine, which no
// container survives either. `owner` gets it where the lab is root.
Status WriteContainerFile(const std::string& path, std::string_view data, uint32_t mode,
                          Owner owner);

// What the container left there; empty if nothing can be read.
std::string ReadTerminationMessage(const std::string& message_path);

// One line as a container's output in CRI form.
Status AppendLogLine(const std::string& log_path, std::string_view line, Time at);

}  // namespace sextant::kubelet
