#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "kubelet/server_streams.h"
#include "net/websocket.h"

namespace sextant::kubelet {
namespace {

// apimachinery pkg/util/remotecommand.
enum Channel : uint8_t {
  kStdin = 0,
  kStdout = 1,
  kStderr = 2,
  kError = 3,
  kResize = 4,
  kClose = 255
};
constexpr std::string_view kProtocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io"};

constexpr size_t kInputPiece = 64 << 10;
constexpr Duration kPingInterval = std::chrono::seconds(30);
constexpr int kMaxTerminal = 10'000;  // columns or rows

std::string Framed(Channel channel, std::string_view bytes) {
  std::string frame(1, static_cast<char>(channel));
  frame += bytes;
  return frame;
}

// What the error channel says at the end.
std::string StatusText(const Result<int>& exit) {
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
    const std::string why = "error executing command in container: " + exit.error().message;
    root.Set("status", "Failure");
    root.Set("message", "Internal error occurred: " + why);
    root.Set("reason", "InternalError");
    root["details"]["causes"].Append().Set("message", why);
    root.Set("code", 500);
  }
  return api::ToJson(root.Snapshot());
}

// One exec or attach: the WebSocket on one side, the runtime's session on the other. What comes
// from the socket is handed to the loop, where everything else happens.
class Streaming : public std::enable_shared_from_this<Streaming> {
 public:
  Streaming(Loop& loop, std::shared_ptr<net::WebSocket> socket, StreamRequest request)
      : loop_(loop), socket_(std::move(socket)), request_(std::move(request)) {}

  // On the loop, so that nothing comes back before the session is known.
  void Start(Runtime& runtime) {
    auto self = shared_from_this();
    SessionCallbacks callbacks;
    callbacks.on_stdout = [self](std::string_view bytes) { self->Send(kStdout, bytes); };
    callbacks.on_stderr = [self](std::string_view bytes) { self->Send(kStderr, bytes); };
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
    // Tells the client that the connection stands.
    socket_->Send(true, Framed(request_.use_stdout   ? kStdout
                               : request_.use_stderr ? kStderr
                                                     : kError,
                               ""));
    socket_->Start({[self](bool, std::string message) { self->OnMessage(std::move(message)); },
                    [self](net::WsClose, std::string) { self->OnClose(); }, kPingInterval});
  }

 private:
  // Output: confirmed to the program as the client takes it.
  void Send(Channel channel, std::string_view bytes) {
    if (ended_ || !session_) return;
    if (!socket_->Send(true, Framed(channel, bytes))) {
      session_->Cancel();
      return;
    }
    socket_->OnWritable([session = session_, size = bytes.size()] { session->Consumed(size); });
  }

  void OnExit(const Result<int>& exit) {
    if (std::exchange(ended_, true)) return;
    // An attach that ends with its container went well, whatever the container's end.
    const Result<int> told = request_.attach && exit ? Result<int>(0) : exit;
    socket_->Send(true, Framed(kError, StatusText(told)));
    socket_->Close(net::WsClose::kNormal);
    loop_.Post([self = shared_from_this()] { self->session_.reset(); });
  }

  // Input comes on the I/O thread and is handed on there.
  void OnMessage(std::string message) {
    if (message.empty()) return;
    const auto channel = static_cast<uint8_t>(message[0]);
    const std::string_view data = std::string_view(message).substr(1);
    if (channel == kStdin && request_.use_stdin) return Feed(std::string(data));
    if (channel == kResize) return Resize(data);
    if (channel == kClose && data.size() == 1 && data[0] == kStdin) {
      loop_.Post([self = shared_from_this()] {
        self->close_input_ = true;
        if (self->input_.empty()) self->Drain();
      });
    }
  }

  void WithSession(std::function<void(Session&)> use) {
    loop_.Post([self = shared_from_this(), use = std::move(use)] {
      if (self->session_) use(*self->session_);
    });
  }

  // In order: while input waits for the program, the socket is paused.
  void Feed(std::string data) {
    if (data.empty()) return;
    socket_->Pause();
    loop_.Post([self = shared_from_this(), data = std::move(data)] {
      self->input_ += data;
      self->Drain();
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
    socket_->Resume();
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

  void OnClose() {
    WithSession([](Session& session) { session.Cancel(); });
  }

  Loop& loop_;
  const std::shared_ptr<net::WebSocket> socket_;
  const StreamRequest request_;
  std::shared_ptr<Session> session_;  // loop
  std::string input_;                 // loop: what waits for the program
  bool close_input_ = false;          // loop: no more will come after it
  bool ended_ = false;                // loop
};

}  // namespace

void ServeStream(NodeRef node, Loop& loop, StreamRequest request,
                 const std::vector<std::string>& protocols,
                 std::shared_ptr<net::ResponseWriter> writer) {
  if (!request.use_stdin && !request.use_stdout && !request.use_stderr) {
    return SendText(*writer, 400, "you must specify at least 1 of stdin, stdout, stderr");
  }
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
  upgrading.UpgradeWebSocket(protocol, [node = std::move(node), &loop, request = std::move(request),
                                        writer](std::shared_ptr<net::WebSocket> socket) mutable {
    if (!socket) return;
    loop.Post([node = std::move(node), &loop, request = std::move(request),
               socket = std::move(socket)]() mutable {
      const auto kubelet = node.lock();
      if (!kubelet) return socket->Close(net::WsClose::kGoingAway);
      std::make_shared<Streaming>(loop, std::move(socket), std::move(request))
          ->Start((*kubelet)->runtime());
    });
  });
}

}  // namespace sextant::kubelet
