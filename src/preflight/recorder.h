// The recorder: a preflight that contacts nothing. It looks whether programs are on PATH and keeps
// a record that the experiment was skipped, and why; a run that executed nothing is never `passed`.
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

// Whether `name` is an executable file in one of the folders of `path`.
bool OnPath(const std::string& name, const std::string& path);

}  // namespace sextant::preflight
