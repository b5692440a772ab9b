// When a lab is ready: every node Ready and showing the GPUs that its pool says it should. Cards of
// a pool that allocates by DRA are no device plugin's: such a node shows none. Threads: the
// informers' loop.
#pragma once

#include <functional>
#include <memory>
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
  void Check();
  // What this node lacks, empty for nothing.
  std::string MissingOf(const api::Object& node) const;

  client::Informer& nodes_;
  client::Informer& pools_;
  const PoolOf pool_of_;
  size_t wanted_ = 0;
  // The node that was not ready at the last look: until it is, no other need be looked at.
  mutable std::string waits_for_;
  std::function<void()> ready_;
  std::vector<std::unique_ptr<client::Subscription>> subscriptions_;
};

}  // namespace sextant::lab
