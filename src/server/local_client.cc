#include "server/local_client.h"

#include <fmt/format.h>

#include "api/json.h"
#include "client/status_object.h"
#include "server/request_info.h"
#include "server/watch.h"

namespace sextant::server {
namespace {

using api::Object;
using client::Callback;
using client::Gvr;
using client::ObjectName;

constexpr std::string_view kDeleteOptionsGroup = "v1";

class LocalWatch : public client::WatchHandle {
 public:
  // What the stream's deliveries hold. Never the stream itself: each would keep the other alive.
  struct Shared {
    // Set on the executor's loop by the client, read by the deliveries: once it is false nothing
    // more is told.
    std::atomic<bool> alive = true;
    client::WatchCallbacks callbacks;
  };
  // `stream` may be null: the watch was refused.
  LocalWatch(std::shared_ptr<Shared> shared, std::shared_ptr<WatchStream> stream)
      : shared_(std::move(shared)), stream_(std::move(stream)) {}
  ~LocalWatch() override {
    shared_->alive = false;
    if (stream_) stream_->Stop();
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<WatchStream> stream_;
};

// The calls outlive the client that began them (its owner may go first): they hold the loop alone.
template <typename T>
void Later(Loop& executor, Callback<T> done, Result<T> result) {
  executor.Post(
      [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
}

template <typename T>
Callback<T> Deliver(Loop& executor, Callback<T> done) {
  return [&executor, done = std::move(done)](Result<T> result) mutable {
    Later<T>(executor, std::move(done), std::move(result));
  };
}

client::WatchEventType ClientType(WatchKind kind) {
  switch (kind) {
    case WatchKind::kAdded:
      return client::WatchEventType::kAdded;
    case WatchKind::kModified:
      return client::WatchEventType::kModified;
    case WatchKind::kDeleted:
      return client::WatchEventType::kDeleted;
    case WatchKind::kBookmark:
    case WatchKind::kError:
      break;
  }
  return client::WatchEventType::kBookmark;
}

api::PatchType PatchTypeOf(client::PatchType type) {
  switch (type) {
    case client::PatchType::kJson:
      return api::PatchType::kJson;
    case client::PatchType::kStrategic:
      return api::PatchType::kStrategic;
    case client::PatchType::kMerge:
    case client::PatchType::kApply:
      break;
  }
  return api::PatchType::kMerge;
}

class LocalClient : public client::Client {
 public:
  using RegistrySource = std::function<std::shared_ptr<const api::Registry>()>;

  LocalClient(Pipeline& pipeline, LocalExtras& extras, User user, Loop& executor,
              RegistrySource registry)
      : pipeline_(pipeline),
        extras_(extras),
        user_(std::move(user)),
        executor_(executor),
        registry_(std::move(registry)) {}

  Loop& executor() override { return executor_; }

  void Get(Gvr gvr, ObjectName name, Callback<Object> done) override {
    Run("get", gvr, std::move(name), {}, {}, std::move(done));
  }

  void List(Gvr gvr, client::ListOptions options, Callback<struct client::List> done) override {
    auto op = MakeOperation("list", gvr, {options.ns, ""});
    if (!op) return Later<struct client::List>(executor_, std::move(done), Fail(op.error()));
    SetSelection(options, op->options);
    NoteFieldSelector(options.field_selector, op->info);
    pipeline_.Execute(*std::move(op), [&executor = executor_,
                                       done = std::move(done)](Result<Outcome> r) mutable {
      if (!r)
        return Later<struct client::List>(executor, std::move(done), Fail(std::move(r).error()));
      struct client::List list;
      list.items = std::move(r->list->items);
      list.resource_version = std::move(r->list->resource_version);
      list.continue_token = std::move(r->list->continue_token);
      Later<struct client::List>(executor, std::move(done), std::move(list));
    });
  }

  std::unique_ptr<client::WatchHandle> Watch(Gvr gvr, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    auto shared = std::make_shared<LocalWatch::Shared>();
    shared->callbacks = std::move(callbacks);
    auto op = MakeOperation("watch", gvr, {options.ns, ""});
    Result<std::shared_ptr<WatchStream>> stream = Fail(Error{});
    if (!op) {
      stream = Fail(op.error());
    } else {
      op->options.label_selector = options.label_selector;
      op->options.field_selector = options.field_selector;
      NoteFieldSelector(options.field_selector, op->info);
      op->options.resource_version = options.resource_version;
      op->options.bookmarks = options.bookmarks;
      if (options.send_initial_events) {
        op->options.send_initial_events = true;
        op->options.resource_version_match = "NotOlderThan";
      }
      if (auto allowed = pipeline_.Authorize(*op); !allowed) {
        stream = Fail(std::move(allowed).error());
      } else {
        stream = StartStream(*std::move(op), shared);
      }
    }
    if (!stream) {
      End(executor_, shared, Fail(stream.error()));
      return std::make_unique<LocalWatch>(shared, nullptr);
    }
    (*stream)->Start();
    return std::make_unique<LocalWatch>(shared, *std::move(stream));
  }

  void Create(Gvr gvr, ObjectName name, Object object, client::WriteOptions options,
              Callback<Object> done) override {
    if (name.ns.empty()) name.ns = object.ns();
    Run("create", gvr, std::move(name), std::move(object), std::move(options), std::move(done));
  }

  void Update(Gvr gvr, ObjectName name, Object object, client::WriteOptions options,
              Callback<Object> done) override {
    if (name.ns.empty()) name.ns = object.ns();
    if (name.name.empty()) name.name = object.name();
    Run("update", gvr, std::move(name), std::move(object), std::move(options), std::move(done));
  }

  void Patch(Gvr gvr, ObjectName name, client::PatchType type, Object patch,
             client::WriteOptions options, Callback<Object> done) override {
    Run("patch", gvr, std::move(name), std::move(patch), std::move(options), std::move(done), type);
  }

  void Delete(Gvr gvr, ObjectName name, client::DeleteOptions options,
              Callback<Object> done) override {
    Run("delete", gvr, std::move(name), DeleteBody(options), {}, std::move(done));
  }

  void DeleteCollection(Gvr gvr, client::ListOptions which, client::DeleteOptions options,
                        Callback<Object> done) override {
    auto op = MakeOperation("deletecollection", gvr, {which.ns, ""});
    if (!op) return Later<Object>(executor_, std::move(done), Fail(op.error()));
    SetSelection(which, op->options);
    NoteFieldSelector(which.field_selector, op->info);
    op->body = DeleteBody(options);
    Execute(*std::move(op), std::move(done));
  }

  void PodLog(ObjectName pod, std::string container, int64_t limit_bytes,
              Callback<std::string> done) override {
    extras_.PodLog(user_, std::move(pod), std::move(container), limit_bytes,
                   Deliver(executor_, std::move(done)));
  }

  void GetRaw(std::string path, Callback<std::string> done) override {
    extras_.Raw(user_, std::move(path), Deliver(executor_, std::move(done)));
  }

 private:
  Result<Operation> MakeOperation(std::string_view verb, Gvr gvr, ObjectName name,
                                  std::string_view subresource = {}) {
    Operation op;
    op.registry = registry_();
    op.resource = op.registry->Find({gvr.group, gvr.version}, gvr.resource);
    if (!op.resource) return Fail(PathNotFound());
    if (!subresource.empty()) {
      op.subresource = op.resource->FindSubresource(subresource);
      if (!op.subresource) return Fail(PathNotFound());
    }
    op.user = user_;
    op.info = {.is_resource = true,
               .path = {},
               .verb = std::string(verb),
               .prefix = gvr.group.empty() ? "api" : "apis",
               .group = std::string(gvr.group),
               .version = std::string(gvr.version),
               .ns = std::move(name.ns),
               .resource = std::string(gvr.resource),
               .subresource = std::string(subresource),
               .name = std::move(name.name),
               .field_selector = {},
               .rest = {}};
    return op;
  }

  static void SetSelection(const client::ListOptions& from, Options& to) {
    to.label_selector = from.label_selector;
    to.field_selector = from.field_selector;
    to.resource_version = from.resource_version;
    to.continue_token = from.continue_token;
    to.limit = from.limit;
  }

  void Run(std::string_view verb, Gvr gvr, ObjectName name, Object body,
           client::WriteOptions options, Callback<Object> done,
           client::PatchType type = client::PatchType::kMerge) {
    auto op = MakeOperation(verb, gvr, std::move(name), options.subresource);
    if (!op) return Later<Object>(executor_, std::move(done), Fail(op.error()));
    op->apply = verb == "patch" && type == client::PatchType::kApply;
    if (verb == "patch" && !op->apply) {
      op->patch = api::ToJson(body.root());
      op->patch_type = PatchTypeOf(type);
    } else {
      op->body = std::move(body);
    }
    op->options.field_manager = std::move(options.field_manager);
    if (options.dry_run) op->options.dry_run_values = {"All"};
    op->options.force = options.force;
    Execute(*std::move(op), std::move(done));
  }

  void Execute(Operation op, Callback<Object> done) {
    Respond respond = [&executor = executor_, done = std::move(done)](Result<Outcome> r) mutable {
      if (!r) return Later<Object>(executor, std::move(done), Fail(std::move(r).error()));
      Later<Object>(executor, std::move(done), std::move(r->object));
    };
    if (extras_.ExecuteSubresource(op, respond)) return;
    pipeline_.Execute(std::move(op), std::move(respond));
  }

  static Object DeleteBody(const client::DeleteOptions& options) {
    api::Editor edit;
    api::Mut root = edit.Root();
    root.Set("kind", "DeleteOptions");
    root.Set("apiVersion", kDeleteOptionsGroup);
    if (options.grace_period_s) root.Set("gracePeriodSeconds", *options.grace_period_s);
    if (!options.propagation.empty()) root.Set("propagationPolicy", options.propagation);
    if (!options.uid.empty()) root["preconditions"].Set("uid", options.uid);
    if (!options.resource_version.empty()) {
      root["preconditions"].Set("resourceVersion", options.resource_version);
    }
    return std::move(edit).Finish();
  }

  Result<std::shared_ptr<WatchStream>> StartStream(Operation op,
                                                   std::shared_ptr<LocalWatch::Shared> shared) {
    return WatchStream::Make(
        pipeline_, std::move(op),
        [&executor = executor_, shared](std::vector<WatchUpdate> updates, bool end) {
          if (!shared->alive) return false;
          Tell(executor, shared, std::move(updates), end);
          return true;
        });
  }

  static void Tell(Loop& executor, const std::shared_ptr<LocalWatch::Shared>& shared,
                   std::vector<WatchUpdate> updates, bool end) {
    std::vector<client::WatchEvent> events;
    Status status;
    for (WatchUpdate& update : updates) {
      if (update.kind == WatchKind::kError) {
        status = Fail(client::ErrorFromStatus(update.object.root(), 500));
      } else {
        events.push_back({ClientType(update.kind), std::move(update.object)});
      }
    }
    if (!events.empty()) {
      executor.Post([shared, events = std::move(events)]() mutable {
        if (shared->alive) shared->callbacks.on_events(std::move(events));
      });
    }
    if (end) End(executor, shared, std::move(status));
  }

  static void End(Loop& executor, const std::shared_ptr<LocalWatch::Shared>& shared,
                  Status status) {
    executor.Post([shared, status = std::move(status)]() mutable {
      if (shared->alive.exchange(false) && shared->callbacks.on_end) {
        shared->callbacks.on_end(std::move(status));
      }
    });
  }

  Pipeline& pipeline_;
  LocalExtras& extras_;
  const User user_;
  Loop& executor_;
  const RegistrySource registry_;
};

}  // namespace

std::unique_ptr<client::Client> MakeLocalClient(
    Pipeline& pipeline, LocalExtras& extras, User user, Loop& executor,
    std::function<std::shared_ptr<const api::Registry>()> registry) {
  return std::make_unique<LocalClient>(pipeline, extras, std::move(user), executor,
                                       std::move(registry));
}

}  // namespace sextant::server
