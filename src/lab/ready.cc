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

int64_t GpusShown(const Object& node) {
  return std::atoll(
      std::string(node["status"]["allocatable"]["nvidia.com/gpu"].AsString("0")).c_str());
}

}  // namespace

ReadyWatch::ReadyWatch(client::SharedInformers& informers, PoolOf pool_of)
    : nodes_(informers.For({.gvr = client::kNodes})),
      pools_(informers.For({.gvr = client::kGpuPools})),
      pool_of_(std::move(pool_of)) {
  const auto check = [this](const client::Change&) { Check(); };
  subscriptions_.push_back(nodes_.Subscribe(check));
  subscriptions_.push_back(pools_.Subscribe(check));
}

void ReadyWatch::OnReady(size_t nodes, std::function<void()> ready) {
  wanted_ = nodes;
  ready_ = std::move(ready);
  Check();
}

void ReadyWatch::Check() {
  if (!ready_) return;
  const Object waited = waits_for_.empty() ? Object() : nodes_.Get({"", waits_for_});
  if (waited && !MissingOf(waited).empty()) return;
  if (!Missing(wanted_).empty()) return;
  std::exchange(ready_, nullptr)();
}

std::string ReadyWatch::MissingOf(const Object& node) const {
  if (!IsReady(node)) return fmt::format("node {} is not Ready", node.name());
  const std::string pool_name = pool_of_(node);
  if (pool_name.empty()) return {};
  const Object pool = pools_.Get({"", pool_name});
  if (!pool) return {};
  const bool by_plugin = pool["spec"]["allocation"].AsString() != "dra";
  const int64_t wanted = by_plugin ? pool["spec"]["count"].AsInt() : 0;
  if (GpusShown(node) == wanted) return {};
  return fmt::format("node {} shows {} of {} GPUs", node.name(), GpusShown(node), wanted);
}

std::string ReadyWatch::Missing(size_t nodes) const {
  if (nodes_.size() < nodes) {
    return fmt::format("{} of {} nodes have registered", nodes_.size(), nodes);
  }
  for (const Object& node : nodes_.List()) {
    if (std::string missing = MissingOf(node); !missing.empty()) {
      waits_for_ = node.name();
      return missing;
    }
  }
  return {};
}

}  // namespace sextant::lab
