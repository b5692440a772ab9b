// What a kubelet knows of one Pod: the object as last seen and the state of its containers. Data
// only; the worker (pod_worker.h) changes it, pod_status.h turns it into the API's status.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/clock.h"
#include "client/client.h"

namespace sextant::kubelet {

// The scheme of container ids in statuses: "sextant://<id>".
inline constexpr std::string_view kIdScheme = "sextant://";

enum class ContainerKind { kInit, kSidecar, kRegular, kEphemeral };

inline bool IsInit(ContainerKind kind) {
  return kind == ContainerKind::kInit || kind == ContainerKind::kSidecar;
}

// Where a Pod has its containers and what became of them.
struct ContainerList {
  const char* spec;
  const char* statuses;
};
inline constexpr ContainerList kInitList{"initContainers", "initContainerStatuses"};
inline constexpr ContainerList kRegularList{"containers", "containerStatuses"};
inline constexpr ContainerList kEphemeralList{"ephemeralContainers", "ephemeralContainerStatuses"};
ContainerList ListOf(ContainerKind kind);

// ContainerStateTerminated.
struct Terminated {
  int exit_code = 0;
  std::string reason;
  std::string message;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  std::string container_id;  // the runtime's, without scheme; empty: it never ran
};

struct ContainerState {
  enum class Phase { kWaiting, kRunning, kTerminated };

  std::string name;
  std::string image;
  ContainerKind kind = ContainerKind::kRegular;
  Phase phase = Phase::kWaiting;
  std::string waiting_reason;  // empty: ContainerCreating or PodInitializing
  std::string waiting_message;
  std::string id;  // of the instance that runs or ran last; empty: none was started
  int restart_count = 0;
  std::optional<Time> started_at;        // while running
  std::optional<Terminated> terminated;  // while terminated
  std::optional<Terminated> last;        // the instance before
  bool started = false;                  // its startup probe has passed, or it has none
  bool ready = false;

  bool running() const { return phase == Phase::kRunning; }
  bool done() const { return phase == Phase::kTerminated; }
};

struct DeviceHealth {
  std::string resource;
  std::vector<std::pair<std::string, bool>> devices;  // id, healthy
};

struct PodRecord {
  api::Object pod;
  std::vector<ContainerState> containers;  // init, then regular, then ephemeral ones, in order
  bool sandbox_ready = false;
  bool terminal = false;  // all is stopped and nothing will be started again
  bool rejected = false;  // never admitted: the status says nothing of containers
  std::string pod_ip;
  std::string host_ip;
  std::optional<Time> start_time;
  // A verdict that goes before what the containers say: Failed with this reason.
  std::string failed_reason;
  std::string failed_message;
  bool evicted = false;  // the node had no room for it: the verdict is this kubelet's
  // By container: what the device manager gave it.
  std::vector<std::pair<std::string, DeviceHealth>> devices;

  ContainerState* Find(std::string_view container);
  const ContainerState* Find(std::string_view container) const;
};

using client::NameOf;
std::string FormatPod(const api::Object& pod);  // "name_namespace(uid)"
bool IsTerminalPhase(std::string_view phase);

// The spec of one of a Pod's containers, of whatever kind; absent if there is none.
api::Value FindContainerSpec(const api::Object& pod, std::string_view name);
ContainerKind KindOf(api::Value init_container);

// podutil.ContainerShouldRestart: the container's own rules, its policy, the Pod's policy.
bool ShouldRestart(api::Value container, api::Value pod_spec, int exit_code);
// Whether a container that has ended may be started again: no init container that succeeded, no
// ephemeral one.
bool WillRestart(const PodRecord& record, const ContainerState& container);

// The containers of a Pod that this kubelet sees for the first time. What `status` says of earlier
// instances is kept: those that ran count as ended with 255 "Unknown", as after a machine's reboot,
// and init containers have to run again for the new sandbox.
std::vector<ContainerState> InitialContainers(const api::Object& pod, Time now);

// Takes ephemeral containers that the Pod has got since into the record. True if there were any.
bool AddEphemeralContainers(PodRecord& record, Time now);

}  // namespace sextant::kubelet
