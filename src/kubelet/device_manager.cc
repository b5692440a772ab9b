#include "kubelet/device_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/quantity.h"
#include "base/check.h"
#include "base/log.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

// How gRPC's Go library prints what a plugin's handler returned.
std::string RpcText(const Error& error) {
  constexpr std::string_view kPrefix = "Internal error occurred: ";
  std::string_view text = error.message;
  if (error.Is("InternalError") && text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  return fmt::format("rpc error: code = Unknown desc = {}", text);
}

}  // namespace

// The allocations of one Pod, container after container. Lives by the callbacks that hold it.
class DeviceManager::Job : public std::enable_shared_from_this<Job> {
 public:
  Job(DeviceManager& manager, const Object& pod, std::move_only_function<void(Status)> done)
      : manager_(manager), alive_(manager.alive_), uid_(pod.uid()), done_(std::move(done)) {
    for (const char* list : {"initContainers", "containers"}) {
      for (Value container : pod["spec"][list].items()) {
        const bool init = std::string_view(list) == "initContainers";
        for (auto [name, quantity] : container["resources"]["limits"].members()) {
          const std::string resource(name);
          if (!manager.IsDeviceResource(resource)) continue;
          const int64_t needed = api::Quantity::ParseOrZero(quantity.AsString()).Value();
          wishes_.push_back({std::string(container["name"].AsString()), resource,
                             static_cast<size_t>(std::max<int64_t>(needed, 0)),
                             init && KindOf(container) == ContainerKind::kInit});
        }
      }
    }
  }

  void Next() {
    if (at_ == wishes_.size()) return Finish();
    const Wish& wish = wishes_[at_];
    auto needed = Missing(wish);
    if (!needed) return Abandon(std::move(needed).error());
    if (!*needed) return Fulfilled(wish);
    Choose(wish);
  }

 private:
  struct Wish {
    std::string container;
    std::string resource;
    size_t count = 0;
    bool reusable = false;  // an init container's devices pass on to those after it
  };

  // Whether devices still have to be found. The order of the checks is the real one's.
  Result<bool> Missing(const Wish& wish) const {
    const Allocation* held = Held(wish);
    if (held && held->ids.size() != wish.count) {
      return Fail(TextError(fmt::format(
          "pod \"{}\" container \"{}\" changed request for resource \"{}\" from {} to {}", uid_,
          wish.container, wish.resource, held->ids.size(), wish.count)));
    }
    const auto endpoint = manager_.endpoints_.find(wish.resource);
    const bool listed = endpoint != manager_.endpoints_.end() && endpoint->second.listed;
    // After a restart the plugin may come later than its Pods: what they hold is on disk.
    if (held && (!listed || !endpoint->second.plugin)) return false;
    if (wish.count == 0) return false;
    if (endpoint == manager_.endpoints_.end()) {
      return Fail(TextError(fmt::format("cannot allocate unregistered device {}", wish.resource)));
    }
    const std::set<std::string> healthy = manager_.Healthy(wish.resource);
    if (healthy.empty()) {
      return Fail(TextError(fmt::format(
          "no healthy devices present; cannot allocate unhealthy devices {}", wish.resource)));
    }
    if (!held) return true;
    for (const std::string& id : held->ids) {
      if (healthy.contains(id)) continue;
      return Fail(TextError(
          fmt::format("previously allocated devices are no longer healthy; cannot allocate "
                      "unhealthy devices {}",
                      wish.resource)));
    }
    return false;
  }

