#include "client/informer.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace sextant::client {
namespace {

using namespace std::chrono_literals;

// client-go tools/cache/reflector.go.
constexpr Duration kFirstBackoff = 800ms;
constexpr Duration kMaxBackoff = 30s;
constexpr int64_t kPageSize = 500;
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

bool IsExpired(const Error& error) {
  return error.code == 410 || error.reason == "Expired" || error.reason == "Gone";
}

// What a server says that does not know or does not allow sendInitialEvents.
bool RefusesStreaming(const Error& error) { return error.code == 400 || error.code == 422; }

}  // namespace

std::vector<std::string> NodeNames(const api::Object& pod) {
  const std::string_view node = pod["spec"]["nodeName"].AsString();
  return node.empty() ? std::vector<std::string>{} : std::vector{std::string(node)};
}

class Informer::Impl : public std::enable_shared_from_this<Informer::Impl> {
 public:
  using Cache = std::map<ObjectName, api::Object>;

  Impl(Client& client, InformerOptions options)
      : client(client), options(std::move(options)), streaming(this->options.streaming) {}

  // ---- following the server ----

  void Start() {
    if (streaming) {
      StartStreaming();
    } else {
      StartList("");
    }
  }

  void Stop() {
    stopped = true;
    watch.reset();
    client.executor().Cancel(retry_timer);
    handlers.clear();
  }

  void Retry(const Error& error, bool list_again) {
    last_error = error;
    log::Debug("client", "following {}: {}", options.gvr.resource, error.message);
    backoff = backoff == Duration{0} ? kFirstBackoff : std::min(backoff * 2, kMaxBackoff);
    retry_timer = client.executor().After(
        backoff, Guarded([this, list_again] { list_again ? Start() : StartWatch(); }));
  }

  WatchOptions OptionsForWatch() const {
    WatchOptions w;
    w.ns = options.ns;
    w.label_selector = options.label_selector;
    w.field_selector = options.field_selector;
    return w;
  }

  void StartStreaming() {
    WatchOptions w = OptionsForWatch();
    w.send_initial_events = true;
    incoming.emplace();
    Open(std::move(w));
  }

  void StartWatch() {
    WatchOptions w = OptionsForWatch();
    w.resource_version = resource_version;
    Open(std::move(w));
  }

  void Open(WatchOptions w) {
    const uint64_t number = ++watch_number;
    heard = false;
    WatchCallbacks callbacks;
    callbacks.on_events = [this, weak = weak_from_this(), number](std::vector<WatchEvent> events) {
      auto self = weak.lock();
      if (self && !stopped && number == watch_number) Take(std::move(events));
    };
    callbacks.on_end = [this, weak = weak_from_this(), number](Status status) {
      auto self = weak.lock();
      if (self && !stopped && number == watch_number) Ended(std::move(status));
    };
    watch = client.Watch(options.gvr, std::move(w), std::move(callbacks));
  }

  void Take(std::vector<WatchEvent> events) {
    heard = true;
    for (WatchEvent& event : events) {
      if (stopped) return;
      if (event.type == WatchEventType::kBookmark) {
        TakeBookmark(event.object);
      } else if (incoming) {
        // Still the initial list: changes of it may be mixed in.
        if (event.type == WatchEventType::kDeleted) {
          incoming->erase(NameOf(event.object));
        } else {
          (*incoming)[NameOf(event.object)] = std::move(event.object);
        }
      } else {
        resource_version = event.object.resource_version();
        const ObjectName name = NameOf(event.object);
        Put(name, event.type == WatchEventType::kDeleted ? api::Object() : std::move(event.object));
        WatchIsWell();
      }
    }
  }

  void TakeBookmark(const api::Object& bookmark) {
    const api::Value annotations = bookmark["metadata"]["annotations"];
    if (incoming) {
      if (annotations[kInitialEventsEnd].AsString() != "true") return;
      Replace(*std::exchange(incoming, std::nullopt), std::string(bookmark.resource_version()));
      return;
    }
    resource_version = bookmark.resource_version();
    WatchIsWell();
  }

  void WatchIsWell() {
    backoff = Duration{0};
    last_error.reset();
  }

