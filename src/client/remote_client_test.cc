#include "client/remote_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "api/json.h"
#include "base/file.h"
#include "client/testing.h"
#include "net/test_util.h"

namespace sextant::client {
namespace {

using net::Awaited;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeObject;

constexpr Gvr kWeb{"apps", "v1", "deployments"};

// A server that says what the test wants and remembers what it was asked.
class RemoteClientTest : public net::NetTest {
 protected:
  struct Answer {
    int status = 200;
    std::string body = "{}";
    net::Headers headers;
  };

  void Start(RemoteOptions options = {}) {
    Serve([this](net::Request request, std::shared_ptr<net::ResponseWriter> writer) {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
      if (request.query.find("watch=true") != std::string::npos && answer_.status == 200) {
        writer->StartStream(200, {{"content-type", "application/json"}});
        watchers_.push_back(writer);
        if (on_watch_) on_watch_(writer);
        return;
      }
      writer->SendResponse(answer_.status, answer_.headers, answer_.body);
    });
    options.server = Options().base_url;
    options.tls.ca_pem = net::Pki().ca.ToPem();
    client_ = std::make_unique<RemoteClient>(io_, loop_, std::move(options));
  }
  void TearDown() override {
    client_.reset();
    watchers_.clear();
  }
  void Say(int status, std::string body, net::Headers headers = {}) {
    const std::lock_guard lock(mutex_);
    answer_ = {status, std::move(body), std::move(headers)};
  }
  net::Request Asked() {
    const std::lock_guard lock(mutex_);
    return asked_.empty() ? net::Request{} : asked_.back();
  }
  Result<api::Object> GetPod(ObjectName name = {"default", "web"}) {
    Awaited<Result<api::Object>> got;
    client_->Get(kPods, std::move(name), got.Setter());
    return got.Get();
  }

  std::mutex mutex_;
  Answer answer_;                    // guarded by mutex_
  std::vector<net::Request> asked_;  // guarded by mutex_
  std::vector<std::shared_ptr<net::ResponseWriter>> watchers_;
  std::function<void(std::shared_ptr<net::ResponseWriter>)> on_watch_;
  std::unique_ptr<RemoteClient> client_;
};

TEST(PathOf, Paths) {
  EXPECT_EQ(PathOf(kPods, "", ""), "/api/v1/pods");
  EXPECT_EQ(PathOf(kPods, "a", "web", "log"), "/api/v1/namespaces/a/pods/web/log");
  EXPECT_EQ(PathOf(kNodes, "", "n1", "status"), "/api/v1/nodes/n1/status");
  EXPECT_EQ(PathOf(kWeb, "a", ""), "/apis/apps/v1/namespaces/a/deployments");
  EXPECT_EQ(PathOf(kNodes, "", "a/../b?"), "/api/v1/nodes/a%2F..%2Fb%3F");
}

TEST_F(RemoteClientTest, Get) {
  Start({.token = "secret"});
  Say(200, R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}})");
  const Result<api::Object> pod = GetPod();
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->name(), "web");
  EXPECT_EQ(Asked().method, "GET");
  EXPECT_EQ(Asked().target, "/api/v1/namespaces/default/pods/web");
  EXPECT_EQ(Asked().headers.Get("authorization"), "Bearer secret");
  EXPECT_EQ(Asked().headers.Get("user-agent"), "sextant");
}

TEST_F(RemoteClientTest, TokenFileIsRead) {
  const TempDir dir = *TempDir::Make();
  std::ofstream(dir.path() + "/token") << "from-file\n";
  Start({.token = "fallback", .token_file = dir.path() + "/token"});
  ASSERT_TRUE(GetPod());
  EXPECT_EQ(Asked().headers.Get("authorization"), "Bearer from-file");
}

