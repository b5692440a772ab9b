// `sextant preflight`: the walk of the six layers, or the recorder's form.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace sextant::cli {

struct PreflightOptions {
  std::string context;
  std::string kubeconfig;
  bool probe = false;
  // The recorder: given together with an experiment id.
  std::string track;
  std::string kind;
  std::string experiment_id;
  std::vector<std::string> require_executables;
  std::string reason;
  std::string evidence_directory = "evidence";
};

// 0 passed (or a skip that was asked for), 1 the tool failed, 2 usage, 3 a layer failed,
// 4 incomplete.
int Preflight(const PreflightOptions& options, Output output);

}  // namespace sextant::cli
