#include "api/patch.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/json.h"
#include "api/registry.h"

namespace sextant::api {
namespace {

const Message& Pod() { return *Registry::Builtin().FindKindMessage({"", "v1"}, "Pod"); }

Object Tree(std::string_view text) { return *ParseJson(text); }

std::string Show(const Result<Object>& r) {
  return r ? ToJson(r->root()) : std::to_string(r.error().code) + " " + r.error().message;
}

TEST(JsonPatch, Operations) {
  constexpr const char* kDoc = R"({"a":{"b":[1,2,3]},"x/y":1,"m~n":2})";
  constexpr const char* kRejected =
      "422 the server rejected our request due to an error in our request";
  struct Case {
    const char* ops;
    const char* out;  // nullptr: rejected
  } cases[] = {
      {R"([{"op":"add","path":"/a/b/1","value":9}])", R"({"a":{"b":[1,9,2,3]},"x/y":1,"m~n":2})"},
      {R"([{"op":"add","path":"/a/b/-","value":9}])", R"({"a":{"b":[1,2,3,9]},"x/y":1,"m~n":2})"},
      {R"([{"op":"add","path":"/a/b/-1","value":9}])", R"({"a":{"b":[1,2,3,9]},"x/y":1,"m~n":2})"},
      {R"([{"op":"add","path":"/c","value":{"d":1}},{"op":"add","path":"/c/e"}])",
       R"({"a":{"b":[1,2,3]},"x/y":1,"m~n":2,"c":{"d":1,"e":null}})"},
      {R"([{"op":"remove","path":"/x~1y"},{"op":"remove","path":"/m~0n"}])",
       R"({"a":{"b":[1,2,3]}})"},
      {R"([{"op":"replace","path":"/a/b/0","value":"z"}])",
       R"({"a":{"b":["z",2,3]},"x/y":1,"m~n":2})"},
      {R"([{"op":"replace","path":"/new","value":1}])",
       R"({"a":{"b":[1,2,3]},"x/y":1,"m~n":2,"new":1})"},
      {R"([{"op":"move","from":"/a/b/0","path":"/a/b/2"}])",
       R"({"a":{"b":[2,3,1]},"x/y":1,"m~n":2})"},
      {R"([{"op":"copy","from":"/a","path":"/c"},{"op":"remove","path":"/c/b/0"}])",
       R"({"a":{"b":[1,2,3]},"x/y":1,"m~n":2,"c":{"b":[2,3]}})"},
      {R"([{"op":"test","path":"/a","value":{"b":[1,2,3]}},{"op":"test","path":"/no"}])", kDoc},
      {R"([{"op":"replace","path":"","value":{"r":1}}])", R"({"r":1})"},
      {R"([{"op":"test","path":"/a/b/0","value":2}])", nullptr},
      {R"([{"op":"remove","path":"/no"}])", nullptr},
      {R"([{"op":"remove","path":"/a/b/3"}])", nullptr},
      {R"([{"op":"add","path":"/a/b/5","value":1}])", nullptr},
      {R"([{"op":"add","path":"/a/b/x","value":1}])", nullptr},
      {R"([{"op":"add","path":"/no/x","value":1}])", nullptr},
      {R"([{"op":"add","path":"","value":1}])", nullptr},
      {R"([{"op":"move","path":"/c","from":"/no"}])", nullptr},
      {R"([{"op":"nop","path":"/a"}])", nullptr},
      {R"([{"op":"add"}])", nullptr},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Show(ApplyJsonPatch(Tree(kDoc), Tree(c.ops))), c.out ? c.out : kRejected) << c.ops;
  }
}

TEST(JsonPatch, IsBounded) {
  std::string ops = "[";
  for (size_t i = 0; i <= kMaxJsonPatchOperations; ++i) {
    ops += R"({"op":"test","path":"/a","value":1},)";
  }
  ops.back() = ']';
  EXPECT_EQ(ApplyJsonPatch(Tree(R"({"a":1})"), Tree(ops)).error().code, 413);
  // Doubling by copies.
  ops = R"([{"op":"add","path":"/a","value":["0123456789"]})";
  for (int i = 0; i < 40; ++i) ops += R"(,{"op":"copy","from":"/a","path":"/a/-"})";
  EXPECT_EQ(ApplyJsonPatch(Tree("{}"), Tree(ops + "]")).error().code, 422);
}

TEST(MergePatch, Rfc7386) {
  struct Case {
    const char* doc;
    const char* patch;
    const char* out;
  } cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToJson(ApplyMergePatch(Tree(c.doc).root(), Tree(c.patch).root()).root()), c.out)
        << c.doc << c.patch;
  }
}

std::string Strategic(std::string_view spec, std::string_view patch) {
  auto doc =
      Tree(R"({"metadata":{"name":"p","finalizers":["a","b"]},"spec":)" + std::string(spec) + "}");
  auto out = ApplyStrategicPatch(doc.root(), Tree(patch).root(), Pod());
  return out ? ToJson(*out ? out->root() : Value()) : Show(out);
}

