#include "api/yaml.h"

#include <gtest/gtest.h>

#include "api/registry.h"

namespace sextant::api {
namespace {

std::string Json(std::string_view yaml) {
  auto docs = ParseYaml(yaml);
  if (!docs) return "error: " + docs.error().message;
  std::string out;
  for (const YamlDocument& d : *docs) {
    if (!out.empty()) out += " --- ";
    out += ToJson(d.object.root());
  }
  return out;
}

TEST(ParseYaml, ScalarsMeanWhatGoSays) {
  struct Case {
    const char* yaml;
    const char* json;
  } cases[] = {
      {"a: 1", R"({"a":1})"},
      {"a: yes\nb: no\nc: on\nd: y", R"({"a":true,"b":false,"c":true,"d":true})"},
      {"a: 'yes'\nb: \"1\"", R"({"a":"yes","b":"1"})"},
      {"a: ~\nb:\nc: null", R"({"a":null,"b":null,"c":null})"},
      {"[0x10, 0o17, 017, 0b11, 1_000, -5, +5]", "[16,15,15,3,1000,-5,5]"},
      {"[1.5, 1e3, .5, 1., 1.0]", "[1.5,1000,0.5,1,1]"},
      {"[08, 1e, 1.2.3, 2026-01-02, 2026-01-02T03:04:05Z, 1:30, x]",
       R"([8,"1e","1.2.3","2026-01-02","2026-01-02T03:04:05Z","1:30","x"])"},
      {"18446744073709551615", "18446744073709552000"},
      {"a: !!str 5\nb: !!int \"5\"\nc: !!float 5\nd: !x 5", R"({"a":"5","b":5,"c":5,"d":"5"})"},
      {"1: a\ntrue: b\n1.5: c", R"({"1":"a","true":"b","1.5":"c"})"},
      {"a: |\n  x\n  y\nb: >-\n  x\n  y", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}"},
      {"a: !!binary aGk=", R"({"a":"hi"})"},
      {"", ""},
      {"---\na: 1\n---\n---\nb: 2\n...", R"({"a":1} --- null --- {"b":2})"},
      {"a: &x {k: 1, l: 2}\nb: *x\nc: {<<: *x, l: 3}",
       R"({"a":{"k":1,"l":2},"b":{"k":1,"l":2},"c":{"k":1,"l":3}})"},
      {"{\"a\": [1, {\"b\": \"\\u00e9\"}]}", R"({"a":[1,{"b":"é"}]})"},
  };
  for (const Case& c : cases) EXPECT_EQ(Json(c.yaml), c.json) << c.yaml;
}

TEST(ParseYaml, Refuses) {
  struct Case {
    const char* yaml;
    const char* message;
  } cases[] = {
      {"a: b: c", "yaml: mapping values are not allowed in this context"},
      {"x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"},
      {"a: 1\nb:\n  - x\n c: 2", "yaml: line 3: did not find expected key"},
      {"a:\n- x\n\t- c", "yaml: line 3: found a tab character that violates indentation"},
      {"a: {<<: {b: 1}, b: 2, b: 3}",
       "yaml: unmarshal errors:\n  line 1: key \"b\" already set in map"},
      {"a: 1\na: 2", "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"},
      {"a: *x", "yaml: unknown anchor 'x' referenced"},
      {"a: [", "yaml: line 1: did not find expected node content"},
      {"a: .nan", "json: unsupported value: NaN"},
      {"? [a]\n: 1", "yaml: invalid map key"},
      {"a: !!int x", "yaml: cannot decode !!str `x` as a !!int"},
      {"<<: 5", "yaml: map merge requires map or sequence of maps as the value"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Json(c.yaml), std::string("error: ") + c.message) << c.yaml;
  }
}

TEST(ParseYaml, IsBounded) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    std::string p(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p +
            ",*" + p + ",*" + p + ",*" + p + ",*" + p + ",*" + p + "]\n";
  }
  EXPECT_EQ(Json(bomb), "error: yaml: document contains excessive aliasing");
  EXPECT_EQ(Json(std::string(kMaxYamlDepth + 2, '[')), "error: yaml: exceeded max depth of 200");
  EXPECT_EQ(ParseYaml("abc", {.max_bytes = 2}).error().code, 413);
}

TEST(ParseYaml, KnowsPlaces) {
  auto docs = ParseYaml("kind: Cluster\nnodes:\n- role: a\n-   role: b\n    image: x\n---\nz: 1\n");
  ASSERT_TRUE(docs);
  ASSERT_EQ(docs->size(), 2u);
  const YamlDocument& d = (*docs)[0];
  EXPECT_EQ(d.PlaceOf(d.object["kind"]), (YamlPlace{1, 1}));
  EXPECT_EQ(d.PlaceOf(d.object["nodes"]), (YamlPlace{2, 1}));
  EXPECT_EQ(d.PlaceOf(d.object["nodes"].at(1)), (YamlPlace{4, 5}));
  EXPECT_EQ(d.PlaceOf(d.object["nodes"].at(1)["image"]), (YamlPlace{5, 5}));
  EXPECT_EQ((*docs)[1].PlaceOf((*docs)[1].object["z"]), (YamlPlace{7, 1}));
  EXPECT_EQ(d.PlaceOf(Value()), YamlPlace());
}

TEST(WriteYaml, LooksLikeKubectls) {
  auto doc = ParseJson(
      R"({"kind":"Pod","apiVersion":"v1","z":[],"m":{},"list":[{"b":1,"a":"x"},["n"],"s"],)"
      R"("t":["yes","1","","null","a b","a: b","# c","2026-01-02","1:30","- x","é"," lead"],)"
      R"("text":"x\ny\n","k10":1,"k9":2,"f":1.5,"n":null,"b":true})");
  std::string out;
  WriteYaml(doc->root(), out);
  EXPECT_EQ(out,
            "apiVersion: v1\nb: true\nf: 1.5\nk9: 2\nk10: 1\nkind: Pod\nlist:\n- a: x\n  b: 1\n"
            "- - \"n\"\n- s\nm: {}\n\"n\": null\nt:\n- \"yes\"\n- \"1\"\n- \"\"\n- \"null\"\n"
            "- a b\n- 'a: b'\n- '# c'\n- \"2026-01-02\"\n- \"1:30\"\n- '- x'\n- é\n- ' lead'\n"
            "text: |\n  x\n  y\nz: []\n");
  auto back = ParseYaml(out);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(Equal((*back)[0].object.root(), doc->root()));
}

}  // namespace
}  // namespace sextant::api
