#include "api/json.h"

#include <gtest/gtest.h>

#include "api/test_schema.h"

namespace sextant::api {
namespace {

using test::kPod;

std::string Decoded(std::string_view text) {
  auto doc = DecodeJson(text, kPod);
  return doc ? ToJson(doc->root()) : "error: " + doc.error().message;
}

// A pod around a spec.
std::string Spec(std::string_view spec) {
  return R"({"kind":"Pod","spec":)" + std::string(spec) + "}";
}

std::string DecodedSpec(std::string_view spec) {
  auto doc = DecodeJson(Spec(spec), kPod);
  return doc ? ToJson((*doc)["spec"]) : "error: " + doc.error().message;
}

TEST(DecodeJson, WritesWhatGoWouldWrite) {
  EXPECT_EQ(Decoded("{}"), R"({"metadata":{},"spec":{"containers":null,"seen":null},"status":{}})");
  struct Case {
    const char* in;
    const char* out;
  } cases[] = {
      {R"({"containers":[]})", R"({"containers":null,"seen":null})"},
      {R"({"seen":"2026-01-02T03:04:05.600000+01:00","containers":[{}]})",
       R"({"containers":[{"name":"","resources":{},"probePort":0}],)"
       R"("seen":"2026-01-02T02:04:05.600000Z"})"},
      {R"({"hostNetwork":false,"restartPolicy":"","nodeSelector":{},"priority":0})",
       R"({"containers":null,"priority":0,"seen":null})"},
      {R"({"priority":null,"volumes":null,"nodeSelector":{"b":"2","a":null,"b":"3"}})",
       R"({"containers":null,"nodeSelector":{"a":"","b":"3"},"seen":null})"},
      {R"({"containers":[{"resources":{"limits":{"cpu":0.5,"memory":"1024Mi","x":1000}}}]})",
       R"({"containers":[{"name":"","resources":{"limits":{"cpu":"500m","memory":"1Gi","x":"1k"}},)"
       R"("probePort":0}],"seen":null})"},
      {R"({"containers":[{"ports":[{"containerPort":80},null]}],"timeout":"90s"})",
       R"({"containers":[{"name":"","ports":[{"containerPort":80},{"containerPort":0}],)"
       R"("resources":{},"probePort":0}],"timeout":"1m30s","seen":null})"},
      {R"({"volumes":[{"hostPath":{},"name":"v"}],"ratio":1.50,"secret":"YQ==\n"})",
       R"({"volumes":[{"name":"v","hostPath":{"path":""}}],"containers":null,"ratio":1.5,)"
       R"("secret":"YQ==","seen":null})"},
      {R"({"extra":{"z":[1,2.5,"x"],"a":null},"started":"2026-01-02T03:04:05.9Z"})",
       R"({"containers":null,"started":"2026-01-02T03:04:05Z","seen":null,)"
       R"("extra":{"z":[1,2.5,"x"],"a":null}})"},
  };
  for (const Case& c : cases) EXPECT_EQ(DecodedSpec(c.in), c.out) << c.in;
}

TEST(DecodeJson, RefusesWithGosWords) {
  struct Case {
    const char* spec;
    const char* message;
  } cases[] = {
      {R"({"containers":"x"})",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {R"({"containers":[{"name":1}]})",
       "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type "
       "string"},
      {R"({"restartPolicy":true})",
       "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type "
       "v1.RestartPolicy"},
      {R"({"priority":1.5})",
       "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type "
       "int32"},
      {R"({"priority":3000000000})",
       "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of "
       "type int32"},
      {R"({"volumes":[{"hostPath":[]}]})",
       "json: cannot unmarshal array into Go struct field "
       "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource"},
      {R"({"nodeSelector":{"a":{}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.nodeSelector of type "
       "string"},
      {R"({"containers":[{"resources":{"limits":{"cpu":"x"}}}]})",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {R"({"containers":[{"resources":{"limits":[]}}]})",
       "json: cannot unmarshal array into Go struct field "
       "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList"},
      {R"({"containers":[{"probePort":true}]})",
       "json: cannot unmarshal bool into Go struct field Container.spec.containers.probePort of "
       "type int32"},
      {R"({"started":"x"})",
       R"(parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006")"},
      {R"({"started":5})",
       "json: cannot unmarshal number into Go struct field PodSpec.spec.started of type string"},
      {R"({"timeout":"5"})", "time: missing unit in duration \"5\""},
      {R"({"secret":"a*=="})", "illegal base64 data at input byte 1"},
      {R"({"priority":"x","timeout":"5"})", "time: missing unit in duration \"5\""},
  };
  for (const Case& c : cases) {
    auto doc = DecodeJson(Spec(c.spec), kPod);
    ASSERT_FALSE(doc) << c.spec;
    EXPECT_EQ(doc.error().message, c.message) << c.spec;
    EXPECT_EQ(doc.error().code, 400);
  }
  EXPECT_EQ(Decoded("[]"), "error: json: cannot unmarshal array into Go value of type v1.Pod");
}

TEST(DecodeJson, ReportsUnknownAndDuplicateFields) {
  StrictReport strict;
  auto doc = DecodeJson(R"({"foo":1,"spec":{"containers":[{"nam":"x"},{"name":"a","name":"b"}],
      "nodeSelector":{"k":"1","k":"2"},"Containers":{"broken":[1,{}]}},"foo":2})",
                        kPod, {.strict = &strict});
  ASSERT_TRUE(doc);
  EXPECT_EQ(strict.errors,
            (std::vector<std::string>{
                R"(unknown field "foo")", R"(unknown field "spec.containers[0].nam")",
                R"(duplicate field "spec.containers[1].name")",
                R"(duplicate field "spec.nodeSelector.k")", R"(unknown field "spec.Containers")"}));
  EXPECT_EQ(doc->Path("spec.nodeSelector")["k"].AsString(), "2");
}

TEST(ParseJson, SyntaxErrorsAreGos) {
  struct Case {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"{\"a\":1", "unexpected end of JSON input"},
      {"\"abc", "unexpected end of JSON input"},
      {"x", "invalid character 'x' looking for beginning of value"},
      {"{a", "invalid character 'a' looking for beginning of object key string"},
      {"{\"a\"1}", "invalid character '1' after object key"},
      {"{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"},
      {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"},
      {"[1 2]", "invalid character '2' after array element"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"01", "invalid character '1' after top-level value"},
      {"-x", "invalid character 'x' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"trux", "invalid character 'x' in literal true (expecting 'e')"},
      {"\"\\x\"", "invalid character 'x' in string escape code"},
      {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"},
      {"\"a\nb\"", "invalid character '\\n' in string literal"},
      {"'", "invalid character '\\'' looking for beginning of value"},
      {"\xff", "invalid character 'ÿ' looking for beginning of value"},
  };
  for (const Case& c : cases) {
    auto doc = ParseJson(c.text);
    ASSERT_FALSE(doc) << c.text;
    EXPECT_EQ(doc.error().message, c.message) << c.text;
    // Before errors of type.
    EXPECT_FALSE(DecodeJson(std::string(R"({"spec":5,"timeout":)") + c.text, kPod)) << c.text;
  }
}

TEST(ParseJson, TakesWhatGoTakes) {
  struct Case {
    const char* in;
    const char* out;
  } cases[] = {
      {" { \"b\" : [ 1 , -2.5e3 , true , false , null ] , \"a\" : { } } ",
       R"({"b":[1,-2500,true,false,null],"a":{}})"},
      {R"("\u0041\n\t\"\\\/\b\f\r\u00e9\ud83d\ude00")", "\"A\\n\\t\\\"\\\\/\\b\\f\\ré😀\""},
      {R"("\ud800x\udc00")", "\"\xef\xbf\xbdx\xef\xbf\xbd\""},
      {"\"a\xff\xc3\"", "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9223372036854776000"},
      {"1e21", "1e+21"},
      {"1e-7", "1e-7"},
      {"0.000001", "0.000001"},
      {"-0", "0"},
      {"1.0", "1"},
      {"1e-400", "0"},
      {"\"<a&b>\xe2\x80\xa8\"", R"("\u003ca\u0026b\u003e\u2028")"},
      {"\"\x7f\xc2\x80\"", "\"\x7f\xc2\x80\""},
      {R"({"a":1,"b":2,"a":3})", R"({"a":3,"b":2})"},
  };
  for (const Case& c : cases) {
    auto doc = ParseJson(c.in);
    ASSERT_TRUE(doc) << c.in << doc.error().message;
    EXPECT_EQ(ToJson(doc->root()), c.out) << c.in;
  }
  EXPECT_EQ(ParseJson("1e400").error().message,
            "json: cannot unmarshal number 1e400 into Go value of type float64");
}

TEST(ParseJson, Limits) {
  auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)));
  EXPECT_EQ(ParseJson(nested(kMaxJsonDepth + 1)).error().message, "exceeded max depth");
  EXPECT_EQ(DecodeJson(R"({"unknown":)" + nested(kMaxJsonDepth) + "}", kPod).error().message,
            "exceeded max depth");
  EXPECT_EQ(ParseJson("[1,2,3]", {.max_bytes = 6}).error().code, 413);
  std::string siblings = "[";
  for (int i = 0; i < 2 * kMaxJsonDepth; ++i) siblings += "{\"a\":[]},";
  EXPECT_TRUE(ParseJson(siblings + "{}]"));
}

