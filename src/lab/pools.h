// Pools: which simulated GPUs, CPU and memory each node has.
//
// A node that carries the label run.ai/simulated-gpu-node-pool=<pool> has the machine that the
// GPUPool object of that name describes; any other node has none of its own. A ConfigMap `topology`
// (key topology.yml, in both schemas that fake-gpu-operator reads) is taken over into GPUPool
// objects: it wins over what flags and files said. What it no longer names, or what it named when
// it is deleted, gets its form of flag or file back, or goes where there is none. Changes of
// labels, pools and the ConfigMap are followed at once.
//
// What the controller writes: the simulated machines of this process; on nodes the labels that
// node feature discovery and the GPU operator would set, zone and rack, and the taint where the
// pool asks for it; the pools' status. What is wrong (a node's pool that there is not, a pool whose
// model is not known, a ConfigMap that cannot be read) is told once, as a Warning event of that
// object and one line of the log, and again only when it has changed.
// Threads: everything on client.executor().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/events.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "host/machine.h"
#include "lab/config.h"
#include "lab/topology.h"

namespace sextant::lab {

inline constexpr std::string_view kPoolLabel = "run.ai/simulated-gpu-node-pool";

struct PoolsOptions {
  std::string cluster;            // goes into the cards' UUIDs
  std::vector<PoolConfig> first;  // by flag or file
};

api::Object PoolObject(const PoolConfig& pool);
// Whether the API server will take such a pool, and nodes can carry its name as a label. The Error
// names the field, also as its first cause.
Status CheckPool(const PoolConfig& pool);

// The key of the label that names a node's pool: the usual one unless a ConfigMap `topology` of
// these says another.
std::string PoolLabelKey(const std::vector<api::Object>& topologies);
// The ConfigMaps that PoolLabelKey wants.
inline constexpr std::string_view kTopologyName = "topology";

// The cards of a node that carries `pool` (a GPUPool object).
Result<gpu::Inventory> CardsOfPool(const api::Object& pool, const std::string& cluster,
                                   const std::string& node);

class Pools {
 public:
  // The machine of a node, or nullptr where this process has none.
  using MachineOf = std::function<host::SimulatedMachine*(const std::string& node)>;

  Pools(client::Client& client, client::SharedInformers& informers, MachineOf machines,
        PoolsOptions options);
  ~Pools() { *alive_ = false; }
  void Start();
  // The name of the pool that the node carries; empty for none.
  std::string PoolOf(const api::Object& node) const;

 private:
  using Done = std::move_only_function<void(Status)>;
  void OnNode(const client::Change& change);
  void OnPool(const client::Change& change);
  void OnTopology(const client::Change& change);
  void SyncNode(const std::string& name, Done done);
  void SyncPool(const std::string& name, Done done);
  void SyncTopology(const client::ObjectName& name, Done done);
  void PatchNode(const api::Object& node, const api::Object& pool, Done done);
  // The pools that this ConfigMap made and `topology` no longer names.
  std::vector<api::Object> Left(const client::ObjectName& source, const Topology& topology) const;
  std::string NoSuchPool(const std::string& name) const;
  void TopologyDone(const api::Object& config, Status status, Done done);
  void FollowLabelKey();
  // What is wrong with the object now; nothing where `message` is empty.
  void Tell(const api::Object& about, std::string_view reason, std::string message);

  client::Client& client_;
  client::Informer& nodes_;
  client::Informer& pools_;
  client::Informer& topologies_;
  const MachineOf machines_;
  const PoolsOptions options_;
  std::string label_key_{kPoolLabel};  // a topology may name another
  client::EventRecorder events_;
  std::map<std::string, std::string> told_;  // what is wrong, by "Kind namespace/name"
  client::WorkQueue<std::string> nodes_queue_;
  client::WorkQueue<std::string> pools_queue_;
  client::WorkQueue<client::ObjectName> topologies_queue_;
  std::vector<std::unique_ptr<client::Subscription>> subscriptions_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for calls under way
};

}  // namespace sextant::lab
