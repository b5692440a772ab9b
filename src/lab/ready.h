// When a lab is ready: every node Ready and showing the GPUs that its pool says it should: as
// allocatable, or in ResourceSlices where the pool allocates by DRA. What a change touches is
// looked at, and nothing else. Threads: the informers' loop.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/informer.h"

namespace sextant::lab {

class ReadyWatch {
 public:
  using PoolOf = std::function<std::string(const api::Object& node)>;
  ReadyWatch(client::SharedInformers& informers, PoolOf pool_of);

  // Runs `ready` once, when at least `nodes` nodes are ready. Takes the place of an earlier one.
  void OnReady(size_t nodes, std::function<void()> ready);
  void Forget() { ready_ = nullptr; }
  // For a person: "gpu-lab-worker shows 0 of 8 GPUs"; empty when nothing is missing.
  std::string Missing(size_t nodes) const;

 private:
  void Look(const std::string& node);
  void LookAtAll();
  void Check();
  // What this node lacks, empty for nothing.
  std::string MissingOf(const api::Object& node) const;
  int64_t GpusShown(const api::Object& node, bool by_plugin) const;

  client::Informer& nodes_;
  client::Informer& pools_;
  client::Informer& slices_;
  const PoolOf pool_of_;
  size_t wanted_ = 0;
  std::set<std::string> unready_;  // names of nodes that lack something
  std::function<void()> ready_;
  std::vector<std::unique_ptr<client::Subscription>> subscriptions_;
};

}  // namespace sextant::lab
