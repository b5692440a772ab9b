#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/utf8.h"

namespace sextant {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
  constexpr std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                              {"f", "Zg=="},
                                                              {"fo", "Zm8="},
                                                              {"foo", "Zm9v"},
                                                              {"foob", "Zm9vYg=="},
                                                              {"fooba", "Zm9vYmE="},
                                                              {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : kVectors) {
    EXPECT_EQ(Base64(plain), text);
    EXPECT_EQ(Base64Decode(text), plain);
  }
  EXPECT_EQ(Base64Url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(Base64Url("f"), "Zg");
  EXPECT_EQ(Base64UrlDecode("Zg"), "f");
  EXPECT_EQ(Base64UrlDecode("Zg=="), "f");
  EXPECT_EQ(Base64Decode("Zm9v\nYmFy\r\n"), "foobar");
}

TEST(Base64, EveryByteGoesRound) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(Base64Decode(Base64(bytes)), bytes);
    EXPECT_EQ(Base64UrlDecode(Base64Url(bytes)), bytes);
  }
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "Z===", "====", "Zm9v=", "Zm=v", "Zm 9", "-_-_"})
    EXPECT_FALSE(Base64Decode(text)) << text;
  for (const char* text : {"Z", "Zg=", "+/", "Zm9v="}) EXPECT_FALSE(Base64UrlDecode(text)) << text;
}

TEST(Base64, SpareBitsCountForTokensOnly) {
  EXPECT_EQ(Base64Decode("Zh=="), "f");  // as Go's StdEncoding
  EXPECT_FALSE(Base64UrlDecode("Zh"));
  EXPECT_FALSE(Base64UrlDecode("Zm9"));
}

TEST(Utf8, EveryCharacterGoesRound) {
  for (uint32_t rune = 0; rune <= 0x110000; ++rune) {
    char bytes[4];
    const std::string_view text(bytes, PutUtf8(bytes, rune));
    const bool valid = rune <= 0x10ffff && (rune < 0xd800 || rune > 0xdfff);
    ASSERT_EQ(IsUtf8(text), valid) << rune;
    if (!valid) continue;
    ASSERT_EQ(Utf8Length(text), text.size()) << rune;
    ASSERT_EQ(Utf8Rune(text), rune);
    if (text.size() > 1) ASSERT_EQ(Utf8Length(text.substr(0, text.size() - 1)), 0U) << rune;
  }
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xff", "\xc3", "\xc3("}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_EQ(Utf8Length(""), 0U);
  EXPECT_EQ(Utf8Length(std::string_view("\0", 1)), 1U);
}

}  // namespace
}  // namespace sextant
