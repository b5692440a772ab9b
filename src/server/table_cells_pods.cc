// Cells of Pods and nodes.
#include <fmt/format.h>

#include <algorithm>

#include "api/conditions.h"
#include "server/conditions.h"
#include "server/table_cells.h"
#include "server/tables.h"

namespace sextant::server::cells {
namespace {

using api::Mut;
using api::Value;

bool IsSidecar(Value pod, std::string_view name) {
  for (Value init : pod["spec"]["initContainers"].items()) {
    if (init["name"].AsString() == name) return init["restartPolicy"].AsString() == "Always";
  }
  return false;
}

std::string TerminatedReason(Value terminated) {
  const std::string_view reason = terminated["reason"].AsString();
  if (!reason.empty()) return std::string(reason);
  if (terminated["signal"].AsInt() != 0) {
    return fmt::format("Signal:{}", terminated["signal"].AsInt());
  }
  return fmt::format("ExitCode:{}", terminated["exitCode"].AsInt());
}

// What one walk over a Pod's containers tells, as printPod gathers it.
struct Summary {
  int64_t ready = 0;
  int64_t total = 0;
  int64_t restarts = 0;
  std::string last_restart;  // RFC 3339, so that texts compare like times
  std::string reason;
};

void CountRestarts(Value status, int64_t& restarts, std::string& last) {
  restarts += status["restartCount"].AsInt();
  const std::string_view ended = status["lastState"]["terminated"]["finishedAt"].AsString();
  if (ended > last) last = ended;
}

// True while an init container stands in the way.
bool WalkInit(Value pod, Summary& out, int64_t& sidecar_restarts, std::string& sidecar_last) {
  int64_t index = 0;
  for (Value status : pod["status"]["initContainerStatuses"].items()) {
    CountRestarts(status, out.restarts, out.last_restart);
    const bool sidecar = IsSidecar(pod, status["name"].AsString());
    if (sidecar) CountRestarts(status, sidecar_restarts, sidecar_last);
    const Value terminated = status["state"]["terminated"];
    const std::string_view waiting = status["state"]["waiting"]["reason"].AsString();
    if (terminated && terminated["exitCode"].AsInt() == 0) {
      ++index;
      continue;
    }
    if (sidecar && status["started"].AsBool()) {
      if (status["ready"].AsBool()) ++out.ready;
      ++index;
      continue;
    }
    if (terminated) {
      out.reason = "Init:" + TerminatedReason(terminated);
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      out.reason = fmt::format("Init:{}", waiting);
    } else {
      out.reason = fmt::format("Init:{}/{}", index, pod["spec"]["initContainers"].size());
    }
    return true;
  }
  return false;
}

void WalkContainers(Value pod, Summary& out) {
  bool running = false;
  std::string error;
  const Value statuses = pod["status"]["containerStatuses"];
  for (size_t i = statuses.size(); i-- > 0;) {
    const Value status = statuses.at(i);
    CountRestarts(status, out.restarts, out.last_restart);
    const std::string_view waiting = status["state"]["waiting"]["reason"].AsString();
    const Value terminated = status["state"]["terminated"];
    if (!waiting.empty()) {
      out.reason = waiting;
    } else if (terminated) {
      out.reason = TerminatedReason(terminated);
      if (terminated["exitCode"].AsInt() != 0) error = out.reason;
    } else if (status["ready"].AsBool() && status["state"]["running"]) {
      running = true;
      ++out.ready;
    }
  }
  if (out.reason != "Completed") return;
  if (running && HasCondition(pod, "Ready")) {
    out.reason = "Running";
  } else if (!error.empty()) {
    out.reason = error;
  } else if (running) {
    out.reason = "NotReady";
  }
}

Summary Summarise(Value pod) {
  Summary out;
  const Value status = pod["status"];
  const std::string_view phase = status["phase"].AsString();
  out.reason = status["reason"].AsString(phase);
  const Value scheduled = api::FindCondition(status["conditions"], "PodScheduled");
  if (scheduled["reason"].AsString() == "SchedulingGated") out.reason = "SchedulingGated";
  out.total = static_cast<int64_t>(pod["spec"]["containers"].size());
  for (Value init : pod["spec"]["initContainers"].items()) {
    if (init["restartPolicy"].AsString() == "Always") ++out.total;
  }
  int64_t sidecar_restarts = 0;
  std::string sidecar_last;
  const bool initializing = WalkInit(pod, out, sidecar_restarts, sidecar_last);
  if (!initializing || HasCondition(pod, "Initialized")) {
    out.restarts = sidecar_restarts;
    out.last_restart = sidecar_last;
    WalkContainers(pod, out);
  }
  if (pod["metadata"]["deletionTimestamp"]) {
    if (status["reason"].AsString() == "NodeLost") {
      out.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      out.reason = "Terminating";
    }
  }
  return out;
}

std::string AddressOf(Value node, std::string_view type) {
  for (Value address : node["status"]["addresses"].items()) {
    if (address["type"].AsString() == type) return std::string(address["address"].AsString());
  }
  return "<none>";
}

}  // namespace

void PodReady(Value pod, Time, Mut out) {
  const Summary summary = Summarise(pod);
  out.SetString(fmt::format("{}/{}", summary.ready, summary.total));
}

// What `kubectl get` without --show-all once hid: a Pod that has ended is Completed.
void PodConditions(Value pod, Mut row) {
  const std::string_view phase = pod["status"]["phase"].AsString();
  const bool succeeded = phase == "Succeeded";
  if (!succeeded && phase != "Failed") return;
  Mut condition = row["conditions"].Append();
  condition.Set("type", "Completed");
  condition.Set("status", "True");
  condition.Set("reason", phase);
  condition.Set("message", succeeded ? "The pod has completed successfully." : "The pod failed.");
}
void PodStatus(Value pod, Time, Mut out) { out.SetString(Summarise(pod).reason); }

void PodRestarts(Value pod, Time now, Mut out) {
  const Summary summary = Summarise(pod);
  std::string text = fmt::format("{}", summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) {
    if (auto at = ParseTime(summary.last_restart)) {
      text += fmt::format(" ({} ago)", HumanDuration(now - *at));
    }
  }
  out.SetString(text);
}

void PodIp(Value pod, Time, Mut out) {
  out.SetString(pod["status"]["podIPs"].at(0)["ip"].AsString("<none>"));
}

void PodReadinessGates(Value pod, Time, Mut out) {
  const Value gates = pod["spec"]["readinessGates"];
  if (gates.empty()) return out.SetString("<none>");
  int met = 0;
  for (Value gate : gates.items()) {
    if (HasCondition(pod, gate["conditionType"].AsString())) ++met;
  }
  out.SetString(fmt::format("{}/{}", met, gates.size()));
}

void NodeStatus(Value node, Time, Mut out) {
  std::string status = "Unknown";
  if (const Value ready = api::FindCondition(node["status"]["conditions"], "Ready")) {
    status = ready["status"].AsString() == "True" ? "Ready" : "NotReady";
  }
  if (node["spec"]["unschedulable"].AsBool()) status += ",SchedulingDisabled";
  out.SetString(status);
}

void NodeRoles(Value node, Time, Mut out) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (auto [key, value] : node["metadata"]["labels"].members()) {
    if (key.starts_with(kPrefix) && key.size() > kPrefix.size()) {
      roles.emplace_back(key.substr(kPrefix.size()));
    } else if (key == "kubernetes.io/role" && !value.AsString().empty()) {
      roles.emplace_back(value.AsString());
    }
  }
  std::sort(roles.begin(), roles.end());
  out.SetString(roles.empty() ? "<none>" : fmt::format("{}", fmt::join(roles, ",")));
}

void NodeInternalIp(Value node, Time, Mut out) { out.SetString(AddressOf(node, "InternalIP")); }
void NodeExternalIp(Value node, Time, Mut out) { out.SetString(AddressOf(node, "ExternalIP")); }

void NodeOs(Value node, Time, Mut out) {
  const std::string_view image = node["status"]["nodeInfo"]["osImage"].AsString();
  out.SetString(image.empty() ? "<unknown>" : image);
}

void NodeKernel(Value node, Time, Mut out) {
  const Value info = node["status"]["nodeInfo"];
  std::string text(info["kernelVersion"].AsString());
  if (text.empty()) text = "<unknown>";
  if (const std::string_view arch = info["architecture"].AsString(); !arch.empty()) {
    text += fmt::format(" ({})", arch);
  }
  out.SetString(text);
}

void NodeRuntime(Value node, Time, Mut out) {
  const std::string_view text = node["status"]["nodeInfo"]["containerRuntimeVersion"].AsString();
  out.SetString(text.empty() ? "<unknown>" : text);
}

}  // namespace sextant::server::cells
