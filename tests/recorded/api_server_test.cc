// Questions to the API server that no recording asks: what it must not do, and what it says before
// a request reaches it.
#include "server/api_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/schema.h"
#include "in_process_server.h"
#include "net/client.h"
#include "net/server.h"
#include "server/served.h"

namespace sextant::recorded {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kLimit = std::chrono::seconds(20);
const Asker kAdmin{"admin", {"system:masters"}};

class ApiServerTest : public ::testing::Test {
 protected:
  std::shared_ptr<Pending> Send(const std::string& method, const std::string& target,
                                const std::string& body = "", const Asker& asker = kAdmin) {
    net::Request request;
    request.method = method;
    request.SetTarget(target);
    request.http_major = 2;
    request.headers.Add("accept", "application/json");
    if (!body.empty()) {
      request.headers.Add("content-type",
                          method == "PATCH" ? "application/merge-patch+json" : "application/json");
    }
    request.body = body;
    return server_.Ask(std::move(request), asker);
  }
  Answer Ask(const std::string& method, const std::string& target, const std::string& body = "",
             const Asker& asker = kAdmin) {
    const auto pending = Send(method, target, body, asker);
    Answer answer = pending->Wait(kLimit);
    pending->Close();
    return answer;
  }
  void Make(const std::string& collection, const Json& object) {
    const Answer answer = Ask("POST", collection, object.dump());
    ASSERT_EQ(answer.status, 201) << collection << " " << answer.body;
  }