TEST(WriteJson, Styles) {
  auto doc = ParseJson(R"({"kind":"Pod","a":[],"b":{},"c":[1,{"d":"<"}]})");
  ASSERT_TRUE(doc);
  EXPECT_EQ(ToJson(doc->root(), {.indent = 2, .newline = true}),
            "{\n  \"kind\": \"Pod\",\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n"
            "      \"d\": \"\\u003c\"\n    }\n  ]\n}\n");
  EXPECT_EQ(ToJson(doc->root(), {.omit_type_meta = true, .escape_html = false}),
            R"({"a":[],"b":{},"c":[1,{"d":"<"}]})");
}

TEST(DecodeJson, CanonicalTextIsStable) {
  std::string text = Decoded(Spec(
      R"({"containers":[{"name":"a","args":["x"],"resources":{"limits":{"nvidia.com/gpu":1}}}]})"));
  EXPECT_EQ(Decoded(text), text);
}

const Field kCustomSpecFields[] = {{.name = "replicas", .type = Type::kInt64},
                                   {.name = "any", .type = Type::kAny}};
const Message kCustomSpec = {.name = "spec", .fields = kCustomSpecFields, .custom = true};
const Field kCustomFields[] = {
    {.name = "kind"},
    {.name = "apiVersion"},
    {.name = "spec", .type = Type::kMessage, .message = &kCustomSpec},
    {.name = "metadata", .type = Type::kMessage, .message = &test::kObjectMeta}};
