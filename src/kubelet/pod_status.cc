#include "kubelet/pod_status.h"

#include <fmt/format.h>

#include "api/conditions.h"
#include "api/rules_kinds.h"

namespace sextant::kubelet {
namespace {

using api::Mut;
using api::Object;
using api::Value;
using Phase = ContainerState::Phase;

// One condition before it is written.
struct Condition {
  std::string type;
  bool status = true;
  std::string reason;
  std::string message;
};

// The exit that counts for a container that runs no more and waits for no first start.
const Terminated* EndOf(const ContainerState& container) {
  if (container.terminated) return &*container.terminated;
  if (container.phase == Phase::kWaiting && container.last) return &*container.last;
  return nullptr;
}

bool NotRestartable(const PodRecord& record, const ContainerState& container, int exit_code) {
  return !ShouldRestart(FindContainerSpec(record.pod, container.name), record.pod["spec"],
                        exit_code);
}

bool AnyRegularStarted(const PodRecord& record) {
  for (const ContainerState& container : record.containers)
    if (container.kind == ContainerKind::kRegular && container.phase != Phase::kWaiting)
      return true;
  return false;
}

// Go's %s of a string slice: "[a b]".
std::string GoList(const std::vector<std::string>& names) {
  return fmt::format("[{}]", fmt::join(names, " "));
}

Condition ContainersReady(const PodRecord& record, std::string_view phase) {
  Condition condition{"ContainersReady", false, "", ""};
  if (phase == "Succeeded") {
    condition.reason = "PodCompleted";
    return condition;
  }
  if (phase == "Failed") {
    condition.reason = "PodFailed";
    return condition;
  }
  std::vector<std::string> unready;
  for (const ContainerState& container : record.containers)
    if (container.kind != ContainerKind::kInit && container.kind != ContainerKind::kEphemeral &&
        !container.ready)
      unready.push_back(container.name);
  if (!unready.empty()) {
    condition.reason = "ContainersNotReady";
    condition.message = "containers with unready status: " + GoList(unready);
    return condition;
  }
  condition.status = true;
  return condition;
}

Condition Ready(const PodRecord& record, const Condition& containers_ready) {
  Condition condition = containers_ready;
  condition.type = "Ready";
  if (!condition.status) return condition;
  std::string missing;
  const auto add = [&missing](std::string text) {
    missing += (missing.empty() ? "" : ", ") + text;
  };
  for (Value gate : record.pod["spec"]["readinessGates"].items()) {
    const std::string_view type = gate["conditionType"].AsString();
    const Value found = api::FindCondition(record.pod["status"]["conditions"], type);
    if (!found) {
      add(fmt::format("corresponding condition of pod readiness gate \"{}\" does not exist.",
                      type));
    } else if (found["status"].AsString() != "True") {
      add(fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}", type,
                      found["status"].AsString()));
    }
  }
  if (missing.empty()) return condition;
  return {"Ready", false, "ReadinessGatesNotReady", missing};
}

Condition Initialized(const PodRecord& record, std::string_view phase) {
  if (phase == "Succeeded") return {"Initialized", true, "PodCompleted", ""};
  if (AnyRegularStarted(record)) return {"Initialized", true, "", ""};
  std::vector<std::string> incomplete;
  for (const ContainerState& container : record.containers) {
    if (!IsInit(container.kind)) continue;
    const bool good =
        container.kind == ContainerKind::kSidecar ? container.started : container.ready;
    if (!good) incomplete.push_back(container.name);
  }
  if (incomplete.empty()) return {"Initialized", true, "", ""};
  return {"Initialized", false, "ContainersNotInitialized",
          "containers with incomplete status: " + GoList(incomplete)};
}

void WriteTerminated(Mut out, const Terminated& end) {
  out.Set("exitCode", end.exit_code);
  if (!end.reason.empty()) out.Set("reason", end.reason);
  if (!end.message.empty()) out.Set("message", end.message);
  if (end.started_at) out.Set("startedAt", FormatTime(*end.started_at));
  if (end.finished_at) out.Set("finishedAt", FormatTime(*end.finished_at));
  if (!end.container_id.empty()) {
    out.Set("containerID", fmt::format("{}{}", kIdScheme, end.container_id));
  }
}

