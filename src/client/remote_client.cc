#include "client/remote_client.h"

#include "api/json.h"
#include "base/base64.h"
#include "base/file.h"
#include "client/status_object.h"

namespace sextant::client {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;  // a list of a large cluster
constexpr size_t kMaxEventBytes = size_t{8} << 20;     // one line of a watch
constexpr size_t kMaxErrorBytes = size_t{1} << 20;
constexpr size_t kMaxTokenBytes = size_t{64} << 10;
constexpr Duration kTokenLifetime = 1min;  // client-go transport/token_source.go
constexpr std::string_view kJson = "application/json";

// Collects "?a=b&c=d"; empty values are left out.
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += net::PercentEncode(value);
    return *this;
  }
  std::string On(std::string path) const { return std::move(path) + text_; }

 private:
  std::string text_;
};

void AddSelection(Query& query, const ListOptions& options) {
  query.Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("resourceVersion", options.resource_version)
      .Add("continue", options.continue_token)
      .Add("limit", options.limit > 0 ? std::to_string(options.limit) : "");
}

Query QueryFor(const WriteOptions& options) {
  Query query;
  query.Add("fieldManager", options.field_manager)
      .Add("dryRun", options.dry_run ? "All" : "")
      .Add("force", options.force ? "true" : "");
  return query;
}

std::string_view ContentType(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";  // JSON is YAML
  }
  return kJson;
}

net::Buffer Encode(const api::Object& object) {
  return net::MakeBuffer(api::ToJson(object.root(), {.escape_html = false}));
}

net::Buffer EncodeDelete(const DeleteOptions& options) {
  api::Editor edit;
  edit.Root().Set("kind", "DeleteOptions");
  edit.Root().Set("apiVersion", "v1");
  if (options.grace_period_s) edit.Root().Set("gracePeriodSeconds", *options.grace_period_s);
  if (!options.propagation.empty()) edit.Root().Set("propagationPolicy", options.propagation);
  if (!options.uid.empty()) edit["preconditions"].Set("uid", options.uid);
  if (!options.resource_version.empty())
    edit["preconditions"].Set("resourceVersion", options.resource_version);
  return Encode(std::move(edit).Finish());
}

// A name for the name the caller gave, or the one in the object.
ObjectName Resolve(ObjectName name, const api::Object& object) {
  if (name.ns.empty()) name.ns = object.ns();
  if (name.name.empty()) name.name = object.name();
  return name;
}

Error Transport(const Error& error) {
  Error out;
  out.code = kTransport;
  out.message = error.message;
  return out;
}

Result<api::Object> Decode(std::string_view text) {
  Result<api::Object> object = api::ParseJson(text, {.max_bytes = kMaxAnswerBytes});
  if (object && object->root().IsMap()) return object;
  Error error;
  error.code = kTransport;
  error.message = object ? "the server's answer is no object"
                         : "the server's answer is no JSON: " + object.error().message;
  return Fail(std::move(error));
}

// An item of a list as a document of its own, with kind and apiVersion where they are missing.
api::Object ItemOf(api::Value item, api::Value api_version, const api::Node& kind) {
  if (!item["kind"].IsAbsent() || !item.IsMap()) return api::CopyOf(item);
  std::vector<api::Member> members;
  members.reserve(item.size() + 2);
  const auto add = [&](std::string_view name, const api::Node& value) {
    api::Member member{};
    member.key = name.data();
    member.key_size = static_cast<uint32_t>(name.size());
    member.fixed = true;
    member.value = value;
    members.push_back(member);
  };
  add("kind", kind);
  if (!api_version.IsAbsent()) add("apiVersion", *api_version.node());
  const api::Node& node = *item.node();
  members.insert(members.end(), node.members, node.members + node.size);
  api::Node root = node;
  root.size = static_cast<uint32_t>(members.size());
  root.members = members.data();
  return api::FinishCompact(root, nullptr);
}

