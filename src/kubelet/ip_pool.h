// The addresses of one node's Pods: the IPv4 range that the node was given, lowest free one first
// after those given last, so that an address is not used again at once.
// Threads: one. Source: the host-local plugin that kindnet uses (.0 network, .1 gateway).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace sextant::kubelet {

class IpPool {
 public:
  // "10.244.1.0/24"; an empty or unreadable range gives empty addresses.
  explicit IpPool(std::string_view cidr);
  std::string Take();  // empty: none is left
  void Give(const std::string& ip);

 private:
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint32_t next_ = 0;
  std::set<uint32_t> taken_;
};

}  // namespace sextant::kubelet
