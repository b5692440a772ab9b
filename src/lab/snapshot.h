// Snapshots: a whole lab in one file, taken while it runs, and put back while it does not.
//
// A snapshot holds the state file at one revision, how the lab was asked for, and which Pod held
// which cards. It can be put back here or on another machine, under the name that it had.
//
// Blocking file work; CLI threads only. Errors: sentences for a person; nothing is half done.
#pragma once

#include <string>

#include "base/status.h"
#include "lab/state.h"
#include "store/store.h"

namespace sextant::lab {

// Running or not. An ephemeral lab has nothing to copy.
Result<store::Revision> SaveSnapshot(const LabState& state, const std::string& file);

// Puts the lab back, stopped; what stood there under its name is replaced. Refused while that runs.
Result<LabState> RestoreSnapshot(const std::string& file);

}  // namespace sextant::lab
