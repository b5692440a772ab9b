#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace sextant {
namespace {

// Expected values: the reference implementation's output for seed 1234567.
TEST(RandomTest, IsSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(RandomTest, BelowReachesEveryNumberAndNoMore) {
  Random random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Below(7));
  EXPECT_EQ(seen, (std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.Below((uint64_t{1} << 63) + 1), (1ull << 63) + 1);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(RandomTest, NamesUseTheAlphabetOfKubernetes) {
  Random random(1);
  std::set<char> seen;
  for (int i = 0; i < 200; ++i) {
    const std::string suffix = NameSuffix(random);
    EXPECT_EQ(suffix.size(), 5u);
    seen.insert(suffix.begin(), suffix.end());
  }
  EXPECT_EQ(std::string(seen.begin(), seen.end()), "2456789bcdfghjklmnpqrstvwxz");
  Random again(1);
  Random other(1);
  EXPECT_EQ(NameSuffix(again, 10), NameSuffix(other, 10));
}

TEST(RandomTest, UuidsAreOfVersion4) {
  Random random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string uuid = NewUuid(random);
    ASSERT_EQ(uuid.size(), 36u);
    EXPECT_EQ(uuid.find_first_not_of("0123456789abcdef-"), std::string::npos);
    for (const size_t dash : {8u, 13u, 18u, 23u}) EXPECT_EQ(uuid[dash], '-');
    EXPECT_EQ(uuid[14], '4');
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
    seen.insert(uuid);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(SecureBytesTest, FillsTheWholeSpan) {
  // 4096 bytes: every eighth part all zero by chance is out of the question.
  std::array<uint8_t, 4096> bytes{};
  SecureBytes(bytes);
  for (size_t part = 0; part < bytes.size(); part += 512) {
    int sum = 0;
    for (size_t i = part; i < part + 512; ++i) sum += bytes[i];
    EXPECT_NE(sum, 0);
  }
  SecureBytes({});
  EXPECT_NE(RandomSeed(), RandomSeed());
}

}  // namespace
}  // namespace sextant
