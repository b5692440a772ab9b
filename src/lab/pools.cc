#include "lab/pools.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "api/names.h"
#include "api/rules.h"
#include "base/check.h"
#include "base/log.h"
#include "gpu/catalogue.h"
#include "gpu/labels.h"
#include "lab/known_names.h"

namespace sextant::lab {
namespace {

using api::Editor;
using api::Mut;
using api::Object;
using api::Value;
using client::ObjectName;

constexpr std::string_view kTopologyKey = "topology.yml";
constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kRackLabel = "sextant.dev/rack";
constexpr std::string_view kManager = "sextant-pools";
// What a pool from a topology ConfigMap keeps beyond GPUPool's fields.
constexpr std::string_view kProductAnnotation = "sextant.dev/product";
constexpr std::string_view kMemoryAnnotation = "sextant.dev/memory-mib";
constexpr std::string_view kSourceAnnotation = "sextant.dev/source";
constexpr std::string_view kPoolReady = "PoolReady";
constexpr std::string_view kInvalidTopology = "InvalidTopology";

// "ConfigMap default/topology", "Node worker"
std::string KeyOf(const Object& object) {
  return fmt::format("{} {}{}{}", object.kind(), object.ns(), object.ns().empty() ? "" : "/",
                     object.name());
}

// What a pool's condition Ready says.
struct PoolState {
  bool ready = false;
  std::string_view reason;
  std::string message;
};

host::MachineSpec MachineOfPool(Value spec) {
  host::MachineSpec machine;
  if (spec["node"]["cpu"]) machine.cpu = spec["node"]["cpu"].AsString();
  if (spec["node"]["memory"]) machine.memory = spec["node"]["memory"].AsString();
  for (Value device : spec["devices"].items()) {
    machine.resources[std::string(device["name"].AsString())] =
        fmt::format("{}", device["count"].AsInt());
  }
  for (auto [name, amount] : spec["resources"].members()) {
    machine.resources[std::string(name)] = amount.AsString();
  }
  return machine;
}

void SetLabel(Mut labels, Value now, std::string_view key, std::string_view wanted, int& changes) {
  if (now[key].AsString() == wanted) return;
  if (wanted.empty()) {
    labels[key].SetNull();
  } else {
    labels.Set(key, wanted);
  }
  ++changes;
}

bool HasGpuTaint(Value taints) {
  for (Value taint : taints.items())
    if (taint["key"].AsString() == gpu::kGpuTaint.key) return true;
  return false;
}

// The node's taints with the GPU taint, or without it.
void SetTaint(Mut spec, Value now, bool wanted) {
  Mut taints = spec["taints"];
  taints.SetList();
  for (Value taint : now.items()) {
    if (taint["key"].AsString() == gpu::kGpuTaint.key) continue;
    Mut kept = taints.Append();
    for (auto [key, value] : taint.members()) kept.Set(key, value.AsString());
  }
  if (!wanted) return;
  Mut added = taints.Append();
  added.Set("key", gpu::kGpuTaint.key);
  added.Set("value", gpu::kGpuTaint.value);
  added.Set("effect", gpu::kGpuTaint.effect);
}

std::string SourceText(const ObjectName& source) {
  return fmt::format("configmap/{}", source.ToString());
}

// The ConfigMap that a pool is from; no name for the others.
ObjectName SourceOf(const Object& pool) {
  std::string_view text = pool["metadata"]["annotations"][kSourceAnnotation].AsString();
  constexpr std::string_view kPrefix = "configmap/";
  if (!text.starts_with(kPrefix)) return {};
  text.remove_prefix(kPrefix.size());
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

Editor NewPool(std::string_view name) {
  Editor edit;
  edit.Root().Set("kind", "GPUPool");
  edit.Root().Set("apiVersion", "sextant.dev/v1alpha1");
  edit.Root()["metadata"].Set("name", name);
  return edit;
}

Object PoolFromTopology(const TopologyPool& pool, const ObjectName& source) {
  Editor edit = NewPool(pool.name);
  Mut root = edit.Root();
  Mut annotations = root["metadata"]["annotations"];
  annotations.Set(kSourceAnnotation, SourceText(source));
  if (!pool.product.empty()) annotations.Set(kProductAnnotation, pool.product);
  if (pool.memory_mib > 0) {
    annotations.Set(kMemoryAnnotation, fmt::format("{}", pool.memory_mib));
  }
  Mut spec = root["spec"];
  spec.Set("model", pool.model);
  spec.Set("count", pool.count);
  spec.Set("allocation", "plugin");
  for (const auto& [name, count] : pool.devices) {
    Mut device = spec["devices"].Append();
    device.Set("name", name);
    device.Set("count", count);
  }
  for (const auto& [name, amount] : pool.resources) spec["resources"].Set(name, amount);
  return std::move(edit).Finish();
}

// Whether the pool in the API says what `wanted` says.
bool Says(const Object& there, const Object& wanted) {
  for (std::string_view key : {kSourceAnnotation, kProductAnnotation, kMemoryAnnotation}) {
    if (there["metadata"]["annotations"][key].AsString() !=
        wanted["metadata"]["annotations"][key].AsString()) {
      return false;
    }
  }
  return Equal(there["spec"], wanted["spec"]);
}

// Ends one unit of work when all its parts have ended; what went wrong last is told.
class Together {
 public:
  Together(size_t parts, std::move_only_function<void(Status)> done)
      : left_(parts), done_(std::move(done)) {}
  void One(Status status) {
    if (!status) failed_ = std::move(status);
    if (--left_ == 0) done_(std::move(failed_));
  }

 private:
  size_t left_;
  Status failed_;
  std::move_only_function<void(Status)> done_;
};

Status StatusOf(Result<Object> result) {
  if (result) return {};
  return std::unexpected(std::move(result).error());
}

// Ends a unit of work; what is gone needs no work.
auto Ending(std::move_only_function<void(Status)> done) {
  return [done = std::move(done)](Result<Object> result) mutable {
    if (!result && result.error().Is("NotFound")) return done({});
    done(StatusOf(std::move(result)));
  };
}

}  // namespace

std::vector<PoolConfig> FirstPools(const LabConfig& config) {
  std::vector<PoolConfig> pools = config.pools;
  const PoolConfig standard;
  if (std::none_of(pools.begin(), pools.end(),
                   [&](const PoolConfig& pool) { return pool.name == standard.name; })) {
    pools.push_back(standard);
  }
  return pools;
}

Object PoolObject(const PoolConfig& pool) {
  Editor edit = NewPool(pool.name);
  Mut root = edit.Root();
  if (!pool.spec.empty()) {
    auto spec = api::ParseJson(pool.spec);
    CHECK(spec.has_value());
    root["spec"].Set(*spec);
    return std::move(edit).Finish();
  }
  root["spec"].Set("model", pool.model);
  root["spec"].Set("count", pool.count);
  root["spec"].Set("allocation", pool.allocation);
  return std::move(edit).Finish();
}

Status CheckPool(const PoolConfig& pool) {
  const api::Resource* resource =
      api::Registry::Builtin().FindKind({"sextant.dev", "v1alpha1"}, "GPUPool");
  CHECK(resource != nullptr);
  const api::Rules& rules = api::RulesFor(*resource);
  Editor edit(PoolObject(pool));
  if (rules.set_defaults) rules.set_defaults(edit.Root());
  const Object object = std::move(edit).Finish();
  api::FieldErrors errors;
  api::ValidateObjectMeta(object["metadata"], resource->namespaced, rules, errors);
  for (std::string& why : api::IsLabelValue(pool.name)) {
    errors.InvalidText("metadata.name", pool.name, std::move(why));
  }
  rules.validate(object.root(), errors);
  if (errors.empty()) return {};
  const Cause& first = errors.causes().front();
  Error error =
      UsageError(fmt::format("GPUPool {}: {}: {}", pool.name, first.field, first.message));
  error.causes = {first};
  return Fail(std::move(error));
}

std::string PoolLabelKey(const std::vector<Object>& topologies) {
  for (const Object& config : topologies) {
    auto topology = ParseTopology(config["data"][kTopologyKey].AsString());
    if (topology && !topology->pool_label_key.empty()) return topology->pool_label_key;
  }
  return std::string(kPoolLabel);
}

Result<gpu::Inventory> CardsOfPool(const Object& pool, const std::string& cluster,
                                   const std::string& node) {
  const Value spec = pool["spec"];
  gpu::PoolSpec cards;
  cards.model = spec["model"].AsString();
  cards.count = static_cast<int>(spec["count"].AsInt());
  const Value annotations = pool["metadata"]["annotations"];
  cards.product = annotations[kProductAnnotation].AsString();
  cards.memory_mib = std::atoi(std::string(annotations[kMemoryAnnotation].AsString("0")).c_str());
  if (spec["allocation"].AsString() == "dra") cards.dra_cards = cards.count;
  cards.fabric = spec["node"]["rack"].AsString();
  return gpu::BuildInventory(cards, cluster, node);
}

namespace {

PoolState StateOf(const Object& pool, const std::string& cluster) {
  if (auto cards = CardsOfPool(pool, cluster, "check"); !cards) {
    return {false, "InvalidPool", cards.error().message};
  }
  const std::string_view product = pool["metadata"]["annotations"][kProductAnnotation].AsString();
  if (product.empty()) return {true, kPoolReady, "the cards of this pool are simulated"};
  auto model = gpu::FindModel(product);
  return {true, "UnknownModel",
          fmt::format("{}; the cards of this pool have that name, all else of them is {}'s",
                      model ? fmt::format("gpuProduct \"{}\"", product) : model.error().message,
                      pool["spec"]["model"].AsString())};
}

}  // namespace

Pools::Pools(client::Client& client, client::SharedInformers& informers, MachineOf machines,
             PoolsOptions options)
    : client_(client),
      nodes_(informers.For({.gvr = client::kNodes})),
      pools_(informers.For({.gvr = client::kGpuPools})),
      topologies_(
          informers.For({.gvr = client::kConfigMaps,
                         .field_selector = fmt::format("metadata.name={}", kTopologyName)})),
      machines_(std::move(machines)),
      options_(std::move(options)),
      events_(client, {.component = std::string(kManager), .host = {}}),
      nodes_queue_(client.executor(), {.parallel = 16},
                   [this](const std::string& name, Done done) { SyncNode(name, std::move(done)); }),
      pools_queue_(client.executor(), {},
                   [this](const std::string& name, Done done) { SyncPool(name, std::move(done)); }),
      topologies_queue_(client.executor(), {}, [this](const ObjectName& name, Done done) {
        SyncTopology(name, std::move(done));
      }) {}

void Pools::Start() {
  subscriptions_.push_back(nodes_.Subscribe([this](const client::Change& c) { OnNode(c); }));
  subscriptions_.push_back(pools_.Subscribe([this](const client::Change& c) { OnPool(c); }));
  subscriptions_.push_back(
      topologies_.Subscribe([this](const client::Change& c) { OnTopology(c); }));
}

std::string Pools::PoolOf(const Object& node) const {
  return std::string(node["metadata"]["labels"][label_key_].AsString());
}

void Pools::Tell(const Object& about, std::string_view reason, std::string message) {
  const std::string key = KeyOf(about);
  const auto told = told_.find(key);
  if (message == (told == told_.end() ? "" : told->second)) return;
  if (message.empty()) {
    told_.erase(told);
    return;
  }
  log::Warning("pools", "{}: {}", key, message);
  events_.Warning(about, reason, message);
  told_[key] = std::move(message);
}

void Pools::OnNode(const client::Change& change) {
  if (change.deleted()) told_.erase(KeyOf(change.before));
  const std::string before = change.added() ? "" : PoolOf(change.before);
  const std::string after = change.deleted() ? "" : PoolOf(change.after);
  nodes_queue_.Add(std::string(change.object().name()));
  if (before == after) return;
  if (!before.empty()) pools_queue_.Add(before);
  if (!after.empty()) pools_queue_.Add(after);
}

void Pools::OnPool(const client::Change& change) {
  const std::string name(change.object().name());
  if (change.deleted()) told_.erase(KeyOf(change.before));
  pools_queue_.Add(name);
  // Found at the start: its ConfigMap may have gone meanwhile.
  if (change.added() && !SourceOf(change.after).name.empty()) {
    topologies_queue_.Add(SourceOf(change.after));
  }
  for (const Object& node : nodes_.List()) {
    if (PoolOf(node) == name) nodes_queue_.Add(std::string(node.name()));
  }
}

void Pools::OnTopology(const client::Change& change) {
  if (change.deleted()) told_.erase(KeyOf(change.before));
  topologies_queue_.Add(change.name());
}

std::string Pools::NoSuchPool(const std::string& name) const {
  std::vector<std::string> names;
  for (const Object& pool : pools_.List()) names.emplace_back(pool.name());
  return fmt::format("the node's label {} names the GPUPool \"{}\", which is not there{}",
                     label_key_, name, DidYouMean(name, names));
}

void Pools::SyncNode(const std::string& name, Done done) {
  host::SimulatedMachine* machine = machines_(name);
  const Object node = nodes_.Get({"", name});
  if (!machine || !node) return done({});
  const std::string wanted = PoolOf(node);
  const Object pool = wanted.empty() ? Object() : pools_.Get({"", wanted});
  if (!wanted.empty() && !pool && !pools_.synced()) return done(Fail(InternalError("not synced")));
  gpu::Inventory cards;
  if (pool) {
    // What is wrong with it stands at the pool itself.
    if (auto built = CardsOfPool(pool, options_.cluster, name)) cards = *std::move(built);
  }
  Tell(node, "GPUPoolNotFound", wanted.empty() || pool ? "" : NoSuchPool(wanted));
  machine->SetSpec(pool ? MachineOfPool(pool["spec"]) : host::MachineSpec());
  machine->SetCards(std::move(cards));
  PatchNode(node, pool, std::move(done));
}

void Pools::PatchNode(const Object& node, const Object& pool, Done done) {
  const Value now = node["metadata"]["labels"];
  const bool has_cards = pool && pool["spec"]["count"].AsInt() > 0;
  int changes = 0;
  Editor edit;
  Mut labels = edit.Root()["metadata"]["labels"];
  SetLabel(labels, now, gpu::kPciLabel, has_cards ? "true" : "", changes);
  const Value place = pool["spec"]["node"];
  if (place["zone"]) SetLabel(labels, now, kZoneLabel, place["zone"].AsString(), changes);
  if (place["rack"]) SetLabel(labels, now, kRackLabel, place["rack"].AsString(), changes);
  const bool taint = has_cards && pool["spec"]["taint"].AsBool();
  if (taint != HasGpuTaint(node["spec"]["taints"])) {
    SetTaint(edit.Root()["spec"], node["spec"]["taints"], taint);
    edit.Root()["metadata"].Set("resourceVersion", node.resource_version());
    ++changes;
  }
  if (changes == 0) return done({});
  client_.Patch(client::kNodes, {"", std::string(node.name())}, client::PatchType::kMerge,
                std::move(edit).Finish(), {.field_manager = std::string(kManager)},
                Ending(std::move(done)));
}

// The pool's status: its nodes, and whether its model is known.
void Pools::SyncPool(const std::string& name, Done done) {
  const Object pool = pools_.Get({"", name});
  if (!pool) return done({});
  Editor edit;
  Mut status = edit.Root()["status"];
  Mut nodes = status["nodes"];
  nodes.SetList();
  for (const Object& node : nodes_.List()) {
    if (PoolOf(node) == name) nodes.Append().SetString(node.name());
  }
  const PoolState state = StateOf(pool, options_.cluster);
  Tell(pool, state.reason, state.reason == kPoolReady ? "" : state.message);
  Mut condition = status["conditions"].Append();
  condition.Set("type", "Ready");
  condition.Set("status", state.ready ? "True" : "False");
  condition.Set("reason", state.reason);
  condition.Set("message", state.message);
  const Value old = pool["status"]["conditions"].at(0);
  const bool same_state = old["status"].AsString() == (state.ready ? "True" : "False");
  condition.Set("lastTransitionTime", same_state && old["lastTransitionTime"]
                                          ? std::string(old["lastTransitionTime"].AsString())
                                          : FormatTime(client_.executor().clock().Now()));
  const Object patch = std::move(edit).Finish();
  if (Equal(patch["status"], pool["status"])) return done({});
  client_.Patch(client::kGpuPools, {"", name}, client::PatchType::kMerge, patch,
                {.field_manager = std::string(kManager), .subresource = "status"},
                Ending(std::move(done)));
}

// What the API server will never take stands in the way of nothing else, and is not tried again
// until the text is another.
void Pools::TopologyDone(const Object& config, Status status, Done done) {
  const bool refused = !status && status.error().Is("Invalid");
  if (config && (status || refused)) {
    Tell(config, kInvalidTopology,
         refused ? fmt::format("{}: {}", kTopologyKey, status.error().message) : "");
  }
  done(refused ? Status() : std::move(status));
}

void Pools::FollowLabelKey() {
  std::string key = PoolLabelKey(topologies_.List());
  if (key == label_key_) return;
  label_key_ = std::move(key);
  for (const Object& node : nodes_.List()) nodes_queue_.Add(std::string(node.name()));
  for (const Object& pool : pools_.List()) pools_queue_.Add(std::string(pool.name()));
}

std::vector<Object> Pools::Left(const ObjectName& source, const Topology& topology) const {
  std::vector<Object> left;
  for (const Object& pool : pools_.List()) {
    if (SourceOf(pool) != source) continue;
    const bool named =
        std::any_of(topology.pools.begin(), topology.pools.end(),
                    [&](const TopologyPool& one) { return one.name == pool.name(); });
    if (!named) left.push_back(pool);
  }
  return left;
}

// Takes the ConfigMap's pools over into GPUPool objects: made, or replaced where they differ. What
// it made before and names no longer gets its first form back, or goes.
void Pools::SyncTopology(const ObjectName& name, Done done) {
  if (!topologies_.synced() || !pools_.synced()) return done(Fail(InternalError("not synced")));
  const Object config = topologies_.Get(name);
  auto parsed = config ? ParseTopology(config["data"][kTopologyKey].AsString()) : Topology{};
  if (!parsed) {  // as it was, until the text is mended
    Tell(config, kInvalidTopology, fmt::format("{}: {}", kTopologyKey, parsed.error().message));
    return done({});
  }
  FollowLabelKey();
  const std::vector<Object> left = Left(name, *parsed);
  // Another ConfigMap may name what this one gives up.
  for (const Object& other : left.empty() ? std::vector<Object>() : topologies_.List()) {
    const ObjectName its{std::string(other.ns()), std::string(other.name())};
    if (its != name) topologies_queue_.Add(its);
  }
  std::vector<Object> wanted;
  for (const TopologyPool& pool : parsed->pools) wanted.push_back(PoolFromTopology(pool, name));
  std::vector<std::string> gone;
  for (const Object& pool : left) {
    const auto first = std::find_if(options_.first.begin(), options_.first.end(),
                                    [&](const PoolConfig& one) { return one.name == pool.name(); });
    if (first == options_.first.end()) {
      gone.emplace_back(pool.name());
    } else {
      wanted.push_back(PoolObject(*first));
    }
  }
  std::erase_if(wanted, [this](const Object& pool) {
    const Object there = pools_.Get({"", std::string(pool.name())});
    return there && Says(there, pool);
  });
  if (wanted.empty() && gone.empty()) return TopologyDone(config, {}, std::move(done));
  auto together = std::make_shared<Together>(
      wanted.size() + gone.size(),
      [this, alive = alive_, config, done = std::move(done)](Status status) mutable {
        if (*alive) TopologyDone(config, std::move(status), std::move(done));
      });
  const auto one = [together](Status status) { together->One(std::move(status)); };
  for (const std::string& pool : gone) {
    client_.Delete(client::kGpuPools, {"", pool}, {}, Ending(one));
  }
  for (const Object& pool : wanted) {
    const ObjectName at{"", std::string(pool.name())};
    client::WriteOptions options{.field_manager = std::string(kManager)};
    if (pools_.Get(at)) {
      client_.Update(client::kGpuPools, at, pool, std::move(options), Ending(one));
    } else {
      client_.Create(client::kGpuPools, at, pool, std::move(options), Ending(one));
    }
  }
}

}  // namespace sextant::lab
