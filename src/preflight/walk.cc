#include "preflight/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/json.h"

namespace sextant::preflight {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr std::string_view kPciLabel = "feature.node.kubernetes.io/pci-10de.present";
constexpr std::string_view kPresentLabel = "nvidia.com/gpu.present";
constexpr size_t kMaxChecks = 64;
constexpr int64_t kMaxLog = 1 << 20;
constexpr Duration kLookEvery = std::chrono::milliseconds(20);
constexpr std::string_view kNotAsked = "not asked: --probe runs the capability Pod";
constexpr std::string_view kContainer = "cuda-check";

int64_t GpuCount(Value list) {
  const Value amount = list[kGpu];
  return amount.IsInt() ? amount.AsInt() : std::atoll(std::string(amount.AsString("0")).c_str());
}

std::set<std::string> UuidsIn(std::string_view text) {
  constexpr std::string_view kPrefix = "GPU-";
  constexpr size_t kLength = 40;  // "GPU-" and a UUID
  std::set<std::string> found;
  for (size_t at = text.find(kPrefix); at != std::string_view::npos;
       at = text.find(kPrefix, at + 1)) {
    const std::string_view candidate = text.substr(at, kLength);
    const bool good = candidate.size() == kLength &&
                      std::all_of(candidate.begin() + 4, candidate.end(), [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
                      });
    if (good) found.emplace(candidate);
  }
  return found;
}

class Walker {
 public:
  Walker(client::Client& client, const Clock& clock, Random& random, const WalkOptions& options)
      : calls_(client), clock_(clock), options_(options) {
    report_.run_id = NewUuid(random);
    report_.started = clock.Now();
    report_.checks.reserve(kMaxChecks);  // references to checks stay good
    report_.context = options.context;
    pod_name_ = "gpu-preflight-" + NameSuffix(random);
  }

  Report Run() {
    const bool reached = Reach();
    Driver();
    Toolkit();
    Plugin();
    if (reached && options_.probe && !Blocked()) StartProbe();
    Scheduler();
    PodLayer();
    Serving();
    BlockAbove();
    EndProbe();
    return std::move(report_);
  }

 private:
  Check& Add(Layer layer, std::string_view id, bool required = true) {
    Check check;
    check.layer = layer;
    check.id = id;
    check.required = required;
    check.started = clock_.Now();
    report_.checks.push_back(std::move(check));
    return report_.checks.back();
  }
  void Pass(Check& check, std::string summary) {
    check.status = CheckStatus::kPassed;
    check.summary = std::move(summary);
    check.took = clock_.Now() - check.started;
  }
  void Refuse(Check& check, std::string_view code, std::string summary) {
    check.status = CheckStatus::kFailed;
    check.code = code;
    check.summary = std::move(summary);
    check.took = clock_.Now() - check.started;
  }
  static void Unsupported(Check& check, std::string reason) {
    check.status = CheckStatus::kUnsupported;
    check.reason = std::move(reason);
  }
  static void Skip(Check& check, std::string reason) {
    check.status = CheckStatus::kSkipped;
    check.reason = std::move(reason);
  }
  static void See(Check& check, std::string source, std::string ref, std::string excerpt) {
    check.observations.push_back({std::move(source), std::move(ref), std::move(excerpt)});
  }
  bool Blocked() const { return StopOf(report_.checks) != nullptr; }
  bool simulated() const { return report_.mode == Mode::kSimulated; }

  // What kind of cluster it is, and its nodes. False when the API cannot be reached.
  bool Reach() {
    auto version = calls_.GetRaw("/version");
    if (!version) {
      reach_error_ = version.error().message;
      return false;
    }
    if (auto parsed = api::ParseJson(*version)) {
      report_.server_version = (*parsed)["gitVersion"].AsString();
    }
    report_.mode = report_.server_version.find("+sextant") != std::string::npos ? Mode::kSimulated
                                                                                : Mode::kReal;
    auto nodes = calls_.List(client::kNodes);
    if (!nodes) {
      reach_error_ = nodes.error().message;
      return false;
    }
    for (const Object& node : nodes->items) {
      const Value labels = node["metadata"]["labels"];
      if (labels[kPciLabel].AsString() == "true" || labels[kPresentLabel].AsString() == "true" ||
          node["status"]["capacity"].Has(kGpu)) {
        gpu_nodes_.push_back(node);
      }
    }
    node_count_ = nodes->items.size();
    return true;
  }

