#include "client/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing.h"

namespace sextant::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeObject;
using testing::ScriptedClient;

WatchEvent Added(std::string_view name, std::string_view rv, std::string_view node = "") {
  return {WatchEventType::kAdded, MakeObject(name, rv, node)};
}
WatchEvent Modified(std::string_view name, std::string_view rv, std::string_view node = "") {
  return {WatchEventType::kModified, MakeObject(name, rv, node)};
}
WatchEvent Deleted(std::string_view name, std::string_view rv) {
  return {WatchEventType::kDeleted, MakeObject(name, rv)};
}
WatchEvent Bookmark(std::string_view rv, bool end_of_list = false) {
  api::Editor edit;
  edit["metadata"].Set("resourceVersion", rv);
  if (end_of_list) edit["metadata"]["annotations"].Set("k8s.io/initial-events-end", "true");
  return {WatchEventType::kBookmark, std::move(edit).Finish()};
}

class InformerTest : public ::testing::Test {
 protected:
  void Make(bool streaming = true) {
    informer = std::make_unique<Informer>(
        client, InformerOptions{.gvr = kPods, .ns = "default", .streaming = streaming});
    informer->AddIndex("node", NodeNames);
    subscription = informer->Subscribe([this](const Change& c) { heard.push_back(Text(c)); });
    loop.RunReady();
  }
  // "+a@1", "~a@1>2", "-a@2"
  static std::string Text(const Change& c) {
    if (c.added()) return fmt::format("+{}@{}", c.after.name(), c.after.resource_version());
    if (c.deleted()) return fmt::format("-{}@{}", c.before.name(), c.before.resource_version());
    return fmt::format("~{}@{}>{}", c.after.name(), c.before.resource_version(),
                       c.after.resource_version());
  }
  ScriptedClient::OpenWatch& Watch() { return *client.watches.back(); }
  void Sync() {
    Watch().Send({Added("a", "1", "n1"), Added("b", "2", "n2"), Bookmark("5", true)});
    loop.RunReady();
    heard.clear();
  }
  void AnswerList(Result<struct List> list) {
    auto done = std::move(client.lists.front().done);
    client.lists.pop_front();
    done(std::move(list));
    loop.RunReady();
  }

  ManualLoop loop;
  ScriptedClient client{loop};
  std::unique_ptr<Informer> informer;
  std::unique_ptr<Subscription> subscription;
  std::vector<std::string> heard;
};

TEST_F(InformerTest, StreamingListIsOneSync) {
  Make();
  ASSERT_EQ(client.watches.size(), 1u);
  EXPECT_TRUE(Watch().options.send_initial_events);
  EXPECT_EQ(Watch().options.ns, "default");
  Watch().Send({Added("a", "1"), Added("b", "2")});
  EXPECT_THAT(heard, IsEmpty()) << "the list is not complete";
  EXPECT_FALSE(informer->synced());
  bool told = false;
  informer->OnSynced([&] { told = true; });
  Watch().Send({Modified("a", "3"), Deleted("b", "4"), Bookmark("5", true)});
  EXPECT_THAT(heard, ElementsAre("+a@3"));
  EXPECT_TRUE(informer->synced());
  EXPECT_TRUE(told);
  EXPECT_EQ(informer->resource_version(), "5");
}

TEST_F(InformerTest, ChangesAndIndexes) {
  Make();
  Sync();
  Watch().Send({Modified("a", "6", "n2"), Deleted("b", "7"), Added("c", "8", "n2")});
  EXPECT_THAT(heard, ElementsAre("~a@1>6", "-b@2", "+c@8"));
  EXPECT_THAT(informer->ByIndex("node", "n1"), IsEmpty());
  const auto on_n2 = informer->ByIndex("node", "n2");
  ASSERT_EQ(on_n2.size(), 2u);
  EXPECT_EQ(on_n2[0].name(), "a");
  EXPECT_EQ(on_n2[1].name(), "c");
  EXPECT_EQ(informer->List("default").size(), 2u);
  EXPECT_THAT(informer->List("other"), IsEmpty());
  EXPECT_FALSE(informer->Get({"default", "b"}));
}

TEST_F(InformerTest, ResumesFromTheLastRevision) {
  Make();
  Sync();
  Watch().Send({Bookmark("9")});
  Watch().End({});
  loop.RunReady();
  ASSERT_EQ(client.watches.size(), 2u);
  EXPECT_TRUE(client.watches[0]->closed);
  EXPECT_EQ(Watch().options.resource_version, "9");
  EXPECT_FALSE(Watch().options.send_initial_events);
  Watch().Send({Modified("a", "10")});
  EXPECT_THAT(heard, ElementsAre("~a@1>10"));
  client.watches[0]->Send({Deleted("a", "11")});
  EXPECT_EQ(heard.size(), 1u) << "an old watch has no say";
}

