#include "lab/topology.h"

#include <fmt/format.h>

#include <array>

#include "api/yaml.h"
#include "gpu/catalogue.h"

namespace sextant::lab {
namespace {

using api::Value;

constexpr size_t kMaxPools = 1000;
constexpr int kMaxCount = 256;

// fake-gpu-operator's built-in profiles (simulators.md 1.4): model and number of cards.
struct Profile {
  std::string_view name;
  std::string_view model;
  int count;
};
constexpr std::array<Profile, 7> kProfiles = {{{"a100", "a100-sxm4-40gb", 8},
                                               {"h100", "h100-sxm5-80gb", 8},
                                               {"b200", "b200", 8},
                                               {"gb200", "gb200", 8},
                                               {"gb300", "gb300", 8},
                                               {"l40s", "l40s", 8},
                                               {"t4", "t4", 4}}};

// Stands for products that the catalogue does not know: the name and memory are the pool's own.
constexpr std::string_view kStandIn = "t4";

Result<int> Count(Value value, const std::string& where) {
  if (value.IsAbsent()) return 0;
  const int64_t count = value.AsInt(-1);
  if (count < 0 || count > kMaxCount) {
    return Fail(BadRequest(fmt::format("{}: must be a number from 0 to {}", where, kMaxCount)));
  }
  return static_cast<int>(count);
}

Status ReadOld(Value pool, TopologyPool& out) {
  const std::string where = fmt::format("nodePools.{}", out.name);
  const std::string product(pool["gpuProduct"].AsString());
  ASSIGN_OR_RETURN(out.count, Count(pool["gpuCount"], where + ".gpuCount"));
  out.memory_mib = static_cast<int>(pool["gpuMemory"].AsInt());
  auto model = gpu::FindModel(product);
  if (model) {
    out.model = (*model)->id;
    if (out.memory_mib == (*model)->memory_mib) out.memory_mib = 0;
  } else {
    out.model = kStandIn;
    out.product = product;
  }
  for (Value device : pool["otherDevices"].items()) {
    ASSIGN_OR_RETURN(const int count, Count(device["count"], where + ".otherDevices"));
    out.devices.emplace_back(device["name"].AsString(), count);
  }
  return {};
}

Status ReadNew(Value pool, TopologyPool& out) {
  const std::string where = fmt::format("nodePools.{}", out.name);
  const std::string profile(pool["gpu"]["profile"].AsString());
  const Profile* found = nullptr;
  for (const Profile& one : kProfiles)
    if (one.name == profile) found = &one;
  if (found) {
    out.model = found->model;
    out.count = found->count;
  } else if (!profile.empty()) {
    auto model = gpu::FindModel(profile);
    if (!model) {
      return Fail(BadRequest(fmt::format("{}.gpu.profile: {}", where, model.error().message)));
    }
    out.model = (*model)->id;
    out.count = (*model)->server.count;
  }
  const Value overrides = pool["gpu"]["overrides"];
  if (overrides["gpuCount"]) {
    ASSIGN_OR_RETURN(out.count, Count(overrides["gpuCount"], where + ".gpu.overrides.gpuCount"));
  }
  for (Value entry : pool["resources"].items()) {
    for (auto [name, amount] : entry.members()) {
      out.resources.emplace_back(name, amount.IsInt() ? fmt::format("{}", amount.AsInt())
                                                      : std::string(amount.AsString()));
    }
  }
  return {};
}

}  // namespace

Result<Topology> ParseTopology(std::string_view yaml) {
  ASSIGN_OR_RETURN(const std::vector<api::YamlDocument> documents,
                   api::ParseYaml(yaml, {.first_only = true}));
  if (documents.empty()) return Topology{};
  const api::Object& object = documents.front().object;
  Topology topology;
  topology.pool_label_key = object["nodePoolLabelKey"].AsString();
  const Value pools = object["nodePools"];
  if (pools.size() > kMaxPools) {
    return Fail(BadRequest(fmt::format("nodePools: more than {} pools", kMaxPools)));
  }
  for (auto [name, pool] : pools.members()) {
    TopologyPool out;
    out.name = name;
    const bool new_schema = pool.Has("gpu") || pool.Has("resources") || pool.Has("numa");
    RETURN_IF_ERROR(new_schema ? ReadNew(pool, out) : ReadOld(pool, out));
    topology.pools.push_back(std::move(out));
  }
  return topology;
}

}  // namespace sextant::lab
