#include "kubelet/server_exec.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "net/websocket.h"

namespace sextant::kubelet {
namespace {

constexpr std::string_view kProtocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io"};
constexpr char kSpdyProtocol[] = "v4.channel.k8s.io";

constexpr size_t kInputPiece = 64 << 10;
constexpr Duration kPingInterval = std::chrono::seconds(30);
constexpr int kMaxTerminal = 10'000;  // columns or rows

// What the error channel says at the end.
std::string StatusText(const Result<int>& exit, bool attach) {
  api::Editor edit;
  const api::Mut root = edit.Root();
  root["metadata"].SetMap();
  if (exit && *exit == 0) {
    root.Set("status", "Success");
  } else if (exit) {
    root.Set("status", "Failure");
    root.Set("message",
             fmt::format("command terminated with non-zero exit code: exit status {}", *exit));
    root.Set("reason", "NonZeroExitCode");
    const api::Mut cause = root["details"]["causes"].Append();
    cause.Set("reason", "ExitCode");
    cause.Set("message", std::to_string(*exit));
  } else {
    const std::string why =
        (attach ? "error attaching to container: " : "error executing command in container: ") +
        exit.error().message;
    root.Set("status", "Failure");
    root.Set("message", "Internal error occurred: " + why);
    root.Set("reason", "InternalError");
    root["details"]["causes"].Append().Set("message", why);
    root.Set("code", 500);
  }
  return api::ToJson(root.Snapshot());
}

// One exec or attach: the client on one side, the runtime's session on the other. What comes from
// the client is handed to the loop, where everything else happens.
class Streaming : public std::enable_shared_from_this<Streaming> {
 public:
  Streaming(Loop& loop, std::shared_ptr<StreamClient> client, StreamRequest request)
      : loop_(loop), client_(std::move(client)), request_(std::move(request)) {}

  // On the loop, so that nothing comes back before the session is known.
  void Start(Runtime& runtime) {
    auto self = shared_from_this();
    SessionCallbacks callbacks;
    callbacks.on_stdout = [self](std::string_view bytes) {
      self->Send(StreamChannel::kStdout, bytes);
    };
    callbacks.on_stderr = [self](std::string_view bytes) {
      self->Send(StreamChannel::kStderr, bytes);
    };
    callbacks.on_writable = [self] { self->Drain(); };
    callbacks.on_exit = [self](Result<int> exit) { self->OnExit(exit); };
    if (request_.attach) {
      session_ = runtime.Attach(
          {request_.container_id, request_.use_stdin, request_.use_stdout, request_.use_stderr},
          std::move(callbacks));
    } else {
      session_ = runtime.Exec({request_.container_id, request_.argv, request_.tty,
                               request_.use_stdin, request_.use_stdout, request_.use_stderr},
                              std::move(callbacks));
    }
    client_->Start(
        {[self](std::string data) { self->Feed(std::move(data)); }, [self] { self->EndInput(); },
         [self](std::string_view size) { self->Resize(size); }, [self] { self->OnGone(); }});
  }

 private:
  // Output: confirmed to the program as the client takes it.
  void Send(StreamChannel channel, std::string_view bytes) {
    if (ended_ || !session_) return;
    if (!client_->Send(channel, bytes)) {
      session_->Cancel();
      return;
    }
    client_->OnWritable([session = session_, size = bytes.size()] { session->Consumed(size); });
  }

  void OnExit(const Result<int>& exit) {
    if (std::exchange(ended_, true)) return;
    // An attach that ends with its container went well, whatever the container's end.
    const Result<int> told = request_.attach && exit ? Result<int>(0) : exit;
    client_->Finish(StatusText(told, request_.attach));
    loop_.Post([self = shared_from_this()] { self->session_.reset(); });
  }

  void WithSession(std::function<void(Session&)> use) {
    loop_.Post([self = shared_from_this(), use = std::move(use)] {
      if (self->session_) use(*self->session_);
    });
  }

  // In order: while input waits for the program, the client is paused.
  void Feed(std::string data) {
    if (data.empty() || !request_.use_stdin) return;
    client_->Pause();
    loop_.Post([self = shared_from_this(), data = std::move(data)] {
      self->input_ += data;
      self->Drain();
    });
  }

  void EndInput() {
    loop_.Post([self = shared_from_this()] {
      self->close_input_ = true;
      if (self->input_.empty()) self->Drain();
    });
  }

  void Drain() {
    while (session_ && !input_.empty()) {
      const std::string piece = input_.substr(0, kInputPiece);
      if (!session_->Write(piece)) return;  // on_writable goes on
      input_.erase(0, piece.size());
    }
    input_.clear();
    if (std::exchange(close_input_, false) && session_) session_->CloseStdin();
    client_->Resume();
  }

