#include "server/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/custom_kind.h"
#include "api/json.h"
#include "api/rules.h"
#include "server/custom_kinds.h"
#include "server/decode.h"
#include "server/encode.h"
#include "server/fixed_paths.h"
#include "server/flow_control.h"
#include "server/impersonation.h"
#include "server/node_proxy.h"
#include "server/request_info.h"
#include "server/subresources.h"
#include "server/watch.h"

namespace sextant::server {
namespace {

std::string WarningHeader(const std::string& text) {
  std::string quoted;
  for (char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return fmt::format("299 - \"{}\"", quoted);
}

net::Headers AnswerHeaders(std::string content_type, const std::vector<std::string>& warnings) {
  net::Headers headers;
  headers.Add("cache-control", "no-cache, private");
  headers.Add("content-type", content_type);
  for (const std::string& warning : warnings) headers.Add("warning", WarningHeader(warning));
  return headers;
}

}  // namespace

net::ErrorAnswer RenderListenerError(const Error& error) {
  if (error.code != 413) return net::PlainError(error);
  const Form form;
  return {AnswerHeaders(form.ContentType(), {}), EncodeStatus(error, form)};
}

// One HTTP request on its way.
struct ApiServer::Call {
  net::Request request;
  std::shared_ptr<net::ResponseWriter> writer;
  Operation op;
  Form form;

