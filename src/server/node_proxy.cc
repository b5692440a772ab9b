#include "server/node_proxy.h"

#include <fmt/format.h>

#include <array>

#include "base/quote.h"
#include "net/client.h"
#include "net/websocket.h"
#include "server/encode.h"

namespace sextant::server {
namespace {

using api::Object;
using api::Value;

constexpr size_t kMaxStatusBody = 64 << 10;
constexpr char kSpdy[] = "SPDY/3.1";
constexpr char kStreamVersion[] = "x-stream-protocol-version";

void Refuse(net::ResponseWriter& writer, const Error& error) {
  const Form form;
  writer.SendResponse(
      error.code, {{"cache-control", "no-cache, private"}, {"content-type", "application/json"}},
      EncodeStatus(error, form));
}

std::vector<std::string> ContainerNames(Value spec, bool regular_only) {
  std::vector<std::string> names;
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    if (regular_only && std::string_view(list) != "containers") continue;
    for (Value container : spec[list].items()) names.emplace_back(container["name"].AsString());
  }
  return names;
}

// The container a request means: the one named, or the only one there is.
Result<std::string> PickContainer(const Object& pod, const std::string& asked) {
  const Value spec = pod["spec"];
  if (!asked.empty()) {
    for (const std::string& name : ContainerNames(spec, false))
      if (name == asked) return asked;
    return Fail(BadRequest(fmt::format("container {} is not valid for pod {}", asked, pod.name())));
  }
  const std::vector<std::string> names = ContainerNames(spec, true);
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    return Fail(
        BadRequest(fmt::format("a container name must be specified for pod {}", pod.name())));
  }
  std::string text =
      fmt::format("a container name must be specified for pod {}, choose one of: [{}]", pod.name(),
                  fmt::join(names, " "));
  const std::vector<std::string> all = ContainerNames(spec, false);
  if (spec["initContainers"].size() > 0) {
    std::vector<std::string> init(
        all.begin() + static_cast<long>(names.size()),
        all.begin() + static_cast<long>(names.size() + spec["initContainers"].size()));
    text += fmt::format(" or one of the init containers: [{}]", fmt::join(init, " "));
  }
  return Fail(BadRequest(text));
}

struct Query {
  std::vector<std::pair<std::string, std::string>> all;
  std::string Get(std::string_view name) const {
    for (const auto& [key, value] : all)
      if (key == name) return value;
    return {};
  }
};

Result<Query> Parse(std::string_view text) {
  ASSIGN_OR_RETURN(auto all, net::ParseQuery(text));
  return Query{std::move(all)};
}

// The query with only what the kubelet's endpoint knows; the API server's names are its own.
std::string KubeletQuery(const Query& query, std::initializer_list<std::string_view> keep) {
  std::string out;
  for (const auto& [name, value] : query.all) {
    for (std::string_view wanted : keep) {
      if (name != wanted) continue;
      out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, net::PercentEncode(value));
    }
  }
  return out;
}

// PodExecOptions' stdin, stdout, stderr and tty are the kubelet's input, output, error and tty.
std::string StreamQuery(const Query& query) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      {{"stdin", "input"}, {"stdout", "output"}, {"stderr", "error"}, {"tty", "tty"}}};
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, net::PercentEncode(value));
  };
  for (const auto& [name, value] : query.all) {
    if (name == "command") add("command", value);
    for (const auto& [from, to] : kNames) {
      if (name == from && value != "false" && value != "0") add(to, "1");
    }
  }
  return out;
}

std::string PodPath(std::string_view endpoint, const Object& pod, const std::string& container) {
  std::string path = fmt::format("/{}/{}/{}", endpoint, pod.ns(), pod.name());
  if (!container.empty()) path += "/" + container;
  return path;
}