  void Driver() {
    Check& nvml = Add(Layer::kDriver, "host.nvml", false);
    Unsupported(nvml, simulated() ? "simulated cards: there is no NVML"
                                  : "the host is not visible through the Kubernetes API");
    Check& labels = Add(Layer::kDriver, "node.labels");
    if (!reach_error_.empty()) {
      labels.status = CheckStatus::kError;
      labels.summary = "the cluster cannot be asked: " + reach_error_;
      return;
    }
    labels.expected = fmt::format("a node with {}=true", kPciLabel);
    if (gpu_nodes_.empty()) {
      labels.observed = fmt::format("none of {} nodes", node_count_);
      return Refuse(
          labels, "NFD_LABEL_MISSING",
          fmt::format("none of {} nodes is labelled as having an NVIDIA GPU", node_count_));
    }
    std::string summary;
    for (const Object& node : gpu_nodes_) {
      const Value l = node["metadata"]["labels"];
      const std::string text = fmt::format("{}: {} x {}, driver {}", node.name(),
                                           l["nvidia.com/gpu.count"].AsString("?"),
                                           l["nvidia.com/gpu.product"].AsString("?"),
                                           l["nvidia.com/cuda.driver-version.full"].AsString("?"));
      See(labels, "kube", fmt::format("v1/nodes/{}", node.name()), text);
      if (summary.empty()) summary = text;
    }
    if (gpu_nodes_.size() > 1) summary += fmt::format(" and {} more nodes", gpu_nodes_.size() - 1);
    Pass(labels, summary + (simulated() ? " (simulated)" : ""));
  }

  void Toolkit() {
    Unsupported(Add(Layer::kToolkit, "rt.cdi", false),
                simulated() ? "simulated nodes have no container runtime configuration"
                            : "the runtime's configuration is not visible through the API");
    Add(Layer::kToolkit, "rt.probe");  // decided when the Pod has run
  }

  void Plugin() {
    Check& registered = Add(Layer::kPlugin, "dp.registered");
    Check& capacity = Add(Layer::kPlugin, "node.capacity");
    if (Blocked()) return;
    int64_t total = 0;
    for (const Object& node : gpu_nodes_) {
      const int64_t count = GpuCount(node["status"]["capacity"]);
      See(registered, "kube", fmt::format("v1/nodes/{} status.capacity", node.name()),
          fmt::format("{}: {}", kGpu, count));
      total += count;
    }
    if (total == 0) {
      return Refuse(
          registered, "NOT_REGISTERED",
          fmt::format("no node has {} in its capacity: no device plugin is registered", kGpu));
    }
    Pass(registered, fmt::format("{} {} registered", total, kGpu));
    int64_t allocatable = 0;
    for (const Object& node : gpu_nodes_) {
      const int64_t has = GpuCount(node["status"]["capacity"]);
      const int64_t offers = GpuCount(node["status"]["allocatable"]);
      See(capacity, "kube", fmt::format("v1/nodes/{} status.allocatable", node.name()),
          fmt::format("{}: {} of {}", kGpu, offers, has));
      allocatable += offers;
    }
    capacity.expected = fmt::format("{}", total);
    capacity.observed = fmt::format("{}", allocatable);
    if (allocatable == 0) {
      return Refuse(capacity, "ALLOCATABLE_ZERO", "cards are registered but none is allocatable");
    }
    if (allocatable < total) {
      return Refuse(capacity, "UNHEALTHY_DEVICE",
                    fmt::format("{} of {} cards are allocatable", allocatable, total));
    }
    Pass(capacity, fmt::format("{} allocatable on {} node(s)", allocatable, gpu_nodes_.size()));
  }

