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
constexpr std::string_view kContainer = "cuda-check";
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
  const Duration end = clock_.Monotonic() + limits_.run;
  std::optional<Duration> bound;
  while (clock_.Monotonic() < end) {
    auto pod = calls_.Get(client::kPods, {ns_, run.name});
    if (!pod) {
      run.lost = pod.error();
      return run;
    }
    run.pod = *std::move(pod);
    SeeAllocated(run);
    if (!bound && !run.node().empty()) bound = clock_.Monotonic();
    if (Ended(run, bound ? clock_.Monotonic() - *bound : Duration{0})) break;
    sleep_(kLookEvery);
  }
  if (run.container()["state"]["running"] || run.container()["state"]["terminated"]) {
    auto log = calls_.PodLog({ns_, run.name}, std::string(kContainer), kMaxLog);
    if (log) {
      run.log = *std::move(log);
    } else {
      run.log_error = log.error();
    }
  }
  auto events = calls_.List(client::kCoreEvents,
                            {.ns = ns_, .field_selector = "involvedObject.name=" + run.name});
  for (const Object& event : events ? events->items : std::vector<Object>()) {
    if (event["type"].AsString() != "Warning" || run.warnings.size() == kMaxWarnings) continue;
    run.warnings.push_back(
        fmt::format("{}: {}", event["reason"].AsString(), event["message"].AsString()));
  }
  return run;
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