Status ValidateLogQuery(const Query& query, std::string_view pod) {
  api::FieldErrors errors;
  const auto positive = [&](std::string_view name, int64_t least) {
    const std::string text = query.Get(name);
    if (text.empty()) return;
    char* end = nullptr;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (*end != '\0') return;
    if (value < least) {
      errors.InvalidRaw(
          std::string(name), text,
          least == 0 ? "must be greater than or equal to 0" : "must be greater than 0");
    }
  };
  positive("tailLines", 0);
  positive("limitBytes", 1);
  positive("sinceSeconds", 1);
  if (!query.Get("sinceSeconds").empty() && !query.Get("sinceTime").empty()) {
    errors.Forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified");
  }
  if (errors.empty()) return {};
  return Fail(Invalid("", "PodLogOptions", pod, errors.Take()));
}

// Takes the place of a Status that the kubelet answered: its text is the message.
Error KubeletError(int status, std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 404) {
    Error error;
    error.code = 404;
    error.reason = "NotFound";
    error.message = fmt::format("the server could not find the requested resource ({})", text);
    return error;
  }
  if (status == 400) return BadRequest(text);
  return InternalError(text);
}

// Passes a kubelet's answer on as it comes: a log, of which a failure becomes a Status, or
// whatever the client asked of the node itself.
class AnswerRelay : public std::enable_shared_from_this<AnswerRelay> {
 public:
  enum class Of : uint8_t { kLog, kNode };
  AnswerRelay(Of what, std::shared_ptr<net::ResponseWriter> writer)
      : what_(what), writer_(std::move(writer)) {}

  void Start(NodeDialer& nodes, const std::string& node, const std::string& path) {
    auto self = shared_from_this();
    auto cancel = std::make_shared<Task>(
        nodes.Get(node, path,
                  {[self](int status, net::Headers headers) { self->OnHeaders(status, headers); },
                   [self](std::string piece) { self->OnData(std::move(piece)); },
                   [self](Status end) { self->OnDone(std::move(end)); }}));
    writer_->OnClosed([cancel] {
      if (*cancel) (*cancel)();
    });
  }

 private:
  void OnHeaders(int status, const net::Headers& headers) {
    status_ = status;
    passes_ = what_ == Of::kNode || status == 200;
    if (!passes_) return;
    net::Headers answer = {{"cache-control", "no-cache, private"}};
    answer.Add("content-type", what_ == Of::kNode ? headers.Get("content-type") : "text/plain");
    writer_->StartStream(status, std::move(answer));
  }
  void OnData(std::string piece) {
    if (!passes_) {
      if (body_.size() + piece.size() <= kMaxStatusBody) body_ += piece;
    } else if (!writer_->Write(net::MakeBuffer(std::move(piece)))) {
      writer_->Abort();
    }
  }
  void OnDone(Status end) {
    if (passes_) return end ? writer_->Finish() : writer_->Abort();
    if (status_ == 0) {
      const std::string why = end ? "no answer from the node" : end.error().message;
      return Refuse(*writer_, what_ == Of::kLog ? InternalError(why)
                                                : ServiceUnavailable(fmt::format(
                                                      "error trying to reach service: {}", why)));
    }
    Refuse(*writer_, KubeletError(status_, body_));
  }

  const Of what_;
  std::shared_ptr<net::ResponseWriter> writer_;
  int status_ = 0;
  bool passes_ = false;  // what comes goes to the client as it is
  std::string body_;
};

// A kubelet that refuses to upgrade speaks for itself.
void PassRefusal(net::ResponseWriter& writer, const Error& error) {
  if (net::IsTransportError(error)) return Refuse(writer, InternalError(error.message));
  writer.SendResponse(error.code, {{"content-type", "text/plain; charset=utf-8"}}, error.message);
}

