#include "agent/node_agent.h"

#include <array>

#include "base/log.h"

namespace sextant::agent {
namespace {

using api::Object;

constexpr Duration kRetryAfter = std::chrono::seconds(1);

// Prefixes of the keys that GFD and the GPU operator write (nvidia-stack.md 3 and 8.2).
constexpr std::array<std::string_view, 8> kOwned = {
    "nvidia.com/gpu.",  "nvidia.com/cuda.", "nvidia.com/mig",   "nvidia.com/gfd.",
    "nvidia.com/vgpu.", "nvidia.com/mps.",  "sextant.dev/gpu.", gpu::kPciLabel};

}  // namespace

bool IsAgentLabel(std::string_view key) {
  for (std::string_view prefix : kOwned)
    if (key.starts_with(prefix)) return true;
  return false;
}

NodeAgent::NodeAgent(NodeAgentParts parts, NodeAgentOptions options)
    : parts_(parts),
      options_(std::move(options)),
      plugin_(std::make_shared<GpuPlugin>(
          parts.client.executor(), parts.files,
          GpuPluginOptions{.state_directory = options_.state_directory})),
      slices_(parts.client, {.node = options_.node}) {}

NodeAgent::~NodeAgent() {
  *alive_ = false;
  parts_.client.executor().Cancel(retry_);
  if (registered_) kubelet_->Unregister(plugin_->resource());
}

void NodeAgent::Start(plugin::Registrar& kubelet) {
  kubelet_ = &kubelet;
  host_handle_ = parts_.host.OnChange([this] { OnCards(); });
  OnCards();
}

// A plugin without cards is not registered, as NVIDIA's waits then (k8s-device-plugin,
// startPlugins). A kubelet that came back would take "none" for the truth and fail the Pods that
// hold cards.
void NodeAgent::OnCards() {
  const gpu::Inventory& cards = parts_.host.cards();
  plugin_->SetInventory(cards);
  if (!registered_ && plugin_->HasDevices()) {
    registered_ = true;
    kubelet_->Register(plugin_);
  }
  by_dra_ = by_dra_ || OffersByDra(cards);
  if (by_dra_) slices_.Publish(DraDevices(cards));
  SyncLabels();
}

void NodeAgent::SyncLabels() {
  parts_.client.executor().Cancel(retry_);
  retry_ = 0;
  parts_.client.Get(
      client::kNodes, {"", options_.node}, [this, alive = alive_](Result<Object> node) {
        if (!*alive) return;
        if (node) return PatchLabels(*node);
        if (node.error().Is("NotFound")) return;  // a node that is gone needs no labels
        log::Warning("agent", "cannot read node {}: {}", options_.node, node.error().message);
        RetryLater();
      });
}

void NodeAgent::RetryLater() {
  parts_.client.executor().Cancel(retry_);  // two calls under way may both fail
  retry_ = parts_.client.executor().After(kRetryAfter, [this] { SyncLabels(); });
}

void NodeAgent::PatchLabels(const Object& node) {
  const auto wanted = gpu::NodeLabels(parts_.host.cards(), options_.labels);
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
    if (!IsAgentLabel(key) || wanted.contains(std::string(key))) continue;
    labels[key].SetNull();
    ++changes;
  }
  if (changes == 0) return;
  parts_.client.Patch(
      client::kNodes, {"", options_.node}, client::PatchType::kMerge, std::move(edit).Finish(),
      {.field_manager = "gpu-feature-discovery"}, [this, alive = alive_](Result<Object> result) {
        if (!*alive || result || result.error().Is("NotFound")) return;
        log::Warning("agent", "cannot label node {}: {}", options_.node, result.error().message);
        RetryLater();
      });
}

}  // namespace sextant::agent
