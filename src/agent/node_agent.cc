#include "agent/node_agent.h"

namespace sextant::agent {

NodeAgent::NodeAgent(NodeAgentParts parts, NodeAgentOptions options)
    : parts_(parts),
      options_(std::move(options)),
      plugin_(std::make_shared<GpuPlugin>(
          parts.client.executor(), parts.files,
          GpuPluginOptions{.state_directory = options_.state_directory})),
      slices_(parts.client, {.node = options_.node}) {}

NodeAgent::~NodeAgent() {
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
}

}  // namespace sextant::agent
