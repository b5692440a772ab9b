#include "lab/ready.h"

#include <fmt/format.h>

#include <cstdlib>

#include "api/conditions.h"

namespace sextant::lab {
namespace {

using api::Object;
using api::Value;

bool IsReady(const Object& node) {
  return api::IsConditionTrue(node["status"]["conditions"], "Ready");
}

constexpr std::string_view kByNode = "node";
constexpr client::Gvr kSlices{"resource.k8s.io", "v1", "resourceslices"};
constexpr std::string_view kGpuDriver = "gpu.nvidia.com";

}  // namespace

ReadyWatch::ReadyWatch(client::SharedInformers& informers, PoolOf pool_of)
    : nodes_(informers.For({.gvr = client::kNodes})),
      pools_(informers.For({.gvr = client::kGpuPools})),
      slices_(informers.For({.gvr = kSlices})),
      pool_of_(std::move(pool_of)) {
  slices_.AddIndex(std::string(kByNode), client::NodeNames);
  subscriptions_.push_back(nodes_.Subscribe(
      [this](const client::Change& change) { Look(std::string(change.object().name())); }));
  subscriptions_.push_back(slices_.Subscribe([this](const client::Change& change) {
    Look(std::string(change.object()["spec"]["nodeName"].AsString()));
  }));
  subscriptions_.push_back(pools_.Subscribe([this](const client::Change&) { LookAtAll(); }));
}

void ReadyWatch::OnReady(size_t nodes, std::function<void()> ready) {
  wanted_ = nodes;
  ready_ = std::move(ready);
  LookAtAll();
}

void ReadyWatch::Look(const std::string& name) {
  const Object node = nodes_.Get({"", name});
  if (node && !MissingOf(node).empty()) {
    unready_.insert(name);
  } else {
    unready_.erase(name);
    Check();
  }
}

void ReadyWatch::LookAtAll() {
  unready_.clear();
  for (const Object& node : nodes_.List())
    if (!MissingOf(node).empty()) unready_.emplace(node.name());
  Check();
}

void ReadyWatch::Check() {
  if (ready_ && unready_.empty() && nodes_.size() >= wanted_) std::exchange(ready_, nullptr)();
}

int64_t ReadyWatch::GpusShown(const Object& node, bool by_plugin) const {
  if (by_plugin) {
    return std::atoll(
        std::string(node["status"]["allocatable"]["nvidia.com/gpu"].AsString("0")).c_str());
  }
  std::set<std::string_view> cards;  // a card in MIG mode is several devices
  const auto slices = slices_.ByIndex(std::string(kByNode), std::string(node.name()));
  for (const Object& slice : slices) {
    if (slice["spec"]["driver"].AsString() != kGpuDriver) continue;
    for (Value device : slice["spec"]["devices"].items()) {
      const Value attributes = device["attributes"];
      const Value parent = attributes["parentUUID"];
      cards.insert((parent ? parent : attributes["uuid"])["string"].AsString());
    }
  }
  return static_cast<int64_t>(cards.size());
}

std::string ReadyWatch::MissingOf(const Object& node) const {
  if (!IsReady(node)) return fmt::format("node {} is not Ready", node.name());
  const std::string pool_name = pool_of_(node);
  if (pool_name.empty()) return {};
  const Object pool = pools_.Get({"", pool_name});
  if (!pool) return {};
  const bool by_plugin = pool["spec"]["allocation"].AsString() != "dra";
  const int64_t wanted = pool["spec"]["count"].AsInt();
  const int64_t shown = GpusShown(node, by_plugin);
  if (shown == wanted) return {};
  return fmt::format("node {} shows {} of {} GPUs", node.name(), shown, wanted);
}

std::string ReadyWatch::Missing(size_t nodes) const {
  if (nodes_.size() < nodes) {
    return fmt::format("{} of {} nodes have registered", nodes_.size(), nodes);
  }
  return unready_.empty() ? "" : MissingOf(nodes_.Get({"", *unready_.begin()}));
}

}  // namespace sextant::lab
