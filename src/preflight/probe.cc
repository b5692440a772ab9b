#include "preflight/probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/conditions.h"
#include "preflight/cluster_view.h"

namespace sextant::preflight {
namespace {

using api::Object;
using api::Value;

constexpr int64_t kMaxLog = 1 << 20;
constexpr int64_t kGraceSeconds = 2;
constexpr Duration kLookEvery = std::chrono::milliseconds(20);
constexpr Duration kAskEventsEvery = std::chrono::milliseconds(500);
constexpr std::string_view kContainer = "cuda-check";
// The reason of the event with which a lab's kubelet says that a container only pretends to run.
constexpr std::string_view kSimulatedReason = "Simulated";
constexpr size_t kMaxWarnings = 8;

Object PodFor(const std::string& ns, const std::string& name, int64_t cards,
              const std::string& node) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", "Pod");
  root.Set("apiVersion", "v1");
  root["metadata"].Set("name", name);
  root["metadata"].Set("namespace", ns);
  root["metadata"]["labels"].Set("app.kubernetes.io/managed-by", "sextant-preflight");
  api::Mut spec = root["spec"];
  spec.Set("restartPolicy", "Never");
  spec.Set("automountServiceAccountToken", false);
  spec.Set("terminationGracePeriodSeconds", kGraceSeconds);
  if (!node.empty()) spec["nodeSelector"].Set("kubernetes.io/hostname", node);
  api::Mut toleration = spec["tolerations"].Append();
  toleration.Set("key", kGpu);
  toleration.Set("operator", "Exists");
  api::Mut container = spec["containers"].Append();
  container.Set("name", kContainer);
  container.Set("image", "nvidia/cuda:12.4.1-base-ubuntu22.04");
  container["command"].Append().SetString("bash");
  container["command"].Append().SetString("-lc");
  container["args"].Append().SetString("nvidia-smi && nvidia-smi -L");
  container["resources"]["limits"].Set(kGpu, fmt::format("{}", cards));
  return std::move(edit).Finish();
}

// "GPU-<uuid>" of "GPU-<uuid>::2" (a time-sliced replica).
std::string DeviceOf(std::string_view id) { return std::string(id.substr(0, id.find("::"))); }

void SeeAllocated(PodRun& run) {
  for (Value resource : run.container()["allocatedResourcesStatus"].items()) {
    for (Value device : resource["resources"].items()) {
      run.allocated.insert(DeviceOf(device["resourceID"].AsString()));
    }
  }
}

std::set<std::string> Uuids(std::string_view text, std::string_view prefix) {
  constexpr size_t kUuid = 36;
  std::set<std::string> found;
  for (size_t at = text.find(prefix); at != std::string_view::npos;
       at = text.find(prefix, at + 1)) {
    const std::string_view candidate = text.substr(at, prefix.size() + kUuid);
    const bool good =
        candidate.size() == prefix.size() + kUuid &&
        std::all_of(
            candidate.begin() + static_cast<ptrdiff_t>(prefix.size()), candidate.end(),
            [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-'; });
    if (good) found.emplace(candidate);
  }
  return found;
}

}  // namespace

Value PodRun::Condition(std::string_view type) const {
  return api::FindCondition(pod["status"]["conditions"], type);
}

std::set<std::string> UuidsIn(std::string_view text) {
  std::set<std::string> mig = Uuids(text, "MIG-");
  return mig.empty() ? Uuids(text, "GPU-") : mig;
}

Prober::Prober(client::Blocking& calls, const Clock& clock, Random& random, std::string ns,
               ProbeLimits limits, Sleep sleep)
    : calls_(calls),
      clock_(clock),
      random_(random),
      ns_(std::move(ns)),
      limits_(limits),
      sleep_(std::move(sleep)) {}

bool Prober::Ended(const PodRun& run, Duration bound_for) const {
  const Value status = run.pod["status"];
  const std::string_view phase = status["phase"].AsString();
  if (phase == "Succeeded" || phase == "Failed") return true;
  if (run.simulated && run.container()["state"]["running"]) return true;
  if (run.Condition("PodScheduled")["reason"].AsString() == "Unschedulable") return true;
  return !status["startTime"] && bound_for > limits_.acknowledge;
}

PodRun Prober::Run(int64_t cards, const std::string& node) {
  PodRun run;
  run.ns = ns_;
  run.name = "gpu-preflight-" + NameSuffix(random_);
  auto created = calls_.Create(client::kPods, {ns_, ""}, PodFor(ns_, run.name, cards, node),
                               {.field_manager = "sextant-preflight"});
  if (!created) {
    run.refused = created.error();
    return run;
  }
  run.pod = *std::move(created);
  Follow(run);
  if (run.lost) return run;
  ReadEvents(run);
  if (run.container()["state"]["running"] || run.container()["state"]["terminated"]) ReadLog(run);
  return run;
}

void Prober::Follow(PodRun& run) {
  const Duration end = clock_.Monotonic() + limits_.run;
  std::optional<Duration> bound;
  Duration ask_events{0};
  while (clock_.Monotonic() < end) {
    auto pod = calls_.Get(client::kPods, {ns_, run.name});
    if (!pod) {
      run.lost = pod.error();
      return;
    }
    run.pod = *std::move(pod);
    SeeAllocated(run);
    const Duration now = clock_.Monotonic();
    if (!bound && !run.node().empty()) {
      bound = now;
      AskNode(run);
    }
    // A container that only pretends to run never ends by itself.
    if (run.container()["state"]["running"] && !run.simulated && now >= ask_events) {
      ReadEvents(run);
      ask_events = now + kAskEventsEvery;
    }
    if (Ended(run, bound ? now - *bound : Duration{0})) return;
    if (!sleep_(kLookEvery)) {
      run.lost = InternalError("interrupted");
      return;
    }
  }
}

void Prober::ReadLog(PodRun& run) {
  auto log = calls_.PodLog({ns_, run.name}, std::string(kContainer), kMaxLog);
  if (log) {
    run.log = *std::move(log);
  } else {
    run.log_error = log.error();
  }
}

void Prober::ReadEvents(PodRun& run) {
  auto events = calls_.List(client::kCoreEvents,
                            {.ns = ns_, .field_selector = "involvedObject.name=" + run.name});
  if (!events) return;
  run.warnings.clear();
  for (const Object& event : events->items) {
    const std::string_view reason = event["reason"].AsString();
    const std::string_view message = event["message"].AsString();
    if (reason == kSimulatedReason && !run.simulated) {
      run.simulated = {"events", fmt::format("{}: {}", reason, message)};
    }
    if (event["type"].AsString() == "Warning" && run.warnings.size() < kMaxWarnings) {
      run.warnings.push_back(fmt::format("{}: {}", reason, message));
    }
  }
}

// Where every container is simulated the node says so, once for all.
void Prober::AskNode(PodRun& run) {
  auto node = calls_.Get(client::kNodes, {"", run.node()});
  if (!node) return;
  run.runtime = (*node)["status"]["nodeInfo"]["containerRuntimeVersion"].AsString();
  if (std::string says = RunsNothing(*node); !says.empty()) {
    run.simulated = {"v1/nodes/" + run.node(), std::move(says)};
  }
}

Status Prober::Remove(const PodRun& run) {
  if (run.refused) return {};
  auto deleted = calls_.Delete(client::kPods, {run.ns, run.name});
  if (!deleted && deleted.error().code != 404) return Fail(deleted.error());
  const Duration limit = run.silent() ? Duration{0} : limits_.gone;
  const Duration end = clock_.Monotonic() + limit;
  while (true) {
    auto pod = calls_.Get(client::kPods, {run.ns, run.name});
    if (!pod && pod.error().code == 404) return {};
    if (!pod) return Fail(pod.error());
    if (clock_.Monotonic() >= end) {
      return Fail(Timeout(fmt::format("Pod {}/{} is still there {} after its deletion", run.ns,
                                      run.name, FormatDuration(limit)),
                          0));
    }
    sleep_(kLookEvery);
  }
}

}  // namespace sextant::preflight
