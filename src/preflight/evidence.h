// Evidence: what a preflight planned, saw and concluded; one record for each planned check.
// Statuses and the roll-up: reference/gpu-faults.md 6.3 and 6.4; schema: docs/evidence.md.
// Plain data; any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/clock.h"

namespace sextant::preflight {

enum class Layer : int { kDriver = 1, kToolkit, kPlugin, kScheduler, kPod, kServing };
inline constexpr int kLayers = 6;
std::string_view LayerName(Layer layer);      // "driver"
std::string_view LayerQuestion(Layer layer);  // "does the host see the GPU?"

enum class CheckStatus { kPassed, kFailed, kSkipped, kUnsupported, kError };
std::string_view StatusName(CheckStatus status);

// Nothing contacted, a simulated cluster, or real hardware.
enum class Mode { kNone, kSimulated, kReal };
std::string_view ModeName(Mode mode);

struct Observation {
  std::string source;   // kube, log, path
  std::string ref;      // "v1/nodes/gpu-lab-worker", "PATH"
  std::string excerpt;  // at most kMaxExcerpt bytes
};
inline constexpr size_t kMaxExcerpt = 4096;

struct Check {
  Layer layer = Layer::kDriver;
  std::string id;  // "node.capacity": the stable interface
  bool required = true;
  CheckStatus status = CheckStatus::kSkipped;
  std::string code;    // closed list by check: "ALLOCATABLE_ZERO"
  std::string reason;  // why skipped or unsupported
  std::vector<std::string> blocked_by;
  std::string summary;  // one line for a person
  std::string expected;
  std::string observed;
  std::vector<Observation> observations;
  Time started{};
  Duration took{0};
};

struct Report {
  std::string run_id;
  Mode mode = Mode::kNone;
  Time started{};
  std::string context;
  std::string server_version;
  // Why no layer could be looked at, and what to do; both empty where the cluster was asked.
  std::string error;
  std::string remedy;
  std::vector<Check> checks;
  bool probed = false;              // the capability Pod was sent to the API server
  std::set<std::string> allocated;  // devices that the kubelet says it has
  std::set<std::string> seen;       // UUIDs that its container lists
  std::string pod_log;              // of the capability Pod, when it ran
};

enum class Verdict { kPassed, kFailed, kIncomplete, kError };
std::string_view VerdictName(Verdict verdict);
Verdict VerdictOf(const std::vector<Check>& checks);
Verdict VerdictOf(const Report& report);
// The first check of the lowest layer that failed or ended in an error, or nothing.
const Check* StopOf(const std::vector<Check>& checks);
// The lowest required check that was not observed, when nothing failed. Checks stand bottom up.
const Check* FirstUnproven(const std::vector<Check>& checks);
// A layer's word: failed or in error where any check is; else the worst of its required checks,
// of the others where it has none.
CheckStatus LayerStatus(const std::vector<Check>& checks, Layer layer);
int ExitCode(Verdict verdict);  // 0, 3, 4, 1

api::Object ReportJson(const Report& report);
// For a person. Of a cluster that could not be asked only the error.
std::string ReportText(const Report& report);

}  // namespace sextant::preflight
