#include "client/events.h"

#include <algorithm>
#include <list>
#include <set>
#include <unordered_map>

#include "api/names.h"
#include "base/check.h"
#include "base/log.h"

namespace sextant::client {
namespace {

using namespace std::chrono_literals;

// client-go tools/record/events_cache.go and event.go.
constexpr size_t kCacheEntries = 4096;
constexpr size_t kAggregateFrom = 10;  // different messages of one reason
constexpr Duration kAggregateInterval = 600s;
constexpr int kSpamBurst = 25;
constexpr Duration kSpamRefill = 300s;  // for one more
constexpr int kMaxTries = 12;
constexpr Duration kRetryDelay = 10s;
constexpr int kMaxNames = 8;

// What was used last, up to kCacheEntries.
template <typename V>
class Lru {
 public:
  V& operator[](const std::string& key) {
    if (const auto found = places_.find(key); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->second;
    }
    if (entries_.size() == kCacheEntries) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, V{});
    places_[key] = entries_.begin();
    return entries_.front().second;
  }

 private:
  std::list<std::pair<std::string, V>> entries_;
  std::unordered_map<std::string, typename std::list<std::pair<std::string, V>>::iterator> places_;
};

struct EventData {
  ObjectReference about;
  EventKind kind = EventKind::kNormal;
  std::string reason;
  std::string message;
  Time first{};
  Time last{};
  int64_t count = 1;
};

// One Event object on the server and what is still to be told of it.
struct Series {
  std::string name;
  Time first{};
  int64_t count = 0;
  std::optional<EventData> next;  // not yet sent: the newest state says all
  bool in_flight = false;
};

struct Aggregate {
  std::set<std::string> messages;  // at most kAggregateFrom
  Time last{};
};

// A bucket of time: every event costs kSpamRefill.
struct SpamBucket {
  Duration left = kSpamBurst * kSpamRefill;
  std::optional<Duration> at;
};

std::string_view TypeOf(EventKind kind) {
  return kind == EventKind::kNormal ? "Normal" : "Warning";
}

std::string_view NamespaceOf(const ObjectReference& about) {
  return about.ns.empty() ? std::string_view("default") : std::string_view(about.ns);
}

}  // namespace

ObjectReference ReferenceTo(const api::Object& object, std::string field_path) {
  return {std::string(object.api_version()),
          std::string(object.kind()),
          std::string(object.ns()),
          std::string(object.name()),
          std::string(object.uid()),
          std::string(object.resource_version()),
          std::move(field_path)};
}

class EventRecorder::Impl : public std::enable_shared_from_this<EventRecorder::Impl> {
 public:
  Impl(Client& client, EventSource source) : client_(client), source_(std::move(source)) {}

  void Tell(EventData event) {
    DCHECK(client_.executor().OnLoop());
    event.first = event.last = client_.executor().clock().Now();
    const std::string key = Aggregated(event);
    std::shared_ptr<Series>& series = series_[key];
    if (!series) {
      series = std::make_shared<Series>();
      series->name = NextName(event.about);
      series->first = event.first;
    }
    event.first = series->first;
    event.count = ++series->count;
    if (IsSpam(event)) return;
    if (!series->next && !series->in_flight && queued_ >= kMaxQueued) {
      if (!std::exchange(dropping_, true))
        log::Warning("client", "{} events wait for the server, new ones are dropped", queued_);
      return;
    }
    dropping_ = false;
    if (!series->next && !series->in_flight) ++queued_;
    series->next = std::move(event);
    if (!series->in_flight) Send(series);
  }

  void Stop() { stopped_ = true; }

 private:
  using SeriesPtr = std::shared_ptr<Series>;

