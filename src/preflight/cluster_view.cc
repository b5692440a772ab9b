#include "preflight/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/amounts.h"

namespace sextant::preflight {
namespace {

using api::Object;
using api::Value;

constexpr std::string_view kPresentLabel = "nvidia.com/gpu.present";
constexpr size_t kNodesNamed = 4;

int64_t GpuCount(Value list) {
  const Value amount = list[kGpu];
  return amount.IsInt() ? amount.AsInt() : std::atoll(std::string(amount.AsString("0")).c_str());
}

std::string TaintText(Value taint) {
  const std::string_view value = taint["value"].AsString();
  return fmt::format("{}{}{}:{}", taint["key"].AsString(), value.empty() ? "" : "=", value,
                     taint["effect"].AsString());
}

// The capability Pod tolerates the GPU taint; a cordon is told apart; a node that is not ready is
// no candidate at all.
bool KeepsAway(Value taint) {
  const std::string_view key = taint["key"].AsString();
  return taint["effect"].AsString() != "PreferNoSchedule" && key != kGpu &&
         key != "node.kubernetes.io/unschedulable" && key != "node.kubernetes.io/not-ready" &&
         key != "node.kubernetes.io/unreachable";
}

GpuNode Read(const Object& object) {
  GpuNode node;
  node.name = object.name();
  const Value labels = object["metadata"]["labels"];
  node.labelled =
      labels[kPciLabel].AsString() == "true" || labels[kPresentLabel].AsString() == "true";
  node.ready_message = "the node has no Ready condition";
  for (Value condition : object["status"]["conditions"].items()) {
    if (condition["type"].AsString() != "Ready") continue;
    node.ready = condition["status"].AsString() == "True";
    node.ready_message = condition["message"].AsString();
  }
  node.capacity = GpuCount(object["status"]["capacity"]);
  node.allocatable = GpuCount(object["status"]["allocatable"]);
  node.cordoned = object["spec"]["unschedulable"].AsBool();
  for (Value taint : object["spec"]["taints"].items()) {
    if (KeepsAway(taint)) node.taints.push_back(TaintText(taint));
  }
  node.facts = fmt::format("{} x {}, driver {}", labels["nvidia.com/gpu.count"].AsString("?"),
                           labels["nvidia.com/gpu.product"].AsString("?"),
                           labels["nvidia.com/cuda.driver-version.full"].AsString("?"));
  return node;
}

int64_t CardsOf(const Object& pod) {
  const api::Amounts limits = api::PodAmounts(pod.root(), "limits");
  const auto cards = limits.find(kGpu);
  return cards == limits.end() ? 0 : cards->second.Value();
}

// What the scheduler's sentence says, the most telling first (kube-scheduler's plugins' texts).
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSentences = {{
    {"volume node affinity", "VOLUME_AFFINITY"},
    {"had untolerated taint", "TAINT"},
    {"were unschedulable", "CORDONED"},
    {"affinity/selector", "AFFINITY"},
    {"affinity rules", "AFFINITY"},
    {"topology spread", "AFFINITY"},
    {"Insufficient", "INSUFFICIENT"},
    {"Too many pods", "INSUFFICIENT"},
}};

// What stands between a node and one more Pod with a card: code and text, empty where nothing is
// seen.
std::pair<std::string_view, std::string> Obstacle(const GpuNode& node, int64_t requested) {
  if (!node.ready) return {"NOT_READY", "is not Ready: " + node.ready_message};
  if (node.cordoned) return {"CORDONED", "is cordoned"};
  if (!node.taints.empty()) {
    return {"TAINT", fmt::format("has the taint {}", fmt::join(node.taints, ", "))};
  }
  if (node.allocatable - requested < 1) {
    return {"INSUFFICIENT",
            fmt::format("has no free card: Pods ask for {} of {}", requested, node.allocatable)};
  }
  return {};
}

}  // namespace

std::vector<GpuNode> GpuNodesOf(const std::vector<Object>& nodes) {
  std::vector<GpuNode> out;
  for (const Object& object : nodes) {
    GpuNode node = Read(object);
    if (node.labelled || node.capacity > 0) out.push_back(std::move(node));
  }
  std::sort(out.begin(), out.end(),
            [](const GpuNode& a, const GpuNode& b) { return a.name < b.name; });
  return out;
}

// Ours, fake-gpu-operator's and KWOK's marks, and the driver version that fake-gpu-operator gives
// every card (reference/simulators.md 1.4, 1.5).
bool SaysSimulated(const Object& node) {
  const Value labels = node["metadata"]["labels"];
  return labels["sextant.dev/simulated"].AsString() == "true" ||
         labels["run.ai/fake.gpu"].AsString() == "true" ||
         labels.Has("run.ai/simulated-gpu-node-pool") ||
         node["metadata"]["annotations"]["kwok.x-k8s.io/node"].AsString() == "fake" ||
         labels["nvidia.com/cuda.driver-version.full"].AsString() == "470.129.06";
}

// A lab whose runtime is `simulated` (kubelet/node_status.cc), and KWOK's nodes.
std::string RunsNothing(const Object& node) {
  const std::string_view runtime = node["status"]["nodeInfo"]["containerRuntimeVersion"].AsString();
  if (runtime.starts_with("sextant-simulated://")) {
    return fmt::format("containerRuntimeVersion {}", runtime);
  }
  if (node["metadata"]["annotations"]["kwok.x-k8s.io/node"].AsString() == "fake") {
    return "annotation kwok.x-k8s.io/node: fake";
  }
  return {};
}

std::map<std::string, int64_t> RequestedCards(const std::vector<Object>& pods) {
  std::map<std::string, int64_t> out;
  for (const Object& pod : pods) {
    const std::string_view phase = pod["status"]["phase"].AsString();
    if (phase == "Succeeded" || phase == "Failed") continue;
    const std::string_view node = pod["spec"]["nodeName"].AsString();
    if (!node.empty()) out[std::string(node)] += CardsOf(pod);
  }
  return out;
}

Unplaced ExplainUnplaced(const std::vector<GpuNode>& nodes,
                         const std::map<std::string, int64_t>& requested,
                         std::string_view message) {
  Unplaced out;
  // A full node is the nearest to take the Pod, then one with a taint, then a cordoned one.
  constexpr std::array<std::string_view, 3> kNearest = {"INSUFFICIENT", "TAINT", "CORDONED"};
  size_t nearest = kNearest.size();
  bool all = true;
  std::vector<std::string> texts;
  for (const GpuNode& node : nodes) {
    const auto asked = requested.find(node.name);
    auto [code, text] = Obstacle(node, asked == requested.end() ? 0 : asked->second);
    all = all && !code.empty();
    if (code.empty()) continue;
    const auto at = std::find(kNearest.begin(), kNearest.end(), code);
    nearest = std::min(nearest, static_cast<size_t>(at - kNearest.begin()));
    if (texts.size() < kNodesNamed) texts.push_back(fmt::format("{} {}", node.name, text));
    out.by_node.emplace_back(node.name, std::move(text));
  }
  out.summary = message;
  if (all && nearest < kNearest.size()) {
    out.code = kNearest.at(nearest);
    if (out.by_node.size() > texts.size()) {
      texts.push_back(fmt::format("{} more", out.by_node.size() - texts.size()));
    }
    out.summary = fmt::format("{} (the scheduler: {})", fmt::join(texts, "; "), message);
    return out;
  }
  out.code = "UNSCHEDULABLE";
  for (const auto& [words, code] : kSentences) {
    if (message.find(words) == std::string_view::npos) continue;
    out.code = code;
    break;
  }
  return out;
}

}  // namespace sextant::preflight