  InProcessServer server_;
};

const Json kTemplate = {{"metadata", {{"labels", {{"a", "b"}}}}},
                        {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};

// One object of each resource that has a subresource which is no view of it.
struct Stood {
  std::string collection;
  Json object;
};
std::vector<Stood> Objects() {
  const auto named = [](const char* kind, const char* version, Json spec) {
    return Json{{"kind", kind},
                {"apiVersion", version},
                {"metadata", {{"name", "x"}}},
                {"spec", std::move(spec)}};
  };
  const Json workload = {
      {"replicas", 1}, {"selector", {{"matchLabels", {{"a", "b"}}}}}, {"template", kTemplate}};
  Json stateful = workload;
  stateful["serviceName"] = "x";
  Json account = named("ServiceAccount", "v1", {});
  account.erase("spec");
  return {
      {"/api/v1/namespaces", named("Namespace", "v1", Json::object())},
      {"/api/v1/nodes", named("Node", "v1", Json::object())},
      {"/api/v1/namespaces/x/serviceaccounts", account},
      {"/api/v1/namespaces/x/pods",
       named("Pod", "v1",
             {{"serviceAccountName", "x"}, {"containers", kTemplate["spec"]["containers"]}})},
      {"/api/v1/namespaces/x/services", named("Service", "v1", {{"ports", {{{"port", 80}}}}})},
      {"/api/v1/namespaces/x/replicationcontrollers",
       named("ReplicationController", "v1",
             {{"replicas", 1}, {"selector", {{"a", "b"}}}, {"template", kTemplate}})},
      {"/apis/apps/v1/namespaces/x/deployments", named("Deployment", "apps/v1", workload)},
      {"/apis/apps/v1/namespaces/x/replicasets", named("ReplicaSet", "apps/v1", workload)},
      {"/apis/apps/v1/namespaces/x/statefulsets", named("StatefulSet", "apps/v1", stateful)},
  };
}

constexpr std::pair<const char*, const char*> kMethods[] = {{"GET", "get"},
                                                            {"POST", "create"},
                                                            {"PUT", "update"},
                                                            {"PATCH", "patch"},
                                                            {"DELETE", "delete"}};

// Every subresource with every method: what it does not offer is refused, and nothing that it is
// asked with an empty body reads, changes or deletes the object in its stead.
TEST_F(ApiServerTest, NoSubresourceIsTakenForItsObject) {
  const auto registry =
      server::ServedRegistry(api::Registry::Builtin(), [](const api::Resource& resource) {
        return server::ServedByDefault(resource.group_version);
      });
  std::map<const api::Resource*, std::string> stood;
  for (const Stood& one : Objects()) {
    ASSERT_NO_FATAL_FAILURE(Make(one.collection, one.object));
    const auto gv = api::GroupVersion::Of(one.object["apiVersion"].get_ref<const std::string&>());
    const std::string plural = one.collection.substr(one.collection.rfind('/') + 1);
    stood[registry->Find(gv, plural)] = one.collection + "/x";
  }
  int asked = 0;
  for (const api::Resource* resource : registry->resources()) {
    for (const api::Subresource& sub : resource->subresources) {
      const bool view = sub.message == resource->message;
      const auto found = stood.find(resource);
      if (found == stood.end()) {
        EXPECT_TRUE(view) << "Objects() lacks " << resource->plural << ", for " << sub.name;
        continue;
      }
      const Json before = Json::parse(Ask("GET", found->second).body);
      const std::string path = fmt::format("{}/{}", found->second, sub.name);
      for (const auto& [method, verb] : kMethods) {
        const std::string what = fmt::format("{} {}", method, path);
        const bool writes = method != std::string("GET") && method != std::string("DELETE");
        const Answer answer = Ask(method, path, writes ? "{}" : "");
        ++asked;
        if (std::ranges::find(sub.verbs, verb) == sub.verbs.end()) {
          EXPECT_EQ(answer.status, 405) << what << " " << answer.body;
        } else if (!view) {
          const Json told = Json::parse(answer.body, nullptr, false);  // or text: a log
          EXPECT_FALSE(told.is_object() && told.value("kind", "") == resource->kind)
              << what << " " << answer.body;
        }
        const Answer beyond = Ask(method, path + "/further", writes ? "{}" : "");
        EXPECT_GE(beyond.status, 400) << what << "/further " << beyond.body;
        EXPECT_EQ(Json::parse(Ask("GET", found->second).body, nullptr, false), before) << what;
      }
    }
  }
  EXPECT_GT(asked, 100);
}

TEST_F(ApiServerTest, WhatNoProxyServesIsNotFound) {
  for (const Stood& one : Objects()) ASSERT_NO_FATAL_FAILURE(Make(one.collection, one.object));
  for (const char* path : {"/api/v1/namespaces/x/services/x/proxy/a",
                           "/api/v1/namespaces/x/pods/x/proxy", "/api/v1/nodes/x/proxy/run/x"}) {
    for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
      EXPECT_EQ(Ask(method, path, "anything").status, 404) << method << " " << path;
    }
  }
  EXPECT_EQ(Ask("GET", "/api/v1/namespaces/x/services/x").status, 200);
  EXPECT_EQ(Ask("GET", "/api/v1/nodes/nosuch/proxy/healthz").status, 404);
  const Answer bare = Ask("GET", "/api/v1/nodes/x/proxy?a=b");
  EXPECT_EQ(bare.status, 301);
  EXPECT_EQ(bare.headers.Get("location"), "/api/v1/nodes/x/proxy/?a=b");
}

// A role of one name gives a watch of that name, on the old path too, and of nothing beside it.
TEST_F(ApiServerTest, AWatchOfOneNameTellsNothingElse) {
  const Asker one{"one", {}};
  const std::string all = "/api/v1/namespaces/w/configmaps";
  ASSERT_NO_FATAL_FAILURE(
      Make("/api/v1/namespaces",
           {{"kind", "Namespace"}, {"apiVersion", "v1"}, {"metadata", {{"name", "w"}}}}));
  const auto put = [&](const char* method, const std::string& path, const std::string& name,
                       const char* value) {
    const Json object = {{"kind", "ConfigMap"},
                         {"apiVersion", "v1"},
                         {"metadata", {{"name", name}}},
                         {"data", {{"v", value}}}};
    EXPECT_LT(Ask(method, path, object.dump()).status, 300) << name;
  };
  put("POST", all, "mine", "1");
  put("POST", all, "other", "1");
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/w/";
  ASSERT_NO_FATAL_FAILURE(Make(rbac + "roles", {{"kind", "Role"},
                                                {"apiVersion", "rbac.authorization.k8s.io/v1"},
                                                {"metadata", {{"name", "one"}}},
                                                {"rules",
                                                 {{{"apiGroups", {""}},
                                                   {"resources", {"configmaps"}},
                                                   {"resourceNames", {"mine"}},
                                                   {"verbs", {"get", "list", "watch"}}}}}}));
  ASSERT_NO_FATAL_FAILURE(
      Make(rbac + "rolebindings",
           {{"kind", "RoleBinding"},
            {"apiVersion", "rbac.authorization.k8s.io/v1"},
            {"metadata", {{"name", "one"}}},
            {"subjects",
             {{{"kind", "User"}, {"name", "one"}, {"apiGroup", "rbac.authorization.k8s.io"}}}},
            {"roleRef",
             {{"kind", "Role"}, {"name", "one"}, {"apiGroup", "rbac.authorization.k8s.io"}}}}));
  const std::string old = "/api/v1/watch/namespaces/w/configmaps";
  EXPECT_EQ(Ask("GET", old, "", one).status, 403);
  EXPECT_EQ(Ask("GET", old + "/other", "", one).status, 403);
  EXPECT_EQ(Ask("GET", all + "?watch=1", "", one).status, 403);
  EXPECT_EQ(Ask("GET", old + "/mine?fieldSelector=metadata.name%3Dother", "", one).status, 400);
  EXPECT_EQ(Ask("GET", old + "/mine?fieldSelector=metadata.name%21%3Dmine", "", one).status, 400);
  EXPECT_EQ(Ask("POST", old + "/mine", "{}", one).status, 405);
  for (const std::string& path : {old + "/mine", old + "/mine?resourceVersion=1",
                                  all + "?watch=1&fieldSelector=metadata.name%3Dmine"}) {
    const auto watch = Send("GET", path, "", one);
    ASSERT_TRUE(watch->WaitForHeaders(kLimit)) << path;
    ASSERT_EQ(watch->head().status, 200) << path;
    static int round = 1;
    const std::string value = fmt::format("round-{}", ++round);
    put("PUT", all + "/other", "other", value.c_str());
    put("PUT", all + "/mine", "mine", value.c_str());
    std::string heard;
    bool ended = false;
    while (!ended && heard.find(value) == std::string::npos) {
      const std::string piece = watch->TakeBytes(kLimit, ended);
      ASSERT_FALSE(piece.empty()) << path << " told only " << heard;
      heard += piece;
    }
    EXPECT_THAT(heard, HasSubstr("\"mine\"")) << path;
    EXPECT_THAT(heard, Not(HasSubstr("\"other\""))) << path;
    watch->Close();
  }
}

// A Pod that waited for a node says nothing of that once it is bound.
TEST_F(ApiServerTest, ABindingEndsWhatTheSchedulerSaid) {
  for (const Stood& one : Objects()) ASSERT_NO_FATAL_FAILURE(Make(one.collection, one.object));
  const std::string pod = "/api/v1/namespaces/x/pods/x";
  const auto scheduled = [&] {
    const Json read = Json::parse(Ask("GET", pod).body);
    return read["status"]["conditions"].at(0);
  };
  const Json waits = {{{"type", "PodScheduled"},
                       {"status", "False"},
                       {"lastProbeTime", nullptr},
                       {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                       {"reason", "Unschedulable"},
                       {"message", "0/1 nodes are available"}}};
  EXPECT_EQ(
      Ask("PATCH", pod + "/status", Json({{"status", {{"conditions", waits}}}}).dump()).status,
      200);
  ASSERT_EQ(scheduled()["reason"], "Unschedulable");
  const Json binding = {{"kind", "Binding"},
                        {"apiVersion", "v1"},
                        {"metadata", {{"name", "x"}}},
                        {"target", {{"kind", "Node"}, {"name", "x"}}}};
  const Answer bound = Ask("POST", pod + "/binding", binding.dump());
  EXPECT_EQ(bound.status, 201) << bound.body;
  Json now = scheduled();
  EXPECT_NE(now["lastTransitionTime"], waits[0]["lastTransitionTime"]);
  now.erase("lastTransitionTime");
  EXPECT_EQ(now, Json({{"type", "PodScheduled"}, {"status", "True"}, {"lastProbeTime", nullptr}}));
}

// autoscaling/v1 carries a part of status in annotations: a write of spec leaves status as it is
// whatever they say, and a write of status the spec.
TEST_F(ApiServerTest, AutoscalersOfV1KeepWhatIsNotWritten) {
  ASSERT_NO_FATAL_FAILURE(
      Make("/api/v1/namespaces",
           {{"kind", "Namespace"}, {"apiVersion", "v1"}, {"metadata", {{"name", "h"}}}}));
  const auto path = [](const char* version, const char* rest) {
    return fmt::format("/apis/autoscaling/{}/namespaces/h/horizontalpodautoscalers{}", version,
                       rest);
  };
  const Json target = {{"kind", "Deployment"}, {"name", "d"}, {"apiVersion", "apps/v1"}};
  const std::string kept = "autoscaling.alpha.kubernetes.io/";
  Json v1 = {
      {"kind", "HorizontalPodAutoscaler"},
      {"apiVersion", "autoscaling/v1"},
      {"metadata",
       {{"name", "h"},
        {"annotations",
         {{"mine", "1"}, {kept + "conditions", R"([{"type":"Forged","status":"True"}])"}}}}},
      {"spec",
       {{"scaleTargetRef", target}, {"maxReplicas", 3}, {"targetCPUUtilizationPercentage", 50}}}};
  ASSERT_NO_FATAL_FAILURE(Make(path("v1", ""), v1));
  Json v2 = Json::parse(Ask("GET", path("v2", "/h")).body);
  EXPECT_FALSE(v2["status"].contains("conditions")) << v2;
  EXPECT_EQ(v2["metadata"]["annotations"], Json({{"mine", "1"}}));
  v2["status"] = {{"desiredReplicas", 2},
                  {"conditions",
                   {{{"type", "AbleToScale"},
                     {"status", "True"},
                     {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}},
                  {"currentMetrics",
                   {{{"type", "Resource"},
                     {"resource", {{"name", "cpu"}, {"current", {{"averageValue", "7m"}}}}}}}}};
  EXPECT_EQ(Ask("PUT", path("v2", "/h/status"), v2.dump()).status, 200);
  v2 = Json::parse(Ask("GET", path("v2", "/h")).body);
  ASSERT_TRUE(v2["status"].contains("currentMetrics")) << v2;

  for (const int most : {4, 5}) {
    v1["spec"]["maxReplicas"] = most;
    EXPECT_EQ(Ask("PUT", path("v1", "/h"), v1.dump()).status, 200);
    const Json now = Json::parse(Ask("GET", path("v2", "/h")).body);
    EXPECT_EQ(now["spec"]["maxReplicas"], most);
    EXPECT_EQ(now["status"], v2["status"]);
    v1["metadata"].erase("annotations");
  }
  v2 = Json::parse(Ask("GET", path("v2", "/h")).body);
  v1["metadata"]["annotations"] = {{kept + "metrics", R"([{"type":"Resource","resource":)"
                                                      R"({"name":"memory"}}])"}};
  v1["status"] = {{"currentReplicas", 1}, {"desiredReplicas", 1}};
  EXPECT_EQ(Ask("PUT", path("v1", "/h/status"), v1.dump()).status, 200);
  const Json now = Json::parse(Ask("GET", path("v2", "/h")).body);
  EXPECT_EQ(now["spec"], v2["spec"]);
  EXPECT_EQ(now["status"]["currentReplicas"], 1);
}

// A custom resource is pruned, given defaults and read once, whichever way it comes.
TEST_F(ApiServerTest, CustomResourcesAreShapedWhicheverWayTheyCome) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"spec":{"type":"object",
      "properties":{"size":{"type":"integer","default":3},"inner":{"type":"object",
      "x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}})");
  const Json version = {{"name", "v1"},
                        {"served", true},
                        {"storage", true},
                        {"schema", {{"openAPIV3Schema", schema}}}};
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  ASSERT_NO_FATAL_FAILURE(Make(crds, {{"kind", "CustomResourceDefinition"},
                                      {"apiVersion", "apiextensions.k8s.io/v1"},
                                      {"metadata", {{"name", "bolts.example.com"}}},
                                      {"spec",
                                       {{"group", "example.com"},
                                        {"scope", "Cluster"},
                                        {"names", {{"plural", "bolts"}, {"kind", "Bolt"}}},
                                        {"versions", {version}}}}}));
  const std::string bolts = "/apis/example.com/v1/bolts";
  for (int i = 0; Ask("GET", bolts).status != 200; ++i) {
    ASSERT_LT(i, 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto bolt = [](Json spec) {
    return Json{{"kind", "Bolt"},
                {"apiVersion", "example.com/v1"},
                {"metadata", {{"name", "b"}}},
                {"spec", std::move(spec)}};
  };
  const Json shaped = {{"size", 3}};
  const auto spec_of = [](const Answer& answer) { return Json::parse(answer.body)["spec"]; };
  EXPECT_EQ(spec_of(Ask("POST", bolts, bolt({{"nosuch", 1}}).dump())), shaped);
  const auto put = [&](Json spec) {
    Json object = bolt(std::move(spec));
    object["metadata"]["resourceVersion"] =
        Json::parse(Ask("GET", bolts + "/b").body)["metadata"]["resourceVersion"];
    return Ask("PUT", bolts + "/b", object.dump());
  };
  EXPECT_EQ(spec_of(put({{"nosuch", 2}})), shaped);
  EXPECT_EQ(spec_of(Ask("PATCH", bolts + "/b", R"({"spec":{"nosuch":3,"size":null}})")), shaped);
  EXPECT_EQ(spec_of(Ask("GET", bolts + "/b")), shaped);
  net::Request apply;
  apply.method = "PATCH";
  apply.SetTarget(bolts + "/c?fieldManager=m");
  apply.headers.Add("content-type", "application/apply-patch+yaml");
  Json applied = bolt(Json::object());
  applied["metadata"]["name"] = "c";
  apply.body = applied.dump();
  EXPECT_EQ(spec_of(server_.Ask(std::move(apply), kAdmin)->Wait(kLimit)), shaped);

  const Json inner = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"labels", 5}}}};
  const Answer replaced = put({{"inner", inner}});
  EXPECT_EQ(replaced.status, 400) << replaced.body;
  const Answer patched = Ask("PATCH", bolts + "/b", Json({{"spec", {{"inner", inner}}}}).dump());
  EXPECT_EQ(patched.status, 422) << patched.body;
  for (const Answer& answer : {replaced, patched}) {
    EXPECT_THAT(answer.body, HasSubstr("spec.inner.metadata: Invalid value"));
  }
  EXPECT_EQ(spec_of(Ask("GET", bolts + "/b")), shaped);
}

// A watch of a custom kind ends when the kind changes, and when it goes, after the last object has.
TEST_F(ApiServerTest, AWatchEndsWithItsKind) {
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  Json crd = Json::parse(R"({"kind":"CustomResourceDefinition",
      "apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"nuts.example.com"},
      "spec":{"group":"example.com","scope":"Cluster","names":{"plural":"nuts","kind":"Nut"},
      "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
      {"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})");
  ASSERT_NO_FATAL_FAILURE(Make(crds, crd));
  const std::string nuts = "/apis/example.com/v1/nuts";
  const auto serves = [&](int status) {
    for (int i = 0; i < 1000 && Ask("GET", nuts).status != status; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Ask("GET", nuts).status == status;
  };
  const auto rest_of = [&](Pending& watch) {
    std::string text;
    for (bool ended = false; !ended;) {
      const std::string piece = watch.TakeBytes(kLimit, ended);
      if (piece.empty() && !ended) return std::string("it goes on");
      text += piece;
    }
    return text;
  };
  ASSERT_TRUE(serves(200));
  ASSERT_EQ(Ask("POST", nuts, R"({"kind":"Nut","apiVersion":"example.com/v1",
      "metadata":{"name":"n"}})")
                .status,
            201);
  const auto before = Send("GET", nuts + "?watch=1", "", kAdmin);
  ASSERT_TRUE(before->WaitForHeaders(kLimit));
  ASSERT_EQ(Ask("PATCH", crds + "/nuts.example.com", R"({"spec":{"names":{"shortNames":["nt"]}}})")
                .status,
            200);
  EXPECT_THAT(rest_of(*before), HasSubstr("ADDED"));
  for (int i = 0; !Ask("GET", "/apis/example.com/v1").body.contains(R"("nt")"); ++i) {
    ASSERT_LT(i, 1000) << "the names are accepted in a second step";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto after = Send("GET", nuts + "?watch=1", "", kAdmin);
  ASSERT_TRUE(after->WaitForHeaders(kLimit));
  ASSERT_EQ(Ask("DELETE", crds + "/nuts.example.com").status, 200);
  EXPECT_THAT(rest_of(*after), HasSubstr("DELETED"));
  EXPECT_TRUE(serves(404));
}

// What the listener refuses by itself, over sockets.
TEST(Listener, ATooLargeBodyIsAStatus) {
  RealClock clock;
  net::IoThread io("io", clock);
  EventLoop loop("client", clock);
  auto listener = net::Server::Start(
      {&io}, {.listen = {.address = "127.0.0.1"}, .render_error = server::RenderListenerError},
      [](net::Request, std::shared_ptr<net::ResponseWriter> writer) {
        writer->SendResponse(200, {}, std::string("taken"));
      });
  ASSERT_TRUE(listener) << listener.error().message;
  net::HttpClient client(
      io, loop, {.base_url = fmt::format("http://127.0.0.1:{}", (*listener)->endpoint().port)});
  const auto post = [&](net::ClientRequest request) {
    std::promise<Result<net::ClientResponse>> got;
    client.Do(std::move(request),
              [&](Result<net::ClientResponse> r) { got.set_value(std::move(r)); });
    return got.get_future().get();
  };
  const auto refused = post(
      {.method = "POST", .target = "/api/v1", .body = net::MakeBuffer(std::string(4 << 20, 'a'))});
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ(refused->headers.Get("content-type"), "application/json");
  EXPECT_EQ(Json::parse(refused->body, nullptr, false),
            Json({{"kind", "Status"},
                  {"apiVersion", "v1"},
                  {"metadata", Json::object()},
                  {"status", "Failure"},
                  {"message", "Request entity too large: limit is 3145728"},
                  {"reason", "RequestEntityTooLarge"},
                  {"code", 413}}));
  const auto header = post({.target = "/", .headers = {{"x-big", std::string(70'000, 'h')}}});
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->status, 431);
  EXPECT_EQ(header->headers.Get("content-type"), "text/plain; charset=utf-8");
  EXPECT_THAT(header->body, HasSubstr("431 Request Header Fields Too Large"));
}

}  // namespace
}  // namespace sextant::recorded
