// EventRecorder: tells people what happened to an object, as core/v1 Events.
//
//   EventRecorder events(client, {.component = "default-scheduler"});
//   events.Normal(pod, "Scheduled", "Successfully assigned default/web to worker");
//
// As client-go's record package does it (tools/record/event.go, events_cache.go): an event told
// again is counted (count, lastTimestamp) instead of made anew; from the tenth message of one
// reason within ten minutes they become one "(combined from similar events): ..."; a source may
// tell 25 events of an object at once, then one in five minutes. What the server refuses is
// dropped, what does not reach it is tried up to 12 times, ten seconds apart.
//
// Unlike there, objects do not wait for each other, and a name that is taken is given up for the
// next nanosecond's (clocks stand still in virtual time).
//
// Threads: the client's executor. Destroying it drops what was not yet sent.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "client/client.h"

namespace sextant::client {

// What an event is about: core/v1 ObjectReference.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string field_path;  // "spec.containers{web}"
};
ObjectReference ReferenceTo(const api::Object& object, std::string field_path = "");

struct EventSource {
  std::string component;  // "kubelet": source.component and reportingComponent
  std::string host;       // "worker": source.host and reportingInstance; may be empty
};

enum class EventKind { kNormal, kWarning };

class EventRecorder {
 public:
  static constexpr size_t kMaxQueued = 1000;  // more are dropped

  EventRecorder(Client& client, EventSource source);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Tell(const ObjectReference& about, EventKind kind, std::string_view reason,
            std::string_view message);
  void Normal(const api::Object& about, std::string_view reason, std::string_view message) {
    Tell(ReferenceTo(about), EventKind::kNormal, reason, message);
  }
  void Warning(const api::Object& about, std::string_view reason, std::string_view message) {
    Tell(ReferenceTo(about), EventKind::kWarning, reason, message);
  }

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sextant::client