TEST_F(RemoteClientTest, MissingTokenFileFallsBack) {
  Start({.token = "fallback", .token_file = "/nowhere/token"});
  ASSERT_TRUE(GetPod());
  EXPECT_EQ(Asked().headers.Get("authorization"), "Bearer fallback");
}

TEST_F(RemoteClientTest, ErrorsAreTheServersStatus) {
  Start();
  Say(404, R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":404,
               "message":"pods \"web\" not found","reason":"NotFound",
               "details":{"name":"web","kind":"pods","retryAfterSeconds":3,
                          "causes":[{"reason":"R","message":"M","field":"F"}]}})");
  const Result<api::Object> pod = GetPod();
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error(), (Error{.code = 404,
                                .reason = "NotFound",
                                .message = "pods \"web\" not found",
                                .name = "web",
                                .kind = "pods",
                                .causes = {{"R", "M", "F"}},
                                .retry_after_s = 3}));
}

TEST_F(RemoteClientTest, OtherAnswersGetClientGosWords) {
  Start();
  Say(404, "404 page not found\n");
  EXPECT_EQ(GetPod().error().message, "the server could not find the requested resource");
  Say(503, "busy", {{"retry-after", "7"}});
  EXPECT_EQ(GetPod().error().retry_after_s, 7);
  EXPECT_EQ(GetPod().error().reason, "ServiceUnavailable");
  Say(500, "oh no");
  EXPECT_EQ(GetPod().error().message,
            "an error on the server (\"oh no\") has prevented the request from succeeding");
  Say(418, "tea");
  EXPECT_EQ(GetPod().error().code, 418);
  Say(200, "<html>");
  EXPECT_EQ(GetPod().error().code, kTransport);
  Say(200, "[]");
  EXPECT_THAT(GetPod().error().message, HasSubstr("no object"));
}

TEST_F(RemoteClientTest, NoServer) {
  Start();
  server_->Stop(Duration{0});
  const Result<api::Object> pod = GetPod();
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, kTransport);
  EXPECT_EQ(pod.error().reason, "");
}

TEST_F(RemoteClientTest, ListItemsGetTheirKind) {
  Start();
  Say(200, R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c"},
               "items":[{"metadata":{"name":"a"}},{"kind":"Odd","metadata":{"name":"b"}}]})");
  Awaited<Result<struct List>> got;
  client_->List(kPods, {.ns = "default", .label_selector = "app in (a, b)", .limit = 2},
                got.Setter());
  const Result<struct List> list = got.Get();
  ASSERT_TRUE(list);
  EXPECT_EQ(Asked().target,
            "/api/v1/namespaces/default/pods?labelSelector=app%20in%20%28a%2C%20b%29&limit=2");
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->continue_token, "c");
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(api::ToJson(list->items[0].root()),
            R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}})");
  EXPECT_EQ(list->items[1].kind(), "Odd");
}

