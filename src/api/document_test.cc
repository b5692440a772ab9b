#include "api/document.h"

#include <gtest/gtest.h>

#include "api/json.h"
#include "api/test_schema.h"

namespace sextant::api {
namespace {

using test::kPod;

Object Parsed(std::string_view text) { return *ParseJson(text); }

TEST(Value, ReadsWithoutCeremony) {
  Object doc =
      Parsed(R"({"s":"x","i":7,"d":2.0,"h":2.5,"b":true,"n":null,"l":[1,2],"m":{"k":"v"}})");
  EXPECT_EQ(doc["s"].AsString(), "x");
  EXPECT_EQ(doc["i"].AsInt(), 7);
  EXPECT_EQ(doc["d"].AsInt(), 2);
  EXPECT_EQ(doc["h"].AsInt(-1), -1);
  EXPECT_EQ(doc["i"].AsDouble(), 7.0);
  EXPECT_TRUE(doc["b"].AsBool());
  EXPECT_TRUE(doc["n"].IsNull());
  EXPECT_FALSE(doc["n"]);
  EXPECT_TRUE(doc.root().Has("n"));
  EXPECT_FALSE(doc.root().Has("zz"));
  EXPECT_EQ(doc["l"].at(1).AsInt(), 2);
  EXPECT_TRUE(doc["l"].at(2).IsAbsent());
  EXPECT_EQ(doc.Path("m.k").AsString(), "v");
  EXPECT_EQ(doc.Path("m.x.y").AsString("other"), "other");
  EXPECT_EQ(doc["s"]["x"].at(3).AsInt(5), 5);
  int64_t sum = 0;
  for (Value v : doc["l"].items()) sum += v.AsInt();
  EXPECT_EQ(sum, 3);
  EXPECT_TRUE(Object().root().IsAbsent());
  EXPECT_EQ(Object().name(), "");
}

TEST(Equal, ComparesWhatJsonSays) {
  auto equal = [](const char* a, const char* b) {
    return Equal(Parsed(a).root(), Parsed(b).root());
  };
  EXPECT_TRUE(equal(R"({"a":1,"b":[true,null]})", R"({"b":[true,null],"a":1.0})"));
  EXPECT_FALSE(equal(R"({"a":1})", R"({"a":"1"})"));
  EXPECT_FALSE(equal(R"({"a":1})", R"({"a":1,"b":2})"));
  EXPECT_FALSE(equal(R"([1,2])", R"([2,1])"));
  EXPECT_FALSE(equal(R"({"a":1,"b":2})", R"({"a":1,"c":2})"));
}

TEST(CopyOf, IsCompactAndAlone) {
  Object copy;
  {
    Object doc = Parsed(R"({"big":"................................","part":{"k":["v",1]}})");
    copy = CopyOf(doc["part"]);
  }
  EXPECT_EQ(ToJson(copy.root()), R"({"k":["v",1]})");
  EXPECT_LT(copy.bytes(), 256u);
}

TEST(Editor, ChangesPathsAndLeavesTheRest) {
  Object base = Parsed(R"({"a":{"b":1,"c":[1,2,3]},"d":"x"})");
  Editor edit(base);
  edit["a"].Set("b", 2);
  edit["a"]["c"].EraseAt(1);
  edit["a"]["c"].Append().SetString("end");
  edit["a"]["c"].Insert(0).Set("k", true);
  edit["new"]["deep"].Set("er", "y");
  edit.Root().Erase("d");
  EXPECT_FALSE(edit.Root().Has("d"));
  EXPECT_EQ(edit["a"]["b"].AsInt(), 2);
  EXPECT_EQ(edit["a"]["c"].size(), 4u);
  Object out = std::move(edit).Finish();
  EXPECT_EQ(ToJson(out.root()),
            R"({"a":{"b":2,"c":[{"k":true},1,3,"end"]},"new":{"deep":{"er":"y"}}})");
  EXPECT_EQ(ToJson(base.root()), R"({"a":{"b":1,"c":[1,2,3]},"d":"x"})");
}

TEST(Editor, AskingMakesNothing) {
  Editor edit(Parsed(R"({"a":"text"})"));
  EXPECT_EQ(edit["x"]["y"].AsString("none"), "none");
  EXPECT_FALSE(edit["a"]["below"]);
  edit["l"].SetList();
  edit["l"].Append();
  EXPECT_EQ(edit.Root().Keys(), (std::vector<std::string>{"a", "l"}));
  EXPECT_EQ(ToJson(edit.Root().Snapshot()), R"({"a":"text","l":[]})");
  // Writing below a scalar makes it a map.
  edit["a"]["below"].SetInt(1);
  EXPECT_EQ(ToJson(std::move(edit).Finish().root()), R"({"a":{"below":1},"l":[]})");
}

TEST(Editor, SharesValuesOfOtherDocuments) {
  Editor edit;
  {
    Object other = Parsed(R"({"x":{"y":[1]}})");
    edit.Keep(other);
    edit.Root().Set("a", other["x"]);
    edit["b"].Set(Parsed(R"(["own"])"));
  }
  edit["a"]["y"].Append().SetInt(2);
  EXPECT_EQ(ToJson(std::move(edit).Finish().root()), R"({"a":{"y":[1,2]},"b":["own"]})");
}

TEST(Editor, FinishesInCanonicalForm) {
  Editor edit;
  edit["status"].SetMap();
  edit["spec"].Set("hostNetwork", false);
  edit["spec"]["containers"].Append().Set("name", "c");
  edit["spec"]["containers"].at(0)["resources"]["limits"].Set("b", "1000m");
  edit["spec"]["containers"].at(0)["resources"]["limits"].Set("a", "1");
  edit["metadata"].Set("name", "p");
  edit["metadata"].Set("unknown", "p");
  edit.Root().Set("apiVersion", "v1");
  edit.Root().Set("kind", "Pod");
  Object pod = std::move(edit).Finish(&kPod);
  constexpr const char* kWant =
      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"containers":[)"
      R"({"name":"c","resources":{"limits":{"a":"1","b":"1"}},"probePort":0}],"seen":null},)"
      R"("status":{}})";
  EXPECT_EQ(ToJson(pod.root()), kWant);

  // From a canonical base only what was touched is looked at, with the same result.
  Editor again(pod);
  again["status"].Set("phase", "Running");
  again["spec"]["containers"].Append().Set("name", "d");
  again["metadata"].Erase("name");
  EXPECT_EQ(ToJson(std::move(again).Finish(&kPod).root()),
            R"({"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{"containers":[)"
            R"({"name":"c","resources":{"limits":{"a":"1","b":"1"}},"probePort":0},)"
            R"({"name":"d","resources":{},"probePort":0}],"seen":null},)"
            R"("status":{"phase":"Running"}})");
}

}  // namespace
}  // namespace sextant::api
