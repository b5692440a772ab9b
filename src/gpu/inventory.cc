#include "gpu/inventory.h"

#include <algorithm>

#include "base/ascii.h"

namespace sextant::gpu {

std::string Card::PciAddress() const {
  // "00000000:07:00.0" -> "0000:07:00.0".
  return AsciiLower(std::string_view(bus_id).substr(bus_id.size() > 12 ? 4 : 0));
}

const Card* Inventory::Find(std::string_view uuid) const {
  for (const Card& card : cards) {
    if (card.uuid == uuid) return &card;
    for (const MigDevice& device : card.mig) {
      if (device.uuid == uuid) return &card;
    }
  }
  return nullptr;
}

Card* Inventory::Find(std::string_view uuid) {
  return const_cast<Card*>(std::as_const(*this).Find(uuid));
}

Result<Inventory> Inventory::View(std::span<const std::string> uuids) const {
  for (const std::string& uuid : uuids) {
    if (Find(uuid) == nullptr) {
      return Fail(BadRequest("no GPU " + uuid + " on node " + node));
    }
  }
  const auto wanted = [&](const std::string& uuid) {
    return std::ranges::find(uuids, uuid) != uuids.end();
  };
  Inventory out = *this;
  out.cards.clear();
  for (const Card& card : cards) {
    std::vector<MigDevice> devices;
    std::ranges::copy_if(card.mig, std::back_inserter(devices),
                         [&](const MigDevice& d) { return wanted(d.uuid); });
    const bool whole = wanted(card.uuid);
    if (!whole && devices.empty()) continue;
    Card seen = card;
    // A card named as a whole shows all of its MIG devices, as a container with the card does.
    if (!whole) {
      seen.mig = std::move(devices);
      std::erase_if(seen.processes, [&](const Process& p) {
        return std::ranges::none_of(seen.mig, [&](const MigDevice& d) {
          return d.gpu_instance == p.gpu_instance && d.compute_instance == p.compute_instance;
        });
      });
    }
    seen.index = static_cast<int>(out.cards.size());
    out.cards.push_back(std::move(seen));
  }
  return out;
}

void Append(Inventory& inventory, const Inventory& more) {
  for (const Card& card : more.cards) {
    Card& added = inventory.cards.emplace_back(card);
    added.index = static_cast<int>(inventory.cards.size()) - 1;
  }
}

int NvLinksBetween(const Card& a, const Card& b) {
  if (a.uuid == b.uuid || a.model != b.model) return 0;
  const Model& model = *a.model;
  const auto& matrix = model.server.nvlink_matrix;
  const auto row = static_cast<size_t>(a.slot), column = static_cast<size_t>(b.slot);
  if (!matrix.empty()) {
    return row < matrix.size() && column < matrix[row].size() ? matrix[row][column] : 0;
  }
  if (model.nvlink_group <= 0 || a.slot / model.nvlink_group != b.slot / model.nvlink_group) {
    return 0;
  }
  return model.nvlink_links;
}

std::string_view PcieRelation(const Card& a, const Card& b) {
  if (a.uuid == b.uuid) return "X";
  if (a.numa_node != b.numa_node) return "SYS";
  const auto switch_of = [](const Card& c) {
    const auto& all = c.model->server.pcie_switches;
    const auto slot = static_cast<size_t>(c.slot);
    // Beyond the usual server every card sits on a port of its own.
    return slot < all.size() ? all[slot] : -1 - c.slot;
  };
  return a.model == b.model && switch_of(a) == switch_of(b) ? "PXB" : "NODE";
}

}  // namespace sextant::gpu
