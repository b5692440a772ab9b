#include "client/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing.h"

namespace sextant::client {
namespace {

using namespace std::chrono_literals;
using testing::MakeObject;
using testing::ScriptedClient;

class EventsTest : public ::testing::Test {
 protected:
  // Answers the oldest write and gives it back.
  ScriptedClient::OpenWrite Answer(Result<api::Object> result = api::Object()) {
    EXPECT_FALSE(client.writes.empty());
    if (client.writes.empty()) return {};
    ScriptedClient::OpenWrite write = std::move(client.writes.front());
    client.writes.pop_front();
    write.done(std::move(result));
    loop.RunReady();
    return write;
  }

  ManualLoop loop;
  ScriptedClient client{loop};
  EventRecorder events{client, {.component = "kubelet", .host = "worker"}};
  api::Object pod = MakeObject("web", "7");
};

TEST_F(EventsTest, FirstIsCreated) {
  events.Tell(ReferenceTo(pod, "spec.containers{web}"), EventKind::kWarning, "BackOff", "Back-off");
  const auto write = Answer();
  EXPECT_EQ(write.verb, "create");
  const api::Object& event = write.object;
  EXPECT_EQ(event.name(), fmt::format("web.{:x}", loop.Now().time_since_epoch().count()));
  EXPECT_EQ(event.ns(), "default");
  EXPECT_EQ(event["involvedObject"]["name"].AsString(), "web");
  EXPECT_EQ(event["involvedObject"]["uid"].AsString(), "uid-web");
  EXPECT_EQ(event["involvedObject"]["resourceVersion"].AsString(), "7");
  EXPECT_EQ(event["involvedObject"]["fieldPath"].AsString(), "spec.containers{web}");
  EXPECT_EQ(event["type"].AsString(), "Warning");
  EXPECT_EQ(event["reason"].AsString(), "BackOff");
  EXPECT_EQ(event["count"].AsInt(), 1);
  EXPECT_EQ(event["source"]["component"].AsString(), "kubelet");
  EXPECT_EQ(event["source"]["host"].AsString(), "worker");
  EXPECT_EQ(event["reportingComponent"].AsString(), "kubelet");
  EXPECT_EQ(event["reportingInstance"].AsString(), "worker");
  EXPECT_EQ(event["firstTimestamp"].AsString(), "2026-01-01T00:00:00Z");
}

TEST_F(EventsTest, SameAgainIsCounted) {
  events.Normal(pod, "Pulled", "image");
  const std::string name(Answer().object.name());
  loop.Advance(10s);
  events.Normal(pod, "Pulled", "image");
  const auto write = Answer();
  EXPECT_EQ(write.verb, "patch");
  EXPECT_EQ(write.patch_type, PatchType::kStrategic);
  EXPECT_EQ(write.name, (ObjectName{"default", name}));
  EXPECT_EQ(write.object["count"].AsInt(), 2);
  EXPECT_EQ(write.object["lastTimestamp"].AsString(), "2026-01-01T00:00:10Z");
}

TEST_F(EventsTest, WhatComesWhileOneIsSentIsOneUpdate) {
  for (int i = 0; i < 5; ++i) events.Normal(pod, "Pulled", "image");
  EXPECT_EQ(client.writes.size(), 1u);
  Answer();
  const auto write = Answer();
  EXPECT_EQ(write.verb, "patch");
  EXPECT_EQ(write.object["count"].AsInt(), 5);
  EXPECT_TRUE(client.writes.empty());
}

TEST_F(EventsTest, GoneOnTheServerIsMadeAnew) {
  events.Normal(pod, "Pulled", "image");
  Answer();
  events.Normal(pod, "Pulled", "image");
  EXPECT_EQ(Answer(Fail(NotFound({"", "events"}, "web.1"))).verb, "patch");
  const auto write = Answer();
  EXPECT_EQ(write.verb, "create");
  EXPECT_EQ(write.object["count"].AsInt(), 2);
}

TEST_F(EventsTest, TakenNameIsGivenUp) {
  events.Normal(pod, "Pulled", "image");
  const std::string taken(Answer(Fail(AlreadyExists({"", "events"}, "web.1"))).object.name());
  const auto write = Answer();
  EXPECT_NE(write.object.name(), taken);
  events.Normal(pod, "Pulled", "image");
  EXPECT_EQ(Answer().name.name, write.object.name());
}

TEST_F(EventsTest, ManyAlikeAreCombined) {
  std::vector<ScriptedClient::OpenWrite> writes;
  for (int i = 0; i < 12; ++i) {
    events.Normal(pod, "Probe", fmt::format("failed {}", i));
    writes.push_back(Answer());
  }
  EXPECT_EQ(writes[8].object["message"].AsString(), "failed 8");
  EXPECT_EQ(writes[9].verb, "create");
  EXPECT_EQ(writes[9].object["message"].AsString(), "(combined from similar events): failed 9");
  EXPECT_EQ(writes[10].verb, "patch");
  EXPECT_EQ(writes[10].object["message"].AsString(), "(combined from similar events): failed 10");
  EXPECT_EQ(writes[11].object["count"].AsInt(), 3);

  loop.Advance(601s);
  events.Normal(pod, "Probe", "failed 12");
  EXPECT_EQ(Answer().object["message"].AsString(), "failed 12") << "after ten quiet minutes";
}

TEST_F(EventsTest, SpamIsDropped) {
  for (int i = 0; i < 30; ++i) {
    events.Normal(pod, "Probe", "failed");
    if (!client.writes.empty()) Answer();
  }
  loop.Advance(299s);
  events.Normal(pod, "Probe", "failed");
  EXPECT_TRUE(client.writes.empty());
  loop.Advance(1s);
  events.Normal(pod, "Probe", "failed");
  EXPECT_EQ(Answer().object["count"].AsInt(), 32) << "dropped ones are counted";
  events.Warning(pod, "Other", "type has its own budget");
  Answer();
}

TEST_F(EventsTest, UnreachableServerIsTriedAgainRefusalIsNot) {
  events.Normal(pod, "Pulled", "image");
  const Error down{.code = kTransport, .message = "down"};
  for (int i = 1; i < 12; ++i) {
    Answer(Fail(down));
    EXPECT_TRUE(client.writes.empty());
    loop.Advance(10s);
    ASSERT_EQ(client.writes.size(), 1u) << i;
  }
  Answer(Fail(down));
  loop.Advance(60s);
  EXPECT_TRUE(client.writes.empty()) << "twelve times, no more";

  events.Normal(pod, "Started", "web");
  Answer(Fail(Forbidden({"", "events"}, "web.1", "no")));
  loop.Advance(60s);
  EXPECT_TRUE(client.writes.empty());
}

TEST_F(EventsTest, QueueIsBounded) {
  for (size_t i = 0; i < EventRecorder::kMaxQueued + 100; ++i)
    events.Normal(MakeObject(std::to_string(i), "1"), "Pulled", "image");
  EXPECT_EQ(client.writes.size(), EventRecorder::kMaxQueued);
  Answer();
  events.Normal(pod, "Pulled", "image");
  EXPECT_EQ(client.writes.size(), EventRecorder::kMaxQueued);
}

TEST_F(EventsTest, NamesThatEventsCannotHave) {
  events.Normal(MakeObject("system:node", "1"), "Made", "x");
  EXPECT_THAT(std::string(Answer().object.name()), ::testing::StartsWith("event."));
}

}  // namespace
}  // namespace sextant::client
