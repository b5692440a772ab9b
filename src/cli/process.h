// The process that runs a lab: started, asked, stopped.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "lab/state.h"

namespace sextant::cli {

struct LaunchOptions {
  Duration wait{0};      // until it is ready; 0: not
  bool created = false;  // a new lab, locked: removed again if it does not come up
  bool as_kind = false;
};

// Starts the lab's process, waits until it serves (and is ready, with `wait`), merges the context
// into the kubeconfig and tells how to go on. A lock that `state` has passes to it. The exit
// status: 1 also where it serves but was not ready in time (with kind's words 0 and a warning, as
// kind does).
int Launch(lab::LabState state, const lab::LabRecord& record, const LaunchOptions& options);

// Ends the process of a running lab and waits until its state is on disk.
Status StopProcess(const lab::LabState& state);

// The lab of that name, or the only one there is when `name` is empty ("gpu-lab" if there is one).
Result<lab::LabState> FindLab(const std::string& name);

}  // namespace sextant::cli
