// The capability Pod: made, watched until it has ended or comes no further, and taken away again.
// Blocking; the caller's thread, never a loop.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/blocking.h"

namespace sextant::preflight {

struct ProbeLimits {
  Duration run;          // until the Pod has ended
  Duration acknowledge;  // from the binding until its kubelet says anything
  Duration gone;         // from the deletion until the Pod is no more
};

// Nothing really ran in the Pod's container: who says so, and in which words.
struct Simulated {
  std::string ref;  // "events", "v1/nodes/worker"
  std::string text;
};

// What was seen of one Pod.
struct PodRun {
  std::string ns;
  std::string name;
  std::optional<Error> refused;     // by the API server: there was no Pod
  std::optional<Error> lost;        // it could not be read any more
  api::Object pod;                  // as last seen
  std::set<std::string> allocated;  // devices that the kubelet says the container has
  std::string log;
  std::optional<Error> log_error;
  std::vector<std::string> warnings;  // "reason: message" of its Warning events
  std::optional<Simulated> simulated;
  std::string runtime;  // its node's containerRuntimeVersion, where that can be read

  std::string where() const { return "v1/pods/" + ns + "/" + name; }
  api::Value Condition(std::string_view type) const;
  api::Value container() const { return pod["status"]["containerStatuses"].at(0); }
  // It has a node whose kubelet has not said a word about it.
  bool silent() const { return !node().empty() && !pod["status"]["startTime"]; }
  std::string node() const { return std::string(pod["spec"]["nodeName"].AsString()); }
};

// UUIDs of the GPUs that nvidia-smi -L lists; of the MIG devices where there are any.
std::set<std::string> UuidsIn(std::string_view text);

class Prober {
 public:
  // False: the user wants it to end; the Pod is then given up as lost.
  using Sleep = std::function<bool(Duration)>;
  Prober(client::Blocking& calls, const Clock& clock, Random& random, std::string ns,
         ProbeLimits limits, Sleep sleep);

  // Runs one Pod that asks for `cards`, on `node` only where one is named (the scheduler still
  // places it). A simulated one is not waited for: it has no command that could end.
  PodRun Run(int64_t cards, const std::string& node = {});
  // Deletes it with its usual grace; an Error says that it is still there. A silent kubelet is not
  // waited for: the Pod goes when it answers.
  Status Remove(const PodRun& run);

 private:
  bool Ended(const PodRun& run, Duration bound_for) const;
  void Follow(PodRun& run);
  void ReadLog(PodRun& run);
  void ReadEvents(PodRun& run);
  void AskNode(PodRun& run);

  client::Blocking& calls_;
  const Clock& clock_;
  Random& random_;
  const std::string ns_;
  const ProbeLimits limits_;
  const Sleep sleep_;
};

}  // namespace sextant::preflight
