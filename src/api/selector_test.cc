#include "api/selector.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/json.h"
#include "api/registry.h"

namespace sextant::api {
namespace {

TEST(LabelSelector, ParsesPrintsAndMatches) {
  Object labels = *ParseJson(R"({"app":"web","n":"5","in":"x","empty":""})");
  struct Case {
    const char* text;
    const char* printed;
    bool matches;
  } cases[] = {
      {"", "", true},
      {"app=web", "app=web", true},
      {"app == web", "app==web", true},
      {"app!=web", "app!=web", false},
      {"missing!=web", "missing!=web", true},
      {"app in (b, web ,a)", "app in (a,b,web)", true},
      {"app notin (web)", "app notin (web)", false},
      {"n>4,n<6", "n>4,n<6", true},
      {"n>5", "n>5", false},
      {"app>5", "app>5", false},
      {"!missing,app", "app,!missing", true},
      {"in in (in,x)", "in in (in,x)", true},
      {"empty=", "empty=", true},
      {"empty in ()", "empty in ()", true},
      {"empty in (,a)", "empty in (,a)", true},
      {" z , a ", "a,z", false},
  };
  for (const Case& c : cases) {
    auto s = LabelSelector::Parse(c.text);
    ASSERT_TRUE(s) << c.text << ": " << s.error().message;
    EXPECT_EQ(s->ToString(), c.printed) << c.text;
    EXPECT_EQ(s->Matches(labels.root()), c.matches) << c.text;
  }
}

TEST(LabelSelector, RefusesWithKubernetesWords) {
  struct Case {
    const char* text;
    const char* message;
  } cases[] = {
      {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
      {"=a", "found '=', expected: !, identifier, or 'end of string'"},
      {"a,", "found '', expected: identifier after ','"},
      {"a in b", "unable to parse requirement: found 'b' expected: '('"},
      {"a in (b", "unable to parse requirement: found '', expected: ',' or ')'"},
      {"a=b c", "found 'c', expected: ',' or 'end of string'"},
      {"a=>b", "unable to parse requirement: found '>', expected: identifier"},
      {"a>x",
       "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
       "the value must be an integer"},
      {"-a",
       "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of "
       "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
       "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
       "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
      {"a=-b",
       "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an "
       "empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
       "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
       "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
  };
  for (const Case& c : cases) {
    auto s = LabelSelector::Parse(c.text);
    ASSERT_FALSE(s) << c.text;
    EXPECT_EQ(s.error().message, c.message) << c.text;
  }
}

TEST(LabelSelector, FromApiValues) {
  auto from = [](const char* json) { return LabelSelector::From(ParseJson(json)->root()); };
  EXPECT_FALSE(LabelSelector::From(Value())->Matches(Value()));
  EXPECT_FALSE(from("null")->Matches(Value()));
  EXPECT_TRUE(from("{}")->Empty());
  EXPECT_EQ(from(R"({"matchLabels":{"b":"1"},"matchExpressions":[
                   {"key":"a","operator":"In","values":["y","x"]},
                   {"key":"c","operator":"DoesNotExist"}]})")
                ->ToString(),
            "a in (x,y),b=1,!c");
  EXPECT_EQ(from(R"({"matchExpressions":[{"key":"a","operator":"Like"}]})").error().message,
            "\"Like\" is not a valid label selector operator");
  EXPECT_EQ(from(R"({"matchExpressions":[{"key":"a","operator":"In"}]})").error().message,
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty");
}

TEST(FieldSelector, ParsesAndMatches) {
  Object pod = *ParseJson(
      R"({"metadata":{"name":"p","namespace":"d"},"spec":{"nodeName":"w","hostNetwork":true}})");
  const Resource* pods = Registry::Builtin().Find({"", "v1"}, "pods");
  ASSERT_NE(pods, nullptr);
  struct Case {
    const char* text;
    bool matches;
  } cases[] = {
      {"", true},
      {"metadata.name=p", true},
      {"metadata.name==p,spec.nodeName!=w", false},
      {"status.phase=", true},
      {"status.phase!=Failed", true},
      {"spec.hostNetwork=true", true},
      {",metadata.namespace=d,", true},
  };
  for (const Case& c : cases) {
    auto s = FieldSelector::Parse(c.text);
    ASSERT_TRUE(s) << c.text;
    ASSERT_TRUE(s->Bind(*pods)) << c.text;
    EXPECT_EQ(s->Matches(pod.root()), c.matches) << c.text;
  }
  EXPECT_EQ(FieldSelector::Parse("metadata.name=p")->Exact("metadata.name"), "p");
  EXPECT_EQ(FieldSelector::Parse("b=1,a=x\\,y")->ToString(), "a=x\\,y,b=1");
}

TEST(FieldSelector, AbsentCountsAsGosZero) {
  auto s = FieldSelector::Parse("spec.unschedulable=false");
  ASSERT_TRUE(s->Bind(*Registry::Builtin().Find({"", "v1"}, "nodes")));
  EXPECT_TRUE(s->Matches(ParseJson("{}")->root()));
  EXPECT_FALSE(s->Matches(ParseJson(R"({"spec":{"unschedulable":true}})")->root()));
}

TEST(FieldSelector, Refuses) {
  EXPECT_EQ(FieldSelector::Parse("abc").error().message,
            "invalid selector: 'abc'; can't understand 'abc'");
  EXPECT_EQ(FieldSelector::Parse("a=b=c").error().message,
            "invalid field selector: unescaped character in value: 61");
  EXPECT_EQ(FieldSelector::Parse("a=\\x").error().message,
            "invalid field selector: invalid escape sequence: \\x");
  auto pods = FieldSelector::Parse("spec.foo=1");
  EXPECT_EQ(pods->Bind(*Registry::Builtin().Find({"", "v1"}, "pods")).error().message,
            "field label not supported: spec.foo");
  EXPECT_EQ(pods->Bind(*Registry::Builtin().Find({"apps", "v1"}, "deployments")).error().message,
            "\"spec.foo\" is not a known field selector: only \"metadata.name\", "
            "\"metadata.namespace\"");
}

TEST(SelectorProperty, PrintedSelectorsMeanTheSame) {
  EXPECT_TRUE(rc::check([] {
    auto word = rc::gen::element<std::string>("a", "b", "c", "in", "notin", "x.y/z");
    auto value = rc::gen::element<std::string>("1", "2", "in", "v");
    auto count = *rc::gen::inRange(0, 4);
    std::string text;
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ",";
      std::string key = *word;
      switch (*rc::gen::inRange(0, 6)) {
        case 0:
          text += key;
          break;
        case 1:
          text += "!" + key;
          break;
        case 2:
          text += key + "=" + *value;
          break;
        case 3:
          text += key + " != " + *value;
          break;
        case 4:
          text += key + " in (" + *value + "," + *value + ")";
          break;
        default:
          text += key + " notin (" + *value + ")";
          break;
      }
    }
    LabelSelector s = *LabelSelector::Parse(text);
    LabelSelector again = *LabelSelector::Parse(s.ToString());
    RC_ASSERT(again.ToString() == s.ToString());
    Editor labels;
    labels.Root().SetMap();
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) labels.Root().Set(*word, *value);
    Object set = std::move(labels).Finish();
    RC_ASSERT(s.Matches(set.root()) == again.Matches(set.root()));
    bool all = true;
    for (const LabelRequirement& r : s.requirements()) all = all && r.Matches(set.root());
    RC_ASSERT(s.Matches(set.root()) == all);
  }));
}

}  // namespace
}  // namespace sextant::api
