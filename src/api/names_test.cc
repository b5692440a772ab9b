#include "api/names.h"

#include <gtest/gtest.h>

namespace sextant::api {
namespace {

TEST(Names, Complaints) {
  EXPECT_TRUE(IsDns1123Label("a-1").empty());
  EXPECT_EQ(IsDns1123Label("a.b"), Complaints{"must not contain dots"});
  EXPECT_EQ(IsDns1123Label("A"),
            Complaints{"a lowercase RFC 1123 label must consist of lower case alphanumeric "
                       "characters or '-', and must start and end with an alphanumeric character "
                       "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"});
  EXPECT_EQ(IsDns1123Subdomain("a..b"),
            Complaints{"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                       "characters, '-' or '.', and must start and end with an alphanumeric "
                       "character (e.g. 'example.com', regex used for validation is "
                       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"});
  EXPECT_EQ(IsDns1123Label(std::string(64, 'a')), Complaints{"must be no more than 63 characters"});
  EXPECT_TRUE(IsQualifiedName("nvidia.com/gpu").empty());
  EXPECT_EQ(IsQualifiedName("a/"),
            (Complaints{"name part must be non-empty",
                        "name part must consist of alphanumeric characters, "
                        "'-', '_' or '.', and must start and end with an "
                        "alphanumeric character (e.g. 'MyName',  or "
                        "'my.name',  or '123-abc', regex used for validation "
                        "is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"}));
  EXPECT_EQ(IsLabelValue(std::string(64, 'a')), Complaints{"must be no more than 63 bytes"});
  EXPECT_EQ(IsPortName("-1"), (Complaints{"must contain at least one letter (a-z)",
                                          "must not begin or end with a hyphen"}));
  EXPECT_EQ(IsPortNumber(0), Complaints{"must be between 1 and 65535, inclusive"});
  EXPECT_EQ(IsConfigMapKey("..x"), Complaints{"must not start with '..'"});
  EXPECT_EQ(IsMixedCaseLabel("9x"),
            Complaints{"may have mixed case, but should otherwise match: a DNS-1035 label must "
                       "consist of lower case alphanumeric characters or '-', start with an "
                       "alphabetic character, and end with an alphanumeric character (e.g. "
                       "'my-name',  or 'abc-123', regex used for validation is "
                       "'[a-z]([-a-z0-9]*[a-z0-9])?')"});
  EXPECT_EQ(IsGroupVersion("a/b/c"), Complaints{"unexpected GroupVersion string: a/b/c"});
}

TEST(Names, Yes) {
  for (const char* s : {"", "a", "A_b.c-9"}) EXPECT_TRUE(IsLabelValue(s).empty()) << s;
  for (const char* s : {"-a", "a-", "a b", "ä"}) EXPECT_FALSE(IsLabelValue(s).empty()) << s;
  for (const char* s : {"a", "a-1"}) EXPECT_TRUE(IsDns1035Label(s).empty()) << s;
  for (const char* s : {"", "1a", "a.b"}) EXPECT_FALSE(IsDns1035Label(s).empty()) << s;
  EXPECT_TRUE(IsWildcardDns1123Subdomain("*.a.b").empty());
  EXPECT_FALSE(IsWildcardDns1123Subdomain("a.b").empty());
  EXPECT_TRUE(IsCIdentifier("a_1").empty());
  EXPECT_FALSE(IsCIdentifier("1a").empty());
  EXPECT_TRUE(NameIsDnsSubdomain("web-", true).empty());
  EXPECT_FALSE(NameIsDnsSubdomain("web-", false).empty());
  EXPECT_TRUE(IsPercent("10%").empty());
  EXPECT_FALSE(IsPercent("%").empty());
  EXPECT_TRUE(IsDns1123SubdomainWithUnderscore("_a.b_c").empty());
  EXPECT_TRUE(IsRelaxedEnvVarName("1A b").empty());
  EXPECT_FALSE(IsPathSegmentName("a/b").empty());
  EXPECT_TRUE(IsMixedCaseLabel("StatefulSet").empty());
  for (const char* s : {"", "v1", "apps/v1"}) EXPECT_TRUE(IsGroupVersion(s).empty()) << s;
}

}  // namespace
}  // namespace sextant::api
