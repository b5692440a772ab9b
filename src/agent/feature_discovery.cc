#include "agent/feature_discovery.h"

#include <array>

#include "base/log.h"

namespace sextant::agent {
namespace {

using api::Object;

constexpr Duration kRetryAfter = std::chrono::seconds(1);
constexpr Duration kLookEvery = std::chrono::seconds(60);

// Prefixes of the keys that GFD and the GPU operator write (nvidia-stack.md 3 and 8.2).
constexpr std::array<std::string_view, 8> kOwned = {
    "nvidia.com/gpu.",  "nvidia.com/cuda.", "nvidia.com/mig",   "nvidia.com/gfd.",
    "nvidia.com/vgpu.", "nvidia.com/mps.",  "sextant.dev/gpu.", gpu::kPciLabel};

}  // namespace

bool IsGpuLabel(std::string_view key) {
  for (std::string_view prefix : kOwned)
    if (key.starts_with(prefix)) return true;
  return false;
}

FeatureDiscovery::FeatureDiscovery(client::Client& client, host::GpuHost& host, std::string node,
                                   gpu::LabelOptions options)
    : client_(client), host_(host), node_(std::move(node)), options_(options) {
  host_handle_ = host_.OnChange([this] { Look(); });
  // A lab's many nodes without a card are looked at too, but not while it starts.
  host_.cards().cards.empty() ? LookAfter(kLookEvery) : Look();
}

FeatureDiscovery::~FeatureDiscovery() {
  *alive_ = false;
  client_.executor().Cancel(timer_);
}

void FeatureDiscovery::LookAfter(Duration wait) {
  client_.executor().Cancel(timer_);  // two calls under way may both fail
  timer_ = client_.executor().After(wait, [this] { Look(); });
}

void FeatureDiscovery::Look() {
  client_.executor().Cancel(std::exchange(timer_, 0));
  if (!host_.cards().cards.empty()) LookAfter(kLookEvery);
  client_.Get(client::kNodes, {"", node_}, [this, alive = alive_](Result<Object> node) {
    if (!*alive) return;
    if (node) return PatchLabels(*node);
    if (node.error().Is("NotFound")) return;  // a node that is gone needs no labels
    log::Warning("agent", "cannot read node {}: {}", node_, node.error().message);
    LookAfter(kRetryAfter);
  });
}

void FeatureDiscovery::PatchLabels(const Object& node) {
  const auto wanted = gpu::NodeLabels(host_.cards(), options_);
  const api::Value now = node["metadata"]["labels"];
  api::Editor edit;
  api::Mut labels = edit.Root()["metadata"]["labels"];
  size_t changes = 0;
  for (const auto& [key, value] : wanted) {
    if (now.Has(key) && now[key].AsString() == value) continue;
    labels.Set(key, value);
    ++changes;
  }
  for (auto [key, value] : now.members()) {
    if (!IsGpuLabel(key) || wanted.contains(std::string(key))) continue;
    labels[key].SetNull();
    ++changes;
  }
  if (changes == 0) return;
  client_.Patch(client::kNodes, {"", node_}, client::PatchType::kMerge, std::move(edit).Finish(),
                {.field_manager = "gpu-feature-discovery"},
                [this, alive = alive_](Result<Object> result) {
                  if (!*alive || result || result.error().Is("NotFound")) return;
                  log::Warning("agent", "cannot label node {}: {}", node_, result.error().message);
                  LookAfter(kRetryAfter);
                });
}

}  // namespace sextant::agent
