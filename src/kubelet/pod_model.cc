#include "kubelet/pod_model.h"

#include <fmt/format.h>

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

// What containerd reports for a container whose end it did not see.
constexpr int kUnknownExitCode = 255;
constexpr char kUnknownExitReason[] = "Unknown";

std::optional<Time> ReadTime(Value text) {
  if (!text.IsString()) return std::nullopt;
  auto time = ParseTime(text.AsString());
  if (!time) return std::nullopt;
  return *time;
}

std::string WithoutScheme(std::string_view id) {
  const size_t at = id.find("://");
  return std::string(at == std::string_view::npos ? id : id.substr(at + 3));
}

Terminated ReadTerminated(Value value) {
  return {.exit_code = static_cast<int>(value["exitCode"].AsInt()),
          .reason = std::string(value["reason"].AsString()),
          .message = std::string(value["message"].AsString()),
          .started_at = ReadTime(value["startedAt"]),
          .finished_at = ReadTime(value["finishedAt"]),
          .container_id = WithoutScheme(value["containerID"].AsString())};
}

bool PolicyRestarts(std::string_view policy, int exit_code) {
  if (policy == "Never") return false;
  if (policy == "OnFailure") return exit_code != 0;
  return true;
}

bool RuleMatches(Value rule, int exit_code) {
  const Value codes = rule["exitCodes"];
  bool listed = false;
  for (Value code : codes["values"].items()) listed = listed || code.AsInt() == exit_code;
  const std::string_view op = codes["operator"].AsString();
  return (op == "In" && listed) || (op == "NotIn" && !listed);
}

// Takes over what an earlier life of this kubelet wrote into the status.
void Restore(ContainerState& state, Value status, Time now) {
  state.restart_count = static_cast<int>(status["restartCount"].AsInt());
  if (status["lastState"]["terminated"])
    state.last = ReadTerminated(status["lastState"]["terminated"]);
  const Value now_state = status["state"];
  if (now_state["running"]) {
    state.phase = ContainerState::Phase::kTerminated;
    state.id = WithoutScheme(status["containerID"].AsString());
    state.terminated = Terminated{.exit_code = kUnknownExitCode,
                                  .reason = kUnknownExitReason,
                                  .started_at = ReadTime(now_state["running"]["startedAt"]),
                                  .finished_at = now,
                                  .container_id = state.id};
  } else if (now_state["terminated"]) {
    state.phase = ContainerState::Phase::kTerminated;
    state.terminated = ReadTerminated(now_state["terminated"]);
    state.id = state.terminated->container_id;
  } else if (state.last) {
    // It waited for its next start.
    state.phase = ContainerState::Phase::kTerminated;
    state.terminated = state.last;
    state.id = state.last->container_id;
  }
  if (state.kind == ContainerKind::kInit && state.done()) {
    state.last = std::exchange(state.terminated, std::nullopt);
    state.phase = ContainerState::Phase::kWaiting;
  }
}

}  // namespace

ContainerState* PodRecord::Find(std::string_view container) {
  for (ContainerState& state : containers)
    if (state.name == container) return &state;
  return nullptr;
}

const ContainerState* PodRecord::Find(std::string_view container) const {
  for (const ContainerState& state : containers)
    if (state.name == container) return &state;
  return nullptr;
}

std::string FormatPod(const Object& pod) {
  return fmt::format("{}_{}({})", pod.name(), pod.ns(), pod.uid());
}

bool IsTerminalPhase(std::string_view phase) { return phase == "Succeeded" || phase == "Failed"; }

Value FindContainerSpec(const Object& pod, std::string_view name) {
  for (const ContainerList& list : {kInitList, kRegularList, kEphemeralList})
    for (Value container : pod["spec"][list.spec].items())
      if (container["name"].AsString() == name) return container;
  return {};
}

ContainerList ListOf(ContainerKind kind) {
  if (kind == ContainerKind::kEphemeral) return kEphemeralList;
  return IsInit(kind) ? kInitList : kRegularList;
}

ContainerKind KindOf(Value init_container) {
  return init_container["restartPolicy"].AsString() == "Always" ? ContainerKind::kSidecar
                                                                : ContainerKind::kInit;
}

bool ShouldRestart(Value container, Value pod_spec, int exit_code) {
  if (container["restartPolicy"]) {
    for (Value rule : container["restartPolicyRules"].items())
      if (RuleMatches(rule, exit_code)) return true;  // its only action is to restart
    return PolicyRestarts(container["restartPolicy"].AsString(), exit_code);
  }
  return PolicyRestarts(pod_spec["restartPolicy"].AsString(), exit_code);
}

bool WillRestart(const PodRecord& record, const ContainerState& container) {
  if (record.terminal || !container.terminated) return false;
  if (container.kind == ContainerKind::kEphemeral) return false;
  const int exit_code = container.terminated->exit_code;
  if (container.kind == ContainerKind::kInit && exit_code == 0) return false;
  return ShouldRestart(FindContainerSpec(record.pod, container.name), record.pod["spec"],
                       exit_code);
}

namespace {

ContainerState NewContainer(const Object& pod, Value container, ContainerKind kind, Time now) {
  ContainerState state;
  state.name = container["name"].AsString();
  state.image = container["image"].AsString();
  state.kind = kind;
  for (Value status : pod["status"][ListOf(kind).statuses].items())
    if (status["name"].AsString() == state.name) Restore(state, status, now);
  return state;
}

}  // namespace

std::vector<ContainerState> InitialContainers(const Object& pod, Time now) {
  std::vector<ContainerState> states;
  const Value spec = pod["spec"];
  for (Value container : spec[kInitList.spec].items())
    states.push_back(NewContainer(pod, container, KindOf(container), now));
  for (Value container : spec[kRegularList.spec].items())
    states.push_back(NewContainer(pod, container, ContainerKind::kRegular, now));
  for (Value container : spec[kEphemeralList.spec].items())
    states.push_back(NewContainer(pod, container, ContainerKind::kEphemeral, now));
  return states;
}

bool AddEphemeralContainers(PodRecord& record, Time now) {
  const size_t before = record.containers.size();
  for (Value container : record.pod["spec"][kEphemeralList.spec].items()) {
    if (record.Find(container["name"].AsString())) continue;
    record.containers.push_back(
        NewContainer(record.pod, container, ContainerKind::kEphemeral, now));
  }
  return record.containers.size() > before;
}

}  // namespace sextant::kubelet
