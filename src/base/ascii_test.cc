#include "base/ascii.h"

#include <gtest/gtest.h>

namespace sextant {
namespace {

TEST(Ascii, LowersLettersAndNothingElse) {
  EXPECT_EQ(AsciiLower("AZ az @[`{ \xc3\x84"), "az az @[`{ \xc3\x84");
  EXPECT_TRUE(EqualsIgnoreCase("Content-Type", "cONTENT-tYPE"));
  EXPECT_FALSE(EqualsIgnoreCase("content-type", "content-typ"));
  EXPECT_FALSE(EqualsIgnoreCase("[", "{"));
}

TEST(Ascii, KnowsItsClasses) {
  for (int c = -128; c < 128; ++c) {
    const char ch = static_cast<char>(c);
    const std::string_view digits = "0123456789";
    const std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    EXPECT_EQ(IsDigit(ch), digits.find(ch) != std::string_view::npos) << c;
    EXPECT_EQ(IsLetter(ch), letters.find(ch) != std::string_view::npos) << c;
    EXPECT_EQ(IsAlphanumeric(ch), IsDigit(ch) || IsLetter(ch)) << c;
    EXPECT_EQ(IsLower(ch), letters.substr(0, 26).find(ch) != std::string_view::npos) << c;
    EXPECT_EQ(IsLowerOrDigit(ch), IsLower(ch) || IsDigit(ch)) << c;
    EXPECT_EQ(IsSpace(ch),
              c != 0 && std::string_view(" \t\n\v\f\r").find(ch) != std::string_view::npos)
        << c;
  }
  EXPECT_EQ(HexDigit('0'), 0);
  EXPECT_EQ(HexDigit('9'), 9);
  EXPECT_EQ(HexDigit('a'), 10);
  EXPECT_EQ(HexDigit('F'), 15);
  EXPECT_EQ(HexDigit('g'), -1);
  EXPECT_EQ(HexDigit('@'), -1);
}

}  // namespace
}  // namespace sextant
