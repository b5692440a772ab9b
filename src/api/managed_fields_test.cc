#include "api/managed_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/field_set.h"
#include "api/field_walk.h"
#include "api/json.h"
#include "api/registry.h"

namespace sextant::api {
namespace {

const Message& Pod() { return *Registry::Builtin().FindKindMessage({"", "v1"}, "Pod"); }

Object PodOf(std::string_view rest) {
  return *DecodeJson(R"({"kind":"Pod","apiVersion":"v1",)" + std::string(rest) + "}", Pod());
}

ManagerInfo Who(std::string_view manager, std::string_view subresource = "") {
  return {manager, subresource, "v1", Time(std::chrono::seconds(1790000000))};
}

// Stored: an object with a uid is no longer new.
Object Stored(const Object& o) {
  Editor edit(o);
  edit["metadata"].Set("uid", "u");
  return std::move(edit).Finish(&Pod());
}

// manager operation [subresource]: fields, one line each.
std::string Managers(const Object& o) {
  std::string out;
  for (Value e : o["metadata"]["managedFields"].items()) {
    out += std::string(e["manager"].AsString()) + " " + std::string(e["operation"].AsString());
    if (e["subresource"]) out += " " + std::string(e["subresource"].AsString());
    out += " " + ToJson(e["fieldsV1"]) + "\n";
  }
  return out;
}

TEST(FieldSet, ReadsAndWritesFieldsV1) {
  constexpr const char* kText =
      R"({"f:a":{},"f:b":{".":{},"f:c":{}},"k:{\"port\":80}":{".":{},"f:port":{}},)"
      R"("k:{\"port\":443}":{},"v:\"x\"":{},"v:3":{},"i:0":{}})";
  FieldSet set = FieldSet::FromJson(ParseJson(kText)->root());
  EXPECT_EQ(ToJson(set.ToJson().root()),
            R"({"f:a":{},"f:b":{".":{},"f:c":{}},"k:{\"port\":80}":{".":{},"f:port":{}},)"
            R"("k:{\"port\":443}":{},"v:3":{},"v:\"x\"":{},"i:0":{}})");
  std::vector<std::string> paths;
  set.ForEach([&](const FieldPath& p) { paths.push_back(PathToString(p)); });
  EXPECT_EQ(paths, (std::vector<std::string>{".a", ".b", "[port=80]", "[port=443]", "[=3]",
                                             "[=\"x\"]", "[0]", ".b.c", "[port=80].port"}));
  // What we do not know is dropped.
  EXPECT_EQ(FieldSet::FromJson(ParseJson(R"({"z:1":{},"k:x":{},"f":{}})")->root()), FieldSet());
}

TEST(TrackUpdate, CreateAndUpdate) {
  Object pod = PodOf(R"("metadata":{"name":"p","labels":{"a":"1"}},"spec":{"containers":[)"
                     R"({"name":"c","image":"1","ports":[{"containerPort":80}]}],"nodeName":"n"})");
  Object created = TrackUpdate(Who("kubectl-create"), Pod(), Object(), pod);
  EXPECT_EQ(Managers(created),
            "kubectl-create Update "
            R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":)"
            R"({"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},)"
            R"("k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},)"
            R"("f:resources":{}}},"f:nodeName":{}}})"
            "\n");
  EXPECT_EQ(created.Path("metadata.managedFields").at(0)["time"].AsString(),
            "2026-09-21T14:13:20Z");
  created = Stored(created);

  Editor edit(created);
  edit["metadata"]["labels"].Set("a", "2");
  edit["spec"]["containers"].at(0).Set("image", "2");
  edit["status"].Set("phase", "Running");
  Object next = TrackUpdate(Who("edit"), Pod(), created, std::move(edit).Finish(&Pod()));
  std::string managers = Managers(next);
  EXPECT_NE(managers.find("edit Update "
                          R"({"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:containers":)"
                          R"({"k:{\"name\":\"c\"}":{"f:image":{}}}}})"),
            std::string::npos)
      << managers;
  EXPECT_EQ(managers.find("f:status"), std::string::npos);

  Editor status(next);
  status["status"].Set("phase", "Failed");
  Object after =
      TrackUpdate(Who("kubelet", "status"), Pod(), next, std::move(status).Finish(&Pod()));
  EXPECT_NE(Managers(after).find(R"(kubelet Update status {"f:status":{"f:phase":{}}})"),
            std::string::npos)
      << Managers(after);
  // Nothing changed: nothing is recorded.
  EXPECT_TRUE(Equal(TrackUpdate(Who("other"), Pod(), after, after).root(), after.root()));
}

TEST(TrackUpdate, ResetsUntrackedAndTooMany) {
  Object pod = Stored(TrackUpdate(Who("m"), Pod(), Object(), PodOf(R"("metadata":{"name":"p"})")));
  Editor reset(pod);
  reset["metadata"]["managedFields"].Erase("x");
  reset["metadata"].Set("labels", Value());
  reset["metadata"]["labels"].Set("a", "b");
  Object labelled = TrackUpdate(Who("m"), Pod(), pod, std::move(reset).Finish(&Pod()));
  // Nobody tracked it at creation (it had no fields to own): nobody does later.
  EXPECT_EQ(Managers(labelled), "");

  Object live = Stored(TrackUpdate(Who("m0"), Pod(), Object(),
                                   PodOf(R"("metadata":{"name":"p","labels":{"l0":"0"}})")));
  for (int i = 1; i < 15; ++i) {
    Editor edit(live);
    edit["metadata"]["labels"].Set("l" + std::to_string(i), "x");
    ManagerInfo who{.manager = "", .api_version = "v1", .now = Time(std::chrono::seconds(i))};
    std::string name = "m" + std::to_string(i);
    who.manager = name;
    live = TrackUpdate(who, Pod(), live, std::move(edit).Finish(&Pod()));
  }
  EXPECT_EQ(live.Path("metadata.managedFields").size(), 10u);
  EXPECT_NE(Managers(live).find("ancient-changes"), std::string::npos);
}

