#include "agent/dra_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/quantity.h"
#include "base/ascii.h"

namespace sextant::agent {
namespace {

using api::Editor;
using api::Mut;
using gpu::Card;
using gpu::MigDevice;
using gpu::MigProfile;

// NVML's brands as go-nvml's strings name them (device.GetBrandAsString).
std::string_view BrandOf(const gpu::Model& model) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames = {
      {{"NVIDIA", "Nvidia"}, {"NVIDIA RTX", "NvidiaRTX"}}};
  for (const auto& [ours, theirs] : kNames)
    if (model.brand == ours) return theirs;
  return model.brand;
}

// "590.48.01" → "590.48.1", "13.1" → "13.1.0": three numbers without leading zeros.
std::string SemanticVersion(std::string_view text) {
  std::array<int64_t, 3> parts{};
  for (int64_t& part : parts) {
    while (!text.empty() && IsDigit(text.front())) {
      part = part * 10 + (text.front() - '0');
      text.remove_prefix(1);
    }
    if (!text.empty()) text.remove_prefix(1);
  }
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

void SetText(Mut attributes, std::string_view name, std::string_view text) {
  attributes[name].Set("string", text);
}

void SetVersion(Mut attributes, std::string_view name, std::string_view version) {
  attributes[name].Set("version", SemanticVersion(version));
}

void SetCapacity(Mut device, std::string_view name, int64_t amount) {
  const api::Quantity quantity(amount, api::Quantity::Format::kBinarySi);
  device["capacity"][name].Set("value", quantity.ToString());
}

int64_t Bytes(int mib) { return int64_t{mib} << 20; }

// What a card and its MIG devices have in common.
void SetCommon(Mut attributes, const Card& card, const gpu::Inventory& inventory) {
  SetText(attributes, "productName", card.product);
  SetText(attributes, "brand", BrandOf(*card.model));
  SetText(attributes, "architecture", card.model->architecture);
  SetVersion(attributes, "cudaComputeCapability",
             fmt::format("{}.{}", card.model->compute_major, card.model->compute_minor));
  SetVersion(attributes, "driverVersion", inventory.driver_version);
  SetVersion(attributes, "cudaDriverVersion", inventory.cuda_version);
  SetText(attributes, "resource.kubernetes.io/pciBusID", card.PciAddress());
  if (card.numa_node >= 0) attributes["resource.kubernetes.io/numaNode"].Set("int", card.numa_node);
}

void AddCard(Mut device, const Card& card, const gpu::Inventory& inventory) {
  device.Set("name", fmt::format("gpu-{}", card.minor));
  const Mut attributes = device["attributes"];
  SetText(attributes, "type", "gpu");
  SetText(attributes, "uuid", card.uuid);
  SetCommon(attributes, card, inventory);
  SetCapacity(device, "memory", Bytes(card.memory_mib));
}

// "1g.10gb+me" → "1g10gb-me".
std::string InDeviceName(std::string_view profile) {
  std::string name;
  for (const char c : AsciiLower(profile)) {
    if (c == '.') continue;
    name += IsLowerOrDigit(c) ? c : '-';
  }
  return name;
}

void AddMig(Mut device, const Card& card, const MigDevice& mig, const gpu::Inventory& inventory) {
  const MigProfile* profile = card.model->FindMigProfile(mig.profile);
  device.Set("name", fmt::format("gpu-{}-mig-{}-{}-{}", card.minor, InDeviceName(mig.profile),
                                 profile ? profile->id : 0, mig.start));
  const Mut attributes = device["attributes"];
  SetText(attributes, "type", "mig");
  SetText(attributes, "uuid", mig.uuid);
  SetText(attributes, "parentUUID", card.uuid);
  SetText(attributes, "profile", mig.profile);
  SetCommon(attributes, card, inventory);
  if (!profile) return;
  SetCapacity(device, "multiprocessors", profile->multiprocessors);
  SetCapacity(device, "copyEngines", profile->copy_engines);
  SetCapacity(device, "decoders", profile->decoders);
  SetCapacity(device, "encoders", profile->encoders);
  SetCapacity(device, "jpegEngines", profile->jpegs);
  SetCapacity(device, "ofaEngines", profile->ofas);
  SetCapacity(device, "memory", Bytes(profile->memory_mib));
  for (int slice = mig.start; slice < mig.start + profile->size; ++slice) {
    SetCapacity(device, fmt::format("memorySlice{}", slice), 1);
  }
}

api::Object GpuDevices(const gpu::Inventory& inventory) {
  Editor edit;
  const Mut devices = edit.Root()["devices"];
  for (const Card& card : inventory.cards) {
    if (card.allocation != gpu::Allocation::kDra || card.lost) continue;
    if (!card.mig_enabled) AddCard(devices.Append(), card, inventory);
    for (const MigDevice& mig : card.mig) AddMig(devices.Append(), card, mig, inventory);
  }
  if (devices.size() == 0) return {};
  return std::move(edit).Finish();
}

// One IMEX channel and the daemon, whatever the cards: the driver runs on every node of its stack.
api::Object ComputeDomainDevices() {
  Editor edit;
  const Mut devices = edit.Root()["devices"];
  for (const std::string_view type : {"channel", "daemon"}) {
    const Mut device = devices.Append();
    device.Set("name", fmt::format("{}-0", type));
    SetText(device["attributes"], "type", type);
    device["attributes"]["id"].Set("int", 0);
  }
  return std::move(edit).Finish();
}

}  // namespace

bool OffersByDra(const gpu::Inventory& inventory) {
  return std::ranges::any_of(
      inventory.cards, [](const Card& card) { return card.allocation == gpu::Allocation::kDra; });
}

std::vector<DriverDevices> DraDevices(const gpu::Inventory& inventory) {
  return {{kGpuDriver, GpuDevices(inventory)},
          {kComputeDomainDriver, OffersByDra(inventory) ? ComputeDomainDevices() : api::Object()}};
}

}  // namespace sextant::agent