// WebSocket from the client, WebSocket to the kubelet, messages passed both ways.
void RelayWebSocket(NodeDialer& nodes, const std::string& node, const std::string& path,
                    std::vector<std::string> protocols,
                    const std::shared_ptr<net::ResponseWriter>& writer) {
  nodes.OpenWebSocket(node, path, std::move(protocols),
                      [writer](Result<std::shared_ptr<net::WebSocket>> opened) {
                        if (!opened) return PassRefusal(*writer, opened.error());
                        std::shared_ptr<net::WebSocket> kubelet = *opened;
                        writer->UpgradeWebSocket(kubelet->protocol(),
                                                 [kubelet](std::shared_ptr<net::WebSocket> client) {
                                                   if (!client) {
                                                     kubelet->Close(net::WsClose::kGoingAway);
                                                     return;
                                                   }
                                                   net::Proxy(std::move(client), kubelet);
                                                 });
                      });
}

// SPDY from the client, SPDY to the kubelet: bytes passed both ways.
void RelaySpdy(NodeDialer& nodes, const std::string& node, const std::string& path,
               const net::Headers& headers, const std::shared_ptr<net::ResponseWriter>& writer) {
  net::UpgradeRequest request{.target = path, .headers = {}, .to = kSpdy};
  for (std::string_view version : headers.GetAll(kStreamVersion)) {
    request.headers.Add(kStreamVersion, version);
  }
  nodes.OpenUpgrade(node, std::move(request), [writer](Result<net::Upgraded> upgraded) {
    if (!upgraded) return PassRefusal(*writer, upgraded.error());
    writer->Hijack({{"upgrade", kSpdy}, {kStreamVersion, upgraded->headers.Get(kStreamVersion)}},
                   [kubelet = upgraded->stream](const std::shared_ptr<net::ByteStream>& client) {
                     client ? net::Splice(client, kubelet) : kubelet->Close();
                   });
  });
}

bool IsStreaming(std::string_view subresource) {
  return subresource == "exec" || subresource == "attach" || subresource == "portforward";
}

}  // namespace

bool NodeProxy::Serves(const Operation& op) {
  if (!op.subresource) return false;
  const std::string_view sub = op.subresource->name;
  if (op.resource->plural == client::kNodes.resource) {
    return sub == "proxy" && op.info.verb == "get";
  }
  return op.resource->plural == client::kPods.resource && (sub == "log" || IsStreaming(sub));
}

void NodeProxy::Handle(const Operation& op, const net::Request& request,
                       const std::shared_ptr<net::ResponseWriter>& writer) {
  const bool node = op.resource->plural == client::kNodes.resource;
  auto answer = node ? ServeNode(op, request, writer) : Serve(op, request, writer);
  if (!answer) Refuse(*writer, answer.error());
}

Status NodeProxy::ServeNode(const Operation& op, const net::Request& request,
                            const std::shared_ptr<net::ResponseWriter>& writer) {
  RETURN_IF_ERROR(pipeline_.Authorize(op));
  if (!pipeline_.Get(client::kNodes.resource, "", op.info.name)) {
    return Fail(NotFound(QualifiedResource(op), op.info.name));
  }
  const std::string query = request.query.empty() ? "" : "?" + request.query;
  if (op.info.rest.empty() && !request.path.ends_with('/')) {
    // So that relative links in the answer lead to the node (apimachinery pkg/util/proxy).
    net::Headers headers;
    headers.Add("location", request.path + "/" + query);
    writer->SendResponse(301, std::move(headers), std::string());
    return {};
  }
  if (!nodes_) return Fail(ServiceUnavailable("this server reaches no nodes"));
  std::string path;
  for (const std::string& part : op.info.rest) path += "/" + net::PercentEncode(part);
  if (path.empty() || request.path.ends_with('/')) path += "/";
  std::make_shared<AnswerRelay>(AnswerRelay::Of::kNode, writer)
      ->Start(*nodes_, op.info.name, path + query);
  return {};
}