  std::string KeyOf(const EventData& event, bool whole) const {
    const ObjectReference& o = event.about;
    std::string key = fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", o.kind, o.ns, o.name, o.uid,
                                  o.api_version, TypeOf(event.kind));
    if (whole) key += fmt::format("\x1f{}\x1f{}\x1f{}", o.field_path, event.reason, event.message);
    return key;
  }

  // The key of the series that `event` belongs to; turns it into a combined one if it is one of
  // many alike.
  std::string Aggregated(EventData& event) {
    const std::string whole = KeyOf(event, true);
    const std::string key = KeyOf(event, false) + "\x1f" + event.reason;
    Aggregate& aggregate = aggregates_[key];
    if (event.last - aggregate.last > kAggregateInterval) aggregate.messages.clear();
    aggregate.messages.insert(event.message);
    aggregate.last = event.last;
    if (aggregate.messages.size() < kAggregateFrom) return whole;
    aggregate.messages.erase(aggregate.messages.begin());
    event.message = "(combined from similar events): " + event.message;
    return key;
  }

  bool IsSpam(const EventData& event) {
    SpamBucket& bucket = buckets_[KeyOf(event, false)];
    const Duration now = client_.executor().clock().Monotonic();
    if (bucket.at) bucket.left = std::min(kSpamBurst * kSpamRefill, bucket.left + now - *bucket.at);
    bucket.at = now;
    if (bucket.left < kSpamRefill) return true;
    bucket.left -= kSpamRefill;
    return false;
  }

  std::string NextName(const ObjectReference& about) {
    const int64_t now = client_.executor().clock().Now().time_since_epoch().count();
    last_stamp_ = std::max(now, last_stamp_ + 1);
    const std::string name = fmt::format("{}.{:x}", about.name, last_stamp_);
    // Names of some kinds (roles, for example) are no names for Events.
    return api::IsDns1123Subdomain(name).empty() ? name : fmt::format("event.{:x}", last_stamp_);
  }

  api::Object Whole(const EventData& event, const std::string& name) const {
    api::Editor edit;
    edit.Root().Set("kind", "Event");
    edit.Root().Set("apiVersion", "v1");
    edit["metadata"].Set("name", name);
    edit["metadata"].Set("namespace", NamespaceOf(event.about));
    const api::Mut object = edit["involvedObject"];
    const std::pair<const char*, const std::string*> fields[] = {
        {"kind", &event.about.kind},
        {"namespace", &event.about.ns},
        {"name", &event.about.name},
        {"uid", &event.about.uid},
        {"apiVersion", &event.about.api_version},
        {"resourceVersion", &event.about.resource_version},
        {"fieldPath", &event.about.field_path}};
    for (const auto& [field, value] : fields)
      if (!value->empty()) object.Set(field, *value);
    edit.Root().Set("reason", event.reason);
    edit.Root().Set("message", event.message);
    edit["source"].Set("component", source_.component);
    if (!source_.host.empty()) edit["source"].Set("host", source_.host);
    edit.Root().Set("firstTimestamp", FormatTime(event.first));
    edit.Root().Set("lastTimestamp", FormatTime(event.last));
    edit.Root().Set("count", event.count);
    edit.Root().Set("type", TypeOf(event.kind));
    edit["eventTime"].SetNull();
    edit.Root().Set("reportingComponent", source_.component);
    edit.Root().Set("reportingInstance", source_.host);
    return std::move(edit).Finish();
  }

  static api::Object PatchOf(const EventData& event) {
    api::Editor edit;
    edit.Root().Set("count", event.count);
    edit.Root().Set("lastTimestamp", FormatTime(event.last));
    edit.Root().Set("message", event.message);
    return std::move(edit).Finish();
  }

  void Send(const SeriesPtr& series) {
    series->in_flight = true;
    EventData event = *std::exchange(series->next, std::nullopt);
    if (event.count > 1) {
      Update(series, std::move(event), 1);
    } else {
      Create(series, std::move(event), 1, 1);
    }
  }

  void Update(const SeriesPtr& series, EventData event, int tries) {
    api::Object patch = PatchOf(event);
    const ObjectName name{std::string(NamespaceOf(event.about)), series->name};
    client_.Patch(kCoreEvents, name, PatchType::kStrategic, std::move(patch), {},
                  [weak = weak_from_this(), series, event = std::move(event),
                   tries](Result<api::Object> result) mutable {
                    auto self = weak.lock();
                    if (!self || self->stopped_) return;
                    // It has expired on the server: begin anew.
                    if (!result && result.error().code == 404)
                      return self->Create(series, std::move(event), tries, 1);
                    self->Answered(series, std::move(event), tries, result);
                  });
  }

  void Create(const SeriesPtr& series, EventData event, int tries, int names) {
    api::Object object = Whole(event, series->name);
    const ObjectName name{std::string(NamespaceOf(event.about)), series->name};
    client_.Create(kCoreEvents, name, std::move(object), {},
                   [weak = weak_from_this(), series, event = std::move(event), tries,
                    names](Result<api::Object> result) mutable {
                     auto self = weak.lock();
                     if (!self || self->stopped_) return;
                     if (!result && result.error().Is("AlreadyExists") && names < kMaxNames) {
                       series->name = self->NextName(event.about);
                       return self->Create(series, std::move(event), tries, names + 1);
                     }
                     self->Answered(series, std::move(event), tries, result);
                   });
  }

  void Answered(const SeriesPtr& series, EventData event, int tries,
                const Result<api::Object>& result) {
    const bool unreachable = !result && result.error().code < 100;
    if (unreachable && tries < kMaxTries) {
      client_.executor().After(kRetryDelay, [weak = weak_from_this(), series,
                                             event = std::move(event), tries]() mutable {
        auto self = weak.lock();
        if (!self || self->stopped_) return;
        if (event.count > 1) {
          self->Update(series, std::move(event), tries + 1);
        } else {
          self->Create(series, std::move(event), tries + 1, 1);
        }
      });
      return;
    }
    if (!result) {
      log::Debug("client", "an event is dropped: {} of {}/{}: {}", event.reason, event.about.ns,
                 event.about.name, result.error().message);
    }
    series->in_flight = false;
    if (series->next) {
      Send(series);
    } else {
      --queued_;
    }
  }

  Client& client_;
  const EventSource source_;
  Lru<SeriesPtr> series_;
  Lru<Aggregate> aggregates_;
  Lru<SpamBucket> buckets_;
  size_t queued_ = 0;  // series with something to send or in flight
  bool dropping_ = false;
  int64_t last_stamp_ = 0;
  bool stopped_ = false;
};

EventRecorder::EventRecorder(Client& client, EventSource source)
    : impl_(std::make_shared<Impl>(client, std::move(source))) {}

EventRecorder::~EventRecorder() { impl_->Stop(); }

void EventRecorder::Tell(const ObjectReference& about, EventKind kind, std::string_view reason,
                         std::string_view message) {
  impl_->Tell({about, kind, std::string(reason), std::string(message)});
}

}  // namespace sextant::client
