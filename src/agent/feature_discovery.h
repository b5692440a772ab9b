// One node's feature discovery: keeps the node's GPU labels as its host's cards are, what NVIDIA's
// GPU feature discovery and node feature discovery do. It is no part of the device plugin: labels
// hold whether that runs or not.
//
//   FeatureDiscovery labels(client, machine, "gpu-lab-worker");
//   // destroyed: the labels stay, as with NVIDIA's stack
//
// Labels follow every change of the cards at once; as long as there are cards they are looked at
// once a minute (GFD's --sleep-interval), so that what somebody else has changed is put right.
// Where there are none from the start, labels that have stayed behind go after the first minute.
// It learns of cards from its host only (DESIGN, law 8). Threads: everything on client.executor().
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "gpu/labels.h"
#include "host/machine.h"

namespace sextant::agent {

class FeatureDiscovery {
 public:
  FeatureDiscovery(client::Client& client, host::GpuHost& host, std::string node,
                   gpu::LabelOptions options = {});
  ~FeatureDiscovery();
  FeatureDiscovery(const FeatureDiscovery&) = delete;
  FeatureDiscovery& operator=(const FeatureDiscovery&) = delete;

 private:
  void Look();
  void LookAfter(Duration wait);
  void PatchLabels(const api::Object& node);

  client::Client& client_;
  host::GpuHost& host_;
  const std::string node_;
  const gpu::LabelOptions options_;
  std::shared_ptr<void> host_handle_;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The labels that feature discovery owns: it removes those that no longer hold.
bool IsGpuLabel(std::string_view key);

}  // namespace sextant::agent
