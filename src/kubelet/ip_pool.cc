#include "kubelet/ip_pool.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace sextant::kubelet {
namespace {

constexpr uint32_t kReservedLow = 2;   // the network and the gateway
constexpr uint32_t kReservedHigh = 1;  // broadcast

bool ParseIp(const std::string& text, uint32_t& ip) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return false;
  ip = ntohl(address.s_addr);
  return true;
}

}  // namespace

IpPool::IpPool(std::string_view cidr) {
  const size_t slash = cidr.find('/');
  if (slash == std::string_view::npos) return;
  uint32_t network = 0;
  int bits = 0;
  const std::string_view size = cidr.substr(slash + 1);
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bits);
  if (error != std::errc{} || end != size.data() + size.size() || bits < 8 || bits > 29) return;
  if (!ParseIp(std::string(cidr.substr(0, slash)), network)) return;
  const uint32_t all = uint32_t{1} << (32 - bits);
  first_ = (network & ~(all - 1)) + kReservedLow;
  count_ = all - kReservedLow - kReservedHigh;
}

std::string IpPool::Take() {
  for (uint32_t tried = 0; tried < count_; ++tried) {
    const uint32_t ip = first_ + next_;
    next_ = (next_ + 1) % count_;
    if (!taken_.insert(ip).second) continue;
    return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
  }
  return {};
}

void IpPool::Give(const std::string& ip) {
  uint32_t number = 0;
  if (ParseIp(ip, number)) taken_.erase(number);
}

}  // namespace sextant::kubelet