  Object ProbePod() const {
    api::Editor edit;
    api::Mut root = edit.Root();
    root.Set("kind", "Pod");
    root.Set("apiVersion", "v1");
    root["metadata"].Set("name", pod_name_);
    root["metadata"].Set("namespace", options_.ns);
    root["metadata"]["labels"].Set("app.kubernetes.io/managed-by", "sextant-preflight");
    api::Mut spec = root["spec"];
    spec.Set("restartPolicy", "Never");
    spec.Set("automountServiceAccountToken", false);
    api::Mut toleration = spec["tolerations"].Append();
    toleration.Set("key", kGpu);
    toleration.Set("operator", "Exists");
    api::Mut container = spec["containers"].Append();
    container.Set("name", kContainer);
    container.Set("image", "nvidia/cuda:12.4.1-base-ubuntu22.04");
    container["command"].Append().SetString("bash");
    container["command"].Append().SetString("-lc");
    container["args"].Append().SetString("nvidia-smi && nvidia-smi -L");
    container["resources"]["limits"].Set(kGpu, "1");
    return std::move(edit).Finish();
  }

  // Runs the capability Pod to its end, or as far as it comes.
  void StartProbe() {
    auto created = calls_.Create(client::kPods, {options_.ns, ""}, ProbePod(),
                                 {.field_manager = "sextant-preflight"});
    if (!created) {
      admit_error_ = created.error();
      return;
    }
    probing_ = true;
    const Duration end = clock_.Monotonic() + options_.probe_limit;
    while (clock_.Monotonic() < end) {
      auto pod = calls_.Get(client::kPods, {options_.ns, pod_name_});
      if (!pod) break;
      pod_ = *std::move(pod);
      const std::string_view phase = pod_["status"]["phase"].AsString();
      if (phase == "Succeeded" || phase == "Failed") break;
      if (Condition("PodScheduled")["reason"].AsString() == "Unschedulable") break;
      options_.sleep(kLookEvery);
    }
    auto log = calls_.PodLog({options_.ns, pod_name_}, std::string(kContainer), kMaxLog);
    if (log) report_.pod_log = *std::move(log);
  }

  Value Condition(std::string_view type) const {
    for (Value condition : pod_["status"]["conditions"].items())
      if (condition["type"].AsString() == type) return condition;
    return {};
  }

  void Scheduler() {
    Check& admitted = Add(Layer::kScheduler, "api.admit");
    Check& place = Add(Layer::kScheduler, "sched.place");
    if (!options_.probe) {
      Skip(admitted, std::string(kNotAsked));
      Skip(place, std::string(kNotAsked));
      return;
    }
    if (admit_error_) {
      const std::string code =
          admit_error_->message.find("quota") != std::string::npos ? "QUOTA" : "POLICY";
      Refuse(admitted, code, admit_error_->message);
    } else if (probing_) {
      Pass(admitted, fmt::format("Pod {}/{} was accepted", options_.ns, pod_name_));
    }
    if (!probing_) return;
    const std::string_view node = pod_["spec"]["nodeName"].AsString();
    const Value scheduled = Condition("PodScheduled");
    See(place, "kube", fmt::format("v1/pods/{}/{}", options_.ns, pod_name_),
        std::string(scheduled["message"].AsString()));
    if (node.empty()) {
      const std::string message(scheduled["message"].AsString("no scheduler has placed the Pod"));
      const bool full = message.find("Insufficient") != std::string::npos;
      return Refuse(place, full ? "INSUFFICIENT" : "AFFINITY", message);
    }
    Pass(place, fmt::format("placed on {}", node));
  }

  void PodLayer() {
    const size_t first = report_.checks.size();
    Add(Layer::kPod, "kubelet.admit");
    Add(Layer::kPod, "ctr.start");
    Add(Layer::kPod, "ctr.identity");
    Unsupported(Add(Layer::kPod, "ctr.cuda", false),
                simulated() ? "simulated cards compute nothing" : "no CUDA program is run yet");
    Add(Layer::kPod, "free.after");
    for (size_t i = first; i < report_.checks.size(); ++i) {
      Check& check = report_.checks[i];
      if (!options_.probe && check.status == CheckStatus::kSkipped) {
        Skip(check, std::string(kNotAsked));
      }
    }
    if (!options_.probe) {
      Skip(Find("rt.probe"), std::string(kNotAsked));
      return;
    }
    if (!probing_ || Blocked()) return;
    JudgePod();
  }