void WriteState(Mut out, const ContainerState& container, bool has_init) {
  if (container.phase == Phase::kRunning) {
    out["running"].Set("startedAt", FormatTime(container.started_at.value_or(Time{})));
  } else if (container.phase == Phase::kTerminated) {
    WriteTerminated(out["terminated"], *container.terminated);
  } else {
    const Mut waiting = out["waiting"];
    waiting.Set("reason", container.waiting_reason.empty()
                              ? (has_init ? "PodInitializing" : "ContainerCreating")
                              : container.waiting_reason.c_str());
    if (!container.waiting_message.empty()) waiting.Set("message", container.waiting_message);
  }
}

void WriteVolumeMounts(Mut status, Value spec) {
  for (Value mount : spec["volumeMounts"].items()) {
    const Mut item = status["volumeMounts"].Append();
    item.Set("name", mount["name"].AsString());
    item.Set("mountPath", mount["mountPath"].AsString());
    if (mount["readOnly"].AsBool()) {
      item.Set("readOnly", true);
      item.Set("recursiveReadOnly", "Disabled");
    }
  }
}

void WriteDevices(Mut status, const PodRecord& record, const std::string& container) {
  for (const auto& [name, held] : record.devices) {
    if (name != container) continue;
    const Mut item = status["allocatedResourcesStatus"].Append();
    item.Set("name", held.resource);
    for (const auto& [id, healthy] : held.devices) {
      const Mut resource = item["resources"].Append();
      resource.Set("resourceID", id);
      resource.Set("health", healthy ? "Healthy" : "Unhealthy");
    }
  }
}

void WriteContainer(Mut status, const PodRecord& record, const ContainerState& container,
                    bool has_init) {
  const Value spec = FindContainerSpec(record.pod, container.name);
  status.Set("name", container.name);
  status["state"].SetMap();
  WriteState(status["state"], container, has_init);
  status["lastState"].SetMap();
  if (container.last) WriteTerminated(status["lastState"]["terminated"], *container.last);
  status.Set("ready", container.ready);
  status.Set("restartCount", container.restart_count);
  status.Set("image", container.image);
  status.Set("imageID", container.id.empty() ? "" : container.image);
  if (!container.id.empty()) {
    status.Set("containerID", fmt::format("{}{}", kIdScheme, container.id));
  }
  if (container.kind != ContainerKind::kEphemeral) status.Set("started", container.started);
  if (container.phase != Phase::kWaiting && spec["resources"].size() > 0) {
    if (spec["resources"]["requests"]) {
      status["allocatedResources"].Set(CopyOf(spec["resources"]["requests"]));
    }
    status["resources"].Set(CopyOf(spec["resources"]));
  }
  WriteVolumeMounts(status, spec);
  WriteDevices(status, record, container.name);
}

// Null takes what was there away in a strategic merge.
void SetOrErase(Mut item, const char* key, const std::string& text, Value before) {
  if (!text.empty()) {
    item.Set(key, text);
  } else if (before[key]) {
    item[key].SetNull();
  }
}

void WriteConditions(Mut status, const PodRecord& record, std::string_view phase, Value previous,
                     Time now) {
  const Condition containers_ready = ContainersReady(record, phase);
  std::vector<Condition> conditions = {{"PodReadyToStartContainers", record.sandbox_ready, "", ""},
                                       Initialized(record, phase),
                                       Ready(record, containers_ready),
                                       containers_ready,
                                       {"PodScheduled", true, "", ""}};
  if (record.evicted) {
    conditions.push_back({"DisruptionTarget", true, "TerminationByKubelet", record.failed_message});
  }
  const int64_t generation = record.pod["metadata"]["generation"].AsInt();
  for (const Condition& condition : conditions) {
    const std::string_view value = condition.status ? "True" : "False";
    const Value before = api::FindCondition(previous["conditions"], condition.type);
    const bool same = before["status"].AsString() == value && before["lastTransitionTime"];
    const std::string changed =
        same ? std::string(before["lastTransitionTime"].AsString()) : FormatTime(now);
    const Mut item = status["conditions"].Append();
    item.Set("type", condition.type);
    if (generation > 0) item.Set("observedGeneration", generation);
    item.Set("status", value);
    item.Set("lastTransitionTime", changed);
    SetOrErase(item, "reason", condition.reason, before);
    SetOrErase(item, "message", condition.message, before);
  }
}

