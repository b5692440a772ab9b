// What kubelets follow, sorted by node: one informer of Pods and one of Nodes for all kubelets of a
// lab, so that a change costs the same with ten nodes and with ten thousand.
//
//   NodeFeed feed(informers);
//   auto handle = feed.Follow("worker", {.on_pod = ..., .on_node = ...});
//
// Threads: the informers' loop. Handlers may follow and drop handles.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/informer.h"

namespace sextant::kubelet {

class NodeFeed {
 public:
  struct Handlers {
    // A Pod of this node, with a `before` that is empty if it was not its Pod before.
    std::function<void(const client::Change&)> on_pod;
    std::function<void(const client::Change&)> on_node;
  };

  explicit NodeFeed(client::SharedInformers& informers);

  // Until the handle is dropped; one follower a node. Objects already there are told when the
  // informers are synced: posted.
  [[nodiscard]] std::shared_ptr<void> Follow(std::string node, Handlers handlers);

  // Runs once when both informers have their first list.
  void OnSynced(Task task);
  std::vector<api::Object> PodsOf(const std::string& node) const;
  api::Object Node(const std::string& node) const { return nodes_.Get({"", node}); }

 private:
  using Followers = std::map<std::string, std::shared_ptr<const Handlers>>;

  client::Informer& pods_;
  client::Informer& nodes_;
  std::shared_ptr<Followers> followers_ = std::make_shared<Followers>();
  std::unique_ptr<client::Subscription> pod_subscription_;
  std::unique_ptr<client::Subscription> node_subscription_;
};

}  // namespace sextant::kubelet
