// Facts: models, version, and nvidia-smi as a node's host would show it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "api/json.h"
#include "base/clock.h"
#include "base/file.h"
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

namespace {

// The node's cards follow from its pool, the lab's name and its own: the same function that the lab
// itself uses makes them.
Result<gpu::Inventory> CardsOf(client::Blocking& calls, const std::string& lab,
                               const std::string& node_name) {
  ASSIGN_OR_RETURN(const api::Object node, calls.Get(client::kNodes, {"", node_name}));
  ASSIGN_OR_RETURN(const struct client::List topologies,
                   calls.List(client::kConfigMaps, {.field_selector = fmt::format(
                                                        "metadata.name={}", lab::kTopologyName)}));
  const std::string key = lab::PoolLabelKey(topologies.items);
  const std::string pool_name(node["metadata"]["labels"][key].AsString());
  if (pool_name.empty()) return gpu::Inventory{};
  ASSIGN_OR_RETURN(const api::Object pool, calls.Get(client::kGpuPools, {"", pool_name}));
  return lab::CardsOfPool(pool, lab, node_name);
}

gpu::SmiTime SmiNow() {
  const auto since = RealClock().Now().time_since_epoch();
  const std::time_t now = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  gpu::SmiTime at;
  ::localtime_r(&now, &at.local);
  at.milliseconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000);
  return at;
}

// To standard output, or to the file that -f names: written where it is, not in a new file's place,
// since it may be /dev/null or a pipe.
Status Show(const gpu::SmiResult& result) {
  const std::string to = result.file.empty() ? "/dev/stdout" : result.file;
  const int fd = result.file.empty()
                     ? ::dup(STDOUT_FILENO)
                     : ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(FileError("open", to, errno));
  std::string_view rest = result.out;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    rest.remove_prefix(static_cast<size_t>(n));
  }
  const int error = errno;
  ::close(fd);
  if (!rest.empty()) return Fail(FileError("write", to, error));
  return {};
}

}  // namespace

int NvidiaSmi(const std::string& name, const std::string& node_name,
              const std::vector<std::string>& arguments) {
  auto state = FindLab(name);
  if (!state) return Report(state.error());
  auto session = Session::ToLab(*state);
  if (!session) return Report(session.error());
  while (true) {
    auto cards = CardsOf((*session)->calls(), state->name(), node_name);
    if (!cards) return Report(cards.error());
    const gpu::SmiResult result = gpu::RunSmi(*cards, arguments, SmiNow());
    if (auto shown = Show(result); !shown) return Report(shown.error());
    if (result.loop_ms == 0 || result.code != 0) return result.code;
    std::this_thread::sleep_for(std::chrono::milliseconds(result.loop_ms));
  }
}

}  // namespace sextant::cli