TEST_F(RemoteClientTest, Writes) {
  Start();
  const api::Object pod = MakeObject("web", "1");
  struct Case {
    std::function<void(Callback<api::Object>)> call;
    std::string method, target, content_type;
  };
  const std::vector<Case> cases = {
      {[&](auto done) {
         client_->Create(kPods, {}, pod, {.field_manager = "me", .dry_run = true}, std::move(done));
       },
       "POST", "/api/v1/namespaces/default/pods?fieldManager=me&dryRun=All", "application/json"},
      {[&](auto done) {
         client_->Create(kPods, {"default", "web"}, pod, {.subresource = "binding"},
                         std::move(done));
       },
       "POST", "/api/v1/namespaces/default/pods/web/binding", "application/json"},
      {[&](auto done) {
         client_->Update(kPods, {}, pod, {.subresource = "status"}, std::move(done));
       },
       "PUT", "/api/v1/namespaces/default/pods/web/status", "application/json"},
      {[&](auto done) {
         client_->Patch(kPods, {"default", "web"}, PatchType::kStrategic, pod, {}, std::move(done));
       },
       "PATCH", "/api/v1/namespaces/default/pods/web", "application/strategic-merge-patch+json"},
      {[&](auto done) {
         client_->Patch(kPods, {"default", "web"}, PatchType::kApply, pod,
                        {.field_manager = "me", .force = true}, std::move(done));
       },
       "PATCH", "/api/v1/namespaces/default/pods/web?fieldManager=me&force=true",
       "application/apply-patch+yaml"},
      {[&](auto done) { client_->Delete(kNodes, {"", "n1"}, {}, std::move(done)); }, "DELETE",
       "/api/v1/nodes/n1", "application/json"},
      {[&](auto done) {
         client_->DeleteCollection(kPods, {.ns = "a", .label_selector = "x=y"}, {},
                                   std::move(done));
       },
       "DELETE", "/api/v1/namespaces/a/pods?labelSelector=x%3Dy", "application/json"},
  };
  for (const Case& each : cases) {
    Awaited<Result<api::Object>> got;
    each.call(got.Setter());
    ASSERT_TRUE(got.Get()) << each.target;
    EXPECT_EQ(Asked().method, each.method);
    EXPECT_EQ(Asked().target, each.target);
    EXPECT_EQ(Asked().headers.Get("content-type"), each.content_type);
  }
}

TEST_F(RemoteClientTest, DeleteSaysHow) {
  Start();
  Awaited<Result<api::Object>> got;
  client_->Delete(
      kPods, {"a", "web"},
      {.grace_period_s = 0, .propagation = "Foreground", .uid = "u", .resource_version = "5"},
      got.Setter());
  ASSERT_TRUE(got.Get());
  EXPECT_EQ(
      Asked().body,
      R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,)"
      R"("propagationPolicy":"Foreground","preconditions":{"uid":"u","resourceVersion":"5"}})");
}

TEST_F(RemoteClientTest, Texts) {
  Start();
  Say(200, "hello\n");
  Awaited<Result<std::string>> log, raw;
  client_->PodLog({"a", "web"}, "main", 100, log.Setter());
  EXPECT_EQ(log.Get().value(), "hello\n");
  EXPECT_EQ(Asked().target, "/api/v1/namespaces/a/pods/web/log?container=main&limitBytes=100");
  client_->GetRaw("/readyz", raw.Setter());
  EXPECT_EQ(raw.Get().value(), "hello\n");
}

// ---- watching ----

struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> events;
  std::optional<Status> end;

  WatchCallbacks Callbacks() {
    return {[this](std::vector<WatchEvent> batch) {
              const std::lock_guard lock(mutex);
              for (const WatchEvent& e : batch)
                events.push_back(fmt::format("{}{}", static_cast<int>(e.type), e.object.name()));
              changed.notify_all();
            },
            [this](Status status) {
              const std::lock_guard lock(mutex);
              end = std::move(status);
              changed.notify_all();
            }};
  }
  bool Wait(std::function<bool()> until) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, net::kPatience, until);
  }
};

TEST_F(RemoteClientTest, WatchEventsInAnyPieces) {
  Start();
  on_watch_ = [](std::shared_ptr<net::ResponseWriter> writer) {
    const std::string text = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                             "\n"
                             R"({"type":"MODIFIED","object":{"metadata":{"name":"b"}}})"
                             "\n\n"
                             R"({"type":"DELETED","object":{"metadata":{"name":"c"}}})"
                             "\n"
                             R"({"type":"BOOKMARK","object":{"metadata":{"name":""}}})"
                             "\n";
    for (size_t i = 0; i < text.size(); i += 7) writer->Write(net::MakeBuffer(text.substr(i, 7)));
    writer->Finish();
  };
  Heard heard;
  auto watch = client_->Watch(
      kPods, {.field_selector = "spec.nodeName=n1", .resource_version = "5"}, heard.Callbacks());
  ASSERT_TRUE(heard.Wait([&] { return heard.end.has_value(); }));
  EXPECT_THAT(heard.events, ElementsAre("0a", "1b", "2c", "3"));
  EXPECT_TRUE(heard.end->has_value()) << heard.end->error().message;
  EXPECT_EQ(Asked().target,
            "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1&resourceVersion=5"
            "&allowWatchBookmarks=true");
  loop_.Post([&] { watch.reset(); });
  loop_.Stop();
}

