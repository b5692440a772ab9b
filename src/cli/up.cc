// `up`, `create cluster`: settles what the lab is, starts its process, waits, tells how to go on.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "client/kubeconfig.h"
#include "gpu/catalogue.h"
#include "lab/kind_config.h"
#include "lab/known_names.h"
#include "lab/pools.h"
#include "lab/state.h"
#include "net/io.h"

namespace sextant::cli {
namespace {

constexpr size_t kMaxConfig = 4 << 20;
constexpr int kDefaultWorkers = 2;
constexpr size_t kMaxNamed = 8;  // nodes in an error
constexpr int kMaxGpus = 256;    // of one node
constexpr Duration kLongestWait = std::chrono::hours(24);

Result<std::string> ReadConfig(const std::string& path) {
  if (path != "-") {
    auto text = ReadFile(path, kMaxConfig);
    if (!text) return Fail(UsageError(fmt::format("--config: {}", text.error().message)));
    return text;
  }
  std::string text;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, n);
    if (text.size() > kMaxConfig) return Fail(UsageError("standard input is too long"));
  }
  return text;
}

// "NAME=MODEL[:COUNT]", the model by any of its names.
Result<lab::PoolConfig> ParsePool(const std::string& text, const std::string& allocation) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Fail(UsageError(
        fmt::format("--gpu-pool {}: must be NAME=MODEL[:COUNT], such as default=h100:8", text)));
  }
  lab::PoolConfig pool;
  pool.name = text.substr(0, equals);
  std::string model = text.substr(equals + 1);
  const size_t colon = model.rfind(':');
  std::optional<int> count;
  if (colon != std::string::npos) {
    int number = -1;
    const char* end = model.data() + model.size();
    const auto read = std::from_chars(model.data() + colon + 1, end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 0 || number > kMaxGpus) {
      return Fail(UsageError(
          fmt::format("--gpu-pool {}: the count must be a number from 0 to {}", text, kMaxGpus)));
    }
    count = number;
    model.resize(colon);
  }
  auto found = gpu::FindModel(model);
  if (!found)
    return Fail(UsageError(fmt::format("--gpu-pool {}: {}", text, found.error().message)));
  pool.model = (*found)->id;
  pool.count = count.value_or((*found)->server.count > 0 ? (*found)->server.count : 8);
  pool.allocation = allocation;
  if (auto good = lab::CheckPool(pool); !good) {
    return Fail(UsageError(fmt::format("--gpu-pool {}: {}", text, good.error().message)));
  }
  return pool;
}

Result<lab::RuntimeMode> ParseRuntime(const std::string& text) {
  if (text == "auto") return lab::RuntimeMode::kAuto;
  if (text == "process") return lab::RuntimeMode::kProcess;
  if (text == "simulated") return lab::RuntimeMode::kSimulated;
  return Fail(UsageError(fmt::format("--runtime {}: must be auto, process or simulated", text)));
}

// Labels the nodes that get the first pool's GPUs.
Status LabelNodes(const std::string& which, const std::string& pool, lab::LabConfig& config) {
  const std::string key(lab::kPoolLabel);
  if (which.empty()) return {};
  if (which == "all") {
    for (lab::NodeConfig& node : config.nodes) node.labels[key] = pool;
    return {};
  }
  if (which == "first") {
    for (lab::NodeConfig& node : config.nodes) {
      if (node.control_plane) continue;
      node.labels[key] = pool;
      return {};
    }
    return Fail(UsageError("--gpu-nodes first: there is no worker; use --gpu-nodes all"));
  }
  std::string_view rest = which;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    auto node = std::find_if(config.nodes.begin(), config.nodes.end(),
                             [&](const lab::NodeConfig& n) { return n.name == name; });
    if (node == config.nodes.end()) {
      std::vector<std::string> names;
      names.reserve(config.nodes.size());
      for (const lab::NodeConfig& n : config.nodes) names.push_back(n.name);
      const std::string nearest = lab::DidYouMean(name, names);
      if (names.size() > kMaxNamed) names.erase(names.begin() + kMaxNamed, names.end());
      return Fail(UsageError(fmt::format("--gpu-nodes {}: no such node{}; there are {}{}", name,
                                         nearest, fmt::join(names, ", "),
                                         config.nodes.size() > kMaxNamed ? ", ..." : "")));
    }
    node->labels[key] = pool;
  }
  return {};
}

// Pools of the command line come first and win over the file's of the same name.
Status SettlePools(const UpOptions& options, lab::LabConfig& config,
                   std::vector<std::string>& notices) {
  std::vector<lab::PoolConfig> pools;
  const auto named = [&pools](const std::string& name) {
    return std::any_of(pools.begin(), pools.end(),
                       [&](const lab::PoolConfig& pool) { return pool.name == name; });
  };
  for (const std::string& text : options.gpu_pools) {
    ASSIGN_OR_RETURN(lab::PoolConfig pool, ParsePool(text, options.gpu_allocation));
    if (named(pool.name)) {
      return Fail(UsageError(fmt::format("--gpu-pool {}: given twice", pool.name)));
    }
    pools.push_back(std::move(pool));
  }
  for (lab::PoolConfig& pool : config.pools) {
    if (!named(pool.name)) pools.push_back(std::move(pool));
  }
  if (pools.empty() && options.gpu_allocation != lab::PoolConfig().allocation) {
    pools.push_back({.allocation = options.gpu_allocation});
  }
  config.pools = std::move(pools);
  if (std::any_of(config.pools.begin(), config.pools.end(),
                  [](const lab::PoolConfig& pool) { return pool.allocation == "dra"; })) {
    notices.emplace_back(
        "pools with allocation dra offer no nvidia.com/gpu; their cards are in ResourceSlices, but "
        "this version allocates no ResourceClaim yet");
  }
  return {};
}