  void Choose(const Wish& wish) {
    std::set<std::string> chosen;
    for (const std::string& id : reusable_[wish.resource])
      if (chosen.size() < wish.count) chosen.insert(id);
    if (chosen.size() == wish.count) return Ask(wish, std::move(chosen));
    std::set<std::string> available = manager_.Healthy(wish.resource);
    for (const std::string& id : manager_.Used(wish.resource)) available.erase(id);
    const size_t needed = wish.count - chosen.size();
    if (available.size() < needed) {
      return Abandon(TextError(fmt::format(
          "requested number of devices unavailable for {}. Requested: {}, Available: {}",
          wish.resource, needed, available.size())));
    }
    const auto plugin = manager_.endpoints_[wish.resource].plugin;
    if (!plugin->options().preferred_allocation) {
      Fill(chosen, manager_.InOrder(wish.resource, available), wish.count);
      return Ask(wish, std::move(chosen));
    }
    std::set<std::string> offered = available;
    offered.insert(chosen.begin(), chosen.end());
    plugin->GetPreferredAllocation(
        manager_.InOrder(wish.resource, offered), manager_.InOrder(wish.resource, chosen),
        static_cast<int>(wish.count),
        [self = shared_from_this(), chosen,
         available](Result<std::vector<std::string>> preferred) mutable {
          if (!*self->alive_) return;
          self->OnPreferred(std::move(chosen), available, std::move(preferred));
        });
  }

  void OnPreferred(std::set<std::string> chosen, const std::set<std::string>& available,
                   Result<std::vector<std::string>> preferred) {
    const Wish& wish = wishes_[at_];
    if (!preferred) {
      return Abandon(
          TextError(fmt::format("device plugin GetPreferredAllocation rpc failed with err: {}",
                                RpcText(preferred.error()))));
    }
    std::vector<std::string> wanted;
    for (std::string& id : *preferred)
      if (available.contains(id)) wanted.push_back(std::move(id));
    Fill(chosen, wanted, wish.count);
    Fill(chosen, manager_.InOrder(wish.resource, available), wish.count);
    Ask(wish, std::move(chosen));
  }

  static void Fill(std::set<std::string>& chosen, const std::vector<std::string>& from,
                   size_t count) {
    for (const std::string& id : from)
      if (chosen.size() < count) chosen.insert(id);
  }

  void Ask(const Wish& wish, std::set<std::string> chosen) {
    const auto endpoint = manager_.endpoints_.find(wish.resource);
    if (endpoint == manager_.endpoints_.end() || !endpoint->second.plugin) {
      return Abandon(TextError(fmt::format("unknown Device Plugin {}", wish.resource)));
    }
    std::vector<std::string> ids = manager_.InOrder(wish.resource, std::move(chosen));
    const std::vector<std::vector<std::string>> request{ids};
    endpoint->second.plugin->Allocate(
        request, [self = shared_from_this(), ids = std::move(ids)](
                     Result<std::vector<plugin::ContainerAllocation>> answer) mutable {
          if (!*self->alive_) return;
          self->OnAnswer(std::move(ids), std::move(answer));
        });
  }

  void OnAnswer(std::vector<std::string> ids,
                Result<std::vector<plugin::ContainerAllocation>> answer) {
    const Wish& wish = wishes_[at_];
    if (!answer) return Abandon(TextError(RpcText(answer.error())));
    if (answer->empty()) {
      return Abandon(TextError("no containers return in allocation response &AllocateResponse{}"));
    }
    manager_.pods_[uid_][wish.container][wish.resource] = {std::move(ids),
                                                           std::move(answer->front())};
    changed_ = true;
    Fulfilled(wish);
  }

  void Fulfilled(const Wish& wish) {
    std::set<std::string>& reusable = reusable_[wish.resource];
    if (const Allocation* held = Held(wish)) {
      for (const std::string& id : held->ids) {
        if (wish.reusable) {
          reusable.insert(id);
        } else {
          reusable.erase(id);
        }
      }
    }
    ++at_;
    Next();
  }

  const Allocation* Held(const Wish& wish) const {
    const auto pod = manager_.pods_.find(uid_);
    if (pod == manager_.pods_.end()) return nullptr;
    const auto container = pod->second.find(wish.container);
    if (container == pod->second.end()) return nullptr;
    const auto allocation = container->second.find(wish.resource);
    return allocation == container->second.end() ? nullptr : &allocation->second;
  }