  Check& Find(std::string_view id) {
    for (Check& check : report_.checks)
      if (check.id == id) return check;
    return report_.checks.front();
  }

  void JudgePod() {
    const Value status = pod_["status"];
    const std::string_view phase = status["phase"].AsString();
    const std::string reason(status["reason"].AsString());
    const std::string where = fmt::format("v1/pods/{}/{}", options_.ns, pod_name_);
    Check& admit = Find("kubelet.admit");
    See(admit, "kube", where, fmt::format("phase {} reason {}", phase, reason));
    if (reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" ||
        reason.starts_with("OutOf")) {
      return Refuse(admit, reason.starts_with("OutOf") ? "OUT_OF_GPU" : "UNEXPECTED_ADMISSION",
                    std::string(status["message"].AsString(reason)));
    }
    Pass(admit, "the kubelet admitted the Pod and allocated one card");
    const Value state = status["containerStatuses"].at(0)["state"];
    Check& start = Find("ctr.start");
    See(start, "kube", where + " status.containerStatuses", api::ToJson(state));
    const Value ended = state["terminated"];
    if (phase == "Succeeded" && ended["exitCode"].AsInt(-1) == 0) {
      Pass(Find("rt.probe"), "a container with a GPU was started");
      Pass(start, "nvidia-smi ran in the container and ended with 0");
    } else {
      const std::string why(ended ? ended["reason"].AsString("ended")
                                  : state["waiting"]["reason"].AsString("not started"));
      return Refuse(start, "START_ERROR",
                    fmt::format("{}: {}", why,
                                ended ? ended["message"].AsString(
                                            fmt::format("exit code {}", ended["exitCode"].AsInt()))
                                      : state["waiting"]["message"].AsString()));
    }
    Check& identity = Find("ctr.identity");
    const std::set<std::string> uuids = UuidsIn(report_.pod_log);
    identity.expected = "exactly 1 GPU";
    identity.observed = fmt::format("{}", fmt::join(uuids, " "));
    See(identity, "log", where + "/log", report_.pod_log);
    if (uuids.size() == 1) {
      Pass(identity, fmt::format("the container sees {}", *uuids.begin()));
    } else {
      Refuse(identity, uuids.empty() ? "GPU_NONE" : "GPU_EXTRA",
             fmt::format("the container sees {} GPUs instead of one", uuids.size()));
    }
  }

  void Serving() {
    Check& model = Add(Layer::kServing, "serve.ready", false);
    Skip(model, "no serving workload was named");
  }

  // What stands above the lowest failure was not judged, whatever it says.
  void BlockAbove() {
    const Check* stop = StopOf(report_.checks);
    for (Check& check : report_.checks) {
      if (check.status != CheckStatus::kSkipped || !check.reason.empty()) continue;
      if (stop && check.layer >= stop->layer) {
        check.blocked_by = {stop->id};
        check.reason = "blocked by " + stop->id;
      } else {
        check.reason = "not observed";
      }
    }
  }

  // Removes the Pod; afterwards the card must be free again, whatever came before.
  void EndProbe() {
    if (!probing_) return;
    Check& free = Find("free.after");
    free.blocked_by.clear();
    free.reason.clear();
    (void)calls_.Delete(client::kPods, {options_.ns, pod_name_}, {.grace_period_s = 0});
    auto gone = calls_.Get(client::kPods, {options_.ns, pod_name_});
    See(free, "kube", fmt::format("v1/pods/{}/{}", options_.ns, pod_name_),
        gone ? "still there" : gone.error().message);
    if (gone) {
      return Refuse(free, "TERMINATING_LONG", "the Pod is still there after its deletion");
    }
    Pass(free, "the Pod is gone, its card can be scheduled again");
  }

  client::Blocking calls_;
  const Clock& clock_;
  const WalkOptions& options_;
  Report report_;
  std::string reach_error_;
  std::vector<Object> gpu_nodes_;
  size_t node_count_ = 0;
  std::string pod_name_;
  std::optional<Error> admit_error_;
  bool probing_ = false;
  Object pod_;
};

}  // namespace

Report Walk(client::Client& client, const Clock& clock, Random& random,
            const WalkOptions& options) {
  return Walker(client, clock, random, options).Run();
}

}  // namespace sextant::preflight
