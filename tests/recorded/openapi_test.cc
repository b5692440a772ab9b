// Every OpenAPI document against the real server's (tests/api/facts/openapi), and how they are
// kept.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "api/wire.h"
#include "base/file.h"
#include "in_process_server.h"
#include "normaliser.h"

namespace sextant::recorded {
namespace {

constexpr Duration kLimit = std::chrono::seconds(20);
constexpr size_t kMaxFile = 64 << 20;
const std::string kFacts = SEXTANT_SOURCE_DIR "/tests/api/facts/openapi/";

// What the real server has and ours does not serve at all. Only ever shorter.
const std::set<std::string> kNotServed = {
    "apis/apiregistration.k8s.io", "apis/apiregistration.k8s.io/v1",
    "apis/flowcontrol.apiserver.k8s.io", "apis/flowcontrol.apiserver.k8s.io/v1"};
const std::set<std::string> kOurs = {"apis/sextant.dev", "apis/sextant.dev/v1alpha1"};

Json Fact(const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  const auto text = ReadFile(kFacts + file + ".json", kMaxFile);
  EXPECT_TRUE(text) << name;
  return text ? Json::parse(*text) : Json();
}

class OpenApiTest : public ::testing::Test {
 protected:
  Answer Get(const std::string& target, const std::string& accept = "application/json",
             const std::string& etag = "") {
    net::Request request;
    request.method = "GET";
    request.SetTarget(target);
    request.http_major = 2;
    request.headers.Add("accept", accept);
    if (!etag.empty()) request.headers.Add("if-none-match", etag);
    const auto pending = server_.Ask(std::move(request), {"admin", {"system:masters"}});
    Answer answer = pending->Wait(kLimit);
    pending->Close();
    return answer;
  }

  Answer Post(const std::string& target, const std::string& body) {
    net::Request request;
    request.method = "POST";
    request.SetTarget(target);
    request.http_major = 2;
    request.headers.Add("content-type", "application/json");
    request.body = body;
    const auto pending = server_.Ask(std::move(request), {"admin", {"system:masters"}});
    Answer answer = pending->Wait(kLimit);
    pending->Close();
    return answer;
  }

  std::map<std::string, std::string> Index() {
    std::map<std::string, std::string> urls;
    const Json index = Json::parse(Get("/openapi/v3").body);
    for (const auto& [name, place] : index["paths"].items()) {
      urls[name] = place["serverRelativeURL"].get<std::string>();
    }
    return urls;
  }

  InProcessServer server_;
};

TEST_F(OpenApiTest, TheIndexNamesWhatIsServed) {
  std::set<std::string> want = kOurs;
  const Json real = Fact("index");
  for (const auto& [name, place] : real["paths"].items()) {
    if (!kNotServed.contains(name)) want.insert(name);
  }
  std::set<std::string> have;
  for (const auto& [name, url] : Index()) have.insert(name);
  EXPECT_EQ(have, want);
  for (const std::string& name : kNotServed) {
    EXPECT_TRUE(real["paths"].contains(name)) << name;
    EXPECT_EQ(Get("/openapi/v3/" + name).status, 404) << name;
  }
}

TEST_F(OpenApiTest, EveryDocumentIsTheRealOne) {
  size_t equal = 0;
  for (const auto& [name, url] : Index()) {
    if (kOurs.contains(name)) continue;
    const Answer answer = Get(url);
    ASSERT_EQ(answer.status, 200) << url;
    NormaliseOptions options;
    options.path = "/openapi/v3/" + name;
    const Json have = Normaliser().Body(Json::parse(answer.body), options);
    const Json differences = Json::diff(Fact(name), have);
    EXPECT_TRUE(differences.empty()) << name << " " << differences.dump().substr(0, 2000);
    ++equal;
  }
  EXPECT_GE(equal, 39U);
}

TEST_F(OpenApiTest, WhatIsReferredToIsThere) {
  for (const auto& [name, url] : Index()) {
    const Json document = Json::parse(Get(url).body);
    const std::string text = document.dump();
    constexpr std::string_view kPrefix = "\"#/components/schemas/";
    for (size_t at = text.find(kPrefix); at != text.npos; at = text.find(kPrefix, at + 1)) {
      const size_t begin = at + kPrefix.size();
      const std::string model = text.substr(begin, text.find('"', begin) - begin);
      ASSERT_TRUE(document["components"]["schemas"].contains(model)) << name << " " << model;
    }
  }
}

// The operations of a document's paths: "get /api/v1/pods" -> its id.
std::map<std::string, std::string> Operations(const Json& document) {
  std::map<std::string, std::string> ids;
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (operation.is_object()) ids[method + " " + path] = operation["operationId"];
    }
  }
  return ids;
}

