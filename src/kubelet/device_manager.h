// The device manager: which plugins offer devices on this node, how many are healthy, and which
// container holds which of them.
//
//   DeviceManager devices(loop, files, dir + "/kubelet_internal_checkpoint", [&] { SyncNode(); });
//   devices.Load([&] { ... });                      // what was held before a restart
//   devices.Register(plugin);
//   devices.Allocate(pod, [](Status s) { ... });    // at admission: all containers, or none
//   devices.Options(uid, "train").envs              // when a container starts
//   devices.Release(uid);                           // when the Pod has ended
//
// A device is held by one Pod at most, and every held device has a Pod: allocations are on disk
// before Allocate answers, and are dropped when their Pod ends. One allocation at a time.
//
// Threads: the loop. Errors: the real device manager's texts.
// Source: pkg/kubelet/cm/devicemanager/manager.go.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/document.h"
#include "base/executor.h"
#include "kubelet/pod_model.h"
#include "plugin/device_plugin.h"

namespace sextant::kubelet {

// A plugin that is gone keeps its capacity this long (endpointStopGracePeriod).
inline constexpr Duration kEndpointStopGrace = std::chrono::minutes(5);

struct ResourceAmount {
  int64_t capacity = 0;
  int64_t allocatable = 0;
  bool operator==(const ResourceAmount&) const = default;
};

// What one container has of one resource.
struct Allocation {
  std::vector<std::string> ids;  // in the plugin's order
  plugin::ContainerAllocation answer;
};

class DeviceManager {
 public:
  // `checkpoint` empty: nothing is kept on disk. `changed` runs when Resources() changes.
  DeviceManager(Loop& loop, Executor& files, std::string checkpoint, std::function<void()> changed);
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  void Load(std::move_only_function<void()> done);

  // The first plugin for a resource is on disk before it is heard: after a restart, until one is
  // back or the grace is over, Pods that want the resource and hold none are refused rather than
  // started without.
  void Register(std::shared_ptr<plugin::DevicePlugin> plugin);
  void Unregister(const std::string& resource);

  // Every resource that a plugin has offered, those that are gone with zeros.
  const std::map<std::string, ResourceAmount, std::less<>>& Resources() const { return amounts_; }
  // How many devices of `resource` are held; for the node's fit (sanitizeNodeAllocatable).
  int64_t HeldCount(const std::string& resource) const;

  void Allocate(const api::Object& pod, std::move_only_function<void(Status)> done);
  // Everything that the container's allocations want it to have.
  plugin::ContainerAllocation Options(const std::string& uid, const std::string& container) const;
  std::vector<std::pair<std::string, DeviceHealth>> Held(const std::string& uid) const;
  void Release(const std::string& uid);
  // Releases what belongs to other Pods than these.
  void Retain(const std::set<std::string>& uids);
  // resource → device → "uid/container".
  std::map<std::string, std::map<std::string, std::string>> InUse() const;

 private:
  using Containers = std::map<std::string, std::map<std::string, Allocation>>;  // → resource
  struct Endpoint {
    std::shared_ptr<plugin::DevicePlugin> plugin;  // null: gone
    std::shared_ptr<void> watch;
    std::vector<plugin::Device> devices;
    bool listed = false;  // it has told its devices
    TimerId expiry = 0;
    uint64_t generation = 0;
  };
  class Job;

  void Expect(const std::string& resource);
  void Listen(const std::string& resource, uint64_t generation);
  void OnDevices(const std::string& resource, uint64_t generation,
                 const std::vector<plugin::Device>& devices);
  void Gone(const std::string& resource);
  void Recount();
  bool IsDeviceResource(const std::string& resource) const;
  std::set<std::string> Healthy(const std::string& resource) const;
  std::set<std::string> Used(const std::string& resource) const;
  std::vector<std::string> InOrder(const std::string& resource, std::set<std::string> ids) const;
  void Save(std::move_only_function<void(Status)> done);
  void Write();
  std::string Serialise() const;
  void Restore(const std::string& text);

  Loop& loop_;
  Executor& files_;
  const std::string checkpoint_;
  const std::function<void()> changed_;
  std::map<std::string, Endpoint> endpoints_;
  std::map<std::string, ResourceAmount, std::less<>> amounts_;
  std::map<std::string, Containers> pods_;  // by uid
  std::vector<std::move_only_function<void(Status)>> waiting_for_save_;
  bool loaded_ = false;
  bool saving_ = false;
  bool dirty_ = false;
  uint64_t next_generation_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::kubelet
