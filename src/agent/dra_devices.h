// The cards of a node as DRA devices: what NVIDIA's two DRA drivers announce of them.
//
//   for (const DriverDevices& driver : DraDevices(host.cards())) ...   // "gpu.nvidia.com", [...]
//
// A card whose allocation is DRA is one device; one with MIG enabled is announced by its MIG
// devices instead. pcieRoot is left out, as by the driver where it cannot be read: no source gives
// it for the usual servers. Pure functions, any thread.
//
// Source: kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go and mig.go,
// cmd/compute-domain-kubelet-plugin/deviceinfo.go and driver.go (default feature gates).
#pragma once

#include <string_view>
#include <vector>

#include "api/document.h"
#include "gpu/inventory.h"

namespace sextant::agent {

inline constexpr std::string_view kGpuDriver = "gpu.nvidia.com";
inline constexpr std::string_view kComputeDomainDriver = "compute-domain.nvidia.com";

struct DriverDevices {
  std::string_view driver;
  // A document with one member "devices": a list as ResourceSlice's spec.devices has it. Absent:
  // the driver announces nothing.
  api::Object spec;
};

// Both drivers, always.
std::vector<DriverDevices> DraDevices(const gpu::Inventory& inventory);

// Whether any card is offered by DRA.
bool OffersByDra(const gpu::Inventory& inventory);

}  // namespace sextant::agent
