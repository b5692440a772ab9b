// What a machine says about its GPUs: the source that a node agent reads. On a real machine NVML
// and sysfs stand behind it (a later issue); in a lab a simulated machine does.
//
// Threads: everything on one loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/executor.h"
#include "gpu/inventory.h"

namespace sextant::host {

class GpuHost {
 public:
  virtual ~GpuHost() = default;
  virtual bool simulated() const = 0;
  virtual const gpu::Inventory& cards() const = 0;
  // Runs after each change of the machine, until the handle is dropped.
  virtual std::shared_ptr<void> OnChange(std::function<void()> changed) = 0;
};

// The rest of a simulated machine, in the words of resource.Quantity.
struct MachineSpec {
  std::string cpu = "32";
  std::string memory = "128Gi";
  std::string ephemeral_storage = "500Gi";
  // Further resources that the node advertises: other devices, "example.com/fpga": "4".
  std::map<std::string, std::string> resources;
  bool operator==(const MachineSpec&) const = default;
};

// A machine whose parts are what it is told.
class SimulatedMachine : public GpuHost {
 public:
  explicit SimulatedMachine(Loop& loop) : loop_(loop) {}
  ~SimulatedMachine() override { *alive_ = false; }

  const MachineSpec& spec() const { return spec_; }
  void SetSpec(MachineSpec spec);      // nothing happens if it is the same
  bool told() const { return told_; }  // SetSpec was called: the machine is known

  bool simulated() const override { return true; }
  const gpu::Inventory& cards() const override { return cards_; }
  std::shared_ptr<void> OnChange(std::function<void()> changed) override;
  void SetCards(gpu::Inventory cards);  // nothing happens if they are the same

 private:
  void Tell();

  Loop& loop_;
  MachineSpec spec_;
  bool told_ = false;
  gpu::Inventory cards_;
  std::map<uint64_t, std::function<void()>> listeners_;
  uint64_t next_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sextant::host