Result<lab::LabRecord> Settle(const UpOptions& options, std::vector<std::string>& notices) {
  lab::LabRecord record;
  lab::LabConfig& config = record.config;
  if (!options.config_file.empty()) {
    if (options.nodes >= 0) {
      return Fail(UsageError("--nodes and --config exclude each other: the file lists the nodes"));
    }
    ASSIGN_OR_RETURN(const std::string text, ReadConfig(options.config_file));
    ASSIGN_OR_RETURN(lab::KindFile file, lab::ReadKindFile(text, options.config_file));
    config = std::move(file.config);
    notices = std::move(file.notices);
  } else {
    const int workers = options.nodes >= 0 ? options.nodes : kDefaultWorkers;
    config.name.clear();
    config.nodes.push_back({.name = {}, .control_plane = true});
    for (int i = 0; i < workers; ++i) config.nodes.push_back({});
  }
  const char* kind_name = std::getenv("KIND_CLUSTER_NAME");
  if (!options.name.empty()) {
    config.name = options.name;
  } else if (options.as_kind && (config.name.empty() || (kind_name && *kind_name))) {
    config.name = KindName("");
  }
  if (config.name.empty()) config.name = "gpu-lab";
  RETURN_IF_ERROR(lab::CheckLabName(config.name));
  lab::NameNodes(config);
  RETURN_IF_ERROR(lab::CheckNodeNames(config));
  ASSIGN_OR_RETURN(config.runtime, ParseRuntime(options.runtime));
  RETURN_IF_ERROR(SettlePools(options, config, notices));
  std::string which = options.gpu_nodes;
  if (which.empty() && options.config_file.empty()) {
    which = config.nodes.size() > 1 ? "first" : "all";  // a lab of its control plane only
  }
  const std::string pool = lab::FirstPools(config).front().name;
  RETURN_IF_ERROR(LabelNodes(which, pool, config));
  if (!options.listen.empty()) config.listen_address = options.listen;
  if (!net::IsIpAddress(config.listen_address)) {
    return Fail(UsageError(fmt::format(
        "--listen {}: must be an IP address of this machine, or 0.0.0.0 for all of them",
        config.listen_address)));
  }
  if (options.port >= 0) config.port = options.port;
  record.ephemeral = options.ephemeral;
  record.kubeconfig = options.kubeconfig;
  record.context = options.context_name;
  if (record.context.empty()) {
    record.context = fmt::format(
        "{}-{}", options.as_kind || options.called_kind ? "kind" : "sextant", config.name);
  }
  return record;
}

// Takes the lock of a lab that is not there; from here on nobody else makes one of its name.
Status Claim(lab::LabState& state, const UpOptions& options) {
  if (Status locked = state.Lock(); !locked) {
    if (!state.running()) return locked;
    if (options.as_kind) {
      return Fail(UsageError(fmt::format(
          "failed to create cluster: node(s) already exist for a cluster with the name \"{}\"",
          state.name())));
    }
    return Fail(
        UsageError(fmt::format("the lab {} is running already; see `sextant status --name "
                               "{}`, or take it down with `sextant down --name {}`",
                               state.name(), state.name(), state.name())));
  }
  if (!state.exists()) return {};
  auto record = state.Read();
  if (record && record->ephemeral) {
    RETURN_IF_ERROR(state.Remove());
    return Claim(state, options);
  }
  return Fail(
      UsageError(fmt::format("the lab {} exists and is stopped: `sextant start --name {}` "
                             "brings it back, `sextant down --name {}` removes it",
                             state.name(), state.name(), state.name())));
}

}  // namespace

Result<Duration> ParseWait(const std::string& text) {
  if (text.empty()) return Duration{0};
  auto wait = ParseDuration(text);
  if (!wait) return Fail(UsageError(fmt::format("--wait {}: {}", text, wait.error().message)));
  if (*wait < Duration{0} || *wait > kLongestWait) {
    return Fail(UsageError(fmt::format("--wait {}: must be from 0s to 24h", text)));
  }
  return *wait;
}

int Up(const UpOptions& options) {
  std::vector<std::string> notices;
  auto wait = ParseWait(options.wait);
  if (!wait) return Report(wait.error());
  if (auto image = lab::CheckNodeImage(options.image); !image) {
    return Report(UsageError(fmt::format("--image: {}", image.error().message)));
  }
  auto record = Settle(options, notices);
  if (!record) return Report(record.error());
  for (const std::string& notice : notices) fmt::print(stderr, "note: {}\n", notice);
  auto state = lab::LabState::Of(record->config.name);
  if (!state) return Report(state.error());
  if (auto claimed = Claim(*state, options); !claimed) return Report(claimed.error());
  if (auto written = state->Write(*record); !written) {
    if (auto removed = state->Remove(); !removed) Report(removed.error());
    return Report(written.error());
  }
  if (options.foreground) return RunLab(*std::move(state), *wait, true);
  return Launch(*std::move(state), *record,
                {.wait = *wait, .created = !options.retain, .as_kind = options.as_kind});
}

}  // namespace sextant::cli
