// Facts: models, version, and nvidia-smi as a node's host would show it.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "api/json.h"
#include "base/clock.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "cli/session.h"
#include "gpu/catalogue.h"
#include "gpu/inventory.h"
#include "gpu/smi.h"
#include "lab/pools.h"

namespace sextant::cli {

int Models(Output output) {
  api::Editor edit;
  edit.Root().SetList();
  if (output == Output::kText) {
    fmt::print("{:<22} {:<34} {:>10}  {:<13} {}\n", "MODEL", "PRODUCT", "MEMORY MiB",
               "ARCHITECTURE", "ALSO CALLED");
  }
  for (const gpu::Model& model : gpu::Catalogue().models) {
    api::Mut out = edit.Root().Append();
    out.Set("model", model.id);
    out.Set("product", model.product);
    out.Set("memoryMiB", model.memory_mib);
    out.Set("architecture", model.architecture);
    out.Set("computeCapability", fmt::format("{}.{}", model.compute_major, model.compute_minor));
    out.Set("usualCount", model.server.count);
    out["aliases"].SetList();
    for (const std::string& alias : model.aliases) out["aliases"].Append().SetString(alias);
    if (output == Output::kText) {
      fmt::print("{:<22} {:<34} {:>10}  {:<13} {}\n", model.id, model.product, model.memory_mib,
                 model.architecture, fmt::join(model.aliases, ", "));
    }
  }
  if (output == Output::kJson) {
    const api::Object object = std::move(edit).Finish();
    fmt::print("{}", api::ToJson(object.root(), {.indent = 2, .newline = true}));
  }
  return 0;
}

int Version(Output output) {
  if (output == Output::kText) {
    fmt::print("sextant {} (Kubernetes {})\n", version::kSextant, version::kKubernetes);
    return 0;
  }
  api::Editor edit;
  edit.Root().Set("sextant", version::kSextant);
  edit.Root().Set("kubernetes", version::kKubernetes);
  const api::Object object = std::move(edit).Finish();
  fmt::print("{}", api::ToJson(object.root(), {.indent = 2, .newline = true}));
  return 0;
}

// The node's cards follow from its pool, the lab's name and its own: the same function that the lab
// itself uses makes them.
int NvidiaSmi(const std::string& name, const std::string& node_name,
              const std::vector<std::string>& arguments) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto session = Session::ToLab(*state);
  if (!session) return Report(session.error());
  auto node = (*session)->calls().Get(client::kNodes, {"", node_name});
  if (!node) return Report(node.error());
  gpu::Inventory cards;
  auto topologies = (*session)->calls().List(
      client::kConfigMaps, {.field_selector = fmt::format("metadata.name={}", lab::kTopologyName)});
  if (!topologies) return Report(topologies.error());
  const std::string key = lab::PoolLabelKey(topologies->items);
  const std::string pool_name((*node)["metadata"]["labels"][key].AsString());
  if (!pool_name.empty()) {
    auto pool = (*session)->calls().Get(client::kGpuPools, {"", pool_name});
    if (!pool) return Report(pool.error());
    auto built = lab::CardsOfPool(*pool, state->name(), node_name);
    if (!built) return Report(built.error());
    cards = *std::move(built);
  }
  const std::time_t now = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(RealClock().Now()));
  gpu::SmiTime at;
  ::localtime_r(&now, &at.local);
  const gpu::SmiResult result = gpu::RunSmi(cards, arguments, at);
  fmt::print("{}", result.out);
  return result.code;
}

}  // namespace sextant::cli