TEST_F(InformerTest, ExpiredListsAgainAndTellsTheDifference) {
  Make();
  Sync();
  Watch().End(Fail(Expired("too old resource version")));
  loop.RunReady();
  ASSERT_EQ(client.watches.size(), 2u);
  EXPECT_TRUE(Watch().options.send_initial_events);
  EXPECT_EQ(informer->size(), 2u) << "the old copy serves until the new one is complete";
  Watch().Send({Added("b", "2"), Added("c", "20"), Bookmark("21", true)});
  EXPECT_THAT(heard, ElementsAre("-a@1", "+c@20")) << "b is as it was";
}

TEST_F(InformerTest, BackOffGrowsAndIsReset) {
  Make();
  Sync();
  const Error broken{.code = kTransport, .message = "connection refused"};
  Duration wait = 800ms;
  for (int i = 0; i < 8; ++i) {
    const size_t before = client.watches.size();
    Watch().End(Fail(broken));
    loop.Advance(wait - 1ns);
    EXPECT_EQ(client.watches.size(), before);
    EXPECT_EQ(informer->last_error()->message, "connection refused");
    loop.Advance(1ns);
    EXPECT_EQ(client.watches.size(), before + 1);
    wait = std::min<Duration>(wait * 2, 30s);
  }
  Watch().Send({Modified("a", "30")});
  EXPECT_FALSE(informer->last_error().has_value());
  Watch().End(Fail(broken));
  loop.Advance(800ms);
  EXPECT_EQ(Watch().options.resource_version, "30");
}

TEST_F(InformerTest, WatchThatEndsAtOnceIsNotHammered) {
  Make();
  Sync();
  Watch().End({});
  loop.RunReady();
  Watch().End({});
  loop.RunReady();
  EXPECT_EQ(client.watches.size(), 2u);
  loop.Advance(800ms);
  EXPECT_EQ(client.watches.size(), 3u);
}

TEST_F(InformerTest, OldServersGetPages) {
  Make();
  Watch().End(Fail(BadRequest("sendInitialEvents is forbidden")));
  loop.RunReady();
  ASSERT_EQ(client.lists.size(), 1u);
  EXPECT_EQ(client.lists[0].options.resource_version, "0");
  AnswerList({{{MakeObject("a", "1")}, "7", "more"}});
  ASSERT_EQ(client.lists.size(), 1u);
  EXPECT_EQ(client.lists[0].options.continue_token, "more");
  EXPECT_EQ(client.lists[0].options.resource_version, "");
  EXPECT_FALSE(informer->synced());
  AnswerList({{{MakeObject("b", "2")}, "7", ""}});
  EXPECT_THAT(heard, ElementsAre("+a@1", "+b@2"));
  EXPECT_EQ(Watch().options.resource_version, "7");
  EXPECT_FALSE(Watch().options.send_initial_events);

  Watch().End(Fail(Expired("gone")));
  loop.RunReady();
  ASSERT_EQ(client.lists.size(), 1u);
  EXPECT_EQ(client.lists[0].options.resource_version, "") << "not an old state again";
  AnswerList(Fail(Error{.code = kTransport, .message = "down"}));
  loop.Advance(800ms);
  EXPECT_EQ(client.lists.size(), 1u);
}

TEST_F(InformerTest, LateSubscribersHearWhatIsThere) {
  Make();
  Sync();
  std::vector<std::string> late;
  auto sub = informer->Subscribe([&](const Change& c) { late.push_back(Text(c)); });
  Watch().Send({Modified("a", "6")});
  EXPECT_THAT(late, IsEmpty()) << "never inline";
  loop.RunReady();
  EXPECT_THAT(late, ElementsAre("+a@6", "+b@2"));
  sub.reset();
  Watch().Send({Deleted("a", "7")});
  EXPECT_EQ(late.size(), 2u);
}

TEST_F(InformerTest, HandlersMayUnsubscribe) {
  Make();
  Sync();
  std::unique_ptr<Subscription> own;
  int calls = 0;
  own = informer->Subscribe([&](const Change&) {
    ++calls;
    own.reset();
    subscription.reset();
  });
  loop.RunReady();
  EXPECT_EQ(calls, 1) << "two objects are there, the first call was the last";
  Watch().Send({Modified("a", "6")});
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(InformerTest, NothingAfterTheEnd) {
  Make();
  Sync();
  auto watch = client.watches.back();
  watch->End(Fail(Error{.code = kTransport, .message = "down"}));
  informer.reset();
  loop.Advance(1min);
  EXPECT_EQ(client.watches.size(), 1u);
  EXPECT_TRUE(watch->closed);
  subscription.reset();
}

TEST_F(InformerTest, SharedByKey) {
  SharedInformers shared(client);
  Informer& a = shared.For({.gvr = kPods});
  EXPECT_EQ(&a, &shared.For({.gvr = kPods}));
  EXPECT_NE(&a, &shared.For({.gvr = kPods, .field_selector = "spec.nodeName=n1"}));
  EXPECT_NE(&a, &shared.For({.gvr = kNodes}));
  EXPECT_FALSE(shared.synced());
  for (auto& watch : client.watches) watch->Send({Bookmark("1", true)});
  EXPECT_TRUE(shared.synced());
}

}  // namespace
}  // namespace sextant::client