TEST(StrategicPatch, MergesListsByKey) {
  constexpr const char* kSpec =
      R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}],"hostNetwork":true})";
  struct Case {
    const char* patch;
    const char* spec;
  } cases[] = {
      {R"({"spec":{"containers":[{"name":"b","image":"2"}]}})",
       R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}],"hostNetwork":true})"},
      {R"({"spec":{"containers":[{"name":"c"}],"hostNetwork":null}})",
       R"({"containers":[{"name":"c"},{"name":"a","image":"1"},{"name":"b","image":"1"}]})"},
      {R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})",
       R"({"containers":[{"name":"b","image":"1"}],"hostNetwork":true})"},
      {R"({"spec":{"containers":[{"$patch":"replace"},{"name":"z"}]}})",
       R"({"containers":[{"name":"z"}],"hostNetwork":true})"},
      {R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}})",
       R"({"containers":[{"name":"b","image":"1"},{"name":"a","image":"1"}],"hostNetwork":true})"},
      {R"({"spec":{"$retainKeys":["containers"],"containers":[{"name":"a","image":"3"}]}})",
       R"({"containers":[{"name":"a","image":"3"},{"name":"b","image":"1"}]})"},
      {R"({"spec":{"$patch":"replace","nodeName":"n"}})", R"({"nodeName":"n"})"},
      {R"({"spec":{"$patch":"delete"}})", "{}"},
  };
  for (const Case& c : cases) {
    std::string head = R"({"metadata":{"name":"p","finalizers":["a","b"]},"spec":)";
    EXPECT_EQ(Strategic(kSpec, c.patch), head + c.spec + "}") << c.patch;
  }
}

TEST(StrategicPatch, PrimitiveListsAndErrors) {
  EXPECT_EQ(Strategic("{}", R"({"metadata":{"finalizers":["c"],
                              "$deleteFromPrimitiveList/finalizers":["a"]}})"),
            R"({"metadata":{"name":"p","finalizers":["c","b"]},"spec":{}})");
  struct Case {
    const char* patch;
    const char* error;
  } cases[] = {
      {R"({"spec":{"containers":[{"image":"x"}]}})",
       "500 map: map[image:x] does not contain declared merge key: name"},
      {R"({"spec":{"containers":[{"name":"a","$patch":"odd"}]}})",
       "500 unknown patch type: odd in map: map[$patch:odd name:a]"},
      {R"({"spec":{"$retainKeys":["a"],"containers":[]}})",
       "400 invalid patch format of retainKeys"},
      {R"({"metadata":{"$setElementOrder":["a"]}})",
       "400 invalid patch format of setElementOrder list"},
      {R"({"metadata":{"$deleteFromPrimitiveList":["a"]}})",
       "400 invalid patch format of primitive list"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Strategic(R"({"containers":[{"name":"a"}]})", c.patch), c.error) << c.patch;
  }
}

