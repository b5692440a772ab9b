// BuildInventory: from what a pool says to the cards of one node.
#include <algorithm>
#include <cstdio>

#include "gpu/inventory.h"
#include "gpu/uuid.h"

namespace sextant::gpu {
namespace {

// Where the next instance of `profile` goes: the first free place; the last one for a profile that
// takes a larger share of the memory than of the processors, so that a 4g still fits beside a 3g.
// (Captured: 3g, 2g, 1g, 1g on H100 and H200 lie at 4, 0, 2, 3.) -1 when there is none.
int Place(const Card& card, const MigProfile& profile) {
  const Model& model = *card.model;
  const bool from_end =
      profile.size * model.mig_max_instances > profile.slices * model.mig_memory_slices;
  int found = -1;
  for (const int start : profile.starts) {
    const bool taken = std::ranges::any_of(card.mig, [&](const MigDevice& other) {
      const MigProfile* p = model.FindMigProfile(other.profile);
      return p != nullptr && start < other.start + p->size && other.start < start + profile.size;
    });
    if (taken) continue;
    if (!from_end) return start;
    found = start;
  }
  return found;
}

// GPU instance ids as drivers give them, numbered like the nodes of a binary tree over the memory:
// the whole card 0, its halves 1 and 2, its quarters 3 to 6, its eighths from 7 on (captured
// `nvidia-smi mig -lgi` of A30, A100, H100 NVL and RTX PRO 6000).
int InstanceId(const MigProfile& profile, int memory_slices, int start) {
  return memory_slices / profile.size - 1 + start / profile.size;
}

Status CutMig(Card& card, const std::vector<MigWish>& wishes) {
  const Model& model = *card.model;
  if (!model.MigCapable()) {
    return Fail(BadRequest(model.product + " is not MIG capable"));
  }
  // Large instances first: they have the fewest places.
  std::vector<const MigProfile*> order;
  for (const MigWish& wish : wishes) {
    const MigProfile* profile = model.FindMigProfile(wish.profile);
    if (profile == nullptr) {
      return Fail(BadRequest(model.product + " has no MIG profile \"" + wish.profile + "\""));
    }
    if (wish.count < 0 || wish.count > profile->instances) {
      return Fail(BadRequest("MIG profile " + profile->name + ": at most " +
                             std::to_string(profile->instances) + " on " + model.product));
    }
    order.insert(order.end(), static_cast<size_t>(wish.count), profile);
  }
  std::ranges::sort(order, [](const MigProfile* a, const MigProfile* b) {
    return a->size != b->size ? a->size > b->size : a->name > b->name;
  });
  int slices = 0;
  for (const MigProfile* profile : order) {
    slices += profile->slices;
    const int start = Place(card, *profile);
    if (start < 0 || slices > model.mig_max_instances) {
      return Fail(BadRequest("MIG profile " + profile->name + " does not fit on " + model.product +
                             " beside the others"));
    }
    card.mig.push_back({.uuid = MigUuid(card.uuid, profile->name, start),
                        .profile = profile->name,
                        .gpu_instance = InstanceId(*profile, model.mig_memory_slices, start),
                        .compute_instance = 0,
                        .start = start});
  }
  std::ranges::sort(card.mig, {}, &MigDevice::gpu_instance);
  return {};
}

// Beyond the usual server: more of the same in the next PCI domain.
std::string BusId(const ServerLayout& server, int slot) {
  const auto place = static_cast<size_t>(slot % server.count);
  const int domain = slot / server.count;
  std::string id = server.bus_ids[place];
  if (domain > 0) {
    char prefix[9];
    // The domains of real servers are small numbers; these meet none of them.
    std::snprintf(prefix, sizeof(prefix), "%04X", (0x0100 * domain) & 0xFFFF);
    id.replace(0, 4, prefix);
  }
  return id;
}

Card MakeCard(const PoolSpec& pool, const Model& model, std::string_view cluster,
              std::string_view node, int index) {
  Card card;
  const ServerLayout& server = model.server;
  const auto place = static_cast<size_t>(index % server.count);
  card.index = index;
  card.minor = index;
  card.slot = index;
  card.uuid = CardUuid(cluster, node, index);
  card.serial = SerialOf(card.uuid);
  card.bus_id = BusId(server, index);
  card.model = &model;
  card.product = pool.product.empty() ? model.product : pool.product;
  card.memory_mib = pool.memory_mib > 0 ? pool.memory_mib : model.memory_mib;
  card.numa_node = server.numa_nodes[place];
  card.cpus = server.cpus[place];
  card.ecc_enabled = model.ecc;
  card.allocation = index >= pool.count - pool.dra_cards ? Allocation::kDra : Allocation::kPlugin;
  card.mig_enabled = pool.mig_enabled || !pool.mig.empty();
  return card;
}

}  // namespace

Result<Inventory> BuildInventory(const PoolSpec& pool, std::string_view cluster,
                                 std::string_view node) {
  constexpr int kMaxMemoryMib = 4 << 20;  // 4 TiB: far above any card
  ASSIGN_OR_RETURN(const Model* model, FindModel(pool.model));
  if (pool.count < 0 || pool.count > kMaxCards) {
    return Fail(BadRequest("GPU count must be from 0 to " + std::to_string(kMaxCards)));
  }
  if (pool.memory_mib < 0 || pool.memory_mib > kMaxMemoryMib) {
    return Fail(
        BadRequest("GPU memory must be from 0 to " + std::to_string(kMaxMemoryMib) + " MiB"));
  }
  if (pool.dra_cards < 0 || pool.dra_cards > pool.count) {
    return Fail(BadRequest("cards offered by DRA must be from 0 to the pool's count"));
  }
  if (pool.mig_enabled && !model->MigCapable()) {
    return Fail(BadRequest(model->product + " is not MIG capable"));
  }
  Inventory out;
  out.cluster = cluster;
  out.node = node;
  out.machine = pool.machine.empty() ? model->server.machine : pool.machine;
  out.driver_version = pool.driver_version.empty() ? model->driver : pool.driver_version;
  out.cuda_version = pool.cuda_version.empty() ? model->cuda : pool.cuda_version;
  if (model->c2c && model->nvlink_group > 1) {
    out.fabric_uuid = NameUuid({"fabric", cluster, pool.fabric});
  }
  for (int i = 0; i < pool.count; ++i) {
    Card card = MakeCard(pool, *model, cluster, node, i);
    if (!pool.mig.empty()) RETURN_IF_ERROR(CutMig(card, pool.mig));
    out.cards.push_back(std::move(card));
  }
  return out;
}

}  // namespace sextant::gpu
