#include "kubelet/node_feed.h"

#include "base/check.h"

namespace sextant::kubelet {
namespace {

constexpr char kByNode[] = "node";

std::string NodeOf(const api::Object& pod) {
  return std::string(pod["spec"]["nodeName"].AsString());
}

}  // namespace

NodeFeed::NodeFeed(client::SharedInformers& informers)
    : pods_(informers.For({.gvr = client::kPods})), nodes_(informers.For({.gvr = client::kNodes})) {
  pods_.AddIndex(kByNode, client::NodeNames);
  const std::shared_ptr<Followers> followers = followers_;
  pod_subscription_ = pods_.Subscribe([followers](const client::Change& change) {
    const auto found = followers->find(NodeOf(change.object()));
    if (found == followers->end()) return;
    const std::shared_ptr<const Handlers> handlers = found->second;
    handlers->on_pod(change);
  });
  node_subscription_ = nodes_.Subscribe([followers](const client::Change& change) {
    const auto found = followers->find(std::string(change.object().name()));
    if (found == followers->end()) return;
    const std::shared_ptr<const Handlers> handlers = found->second;
    handlers->on_node(change);
  });
}

std::shared_ptr<void> NodeFeed::Follow(std::string node, Handlers handlers) {
  const auto shared = std::make_shared<const Handlers>(std::move(handlers));
  CHECK(followers_->emplace(node, shared).second);
  const std::weak_ptr<const Handlers> alive = shared;
  OnSynced([this, node, alive] {
    const std::shared_ptr<const Handlers> told = alive.lock();
    if (!told) return;
    if (api::Object object = Node(node)) told->on_node({{}, object});
    for (const api::Object& pod : PodsOf(node)) {
      if (alive.expired()) return;
      told->on_pod({{}, pod});
    }
  });
  return std::shared_ptr<void>(nullptr,
                               [followers = followers_, node](void*) { followers->erase(node); });
}

void NodeFeed::OnSynced(Task task) {
  pods_.OnSynced([this, task = std::move(task)]() mutable { nodes_.OnSynced(std::move(task)); });
}

std::vector<api::Object> NodeFeed::PodsOf(const std::string& node) const {
  return pods_.ByIndex(kByNode, node);
}

}  // namespace sextant::kubelet
