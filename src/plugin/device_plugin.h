// The kubelet's device plugin interface (v1beta1) as C++: what a plugin offers and what the
// kubelet's device manager asks of it. In a lab both are in one process; gRPC over unix sockets,
// for a real node, is not there yet.
//
// Names and meanings: k8s.io/kubelet pkg/apis/deviceplugin/v1beta1/api.proto at v0.36.3.
// Threads: both sides live on one Loop; every callback comes later, never inline.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/status.h"

namespace sextant::plugin {

struct Device {
  std::string id;
  bool healthy = true;
  std::vector<int64_t> numa_nodes;  // TopologyInfo
  bool operator==(const Device&) const = default;
};

struct Mount {
  std::string container_path;
  std::string host_path;
  bool read_only = true;
};

struct DeviceSpec {
  std::string container_path;
  std::string host_path;
  std::string permissions;  // cgroup: "rwm"
};

struct ContainerAllocation {
  std::map<std::string, std::string> envs;
  std::vector<Mount> mounts;
  std::vector<DeviceSpec> devices;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;  // qualified names: "vendor/class=name"
};

struct PluginOptions {
  bool preferred_allocation = false;
};

template <typename T>
using Reply = std::move_only_function<void(Result<T>)>;

class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  virtual const std::string& resource() const = 0;  // "nvidia.com/gpu"
  virtual PluginOptions options() const = 0;
  // Tells all devices now and after each change, until the returned handle is dropped.
  using DevicesChanged = std::function<void(const std::vector<Device>& devices)>;
  virtual std::shared_ptr<void> ListAndWatch(DevicesChanged changed) = 0;
  // One entry a container. Errors become UnexpectedAdmissionError of the Pod.
  virtual void Allocate(std::vector<std::vector<std::string>> device_ids,
                        Reply<std::vector<ContainerAllocation>> done) = 0;
  // Which of `available` to take, `must_include` among them; `size` of them.
  virtual void GetPreferredAllocation(std::vector<std::string> available,
                                      std::vector<std::string> must_include, int size,
                                      Reply<std::vector<std::string>> done) = 0;
};

// The kubelet's side of registration: Registration/Register.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // A second registration of a resource takes the place of the first. The plugin must live until
  // Unregister.
  virtual void Register(std::shared_ptr<DevicePlugin> plugin) = 0;
  // The plugin's endpoint has gone (its process ended): its devices count as unhealthy.
  virtual void Unregister(const std::string& resource) = 0;
};

}  // namespace sextant::plugin