TEST(ApplyFields, MergesPrunesAndConflicts) {
  auto apply = [](const char* manager, bool force, const Object& live, const char* config) {
    return ApplyFields(Who(manager), force, Pod(), live, ParseJson(config)->root());
  };
  auto one = apply("a", false, Object(),
                   R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":
                       {"x":"1","y":"1"}},"spec":{"containers":[{"name":"c","image":"1"}]}})");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(Managers(*one),
            "a Apply "
            R"({"f:metadata":{"f:labels":{"f:x":{},"f:y":{}}},"f:spec":{"f:containers":)"
            R"({"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}})"
            "\n");
  Object live = Stored(*one);

  // Another applier with the same value shares it, with another value it conflicts.
  auto conflict = apply("b", false, live,
                        R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":
                            {"x":"2"}}})");
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, 409);
  EXPECT_EQ(conflict.error().message,
            "Apply failed with 1 conflict: conflict with \"a\": .metadata.labels.x");
  EXPECT_EQ(
      conflict.error().causes,
      (std::vector<Cause>{{"FieldManagerConflict", "conflict with \"a\"", ".metadata.labels.x"}}));
  auto forced = apply("b", true, live,
                      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":
                          {"x":"2"}},"spec":{"containers":[{"name":"d"}]}})");
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->Path("spec.containers").size(), 2u);

  // What `a` does not give any more goes, unless somebody else has it.
  auto pruned = apply("a", false, Stored(*forced),
                      R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},
                          "spec":{"containers":[{"name":"c","image":"2"}]}})");
  ASSERT_TRUE(pruned);
  EXPECT_EQ(ToJson((*pruned)["metadata"]["labels"]), R"({"x":"2"})");
  EXPECT_EQ(pruned->Path("spec.containers").at(0)["image"].AsString(), "2");
}

TEST(ApplyFields, Refuses) {
  struct Case {
    const char* config;
    int code;
    const char* message;
  } cases[] = {
      {R"({"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[]}})", 400,
       "metadata.managedFields must be nil"},
      {R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d"},
           "spec":{"foo":1}})",
       500,
       "failed to create typed patch object (d/p; /v1, Kind=Pod): .spec.foo: field not declared "
       "in schema"},
      {R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d"},
           "spec":{"containers":[{"name":"a"},{"name":"a"}]}})",
       500,
       "failed to create typed patch object (d/p; /v1, Kind=Pod): .spec.containers: duplicate "
       "entries for key [name=\"a\"]"},
  };
  for (const Case& c : cases) {
    auto out = ApplyFields(Who("m"), false, Pod(), Object(), ParseJson(c.config)->root());
    ASSERT_FALSE(out) << c.config;
    EXPECT_EQ(out.error().code, c.code);
    EXPECT_EQ(out.error().message, c.message);
  }
}

TEST(ApplyFields, FirstApplyOverUntrackedObject) {
  Object live = Stored(PodOf(R"("metadata":{"name":"p","labels":{"a":"1"}})"));
  auto out = ApplyFields(Who("m"), true, Pod(), live,
                         ParseJson(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p",
                                       "labels":{"b":"2"}}})")
                             ->root());
  ASSERT_TRUE(out);
  EXPECT_EQ(Managers(*out),
            "m Apply {\"f:metadata\":{\"f:labels\":{\"f:b\":{}}}}\n"
            "before-first-apply Update {\"f:metadata\":{\"f:labels\":{\".\":{},\"f:a\":{}}}}\n");
}

// Random sets over few names.
FieldSet RandomSet() {
  FieldSet set;
  for (int n = *rc::gen::inRange(0, 8); n > 0; --n) {
    FieldPath path;
    for (int depth = *rc::gen::inRange(1, 4); depth > 0; --depth) {
      path.push_back(PathElement::Field(*rc::gen::element<std::string>("a", "b", "c")));
    }
    set.Insert(path);
  }
  return set;
}

TEST(FieldSetProperty, Algebra) {
  EXPECT_TRUE(rc::check([] {
    FieldSet a = RandomSet(), b = RandomSet(), c = RandomSet();
    RC_ASSERT(a.Union(b) == b.Union(a));
    RC_ASSERT(a.Intersection(b) == b.Intersection(a));
    RC_ASSERT(a.Difference(b).Union(a.Intersection(b)) == a);
    RC_ASSERT(a.Difference(b).Intersection(b).empty());
    RC_ASSERT(a.Union(b).Intersection(c) == a.Intersection(c).Union(b.Intersection(c)));
    RC_ASSERT(a.RecursiveDifference(a).empty());
    RC_ASSERT(FieldSet::FromJson(a.ToJson().root()) == a);
  }));
}

}  // namespace
}  // namespace sextant::api