  void Refuse(const Error& error) const {
    std::vector<std::string> warnings = op.warnings;
    warnings.insert(warnings.end(), error.warnings.begin(), error.warnings.end());
    const Form as = ErrorForm();
    net::Headers headers = AnswerHeaders(as.ContentType(), warnings);
    if (error.retry_after_s > 0) headers.Add("retry-after", fmt::format("{}", error.retry_after_s));
    const bool text = request.method != "HEAD";
    writer->SendResponse(error.code, std::move(headers), text ? EncodeStatus(error, as) : "");
  }
  // An error is no table: of what the client takes, what is asked for as it is.
  Form ErrorForm() const {
    if (form.as == As::kObject) return form;
    std::string plain;
    for (const MediaRange& range : ParseAccept(request.headers.Get("accept"))) {
      if (range.Get("as").empty()) plain += (plain.empty() ? "" : ",") + range.type;
    }
    auto other = Negotiate(plain, form.pretty);
    return other ? *other : Form{};
  }
  void TooMany() const {
    writer->SendResponse(429,
                         {{"content-type", "text/plain; charset=utf-8"},
                          {"x-content-type-options", "nosniff"},
                          {"retry-after", "1"}},
                         std::string(kTooManyRequests));
  }
  void SendText(int code, std::string text) const {
    net::Headers headers = {{"cache-control", "no-cache, private"},
                            {"content-type", "text/plain; charset=utf-8"},
                            {"x-content-type-options", "nosniff"}};
    writer->SendResponse(code, std::move(headers), std::move(text));
  }
  void SendDocument(const Result<Document>& document) const {
    if (!document && document.error().code == 404) return SendText(404, "404 page not found\n");
    if (!document) return Refuse(document.error());
    net::Headers headers;
    if (!document->content_type.empty()) headers.Add("content-type", document->content_type);
    for (std::string_view name : document->vary) headers.Add("vary", std::string(name));
    if (!document->location.empty()) headers.Add("location", document->location);
    if (!document->cache_control.empty()) headers.Add("cache-control", document->cache_control);
    if (!document->expires.empty()) headers.Add("expires", document->expires);
    if (!document->etag.empty()) {
      headers.Add("etag", document->etag);
      if (request.headers.Get("if-none-match") == document->etag) {
        return writer->SendResponse(304, std::move(headers), net::MakeBuffer(""));
      }
    }
    writer->SendResponse(document->status, std::move(headers),
                         document->body ? document->body : net::MakeBuffer(""));
  }
};

struct ApiServer::Rooms {
  Rooms(const ServerParts& parts)
      : discovery(MakeDiscovery(parts.address)),
        open_api(MakeOpenApi()),
        subresources(parts.pipeline, parts.authenticator),
        nodes(parts.pipeline, parts.nodes),
        flow(parts.pipeline.workers(), {}),
        custom_kinds(CustomKinds::Start(parts.pipeline, parts.registries)) {}
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<OpenApi> open_api;
  Subresources subresources;
  NodeProxy nodes;
  FlowControl flow;
  std::shared_ptr<CustomKinds> custom_kinds;
};

ApiServer::ApiServer(ServerParts parts)
    : parts_(std::move(parts)), rooms_(std::make_unique<Rooms>(parts_)) {}
ApiServer::~ApiServer() = default;

void ApiServer::SetReady(bool ready) { ready_ = ready; }

std::unique_ptr<client::Client> ApiServer::Client(User user, Loop& executor) {
  return MakeLocalClient(parts_.pipeline, *this, std::move(user), executor,
                         [this] { return parts_.registries.Get(); });
}

namespace {

// Whoever calls with it, before anybody has looked whether it is any good.
std::string CredentialOf(const net::Request& request) {
  const std::string_view header = request.headers.Get("authorization");
  if (!header.empty()) return std::string(header);
  if (!request.peer) return "";
  return request.peer->client_cert ? request.peer->client_cert->fingerprint_sha256
                                   : request.peer->address;
}

// Answers from this size on count against what may be on its way to a client.
constexpr size_t kLargeAnswer = 64 << 10;

}  // namespace

void ApiServer::Handle(net::Request request, std::shared_ptr<net::ResponseWriter> writer) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->writer = std::move(writer);
  const std::string credential = CredentialOf(call->request);
  if (!rooms_->flow.Post(credential, [this, call] { OnWorker(call); })) call->TooMany();
}

namespace {

// Groups of custom resources alone, and groups that nobody serves, have no handler of their own.
bool HasGroup(const api::Registry& registry, std::string_view group) {
  return std::ranges::any_of(registry.resources(), [&](const api::Resource* resource) {
    return resource->group_version.group == group && !api::AsCustom(*resource);
  });
}

// Of /apis/GROUP/VERSION or /api/VERSION.
std::string_view GroupOfPath(std::string_view path) {
  constexpr std::string_view kApis = "/apis/";
  if (!path.starts_with(kApis)) return "";
  path.remove_prefix(kApis.size());
  return path.substr(0, path.find('/'));
}

struct HealthCheck {
  std::string_view name;
  bool ok;
};

// "/livez" or "/livez/store" taken apart.
struct HealthPath {
  std::string_view group;  // "livez"
  std::string_view check;  // "store"; empty: all
};

std::optional<HealthPath> ParseHealthPath(std::string_view path) {
  for (std::string_view group : {"healthz", "livez", "readyz"}) {
    if (!path.starts_with('/') || !path.substr(1).starts_with(group)) continue;
    const std::string_view rest = path.substr(1 + group.size());
    if (rest.empty() || rest.starts_with('/')) return HealthPath{group, rest.substr(!rest.empty())};
  }
  return {};
}

}  // namespace

void ApiServer::OnWorker(const std::shared_ptr<Call>& call) {
  const net::Request& request = call->request;
  Operation& op = call->op;
  auto user = parts_.authenticator.Authenticate(request);
  if (!user) return call->Refuse(user.error());
  op.user = *std::move(user);
  op.info = ParseRequest(request.method, request.path);
  auto options = ParseOptions(request.query);
  if (!options) return call->Refuse(options.error());
  op.options = *std::move(options);
  ResolveVerb(op.options, op.info);
  auto other = Impersonate(request, op, parts_.pipeline);
  if (!other) return call->Refuse(other.error());
  if (*other) op.user = **std::move(other);
  op.registry = parts_.registries.Get();
  if (!op.info.is_resource) return Fixed(call);
  Resource(call);
}

namespace {

// How others check ServiceAccount tokens (OpenID Connect discovery).
constexpr std::string_view kIssuerPath = "/.well-known/openid-configuration";
constexpr std::string_view kKeysPath = "/openid/v1/jwks";

}  // namespace

void ApiServer::OpenId(const std::shared_ptr<Call>& call) {
  const TokenIssuer& tokens = parts_.authenticator.tokens();
  const bool keys = call->request.path == kKeysPath;
  net::Headers headers = {{"content-type", keys ? "application/jwk-set+json" : "application/json"},
                          {"cache-control", "public, max-age=3600"}};
  call->writer->SendResponse(
      200, std::move(headers),
      keys ? tokens.Jwks()
           : tokens.Configuration(fmt::format("https://{}{}", parts_.address, kKeysPath)));
}

void ApiServer::Fixed(const std::shared_ptr<Call>& call) {
  const std::string_view path = call->request.path;
  // All checks together are everybody's to read, for the probes of load balancers.
  const auto health = ParseHealthPath(path);
  if (health && health->check.empty()) return Health(call);
  if (auto allowed = parts_.pipeline.Authorize(call->op); !allowed) {
    return call->Refuse(allowed.error());
  }
  const std::string_view accept = call->request.headers.Get("accept");
  const bool reads = call->request.method == "GET" || call->request.method == "HEAD";
  const bool discovery =
      path == "/api" || path == "/apis" || path.starts_with("/api/") || path.starts_with("/apis/");
  const bool version = path == "/version" || path == "/version/";
  const bool known = version || path == "/api" || path == "/apis" ||
                     (discovery && HasGroup(*call->op.registry, GroupOfPath(path)));
  if (!reads && known) return call->Refuse(MethodNotAllowed());
  if (health) return Health(call);
  if (version) return Version(call);
  if (reads && (path == kKeysPath || path == kIssuerPath)) return OpenId(call);
  if (path.starts_with("/openapi/")) {
    return call->SendDocument(
        rooms_->open_api->Serve(path, call->request.query, accept, call->op.registry));
  }
  if (discovery) {
    auto document = rooms_->discovery->Serve(path, accept, call->op.registry);
    // Of a group that is served a version can be missing; another group is no part of the API.
    if (!document && document.error().code == 404 &&
        HasGroup(*call->op.registry, GroupOfPath(path))) {
      return call->Refuse(document.error());
    }
    return call->SendDocument(document);
  }
  if (path == "/") return Index(call);
  call->SendText(404, "404 page not found\n");
}

void ApiServer::Health(const std::shared_ptr<Call>& call) {
  const auto [group, one] = *ParseHealthPath(call->request.path);
  std::vector<HealthCheck> checks = {{"ping", true}, {"store", !parts_.pipeline.store().failed()}};
  if (group == "readyz") checks.push_back({"poststarthook/lab", ready_});
  if (!one.empty()) std::erase_if(checks, [&](const HealthCheck& c) { return c.name != one; });
  if (checks.empty()) return call->SendText(404, "404 page not found\n");
  // As apiserver pkg/server/healthz words it.
  std::string report;
  bool passed = true;
  for (const HealthCheck& check : checks) {
    passed = passed && check.ok;
    report += check.ok ? fmt::format("[+]{} ok\n", check.name)
                       : fmt::format("[-]{} failed: reason withheld\n", check.name);
  }
  if (!passed) return call->SendText(500, fmt::format("{}{} check failed\n", report, group));
  if (call->request.query.find("verbose") == std::string::npos || !one.empty()) {
    return call->SendText(200, "ok");
  }
  call->SendText(200, fmt::format("{}{} check passed\n", report, group));
}

void ApiServer::Version(const std::shared_ptr<Call>& call) {
  api::Editor edit;
  api::Mut root = edit.Root();
  root.Set("major", "1");
  root.Set("minor", "36");
  root.Set("emulationMajor", "1");
  root.Set("emulationMinor", "36");
  root.Set("minCompatibilityMajor", "1");
  root.Set("minCompatibilityMinor", "35");
  root.Set("gitVersion", parts_.git_version);
  root.Set("gitCommit", parts_.git_commit);
  root.Set("gitTreeState", "clean");
  root.Set("buildDate", parts_.build_date);
  root.Set("goVersion", "none (C++23)");
  root.Set("compiler", "clang");
  root.Set("platform", "linux/amd64");
  const api::Object version = std::move(edit).Finish();
  std::string text = api::ToJson(version.root(), {.indent = 2});
  call->writer->SendResponse(200, {{"content-type", "application/json"}}, std::move(text));
}

void ApiServer::Index(const std::shared_ptr<Call>& call) {
  api::Editor edit;
  api::Mut paths = edit.Root()["paths"];
  for (std::string_view path :
       std::to_array<std::string_view>({kIssuerPath, "/api", "/api/v1", "/apis"})) {
    paths.Append().SetString(path);
  }
  std::vector<std::string> groups;
  for (const api::Resource* resource : call->op.registry->resources()) {
    const api::GroupVersion& gv = resource->group_version;
    if (gv.group.empty()) continue;
    for (std::string path : {fmt::format("/apis/{}", gv.group), "/apis/" + gv.ToString()}) {
      if (std::find(groups.begin(), groups.end(), path) == groups.end()) groups.push_back(path);
    }
  }
  std::sort(groups.begin(), groups.end());
  for (const std::string& path : groups) paths.Append().SetString(path);
  for (std::string_view path :
       std::to_array<std::string_view>({"/healthz", "/livez", "/openapi/v2", "/openapi/v3",
                                        kKeysPath, "/readyz", "/version"})) {
    paths.Append().SetString(path);
  }
  const api::Object index = std::move(edit).Finish();
  std::string text = api::ToJson(index.root(), {.indent = 2});
  call->writer->SendResponse(200, {{"content-type", "application/json"}}, std::move(text));
}

namespace {

// Kinds that have namespaces can be read in all of them at once; nothing else goes without one.
bool NeedsNamespace(const Operation& op) {
  return op.resource && op.resource->namespaced && op.info.ns.empty() && op.info.verb != "list" &&
         op.info.verb != "watch";
}

// Whether the path has the method: objects are created on collections and changed by their names,
// and all namespaces at once can be read only.
Status CheckMethod(const net::Request& request, const Operation& op) {
  const std::string_view verb = op.info.verb;
  if (NeedsNamespace(op) && !op.info.name.empty()) return Fail(PathNotFound());
  // .../watch/... is a watch whatever the method (RequestInfo), and none of the others serves it.
  bool served = request.method != "HEAD" && (verb != "watch" || request.method == "GET");
  served &= !NeedsNamespace(op);
  if (!op.subresource && verb == "create") served &= op.info.name.empty();
  if (verb == "update" || verb == "patch") served &= !op.info.name.empty();
  if (!served) return Fail(MethodNotAllowed());
  return Pipeline::CheckVerb(op);
}

}  // namespace

void ApiServer::Resource(const std::shared_ptr<Call>& call) {
  Operation& op = call->op;
  op.resource = op.registry->Find({op.info.group, op.info.version}, op.info.resource);
  const bool known_sub =
      op.resource && (op.info.subresource.empty() ||
                      (op.subresource = op.resource->FindSubresource(op.info.subresource)));
  // As in the real server, who may not ask is told so before what is not there.
  const bool placed = op.resource && (op.resource->namespaced || op.info.ns.empty() ||
                                      op.resource->plural == "namespaces");
  const api::CustomVersion* custom = op.resource ? api::AsCustom(*op.resource) : nullptr;
  const bool found = known_sub && placed && !(custom && NeedsNamespace(op)) &&
                     (op.info.rest.empty() || op.info.subresource == "proxy") &&
                     (IsView(op) || Subresources::Serves(op) || NodeProxy::Serves(op));
  if (!found) {
    auto allowed = parts_.pipeline.Authorize(op);
    if (!allowed) return call->Refuse(allowed.error());
    if (HasGroup(*op.registry, op.info.prefix == "api" ? "" : op.info.group)) {
      return call->Refuse(PathNotFound());
    }
    const bool no_sub = placed && !NeedsNamespace(op) && !op.info.name.empty();
    if (no_sub) return call->Refuse(NotFound(QualifiedResource(op), op.info.name));
    return call->SendText(404, "404 page not found\n");
  }
  const Status known = CheckMethod(call->request, op);
  if (known && NodeProxy::Serves(op)) {
    return rooms_->nodes.Handle(op, call->request, call->writer);
  }
  const bool scale = op.subresource && !op.subresource->message->custom;
  auto form = Negotiate(call->request.headers.Get("accept"), op.options.pretty, !custom || scale);
  if (!form) return call->Refuse(form.error());
  call->form = *std::move(form);
  const std::string_view deprecation =
      custom ? std::string_view(custom->deprecation) : api::RulesFor(*op.resource).deprecation;
  if (!deprecation.empty()) op.warnings.emplace_back(deprecation);
  if (!known) {
    auto allowed = parts_.pipeline.Authorize(op);
    return call->Refuse(allowed ? known.error() : allowed.error());
  }
  if (op.info.verb == "watch") return Watch(call);
  if (auto allowed = parts_.pipeline.Authorize(op); !allowed) {
    return call->Refuse(allowed.error());
  }
  op.authorized = true;
  if (op.options.field_manager.empty()) op.options.field_manager = ManagerOf(call->request);
  if (auto decoded = DecodeBody(call->request, op); !decoded) {
    return call->Refuse(decoded.error());
  }
  Respond done = [this, call](Result<Outcome> outcome) { Answer(call, std::move(outcome)); };
  if (rooms_->subresources.Execute(op, done)) return;
  parts_.pipeline.Execute(op, std::move(done));
}

// Without a fieldManager the user agent up to its first slash names the manager.
std::string ApiServer::ManagerOf(const net::Request& request) {
  const std::string_view agent = request.headers.Get("user-agent");
  return std::string(agent.substr(0, agent.find('/')));
}

void ApiServer::Answer(const std::shared_ptr<Call>& call, Result<Outcome> outcome) {
  if (!outcome) return call->Refuse(outcome.error());
  auto include = ParseIncludeObject(call->request.query);
  if (!include) return call->Refuse(include.error());
  auto body = EncodeOutcome(call->op, *outcome, {call->form, *include, parts_.pipeline.now()});
  if (!body) return call->Refuse(body.error());
  if (body->size() >= kLargeAnswer) {
    FlowControl::Share share = rooms_->flow.TakeBytes(call->op.user.name, body->size());
    if (!share) return call->TooMany();
    call->writer->OnClosed([share = std::move(share)] {});
  }
  std::vector<std::string> warnings = call->op.warnings;
  warnings.insert(warnings.end(), outcome->warnings.begin(), outcome->warnings.end());
  call->writer->SendResponse(outcome->code, AnswerHeaders(call->form.ContentType(), warnings),
                             *std::move(body));
}

namespace {

// A custom kind that goes, or becomes another, ends its watches: whoever wants the new one asks
// again.
std::shared_ptr<const void> EndWithItsKind(RegistrySource& registries, const Operation& op,
                                           const std::shared_ptr<WatchStream>& stream) {
  const api::CustomVersion* kind = api::AsCustom(*op.resource);
  if (!kind) return nullptr;
  auto look = [kind, held = op.registry,
               weak = std::weak_ptr(stream)](const api::Registry& registry) {
    const api::Resource* found = registry.Find(kind->group_version, kind->plural);
    const api::CustomVersion* now = found ? api::AsCustom(*found) : nullptr;
    if (now && now->incarnation == kind->incarnation) return;
    if (auto watch = weak.lock()) watch->End();
  };
  auto listener = registries.OnChange(look);
  look(*registries.Get());  // what has changed since the request took its registry
  return listener;
}

}  // namespace

void ApiServer::Watch(const std::shared_ptr<Call>& call) {
  if (auto allowed = parts_.pipeline.Authorize(call->op); !allowed) {
    return call->Refuse(allowed.error());
  }
  auto include = ParseIncludeObject(call->request.query);
  if (!include) return call->Refuse(include.error());
  FlowControl::Share share = rooms_->flow.TakeWatch(call->op.user.name);
  if (!share) return call->TooMany();
  // Both are touched on the watch's strand only.
  auto first = std::make_shared<bool>(true);
  auto sink = [this, call, first, include = *include](std::vector<WatchUpdate> updates, bool end) {
    std::string frames;
    for (const WatchUpdate& update : updates) {
      auto frame =
          EncodeWatchFrame(call->op, update, *first, {call->form, include, parts_.pipeline.now()});
      if (!frame) {
        call->writer->Abort();
        return false;
      }
      *first = false;
      frames += *frame;
    }
    // A client that does not keep up loses its own watch, nobody else's.
    if (!frames.empty() && !call->writer->Write(net::MakeBuffer(std::move(frames)))) {
      call->writer->Abort();
      return false;
    }
    if (end) call->writer->Finish();
    return true;
  };
  auto stream = WatchStream::Make(parts_.pipeline, call->op, std::move(sink));
  if (!stream) return call->Refuse(stream.error());
  call->writer->StartStream(200, AnswerHeaders(call->form.StreamContentType(), {}));
  call->writer->OnClosed(
      [stream = *stream, share = std::move(share),
       kind = EndWithItsKind(parts_.registries, call->op, *stream)] { stream->Stop(); });
  (*stream)->Start();
}

void ApiServer::PodLog(const User& user, client::ObjectName pod, std::string container,
                       int64_t limit_bytes, client::Callback<std::string> done) {
  Operation op;
  op.user = user;
  op.registry = parts_.registries.Get();
  op.resource = op.registry->Find({"", "v1"}, client::kPods.resource);
  op.subresource = op.resource->FindSubresource("log");
  op.info = {.is_resource = true,
             .path = {},
             .verb = "get",
             .prefix = "api",
             .group = {},
             .version = "v1",
             .ns = pod.ns,
             .resource = std::string(client::kPods.resource),
             .subresource = "log",
             .name = pod.name,
             .rest = {}};
  rooms_->nodes.ReadLog(op, std::move(container), limit_bytes, std::move(done));
}

void ApiServer::Raw(const User& user, std::string path, client::Callback<std::string> done) {
  // The same way as an HTTP request, with a writer that keeps the answer.
  class Keep : public net::ResponseWriter {
   public:
    explicit Keep(client::Callback<std::string> done) : done_(std::move(done)) {}
    void SendResponse(int status, net::Headers, net::Buffer body) override {
      if (status < 400) return done_(std::string(*body));
      Error error;
      error.code = status;
      error.message = *body;
      done_(Fail(std::move(error)));
    }
    void StartStream(int, net::Headers) override {}
    bool Write(net::Buffer) override { return false; }
    void Finish() override {}
    void Abort() override {}
    size_t buffered_bytes() const override { return 0; }
    bool closed() const override { return false; }
    void OnClosed(Task) override {}
    void OnWritable(Task) override {}
    void UpgradeWebSocket(std::string,
                          std::move_only_function<void(std::shared_ptr<net::WebSocket>)>) override {
    }
    void Hijack(net::Headers,
                std::move_only_function<void(std::shared_ptr<net::ByteStream>)>) override {}

   private:
    client::Callback<std::string> done_;
  };
  auto call = std::make_shared<Call>();
  call->request.method = "GET";
  call->request.SetTarget(std::move(path));
  call->writer = std::make_shared<Keep>(std::move(done));
  call->op.user = user;
  call->op.info = ParseRequest("GET", call->request.path);
  call->op.registry = parts_.registries.Get();
  parts_.pipeline.workers().Post([this, call] { Fixed(call); });
}

bool ApiServer::ExecuteSubresource(Operation& op, Respond& done) {
  if (!NodeProxy::Serves(op)) return rooms_->subresources.Execute(op, done);
  done(Fail(PathNotFound()));  // bytes of a node are no object
  return true;
}

}  // namespace sextant::server
