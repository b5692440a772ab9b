#include "agent/gpu_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"

namespace sextant::agent {
namespace {

constexpr int kInventoryFileMode = 0644;

// Device nodes that every container with a card gets; the rest is /dev/nvidia<minor>.
constexpr std::array<std::string_view, 3> kControlNodes = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                                           "/dev/nvidia-uvm-tools"};

bool Has(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// What one container with these cards needs. Writes the file of cards that it may see.
Result<plugin::ContainerAllocation> AllocateOne(const gpu::Inventory& cards,
                                                const GpuPluginOptions& options,
                                                const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (!cards.Find(id)) {
      return Fail(InternalError(fmt::format(
          "invalid allocation request for '{}': unknown device: {}", options.resource, id)));
    }
  }
  ASSIGN_OR_RETURN(const gpu::Inventory seen, cards.View(ids));
  plugin::ContainerAllocation out;
  out.envs["NVIDIA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(ids, ","));
  for (std::string_view node : kControlNodes) {
    out.devices.push_back({std::string(node), std::string(node), "rw"});
  }
  std::string name;
  for (const gpu::Card& card : seen.cards) {
    const std::string node = fmt::format("/dev/nvidia{}", card.minor);
    out.devices.push_back({node, node, "rw"});
    name += fmt::format("-{}", card.minor);
  }
  RETURN_IF_ERROR(MakeDirectories(options.state_directory, 0755));
  const std::string file = fmt::format("{}/gpus{}.json", options.state_directory, name);
  RETURN_IF_ERROR(WriteFileAtomic(file, gpu::Serialise(seen), kInventoryFileMode));
  out.mounts.push_back({gpu::kContainerInventoryPath, file, true});
  return out;
}

}  // namespace

GpuPlugin::GpuPlugin(Loop& loop, Executor& files, GpuPluginOptions options)
    : loop_(loop), files_(files), options_(std::move(options)) {}

GpuPlugin::~GpuPlugin() { *alive_ = false; }

std::vector<plugin::Device> GpuPlugin::Devices() const {
  std::vector<plugin::Device> devices;
  for (const gpu::Card& card : inventory_.cards) {
    if (card.allocation != gpu::Allocation::kPlugin) continue;
    plugin::Device device{card.uuid, card.healthy && !card.lost, {}};
    if (card.numa_node >= 0) device.numa_nodes.push_back(card.numa_node);
    devices.push_back(std::move(device));
  }
  return devices;
}

void GpuPlugin::SetInventory(gpu::Inventory inventory) {
  const std::vector<plugin::Device> before = Devices();
  inventory_ = std::move(inventory);
  const std::vector<plugin::Device> now = Devices();
  if (now == before) return;
  loop_.Post([this, alive = alive_, now] {
    if (!*alive) return;
    const auto watchers = watchers_;  // a watcher may drop its handle while it is told
    for (const auto& [id, changed] : watchers) {
      if (watchers_.contains(id)) changed(now);
    }
  });
}

std::shared_ptr<void> GpuPlugin::ListAndWatch(DevicesChanged changed) {
  const uint64_t id = next_watcher_++;
  watchers_.emplace(id, std::move(changed));
  loop_.Post([this, alive = alive_, id] {
    if (!*alive) return;
    const auto watcher = watchers_.find(id);
    if (watcher != watchers_.end()) watcher->second(Devices());
  });
  return std::shared_ptr<void>(nullptr, [this, alive = alive_, id](void*) {
    if (*alive) watchers_.erase(id);
  });
}

void GpuPlugin::Allocate(std::vector<std::vector<std::string>> device_ids,
                         plugin::Reply<std::vector<plugin::ContainerAllocation>> done) {
  files_.Post([&loop = loop_, options = options_, cards = inventory_,
               device_ids = std::move(device_ids), done = std::move(done)]() mutable {
    Result<std::vector<plugin::ContainerAllocation>> all =
        std::vector<plugin::ContainerAllocation>();
    for (const std::vector<std::string>& ids : device_ids) {
      auto one = AllocateOne(cards, options, ids);
      if (!one) {
        all = Fail(std::move(one).error());
        break;
      }
      all->push_back(*std::move(one));
    }
    loop.Post([done = std::move(done), all = std::move(all)]() mutable { done(std::move(all)); });
  });
}

// Takes cards one by one, each time the one with the most NVLinks to those taken, then the nearest
// NUMA node, then the lowest index: whole cards that belong together, as go-gpuallocator's
// best-effort policy wants.
void GpuPlugin::GetPreferredAllocation(std::vector<std::string> available,
                                       std::vector<std::string> must_include, int size,
                                       plugin::Reply<std::vector<std::string>> done) {
  std::vector<std::string> chosen = must_include;
  const auto score = [&](const gpu::Card& card) {
    int links = 0;
    int near = 0;
    for (const std::string& id : chosen) {
      const gpu::Card* taken = inventory_.Find(id);
      if (!taken) continue;
      links += gpu::NvLinksBetween(card, *taken);
      near += card.numa_node == taken->numa_node;
    }
    return std::tuple(links, near, -card.index);
  };
  while (static_cast<int>(chosen.size()) < size) {
    const gpu::Card* best = nullptr;
    for (const gpu::Card& card : inventory_.cards) {
      if (!Has(available, card.uuid) || Has(chosen, card.uuid)) continue;
      if (!best || score(card) > score(*best)) best = &card;
    }
    if (!best) break;
    chosen.push_back(best->uuid);
  }
  loop_.Post(
      [done = std::move(done), chosen = std::move(chosen)]() mutable { done(std::move(chosen)); });
}

}  // namespace sextant::agent
