#include "api/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace sextant::api {
namespace {

TEST(Quantity, CanonicalForms) {
  struct Case {
    const char* in;
    const char* out;
  } cases[] = {
      {"0", "0"},
      {"0m", "0"},
      {"1", "1"},
      {"1000", "1k"},
      {"1000m", "1"},
      {"1.5", "1500m"},
      {"1.5Gi", "1536Mi"},
      {"1024Mi", "1Gi"},
      {"1024", "1024"},
      {"1024Ki", "1Mi"},
      {"512Ki", "512Ki"},
      {"0.5Ki", "512"},
      {"1023", "1023"},
      {"0.1m", "100u"},
      {"1n", "1n"},
      {"0.1n", "1n"},
      {"12e6", "12e6"},
      {"1e3", "1e3"},
      {"1000e0", "1e3"},
      {"12E6", "12E6"},
      {"-1", "-1"},
      {"-1.5Ki", "-1536"},
      {"-2048Ki", "-2Mi"},
      {"+5", "+5"},
      {"01", "01"},
      {"1.500", "1.500"},
      {"1.50", "1500m"},
      {"100k", "100k"},
      {"9Ei", "9223372036854775807"},
      {"7Ei", "7Ei"},
      {"9223372036854775808", "9223372036854775808"},
      {"1.0000000001", "1000000001n"},
      {"0.25Ki", "256"},
      {"2.5Ki", "2560"},
      {"1100M", "1100M"},
      {"1000M", "1G"},
      {"", "error"},
      {"x", "error"},
      {"1x", "error"},
      {"1Gi5", "error"},
      {"1i", "error"},
      {"1e", "error"},
      {"1.2.3", "error"},
      {" 1", "error"},
      {"1KiB", "error"},
  };
  for (const Case& c : cases) {
    std::string buffer;
    auto form = CanonicalQuantity(c.in, buffer);
    EXPECT_EQ(form ? std::string(*form) : "error", c.out) << c.in;
  }
  EXPECT_EQ(Quantity::Parse("1Gi5").error().message, "unable to parse quantity's suffix");
}

TEST(Quantity, Values) {
  struct Case {
    const char* text;
    int64_t value;
    int64_t milli;
  } cases[] = {
      {"100m", 1, 100},
      {"1", 1, 1000},
      {"1.1", 2, 1100},
      {"-100m", -1, -100},
      {"1Ki", 1024, 1024000},
      {"1n", 1, 1},
      {"9e30", INT64_MAX, INT64_MAX},
      {"0", 0, 0},
      {"2G", 2000000000, 2000000000000},
  };
  for (const Case& c : cases) {
    Quantity q = *Quantity::Parse(c.text);
    EXPECT_EQ(q.Value(), c.value) << c.text;
    EXPECT_EQ(q.MilliValue(), c.milli) << c.text;
  }
  EXPECT_DOUBLE_EQ(Quantity::Parse("1500m")->AsDouble(), 1.5);
}

TEST(Quantity, ComparesAcrossForms) {
  EXPECT_EQ(*Quantity::Parse("1Gi"), *Quantity::Parse("1073741824"));
  EXPECT_LT(*Quantity::Parse("1G"), *Quantity::Parse("1Gi"));
  EXPECT_LT(*Quantity::Parse("-1"), *Quantity::Parse("1n"));
  EXPECT_GT(*Quantity::Parse("1e100"), *Quantity::Parse("9e30"));
  EXPECT_LT(*Quantity::Parse("-1e100"), *Quantity::Parse("1"));
}

TEST(Quantity, Adds) {
  Quantity sum;
  sum += *Quantity::Parse("1Gi");
  sum += *Quantity::Parse("512Mi");
  EXPECT_EQ(sum.ToString(), "1536Mi");
  sum -= *Quantity::Parse("1536Mi");
  EXPECT_TRUE(sum.IsZero());
  EXPECT_EQ((*Quantity::Parse("1") + *Quantity::Parse("500m")).ToString(), "1500m");
  EXPECT_EQ((*Quantity::Parse("250m") * 4).ToString(), "1");
}

TEST(QuantityProperty, CanonicalTextMeansTheSame) {
  EXPECT_TRUE(rc::check([] {
    auto number = *rc::gen::inRange<int64_t>(-1000000000000, 1000000000000);
    auto places = *rc::gen::inRange(0, 7);
    auto suffix = *rc::gen::element<std::string>("", "m", "u", "n", "k", "M", "G", "Ki", "Mi", "Gi",
                                                 "e3", "E-2");
    std::string text = std::to_string(number);
    size_t digits = text.size() - (number < 0 ? 1 : 0);
    if (places > 0 && static_cast<size_t>(places) < digits) {
      text.insert(text.size() - static_cast<size_t>(places), ".");
    }
    text += suffix;
    Quantity q = *Quantity::Parse(text);
    std::string form = q.ToString();
    Quantity again = *Quantity::Parse(form);
    RC_ASSERT(q == again);
    // A binary number that no suffix fits is written without one, and reads as a decimal then.
    if (again.format() == q.format()) RC_ASSERT(again.ToString() == form);
    std::string buffer;
    RC_ASSERT(*Quantity::Parse(*CanonicalQuantity(text, buffer)) == q);
    RC_ASSERT((q - q).IsZero());
    RC_ASSERT((q + again) == q * 2);
  }));
}

}  // namespace
}  // namespace sextant::api
