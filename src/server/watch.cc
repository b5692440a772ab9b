#include "server/watch.h"

#include <fmt/format.h>

#include <charconv>

#include "api/conversion.h"
#include "server/status_object.h"

namespace sextant::server {
namespace {

constexpr Duration kBookmarkEvery = std::chrono::seconds(60);
constexpr int64_t kDefaultTimeout_s = 1800;  // apiserver's --min-request-timeout
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

Status ValidateWatchOptions(const Options& options) {
  api::FieldErrors errors;
  const std::string& match = options.resource_version_match;
  if (options.send_initial_events && match != "NotOlderThan") {
    errors.Forbidden("resourceVersionMatch",
                     "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (!match.empty()) {
    if (!options.send_initial_events) {
      errors.Forbidden("resourceVersionMatch",
                       "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                       "provided");
    }
    if (match != "NotOlderThan") {
      errors.NotSupported("resourceVersionMatch", match, {"NotOlderThan"});
    }
    if (!options.continue_token.empty()) {
      errors.Forbidden("resourceVersionMatch",
                       "resourceVersionMatch is forbidden when continue is provided");
    }
  }
  if (errors.empty()) return {};
  return Fail(Invalid("meta.k8s.io", "ListOptions", "", errors.Take()));
}

// A deleted object, or one that left the selection, as of the event.
api::Object AtRevision(const api::Object& object, store::Revision revision,
                       const api::Message* schema) {
  const std::string text = fmt::format("{}", revision);
  if (object.resource_version() == text) return object;
  api::Editor edit(object);
  edit.Root()["metadata"].Set("resourceVersion", text);
  return std::move(edit).Finish(schema);
}

}  // namespace

Result<std::shared_ptr<WatchStream>> WatchStream::Make(Pipeline& pipeline, Operation op,
                                                       Sink sink) {
  RETURN_IF_ERROR(ValidateWatchOptions(op.options));
  ASSIGN_OR_RETURN(Filter filter, Filter::Make(*op.resource, op.options));
  // Whoever was authorized for one name hears of that name only (apiserver's ListResource).
  if (!op.info.name.empty() && !op.options.field_selector.empty() &&
      filter.name() != op.info.name) {
    return Fail(BadRequest("fieldSelector metadata.name doesn't match requested name"));
  }
  ASSIGN_OR_RETURN(const store::Revision after, ParseObjectRevision(op.options.resource_version));
  return std::shared_ptr<WatchStream>(
      new WatchStream(pipeline, std::move(op), std::move(filter), after, std::move(sink)));
}

void WatchStream::Start() {
  pipeline_.core().Post([self = shared_from_this()] { self->Begin(); });
}

WatchStream::WatchStream(Pipeline& pipeline, Operation op, Filter filter, store::Revision after,
                         Sink sink)
    : pipeline_(pipeline),
      op_(std::move(op)),
      filter_(std::move(filter)),
      asked_(after),
      sink_(std::move(sink)),
      strand_(pipeline.workers()) {}

void WatchStream::Begin() {
  if (stopped_) return;
  store::Store& store = pipeline_.store();
  const std::string resource = op_.resource->StorageName();
  store::Revision after = asked_;
  const std::string ns = op_.resource->namespaced ? op_.info.ns : "";
  const std::string& name = op_.info.name;
  const bool initial = op_.options.send_initial_events.value_or(false);
  if (initial || (after == 0 && !op_.options.send_initial_events)) {
    auto snapshot = store.Visible(resource);
    after = snapshot->revision();
    strand_.Post([self = shared_from_this(), snapshot, ns, name, initial] {
      std::vector<WatchUpdate> updates;
      for (const auto& entry : EntriesOf(*snapshot, *self->op_.resource, ns, name, {}, 0)) {
        if (!name.empty() && entry->key.name != name) continue;
        api::Object object = api::FromStored(entry->object, *self->op_.resource);
        if (self->filter_.Matches(object.root())) {
          updates.push_back({WatchKind::kAdded, std::move(object)});
        }
      }
      if (initial && self->op_.options.bookmarks) {
        updates.push_back(self->Bookmark(snapshot->revision(), true));
      }
      if (!updates.empty() && !self->stopped_ && !self->sink_(std::move(updates), false)) {
        self->Stop();
      }
    });
  } else if (after == 0) {
    after = store.visible();  // sendInitialEvents=false: from now on
  }
  auto watch = store.AddWatch(
      {resource, ns, name, after},
      [self = weak_from_this()](std::span<const store::Event> events, store::Revision) {
        if (auto stream = self.lock()) stream->OnBatch(events);
      });
  if (!watch) {
    std::vector<WatchUpdate> updates;
    updates.push_back({WatchKind::kError, StatusObject(watch.error())});
    return Tell(std::move(updates), true);
  }
  watch_ = *std::move(watch);
  const int64_t timeout_s = op_.options.timeout_s > 0 ? op_.options.timeout_s : kDefaultTimeout_s;
  end_timer_ = pipeline_.core().After(std::chrono::seconds(timeout_s), [self = weak_from_this()] {
    if (auto stream = self.lock()) stream->End();
  });
  if (op_.options.bookmarks) ArmBookmark();
}

void WatchStream::ArmBookmark() {
  bookmark_timer_ = pipeline_.core().After(kBookmarkEvery, [self = weak_from_this()] {
    auto stream = self.lock();
    if (!stream || stream->stopped_) return;
    const store::Revision now = stream->pipeline_.store().visible();
    stream->strand_.Post([stream, now] {
      std::vector<WatchUpdate> updates;
      updates.push_back(stream->Bookmark(now, false));
      if (!stream->stopped_ && !stream->sink_(std::move(updates), false)) stream->Stop();
    });
    stream->ArmBookmark();
  });
}

WatchUpdate WatchStream::Bookmark(store::Revision revision, bool initial_end) const {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("kind", op_.resource->kind);
  root.Set("apiVersion", op_.resource->group_version.ToString());
  root["metadata"].Set("resourceVersion", fmt::format("{}", revision));
  if (initial_end) root["metadata"]["annotations"].Set(kInitialEventsEnd, "true");
  return {WatchKind::kBookmark, std::move(edit).Finish(op_.resource->message)};
}

void WatchStream::OnBatch(std::span<const store::Event> events) {
  if (stopped_ || events.empty()) return;
  strand_.Post(
      [self = shared_from_this(), batch = std::vector<store::Event>(events.begin(), events.end())] {
        std::vector<WatchUpdate> updates;
        for (const store::Event& event : batch) self->Translate(event, updates);
        if (!updates.empty() && !self->stopped_ && !self->sink_(std::move(updates), false)) {
          self->Stop();
        }
      });
}

// An object that enters the selection is added, one that leaves it is deleted.
void WatchStream::Translate(const store::Event& event, std::vector<WatchUpdate>& out) const {
  const api::Resource& resource = *op_.resource;
  const auto matches = [&](const api::Object& object) {
    return filter_.all() || filter_.Matches(object.root());
  };
  const bool deleted = event.type == store::EventType::kDeleted;
  const bool was = event.previous && matches(api::FromStored(event.previous->object, resource));
  api::Object now = api::FromStored(event.entry->object, resource);
  const bool is = !deleted && matches(now);
  if (is) {
    out.push_back({was ? WatchKind::kModified : WatchKind::kAdded, std::move(now)});
  } else if (was) {
    if (!deleted) now = api::FromStored(event.previous->object, resource);
    out.push_back({WatchKind::kDeleted, AtRevision(now, event.revision, resource.message)});
  }
}

void WatchStream::Tell(std::vector<WatchUpdate> updates, bool end) {
  strand_.Post([self = shared_from_this(), updates = std::move(updates), end]() mutable {
    if (self->stopped_) return;
    self->sink_(std::move(updates), end);
    if (end) self->Stop();
  });
}

void WatchStream::End() { Tell({}, true); }

void WatchStream::Stop() {
  if (stopped_.exchange(true)) return;
  pipeline_.core().Post([self = shared_from_this()] {
    self->watch_.reset();
    self->pipeline_.core().Cancel(self->bookmark_timer_);
    self->pipeline_.core().Cancel(self->end_timer_);
  });
}

}  // namespace sextant::server