  void Abandon(Error error) {
    manager_.pods_.erase(uid_);
    if (changed_) manager_.Save([](Status) {});
    done_(Fail(std::move(error)));
  }

  void Finish() {
    if (!changed_) return done_({});
    manager_.Save([self = shared_from_this()](Status saved) { self->OnSaved(std::move(saved)); });
  }

  void OnSaved(Status saved) {
    if (!saved) {
      manager_.pods_.erase(uid_);
      return done_(Fail(TextError(
          fmt::format("failed to write checkpoint file \"kubelet_internal_checkpoint\": {}",
                      saved.error().message))));
    }
    done_({});
  }

  DeviceManager& manager_;
  const std::shared_ptr<bool> alive_;
  const std::string uid_;
  std::move_only_function<void(Status)> done_;
  std::vector<Wish> wishes_;
  std::map<std::string, std::set<std::string>> reusable_;
  size_t at_ = 0;
  bool changed_ = false;
};

DeviceManager::DeviceManager(Loop& loop, Executor& files, std::string checkpoint,
                             std::function<void()> changed)
    : loop_(loop),
      files_(files),
      checkpoint_(std::move(checkpoint)),
      changed_(std::move(changed)) {}

DeviceManager::~DeviceManager() {
  *alive_ = false;
  for (const auto& [resource, endpoint] : endpoints_) loop_.Cancel(endpoint.expiry);
}

void DeviceManager::Register(std::shared_ptr<plugin::DevicePlugin> plugin) {
  const std::string resource = plugin->resource();
  const bool known = endpoints_.contains(resource);
  Endpoint& endpoint = endpoints_[resource];
  loop_.Cancel(endpoint.expiry);
  const uint64_t generation = next_generation_++;
  endpoint.plugin = std::move(plugin);
  endpoint.expiry = 0;
  endpoint.generation = generation;
  endpoint.listed = false;
  endpoint.watch.reset();
  Recount();
  if (known) return Listen(resource, generation);
  Save([this, resource, generation](Status saved) {
    if (!saved) log::Error("kubelet", "device checkpoint: {}", saved.error().message);
    Listen(resource, generation);
  });
}

void DeviceManager::Listen(const std::string& resource, uint64_t generation) {
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end() || found->second.generation != generation) return;
  found->second.watch = found->second.plugin->ListAndWatch(
      [this, alive = alive_, resource, generation](const std::vector<plugin::Device>& devices) {
        if (*alive) OnDevices(resource, generation, devices);
      });
}

void DeviceManager::OnDevices(const std::string& resource, uint64_t generation,
                              const std::vector<plugin::Device>& devices) {
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end() || found->second.generation != generation) return;
  found->second.devices = devices;
  found->second.listed = true;
  Recount();
}

void DeviceManager::Unregister(const std::string& resource) {
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end() || !found->second.plugin) return;
  Endpoint& endpoint = found->second;
  endpoint.watch.reset();
  endpoint.plugin.reset();
  endpoint.generation = next_generation_++;
  for (plugin::Device& device : endpoint.devices) device.healthy = false;
  endpoint.expiry = loop_.After(kEndpointStopGrace, [this, alive = alive_, resource] {
    if (*alive) Gone(resource);
  });
  Recount();
}

void DeviceManager::Gone(const std::string& resource) {
  endpoints_.erase(resource);
  Recount();
  Save([](Status) {});
}

void DeviceManager::Recount() {
  std::map<std::string, ResourceAmount, std::less<>> now;
  for (const auto& [resource, amount] : amounts_) now[resource] = {};  // once offered: zeros
  for (const auto& [resource, endpoint] : endpoints_) {
    ResourceAmount& amount = now[resource];
    amount.capacity = static_cast<int64_t>(endpoint.devices.size());
    amount.allocatable = static_cast<int64_t>(Healthy(resource).size());
  }
  if (now == amounts_) return;
  amounts_ = std::move(now);
  changed_();
}

bool DeviceManager::IsDeviceResource(const std::string& resource) const {
  return endpoints_.contains(resource) || !Used(resource).empty();
}