TEST(ApplyPatch, DecodesAndChecks) {
  Object pod = *DecodeJson(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}})", Pod());
  auto apply = [&](PatchType type, const char* patch, const char* validation,
                   std::vector<std::string>* warnings = nullptr) {
    return ApplyPatch(pod, Pod(), {type, patch, validation}, warnings);
  };
  EXPECT_EQ(apply(PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})", "Strict")
                ->Path("metadata.labels.a")
                .AsString(),
            "b");
  std::vector<std::string> warnings;
  EXPECT_TRUE(apply(PatchType::kMerge, R"({"foo":1})", "Warn", &warnings));
  EXPECT_EQ(warnings, std::vector<std::string>{R"(unknown field "foo")"});
  EXPECT_TRUE(apply(PatchType::kMerge, R"({"foo":1})", ""));
  EXPECT_EQ(Show(apply(PatchType::kStrategic, R"({"spec":{"foo":1}})", "Strict")),
            R"(422  "" is invalid: patch: Invalid value: "map[spec:map[foo:1]]": )"
            R"(strict decoding error: unknown field "spec.foo")");
  EXPECT_EQ(Show(apply(PatchType::kJson,
                       R"([{"op":"add","path":"/metadata/labels","value":{},"x":1}])", "Strict")),
            "422  \"\" is invalid: patch: Invalid value: "
            "\"{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"Pod\\\",\\\"metadata\\\":"
            "{\\\"name\\\":\\\"p\\\",\\\"labels\\\":{}},\\\"spec\\\":{\\\"containers\\\":null},"
            "\\\"status\\\":{}}\": strict decoding error: json patch unknown field \"[0].x\"");
  EXPECT_EQ(Show(apply(PatchType::kMerge, "[]", "")), "400 Invalid JSON Patch");
  struct Other {
    const char* patch;
    const char* why;
  } others[] = {
      {R"({"kind":"Nothing"})",
       R"(no kind "Nothing" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111")"},
      {R"({"kind":"Secret"})", "converting (v1.Secret) to (core.Pod): unknown conversion"},
      {R"({"apiVersion":"apps/v1","kind":"Deployment"})",
       "converting (v1.Deployment) to (core.Pod): unknown conversion"},
      {R"({"kind":"Secret","data":{"a":"!"}})", "illegal base64 data at input byte 0"},
  };
  for (const Other& other : others) {
    auto made = apply(PatchType::kMerge, other.patch, "");
    ASSERT_FALSE(made) << other.patch;
    EXPECT_EQ(made.error().code, 422) << other.patch;
    EXPECT_TRUE(made.error().message.ends_with(other.why)) << made.error().message;
  }
  EXPECT_EQ(apply(PatchType::kMerge, R"({"kind":null,"apiVersion":null})", "")->kind(), "Pod");
  struct Mistyped {
    const char* patch;
    const char* why;
  } mistyped[] = {
      {R"({"spec":{"priority":"x"}})", "unrecognized type: int32"},
      {R"({"spec":{"containers":{"name":"a"}}})", "cannot restore slice from map"},
      {R"({"spec":{"nodeSelector":[1]}})", "cannot restore map from slice"},
      {R"({"spec":{"securityContext":"x"}})", "cannot restore struct from: string"},
  };
  for (const Mistyped& one : mistyped) {
    auto made = apply(PatchType::kStrategic, one.patch, "");
    ASSERT_FALSE(made) << one.patch;
    EXPECT_TRUE(made.error().message.ends_with(one.why)) << made.error().message;
  }
  EXPECT_EQ(Show(apply(PatchType::kMerge, "[]", "Strict")),
            "400 error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}");
  EXPECT_EQ(Show(apply(PatchType::kJson, "{}", "")),
            "400 json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  EXPECT_EQ(Show(apply(PatchType::kStrategic, "{", "")), "400 unexpected end of JSON input");
}

// Small random JSON values with few names, so that patches meet documents.
rc::Gen<std::string> GenJson(int depth) {
  auto scalar = rc::gen::element<std::string>("null", "1", "2", "\"x\"", "true", "[]", "{}");
  if (depth == 0) return scalar;
  return rc::gen::exec([depth, scalar]() -> std::string {
    int kind = *rc::gen::inRange(0, 4);
    if (kind == 0) return *scalar;
    int n = *rc::gen::inRange(0, 4);
    std::string out;
    for (int i = 0; i < n; ++i) {
      if (i > 0) out += ',';
      if (kind > 1) out += "\"" + std::string(1, static_cast<char>('a' + i)) + "\":";
      out += *GenJson(depth - 1);
    }
    return kind == 1 ? "[" + out + "]" : "{" + out + "}";
  });
}

// Not idempotent: like evanphx/json-patch, a list that replaces a map keeps its nulls, and a list
// that replaces anything else loses them. From the second time on nothing changes.
TEST(PatchProperty, MergePatchesSettle) {
  EXPECT_TRUE(rc::check([] {
    Object doc = Tree(*GenJson(3));
    Object patch = Tree(*GenJson(3));
    RC_PRE(patch.root().IsMap());
    Object twice = ApplyMergePatch(ApplyMergePatch(doc.root(), patch.root()).root(), patch.root());
    Object thrice = ApplyMergePatch(twice.root(), patch.root());
    RC_ASSERT(Equal(twice.root(), thrice.root()));
  }));
}

TEST(PatchProperty, JsonPatchMovesThereAndBack) {
  EXPECT_TRUE(rc::check([] {
    Object doc = Tree("{\"a\":" + *GenJson(3) + ",\"b\":" + *GenJson(2) + "}");
    Object ops = Tree(R"([{"op":"copy","from":"/a","path":"/c"},{"op":"remove","path":"/a"},
                          {"op":"move","from":"/c","path":"/a"}])");
    auto out = ApplyJsonPatch(doc, ops);
    RC_ASSERT(out.has_value());
    RC_ASSERT(Equal(out->root(), doc.root()));
  }));
}

TEST(PatchProperty, StrategicPatchOfItselfChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    std::string containers;
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
      containers += (containers.empty() ? "" : ",") + std::string("{\"name\":\"") +
                    static_cast<char>('a' + i) + "\",\"image\":\"" +
                    *rc::gen::element<std::string>("1", "2") + "\"}";
    }
    Object doc = *DecodeJson("{\"spec\":{\"containers\":[" + containers + "]}}", Pod());
    auto out = ApplyStrategicPatch(doc.root(), doc.root(), Pod());
    RC_ASSERT(out.has_value());
    RC_ASSERT(ToJson(DecodeTree(out->root(), Pod())->root()) == ToJson(doc.root()));
  }));
}

}  // namespace
}  // namespace sextant::api
