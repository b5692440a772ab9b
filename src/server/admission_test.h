// A pipeline with the default admission over a store in memory, on one ManualLoop: requests of any
// user, and what comes back. For this room's admission tests.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/check.h"
#include "base/executor.h"
#include "server/authenticator.h"
#include "server/pipeline.h"
#include "server/subresources.h"
#include "store/store.h"

namespace sextant::server {

// What is asked: `json` is completed with apiVersion and kind.
struct Ask {
  std::string verb;
  std::string group;
  std::string plural;
  std::string json;
  std::string name = "";  // of update; else that of the object
  std::string subresource = "";
  std::string ns = "default";
};

struct Answer {
  bool ok = false;
  std::string message;  // of the error
  Error error;
  api::Object object;
  std::vector<std::string> warnings;

  api::Value operator[](std::string_view key) const { return object[key]; }
};

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    auto opened = store::Store::Open({}, loop);
    CHECK(opened);
    store = *std::move(opened);
    pipeline = std::make_unique<Pipeline>(
        PipelineParts{*store, loop, loop, *authorizer, DefaultAdmission()});
    authenticator = std::make_unique<Authenticator>(tokens, *pipeline);
    subresources = std::make_unique<Subresources>(*pipeline, *authenticator);
    Make("", "namespaces", R"({"metadata":{"name":"default"}})");
    Make("", "serviceaccounts", R"({"metadata":{"name":"default"}})");
  }

  static User Admin() { return {"admin", "", {"system:masters", "system:authenticated"}, {}}; }
  static User Node(const std::string& name) {
    return {"system:node:" + name, "", {"system:nodes", "system:authenticated"}, {}};
  }

  // As somebody whom the authorizer has let in already, unless `authorize`.
  Answer Do(const User& user, const Ask& ask, bool authorize = false) {
    Operation op = OperationOf(user, ask);
    op.authorized = !authorize;
    std::optional<Result<Outcome>> outcome;
    Respond done = [&](Result<Outcome> result) { outcome = std::move(result); };
    if (!subresources->Execute(op, done)) pipeline->Execute(std::move(op), std::move(done));
    loop.RunReady();
    // The default account of a namespace may be about to come: admission waits a second for it.
    if (!outcome) loop.Advance(std::chrono::seconds(2));
    if (!outcome) {
      ADD_FAILURE() << "no answer to " << ask.verb << " " << ask.plural;
      return {};
    }
    Answer answer;
    answer.ok = outcome->has_value();
    if (answer.ok) {
      answer.object = (*outcome)->object;
      answer.warnings = (*outcome)->warnings;
    } else {
      answer.error = outcome->error();
      answer.message = answer.error.message;
    }
    return answer;
  }

  // As the administrator. Failures fail the test.
  api::Object Make(std::string group, std::string plural, std::string json,
                   std::string ns = "default") {
    const Answer answer = Do(Admin(), {"create", group, plural, json, "", "", std::move(ns)});
    EXPECT_TRUE(answer.ok) << plural << ": " << answer.message;
    return answer.object;
  }
  api::Object Get(std::string_view group, std::string_view plural, std::string_view name) {
    const api::Resource& resource = ResourceOf(group, plural);
    return pipeline->Get(resource.StorageName(), resource.namespaced ? "default" : "", name);
  }
  // With the merge patch applied to what is there.
  Answer Change(const User& user, std::string group, std::string plural, std::string name,
                std::string patch, std::string subresource = "") {
    Ask ask{"patch",          std::move(group), std::move(plural),
            std::move(patch), std::move(name),  std::move(subresource)};
    return Do(user, ask);
  }

  // A Pod of one container of this spec (without name and image).
  static std::string Pod(std::string_view name, std::string_view container = "",
                         std::string_view spec = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{{}"containers":[{{"name":"c","image":"i"{}}}]}}}})",
        name, spec, container);
  }

  static const api::Resource& ResourceOf(std::string_view group, std::string_view plural) {
    for (std::string_view version : {"v1", "v1beta1", "v1alpha2"}) {
      const auto* found = api::Registry::Builtin().Find({group, version}, plural);
      if (found != nullptr) return *found;
    }
    ADD_FAILURE() << "no resource " << plural;
    std::abort();
  }

  static Operation OperationOf(const User& user, const Ask& ask) {
    const api::Resource& resource = ResourceOf(ask.group, ask.plural);
    Operation op;
    op.user = user;
    op.registry = {std::shared_ptr<const api::Registry>(), &api::Registry::Builtin()};
    op.resource = &resource;
    if (!ask.subresource.empty()) op.subresource = resource.FindSubresource(ask.subresource);
    op.info.is_resource = true;
    op.info.verb = ask.verb;
    op.info.group = resource.group_version.group;
    op.info.version = resource.group_version.version;
    op.info.resource = resource.plural;
    op.info.subresource = ask.subresource;
    if (resource.namespaced) op.info.ns = ask.ns;
    op.info.name = ask.name;
    op.options.field_manager = "test";
    if (ask.verb == "patch") {
      op.patch = ask.json;
      return op;
    }
    if (ask.json.empty()) return op;
    auto parsed = api::ParseJson(ask.json);
    CHECK(parsed);
    api::Editor edit(*parsed);
    const api::Message* message = resource.message;
    edit.Root().Set("apiVersion", resource.group_version.ToString());
    edit.Root().Set("kind", resource.kind);
    const bool own_kind = op.subresource && op.subresource->message != resource.message;
    if (own_kind) {
      message = op.subresource->message;
      edit.Root().Set("apiVersion", op.subresource->kind.group.empty()
                                        ? std::string(op.subresource->kind.version)
                                        : fmt::format("{}/{}", op.subresource->kind.group,
                                                      op.subresource->kind.version));
      edit.Root().Set("kind", op.subresource->kind.kind);
    }
    auto decoded = api::DecodeTree(std::move(edit).Finish().root(), *message);
    EXPECT_TRUE(decoded) << ask.json << ": " << decoded.error().message;
    op.body = *decoded;
    return op;
  }

  ManualLoop loop;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Authorizer> authorizer = DefaultAuthorizer();
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<Subresources> subresources;

 private:
  class NoTokens : public TokenIssuer {
   public:
    std::string Issue(const TokenClaims&) const override { return "token"; }
    Result<TokenClaims> Verify(std::string_view, Time) const override {
      return Fail(Unauthorized());
    }
    std::string_view issuer() const override { return ""; }
    std::string Jwks() const override { return ""; }
    std::string Configuration(std::string_view) const override { return ""; }
  };

  NoTokens tokens;
  std::unique_ptr<Authenticator> authenticator;
};

}  // namespace sextant::server
