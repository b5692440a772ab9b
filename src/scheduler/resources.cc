#include "scheduler/resources.h"

#include <algorithm>

#include "api/amounts.h"
#include "api/quantity.h"

namespace sextant::scheduler {
namespace {

using api::Value;

auto Find(const std::vector<std::pair<std::string, int64_t>>& list, std::string_view name) {
  return std::lower_bound(
      list.begin(), list.end(), name,
      [](const auto& entry, std::string_view key) { return entry.first < key; });
}

Resources FromAmounts(const api::Amounts& amounts) {
  Resources out;
  for (const auto& [name, quantity] : amounts) {
    if (name == "cpu") {
      out.milli_cpu = quantity.MilliValue();
    } else if (name == "memory") {
      out.memory = quantity.Value();
    } else if (name == "ephemeral-storage") {
      out.ephemeral_storage = quantity.Value();
    } else if (name == "pods") {
      out.pods = quantity.Value();
    } else {
      out.SetScalar(name, quantity.Value());
    }
  }
  return out;
}

Resources Requests(Value pod, const api::Amounts* unsaid) {
  Resources out = FromAmounts(api::PodAmounts(pod, "requests", {.unsaid = unsaid}));
  out.pods = 1;
  return out;
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

Resources ReadResources(Value list) { return FromAmounts(api::ReadAmounts(list)); }

Resources PodRequests(Value pod) { return Requests(pod, nullptr); }

Resources NonZeroRequests(Value pod) {
  static const api::Amounts defaults = {{"cpu", api::Quantity::ParseOrZero(kDefaultCpu)},
                                        {"memory", api::Quantity::ParseOrZero(kDefaultMemory)}};
  return Requests(pod, &defaults);
}

}  // namespace sextant::scheduler
