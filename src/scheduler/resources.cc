#include "scheduler/resources.h"

#include <algorithm>

#include "api/quantity.h"

namespace sextant::scheduler {
namespace {

using api::Value;

auto Find(const std::vector<std::pair<std::string, int64_t>>& list, std::string_view name) {
  return std::lower_bound(
      list.begin(), list.end(), name,
      [](const auto& entry, std::string_view key) { return entry.first < key; });
}

void Put(Resources& out, std::string_view name, Value amount) {
  auto quantity = api::Quantity::Parse(amount.IsInt() ? std::to_string(amount.AsInt())
                                                      : std::string(amount.AsString()));
  if (!quantity) return;
  if (name == "cpu") {
    out.milli_cpu = quantity->MilliValue();
  } else if (name == "memory") {
    out.memory = quantity->Value();
  } else if (name == "ephemeral-storage") {
    out.ephemeral_storage = quantity->Value();
  } else if (name == "pods") {
    out.pods = quantity->Value();
  } else {
    out.SetScalar(name, quantity->Value());
  }
}

Resources ContainerRequests(Value container, bool defaults) {
  Resources out = ReadResources(container["resources"]["requests"]);
  out.pods = 0;
  if (defaults) {
    if (!container["resources"]["requests"].Has("cpu")) out.milli_cpu = kDefaultMilliCpu;
    if (!container["resources"]["requests"].Has("memory")) out.memory = kDefaultMemory;
  }
  return out;
}

Resources Effective(Value pod, bool defaults) {
  const Value spec = pod["spec"];
  Resources total;
  for (Value container : spec["containers"].items()) {
    total.Add(ContainerRequests(container, defaults));
  }
  // Sidecars started so far run beside every later step and beside the containers.
  Resources sidecars;
  Resources steps;
  for (Value init : spec["initContainers"].items()) {
    Resources step = ContainerRequests(init, defaults);
    if (init["restartPolicy"].AsString() == "Always") {
      sidecars.Add(step);
      total.Add(step);
      step = sidecars;
    } else {
      step.Add(sidecars);
    }
    steps.RaiseTo(step);
  }
  total.RaiseTo(steps);
  // Pod-level requests replace the sum for CPU and memory.
  const Value pod_level = spec["resources"]["requests"];
  if (pod_level) {
    const Resources said = ReadResources(pod_level);
    if (pod_level.Has("cpu")) total.milli_cpu = said.milli_cpu;
    if (pod_level.Has("memory")) total.memory = said.memory;
  }
  Resources overhead = ReadResources(spec["overhead"]);
  overhead.pods = 0;
  total.Add(overhead);
  total.pods = 1;
  return total;
}

}  // namespace

int64_t Resources::Scalar(std::string_view name) const {
  const auto it = Find(scalars, name);
  return it != scalars.end() && it->first == name ? it->second : 0;
}

void Resources::SetScalar(std::string_view name, int64_t amount) {
  const auto it = Find(scalars, name);
  const auto at = scalars.begin() + (it - scalars.begin());
  if (at != scalars.end() && at->first == name) {
    at->second = amount;
  } else {
    scalars.insert(at, {std::string(name), amount});
  }
}

void Resources::Add(const Resources& other) {
  milli_cpu += other.milli_cpu;
  memory += other.memory;
  ephemeral_storage += other.ephemeral_storage;
  pods += other.pods;
  for (const auto& [name, amount] : other.scalars) SetScalar(name, Scalar(name) + amount);
}

void Resources::Subtract(const Resources& other) {
  milli_cpu -= other.milli_cpu;
  memory -= other.memory;
  ephemeral_storage -= other.ephemeral_storage;
  pods -= other.pods;
  for (const auto& [name, amount] : other.scalars) SetScalar(name, Scalar(name) - amount);
}

void Resources::RaiseTo(const Resources& other) {
  milli_cpu = std::max(milli_cpu, other.milli_cpu);
  memory = std::max(memory, other.memory);
  ephemeral_storage = std::max(ephemeral_storage, other.ephemeral_storage);
  pods = std::max(pods, other.pods);
  for (const auto& [name, amount] : other.scalars) SetScalar(name, std::max(Scalar(name), amount));
}

Resources ReadResources(Value list) {
  Resources out;
  for (auto [name, amount] : list.members()) Put(out, name, amount);
  return out;
}

Resources PodRequests(Value pod) { return Effective(pod, false); }
Resources NonZeroRequests(Value pod) { return Effective(pod, true); }

}  // namespace sextant::scheduler
