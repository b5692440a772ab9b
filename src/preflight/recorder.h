// The recorder: a preflight that contacts nothing. It looks whether programs are on PATH and keeps
// a record that the experiment was skipped, and why; a run that executed nothing is never `passed`.
// A simulated nvidia-smi that stands first on PATH is not the program that was asked for.
//
// The evidence file <folder>/<experiment-id>.json is never overwritten. It holds no host names,
// user names or addresses. Blocking; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace sextant::preflight {

struct RecorderOptions {
  std::string track;                  // "kubernetes"
  std::string kind;                   // "kubernetes-gpu-preflight"
  std::string experiment_id;          // [A-Za-z0-9._-]+
  std::vector<std::string> required;  // names of programs
  std::string reason;
  std::string directory = "evidence";
  std::string path;                  // $PATH
  std::vector<std::string> command;  // the command line, for the record
};

struct Recording {
  std::string text;  // for standard output
  std::string file;  // the evidence
};

// Errors: a usage mistake (bad id, no reason), or a record of that id that exists already.
Result<Recording> Record(const RecorderOptions& options, const Clock& clock);

// The first executable file of that name in the folders of `path`, as a shell finds it; empty where
// there is none.
std::string FindOnPath(const std::string& name, const std::string& path);

// Whether the file is Sextant's nvidia-smi, or something that calls it: it shows simulated cards,
// and no driver is behind it.
bool IsSimulatedSmi(const std::string& file);

}  // namespace sextant::preflight