struct List ListOf(const api::Object& answer) {
  struct List list;
  const api::Value metadata = answer["metadata"];
  list.resource_version = metadata["resourceVersion"].AsString();
  list.continue_token = metadata["continue"].AsString();
  std::string_view kind = answer.kind();
  if (kind.ends_with("List")) kind.remove_suffix(4);
  api::Node kind_node;
  kind_node.kind = api::Kind::kString;
  kind_node.size = static_cast<uint32_t>(kind.size());
  kind_node.text = kind.data();
  list.items.reserve(answer["items"].size());
  for (api::Value item : answer["items"].items())
    list.items.push_back(ItemOf(item, answer["apiVersion"], kind_node));
  return list;
}

// ---- watching ----

// One watch: bytes in, events out. Everything on the executor.
class WatchStream {
 public:
  explicit WatchStream(WatchCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void OnHeaders(int status) { http_status_ = status; }

  void OnData(std::string_view bytes) {
    if (ended_) return;
    const bool refused = http_status_ != 200;
    if (buffer_.size() + bytes.size() > (refused ? kMaxErrorBytes : kMaxEventBytes)) {
      if (!refused) End(Fail(Transport(InternalError("one watch event is too long"))));
      return;
    }
    buffer_ += bytes;
    if (!refused) TakeLines();
  }

  void OnDone(const Status& end) {
    if (ended_) return;
    if (http_status_ != 0 && http_status_ != 200)
      return End(Fail(ErrorFromAnswer(http_status_, "GET", buffer_)));
    // A server that goes away in the middle is no reason to list again: the watch is resumed.
    if (!end) return End(Fail(Transport(end.error())));
    End({});
  }

  // The handle is gone, or on_end has been told.
  void Close() {
    ended_ = true;
    callbacks_ = {};
  }
  bool ended() const { return ended_; }

 private:
  void TakeLines() {
    std::vector<WatchEvent> events;
    std::optional<Error> error;
    size_t start = 0;
    for (size_t end = 0; !error && (end = buffer_.find('\n', start)) != std::string::npos;
         start = end + 1) {
      const std::string_view line = std::string_view(buffer_).substr(start, end - start);
      if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
      error = TakeEvent(line, &events);
    }
    buffer_.erase(0, start);
    // The sink may drop the handle.
    if (!events.empty() && callbacks_.on_events) {
      const auto on_events = callbacks_.on_events;
      on_events(std::move(events));
    }
    if (error && !ended_) End(Fail(std::move(*error)));
  }

  static std::optional<Error> TakeEvent(std::string_view line, std::vector<WatchEvent>* events) {
    const Result<api::Object> event = Decode(line);
    if (!event) return event.error();
    const std::string_view type = (*event)["type"].AsString();
    const api::Value object = (*event)["object"];
    if (type == "ERROR") return ErrorFromStatus(object, 500);
    static constexpr std::pair<std::string_view, WatchEventType> kTypes[] = {
        {"ADDED", WatchEventType::kAdded},
        {"MODIFIED", WatchEventType::kModified},
        {"DELETED", WatchEventType::kDeleted},
        {"BOOKMARK", WatchEventType::kBookmark}};
    for (const auto& [name, value] : kTypes) {
      if (name != type) continue;
      events->push_back({value, api::CopyOf(object)});
      return std::nullopt;
    }
    return Transport(InternalError(fmt::format("unknown watch event type {:.40}", type)));
  }

  void End(Status status) {
    ended_ = true;
    const WatchCallbacks callbacks = std::exchange(callbacks_, {});
    if (callbacks.on_end) callbacks.on_end(std::move(status));
  }

  WatchCallbacks callbacks_;
  std::string buffer_;
  int http_status_ = 0;
  bool ended_ = false;
};

class RemoteWatch : public WatchHandle {
 public:
  explicit RemoteWatch(std::shared_ptr<WatchStream> stream) : stream_(std::move(stream)) {}
  ~RemoteWatch() override {
    stream_->Close();
    if (call_) call_->Cancel();
  }
  void Start(std::shared_ptr<net::Call> call) { call_ = std::move(call); }

