// Replays one case file and tells where our answers differ from the recorded ones.
#pragma once

#include <string>
#include <vector>

#include "case_file.h"
#include "in_process_server.h"

namespace sextant::recorded {

struct StepResult {
  std::string step;
  std::string difference;  // empty: equal
};

std::vector<StepResult> Replay(InProcessServer& server, const CaseFile& file,
                               const std::string& facts_directory);

}  // namespace sextant::recorded