void WriteAddresses(Mut status, const PodRecord& record, Value previous) {
  if (!record.host_ip.empty()) {
    status.Set("hostIP", record.host_ip);
    status["hostIPs"].Append().Set("ip", record.host_ip);
  }
  if (record.pod_ip.empty()) return;
  status.Set("podIP", record.pod_ip);
  // A new sandbox has a new address: the list is merged by address, so it has to be replaced.
  const Value before = previous["podIPs"];
  if (before.size() > 0 && before.at(0)["ip"].AsString() != record.pod_ip) {
    status["podIPs"].Append().Set("$patch", "replace");
  }
  status["podIPs"].Append().Set("ip", record.pod_ip);
}

void WriteContainers(Mut status, const PodRecord& record) {
  bool has_init = false;
  for (const ContainerState& container : record.containers)
    has_init = has_init || IsInit(container.kind);
  for (const ContainerState& container : record.containers) {
    const Mut list = status[ListOf(container.kind).statuses];
    WriteContainer(list.Append(), record, container, has_init);
  }
}

struct Counts {
  int pending_init = 0;
  int pending_sidecars = 0;
  int failed_init_for_good = 0;
  int running = 0;
  int waiting = 0;
  int stopped = 0;
  int stopped_for_good = 0;
  int succeeded = 0;
};

void CountInit(const PodRecord& record, const ContainerState& container, Counts& counts) {
  const Terminated* end = EndOf(container);
  if (container.running() || !end) {
    ++counts.pending_init;
  } else if (end->exit_code != 0) {
    counts.failed_init_for_good += NotRestartable(record, container, end->exit_code);
  }
}

void CountSidecar(const ContainerState& container, Counts& counts) {
  if (container.running()) {
    counts.pending_sidecars += !container.started;
    ++counts.running;
  } else if (!EndOf(container)) {
    ++counts.pending_sidecars;
    ++counts.waiting;
  }
}

void CountRegular(const PodRecord& record, const ContainerState& container, Counts& counts) {
  if (container.running()) {
    ++counts.running;
    return;
  }
  const Terminated* end = EndOf(container);
  if (!end) {
    ++counts.waiting;
    return;
  }
  ++counts.stopped;
  counts.stopped_for_good += NotRestartable(record, container, end->exit_code);
  counts.succeeded += container.done() && end->exit_code == 0;
}

}  // namespace

std::string PodPhase(const PodRecord& record) {
  if (!record.failed_reason.empty()) return "Failed";
  const std::string_view told = record.pod["status"]["phase"].AsString();
  if (IsTerminalPhase(told)) return std::string(told);
  Counts counts;
  for (const ContainerState& container : record.containers) {
    if (container.kind == ContainerKind::kInit) CountInit(record, container, counts);
    if (container.kind == ContainerKind::kSidecar) CountSidecar(container, counts);
    if (container.kind == ContainerKind::kRegular) CountRegular(record, container, counts);
  }
  if (counts.failed_init_for_good > 0) return "Failed";
  if (record.terminal) {
    const bool good = counts.stopped > 0 && counts.stopped == counts.succeeded &&
                      counts.waiting == 0 && counts.pending_init == 0;
    return good ? "Succeeded" : "Failed";
  }
  const bool initialised = AnyRegularStarted(record);
  if (counts.pending_init > 0 || (counts.pending_sidecars > 0 && !initialised)) return "Pending";
  if (counts.waiting > 0) return "Pending";
  if (counts.running > 0) return "Running";
  if (counts.stopped == 0) return "Pending";
  if (counts.stopped != counts.stopped_for_good) return "Running";
  return counts.stopped == counts.succeeded ? "Succeeded" : "Failed";
}

Object BuildPodStatus(const PodRecord& record, Value previous, Time now) {
  api::Editor edit;
  const Mut status = edit.Root();
  const std::string phase = PodPhase(record);
  const int64_t generation = record.pod["metadata"]["generation"].AsInt();
  if (generation > 0) status.Set("observedGeneration", generation);
  status.Set("phase", phase);
  status.Set("qosClass", api::QosClassOf(record.pod["spec"]));
  if (!record.failed_reason.empty()) {
    status.Set("reason", record.failed_reason);
    status.Set("message", record.failed_message);
  }
  if (record.start_time) status.Set("startTime", FormatTime(*record.start_time));
  if (record.rejected) return std::move(edit).Finish();
  WriteConditions(status, record, phase, previous, now);
  WriteAddresses(status, record, previous);
  WriteContainers(status, record);
  return std::move(edit).Finish();
}

}  // namespace sextant::kubelet
