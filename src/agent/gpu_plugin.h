// The agent's device plugin: offers the cards of one node's inventory as nvidia.com/gpu and says
// what a container that gets some of them needs.
//
//   auto plugin = std::make_shared<GpuPlugin>(loop, options);
//   plugin->SetInventory(inventory);     // whenever the host's cards change
//   kubelet.Register(plugin);
//
// Device ids are the cards' UUIDs. Allocate answers as NVIDIA's plugin does (envvar strategy with
// device specs) and, for simulated cards, mounts the file from which nvidia-smi reads the cards
// that this container may see. Facts: NVIDIA/k8s-device-plugin v0.20
// (reference/nvidia-stack.md 2.4, 2.5). Threads: everything on the loop; files are written on the
// executor given for that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/inventory.h"
#include "plugin/device_plugin.h"

namespace sextant::agent {

inline constexpr char kGpuResource[] = "nvidia.com/gpu";

struct GpuPluginOptions {
  std::string resource = kGpuResource;
  // Where the files for containers are written, one per set of cards; made if absent.
  std::string state_directory;
};

class GpuPlugin : public plugin::DevicePlugin {
 public:
  GpuPlugin(Loop& loop, Executor& files, GpuPluginOptions options);
  ~GpuPlugin() override;

  // The node's cards as they are now. Tells those who watch if what is offered changed.
  void SetInventory(gpu::Inventory inventory);

  const std::string& resource() const override { return options_.resource; }
  bool HasDevices() const { return !Devices().empty(); }
  plugin::PluginOptions options() const override { return {.preferred_allocation = true}; }
  std::shared_ptr<void> ListAndWatch(DevicesChanged changed) override;
  void Allocate(std::vector<std::vector<std::string>> device_ids,
                plugin::Reply<std::vector<plugin::ContainerAllocation>> done) override;
  void GetPreferredAllocation(std::vector<std::string> available,
                              std::vector<std::string> must_include, int size,
                              plugin::Reply<std::vector<std::string>> done) override;

 private:
  std::vector<plugin::Device> Devices() const;

  Loop& loop_;
  Executor& files_;
  const GpuPluginOptions options_;
  gpu::Inventory inventory_;
  std::map<uint64_t, DevicesChanged> watchers_;
  uint64_t next_watcher_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::agent
