// Which addresses each node of a lab has. They look as in kind: Pods from 10.244.N.0/24 for the
// first 256, the node itself 172.18.0.N+2 for the first 254. More nodes are counted on in
// 172.18.0.0/16 and take their Pods' ranges from 100.64.0.0/10 (the shared address space, RFC
// 6598), which carries 16,384 more. No two nodes share a range or an address.
//
// The nodes of the lab's configuration have the first places, whether they are there or not; a node
// that is added takes the place that its Node object names (it had it before a restart), else the
// lowest that is free.
// Threads: one.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lab/config.h"

namespace sextant::lab {

class AddressPlan {
 public:
  static constexpr size_t kPlaces = 256 + 16'384;
  static std::string PodCidr(size_t place);
  static std::string NodeIp(size_t place);
  static std::optional<size_t> PlaceOf(std::string_view pod_cidr);

  explicit AddressPlan(const std::vector<NodeConfig>& configured);
  // `pod_cidr`: what the Node object has, or empty. Nothing where all places are taken.
  std::optional<size_t> Take(const std::string& node, std::string_view pod_cidr);
  void Give(const std::string& node);

 private:
  std::map<std::string, size_t> configured_;
  std::map<std::string, size_t> added_;
  std::set<size_t> taken_;  // by added nodes
  size_t lowest_;           // no place from the configured ones up to here is free
};

}  // namespace sextant::lab