std::set<std::string> DeviceManager::Healthy(const std::string& resource) const {
  std::set<std::string> ids;
  const auto found = endpoints_.find(resource);
  if (found == endpoints_.end() || !found->second.plugin) return ids;
  for (const plugin::Device& device : found->second.devices)
    if (device.healthy) ids.insert(device.id);
  return ids;
}

std::set<std::string> DeviceManager::Used(const std::string& resource) const {
  std::set<std::string> ids;
  for (const auto& [uid, containers] : pods_) {
    for (const auto& [container, allocations] : containers) {
      const auto found = allocations.find(resource);
      if (found != allocations.end())
        ids.insert(found->second.ids.begin(), found->second.ids.end());
    }
  }
  return ids;
}

int64_t DeviceManager::HeldCount(const std::string& resource) const {
  return static_cast<int64_t>(Used(resource).size());
}

std::vector<std::string> DeviceManager::InOrder(const std::string& resource,
                                                std::set<std::string> ids) const {
  std::vector<std::string> ordered;
  const auto found = endpoints_.find(resource);
  if (found != endpoints_.end()) {
    for (const plugin::Device& device : found->second.devices)
      if (ids.erase(device.id) > 0) ordered.push_back(device.id);
  }
  ordered.insert(ordered.end(), ids.begin(), ids.end());
  return ordered;
}

void DeviceManager::Allocate(const Object& pod, std::move_only_function<void(Status)> done) {
  loop_.Post([this, alive = alive_, pod, done = std::move(done)]() mutable {
    if (!*alive) return;
    std::make_shared<Job>(*this, pod, std::move(done))->Next();
  });
}

plugin::ContainerAllocation DeviceManager::Options(const std::string& uid,
                                                   const std::string& container) const {
  plugin::ContainerAllocation all;
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return all;
  const auto found = pod->second.find(container);
  if (found == pod->second.end()) return all;
  for (const auto& [resource, allocation] : found->second) {
    const plugin::ContainerAllocation& one = allocation.answer;
    all.envs.insert(one.envs.begin(), one.envs.end());
    all.mounts.insert(all.mounts.end(), one.mounts.begin(), one.mounts.end());
    all.devices.insert(all.devices.end(), one.devices.begin(), one.devices.end());
    all.annotations.insert(one.annotations.begin(), one.annotations.end());
    all.cdi_devices.insert(all.cdi_devices.end(), one.cdi_devices.begin(), one.cdi_devices.end());
  }
  return all;
}

std::vector<std::pair<std::string, DeviceHealth>> DeviceManager::Held(
    const std::string& uid) const {
  std::vector<std::pair<std::string, DeviceHealth>> held;
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return held;
  for (const auto& [container, allocations] : pod->second) {
    for (const auto& [resource, allocation] : allocations) {
      const std::set<std::string> healthy = Healthy(resource);
      DeviceHealth devices{resource, {}};
      for (const std::string& id : allocation.ids)
        devices.devices.emplace_back(id, healthy.contains(id));
      held.emplace_back(container, std::move(devices));
    }
  }
  return held;
}

void DeviceManager::Release(const std::string& uid) {
  if (pods_.erase(uid) > 0) Save([](Status) {});
}

void DeviceManager::Retain(const std::set<std::string>& uids) {
  if (std::erase_if(pods_, [&](const auto& pod) { return !uids.contains(pod.first); }) > 0) {
    Save([](Status) {});
  }
}

std::map<std::string, std::map<std::string, std::string>> DeviceManager::InUse() const {
  std::map<std::string, std::map<std::string, std::string>> in_use;
  for (const auto& [uid, containers] : pods_)
    for (const auto& [container, allocations] : containers)
      for (const auto& [resource, allocation] : allocations)
        for (const std::string& id : allocation.ids)
          in_use[resource][id] = fmt::format("{}/{}", uid, container);
  return in_use;
}

}  // namespace sextant::kubelet