TEST_F(RemoteClientTest, StreamingListIsAskedFor) {
  Start();
  Heard heard;
  on_watch_ = [](auto writer) { writer->Finish(); };
  auto watch = client_->Watch(kPods, {.send_initial_events = true}, heard.Callbacks());
  ASSERT_TRUE(heard.Wait([&] { return heard.end.has_value(); }));
  EXPECT_EQ(Asked().query,
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
            "&resourceVersionMatch=NotOlderThan");
}

// Megabytes without a line end, as fast as they are taken.
void SendEndlessly(std::shared_ptr<net::ResponseWriter> writer, int megabytes) {
  if (megabytes == 0 || writer->closed()) return writer->Finish();
  writer->Write(net::MakeBuffer(std::string(1 << 20, 'x')));
  writer->OnWritable([writer, megabytes] { SendEndlessly(writer, megabytes - 1); });
}

TEST_F(RemoteClientTest, WatchErrors) {
  struct Case {
    const char* what;
    std::function<void(std::shared_ptr<net::ResponseWriter>)> answer;
    int code;
  };
  const Case cases[] = {
      {"error event",
       [](auto writer) {
         writer->Write(net::MakeBuffer(
             R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
             "\n"));
       },
       410},
      {"broken off", [](auto writer) { writer->Abort(); }, kTransport},
      {"no JSON", [](auto writer) { writer->Write(net::MakeBuffer("<html>\n")); }, kTransport},
      {"unknown type", [](auto writer) { writer->Write(net::MakeBuffer("{\"type\":\"NEW\"}\n")); },
       kTransport},
      {"endless line", [](auto writer) { SendEndlessly(writer, 20); }, kTransport},
  };
  Start();
  for (const Case& each : cases) {
    on_watch_ = each.answer;
    Heard heard;
    auto watch = client_->Watch(kPods, {}, heard.Callbacks());
    ASSERT_TRUE(heard.Wait([&] { return heard.end.has_value(); })) << each.what;
    ASSERT_FALSE(heard.end->has_value()) << each.what;
    EXPECT_EQ(heard.end->error().code, each.code) << each.what;
    Awaited<bool> dropped;
    loop_.Post([&, set = dropped.Setter()] {
      watch.reset();
      set(true);
    });
    dropped.Get();
  }
}

TEST_F(RemoteClientTest, RefusedWatch) {
  Start();
  Say(403, R"({"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden","message":"no"})");
  Heard heard;
  auto watch = client_->Watch(kPods, {}, heard.Callbacks());
  ASSERT_TRUE(heard.Wait([&] { return heard.end.has_value(); }));
  EXPECT_EQ(heard.end->error().code, 403);
  EXPECT_EQ(heard.end->error().message, "no");
}

TEST_F(RemoteClientTest, DroppedWatchIsSilentAndClosed) {
  Start();
  Heard heard;
  Awaited<bool> closed, opened;
  on_watch_ = [set = opened.Setter(), gone = closed.Setter()](auto writer) mutable {
    writer->OnClosed([gone]() mutable { gone(true); });
    set(true);
  };
  auto watch = client_->Watch(kPods, {}, heard.Callbacks());
  opened.Get();
  Awaited<bool> dropped;
  loop_.Post([&, set = dropped.Setter()]() mutable {
    watch.reset();
    set(true);
  });
  dropped.Get();
  EXPECT_TRUE(closed.Get()) << "the server hears of it";
  EXPECT_FALSE(heard.end.has_value());
}

}  // namespace
}  // namespace sextant::client
