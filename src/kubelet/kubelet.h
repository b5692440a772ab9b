// One simulated node's kubelet: registers the Node, keeps its lease and status, admits Pods, runs
// their containers and tells the API what became of them.
//
//   kubelet::NodeFeed feed(informers);             // one for all kubelets
//   kubelet::Kubelet node({client, feed, runtime, machine, files, components},
//                         {.node = "gpu-lab-worker", .state_directory = dir});
//   node.Start();
//   ...
//   node.Stop();    // no more leases and statuses; the node goes NotReady as a real one would
//
// Thousands of them may live in one process: they share one informer of Pods (indexed by node) and
// one of Nodes, hold timers for their leases only, and keep nothing of Pods that are not theirs.
//
// State that survives a restart lies below `state_directory`: logs and volumes of Pods, and which
// device belongs to which container (the device manager's checkpoint). A Pod's containers that ran
// when the lab went down are started again by restartPolicy, with restartCount + 1.
//
// Threads: everything on client.executor(); files are read and written on `files`. Nothing blocks.
// Destroying it is Stop.
// Facts: k8s.io/kubernetes v1.36.3 pkg/kubelet (reasons, messages and orders are its own).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "host/machine.h"
#include "kubelet/node_feed.h"
#include "kubelet/runtime.h"
#include "plugin/device_plugin.h"

namespace sextant::kubelet {

// Programs that run inside this process when a container's command names them: the node agent.
class Components {
 public:
  virtual ~Components() = default;
  // Starts `command` on `node`; it runs until the handle is dropped. Null: no such program.
  // `registrar` is that node's kubelet and outlives the handle.
  virtual std::shared_ptr<void> Start(std::string_view command, const std::string& node,
                                      plugin::Registrar& registrar) = 0;
};

struct KubeletParts {
  client::Client& client;  // as system:node:<name>
  NodeFeed& feed;          // shared by all kubelets of the lab
  Runtime& runtime;
  host::SimulatedMachine& machine;
  Executor& files;  // small file work
  Components& components;
};

struct KubeletOptions {
  std::string node;
  // Further labels (kind's, the pool's).
  std::map<std::string, std::string> labels;
  bool control_plane = false;  // adds kubeadm's taint; for its labels see RoleLabels
  std::string version = "v1.36.3+sextant.0";
  std::string state_directory;
  std::string internal_ip;
  std::string pod_cidr;   // "10.244.1.0/24": the addresses of its Pods
  uint16_t port = 10250;  // of the kubelet's HTTPS API
  // What Pods get as KUBERNETES_SERVICE_HOST and _PORT.
  std::string service_host = "10.96.0.1";
  uint16_t service_port = 443;
  // Writes volumes to disk and opens logs. Off where no process will ever read them (the simulated
  // runtime); then volumes are only checked.
  bool materialise = true;
  // While the disk of the state directory has less room than this, the Pod that keeps most on it is
  // evicted: the machine's disk is the API server's as well.
  int64_t least_free_bytes = int64_t{1} << 30;
};

// The labels that kubeadm gives a control-plane node by an administrator's hand: a node may not
// label itself below node-role.kubernetes.io.
std::map<std::string, std::string> RoleLabels(bool control_plane);

// Annotations of a Pod that steer how it is run.
inline constexpr char kRuntimeAnnotation[] = "sextant.dev/runtime";  // "simulated"
inline constexpr char kRunForAnnotation[] = "sextant.dev/run-for";   // "30s", a Go duration

// Where a container's log is and whether it can still grow.
struct ContainerLog {
  std::string path;
  std::string container_id;  // the runtime's
  bool running = false;
};

class Kubelet : public plugin::Registrar {
 public:
  Kubelet(KubeletParts parts, KubeletOptions options);
  ~Kubelet() override;
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  void Start();
  // Kills the containers of all its Pods and says nothing more to the API: a machine that is
  // switched off. Start again is a reboot.
  void Stop();
  bool running() const;

  const std::string& node() const;

  // plugin::Registrar
  void Register(std::shared_ptr<plugin::DevicePlugin> plugin) override;
  void Unregister(const std::string& resource) override;

  // For the HTTPS API. Errors carry the kubelet's own texts and HTTP codes.
  Result<ContainerLog> FindLog(std::string_view ns, std::string_view pod,
                               std::string_view container, bool previous) const;
  // The runtime's id of a running container.
  Result<std::string> FindRunning(std::string_view ns, std::string_view pod,
                                  std::string_view container) const;
  Result<std::string> FindSandbox(std::string_view ns, std::string_view pod) const;
  bool ContainerRuns(std::string_view ns, std::string_view pod,
                     const std::string& container_id) const;
  std::vector<api::Object> Pods() const;  // those it works on, as they were last seen
  Runtime& runtime() const;
  Executor& files() const;
  Loop& loop() const;

  // Devices held by containers of live Pods: resource → device id → "uid/container".
  std::map<std::string, std::map<std::string, std::string>> DevicesInUse() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sextant::kubelet