  void Resize(std::string_view text) {
    auto size = api::ParseJson(text);
    if (!size) return;
    const int64_t width = std::clamp<int64_t>((*size)["Width"].AsInt(), 0, kMaxTerminal);
    const int64_t height = std::clamp<int64_t>((*size)["Height"].AsInt(), 0, kMaxTerminal);
    if (width == 0 || height == 0) return;
    WithSession([width, height](Session& session) {
      session.Resize(static_cast<uint16_t>(width), static_cast<uint16_t>(height));
    });
  }

  void OnGone() {
    WithSession([](Session& session) { session.Cancel(); });
  }

  Loop& loop_;
  const std::shared_ptr<StreamClient> client_;
  const StreamRequest request_;
  std::shared_ptr<Session> session_;  // loop
  std::string input_;                 // loop: what waits for the program
  bool close_input_ = false;          // loop: no more will come after it
  bool ended_ = false;                // loop
};

// Messages whose first byte is the channel.
class WebSocketClient : public StreamClient {
 public:
  WebSocketClient(std::shared_ptr<net::WebSocket> socket, StreamChannel first)
      : socket_(std::move(socket)), first_(first) {}

  void Start(Handlers handlers) override {
    Send(first_, "");  // tells the client that the connection stands
    auto shared = std::make_shared<Handlers>(std::move(handlers));
    socket_->Start(
        {[shared](bool, const std::string& message) { OnMessage(*shared, message); },
         [shared](net::WsClose, const std::string&) { std::exchange(*shared, {}).on_gone(); },
         kPingInterval});
  }
  bool Send(StreamChannel channel, std::string_view bytes) override {
    std::string frame(1, static_cast<char>(channel));
    frame += bytes;
    return socket_->Send(true, frame);
  }
  void OnWritable(Task task) override { socket_->OnWritable(std::move(task)); }
  void Pause() override { socket_->Pause(); }
  void Resume() override { socket_->Resume(); }
  void Finish(const std::string& status) override {
    Send(StreamChannel::kError, status);
    socket_->Close(net::WsClose::kNormal);
  }

 private:
  static void OnMessage(const Handlers& handlers, const std::string& message) {
    if (message.empty()) return;
    const auto channel = static_cast<StreamChannel>(message[0]);
    const std::string_view data = std::string_view(message).substr(1);
    if (channel == StreamChannel::kStdin) return handlers.on_input(std::string(data));
    if (channel == StreamChannel::kResize) return handlers.on_resize(data);
    if (channel == StreamChannel::kClose && data.size() == 1 &&
        static_cast<StreamChannel>(data[0]) == StreamChannel::kStdin) {
      handlers.on_input_end();
    }
  }

  const std::shared_ptr<net::WebSocket> socket_;
  const StreamChannel first_;
};

}  // namespace

void JoinStream(const NodeRef& node, Loop& loop, StreamRequest request,
                std::shared_ptr<StreamClient> client) {
  loop.Post([node, &loop, request = std::move(request), client = std::move(client)]() mutable {
    const auto kubelet = node.lock();
    if (!kubelet) return;  // dropping the client closes its connection
    std::make_shared<Streaming>(loop, std::move(client), std::move(request))
        ->Start((*kubelet)->runtime());
  });
}

void ServeStream(NodeRef node, Loop& loop, net::IoThread& io, StreamRequest stream,
                 const net::Request& request, std::shared_ptr<net::ResponseWriter> writer) {
  if (!stream.use_stdin && !stream.use_stdout && !stream.use_stderr) {
    return SendText(*writer, 400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  if (IsSpdyUpgrade(request)) {
    return UpgradeToSpdy(
        request, kSpdyProtocol, writer,
        [node = std::move(node), &loop, &io, stream](std::shared_ptr<net::ByteStream> client) {
          ServeStreamOverSpdy(node, loop, io, stream, std::move(client));
        });
  }
  const std::vector<std::string> protocols = request.WebSocketProtocols();
  std::string protocol;
  for (std::string_view known : kProtocols) {
    if (protocol.empty() &&
        std::find(protocols.begin(), protocols.end(), known) != protocols.end()) {
      protocol = known;
    }
  }
  if (protocol.empty()) {
    return SendText(*writer, 400, "this kubelet speaks v5.channel.k8s.io and v4.channel.k8s.io");
  }
  net::ResponseWriter& upgrading = *writer;
  upgrading.UpgradeWebSocket(protocol, [node = std::move(node), &loop, stream = std::move(stream),
                                        writer](std::shared_ptr<net::WebSocket> socket) mutable {
    if (!socket) return;
    const StreamChannel first = stream.use_stdout   ? StreamChannel::kStdout
                                : stream.use_stderr ? StreamChannel::kStderr
                                                    : StreamChannel::kError;
    JoinStream(node, loop, std::move(stream),
               std::make_shared<WebSocketClient>(std::move(socket), first));
  });
}

}  // namespace sextant::kubelet