const Message kCustom = {.name = "Custom", .fields = kCustomFields, .custom = true};

TEST(DecodeJson, CustomResourcesAreSortedAndNeverRefused) {
  StrictReport strict;
  auto doc = DecodeJson(R"({"spec":{"x":1,"replicas":"many","any":{"b":[{"z":1,"y":2}],"a":1.0}},
      "metadata":{"name":"n","labels":{"b":"1","a":"2"},"generation":1},"kind":"C",
      "apiVersion":"g/v1"})",
                        kCustom, {.strict = &strict});
  ASSERT_TRUE(doc) << doc.error().message;
  EXPECT_EQ(ToJson(doc->root()),
            R"({"apiVersion":"g/v1","kind":"C","metadata":{"generation":1,"labels":{"a":"2",)"
            R"("b":"1"},"name":"n"},"spec":{"any":{"a":1,"b":[{"y":2,"z":1}]},)"
            R"("replicas":"many"}})");
  EXPECT_EQ(strict.errors, std::vector<std::string>{R"(unknown field "spec.x")"});
}

TEST(PeekTypeMeta, FindsWhatItNeeds) {
  auto meta = PeekTypeMeta(R"({"spec":{"kind":"x"},"kind":"Pod","apiVersion":"v1"})");
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->kind, "Pod");
  EXPECT_EQ(meta->api_version, "v1");
  EXPECT_EQ(PeekTypeMeta(R"({"kind":5})").error().message,
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go "
            "struct field .kind of type string");
}

}  // namespace
}  // namespace sextant::api
