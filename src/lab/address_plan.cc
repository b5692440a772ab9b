#include "lab/address_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sextant::lab {
namespace {

constexpr size_t kSmall = 256;  // places as kind has them

// "10.244." and "3.0/24" → 3
std::optional<size_t> Number(std::string_view text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

}  // namespace

std::string AddressPlan::PodCidr(size_t place) {
  if (place < kSmall) return fmt::format("10.244.{}.0/24", place);
  const size_t over = place - kSmall;
  return fmt::format("100.{}.{}.0/24", 64 + over / 256, over % 256);
}

std::string AddressPlan::NodeIp(size_t place) {
  const size_t host = place + 2;  // .1 is the gateway, as in kind's network 172.18.0.0/16
  return fmt::format("172.18.{}.{}", host / 256, host % 256);
}

std::optional<size_t> AddressPlan::PlaceOf(std::string_view pod_cidr) {
  const size_t second = pod_cidr.find('.');
  const size_t third = pod_cidr.find('.', second + 1);
  const size_t rest = pod_cidr.find(".0/24", third + 1);
  if (second == std::string_view::npos || third == std::string_view::npos ||
      rest == std::string_view::npos) {
    return {};
  }
  const auto high = Number(pod_cidr.substr(second + 1, third - second - 1));
  const auto low = Number(pod_cidr.substr(third + 1, rest - third - 1));
  if (!high || !low || *low > 255 || *high > 255) return {};
  const size_t place = *high == 244 ? *low : kSmall + (*high - 64) * 256 + *low;
  if (place >= kPlaces || PodCidr(place) != pod_cidr) return {};
  return place;
}

AddressPlan::AddressPlan(const std::vector<NodeConfig>& configured) : lowest_(configured.size()) {
  for (const NodeConfig& node : configured) configured_.emplace(node.name, configured_.size());
}

std::optional<size_t> AddressPlan::Take(const std::string& node, std::string_view pod_cidr) {
  if (const auto own = configured_.find(node); own != configured_.end()) return own->second;
  if (const auto has = added_.find(node); has != added_.end()) return has->second;
  std::optional<size_t> place = PlaceOf(pod_cidr);
  if (!place || *place < configured_.size() || taken_.contains(*place)) {
    while (taken_.contains(lowest_)) ++lowest_;
    place = lowest_;
  }
  if (*place >= kPlaces) return {};
  taken_.insert(*place);
  added_.emplace(node, *place);
  return place;
}

void AddressPlan::Give(const std::string& node) {
  const auto has = added_.find(node);
  if (has == added_.end()) return;
  taken_.erase(has->second);
  lowest_ = std::min(lowest_, has->second);
  added_.erase(has);
}

}  // namespace sextant::lab
