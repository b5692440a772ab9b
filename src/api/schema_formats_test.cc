#include "api/schema_formats.h"

#include <gtest/gtest.h>

namespace sextant::api {
namespace {

TEST(SchemaFormats, TakeWhatKubernetesTakes) {
  struct Case {
    std::string_view format;
    std::string_view text;
    bool has;
  };
  const Case cases[] = {
      {"ipv4", "10.0.0.1", true},
      {"ipv4", "010.0.0.1", true},
      {"ipv4", "::ffff:10.0.0.1", true},
      {"ipv4", "::1", false},
      {"ipv4", "10.0.0.256", false},
      {"ipv4", std::string_view("10.0.0.1\0x", 10), false},
      {"ipv6", "::1", true},
      {"ipv6", "10.0.0.1", false},
      {"cidr", "10.0.0.1/24", true},
      {"cidr", "::/128", true},
      {"cidr", "10.0.0.0/00024", true},
      {"cidr", "10.0.0.0/33", false},
      {"cidr", "10.0.0.0/+8", false},
      {"cidr", "10.0.0.0", false},
      {"k8s-short-name", "a-1", true},
      {"k8s-short-name", "a.b", false},
      {"k8s-long-name", "a.b", true},
      {"k8s-long-name", "a..b", false},
      {"date-time", "2026-01-01t00:00:00z", true},
      {"date-time", "2026-01-01 00:00:00Z", false},
      {"duration", "1h30m", true},
      {"duration", "about 2 \t Days", true},
      {"duration", "2 moons", false},
      {"credit-card", "4111-1111-1111-1111", true},
      {"creditcard", "4111111111111112", false},
      {"isbn", "0-306-40615-2", true},
      {"isbn", "978-0-306-40615-8", false},
      {"nothing-known", "at all", true},
  };
  for (const Case& c : cases) EXPECT_EQ(HasFormat(c.text, c.format), c.has) << c.format << c.text;
}

}  // namespace
}  // namespace sextant::api