  void Ended(Status status) {
    const bool in_list = std::exchange(incoming, std::nullopt).has_value();
    // The handle is dropped in a later turn: its own callback is running.
    client.executor().Post([dead = std::shared_ptr<WatchHandle>(std::move(watch))] {});
    ++watch_number;
    if (status) {
      // The server ends watches now and then in good order.
      if (in_list) {
        Retry(InternalError("the watch ended before its list was complete"), true);
      } else if (!heard) {
        Retry(InternalError("the watch ended at once"), false);
      } else {
        client.executor().Post(Guarded([this] { StartWatch(); }));
      }
      return;
    }
    const Error& error = status.error();
    if (in_list && RefusesStreaming(error)) {
      streaming = false;
      client.executor().Post(Guarded([this] { Start(); }));
    } else if (!in_list && IsExpired(error)) {
      expired = true;
      client.executor().Post(Guarded([this] { Start(); }));
    } else {
      Retry(error, in_list);
    }
  }

  // ---- lists in pages ----

  void StartList(std::string continue_token) {
    ListOptions list;
    list.ns = options.ns;
    list.label_selector = options.label_selector;
    list.field_selector = options.field_selector;
    // "0": any state the server has at hand; after Expired the newest one, in pages.
    if (continue_token.empty()) {
      pages.clear();
      if (!expired) list.resource_version = "0";
    }
    list.limit = expired ? kPageSize : 0;
    list.continue_token = std::move(continue_token);
    client.List(options.gvr, std::move(list),
                [this, weak = weak_from_this()](Result<struct List> result) {
                  auto self = weak.lock();
                  if (self && !stopped) TakePage(std::move(result));
                });
  }

  void TakePage(Result<struct List> result) {
    if (!result) {
      expired = IsExpired(result.error());
      return Retry(result.error(), true);
    }
    for (api::Object& object : result->items) pages[NameOf(object)] = std::move(object);
    if (!result->continue_token.empty()) return StartList(std::move(result->continue_token));
    expired = false;
    Replace(std::exchange(pages, {}), result->resource_version);
    StartWatch();
  }

  // ---- the cache ----

  void Replace(Cache now, std::string revision) {
    resource_version = std::move(revision);
    WatchIsWell();
    std::vector<ObjectName> gone;
    for (const auto& [name, object] : cache)
      if (!now.contains(name)) gone.push_back(name);
    for (const ObjectName& name : gone) Put(name, {});
    for (auto& [name, object] : now) Put(name, std::move(object));
    if (!std::exchange(synced, true)) {
      for (Task& task : std::exchange(on_synced, {})) task();
    }
  }

  void Put(const ObjectName& name, api::Object object) {
    Change change;
    const auto found = cache.find(name);
    if (found != cache.end()) change.before = found->second;
    change.after = std::move(object);
    if (!change.before && !change.after) return;
    // Told again after a resume or a list.
    if (change.before && change.after &&
        change.before.resource_version() == change.after.resource_version()) {
      return;
    }
    for (auto& [index_name, index] : indexes) {
      if (change.before) index.Erase(name, change.before);
      if (change.after) index.Insert(name, change.after);
    }
    if (change.after) {
      cache[name] = change.after;
    } else {
      cache.erase(found);
    }
    Tell(change);
  }

  void Tell(const Change& change) {
    // By number, since handlers may subscribe and unsubscribe. New ones (not yet primed) get
    // everything that is there when their turn comes.
    for (auto at = handlers.begin(); at != handlers.end();) {
      const uint64_t id = at->first;
      const std::shared_ptr<Handler> handler = at->second;
      if (handler->primed) handler->call(change);
      at = handlers.upper_bound(id);
    }
  }

  struct Handler {
    ChangeHandler call;
    bool primed = false;
  };

  struct Index {
    IndexFunction function;
    std::map<std::string, std::set<ObjectName>> names;

    void Insert(const ObjectName& name, const api::Object& object) {
      for (const std::string& value : function(object)) names[value].insert(name);
    }
    void Erase(const ObjectName& name, const api::Object& object) {
      for (const std::string& value : function(object)) {
        const auto found = names.find(value);
        if (found == names.end()) continue;
        found->second.erase(name);
        if (found->second.empty()) names.erase(found);
      }
    }
  };

  Task Guarded(Task task) {
    return [this, weak = weak_from_this(), task = std::move(task)]() mutable {
      auto self = weak.lock();
      if (self && !stopped) task();
    };
  }