TEST_F(OpenApiTest, VersionTwoHasEverythingInOneDocument) {
  std::map<std::string, std::string> operations;
  std::set<std::string> models;
  for (const auto& [name, url] : Index()) {
    const Json document = Json::parse(Get(url).body);
    operations.merge(Operations(document));
    const Json schemas = document["components"].value("schemas", Json::object());
    for (const auto& [model, schema] : schemas.items()) models.insert(model);
  }
  const Answer answer = Get("/openapi/v2");
  ASSERT_EQ(answer.status, 200);
  const Json document = Json::parse(answer.body);
  EXPECT_EQ(document["swagger"], "2.0");
  EXPECT_EQ(Operations(document), operations);
  std::set<std::string> definitions;
  for (const auto& [model, schema] : document["definitions"].items()) definitions.insert(model);
  EXPECT_EQ(definitions, models);
  EXPECT_EQ(answer.body.find("#/components/"), std::string::npos);
  EXPECT_EQ(Get("/openapi/v2", "*/*", std::string(answer.headers.Get("etag"))).status, 304);
}

// As kubectl's parser of version 2 takes it: k8s.io/apiextensions-apiserver
// pkg/controller/openapi/v2/conversion.go.
TEST_F(OpenApiTest, VersionTwoOfCustomKindsHasWhatItHasWordsFor) {
  const Json text = {{"type", "string"}};
  const Json properties = {
      {"port", {{"x-kubernetes-int-or-string", true}}},
      {"size", {{"type", "integer"}, {"anyOf", {{{"minimum", 1}}, {{"maximum", -1}}}}}},
      {"note", {{"type", "string"}, {"nullable", true}}},
      {"free",
       {{"type", "object"},
        {"x-kubernetes-preserve-unknown-fields", true},
        {"properties", {{"a", text}}}}}};
  const Json spec = {
      {"type", "object"}, {"required", {"note", "size"}}, {"properties", properties}};
  const Json schema = {{"type", "object"}, {"properties", {{"spec", spec}}}};
  const auto version = [](const char* name, bool storage, const Json& content) {
    return Json{{"name", name},
                {"served", true},
                {"storage", storage},
                {"schema", {{"openAPIV3Schema", content}}}};
  };
  const Json open = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const Json crd = {{"apiVersion", "apiextensions.k8s.io/v1"},
                    {"kind", "CustomResourceDefinition"},
                    {"metadata", {{"name", "things.x.example.com"}}},
                    {"spec",
                     {{"group", "x.example.com"},
                      {"scope", "Namespaced"},
                      {"names", {{"plural", "things"}, {"kind", "Thing"}}},
                      {"versions", {version("v1", true, schema), version("v2", false, open)}}}}};
  ASSERT_EQ(Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.dump()).status,
            201);
  Json definitions;
  for (int i = 0; i < 200 && !definitions.contains("com.example.x.v1.Thing"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    definitions = Json::parse(Get("/openapi/v2").body)["definitions"];
  }
  ASSERT_TRUE(definitions.contains("com.example.x.v1.Thing"));
  const Json thing = definitions["com.example.x.v1.Thing"];
  EXPECT_EQ(thing["properties"]["metadata"]["$ref"],
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  const Json want = {{"type", "object"},
                     {"required", {"size"}},
                     {"properties",
                      {{"port", {{"x-kubernetes-int-or-string", true}}},
                       {"size", {{"type", "integer"}}},
                       {"note", Json::object()},
                       {"free", {{"x-kubernetes-preserve-unknown-fields", true}}}}}};
  EXPECT_EQ(thing["properties"]["spec"], want);
  const Json whatever = definitions["com.example.x.v2.Thing"];
  EXPECT_EQ(whatever["type"], "object");
  EXPECT_FALSE(whatever.contains("properties"));
}

TEST_F(OpenApiTest, AHashIsForGood) {
  const std::string url = Index().at("apis/apps/v1");
  const Answer good = Get(url);
  EXPECT_EQ(good.headers.Get("cache-control"), "public, immutable");
  EXPECT_EQ(good.headers.Get("vary"), "Accept");
  EXPECT_EQ(good.headers.Get("expires").empty(), false);
  const std::string etag(good.headers.Get("etag"));
  EXPECT_EQ(Get(url, "*/*", etag).status, 304);
  const Answer old = Get("/openapi/v3/apis/apps/v1?hash=0");
  EXPECT_EQ(old.status, 301);
  EXPECT_EQ(old.headers.Get("location"), url);
  const Answer plain = Get("/openapi/v3/apis/apps/v1");
  EXPECT_EQ(plain.headers.Get("cache-control"), "no-cache, private");
  EXPECT_EQ(plain.body, good.body);
}

// The texts in field `number` of a message, in order.
std::vector<std::string> FieldsOf(std::string_view message, uint32_t number) {
  std::vector<std::string> out;
  api::WireReader reader(message);
  uint32_t field = 0;
  api::Wire wire = api::Wire::kVarint;
  uint64_t value = 0;
  std::string_view bytes;
  while (!reader.AtEnd()) {
    if (!reader.Next(field, wire, value, bytes)) return {"broken"};
    if (field == number) out.emplace_back(bytes);
  }
  return out;
}

// The names of what a message of named ones holds.
std::set<std::string> NamesIn(std::string_view message, uint32_t number) {
  std::set<std::string> names;
  for (const std::string& named : FieldsOf(message, number)) {
    for (const std::string& name : FieldsOf(named, 1)) names.insert(name);
  }
  return names;
}

std::set<std::string> KeysOf(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// Numbers as in OpenAPIv2.proto and OpenAPIv3.proto of gnostic-models.
TEST_F(OpenApiTest, ProtobufSaysWhatJsonSays) {
  constexpr std::string_view kType = "application/com.github.proto-openapi.spec.{}{}v1.0+protobuf";
  const auto get = [&](const char* target, const char* version, const char* sign) {
    const Answer answer = Get(target, fmt::format(fmt::runtime(kType), version, sign));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.Get("content-type"), fmt::format(fmt::runtime(kType), version, "."));
    return answer.body;
  };
  const Json v2 = Json::parse(Get("/openapi/v2").body);
  for (const char* sign : {"@", "."}) {
    const std::string body = get("/openapi/v2", "v2", sign);
    EXPECT_EQ(FieldsOf(body, 1), std::vector<std::string>{"2.0"});
    EXPECT_EQ(NamesIn(FieldsOf(body, 8).at(0), 2), KeysOf(v2["paths"]));
    EXPECT_EQ(NamesIn(FieldsOf(body, 9).at(0), 1), KeysOf(v2["definitions"]));
  }
  const Json v3 = Json::parse(Get("/openapi/v3/api/v1").body);
  const std::string body = get("/openapi/v3/api/v1", "v3", "@");
  EXPECT_EQ(FieldsOf(body, 1), std::vector<std::string>{"3.0.0"});
  EXPECT_EQ(NamesIn(FieldsOf(body, 4).at(0), 1), KeysOf(v3["paths"]));
  const std::string components = FieldsOf(body, 5).at(0);
  const std::string schemas = FieldsOf(components, 1).at(0);
  EXPECT_EQ(NamesIn(schemas, 1), KeysOf(v3["components"]["schemas"]));
}

TEST_F(OpenApiTest, OtherMediaAreRefused) {
  EXPECT_EQ(Get("/openapi/v3/apis/apps/v1", "text/html").status, 406);
  EXPECT_EQ(Get("/openapi/v3/apis/apps/v1", "text/html, application/*;q=0.5").status, 200);
}

}  // namespace
}  // namespace sextant::recorded
