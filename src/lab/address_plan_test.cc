#include "lab/address_plan.h"

#include <gtest/gtest.h>

#include "kubelet/ip_pool.h"

namespace sextant::lab {
namespace {

std::vector<NodeConfig> Nodes(size_t count) {
  std::vector<NodeConfig> nodes(count);
  for (size_t i = 0; i < count; ++i) nodes[i].name = fmt::format("n{}", i);
  return nodes;
}

TEST(AddressPlanTest, SmallLabsLookLikeKind) {
  EXPECT_EQ(AddressPlan::PodCidr(0), "10.244.0.0/24");
  EXPECT_EQ(AddressPlan::PodCidr(255), "10.244.255.0/24");
  EXPECT_EQ(AddressPlan::NodeIp(0), "172.18.0.2");
  EXPECT_EQ(AddressPlan::NodeIp(2), "172.18.0.4");
}

TEST(AddressPlanTest, EveryPlaceHasItsOwnAddresses) {
  static_assert(AddressPlan::kPlaces > kMaxNodes);
  std::set<std::string> cidrs;
  std::set<std::string> ips;
  for (size_t place = 0; place < AddressPlan::kPlaces; ++place) {
    const std::string cidr = AddressPlan::PodCidr(place);
    EXPECT_TRUE(cidrs.insert(cidr).second) << cidr;
    EXPECT_TRUE(ips.insert(AddressPlan::NodeIp(place)).second) << place;
    EXPECT_EQ(AddressPlan::PlaceOf(cidr), place);
    // A real range: its first Pod's address is the network's .2.
    EXPECT_EQ(kubelet::IpPool(cidr).Take(), cidr.substr(0, cidr.rfind('.')) + ".2");
    int octets[4];
    ASSERT_EQ(std::sscanf(AddressPlan::NodeIp(place).c_str(), "%d.%d.%d.%d", octets, octets + 1,
                          octets + 2, octets + 3),
              4);
    for (int octet : octets) ASSERT_LE(octet, 255);
  }
}

TEST(AddressPlanTest, ForeignRangesHaveNoPlace) {
  for (const char* cidr : {"", "10.244.1.0/25", "10.245.1.0/24", "100.63.1.0/24", "100.128.0.0/24",
                           "10.244.256.0/24", "10.244.01.0/24", "x", "1.2", "10.64.0.0/24"}) {
    EXPECT_FALSE(AddressPlan::PlaceOf(cidr)) << cidr;
  }
}

TEST(AddressPlanTest, ARemovedNodesPlaceIsNotAnothersByAccident) {
  AddressPlan plan(Nodes(3));
  EXPECT_EQ(plan.Take("n1", ""), 1u);
  plan.Give("n1");  // of the configuration: its place waits
  EXPECT_EQ(plan.Take("x", ""), 3u);
  EXPECT_EQ(plan.Take("y", ""), 4u);
  plan.Give("x");
  EXPECT_EQ(plan.Take("n2", ""), 2u);
  EXPECT_EQ(plan.Take("z", ""), 3u) << "given back";
  EXPECT_EQ(plan.Take("w", ""), 5u) << "y is still there";
  EXPECT_EQ(plan.Take("n1", ""), 1u);
  EXPECT_EQ(plan.Take("z", ""), 3u) << "it has one";
}

TEST(AddressPlanTest, AfterARestartNodesKeepTheirRanges) {
  AddressPlan plan(Nodes(3));
  EXPECT_EQ(plan.Take("b", "10.244.4.0/24"), 4u);
  EXPECT_EQ(plan.Take("a", ""), 3u);
  EXPECT_EQ(plan.Take("c", "10.244.4.0/24"), 5u) << "taken";
  EXPECT_EQ(plan.Take("d", "10.244.1.0/24"), 6u) << "the configuration's";
}

TEST(AddressPlanTest, Ends) {
  AddressPlan plan(Nodes(AddressPlan::kPlaces - 1));
  EXPECT_TRUE(plan.Take("last", ""));
  EXPECT_FALSE(plan.Take("more", ""));
}

}  // namespace
}  // namespace sextant::lab