  // A new handler hears of everything that is there, then of changes.
  void Prime(uint64_t id) {
    client.executor().Post(Guarded([this, id] {
      const auto found = handlers.find(id);
      if (found == handlers.end()) return;
      const std::shared_ptr<Handler> handler = found->second;
      handler->primed = true;
      std::vector<api::Object> all;
      for (const auto& [name, object] : cache) all.push_back(object);
      for (api::Object& object : all) {
        if (!handlers.contains(id)) return;
        handler->call({{}, std::move(object)});
      }
    }));
  }

  class Subscribed : public Subscription {
   public:
    Subscribed(std::weak_ptr<Impl> impl, uint64_t id) : impl_(std::move(impl)), id_(id) {}
    ~Subscribed() override {
      if (auto impl = impl_.lock()) impl->handlers.erase(id_);
    }

   private:
    std::weak_ptr<Impl> impl_;
    uint64_t id_;
  };

  Client& client;
  const InformerOptions options;
  bool streaming;
  bool stopped = false;
  bool synced = false;
  bool expired = false;  // the next list must not be an old one
  std::string resource_version;
  std::optional<Error> last_error;
  Duration backoff{0};
  TimerId retry_timer = 0;
  uint64_t watch_number = 0;
  bool heard = false;  // anything on this watch
  std::unique_ptr<WatchHandle> watch;
  std::optional<Cache> incoming;  // a streaming list that is not complete
  Cache pages;
  Cache cache;
  std::map<std::string, Index> indexes;
  std::map<uint64_t, std::shared_ptr<Handler>> handlers;
  uint64_t next_handler = 0;
  std::vector<Task> on_synced;
};

Informer::Informer(Client& client, InformerOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(options))) {
  impl_->Start();
}

Informer::~Informer() { impl_->Stop(); }

bool Informer::synced() const { return impl_->synced; }

void Informer::OnSynced(Task task) {
  if (impl_->synced) {
    impl_->client.executor().Post(impl_->Guarded(std::move(task)));
  } else {
    impl_->on_synced.push_back(std::move(task));
  }
}

std::unique_ptr<Subscription> Informer::Subscribe(ChangeHandler handler) {
  const uint64_t id = ++impl_->next_handler;
  impl_->handlers[id] = std::make_shared<Impl::Handler>(Impl::Handler{std::move(handler)});
  impl_->Prime(id);
  return std::make_unique<Impl::Subscribed>(impl_, id);
}

api::Object Informer::Get(const ObjectName& name) const {
  const auto found = impl_->cache.find(name);
  return found == impl_->cache.end() ? api::Object() : found->second;
}

std::vector<api::Object> Informer::List(std::string_view ns) const {
  std::vector<api::Object> objects;
  auto at = ns.empty() ? impl_->cache.begin() : impl_->cache.lower_bound({std::string(ns), ""});
  for (; at != impl_->cache.end() && (ns.empty() || at->first.ns == ns); ++at)
    objects.push_back(at->second);
  return objects;
}

size_t Informer::size() const { return impl_->cache.size(); }

void Informer::AddIndex(const std::string& index, IndexFunction function) {
  const auto [place, made] = impl_->indexes.try_emplace(index);
  if (!made) return;
  place->second.function = std::move(function);
  for (const auto& [name, object] : impl_->cache) place->second.Insert(name, object);
}

std::vector<api::Object> Informer::ByIndex(const std::string& index,
                                           const std::string& value) const {
  const auto place = impl_->indexes.find(index);
  CHECK(place != impl_->indexes.end());
  std::vector<api::Object> objects;
  const auto names = place->second.names.find(value);
  if (names == place->second.names.end()) return objects;
  for (const ObjectName& name : names->second) objects.push_back(Get(name));
  return objects;
}

const std::string& Informer::resource_version() const { return impl_->resource_version; }
const std::optional<Error>& Informer::last_error() const { return impl_->last_error; }

SharedInformers::Key SharedInformers::KeyOf(const InformerOptions& options) {
  const Gvr& gvr = options.gvr;
  return {std::string(gvr.group), std::string(gvr.version), std::string(gvr.resource), options.ns,
          options.label_selector, options.field_selector};
}

void SharedInformers::Drop(const InformerOptions& options) { informers_.erase(KeyOf(options)); }

Informer& SharedInformers::For(const InformerOptions& options) {
  std::unique_ptr<Informer>& informer = informers_[KeyOf(options)];
  if (!informer) informer = std::make_unique<Informer>(client_, options);
  return *informer;
}

bool SharedInformers::synced() const {
  return std::all_of(informers_.begin(), informers_.end(),
                     [](const auto& each) { return each.second->synced(); });
}

}  // namespace sextant::client