 private:
  std::shared_ptr<WatchStream> stream_;
  std::shared_ptr<net::Call> call_;
};

net::ClientOptions HttpOptions(const RemoteOptions& options) {
  net::ClientOptions http;
  http.base_url = options.server;
  while (http.base_url.ends_with('/')) http.base_url.pop_back();
  http.tls = options.tls;
  http.max_body = kMaxAnswerBytes;
  return http;
}

}  // namespace

std::string PathOf(const Gvr& gvr, std::string_view ns, std::string_view name,
                   std::string_view subresource) {
  std::string path = gvr.group.empty() ? "/api" : fmt::format("/apis/{}", gvr.group);
  path += fmt::format("/{}", gvr.version);
  if (!ns.empty()) path += "/namespaces/" + net::PercentEncode(ns);
  path += fmt::format("/{}", gvr.resource);
  if (!name.empty()) path += "/" + net::PercentEncode(name);
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

RemoteClient::RemoteClient(net::IoThread& io, Loop& executor, RemoteOptions options)
    : executor_(executor),
      options_(std::move(options)),
      token_(options_.token),
      http_(io, executor, HttpOptions(options_)) {}

RemoteClient::~RemoteClient() = default;

std::string RemoteClient::Token() {
  const std::lock_guard lock(mutex_);
  if (options_.token_file.empty()) return token_;
  const Duration now = executor_.clock().Monotonic();
  if (token_read_at_ && now - *token_read_at_ < kTokenLifetime) return token_;
  // An old token is better than none while the file is being replaced.
  if (Result<std::string> text = ReadFile(options_.token_file, kMaxTokenBytes)) {
    const size_t end = text->find_last_not_of(" \r\n\t");
    token_ = text->substr(0, end == std::string::npos ? 0 : end + 1);
    token_read_at_ = now;
  }
  return token_;
}

net::Headers RemoteClient::IdentityHeaders() {
  net::Headers headers;
  headers.Add("user-agent", options_.user_agent);
  if (const std::string token = Token(); !token.empty()) {
    headers.Add("authorization", "Bearer " + token);
  } else if (!options_.username.empty()) {
    headers.Add("authorization", "Basic " + Base64(options_.username + ":" + options_.password));
  }
  if (!options_.impersonate_user.empty()) {
    headers.Add("impersonate-user", options_.impersonate_user);
    for (const std::string& group : options_.impersonate_groups)
      headers.Add("impersonate-group", group);
  }
  return headers;
}

void RemoteClient::Send(std::string method, std::string target, std::string content_type,
                        net::Buffer body, Callback<std::string> done) {
  net::ClientRequest request;
  request.method = method;
  request.target = std::move(target);
  request.headers = IdentityHeaders();
  request.headers.Add("accept", "application/json, */*");
  if (body) request.headers.Add("content-type", content_type);
  request.body = std::move(body);
  http_.Do(std::move(request), [method = std::move(method), done = std::move(done)](
                                   Result<net::ClientResponse> answer) mutable {
    if (!answer) return done(Fail(Transport(answer.error())));
    if (answer->status < 200 || answer->status > 299) {
      Error error = ErrorFromAnswer(answer->status, method, answer->body);
      const std::string after(answer->headers.Get("retry-after"));
      if (error.retry_after_s == 0 && !after.empty())
        error.retry_after_s = std::clamp(atoi(after.c_str()), 0, 86'400);
      return done(Fail(std::move(error)));
    }
    done(std::move(answer->body));
  });
}

void RemoteClient::SendForObject(std::string method, std::string target, std::string content_type,
                                 net::Buffer body, Callback<api::Object> done) {
  Send(std::move(method), std::move(target), std::move(content_type), std::move(body),
       [done = std::move(done)](Result<std::string> text) mutable {
         if (!text) return done(Fail(std::move(text).error()));
         done(Decode(*text));
       });
}

void RemoteClient::Get(Gvr gvr, ObjectName name, Callback<api::Object> done) {
  SendForObject("GET", PathOf(gvr, name.ns, name.name), "", nullptr, std::move(done));
}

void RemoteClient::List(Gvr gvr, ListOptions options, Callback<struct List> done) {
  Query query;
  AddSelection(query, options);
  SendForObject("GET", query.On(PathOf(gvr, options.ns)), "", nullptr,
                [done = std::move(done)](Result<api::Object> answer) mutable {
                  if (!answer) return done(Fail(std::move(answer).error()));
                  done(ListOf(*answer));
                });
}

std::unique_ptr<WatchHandle> RemoteClient::Watch(Gvr gvr, WatchOptions options,
                                                 WatchCallbacks callbacks) {
  Query query;
  query.Add("watch", "true")
      .Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector)
      .Add("resourceVersion", options.resource_version)
      .Add("allowWatchBookmarks", options.bookmarks || options.send_initial_events ? "true" : "")
      .Add("sendInitialEvents", options.send_initial_events ? "true" : "")
      .Add("resourceVersionMatch", options.send_initial_events ? "NotOlderThan" : "");
  net::ClientRequest request;
  request.target = query.On(PathOf(gvr, options.ns));
  request.headers = IdentityHeaders();
  request.headers.Add("accept", kJson);

  auto stream = std::make_shared<WatchStream>(std::move(callbacks));
  auto handle = std::make_unique<RemoteWatch>(stream);
  net::StreamCallbacks on;
  on.on_headers = [stream](int status, const net::Headers&) { stream->OnHeaders(status); };
  on.on_data = [stream](std::string bytes) { stream->OnData(bytes); };
  on.on_done = [stream](Status end) { stream->OnDone(end); };
  handle->Start(http_.Stream(std::move(request), std::move(on)));
  return handle;
}

void RemoteClient::Create(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
                          Callback<api::Object> done) {
  const bool sub = !options.subresource.empty();
  const ObjectName place = Resolve(std::move(name), object);
  SendForObject(
      "POST",
      QueryFor(options).On(PathOf(gvr, place.ns, sub ? place.name : "", options.subresource)),
      std::string(kJson), Encode(object), std::move(done));
}

void RemoteClient::Update(Gvr gvr, ObjectName name, api::Object object, WriteOptions options,
                          Callback<api::Object> done) {
  const ObjectName place = Resolve(std::move(name), object);
  SendForObject("PUT", QueryFor(options).On(PathOf(gvr, place.ns, place.name, options.subresource)),
                std::string(kJson), Encode(object), std::move(done));
}

void RemoteClient::Patch(Gvr gvr, ObjectName name, PatchType type, api::Object patch,
                         WriteOptions options, Callback<api::Object> done) {
  const ObjectName place = Resolve(std::move(name), patch);
  SendForObject("PATCH",
                QueryFor(options).On(PathOf(gvr, place.ns, place.name, options.subresource)),
                std::string(ContentType(type)), Encode(patch), std::move(done));
}

void RemoteClient::Delete(Gvr gvr, ObjectName name, DeleteOptions options,
                          Callback<api::Object> done) {
  SendForObject("DELETE", PathOf(gvr, name.ns, name.name), std::string(kJson),
                EncodeDelete(options), std::move(done));
}

void RemoteClient::DeleteCollection(Gvr gvr, ListOptions which, DeleteOptions options,
                                    Callback<api::Object> done) {
  Query query;
  AddSelection(query, which);
  SendForObject("DELETE", query.On(PathOf(gvr, which.ns)), std::string(kJson),
                EncodeDelete(options), std::move(done));
}

void RemoteClient::PodLog(ObjectName pod, std::string container, int64_t limit_bytes,
                          Callback<std::string> done) {
  Query query;
  query.Add("container", container)
      .Add("limitBytes", limit_bytes > 0 ? std::to_string(limit_bytes) : "");
  Send("GET", query.On(PathOf(kPods, pod.ns, pod.name, "log")), "", nullptr, std::move(done));
}

void RemoteClient::GetRaw(std::string path, Callback<std::string> done) {
  Send("GET", std::move(path), "", nullptr, std::move(done));
}

}  // namespace sextant::client