Status NodeProxy::Serve(const Operation& op, const net::Request& request,
                        const std::shared_ptr<net::ResponseWriter>& writer) {
  const std::string_view sub = op.subresource->name;
  RETURN_IF_ERROR(pipeline_.Authorize(op));
  if (IsStreaming(sub) && op.info.verb == "get") {
    Operation create = op;
    create.info.verb = "create";
    RETURN_IF_ERROR(pipeline_.Authorize(create));
  }
  ASSIGN_OR_RETURN(const Query query, Parse(request.query));
  const Object pod = pipeline_.Get(client::kPods.resource, op.info.ns, op.info.name);
  if (!pod) return Fail(NotFound(QualifiedResource(op), op.info.name));
  const std::string node(pod["spec"]["nodeName"].AsString());
  if (sub == "log") {
    RETURN_IF_ERROR(ValidateLogQuery(query, pod.name()));
    ASSIGN_OR_RETURN(const std::string container, PickContainer(pod, query.Get("container")));
    if (node.empty()) {
      writer->SendResponse(204, {}, std::string());
      return {};
    }
    if (!nodes_) return Fail(ServiceUnavailable("this server reaches no nodes"));
    const std::string path =
        PodPath("containerLogs", pod, container) +
        KubeletQuery(query, {"follow", "previous", "sinceSeconds", "sinceTime", "timestamps",
                             "tailLines", "limitBytes", "stream"});
    std::make_shared<AnswerRelay>(AnswerRelay::Of::kLog, writer)->Start(*nodes_, node, path);
    return {};
  }
  std::string container;
  if (sub != "portforward") {
    ASSIGN_OR_RETURN(container, PickContainer(pod, query.Get("container")));
  }
  if (node.empty()) {
    return Fail(BadRequest(fmt::format("pod {} does not have a host assigned", pod.name())));
  }
  if (!nodes_) return Fail(ServiceUnavailable("this server reaches no nodes"));
  const bool spdy = request.IsUpgradeTo(kSpdy);
  if (!spdy && !request.IsWebSocketUpgrade()) {
    return Fail(BadRequest("Upgrade request required"));
  }
  const std::string_view endpoint = sub == "portforward" ? "portForward" : sub;
  const std::string path =
      PodPath(endpoint, pod, container) +
      (sub == "portforward" ? KubeletQuery(query, {"ports", "port"}) : StreamQuery(query));
  if (spdy) {
    RelaySpdy(*nodes_, node, path, request.headers, writer);
  } else {
    RelayWebSocket(*nodes_, node, path, request.WebSocketProtocols(), writer);
  }
  return {};
}

void NodeProxy::ReadLog(const Operation& op, std::string container, int64_t limit_bytes,
                        std::move_only_function<void(Result<std::string>)> done) {
  if (auto allowed = pipeline_.Authorize(op); !allowed) return done(Fail(allowed.error()));
  const Object pod = pipeline_.Get(client::kPods.resource, op.info.ns, op.info.name);
  if (!pod) return done(Fail(NotFound(QualifiedResource(op), op.info.name)));
  auto picked = PickContainer(pod, container);
  if (!picked) return done(Fail(picked.error()));
  const std::string node(pod["spec"]["nodeName"].AsString());
  if (node.empty() || !nodes_) return done(std::string());
  struct Reading {
    int status = 0;
    std::string text;
    std::move_only_function<void(Result<std::string>)> done;
  };
  auto reading = std::make_shared<Reading>();
  reading->done = std::move(done);
  nodes_->Get(node,
              PodPath("containerLogs", pod, *picked) + fmt::format("?limitBytes={}", limit_bytes),
              {[reading](int status, net::Headers) { reading->status = status; },
               [reading, limit_bytes](std::string piece) {
                 const size_t room = static_cast<size_t>(limit_bytes) - reading->text.size();
                 reading->text += piece.substr(0, room);
               },
               [reading](Status end) {
                 if (!end) return reading->done(Fail(std::move(end).error()));
                 if (reading->status != 200) {
                   return reading->done(Fail(KubeletError(reading->status, reading->text)));
                 }
                 reading->done(std::move(reading->text));
               }});
}

}  // namespace sextant::server
